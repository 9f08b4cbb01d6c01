//===- GraphGate.cpp - The contents of the graph and gradient levels ------===//
//
// The input comes from other people's tools: reports everything that no later pass
// could handle, all at once.
//
//===----------------------------------------------------------------------===//

#include "passes/Gates.h"

#include "dialects/Autodiff/Autodiff.h"
#include "dialects/Matrix/Matrix.h"
#include "dialects/Norm/Norm.h"
#include "dialects/Random/Random.h"
#include "dialects/Schedule/Schedule.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "weir/Autodiff/Sharding.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace weir;

namespace {
class GraphGate {
public:
  explicit GraphGate(StringRef level) : level(level) {}

  void verifyModule(ModuleOp module);
  LogicalResult result = success();

private:
  StringRef level;

  InFlightDiagnostic fail(Operation *op) {
    result = failure();
    return op->emitOpError();
  }
  void verifyFunction(func::FuncOp function);
  void verifyNames(func::FuncOp function);
  void verifyInitial(func::FuncOp function, unsigned index, Attribute value);
  void verifyMemory(func::FuncOp function, unsigned index, Attribute value);
  void verifySharding(func::FuncOp function, unsigned index, Attribute value);
  void verifyArgumentAttributes(func::FuncOp function, unsigned index);
  void verifyResultAttributes(func::FuncOp function, unsigned index);
  /// Reports unless `type` is a tensor that later levels can store.
  void verifyTensor(Operation *op, Type type, const Twine &what);
  void verifyOp(Operation *op);
  void verifyGrid(shard::GridOp grid);
  void verifyCollective(Operation *op);
  void verifyRanks(func::FuncOp function);
  void verifyBodyOp(Operation *op);
};
} // namespace

static bool isElementType(Type type) {
  return type.isF32() || type.isF64() || type.isF16() || type.isBF16() ||
         type.isSignlessInteger(1) || type.isSignlessInteger(8) || type.isSignlessInteger(16) ||
         type.isSignlessInteger(32) || type.isSignlessInteger(64);
}

void GraphGate::verifyTensor(Operation *op, Type type, const Twine &what) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !tensor.hasStaticShape())
    fail(op) << what << " is " << type << ", not a ranked tensor of static shape"
             << (isa<TensorType>(type)
                     ? "; export with fixed sizes, as one function for each size that is needed"
                 : isElementType(type) ? "; a scalar is a tensor of rank 0"
                                       : "");
  else if (!isElementType(tensor.getElementType()))
    fail(op) << what << " is " << type
             << "; elements are f32, f64, f16, bf16, i64, i32, i16, i8 or "
                "i1";
  else if (tensor.getEncoding())
    fail(op) << what << " is " << type << "; tensors have no encoding here";
  else if (!schedule::getByteSize(tensor))
    fail(op) << what << " is " << type << ", which is larger than 2^63 bytes";
}

/// The names of arguments or results.
template <typename GetAttr>
static SmallVector<std::string> getNames(unsigned number, StringRef fallback, GetAttr getAttr) {
  SmallVector<std::string> names;
  for (unsigned index = 0; index < number; ++index) {
    auto name = dyn_cast_or_null<StringAttr>(getAttr(index));
    names.push_back(name ? name.str() : (fallback + Twine(index)).str());
  }
  return names;
}

void GraphGate::verifyNames(func::FuncOp function) {
  auto verify = [&](unsigned number, StringRef what, StringRef fallback, auto getAttr) {
    for (unsigned index = 0; index < number; ++index)
      if (Attribute name = getAttr(index); name && !isa<StringAttr>(name))
        fail(function) << what << " " << index << " has a " << schedule::nameAttrName
                       << " that is no string: " << name;
    llvm::StringMap<unsigned> seen;
    for (auto [index, name] : llvm::enumerate(getNames(number, fallback, getAttr))) {
      auto [first, isNew] = seen.try_emplace(name, index);
      if (!isNew)
        fail(function) << what << "s " << first->second << " and " << index << " are both named '"
                       << name << "'";
    }
  };
  verify(function.getNumArguments(), "argument", "arg",
         [&](unsigned index) { return function.getArgAttr(index, schedule::nameAttrName); });
  verify(function.getNumResults(), "result", "result",
         [&](unsigned index) { return function.getResultAttr(index, schedule::nameAttrName); });
}

