//===- Pieces.cpp - A training step in pieces -----------------------------===//
//
// F.grad gives the gradients that F.step computes, one behind the other in one buffer; F.update
// takes such a buffer and does what F.step does with its gradients. Between the two a caller may
// add the buffers of other processes, range by range.
//
//===----------------------------------------------------------------------===//

#include "Pieces.h"

#include "Entries.h"

#include "dialects/Schedule/Schedule.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace weir;
using namespace weir::autodiff;

static constexpr StringLiteral bufferName = "gradients";

//===----------------------------------------------------------------------===//
// The buffer
//===----------------------------------------------------------------------===//

/// The last parameter comes first, since its gradient is known first. Behind all others come those
/// that end within `alignment`: one kernel moves them there, the others are made in their place.
GradientLayout::GradientLayout(ArrayRef<RankedTensorType> types) {
  for (bool isMoved : {false, true})
    for (size_t parameter = types.size(); parameter-- > 0;) {
      int64_t elements = types[parameter].getNumElements();
      if (elements == 0 || (elements % alignment != 0) != isMoved)
        continue;
      parts.push_back({parameter, count, elements});
      count += getPadded(elements);
    }
}

SmallVector<RankedTensorType> weir::autodiff::getUpdatedTypes(func::FuncOp function,
                                                              ArrayRef<int64_t> trained) {
  auto getType = [&](int64_t index) {
    return cast<RankedTensorType>(function.getArgumentTypes()[index]);
  };
  Builder builder(function.getContext());
  bool isWide = getType(trained.front()).getElementType().isF64();
  Type element = isWide ? Type(builder.getF64Type()) : builder.getF32Type();
  return llvm::map_to_vector(trained, [&](int64_t index) { return getType(index).clone(element); });
}

/// Returns a tensor's elements in one dimension.
static Value flatten(OpBuilder &builder, Location loc, Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  auto flat = RankedTensorType::get(type.getNumElements(), type.getElementType());
  if (type.getRank() == 0)
    return tensor::ExpandShapeOp::create(builder, loc, flat, value,
                                         ArrayRef<ReassociationIndices>());
  ReassociationIndices all = llvm::to_vector(llvm::seq<int64_t>(0, type.getRank()));
  return type.getRank() == 1 ? value
                             : tensor::CollapseShapeOp::create(builder, loc, flat, value,
                                                               ArrayRef<ReassociationIndices>(all));
}

static Value pad(OpBuilder &builder, Location loc, Value flat, Value zero) {
  auto type = cast<RankedTensorType>(flat.getType());
  int64_t size = type.getDimSize(0), padded = GradientLayout::getPadded(size);
  OpFoldResult low = builder.getIndexAttr(0), high = builder.getIndexAttr(padded - size);
  return tensor::PadOp::create(builder, loc, type.clone({padded}), flat, low, high, zero);
}

static Value concatenate(OpBuilder &builder, Location loc, ArrayRef<Value> parts) {
  return parts.size() == 1 ? parts.front()
                           : tensor::ConcatOp::create(builder, loc, 0, parts).getResult();
}

/// Returns what `weir.parts` says of a layout.
static ArrayAttr describe(OpBuilder &builder, const GradientLayout &layout,
                          ArrayRef<Parameter> parameters, Type element) {
  int64_t bytes = element.getIntOrFloatBitWidth() / 8;
  return builder.getArrayAttr(llvm::map_to_vector(layout.parts, [&](auto &part) -> Attribute {
    return builder.getDictionaryAttr(
        {builder.getNamedAttr("begin", builder.getI64IntegerAttr(part.begin * bytes)),
         builder.getNamedAttr("bytes", builder.getI64IntegerAttr(part.count * bytes)),
         builder.getNamedAttr("name", builder.getStringAttr(parameters[part.parameter].name))});
  }));
}

