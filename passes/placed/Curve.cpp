//===- Curve.cpp - The range of choices between bytes and work ------------===//

#include "passes/placed/Curve.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace weir;

static constexpr llvm::StringLiteral curveAttrName = "weir.curve";
static constexpr llvm::StringLiteral workName = "work", kneeName = "knee";

/// The numbers of a point, by the names that they have in its dictionary.
static constexpr std::pair<llvm::StringLiteral, int64_t CurvePoint::*> numbers[] = {
    {"bytes", &CurvePoint::bytes},       {"live", &CurvePoint::live},
    {"bound", &CurvePoint::bound},       {"dispatches", &CurvePoint::commands},
    {"barriers", &CurvePoint::barriers},
};

void weir::setCurve(func::FuncOp function, const std::vector<CurvePoint> &curve) {
  Builder builder(function.getContext());
  SmallVector<Attribute> points;
  for (const CurvePoint &point : curve) {
    SmallVector<NamedAttribute> members;
    for (auto [name, member] : numbers)
      members.push_back(builder.getNamedAttr(name, builder.getI64IntegerAttr(point.*member)));
    members.push_back(builder.getNamedAttr(workName, builder.getF64FloatAttr(point.work)));
    if (point.isKnee)
      members.push_back(builder.getNamedAttr(kneeName, builder.getUnitAttr()));
    points.push_back(builder.getDictionaryAttr(members));
  }
  function->setAttr(curveAttrName, builder.getArrayAttr(points));
}

std::vector<CurvePoint> weir::takeCurve(func::FuncOp function) {
  std::vector<CurvePoint> curve;
  auto points = dyn_cast_or_null<ArrayAttr>(function->removeAttr(curveAttrName));
  if (!points)
    return curve;
  for (auto members : points.getAsRange<DictionaryAttr>()) {
    CurvePoint &point = curve.emplace_back();
    for (auto [name, member] : numbers)
      point.*member = members.getAs<IntegerAttr>(name).getInt();
    point.work = members.getAs<FloatAttr>(workName).getValueAsDouble();
    point.isKnee = members.contains(kneeName);
  }
  return curve;
}
