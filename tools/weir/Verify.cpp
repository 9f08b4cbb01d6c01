//===- Verify.cpp - weir verify -------------------------------------------===//

#include "weir/Verify/Verify.h"
#include "AgainstGraph.h"
#include "Output.h"
#include "Verbs.h"
#include "WithCompiler.h"

#include <memory>

using namespace weir;
using namespace weir::tool;

namespace {
struct VerifyOptions {
  std::string artifact;
  bool againstGraph = false, json = false;
  std::optional<uint64_t> seed;
};
} // namespace

/// Returns the answers of `--against-graph`, or none without it.
static std::vector<GraphAnswer> askGraph(const Artifact &artifact, const VerifyOptions &options) {
  if (!options.againstGraph)
    return {};
  requireCompiler("--against-graph");
  Progress progress;
  return compareWithGraph(artifact, options.artifact, options.seed.value_or(1),
                          [&](const std::string &step) { progress.begin(step); });
}

/// Prints the claims and answers as tables, and a sentence on each.
static void printClaims(const std::vector<Claim> &claims, const std::vector<GraphAnswer> &answers,
                        bool allHold, size_t proved, size_t taken) {
  std::vector<std::vector<std::string>> rows;
  for (const Claim &claim : claims)
    rows.push_back(
        {claim.entry, claim.target, claim.what, claim.holds ? "holds" : "FAILS", claim.detail});
  size_t unknown = 0;
  for (const GraphAnswer &answer : answers) {
    unknown += !answer.agrees.has_value();
    rows.push_back({answer.entry, answer.target, "against graph",
                    !answer.agrees   ? "unknown"
                    : *answer.agrees ? "holds"
                                     : "FAILS",
                    answer.detail});
  }
  printTable({"entry", "target", "claim", "", "detail"}, rows);
  std::cout << (allHold ? "All claims hold" : "Some claims fail") << "; of what they say of code, "
            << proved << " facts are proved from it, " << taken << " taken from the compiler.\n";
  if (unknown > 0)
    std::cout << unknown << " of " << answers.size()
              << " could not be compared with the graph on this machine.\n";
}

static int runVerify(const VerifyOptions &options) {
  if (options.seed && !options.againstGraph)
    throw Error("--seed is for --against-graph");
  Artifact artifact = readArtifact(options.artifact);
  std::vector<Claim> claims = verify(artifact);
  bool allHold = true;
  size_t proved = 0, taken = 0;
  Json list = Json::array();
  for (const Claim &claim : claims) {
    allHold &= claim.holds;
    list.push_back({{"entry", claim.entry},
                    {"target", claim.target},
                    {"claim", claim.what},
                    {"holds", claim.holds},
                    {"proved_from_code", claim.proved},
                    {"taken_from_compiler", claim.taken},
                    {"detail", claim.detail}});
    proved += claim.proved;
    taken += claim.taken;
  }
  // Code that does not keep its claims is not run.
  std::vector<GraphAnswer> answers =
      allHold ? askGraph(artifact, options) : std::vector<GraphAnswer>();
  Json compared = Json::array();
  for (const GraphAnswer &answer : answers) {
    allHold &= answer.agrees.value_or(true);
    compared.push_back({{"entry", answer.entry},
                        {"target", answer.target},
                        {"agrees", answer.agrees ? Json(*answer.agrees) : Json()},
                        {"detail", answer.detail}});
  }
  if (!options.json) {
    printClaims(claims, answers, allHold, proved, taken);
    return allHold ? Done : CheckFailed;
  }
  Json out = {{"holds", allHold},
              {"proved_from_code", proved},
              {"taken_from_compiler", taken},
              {"claims", list}};
  if (options.againstGraph)
    out["against_graph"] = compared;
  printJson(out);
  return allHold ? Done : CheckFailed;
}

void tool::addVerify(CLI::App &app, Verb &chosen) {
  auto options = std::make_shared<VerifyOptions>();
  CLI::App *verb = app.add_subcommand(
      "verify",
      "Prove an artifact's plans again from the artifact alone; exits with 1 if a claim fails");
  verb->add_option("artifact", options->artifact, "The artifact")->required()->type_name("X.weir");
  verb->add_flag("--against-graph", options->againstGraph,
                 "Also run each entry's code on made-up arguments, for Vulkan and CUDA in the "
                 "simulator, for processors on this one, and compare the results with the graph "
                 "in the artifact; exits with 1 if they differ");
  verb->add_option("--seed", options->seed,
                   "With --against-graph: seed of the arguments (default 1)")
      ->type_name("SEED");
  verb->add_flag("--json", options->json, "Print JSON");
  verb->callback([options, &chosen] { chosen = [options] { return runVerify(*options); }; });
}