/// Verifies what an argument holds before the first step: a number, or the value of another.
void GraphGate::verifyInitial(func::FuncOp function, unsigned index, Attribute value) {
  auto kind = function.getArgAttrOfType<StringAttr>(index, schedule::kindAttrName);
  auto isFloat = [&](unsigned number) {
    return isa<FloatType>(getElementTypeOrSelf(function.getArgumentTypes()[number]));
  };
  if (!kind || kind != "state" || !isFloat(index))
    fail(function) << "argument " << index << " has " << schedule::initialAttrName
                   << ", which only floats of kind state have";
  auto name = dyn_cast<StringAttr>(value);
  if (!name && !isa<FloatAttr>(value))
    fail(function) << "argument " << index << " has " << schedule::initialAttrName << " = " << value
                   << "; it is a float, or the name of another argument";
  if (!name)
    return;
  auto getShape = [&](unsigned number) {
    auto tensor = dyn_cast<RankedTensorType>(function.getArgumentTypes()[number]);
    return tensor ? tensor.getShape() : ArrayRef<int64_t>();
  };
  SmallVector<std::string> names =
      getNames(function.getNumArguments(), "arg", [&](unsigned number) {
        return function.getArgAttr(number, schedule::nameAttrName);
      });
  const auto *other = llvm::find(names, name.str());
  unsigned number = other - names.begin();
  if (other == names.end() || getShape(number) != getShape(index) || !isFloat(number) ||
      function.getArgAttr(number, schedule::initialAttrName))
    fail(function) << "argument " << index << " has " << schedule::initialAttrName << " = " << value
                   << "; that names no other argument of floats, of its shape and without one";
}

/// Verifies where the buffer of an argument should lie.
void GraphGate::verifyMemory(func::FuncOp function, unsigned index, Attribute value) {
  auto memory = dyn_cast<StringAttr>(value);
  if (!memory || !llvm::is_contained({"device", "host"}, memory))
    fail(function) << "argument " << index << " has " << schedule::memoryAttrName << " = " << value
                   << "; memories are device and host";
  auto kind = function.getArgAttrOfType<StringAttr>(index, schedule::kindAttrName);
  bool isState = kind && kind == "state" && function.getArgAttr(index, schedule::donateAttrName);
  if (memory && memory == "host" && !isState)
    fail(function) << "argument " << index << " has " << schedule::memoryAttrName
                   << " = \"host\", which only donated arguments of kind state have";
}

/// Returns the number of axes of the module's grid, 0 if there is none.
static int64_t countAxes(func::FuncOp function) {
  auto grids = function->getParentOfType<ModuleOp>().getOps<shard::GridOp>();
  return grids.empty() ? 0 : (*grids.begin()).getShape().size();
}

/// Whether `attribute` is unit, or lists axes of the module's grid.
static bool isSharding(func::FuncOp function, Attribute attribute) {
  auto axes = dyn_cast<DenseI64ArrayAttr>(attribute);
  if (!axes)
    return isa<UnitAttr>(attribute);
  int64_t count = countAxes(function);
  return !axes.empty() &&
         llvm::all_of(axes.asArrayRef(), [&](int64_t axis) { return axis >= 0 && axis < count; });
}

/// Verifies how an argument differs by rank.
void GraphGate::verifySharding(func::FuncOp function, unsigned index, Attribute value) {
  auto unit = dyn_cast<StringAttr>(value);
  if (unit && !unit.empty() && countAxes(function) > 1)
    fail(function) << "argument " << index << " is of the unit " << unit
                   << ", which is gathered along the one axis of a grid, and the grid has two; "
                   << "write axes in its place, as array<i64: 0>";
  else if (unit ? unit.empty() : !isSharding(function, value))
    fail(function) << "argument " << index << " has " << shardedAttrName << " = " << value
                   << "; write it alone, or with axes of the grid, as array<i64: 0>, or with the "
                   << "name of a unit, as \"blocks.0\"";
}

