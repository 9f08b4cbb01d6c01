//===- Memory.h - One request of a subgroup ---------------------*- C++ -*-===//

#ifndef WEIR_MODEL_MEMORY_H
#define WEIR_MODEL_MEMORY_H

#include <cstdint>
#include <span>
#include <vector>

namespace weir::model {

inline constexpr int64_t sectorBytes = 32, lineBytes = 128;

/// Returns the numbers of the sectors that lanes touch with `bytes` bytes each, in order, each
/// once.
std::vector<int64_t> getSectors(std::span<const int64_t> addresses, int64_t bytes);

/// Returns the number of turns that workgroup memory takes for a request. It has 32 banks of 4
/// bytes; in one turn a bank gives one word, to any number of lanes. Requests of 8 bytes a lane are
/// served by halves of 32 lanes, those of 16 bytes by quarters. 0 for no lanes.
int64_t countTurns(std::span<const int64_t> addresses, int64_t bytes);

/// Returns the number of turns that the request would take without conflicts.
int64_t countIdealTurns(size_t lanes, int64_t bytes);

} // namespace weir::model

#endif // WEIR_MODEL_MEMORY_H
