//===- Profile.cpp - Times of dispatches, told ----------------------------===//

#include "Profile.h"
#include "Output.h"

using namespace weir;
using namespace weir::tool;

std::vector<const Command *> tool::getDispatches(const Plan &plan) {
  std::vector<const Command *> dispatches;
  for (const Command &command : plan.commands)
    if (command.kind == Command::Kind::Dispatch)
      dispatches.push_back(&command);
  return dispatches;
}

int64_t tool::getBytesMoved(const Plan &plan, const Command &dispatch) {
  const Kernel &kernel = plan.kernels[dispatch.kernel];
  int64_t bytes = 0;
  for (size_t i = 0; i < kernel.operands.size(); ++i) {
    Access access = kernel.operands[i].access;
    bytes += (access == Access::None     ? 0
              : access == Access::Update ? 2
                                         : 1) *
             dispatch.operands[i].bytes;
  }
  return bytes;
}

void tool::writeTrace(const std::string &path, const Plan &plan, const std::string &device,
                      const std::vector<weir_dispatch_time> &times) {
  Json events = Json::array();
  auto addName = [&](const char *what, const std::string &name) {
    events.push_back(
        {{"ph", "M"}, {"pid", 0}, {"tid", 0}, {"name", what}, {"args", {{"name", name}}}});
  };
  addName("process_name", device);
  addName("thread_name", "entry " + plan.entry + ", one dispatch at a time");
  std::vector<const Command *> dispatches = getDispatches(plan);
  // A front end's name tells more than the kernel's, which equal layers share.
  auto getName = [&](const Command &dispatch) {
    const std::string &source = dispatch.location;
    return source.ends_with(")") || source.ends_with(" more") ? source
                                                              : plan.kernels[dispatch.kernel].name;
  };
  for (size_t i = 0; i < dispatches.size(); ++i)
    events.push_back({{"ph", "X"},
                      {"pid", 0},
                      {"tid", 0},
                      {"name", getName(*dispatches[i])},
                      {"cat", "dispatch"},
                      {"ts", times[i].begin * 1e-3},
                      {"dur", (times[i].end - times[i].begin) * 1e-3},
                      {"args",
                       {{"dispatch", i},
                        {"kernel", plan.kernels[dispatches[i]->kernel].name},
                        {"grid", dispatches[i]->grid},
                        {"wave", dispatches[i]->wave},
                        {"bytes", getBytesMoved(plan, *dispatches[i])},
                        {"source", dispatches[i]->location}}}});
  writeText(path, Json({{"traceEvents", events}, {"displayTimeUnit", "ms"}}).dump(1) + "\n");
}
