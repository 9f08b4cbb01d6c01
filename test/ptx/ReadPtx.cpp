//===- ReadPtx.cpp - Prints what is proved of PTX that others made --------===//
//
// read-ptx FILE GRID BLOCK [EDITS]: reads each entry of a file, for so many workgroups of so many
// invocations (on the first axis, unless the entry requires a size), and prints a line of JSON for
// each: why it is not read, or what is proved of each of its parameters. With EDITS, changes bytes
// and lines of the file at random instead, so many times, and reads what comes out: there must be
// an answer each time, within a second.
//
//===----------------------------------------------------------------------===//

#include "weir/Artifact/Error.h"
#include "weir/CodeProofs/Footprint.h"
#include "weir/CodeProofs/Races.h"
#include "weir/PtxReader/PtxReader.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <random>
#include <regex>
#include <set>

using namespace weir;

static std::string quote(const std::string &text) {
  std::string result = "\"";
  for (char c : text)
    result += c == '"' || c == '\\' ? std::string("\\") + c
              : c < ' '             ? std::string(" ")
                                    : std::string(1, c);
  return result + "\"";
}

static const char *print(spv::Answer answer) {
  return answer == spv::Answer::Yes ? "\"yes\"" : answer == spv::Answer::No ? "\"no\"" : "null";
}

/// Prints what is known of one parameter: its range of bytes, the bytes surely written, races.
static std::string describe(const spv::AddressMap &map, uint32_t binding) {
  std::optional<spv::ByteRange> reach = spv::ByteRange{0, 0};
  bool isTouched = false;
  for (const spv::MemoryAccess &access : map.accesses) {
    if (access.root == spv::MemoryAccess::Root::Unknown) {
      reach.reset();
      isTouched = true;
    }
    if (access.root != spv::MemoryAccess::Root::Binding || access.binding != binding)
      continue;
    std::optional<spv::Reach> each = spv::getReach(map, access, 0);
    if (!each || !reach)
      reach.reset();
    else if (each->begin < each->end)
      reach = isTouched ? spv::ByteRange{std::min(reach->begin, each->begin),
                                         std::max(reach->end, each->end)}
                        : spv::ByteRange{each->begin, each->end};
    isTouched = true;
  }
  if (!isTouched)
    return "{\"touched\": false}";
  std::string text = "{\"touched\": true, \"reach\": ";
  text +=
      reach ? "[" + std::to_string(reach->begin) + ", " + std::to_string(reach->end) + "]" : "null";
  spv::PairAnswer races = spv::isFreeOfRaces(map, spv::MemoryAccess::Root::Binding, binding);
  text += std::string(", \"free_of_races\": ") + print(races.answer) + ", \"written\": [";
  spv::TouchedBytes written = spv::getTouched(map, binding, /*reads=*/false);
  for (size_t i = 0; i < written.certain.size() && i < 4096; ++i)
    text += (i ? ", [" : "[") + std::to_string(written.certain[i].begin) + ", " +
            std::to_string(written.certain[i].end) + "]";
  return text + "]}";
}