void GraphGate::verifyArgumentAttributes(func::FuncOp function, unsigned index) {
  for (NamedAttribute attribute : function_interface_impl::getArgAttrs(function, index)) {
    StringRef name = attribute.getName();
    Attribute value = attribute.getValue();
    if (name == schedule::kindAttrName) {
      auto kind = dyn_cast<StringAttr>(value);
      if (!kind || !llvm::is_contained({"input", "target", "param", "state"}, kind))
        fail(function) << "argument " << index << " is of kind " << value
                       << "; kinds are input, target, param and state";
    } else if (name == shardedAttrName) {
      verifySharding(function, index, value);
    } else if (name == schedule::donateAttrName || name == autodiff::frozenAttrName) {
      if (!isa<UnitAttr>(value))
        fail(function) << "argument " << index << " has " << name << " = " << value
                       << "; it has no value: write " << name << " alone, or leave it out";
      auto kind = function.getArgAttrOfType<StringAttr>(index, schedule::kindAttrName);
      if (name == autodiff::frozenAttrName && kind && kind == "param")
        fail(function) << "argument " << index << " has " << name
                       << " and is of kind \"param\", of which gradients are wanted";
    } else if (name == schedule::initialAttrName) {
      verifyInitial(function, index, value);
    } else if (name == schedule::memoryAttrName) {
      verifyMemory(function, index, value);
    } else if (name.starts_with("weir.") && name != schedule::nameAttrName) {
      fail(function) << "argument " << index << " has the unknown attribute " << name
                     << "; arguments have " << schedule::nameAttrName << ", "
                     << schedule::kindAttrName << ", " << schedule::donateAttrName << ", "
                     << autodiff::frozenAttrName << ", " << shardedAttrName << ", "
                     << schedule::initialAttrName << " and " << schedule::memoryAttrName;
    }
  }
}

/// Whether `attribute` names ranges of a result's bytes: a name, the first byte, and their number.
static bool isParts(Attribute attribute, Type result) {
  auto parts = dyn_cast<ArrayAttr>(attribute);
  auto tensor = dyn_cast<RankedTensorType>(result);
  std::optional<int64_t> size = tensor ? schedule::getByteSize(tensor) : std::nullopt;
  return parts && size && llvm::all_of(parts, [&](Attribute each) {
           auto part = dyn_cast<DictionaryAttr>(each);
           auto begin = part ? part.getAs<IntegerAttr>("begin") : nullptr;
           auto bytes = part ? part.getAs<IntegerAttr>("bytes") : nullptr;
           return begin && bytes && part.getAs<StringAttr>("name") && part.size() == 3 &&
                  begin.getInt() >= 0 && bytes.getInt() > 0 && bytes.getInt() <= *size &&
                  begin.getInt() <= *size - bytes.getInt();
         });
}

void GraphGate::verifyResultAttributes(func::FuncOp function, unsigned index) {
  for (NamedAttribute attribute : function_interface_impl::getResultAttrs(function, index)) {
    StringRef name = attribute.getName();
    if (name == schedule::partsAttrName) {
      if (!isParts(attribute.getValue(), function.getResultTypes()[index]))
        fail(function) << "result " << index << " has " << name << " = " << attribute.getValue()
                       << "; it is an array of {name, begin, bytes}, ranges of the result's bytes";
    } else if (name == shardedAttrName) {
      if (!isSharding(function, attribute.getValue()))
        fail(function) << "result " << index << " has " << name << " = " << attribute.getValue()
                       << "; write it alone, or with axes of the grid, as array<i64: 0>";
    } else if (name.starts_with("weir.") && name != schedule::nameAttrName) {
      fail(function) << "result " << index << " has the attribute " << name << "; results have "
                     << schedule::nameAttrName << ", " << shardedAttrName << " and "
                     << schedule::partsAttrName;
    }
  }
}