void Step::gather(const GradientLayout &layout) {
  if (options.scalesLoss)
    addLossScale();
  Location loc = entry.getLoc();
  for (Parameter &parameter : parameters) {
    RankedTensorType type = getUpdatedType(parameter);
    parameter.gradient = convert(parameter.gradient, type);
    if (!options.accumulates)
      continue;
    parameter.accumulated = addParameterState(parameter, ".accumulated", type);
    parameter.gradient =
        compute({parameter.accumulated, parameter.gradient}, {}, 1, [](ArrayRef<Number> in) {
          return SmallVector<Number>{in[0] + in[1]};
        }).front();
    resetAccumulated(parameter);
  }
  Value zero = arith::ConstantOp::create(builder, loc, cast<TypedAttr>(getNumber(0)));
  SmallVector<Value> apart, moved;
  for (const GradientLayout::Part &part : layout.parts) {
    Value flat = flatten(builder, loc, parameters[part.parameter].gradient);
    if (part.count % GradientLayout::alignment == 0)
      apart.push_back(flat);
    else
      moved.push_back(pad(builder, loc, flat, zero));
  }
  if (!moved.empty())
    apart.push_back(concatenate(builder, loc, moved));
  Value whole = apart.empty() ? tensor::EmptyOp::create(builder, loc, 0, element)
                              : concatenate(builder, loc, apart);
  if (auto concat = whole.getDefiningOp<tensor::ConcatOp>(); concat && apart.size() > 1)
    concat->setAttr(schedule::apartAttrName, builder.getUnitAttr());

  Operation *terminator = entry.getBody().front().getTerminator();
  SmallVector<Value> results(terminator->getOperands().take_front(numOwnResults));
  results.push_back(whole);
  SmallVector<DictionaryAttr> attributes;
  for (unsigned index = 0; index < numOwnResults; ++index)
    attributes.push_back(entry.getResultAttrDict(index));
  attributes.push_back(builder.getDictionaryAttr(
      {builder.getNamedAttr(schedule::nameAttrName, builder.getStringAttr(bufferName)),
       builder.getNamedAttr(schedule::partsAttrName,
                            describe(builder, layout, parameters, element))}));
  terminator->setOperands(results);
  entry.setFunctionType(
      builder.getFunctionType(entry.getArgumentTypes(), ValueRange(results).getTypes()));
  entry.setAllResultAttrs(attributes);
  ++numOwnResults;
  replaceResults();
}

//===----------------------------------------------------------------------===//
// Updates
//===----------------------------------------------------------------------===//

/// Reads a tensor of `type` from elements [begin, ...) of a buffer. The reshape of a slice would be
/// a copy; a map is part of its readers.
static Value read(OpBuilder &builder, Location loc, Value buffer, int64_t begin,
                  RankedTensorType type) {
  if (type.getRank() == 1) {
    OpFoldResult offset = builder.getIndexAttr(begin),
                 size = builder.getIndexAttr(type.getDimSize(0)), stride = builder.getIndexAttr(1);
    return tensor::ExtractSliceOp::create(builder, loc, type, buffer, offset, size, stride);
  }
  AffineExpr place = builder.getAffineConstantExpr(begin);
  int64_t stride = 1;
  for (unsigned dim = type.getRank(); dim-- > 0; stride *= type.getDimSize(dim))
    place = builder.getAffineDimExpr(dim) * stride + place;
  AffineMap maps[] = {AffineMap::get(type.getRank(), 0, place),
                      builder.getMultiDimIdentityMap(type.getRank())};
  Value empty = tensor::EmptyOp::create(builder, loc, type.getShape(), type.getElementType());
  SmallVector<utils::IteratorType> loops(type.getRank(), utils::IteratorType::parallel);
  return linalg::GenericOp::create(builder, loc, type, buffer, empty, maps, loops,
                                   [](OpBuilder &body, Location loc, ValueRange values) {
                                     linalg::YieldOp::create(body, loc, values.front());
                                   })
      .getResult(0);
}

namespace {
/// The parameters that an entry updates, and the elements of the buffer that it takes.
struct Shard {
  SmallVector<GradientLayout::Part> parts;
  int64_t begin = 0, end = 0;
};
} // namespace

