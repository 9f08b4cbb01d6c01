//===- Schedule.h - The schedule dialect ------------------------*- C++ -*-===//

#ifndef WEIR_DIALECTS_SCHEDULE_SCHEDULE_H
#define WEIR_DIALECTS_SCHEDULE_SCHEDULE_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/Schedule/ScheduleDialect.h.inc"
#include "dialects/Schedule/ScheduleEnums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/Schedule/ScheduleAttrs.h.inc"
#include "dialects/Schedule/ScheduleInterfaces.h.inc"

namespace weir::schedule {
/// The fields of `#schedule.hazard`.
struct HazardFields {
  HazardKind kind = HazardKind::raw;
  int64_t from = 0, fromOperand = 0, to = 0, toOperand = 0;

  void append(llvm::SmallVectorImpl<int64_t> &numbers) const {
    numbers.append({int64_t(kind), from, fromOperand, to, toOperand});
  }
  HazardAttr getAttr(mlir::MLIRContext *context) const {
    return HazardAttr::get(context, kind, from, fromOperand, to, toOperand);
  }
};
} // namespace weir::schedule

#define GET_OP_CLASSES
#include "dialects/Schedule/ScheduleOps.h.inc"

namespace weir::schedule {

/// Names of discardable attributes that the levels from `kernels` on carry.
inline constexpr llvm::StringLiteral profileAttrName = "weir.profile"; // module
inline constexpr llvm::StringLiteral entryAttrName = "weir.entry";     // func, unit
inline constexpr llvm::StringLiteral nameAttrName = "weir.name";       // argument, result
inline constexpr llvm::StringLiteral kindAttrName = "weir.kind";       // argument
inline constexpr llvm::StringLiteral donateAttrName = "weir.donate";   // argument
inline constexpr llvm::StringLiteral initialAttrName =
    "weir.initial"; // argument: the name of another one, or a number
inline constexpr llvm::StringLiteral memoryAttrName =
    "weir.memory"; // argument: where its buffer should lie, "host" or "device"
inline constexpr llvm::StringLiteral dimsAttrName = "weir.dims";     // state of an update rule
inline constexpr llvm::StringLiteral resultAttrName = "weir.result"; // out-argument, unit
inline constexpr llvm::StringLiteral shapeAttrName = "weir.shape";   // flat argument: tensor type
inline constexpr llvm::StringLiteral noFuseAttrName =
    "weir.no_fuse"; // tensor op: gets a kernel of its own, unit
inline constexpr llvm::StringLiteral scatterAttrName =
    "weir.scatter"; // reduction of the updates that name a row: takes the bytes of its init, unit
inline constexpr llvm::StringLiteral apartAttrName =
    "weir.apart"; // tensor.concat: each operand is made in its place, by a kernel of its own, unit
/// Of a result: named ranges of its bytes, of which the plan says when they are final. A dictionary
/// each, of `name`, `begin` and `bytes`.
inline constexpr llvm::StringLiteral partsAttrName = "weir.parts";
inline constexpr llvm::StringLiteral inBlocksAttrName =
    "weir.in_blocks"; // contraction: computed a block at a time where it is read; number of its
                      // reader among those of equal contractions
inline constexpr llvm::StringLiteral donatedAttrName =
    "weir.donated"; // result: the argument it lies in
inline constexpr llvm::StringLiteral permissionsAttrName = "weir.permissions"; // dispatch
inline constexpr llvm::StringLiteral refusalAttrName = "weir.refusal";         // donated argument
inline constexpr llvm::StringLiteral valueNamesAttrName =
    "weir.value_names"; // entry: of arguments, then values in between, by number; "": none
inline constexpr llvm::StringLiteral valueBytesAttrName = "weir.value_bytes"; // entry: by number
inline constexpr llvm::StringLiteral inPlaceAttrName =
    "weir.in_place"; // gpu.binary: pairs (source, target)
inline constexpr llvm::StringLiteral slotAttrName = "weir.slot";   // view of the arena
inline constexpr llvm::StringLiteral arenaAttrName = "weir.arena"; // memref.alloc, unit
inline constexpr llvm::StringLiteral pinnedBytesAttrName = "weir.pinned_bytes"; // entry
inline constexpr llvm::StringLiteral workgroupAttrName = "weir.workgroup"; // gpu.binary: 3 sizes
/// Of a gpu.binary: bytes of workgroup memory that its launch adds; absent for none.
inline constexpr llvm::StringLiteral launchMemoryAttrName = "weir.launch_memory";
/// Of a gpu.binary: the tensor maps that are parameters behind its operands; absent for none. A
/// dictionary each, of `operand` (a number), `type`, `shape` and `box`.
inline constexpr llvm::StringLiteral tensorMapsAttrName = "weir.tensor_maps";
inline constexpr llvm::StringLiteral operandsAttrName = "weir.operands"; // gpu.binary
inline constexpr llvm::StringLiteral checksAttrName = "weir.checks";     // func: of its status
inline constexpr llvm::StringLiteral planAttrName = "weir.plan";         // entry: JSON
inline constexpr llvm::StringLiteral manifestAttrName = "weir.manifest"; // module: JSON
inline constexpr llvm::StringLiteral scalesAttrName =
    "weir.scales"; // arith.mulf of a number near 1 by a power of two, in two products
inline constexpr llvm::StringLiteral effectAttrName = "schedule.effect"; // gpu.func argument

/// Returns the bytes that a memref or ranked tensor of static shape spans:
/// elements times element bytes, where a vector element counts whole and `i1`
/// is one byte (it is stored so).
///
/// Errors: std::nullopt when a dimension is dynamic, the layout is not the
///         identity, the element is no integer, float, index (8 bytes) or
///         vector of those, or the product exceeds 2^63 - 1.
std::optional<int64_t> getByteSize(mlir::ShapedType type);

/// Returns the name of an element type in safetensors; empty if it has none.
llvm::StringRef getDType(mlir::Type element);
/// Returns the bytes of one element. Errors: std::nullopt, as for `getByteSize`.
std::optional<int64_t> getElementBytes(mlir::Type element);

} // namespace weir::schedule

#endif // WEIR_DIALECTS_SCHEDULE_SCHEDULE_H
