//===- Memory.cpp - One request of a subgroup -----------------------------===//

#include "weir/Model/Memory.h"

#include <algorithm>
#include <array>

using namespace weir;

std::vector<int64_t> model::getSectors(std::span<const int64_t> addresses, int64_t bytes) {
  std::vector<int64_t> sectors;
  for (int64_t address : addresses)
    for (int64_t at = address / sectorBytes; at <= (address + bytes - 1) / sectorBytes; ++at)
      if (sectors.empty() || sectors.back() != at)
        sectors.push_back(at);
  std::sort(sectors.begin(), sectors.end());
  sectors.erase(std::unique(sectors.begin(), sectors.end()), sectors.end());
  return sectors;
}

static constexpr int64_t banks = 32, bankBytes = 4;

/// Returns how many lanes are served together.
static size_t getGroup(int64_t bytes) { return bytes <= 4 ? 32 : bytes <= 8 ? 16 : 8; }

int64_t model::countTurns(std::span<const int64_t> addresses, int64_t bytes) {
  int64_t turns = 0;
  const size_t group = getGroup(bytes);
  for (size_t begin = 0; begin < addresses.size(); begin += group) {
    std::vector<int64_t> words;
    for (size_t i = begin; i < std::min(begin + group, addresses.size()); ++i)
      for (int64_t word = addresses[i] / bankBytes; word <= (addresses[i] + bytes - 1) / bankBytes;
           ++word)
        words.push_back(word);
    std::sort(words.begin(), words.end());
    words.erase(std::unique(words.begin(), words.end()), words.end());
    std::array<int64_t, banks> ways = {};
    for (int64_t word : words)
      ++ways[size_t(word % banks)];
    turns += *std::max_element(ways.begin(), ways.end());
  }
  return turns;
}

int64_t model::countIdealTurns(size_t lanes, int64_t bytes) {
  const size_t group = getGroup(bytes);
  return int64_t((lanes + group - 1) / group);
}
