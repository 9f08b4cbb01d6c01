//===- Plan.cpp - weir plan -----------------------------------------------===//

#include "Output.h"
#include "Verbs.h"
#include "weir/Artifact/Artifact.h"
#include "weir/Planner/Planner.h"

#include <chrono>
#include <iostream>
#include <memory>

using namespace weir;
using namespace weir::tool;

namespace {
struct PlanVerbOptions {
  std::string input, output, svg;
  std::vector<std::string> capacities;
  int64_t effort = PlanOptions().effort;
  uint64_t seed = 0;
  bool minimize = false, hasSeed = false, json = false;
};
} // namespace

/// Sets capacities: "BYTES" for all spaces, "SPACE=BYTES" for one.
static void setCapacities(PlanProblem &problem, const std::vector<std::string> &texts) {
  for (const std::string &text : texts) {
    size_t equals = text.rfind('=');
    std::string number = equals == std::string::npos ? text : text.substr(equals + 1);
    int64_t bytes = -1;
    try {
      size_t end = 0;
      bytes = std::stoll(number, &end);
      bytes = end == number.size() ? bytes : -1;
    } catch (const std::logic_error &) {
    }
    if (bytes < 0)
      throw Error("--capacity=" + text + ": \"" + number + "\" is not a number of bytes");
    bool any = false;
    for (MemorySpace &space : problem.spaces)
      if (equals == std::string::npos || space.name == text.substr(0, equals)) {
        space.capacity = bytes;
        any = true;
      }
    if (!any)
      throw Error("--capacity=" + text + ": no buffer is in space \"" + text.substr(0, equals) +
                  "\"");
  }
}

static std::string getVerdict(const PlanProblem &problem, const SpacePlan &plan, size_t space) {
  int64_t capacity = problem.spaces[space].capacity;
  if (plan.bound > capacity)
    return "exceeds the capacity of " + std::to_string(capacity) + ", as every plan does";
  if (!plan.fits)
    return "exceeds the capacity of " + std::to_string(capacity) + ", more --effort may fit it";
  return plan.isOptimal() ? "proven least" : capacity == unlimitedBytes ? "" : "fits";
}

static Json toJson(const PlanProblem &problem, const BufferPlan &plan, double seconds) {
  Json spaces = Json::array(), buffers = Json::array();
  for (size_t s = 0; s < plan.spaces.size(); ++s) {
    const SpacePlan &space = plan.spaces[s];
    Json capacity;
    if (problem.spaces[s].capacity != unlimitedBytes)
      capacity = problem.spaces[s].capacity;
    spaces.push_back({{"space", problem.spaces[s].name},
                      {"capacity", capacity},
                      {"fits", space.fits},
                      {"peak", space.peak},
                      {"bound", space.bound},
                      {"gap", space.getGap()},
                      {"optimal", space.isOptimal()},
                      {"max_live", space.maxLive},
                      {"pinned", space.pinned},
                      {"solver", space.solver},
                      {"steps", space.steps}});
  }
  for (size_t i = 0; i < problem.buffers.size(); ++i)
    buffers.push_back({{"id", problem.buffers[i].name}, {"offset", plan.offsets[i]}});
  return {{"seconds", seconds}, {"spaces", spaces}, {"buffers", buffers}};
}

static void print(const PlanProblem &problem, const BufferPlan &plan, double seconds) {
  std::vector<std::vector<std::string>> rows;
  for (size_t s = 0; s < plan.spaces.size(); ++s) {
    const SpacePlan &space = plan.spaces[s];
    // Another space may be called "0".
    std::string name = problem.spaces[s].name;
    if (name.empty())
      name = plan.spaces.size() == 1 ? "0" : "\"\"";
    double percent = space.bound ? 100 * double(space.getGap()) / double(space.bound) : 0;
    rows.push_back(
        {name, std::to_string(space.peak), std::to_string(space.bound), printNumber(percent) + "%",
         std::to_string(space.pinned), std::to_string(space.steps),
         space.solver.empty() ? "none needed" : space.solver, getVerdict(problem, space, s)});
  }
  printTable({"space", "peak", "bound", "gap", "pinned", "steps", "solver", ""}, rows);
  std::cout << problem.buffers.size() << " buffers planned and validated in "
            << printNumber(seconds) << " s\n";
}

static int runPlan(const PlanVerbOptions &options) {
  checkOutput("--output", options.output);
  checkOutput("--svg", options.svg);
  Bytes bytes = readFile(options.input, "buffers");
  std::string text(bytes.begin(), bytes.end());
  PlanProblem problem = parsePlanCsv(text, options.input);
  setCapacities(problem, options.capacities);
  PlanOptions how;
  how.effort = options.effort;
  how.minimize = options.minimize || options.capacities.empty();
  if (options.hasSeed)
    how.seed = options.seed;
  auto start = std::chrono::steady_clock::now();
  BufferPlan plan = planBuffers(problem, how);
  validatePlan(problem, plan);
  std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  bool fits = true;
  for (const SpacePlan &space : plan.spaces)
    fits &= space.fits;
  if (!options.output.empty() && fits)
    writeText(options.output, printPlanCsv(text, plan));
  if (!options.svg.empty())
    writeText(options.svg, drawPlan(problem, plan));
  if (options.json)
    printJson(toJson(problem, plan, seconds.count()));
  else
    print(problem, plan, seconds.count());
  return fits ? Done : CheckFailed;
}

void tool::addPlan(CLI::App &app, Verb &chosen) {
  auto options = std::make_shared<PlanVerbOptions>();
  CLI::App *verb = app.add_subcommand("plan", "Pack buffers into memory");
  verb->add_option("input", options->input,
                   "CSV with columns id, lower, upper, size, and optionally alignment, hint, "
                   "gaps, offset, space, chain, group")
      ->required()
      ->type_name("FILE.csv");
  verb->add_option(
          "--capacity", options->capacities,
          "Capacity of all memory spaces, or of one: stop at a plan that fits; may be repeated")
      ->type_name("[SPACE=]BYTES");
  verb->add_flag("--minimize", options->minimize,
                 "Search for the lowest peak, even if a plan already fits --capacity");
  verb->add_option("--effort", options->effort,
                   "Max number of search steps per space (default 200000); with 0 only the greedy "
                   "solvers run")
      ->type_name("N");
  CLI::Option *seed =
      verb->add_option("--seed", options->seed,
                       "Also improve orders by local search, with this seed (default: off)")
          ->type_name("N");
  verb->add_option("--output,-o", options->output, "Write the CSV with a column of offsets")
      ->type_name("OUT.csv");
  verb->add_option("--svg", options->svg, "Write a drawing of the plan: bytes over time")
      ->type_name("OUT.svg");
  verb->add_flag("--json", options->json, "Print JSON");
  verb->callback([options, seed, &chosen] {
    options->hasSeed = seed->count() > 0;
    chosen = [options] { return runPlan(*options); };
  });
}