void GraphGate::verifyFunction(func::FuncOp function) {
  for (auto [index, type] : llvm::enumerate(function.getArgumentTypes()))
    verifyTensor(function, type, "argument " + Twine(index));
  for (auto [index, type] : llvm::enumerate(function.getResultTypes()))
    verifyTensor(function, type, "result " + Twine(index));
  verifyNames(function);
  for (unsigned index = 0; index < function.getNumArguments(); ++index)
    verifyArgumentAttributes(function, index);
  for (unsigned index = 0; index < function.getNumResults(); ++index)
    verifyResultAttributes(function, index);
  if (function.isExternal()) {
    fail(function) << "has no body";
    return;
  }
  if (!function.getBody().hasOneBlock()) {
    fail(function) << "has " << llvm::range_size(function.getBody())
                   << " blocks; a graph is one block, without branches";
    return;
  }
  for (Operation &op : function.getBody().front())
    verifyOp(&op);
  verifyRanks(function);
}

/// Verifies what is known before differentiation of values that differ by rank.
void GraphGate::verifyRanks(func::FuncOp function) {
  if (level != "graph" || !function.getOps<autodiff::VjpOp>().empty())
    return;
  if (failed(verifyCollectives(function)) || failed(verifyShardedResults(function)))
    result = failure();
}

void GraphGate::verifyGrid(shard::GridOp grid) {
  bool isKnown = llvm::all_of(grid.getShape(), [](int64_t size) { return size >= 1; });
  if (grid.getShape().empty() || grid.getShape().size() > 2 || !isKnown)
    fail(grid) << "is no grid of one dimension or two, of a known number of ranks; write shape = 2 "
                  "or shape = 2x2";
  auto grids = grid->getParentOfType<ModuleOp>().getOps<shard::GridOp>();
  if (grid != *grids.begin())
    fail(grid) << "is the second grid; all collectives of a module are on one";
}

void GraphGate::verifyCollective(Operation *op) {
  verifyTensor(op, op->getResult(0).getType(), "result 0");
  if (!isa<func::FuncOp>(op->getParentOp()))
    fail(op) << "is in a loop; ranks exchange values between the ops of a function alone";
  auto axes = op->getAttrOfType<DenseI16ArrayAttr>("grid_axes");
  if (!axes || axes.size() != 1)
    fail(op) << "is not along one axis of the grid; write grid_axes = [0], or [1] for the second";
  auto reduction = op->getAttrOfType<shard::ReductionKindAttr>("reduction");
  if (reduction && reduction.getValue() != shard::ReductionKind::Sum)
    fail(op) << "is no sum; ranks add, and nothing else";
  Type from = getElementTypeOrSelf(op->getOperand(0)), to = getElementTypeOrSelf(op->getResult(0));
  if (from != to)
    fail(op) << "makes " << to << " of " << from << "; convert the elements before it";
  if (isa<shard::AllReduceOp, shard::ReduceScatterOp>(op) && from.isInteger(1))
    fail(op) << "adds i1; convert it to i32 before";
}

