//===- Inline.cpp - Kernels' bodies in place of the kernels ---------------===//

#include "weir/Kernels/Inline.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"
#include "weir/Kernels/Emitter.h"

using namespace mlir;
using namespace weir;

/// Returns the values that kernels make and that are no results of the function: first
/// concatenations, the outer ones first, then other tensors with bytes of their own, then
/// the next values of arguments that are inserted into, argument by argument.
static SmallVector<Value> findMade(func::FuncOp function) {
  llvm::DenseSet<Value> returned;
  for (Value value : function.getBody().front().getTerminator()->getOperands())
    returned.insert_range(ArrayRef<Value>{stripReshapes(value), getOwner(value)});
  SmallVector<Value> values;
  for (Operation &op : llvm::reverse(function.getBody().front()))
    if (isa<tensor::ConcatOp>(op) && !returned.contains(op.getResult(0)) &&
        !getWhole(op.getResult(0)))
      values.push_back(op.getResult(0));
  DenseMap<Value, unsigned> places; // in `values`, of tensors that are made slice by slice
  SmallVector<SmallVector<Value>> inserted(function.getNumArguments());
  for (auto kernel : function.getOps<schedule::KernelOp>())
    for (Value result : kernel.getResults()) {
      Value owner = getOwner(result);
      if (auto argument = dyn_cast<BlockArgument>(owner)) {
        if (!returned.contains(result))
          inserted[argument.getArgNumber()].push_back(result);
      } else if (auto place = places.find(owner); place != places.end()) {
        // The last kernel that writes a slice completes the tensor.
        values[place->second] = result;
      } else if (!returned.contains(owner) && !getWhole(owner)) {
        places[owner] = values.size();
        values.push_back(result);
      }
    }
  for (const SmallVector<Value> &later : inserted)
    llvm::append_range(values, later);
  return values;
}

/// Puts a kernel's region in its place, stages first. Returns what was computed in it for each
/// result.
static SmallVector<Value> inlineKernel(IRRewriter &rewriter, schedule::KernelOp kernel) {
  Block &body = kernel.getBody().front();
  for (auto stage : llvm::make_early_inc_range(body.getOps<schedule::KernelOp>()))
    inlineKernel(rewriter, stage);
  Operation *yield = body.getTerminator();
  SmallVector<Value> made(yield->getOperands());
  rewriter.eraseOp(yield);
  rewriter.inlineBlockBefore(&body, kernel, kernel.getInputs());
  rewriter.replaceOp(kernel, made);
  return made;
}

SmallVector<Value> weir::inlineKernels(func::FuncOp function) {
  SmallVector<Value> values = findMade(function);
  DenseMap<Value, Value> computed; // by results of erased kernels
  IRRewriter rewriter(function.getContext());
  for (auto kernel : llvm::make_early_inc_range(function.getOps<schedule::KernelOp>())) {
    SmallVector<Value> results(kernel.getResults());
    for (auto [result, value] : llvm::zip_equal(results, inlineKernel(rewriter, kernel)))
      computed[result] = value;
  }
  for (Value &value : values)
    if (auto made = computed.find(value); made != computed.end())
      value = made->second;
  return values;
}
