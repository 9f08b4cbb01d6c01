//===- GradCheck.cpp - weir gradcheck -------------------------------------===//

#include "CompilerProblems.h"
#include "Output.h"
#include "Tensors.h"
#include "driver/Reference/GradientCheck.h"

#include <cmath>
#include <iostream>
#include <memory>

using namespace weir;
using namespace weir::tool;

namespace {
struct GradCheckOptions {
  std::string graph, entry;
  std::vector<std::string> inputs;
  uint64_t seed = 1;
  double tolerance = 1e-6;
  bool json = false;
};
} // namespace

/// Returns ", 2 kinks, the first at 0,3", or "" if there is none.
static std::string describeKinks(const GradientRow &row) {
  if (!row.kinks)
    return "";
  return row.kinks == 1
             ? ", a kink at " + row.firstKink
             : ", " + std::to_string(row.kinks) + " kinks, the first at " + row.firstKink;
}

static int gradCheck(const GradCheckOptions &options) {
  Progress progress;
  progress.begin("differentiating " + options.entry);
  std::string graph = readGraph(options.graph);
  GradientCheck check(graph, deriveVjp(graph, options.graph, options.entry), options.entry);
  EntrySpec entry;
  entry.name = options.entry;
  entry.arguments = check.getArguments();
  std::vector<Tensor> arguments =
      gatherInputs(entry, {options.inputs, {}, options.seed, /*widen=*/true});
  progress.begin("taking differences");
  std::vector<GradientRow> rows = check.run(std::move(arguments), options.seed, options.tolerance);

  bool passes = true;
  std::vector<std::vector<std::string>> table;
  Json json = Json::array();
  for (const GradientRow &row : rows) {
    bool rowPasses = row.error <= options.tolerance;
    passes &= rowPasses;
    table.push_back({row.argument, std::to_string(row.elements), std::to_string(row.differences),
                     printNumber(row.step), printNumber(row.error), row.worst,
                     printNumber(row.gradient), printNumber(row.difference),
                     (rowPasses ? "yes" : "NO") + describeKinks(row)});
    json.push_back({{"argument", row.argument},
                    {"elements", row.elements},
                    {"differences", row.differences},
                    {"step", row.step},
                    {"error", std::isfinite(row.error) ? Json(row.error) : Json("inf")},
                    {"worst", row.worst},
                    {"gradient", row.gradient},
                    {"difference", row.difference},
                    {"kinks", row.kinks},
                    {"first_kink", row.firstKink},
                    {"passes", rowPasses}});
  }
  if (options.json)
    printJson({{"entry", options.entry},
               {"tolerance", options.tolerance},
               {"passes", passes},
               {"arguments", json}});
  else
    printTable({"argument", "elements", "differences", "step", "error", "worst", "gradient",
                "difference", "passes"},
               table);
  return passes ? Done : CheckFailed;
}

void tool::addGradCheck(CLI::App &app, Verb &chosen) {
  auto options = std::make_shared<GradCheckOptions>();
  CLI::App *verb =
      app.add_subcommand("gradcheck", "Compare gradients with central differences, in f64");
  verb->footer("Uses random cotangents of all results together. Differences are taken for each "
               "element of arguments with at most 256 elements, and along 16 random directions of "
               "larger ones. The error is the norm of gradient - difference divided by the larger "
               "of the two norms. At a kink, such as that of a ReLU or a tie of maxima, a gradient "
               "passes if it equals the slope of one side or lies between both. Checks the "
               "function F.vjp if the graph has one, else derives it as --vjp=F does.");
  verb->add_option("input", options->graph, "The graph, an .mlir file; - is standard input")
      ->required()
      ->type_name("IN.mlir");
  verb->add_option("--entry", options->entry, "The function to differentiate")
      ->required()
      ->type_name("F");
  verb->add_option("--input", options->inputs,
                   "Arguments at which to take the gradients, a safetensors file; may be repeated. "
                   "Other arguments are random")
      ->type_name("FILE");
  verb->add_option("--seed", options->seed,
                   "Seed of random inputs, cotangents and directions (default 1)")
      ->type_name("SEED");
  verb->add_option("--tolerance", options->tolerance, "Max error that passes (default 1e-6)")
      ->type_name("T");
  verb->add_flag("--json", options->json, "Print JSON");
  verb->callback([options, &chosen] {
    chosen = [options] { return reportProblems([&] { return gradCheck(*options); }); };
  });
}