void GraphGate::verifyOp(Operation *op) {
  if (isa<func::ReturnOp, scf::YieldOp, scf::ConditionOp>(op))
    return;
  // Its types are those of a function that is judged itself.
  if (isa<autodiff::VjpOp>(op) && level == "graph")
    return;
  if (isa<autodiff::StopGradientOp, random::UniformOp>(op) && level == "graph") {
    verifyTensor(op, op->getResult(0).getType(), "result 0");
    return;
  }
  if (isCollective(op) && level == "graph") {
    verifyCollective(op);
    return;
  }
  if (isa<func::CallOp>(op)) {
    fail(op) << "is not supported at the " << level << " level; inline the callee";
    return;
  }
  if (isa<scf::IfOp>(op)) {
    fail(op) << "has no results, or some of unknown size; a choice at the " << level
             << " level is between tensors of static shape or scalars";
    return;
  }
  if (isa<scf::ForOp, scf::WhileOp>(op)) {
    for (Region &region : op->getRegions())
      for (Operation &inner : region.front())
        verifyOp(&inner);
    return;
  }
  bool isOwn = isa_and_present<matrix::MatrixDialect, norm::NormDialect>(op->getDialect());
  bool isScalar = isa_and_present<arith::ArithDialect, math::MathDialect>(op->getDialect());
  if (!isOwn && !isScalar &&
      !isa<linalg::LinalgOp, linalg::SoftmaxOp, tensor::EmptyOp, tensor::ExpandShapeOp,
           tensor::CollapseShapeOp, tensor::ConcatOp, tensor::ExtractOp, tensor::ExtractSliceOp,
           tensor::FromElementsOp, tensor::InsertOp, tensor::InsertSliceOp, tensor::PadOp,
           tensor::SplatOp>(op)) {
    fail(op) << "is not supported at the " << level
             << " level; it holds linalg, norm and matrix ops, random.uniform, autodiff.stop_gradient, "
                "arith, math, scf.for, scf.while, of shard: all_gather, all_reduce, all_slice and "
                "reduce_scatter, and of tensor: collapse_shape, concat, empty, "
                "expand_shape, extract, "
                "extract_slice, "
                "from_elements, insert, insert_slice, pad and splat";
    return;
  }
  for (auto [index, type] : llvm::enumerate(op->getResultTypes())) {
    bool mayBeScalar = isa<tensor::ExtractOp>(op) || isScalar;
    if (!(mayBeScalar && (isElementType(type) || type.isIndex())))
      verifyTensor(op, type, "result " + Twine(index));
  }
  if (isScalar && !isa<arith::ConstantOp>(op) && isa<RankedTensorType>(op->getResult(0).getType()))
    fail(op) << "is of tensors; elementwise computation of tensors is linalg's here: wrap it in a "
                "linalg.generic, or run mlir-opt --convert-elementwise-to-linalg";
  if (auto pad = dyn_cast<tensor::PadOp>(op)) {
    if (!getConstantIntValues(pad.getMixedLowPad()))
      fail(op) << "pads by a computed number; give low padding as constants";
    for (Operation &inner : pad.getRegion().front().without_terminator())
      verifyBodyOp(&inner);
  }
  if (auto slice = dyn_cast<OffsetSizeAndStrideOpInterface>(op);
      slice && llvm::any_of(slice.getStaticStrides(), [](int64_t stride) { return stride < 1; }))
    fail(op) << "has strides that are no constants above 0";
  auto destination = dyn_cast<DestinationStyleOpInterface>(op);
  if (destination && !destination.hasPureTensorSemantics())
    fail(op) << "works on buffers; the " << level << " level has tensors only";
  if (isa<linalg::SoftmaxOp>(op) && !isa<FloatType>(getElementTypeOrSelf(op->getOperand(0))))
    fail(op) << "is of " << op->getOperand(0).getType() << "; a softmax is of floats";
  if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op)) {
    for (Operation &inner : *linalgOp.getBlock())
      verifyBodyOp(&inner);
  }
}

void GraphGate::verifyBodyOp(Operation *op) {
  if (!isa<linalg::IndexOp, linalg::YieldOp, tensor::ExtractOp>(op) &&
      !isa_and_present<arith::ArithDialect, math::MathDialect>(op->getDialect())) {
    fail(op) << "is not supported inside a body; it holds arith and math ops, linalg.index, "
                "tensor.extract and linalg.yield";
    return;
  }
  if (isa<arith::ScalingExtFOp, arith::ScalingTruncFOp>(op)) {
    fail(op) << "is not supported; multiply by the scale";
    return;
  }
  for (Type type : op->getResultTypes())
    if (!isElementType(type) && !type.isIndex())
      fail(op) << "gives " << type
               << "; scalars are f32, f64, f16, bf16, i64, i32, i16, i8, "
                  "i1 or index";
}

void GraphGate::verifyModule(ModuleOp module) {
  for (Operation &op : *module.getBody()) {
    if (auto function = dyn_cast<func::FuncOp>(op))
      verifyFunction(function);
    else if (auto grid = dyn_cast<shard::GridOp>(op); grid && level == "graph")
      verifyGrid(grid);
    else
      fail(&op) << "does not belong at the " << level << " level, whose module holds functions";
  }
}

LogicalResult weir::verifyGraph(ModuleOp module, StringRef level) {
  GraphGate gate(level);
  gate.verifyModule(module);
  return gate.result;
}
