//===- Registers.cpp - The values that registers hold ---------------------===//
//
// Each block that several lead to has a phi for each register that is read later. A phi is
// dropped if all values that reach it are one.
//
//===----------------------------------------------------------------------===//

#include "Registers.h"

#include <algorithm>

using namespace weir;
using namespace weir::ptx;

/// Max numbers that bound time and memory.
static constexpr size_t maxPlaces = size_t(1) << 22, maxRounds = 64;

Registers::Registers(const Entry &entry, const Flow &flow, const std::string &where)
    : count(entry.widths.size()) {
  if (count > maxPlaces / flow.blocks.size())
    fail(where, entry.line, "has more registers times blocks than are followed");
  size_t places = count * flow.blocks.size();
  isLive.resize(places);
  isWritten.resize(places);
  begins.assign(places, none);
  sameAs.assign(places, none);
  findLive(entry, flow);
  place(flow);
  simplify(flow);
}

/// Finds the registers that are written in each block, and those that are read behind its begin
/// before they are written.
void Registers::findLive(const Entry &entry, const Flow &flow) {
  const size_t words = count / 64 + 1;
  std::vector<uint64_t> live(words * flow.blocks.size()), reads(live), writes(live);
  for (uint32_t block : flow.order) {
    uint64_t *read = &reads[block * words], *write = &writes[block * words];
    auto use = [&](uint32_t number) {
      if (!(write[number / 64] >> (number % 64) & 1))
        read[number / 64] |= uint64_t(1) << (number % 64);
    };
    for (uint32_t i = flow.blocks[block].begin; i < flow.blocks[block].end; ++i) {
      for (uint32_t number : getRegisters(entry.statements[i], false))
        use(number);
      for (uint32_t number : getRegisters(entry.statements[i], true)) {
        write[number / 64] |= uint64_t(1) << (number % 64);
        isWritten[getPlace(block, number)] = true;
      }
    }
    if (flow.blocks[block].condition != none)
      use(flow.blocks[block].condition);
    for (auto [number, value] : flow.blocks[block].sets) {
      write[number / 64] |= uint64_t(1) << (number % 64);
      isWritten[getPlace(block, number)] = true;
    }
  }
  for (bool changes = true; changes;) {
    changes = false;
    for (size_t i = flow.order.size(); i-- > 0;) {
      uint32_t block = flow.order[i];
      for (size_t word = 0; word < words; ++word) {
        uint64_t after = 0;
        for (uint32_t to : flow.blocks[block].successors)
          after |= live[to * words + word];
        uint64_t &now = live[block * words + word];
        uint64_t next = reads[block * words + word] | (after & ~writes[block * words + word]);
        changes |= next != now;
        now = next;
      }
    }
  }
  for (uint32_t block : flow.order)
    for (uint32_t number = 0; number < count; ++number)
      isLive[getPlace(block, number)] = live[block * words + number / 64] >> (number % 64) & 1;
}

/// Sets what registers hold at the begin of each block.
void Registers::place(const Flow &flow) {
  for (uint32_t block : flow.order) {
    const std::vector<uint32_t> &from = flow.blocks[block].predecessors;
    for (uint32_t number = 0; number < count; ++number) {
      size_t at = getPlace(block, number);
      if (!isLive[at] || from.empty())
        continue;
      if (from.size() > 1)
        begins[at] = Token(at) | phiBit;
      else if (size_t before = getPlace(from[0], number); isWritten[before])
        begins[at] = Token(before);
      else
        begins[at] = begins[before];
    }
  }
}

Registers::Token Registers::resolve(Token token) const {
  while (token != none && token & phiBit && sameAs[token & ~phiBit] != token)
    token = sameAs[token & ~phiBit];
  return token;
}

void Registers::simplify(const Flow &flow) {
  for (size_t at = 0; at < begins.size(); ++at)
    if (begins[at] == (Token(at) | phiBit))
      sameAs[at] = begins[at];
  bool changes = true;
  for (size_t round = 0; changes && round < maxRounds; ++round) {
    changes = false;
    for (uint32_t block : flow.order)
      for (uint32_t number = 0; flow.blocks[block].predecessors.size() > 1 && number < count;
           ++number) {
        Token phi = Token(getPlace(block, number)) | phiBit;
        if (sameAs[phi & ~phiBit] != phi)
          continue;
        Token only = phi;
        bool isNeeded = false;
        for (uint32_t from : flow.blocks[block].predecessors) {
          size_t before = getPlace(from, number);
          Token each = resolve(isWritten[before] ? Token(before) : begins[before]);
          isNeeded |= each == none || (each != phi && only != phi && each != only);
          only = each == phi ? only : each;
        }
        if (isNeeded || only == phi)
          continue;
        sameAs[phi & ~phiBit] = only;
        changes = true;
      }
  }
}

Registers::Origin Registers::explain(Token token) const {
  token = resolve(token);
  if (token == none)
    return {};
  Token at = token & ~phiBit;
  return {token & phiBit ? Origin::Kind::Phi : Origin::Kind::Block, uint32_t(at / count),
          uint32_t(at % count)};
}

Registers::Origin Registers::atBegin(uint32_t block, uint32_t number) const {
  return explain(begins[getPlace(block, number)]);
}

Registers::Origin Registers::atEnd(uint32_t block, uint32_t number) const {
  size_t at = getPlace(block, number);
  return explain(isWritten[at] ? Token(at) : begins[at]);
}
