//===- SequenceFormer.h - Loops as ops over their trips ---------*- C++ -*-===//

#ifndef WEIR_PASSES_KERNELS_SEQUENCEFORMER_H
#define WEIR_PASSES_KERNELS_SEQUENCEFORMER_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace weir {

/// Writes a loop as one op over the points of what it carries, and over its trips: dimensions
/// d0, d1... and, last, the trip.
class SequenceFormer {
public:
  /// Creates a former for kernels that bind so many tensors at most.
  SequenceFormer(mlir::scf::ForOp loop, int64_t maxTensors, mlir::OpBuilder &builder)
      : loop(loop), maxTensors(maxTensors), builder(loop.getLoc(), builder),
        inside(loop.getLoc(), loop.getContext()) {
    inside.setInsertionPointToEnd(&body);
  }

  /// Whether the loop can be written so. Creates nothing but the body, which is nowhere yet.
  bool match();
  /// Whether each operand has an element for each point, so that gradients add up element by
  /// element, too.
  bool readsWholePoints();
  /// Creates the op, once the loop has matched. Returns the values that replace the loop's results.
  llvm::SmallVector<mlir::Value> build();
  /// Creates a loop that carries neither counters nor what is the same in all trips, once the loop
  /// has matched. Returns the values that replace the loop's results.
  llvm::SmallVector<mlir::Value> simplify();

private:
  using Exprs = llvm::SmallVector<mlir::AffineExpr>;

  /// The point of a body's iteration space, in the dimensions of the walk.
  struct Frame {
    mlir::linalg::LinalgOp op;
    Exprs loops;
  };

  /// The smallest and the largest value of a number.
  struct Bounds {
    int64_t low, high;
  };

  /// The roles of what a loop carries.
  enum class Role {
    Fixed,   ///< the same in all trips
    Counter, ///< a number that grows by the same in each trip
    Carried, ///< computed from what the trip before had at the same point
    Stacked, ///< each trip inserts a row of its own
  };
  struct Argument {
    Role role;
    mlir::AffineExpr counter;
    mlir::AffineMap map; ///< of a stacked tensor
    mlir::BlockArgument running;
  };

  mlir::scf::ForOp loop;
  int64_t maxTensors;
  mlir::ImplicitLocOpBuilder builder, inside;
  mlir::Block body; ///< of the new op
  int64_t trips = 0;
  llvm::SmallVector<int64_t> shape; ///< of the points
  llvm::SmallVector<Argument> arguments;
  llvm::SmallVector<std::pair<mlir::Value, mlir::AffineMap>> inputs;
  llvm::SmallVector<mlir::AffineMap> outMaps;
  llvm::SmallVector<unsigned> numbers; ///< of the results that the new op computes
  llvm::DenseMap<std::pair<mlir::Value, Frame *>, mlir::Value> emitted;
  llvm::SmallVector<std::unique_ptr<Frame>> frames;
  llvm::DenseMap<std::pair<mlir::Value, mlir::AffineMap>, mlir::Value> elements;

  mlir::AffineExpr dim(unsigned number) { return inside.getAffineDimExpr(number); }
  mlir::AffineExpr constant(int64_t value) { return inside.getAffineConstantExpr(value); }
  mlir::AffineExpr trip() { return dim(shape.size()); }
  Exprs getPoint() {
    return llvm::map_to_vector(llvm::seq<unsigned>(0, shape.size()),
                               [&](unsigned number) { return dim(number); });
  }
  mlir::AffineMap getMap(llvm::ArrayRef<mlir::AffineExpr> exprs) {
    return AffineMap::get(shape.size() + 1, 0, exprs, inside.getContext());
  }
  Argument *getArgument(mlir::Value value) {
    auto argument = dyn_cast<mlir::BlockArgument>(value);
    if (!argument || argument.getOwner() != loop.getBody() || argument == loop.getInductionVar())
      return nullptr;
    return &arguments[argument.getArgNumber() - 1];
  }

  /// Returns the scalar that a tensor of one element is made of, or null.
  static mlir::Value getOnlyElement(mlir::Value tensor);
  bool findRoles();
  bool findCounter(unsigned number);
  bool findStack(unsigned number);
  std::optional<Bounds> getBounds(mlir::AffineExpr expr);
  bool fits(mlir::AffineExpr expr, mlir::Type type);
  Frame *getFrame(mlir::linalg::LinalgOp op, unsigned result,
                  llvm::ArrayRef<mlir::AffineExpr> coords);
  std::optional<std::pair<mlir::Value, Exprs>> step(mlir::Value tensor,
                                                    llvm::ArrayRef<mlir::AffineExpr> coords);
  std::optional<std::pair<mlir::Value, Exprs>> getSource(mlir::OpOperand *operand, Frame *frame);

  mlir::AffineExpr getNumber(mlir::Value scalar, Frame *frame);
  mlir::AffineExpr getElementNumber(mlir::Value tensor, llvm::ArrayRef<mlir::AffineExpr> coords);
  std::optional<bool> isTrue(mlir::Value condition, Frame *frame);

  mlir::Value emit(mlir::Value scalar, Frame *frame);
  mlir::Value emitNew(mlir::Value scalar, Frame *frame);
  mlir::Value emitNumber(mlir::AffineExpr expr, mlir::Type type);
  mlir::Value emitElement(mlir::Value tensor, llvm::ArrayRef<mlir::AffineExpr> coords);
  mlir::Value emitNewElement(mlir::Value tensor, llvm::ArrayRef<mlir::AffineExpr> coords);
  mlir::Value emitInput(mlir::Value tensor, llvm::ArrayRef<mlir::AffineExpr> coords);
  int64_t countTensors();
  mlir::Value createEnd(unsigned number);
};

} // namespace weir

#endif // WEIR_PASSES_KERNELS_SEQUENCEFORMER_H
