//===- Autodiff.cpp - The autodiff dialect -----------------------------------------===//

#include "dialects/Autodiff/Autodiff.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace weir::autodiff;

#include "dialects/Autodiff/AutodiffDialect.cpp.inc"
#include "dialects/Autodiff/AutodiffEnums.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/Autodiff/AutodiffOps.cpp.inc"

void AutodiffDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "dialects/Autodiff/AutodiffOps.cpp.inc"
      >();
}

static bool isFloatTensor(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && isa<FloatType>(tensor.getElementType());
}

LogicalResult AutodiffDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  auto function = dyn_cast<func::FuncOp>(op);
  auto numbers = dyn_cast<DenseI64ArrayAttr>(attribute.getValue());
  if (attribute.getName() != splitAttrName || !function || !numbers)
    return op->emitError() << attribute.getName()
                           << " is not an attribute of the autodiff dialect; it "
                           << "has " << splitAttrName << " = array<i64: arguments, results>, of "
                           << "functions";
  ArrayRef<Type> arguments = function.getArgumentTypes(), results = function.getResultTypes();
  if (numbers.size() != 2 || numbers[0] < 0 || numbers[0] > int64_t(arguments.size()) ||
      numbers[1] < 0 || numbers[1] > int64_t(results.size())) // C1
    return function.emitOpError() << splitAttrName << " is " << numbers << "; it is two numbers, "
                                  << "of the " << arguments.size() << " arguments and "
                                  << results.size() << " results";
  SmallVector<Type> floats;
  for (int64_t index = 0; index < numbers[0]; ++index)
    if (isFloatTensor(arguments[index]) && !function.getArgAttr(index, frozenAttrName))
      floats.push_back(arguments[index]);
  ArrayRef<Type> gradients = results.drop_front(numbers[1]);
  if (gradients != ArrayRef<Type>(floats)) // C2
    return function.emitOpError() << "has " << gradients.size()
                                  << " gradients, which aren't of the "
                                  << "types of its " << floats.size() << " float arguments";
  return success();
}

/// Checks that `numbers` rise, each that of a float tensor among `types`.
static LogicalResult verifyNumbers(VjpOp op, StringRef name, ArrayRef<int64_t> numbers,
                                   TypeRange types, StringRef what) {
  int64_t last = -1;
  for (int64_t number : numbers) {
    if (number <= last)
      return op.emitOpError() << name << " numbers do not rise: " << number << " follows " << last;
    if (number >= int64_t(types.size()))
      return op.emitOpError() << name << " names " << what << " " << number << ", the callee has "
                              << types.size();
    if (!isFloatTensor(types[number]))
      return op.emitOpError() << name << " names " << what << " " << number << " of type "
                              << types[number] << "; only float tensors have gradients";
    last = number;
  }
  return success();
}

static LogicalResult verifyTypes(VjpOp op, StringRef what, TypeRange found, TypeRange expected) {
  if (found.size() != expected.size())
    return op.emitOpError() << "has " << found.size() << " " << what << "s, not "
                            << expected.size();
  for (auto [index, type, wanted] : llvm::enumerate(found, expected))
    if (type != wanted)
      return op.emitOpError() << what << " " << index << " is " << type << ", not " << wanted;
  return success();
}

LogicalResult VjpOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto callee = symbols.lookupNearestSymbolFrom<func::FuncOp>(*this, getCalleeAttr());
  if (!callee) // C1
    return emitOpError() << "names " << getCalleeAttr()
                         << ", which is not a function of this module";
  if (callee.isExternal() || !callee.getBody().hasOneBlock())
    return emitOpError() << "names " << getCalleeAttr() << ", which has no body of one block";
  SmallVector<Type> cotangents, results(callee.getResultTypes());
  if (failed(verifyTypes(*this, "argument", getArguments().getTypes(),
                         callee.getArgumentTypes())) || // C2
      failed(
          verifyNumbers(*this, "seeded", getSeeded(), callee.getResultTypes(), "result")) || // C3
      failed(verifyNumbers(*this, "wanted", getWanted(), callee.getArgumentTypes(),
                           "argument"))) // C4
    return failure();
  for (int64_t result : getSeeded())
    cotangents.push_back(callee.getResultTypes()[result]);
  for (int64_t argument : getWanted())
    results.push_back(callee.getArgumentTypes()[argument]);
  if (failed(verifyTypes(*this, "cotangent", getCotangents().getTypes(), cotangents))) // C3
    return failure();
  return verifyTypes(*this, "result", getResultTypes(), results); // C5
}
