//===- Widen.cpp - Every float becomes f64 --------------------------------===//

#include "Widen.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectResourceBlobManager.h"

using namespace mlir;

static Type widenType(Type type) {
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    return RankedTensorType::get(tensor.getShape(), widenType(tensor.getElementType()));
  return isa<FloatType>(type) ? Float64Type::get(type.getContext()) : type;
}

static double widenValue(APFloat value) {
  bool losesInfo;
  value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &losesInfo);
  return value.convertToDouble();
}

static Attribute widenAttribute(Attribute attribute) {
  if (auto value = dyn_cast<FloatAttr>(attribute))
    return FloatAttr::get(Float64Type::get(attribute.getContext()), widenValue(value.getValue()));
  auto elements = dyn_cast<ElementsAttr>(attribute);
  if (!elements || !isa<FloatType>(elements.getElementType()))
    return attribute;
  auto type = cast<RankedTensorType>(widenType(elements.getType()));
  if (auto dense = dyn_cast<DenseElementsAttr>(attribute)) {
    if (dense.isSplat())
      return DenseElementsAttr::get(type, widenValue(dense.getSplatValue<APFloat>()));
    SmallVector<double> values;
    for (const APFloat &value : dense.getValues<APFloat>())
      values.push_back(widenValue(value));
    return DenseElementsAttr::get(type, ArrayRef<double>(values));
  }
  if (auto resource = dyn_cast<DenseResourceElementsAttr>(attribute)) {
    AsmResourceBlob *blob = resource.getRawHandle().getBlob();
    Type element = elements.getElementType();
    if (!blob)
      return attribute;
    SmallVector<double> values;
    const llvm::fltSemantics &semantics = cast<FloatType>(element).getFloatSemantics();
    if (element.isF32())
      llvm::append_range(values, blob->getDataAs<float>());
    else if (element.isF64())
      llvm::append_range(values, blob->getDataAs<double>());
    else if (element.isF16() || element.isBF16())
      for (uint16_t bits : blob->getDataAs<uint16_t>())
        values.push_back(widenValue(APFloat(semantics, APInt(16, bits))));
    else
      return attribute;
    return DenseElementsAttr::get(type, ArrayRef<double>(values));
  }
  return attribute;
}

LogicalResult weir::widenToFloat64(func::FuncOp function) {
  bool allWidened = true;
  SmallVector<Operation *> casts;
  function.walk([&](Operation *op) {
    if (isa<arith::BitcastOp>(op) && (isa<FloatType>(getElementTypeOrSelf(op->getOperand(0))) ||
                                      isa<FloatType>(getElementTypeOrSelf(op->getResult(0))))) {
      op->emitError("a bitcast of a float has no f64 counterpart");
      allWidened = false;
    }
    if (isa<arith::ExtFOp, arith::TruncFOp>(op))
      casts.push_back(op);
    for (Value result : op->getResults())
      result.setType(widenType(result.getType()));
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (BlockArgument argument : block.getArguments())
          argument.setType(widenType(argument.getType()));
    if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
      auto value = cast<TypedAttr>(widenAttribute(constant.getValue()));
      constant.setValueAttr(value);
      if (value.getType() != constant.getType()) {
        constant.emitError("a constant of this kind has no f64 counterpart; use dense or "
                           "dense_resource of f64, f32, f16 or bf16");
        allWidened = false;
      }
    }
  });
  for (Operation *cast : casts) {
    cast->getResult(0).replaceAllUsesWith(cast->getOperand(0));
    cast->erase();
  }
  auto type = function.getFunctionType();
  SmallVector<Type> inputs, results;
  for (Type input : type.getInputs())
    inputs.push_back(widenType(input));
  for (Type result : type.getResults())
    results.push_back(widenType(result));
  function.setType(FunctionType::get(function.getContext(), inputs, results));
  return success(allWidened);
}