/// Cuts a buffer between parameters, where each shard ends next to its share of all elements.
static SmallVector<Shard> cut(const GradientLayout &layout, size_t number) {
  SmallVector<Shard> shards(number);
  size_t next = 0, count = layout.parts.size();
  for (auto [index, shard] : llvm::enumerate(shards)) {
    shard.begin = shard.end = next < count ? layout.parts[next].begin : layout.count;
    int64_t wanted = layout.count * int64_t(index + 1) / int64_t(number);
    size_t left = number - index - 1; // shards that need a parameter each
    while (next + left < count) {
      const GradientLayout::Part &part = layout.parts[next];
      int64_t end = part.begin + GradientLayout::getPadded(part.count);
      if (!shard.parts.empty() && left > 0 && end - wanted > wanted - shard.end)
        break;
      shard.parts.push_back(part);
      shard.end = end;
      ++next;
    }
  }
  return shards;
}

/// Creates a function of the parameters of a shard, and of their gradients in a buffer, which
/// returns the gradients one by one.
static func::FuncOp createReader(func::FuncOp function, ArrayRef<int64_t> trained,
                                 const Shard &shard, StringRef suffix) {
  OpBuilder builder(function.getContext());
  builder.setInsertionPointAfter(function);
  Location loc = function.getLoc();
  SmallVector<RankedTensorType> updated = getUpdatedTypes(function, trained);
  // Parameters come in their order in F, as in F.step: by that the norm of all is summed.
  SmallVector<GradientLayout::Part> parts(shard.parts);
  llvm::sort(parts, [](auto &a, auto &b) { return a.parameter < b.parameter; });
  SmallVector<Type> types, gradientTypes;
  for (const GradientLayout::Part &part : parts) {
    types.push_back(function.getArgumentTypes()[trained[part.parameter]]);
    gradientTypes.push_back(updated[part.parameter]);
  }
  types.push_back(RankedTensorType::get(shard.end - shard.begin, updated.front().getElementType()));
  auto entry = func::FuncOp::create(builder, loc, (function.getName() + suffix).str(),
                                    builder.getFunctionType(types, gradientTypes));
  Block *body = entry.addEntryBlock();
  builder.setInsertionPointToEnd(body);
  SmallVector<Value> gradients;
  for (auto [index, part] : llvm::enumerate(parts)) {
    for (StringRef attribute : {schedule::nameAttrName, schedule::kindAttrName})
      if (Attribute value = function.getArgAttr(trained[part.parameter], attribute))
        entry.setArgAttr(index, attribute, value);
    gradients.push_back(read(builder, loc, body->getArguments().back(), part.begin - shard.begin,
                             updated[part.parameter]));
  }
  entry.setArgAttr(parts.size(), schedule::nameAttrName, builder.getStringAttr(bufferName));
  entry.setArgAttr(parts.size(), schedule::kindAttrName, builder.getStringAttr("input"));
  func::ReturnOp::create(builder, loc, gradients);
  return entry;
}

LogicalResult weir::autodiff::addUpdateEntries(func::FuncOp function, ArrayRef<int64_t> trained,
                                               const UpdateRule &rule, const GradientLayout &layout,
                                               const TrainOptions &options,
                                               SmallVectorImpl<func::FuncOp> &entries) {
  if (layout.parts.empty())
    return function.emitOpError("has no parameter with elements to update");
  if (size_t(options.shards) > layout.parts.size())
    return function.emitOpError() << "has " << layout.parts.size()
                                  << " parameters to update, too few for " << options.shards
                                  << " shards; ask for fewer";
  auto add = [&](const Shard &shard, const Twine &suffix, StringRef prefix) -> LogicalResult {
    std::string name = (function.getName() + suffix).str();
    if (SymbolTable::lookupNearestSymbolFrom(function,
                                             StringAttr::get(function.getContext(), name)))
      return function.emitOpError()
             << "cannot have entry '" << name << "': that function is there already";
    func::FuncOp entry = createReader(function, trained, shard, suffix.str());
    entries.push_back(entry);
    Step step(entry, 0, llvm::to_vector(llvm::seq<int64_t>(0, shard.parts.size())), options);
    return success(succeeded(step.updateBySums(rule, prefix)) &&
                   succeeded(checkNames(function, entry)));
  };
  if (failed(add(cut(layout, 1).front(), ".update", "")))
    return failure();
  if (options.shards > 1)
    for (auto [index, shard] : llvm::enumerate(cut(layout, options.shards)))
      if (failed(add(shard, ".update." + Twine(index), "shard" + std::to_string(index) + ".")))
        return failure();
  return success();
}
