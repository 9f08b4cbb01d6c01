//===- Occupancy.cpp - How many workgroups a unit holds -------------------===//

#include "weir/Model/Occupancy.h"

#include "weir/Artifact/Error.h"

#include <cstdio>
#include <sstream>

using namespace weir;
using namespace weir::model;

static int64_t roundUp(int64_t number, int64_t step) { return (number + step - 1) / step * step; }

static int64_t get(const Figure &figure, int64_t otherwise) {
  return figure ? int64_t(*figure) : otherwise;
}

Occupancy model::getOccupancy(const Device &device, int64_t invocations, int64_t subgroupSize,
                              std::optional<int64_t> registers, int64_t sharedBytes) {
  const int64_t subgroups = (invocations + subgroupSize - 1) / subgroupSize;
  Occupancy result;
  auto limit = [&](int64_t workgroups, const char *name) {
    if (result.limit.empty() || workgroups < result.workgroups) {
      result.workgroups = workgroups;
      result.limit = name;
    }
  };
  if (device.maxSubgroups)
    limit(int64_t(*device.maxSubgroups) / subgroups, "subgroups");
  if (device.maxWorkgroups)
    limit(int64_t(*device.maxWorkgroups), "workgroups");
  if (registers && *registers > 0 && device.registers) {
    // A unit has as many parts as it issues instructions a clock, and a subgroup's registers are
    // in one of them.
    const int64_t parts = get(device.issue, 1);
    const int64_t each = roundUp(*registers * subgroupSize, get(device.registerStep, 1));
    const int64_t inPart = int64_t(*device.registers) / parts / each;
    limit(inPart * parts / subgroups, "registers");
  }
  if (sharedBytes > 0 && device.shared) {
    const int64_t each =
        roundUp(sharedBytes + get(device.sharedSystem, 0), get(device.sharedStep, 1));
    limit(int64_t(*device.shared) / each, "shared memory");
    if (device.sharedMax && sharedBytes > int64_t(*device.sharedMax))
      limit(0, "shared memory");
  }
  if (result.limit.empty()) {
    result.workgroups = 1; // nothing is known of the device
    result.limit = "not known";
  }
  if (result.workgroups == 0)
    throw Error("a workgroup of " + std::to_string(invocations) + " invocations, " +
                std::to_string(registers.value_or(0)) + " registers each and " +
                std::to_string(sharedBytes) + " bytes of workgroup memory does not fit " +
                device.title + ": " + result.limit);
  result.subgroups = result.workgroups * subgroups;
  if (device.maxSubgroups)
    result.share = double(result.subgroups) / *device.maxSubgroups;
  return result;
}

std::optional<Resources> model::parseResources(const std::string &text, const std::string &entry) {
  std::istringstream lines(text);
  std::optional<Resources> found;
  bool isInside = false;
  for (std::string line; std::getline(lines, line);) {
    for (const char *head : {"Compiling entry function '", "Function properties for "})
      if (size_t at = line.find(head); at != std::string::npos) {
        std::string name = line.substr(at + std::string(head).size());
        isInside = name.substr(0, name.find('\'')) == entry;
      }
    if (!isInside)
      continue;
    auto getNumber = [&](const std::string &unit) -> std::optional<int64_t> {
      size_t end = line.find(unit);
      if (end == std::string::npos)
        return std::nullopt;
      size_t begin = end;
      while (begin > 0 && line[begin - 1] >= '0' && line[begin - 1] <= '9')
        --begin;
      return begin == end ? std::nullopt
                          : std::optional(std::stoll(line.substr(begin, end - begin)));
    };
    if (auto registers = getNumber(" registers")) {
      found = found.value_or(Resources());
      found->registers = *registers;
      found->sharedBytes = getNumber(" bytes smem").value_or(0);
    } else if (auto stack = getNumber(" bytes stack frame")) {
      found = found.value_or(Resources());
      found->stackBytes = *stack;
      found->spilledBytes = getNumber(" bytes spill stores").value_or(0) +
                            getNumber(" bytes spill loads").value_or(0);
    }
  }
  return found;
}
