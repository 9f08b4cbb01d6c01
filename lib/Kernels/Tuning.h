//===- Tuning.h - Thresholds of kernels, by family --------------*- C++ -*-===//
//
// Numbers that decide between two kernels, or the size of a tile, and that are alike for all
// targets of a kind. Numbers that differ between targets stand in `Profile`; shapes of
// instructions, bytes of an element and limits of data structures stand beside their code.
// Each comment ends with [unit; source]. The sources are:
//
//   measured  code with this value ran, on the hardware or compiler that is named
//   model     `weir model` predicted the time of code with this value, or ptxas its registers
//   device    follows from a figure of a family of devices
//   proof     code with other values is not followed by Weir's verifier
//   guess     nothing is on record
//
// A source says that the value was found good, not that its neighbours were tried.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_LIB_KERNELS_TUNING_H
#define WEIR_LIB_KERNELS_TUNING_H

#include <cstdint>

namespace weir::tuning {

namespace workgroups {
/// Fewer leave most of a device idle. [workgroups; guess]
inline constexpr int64_t few = 16;
/// More keep a device busy. [workgroups; guess]
inline constexpr int64_t many = 64;
/// Workgroups of a unit from which none has much more to do than others. [workgroups; guess]
inline constexpr int64_t minPerUnit = 4;
} // namespace workgroups

namespace units {
/// Invocations that a unit runs at a time. [invocations; device: A100, H100 and H200]
inline constexpr int64_t maxInvocations = 2048;
/// Invocations of a unit that hide the latency of memory.
/// [invocations; measured: H200, RMSNorm's VJP of 4096 x 1024 in bf16 takes 15 us in place of 19.5]
inline constexpr int64_t hidingInvocations = 1024;
/// Lanes of a unit, an fma each in a clock. [lanes; device: H100 and H200, an A100 has 64]
inline constexpr int64_t fmaLanes = 128;
/// Latency of memory under load. [clocks; guess]
inline constexpr int64_t latency = 1024;
/// Invocations of a workgroup, with many sums each, whose registers fill a unit.
/// [invocations; device: 65,536 registers, up to 255 of them for an invocation]
inline constexpr int64_t largeWorkgroup = 256;
} // namespace units

namespace loops {
/// LLVM makes a condition of the number of two trips, which a verifier does not follow.
/// [trips; proof]
inline constexpr int64_t minTrips = 3;
} // namespace loops

namespace vectors {
/// Vectors of a unit on a processor; bodies with functions have one, since they need the registers.
/// [vectors; guess]
inline constexpr int64_t maxOfUnit = 4;
/// Units of the last dimension that are left if a unit has several vectors. [units; guess]
inline constexpr int64_t minUnits = 8;
} // namespace vectors

/// Rows, and rows across memory, that a team of invocations reduces.
namespace rows {
/// Elements of an invocation that its registers hold.
/// [elements; model: H100, softmax's VJP of 1024 x 32000 takes 131 us in place of 218]
inline constexpr int64_t elements = 16;
/// Invocations that share a row across memory: each combines the sums of all.
/// [invocations; model: H100, the second kernel of LayerNorm's VJP of 4096 x 1024 takes 2 us in
/// place of 36]
inline constexpr int64_t maxTeamAcross = 16;
/// Terms of an invocation in such a team. [terms; guess]
inline constexpr int64_t minTermsAcross = 8;
/// Invocations of such teams that keep a unit busy. [invocations; guess]
inline constexpr int64_t busyInvocations = 128;
/// Invocations of a workgroup of such teams: they read a line of memory or more.
/// [invocations; guess]
inline constexpr int64_t minWorkgroupAcross = 128;
/// Sums of a vector that a processor keeps of a row: one would wait for itself at every trip.
/// [sums; guess]
inline constexpr int64_t maxSums = 4;
/// Trips whose loads are made together, on a device with units.
/// [trips; model: likewise, both were found together]
inline constexpr int64_t tripsAtOnce = 8;
/// Invocations of a unit if teams take rows in turn: twice the number that runs at a time.
/// [invocations; guess]
inline constexpr int64_t invocationsInTurn = 2 * units::maxInvocations;
/// Workgroups that are left if rows are taken in turn, on a device whose units are not known.
/// [workgroups; guess]
inline constexpr int64_t workgroupsInTurn = 256;
/// Rows that a team takes in turn. [rows; guess]
inline constexpr int64_t maxRowsInTurn = 8;
/// The longest row that is prefetched to the first level of a processor's caches: the row itself
/// and what it is combined with are there as well. [bytes; device: a quarter of an L1 of 32 KiB]
inline constexpr int64_t maxPrefetchedToL1 = 8192;
} // namespace rows

/// Rows that a workgroup copies while it computes the one before.
namespace row_copies {
/// Rows of a workgroup from which more gain little: only the first one is waited for.
/// [rows; guess]
inline constexpr int64_t enoughRows = 16;
/// Vectors of a row that an invocation keeps in registers if workgroup memory does not hold the
/// row. [vectors; guess]
inline constexpr int64_t maxVectors = 4;
/// Least ratio of a row's length to the part of it in registers. [ratio; guess]
inline constexpr int64_t minRatio = 4;
/// Bits of an element, moved while a function is computed, from which memory takes longer than the
/// function. [bits; guess]
inline constexpr int64_t minBitsOfFunction = 32;
} // namespace row_copies

/// Columns that a processor reduces in blocks.
namespace columns {
/// Sums of a block. [bytes; device: half of the smallest L1]
inline constexpr int64_t maxBlockBytes = 16384;
/// Vectors of a block: fewer are not made to get more workgroups. [vectors; guess]
inline constexpr int64_t minBlockUnits = 8;
/// Rows that a sum takes between its load and its store. [rows; guess]
inline constexpr int64_t rowsInTurn = 4;
} // namespace columns

/// Contractions whose tiles subgroups own, without workgroup memory.
namespace contractions {
/// Columns of an invocation. [columns; guess]
inline constexpr int64_t maxColumns = 8;
/// Rows of a tile from which a longer dimension is not looked for. [rows; guess]
inline constexpr int64_t enoughRows = 4;
} // namespace contractions

/// Contractions whose factors a workgroup shares in slabs.
namespace slabs {
/// Sums of an invocation that its registers hold. [sums; guess]
inline constexpr int64_t maxSums = 256;
/// Sums of an invocation from which a unit has registers for one workgroup.
/// [sums; device: 65,536 registers, workgroups of 256]
inline constexpr int64_t manySums = 128;
/// Products whose code stands one behind the other: a loop around each costs instructions.
/// [products; model: H100, together with the largest tile a product of 4096 in f32 takes 91% of the
/// bound in place of 76%]
inline constexpr int64_t unrolledProducts = 8;
/// Neighbouring products that invocations side by side copy one by one, to different banks.
/// [products; device: a sector of 32 bytes has 8 of f32]
inline constexpr int64_t copiedProducts = 8;

/// A tile of an invocation, in halves of the profile's `slabTile`, and the share of the largest
/// one's flops that it reaches: smaller ones load more for each sum.
struct Size {
  int64_t rows, columns;
  double flops;
};
/// From the largest down. [halves of slabTile, share; guess: the model has a product of 1024 in f32
/// at 73 us in place of 126, but not each share]
inline constexpr Size sizes[] = {{2, 4, 1.0}, {2, 2, 0.95}, {1, 2, 0.8}, {1, 1, 0.6}};
} // namespace slabs

/// Contractions by instructions on matrices.
namespace matrices {
/// Stages of slabs for groups of four subgroups. [stages; guess]
inline constexpr int64_t minStages = 3;
/// Products of a slab of cooperative matrices. [products; guess]
inline constexpr int64_t cooperativeProducts = 32;
/// Sums of fewer products are not worth transposing a factor.
/// [products; guess: minStages slabs of 32]
inline constexpr int64_t minTransposedProducts = 96;
/// Elements of a factor along a dimension of its own, likewise. [elements; guess]
inline constexpr int64_t minTransposedElements = 64;
/// Share of the units' flops that is reached with transposed factors of f32.
/// [share; measured: H200, 4096 x 4096 x 4096]
inline constexpr double groupShare = 0.75;
/// Share that is reached with other factors. [share; measured: H200, 4096 x 4096 x 4096]
inline constexpr double otherShare = 0.3;
/// Share of the bytes of memory that a transpose reaches. [share; guess: on the safe side]
inline constexpr double transposeShare = 0.35;
} // namespace matrices

/// Factors that are computed in blocks, as in attention.
namespace blocks {
/// Rows of a block of a subgroup. [rows; guess]
inline constexpr int64_t maxRows = 16;
/// Rows of a block from which a divisor of all rows is preferred to `maxRows`. [rows; guess]
inline constexpr int64_t minRows = 10;
/// Chunks of products whose code stands one behind the other: what does not depend on the block is
/// then loaded before all blocks. [chunks; guess]
inline constexpr int64_t maxUnrolledChunks = 16;
/// Numbers of the walked dimension of a block on a processor: a block of a few rows fits the first
/// level of the caches, and what it is computed from the second one. [numbers; guess]
inline constexpr int64_t maxNumbersOfProcessor = 128;
/// Columns of a processor's tile: a block is computed again for each tile. [columns; guess]
inline constexpr int64_t maxColumnsOfProcessor = 512;

/// Numbers of a block by instructions on matrices, and if registers are few.
/// [numbers; model: ptxas, elements of 64 and 128 do not spill]
inline constexpr int64_t matrixNumbers = 64, fewMatrixNumbers = 32;
/// Elements of a row or column there. [elements; guess]
inline constexpr int64_t maxMatrixElements = 256;
/// Elements of a row there from which lines take registers. [elements; guess]
inline constexpr int64_t manyMatrixElements = 64;
/// Sums of an invocation there.
/// [sums; model: ptxas, elements of 64 and 128 do not spill]
inline constexpr int64_t maxMatrixSums = 128;
/// Columns of a tile there; a tile of fewer than the min is alone. [columns; guess]
inline constexpr int64_t minMatrixColumns = 32, maxMatrixColumns = 128;
/// Workgroups there that keep a device busy. [workgroups; guess]
inline constexpr int64_t manyMatrixWorkgroups = 128;
} // namespace blocks

/// Tiles of contractions on a processor.
namespace tiles {
/// Rows that make a copy of the columns worth its time. [rows; guess]
inline constexpr int64_t minRowsOfCopy = 48;
/// Products whose code stands one behind the other. [products; guess]
inline constexpr int64_t maxUnrolled = 9;
/// Products of all sums of a tile that stand one behind the other: more take longer to compile than
/// a loop around them takes to run.
/// [products; measured: LLVM 22, a step of ResNet-50 compiles in 2.9 s in place of 3.5]
inline constexpr int64_t maxUnrolledSums = 128;
/// Columns of a tile by those of the profile, if rows are few. [ratio; guess]
inline constexpr int64_t maxWidening = 4;
/// Elements of a copy that neighbour each other if it is transposed. [elements; guess]
inline constexpr int64_t transposedRun = 4;
/// Time to copy a vector, and to store one. [operations of a vector; guess]
inline constexpr double copyOperations = 1.5, storeOperations = 4;
/// Distance of vectors that caches keep only few of.
/// [bytes; measured: AMD EPYC, a product of 1024 with AVX-512 takes 4.4 ms in place of 5.9]
inline constexpr int64_t page = 4096;
/// Vectors so far apart that are too many for the caches. [products; guess]
inline constexpr int64_t minPages = 64;
/// Preference of a dimension along which a factor needs no copy. [rows that read it; guess]
inline constexpr int64_t rowsOfDirect = 1000;
} // namespace tiles

namespace scatters {
/// Invocations that share the rows, or the columns. [invocations; guess]
inline constexpr int64_t maxParts = 16;
/// Elements of a part: it fills a line of the cache, which has one writer then.
/// [elements; device: f32 in lines of 64 bytes]
inline constexpr int64_t minElements = 16;
/// Columns of a part: each invocation reads all names, so fewer gain nothing. [vectors; guess]
inline constexpr int64_t minVectors = 8;
} // namespace scatters

/// Sequences of steps, each of which needs the one before.
namespace sequences {
/// Operands that an invocation of a GPU loads at a time, of several steps. [loads; guess]
inline constexpr int64_t maxLoads = 32;
/// Steps whose operands are loaded at a time. [steps; guess]
inline constexpr int64_t maxSteps = 8;
/// Turns of loading from which several steps are loaded at a time. [turns; guess]
inline constexpr int64_t minTurns = 2;
/// Points, or vectors of them, that an invocation of a processor walks in turns. [points; guess]
inline constexpr int64_t maxPoints = 4;
/// Units that are left for other invocations, if they are points and if they are vectors.
/// [units; guess]
inline constexpr int64_t minPointUnits = 64, minVectorUnits = 8;
} // namespace sequences

/// Sums of the terms that select a row.
namespace selected_rows {
/// Terms whose conditions an invocation loads at a time. [terms; guess]
inline constexpr int64_t termsAtOnce = 4;
/// Terms whose conditions a lane of a subgroup loads at a time.
/// [terms; model: H100, an embedding of 49,152 x 576 with 4,096 tokens takes 377 us in place of
/// 3828]
inline constexpr int64_t termsOfLane = 4;
/// Units of a row whose sums a lane keeps in registers. [units; guess]
inline constexpr int64_t maxUnitsOfLane = 8;
} // namespace selected_rows

/// Blocks of long sums of floats, each added up from zero, so that fewer digits are lost. Bits
/// depend on these numbers. `measured` is the error: docs/architecture.md, "Long sums".
namespace sums {
/// Terms that a sum of a row takes one after the other. [terms; measured: CPU]
inline constexpr int64_t maxTerms = 1024;
/// Terms of a block if there are more. [terms; measured: CPU]
inline constexpr int64_t blockTerms = 512;
/// Blocks that are added one after the other. [blocks; measured: CPU]
inline constexpr int64_t maxBlocks = 64;
/// Products that the sum of a contraction takes one after the other: each costs less than an
/// element of a row, so blocks cost more. [products; measured: CPU]
inline constexpr int64_t maxProducts = 4096;
/// Rows of a part of a column. [rows; guess]
inline constexpr int64_t maxRows = 4096;
/// Trips by which a loop is unrolled that a device would leave out: more leave no room for blocks,
/// which repeat the code; if terms have functions, fewer. [trips; guess]
inline constexpr int64_t maxUnrolled = 32, maxUnrolledFunctions = 8;
} // namespace sums

/// Columns that are reduced in parts.
namespace column_parts {
/// Rows of a part: fewer would cost more than they save, unless most units were idle.
/// [rows; guess]
inline constexpr int64_t enoughRows = 8;
/// Rows of a part if most units are idle: LLVM makes code of shorter loops that no verifier
/// follows. [rows; proof]
inline constexpr int64_t minRows = 4;
/// Rows of a part that is looked for if rows are copied ahead. [rows; guess]
inline constexpr int64_t maxCopiedRows = 4096;
/// Columns of a unit that come from memory while a row's reductions wait for each other.
/// [columns; model: H100, LayerNorm's VJP of 4096 x 1024 takes 22 us in place of 30]
inline constexpr int64_t columnsOfReductions = 2048;
/// Rows that take as long as storing a part and reading it again. [rows; model: likewise]
inline constexpr int64_t rowsOfPart = 2;
} // namespace column_parts

/// Contractions that are summed in parts.
namespace contraction_parts {
/// Sums that a workgroup owns.
/// [sums; model: H100, a step of GPT-2 with 128 tokens takes 3.5 ms in place of 7.9]
inline constexpr int64_t tile = 16384;
/// Products of a part: fewer would not outweigh storing and adding up their sum.
/// [products; guess]
inline constexpr int64_t minProducts = 64;
/// The products of a part are a multiple of this. [products; guess]
inline constexpr int64_t step = 16;
/// Products of a sum that is cut. [products; guess]
inline constexpr int64_t longSum = 256;

// Parts of f32 that give all units as many tiles, if tiles are more than units. On an H200 a
// product of 4096 x 32768 x 768 took 4395 us in place of 6939, larger slabs included.
/// Sums that a unit owns. [sums; guess: the largest tile in slabs of 256 invocations]
inline constexpr int64_t evenTile = 32768;
/// Products of a part. [products; guess]
inline constexpr int64_t minEvenProducts = 512;
/// Parts. [parts; guess]
inline constexpr int64_t maxEvenParts = 8;
/// Time of the parts by that of the whole from which there are parts. [share; guess]
inline constexpr double evenGain = 0.92;
/// Products for which a unit takes as long as for writing and reading a sum again.
/// [products; guess]
inline constexpr double productsOfSum = 40;

// Parts of elements of 16 bits, which instructions on matrices add: times are bytes that memory
// moves meanwhile.
/// A product after the one before. [bytes; model: H100 and A100]
inline constexpr int64_t bytesOfProduct = 15000;
/// A second kernel. [bytes; model: H100 and A100]
inline constexpr int64_t bytesOfKernel = 5000000;
} // namespace contraction_parts

} // namespace weir::tuning

#endif // WEIR_LIB_KERNELS_TUNING_H
