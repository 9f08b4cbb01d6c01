//===- weir-mutate.cpp - Breaks artifacts, to test who checks them --------===//
//
// A tool for tests. Lists an artifact's mutants, each with one fact changed, and the verdict
// expected of a checker; writes one of them. Or applies edits that a fuzzer made up. Exit status: 0
// done, 2 bad usage or input.
//
//===----------------------------------------------------------------------===//

#include "Edits.h"
#include "Mutants.h"
#include "tools/weir/Output.h"

#include <CLI/CLI.hpp>

#include <iostream>

using namespace weir;
using namespace weir::mutate;

static constexpr int badInput = 2;

/// Checks that the unchanged artifact is correct: otherwise its mutants show nothing.
static void requireRight(const Artifact &artifact, Judge &judge) {
  for (const Plan &plan : artifact.plans) {
    if (!Judge::canRead(plan.target))
      continue;
    Verdict verdict = judge.judge(artifact, plan);
    if (verdict.what != Class::Equivalent)
      throw Error("entry \"" + plan.entry +
                  "\" is wrong before anything is changed: " + verdict.proof);
  }
}

static void list(const Artifact &artifact, bool json) {
  Judge judge, lenient(/*countsChosen=*/false);
  requireRight(artifact, judge);
  tool::Json rows = tool::Json::array();
  std::vector<std::vector<std::string>> table;
  for (const Mutant &mutant : listMutants(artifact, judge)) {
    Artifact copy = artifact;
    mutant.apply(copy);
    Verdict verdict = judge.judge(copy, copy.plans[mutant.plan]);
    // Data may never choose the address that a verdict depends on.
    if (judge.hasChosen() && lenient.judge(copy, copy.plans[mutant.plan]).what != verdict.what)
      continue;
    rows.push_back({{"id", mutant.id},
                    {"entry", copy.plans[mutant.plan].entry},
                    {"target", copy.plans[mutant.plan].target},
                    {"kind", mutant.kind},
                    {"class", getName(verdict.what)},
                    {"what", mutant.what},
                    {"proof", verdict.proof}});
    table.push_back({mutant.id, getName(verdict.what), mutant.what + ": " + verdict.proof});
  }
  if (json)
    tool::printJson(rows);
  else
    tool::printTable({"mutant", "class", "what, and why it is of its class"}, table);
}

static void apply(Artifact artifact, const std::string &id, const std::string &output) {
  Judge judge;
  for (const Mutant &mutant : listMutants(artifact, judge))
    if (mutant.id == id) {
      mutant.apply(artifact);
      return writeArtifact(output, artifact);
    }
  throw Error("there is no mutant \"" + id + "\"; --list prints all of them");
}

/// Applies the edits that a file's bytes are, and prints them.
static void edit(Artifact artifact, const std::string &path, const std::string &output) {
  if (artifact.plans.empty())
    throw Error("the artifact has no plan to edit; compile one with an entry");
  Bytes bytes = readFile(path, "file of edits");
  for (const std::string &sentence : applyEdits(artifact, bytes.data(), bytes.size()).second)
    std::cout << sentence << "\n";
  writeArtifact(output, artifact);
}

int main(int argc, char **argv) {
  CLI::App app("Changes one fact of an artifact, to test its checkers.");
  app.name("weir-mutate");
  std::string path, id, output, edits;
  bool isList = false, json = false;
  app.add_option("artifact", path, "The artifact")->required()->type_name("X.weir");
  CLI::Option *listed =
      app.add_flag("--list", isList, "Print all mutants, and the verdict expected of a checker");
  app.add_flag("--json", json, "Print JSON")->needs(listed);
  CLI::Option *written = app.add_option("-o", output, "Path of the mutant")->type_name("Y.weir");
  CLI::Option *applied = app.add_option("--apply", id, "Write this mutant")
                             ->type_name("ID")
                             ->needs(written)
                             ->excludes(listed);
  app.add_option("--edits", edits, "Write the artifact with its plan edited by a file's bytes")
      ->type_name("FILE")
      ->needs(written)
      ->excludes(listed)
      ->excludes(applied);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success))
      return app.exit(error);
    tool::printError(std::string(error.what()) + "; see weir-mutate --help");
    return badInput;
  }
  try {
    if (!isList && id.empty() && edits.empty())
      throw Error("give --list, --apply=ID -o Y.weir or --edits=FILE -o Y.weir; see weir-mutate "
                  "--help");
    if (isList)
      list(readArtifact(path), json);
    else if (!edits.empty())
      edit(readArtifact(path), edits, output);
    else
      apply(readArtifact(path), id, output);
    if (!std::cout.flush())
      throw Error("standard output cannot be written");
  } catch (const std::exception &error) {
    tool::printError(error.what());
    return badInput;
  }
  return 0;
}