static std::string describeEntry(const std::string &text, const std::string &name, int64_t groups,
                                 uint32_t invocations, const std::string &file) {
  std::string line = "{\"entry\": " + quote(name);
  try {
    std::optional<spv::Module> module = ptx::readEntry(text, name, {invocations, 1, 1}, file);
    if (!module)
      throw Error(file + ": has no such entry");
    spv::AddressMap map =
        spv::readAddressMap(*module, *module->findEntryPoint(name), {{groups, 1, 1}, 32});
    line += ", \"read\": true, \"problem\": " + quote(map.problem) + ", \"workgroup\": [" +
            std::to_string(map.localSize[0]) + ", " + std::to_string(map.localSize[1]) + ", " +
            std::to_string(map.localSize[2]) + "]";
    if (map.problem.empty()) {
      std::string parameters;
      for (const spv::Variable &variable : module->getVariables())
        if (variable.binding)
          parameters += (parameters.empty() ? "" : ", ") +
                        quote(std::to_string(*variable.binding)) + ": " +
                        describe(map, *variable.binding);
      line += ", \"parameters\": {" + parameters + "}";
      std::set<uint32_t> shared;
      spv::Answer isFree = spv::Answer::Yes, isUniform = spv::Answer::Yes;
      size_t unknown = 0;
      for (const spv::MemoryAccess &access : map.accesses) {
        if (access.root == spv::MemoryAccess::Root::Shared)
          shared.insert(access.binding);
        unknown += access.root == spv::MemoryAccess::Root::Unknown;
      }
      for (uint32_t variable : shared)
        if (spv::Answer each =
                spv::isFreeOfRaces(map, spv::MemoryAccess::Root::Shared, variable).answer;
            each != spv::Answer::Yes && isFree != spv::Answer::No)
          isFree = each;
      for (const spv::BarrierSite &barrier : map.barriers)
        if (spv::Answer each = spv::isUniform(map, barrier);
            each != spv::Answer::Yes && isUniform != spv::Answer::No)
          isUniform = each;
      line += std::string(", \"shared_free_of_races\": ") + print(isFree) +
              ", \"uniform_barriers\": " + print(isUniform) +
              ", \"accesses\": " + std::to_string(map.accesses.size()) +
              ", \"unknown\": " + std::to_string(unknown);
    }
  } catch (const Error &error) {
    line += ", \"read\": false, \"problem\": " + quote(error.what());
  }
  return line + "}";
}

/// Returns a text with a few bytes or lines changed.
static std::string edit(std::string text, std::mt19937 &random) {
  for (int edits = int(random() % 3); edits >= 0; --edits) {
    size_t at = random() % text.size(), line = text.rfind('\n', at) + 1;
    size_t length = std::min(text.find('\n', at), text.size() - 1) + 1 - line;
    switch (random() % 5) {
    case 0:
      text[at] = " ,;:.%@{}[]0123456789abrt-|+!\n"[random() % 30];
      break;
    case 1:
      text.erase(at, random() % 12);
      break;
    case 2:
      text.insert(random() % text.size(), text.substr(at, random() % 12));
      break;
    case 3:
      text.erase(line, length);
      break;
    default: // a line, to where another one begins
      std::string moved = text.substr(line, length);
      text.insert(text.rfind('\n', random() % text.size()) + 1, moved);
    }
    if (text.empty())
      text = " ";
  }
  return text;
}

/// Reads a text that was edited at random, many times. Returns the seconds that the slowest took.
static double readEdited(const std::string &text, const std::vector<std::string> &names,
                         int64_t groups, uint32_t invocations, int edits) {
  std::mt19937 random(1);
  double slowest = 0;
  size_t read = 0;
  for (int i = 0; i < edits; ++i) {
    std::string edited = edit(text, random);
    auto begin = std::chrono::steady_clock::now();
    read += describeEntry(edited, names[random() % names.size()], groups, invocations, "edited")
                .find("\"read\": true") != std::string::npos;
    std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
    slowest = std::max(slowest, time.count());
  }
  std::printf("%zu of %d edited texts are read, the slowest in %.3f s\n", read, edits, slowest);
  return slowest;
}

int main(int count, char **arguments) {
  if (count != 4 && count != 5) {
    std::fprintf(stderr, "usage: read-ptx FILE GRID BLOCK [EDITS]\n");
    return 2;
  }
  std::ifstream file(arguments[1], std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  int64_t groups = std::max(1, std::atoi(arguments[2]));
  uint32_t invocations = uint32_t(std::clamp(std::atoi(arguments[3]), 1, 1024));
  static const std::regex entry("\\.entry\\s+([A-Za-z0-9_$%]+)");
  std::vector<std::string> names;
  for (auto found = std::sregex_iterator(text.begin(), text.end(), entry);
       found != std::sregex_iterator(); ++found)
    names.push_back((*found)[1]);
  if (count == 5 && !names.empty())
    return readEdited(text, names, groups, invocations, std::atoi(arguments[4])) < 1 ? 0 : 1;
  for (const std::string &name : names)
    std::printf("%s\n", describeEntry(text, name, groups, invocations, arguments[1]).c_str());
  return 0;
}
