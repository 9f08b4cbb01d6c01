//===- AliasingTest.cpp - Views of memrefs compared by their bytes --------===//
//
// Random chains of views on one allocation. The oracle follows each element of the last view
// back through the chain by the semantics of the operations, without the layouts in their
// types.
//
//===----------------------------------------------------------------------===//

#include "weir/Analysis/Aliasing.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Verifier.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <iostream>
#include <memory>
#include <numeric>
#include <random>
#include <set>

using namespace mlir;
using namespace weir;

namespace {
/// A memref and the first byte of each of its elements, row-major.
struct Traced {
  Value memref;
  std::vector<int64_t> elements;

  MemRefType getType() const { return cast<MemRefType>(memref.getType()); }
  int64_t getRank() const { return shape.size(); }
  std::vector<int64_t> shape;
  int64_t elementBytes = 1;
};

class Chains {
public:
  explicit Chains(unsigned seed) : random(seed) {
    context.loadDialect<memref::MemRefDialect, arith::ArithDialect, func::FuncDialect>();
    builder = std::make_unique<OpBuilder>(&context);
    location = builder->getUnknownLoc();
    module = ModuleOp::create(location);
    builder->setInsertionPointToEnd(module->getBody());
    auto function = func::FuncOp::create(*builder, location, "f", builder->getFunctionType({}, {}));
    builder->setInsertionPointToEnd(function.addEntryBlock());
    allocation = memref::AllocOp::create(*builder, location,
                                         MemRefType::get({allocationBytes}, builder->getI8Type()));
  }

  Traced make();
  /// Whether everything built is valid. Nothing can be built afterwards.
  bool finish() {
    func::ReturnOp::create(*builder, location);
    return succeeded(mlir::verify(*module));
  }

private:
  static constexpr int64_t allocationBytes = 512;

  int64_t pick(int64_t from, int64_t to) {
    return std::uniform_int_distribution<int64_t>(from, to)(random);
  }
  /// Returns a number as an attribute or as a constant of the function.
  OpFoldResult getIndex(int64_t value) {
    if (pick(0, 2))
      return builder->getIndexAttr(value);
    return arith::ConstantIndexOp::create(*builder, location, value).getResult();
  }
  Traced makeView();
  Traced takePart(const Traced &source);
  Traced transpose(const Traced &source);
  Traced expand(const Traced &source);
  Traced collapse(const Traced &source);
  Traced forget(const Traced &source);
  Traced reinterpret(const Traced &source);

  std::mt19937 random;
  MLIRContext context;
  std::unique_ptr<OpBuilder> builder;
  Location location = UnknownLoc::get(&context);
  OwningOpRef<ModuleOp> module;
  Value allocation;
};
} // namespace

Traced Chains::makeView() {
  Traced result;
  Type types[] = {builder->getI8Type(), builder->getF16Type(), builder->getF32Type(),
                  builder->getF64Type()};
  int64_t log = pick(0, 3);
  result.elementBytes = int64_t(1) << log;
  int64_t left = allocationBytes / 2 / result.elementBytes, count = 1;
  for (int64_t rank = pick(1, 4); rank > 0; --rank) {
    result.shape.push_back(pick(1, std::min<int64_t>(left, 6)));
    left /= result.shape.back();
    count *= result.shape.back();
  }
  int64_t shift = pick(0, allocationBytes - count * result.elementBytes);
  for (int64_t i = 0; i < count; ++i)
    result.elements.push_back(shift + i * result.elementBytes);
  SmallVector<int64_t> shape = llvm::to_vector(result.shape);
  SmallVector<Value> sizes;
  for (int64_t &size : shape)
    if (pick(0, 4) == 0) {
      sizes.push_back(arith::ConstantIndexOp::create(*builder, location, size));
      size = ShapedType::kDynamic;
    }
  result.memref =
      memref::ViewOp::create(*builder, location, MemRefType::get(shape, types[log]), allocation,
                             arith::ConstantIndexOp::create(*builder, location, shift), sizes);
  return result;
}

Traced Chains::takePart(const Traced &source) {
  if (source.elements.empty())
    return source; // no offset is within its bounds
  Traced result = source;
  result.elements.clear();
  result.shape.clear();
  SmallVector<OpFoldResult> offsets, sizes, strides;
  SmallVector<int64_t> first, step, size;
  for (int64_t whole : source.shape) {
    step.push_back(pick(1, 2));
    first.push_back(pick(0, whole - 1));
    size.push_back(pick(pick(0, 40) != 0, (whole - first.back() + step.back() - 1) / step.back()));
    offsets.push_back(getIndex(first.back()));
    sizes.push_back(getIndex(size.back()));
    strides.push_back(getIndex(step.back()));
  }
  for (size_t i = 0; i < source.elements.size(); ++i) {
    int64_t rest = i;
    bool inside = true;
    for (int64_t d = source.getRank(); d-- > 0;) {
      int64_t at = rest % source.shape[d] - first[d];
      rest /= source.shape[d];
      inside &= at >= 0 && at % step[d] == 0 && at / step[d] < size[d];
    }
    if (inside)
      result.elements.push_back(source.elements[i]);
  }
  // Dimensions of size 1 may be dropped if the strides tell which.
  auto type = cast<MemRefType>(
      memref::SubViewOp::inferResultType(source.getType(), offsets, sizes, strides));
  bool tell = llvm::none_of(type.getStridesAndOffset().first, ShapedType::isDynamic);
  SmallVector<int64_t> shape;
  for (int64_t d = 0; d < source.getRank(); ++d)
    if (type.getDimSize(d) != 1 || !tell || pick(0, 1)) {
      shape.push_back(type.getDimSize(d));
      result.shape.push_back(size[d]);
    }
  auto reduced = memref::SubViewOp::inferRankReducedResultType(shape, source.getType(), offsets,
                                                               sizes, strides);
  result.memref = memref::SubViewOp::create(*builder, location, cast<MemRefType>(reduced),
                                            source.memref, offsets, sizes, strides);
  return result;
}

Traced Chains::transpose(const Traced &source) {
  if (source.getRank() == 0)
    return source;
  Traced result = source;
  std::vector<unsigned> order(source.getRank());
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  auto map = AffineMap::getPermutationMap(order, &context);
  result.memref =
      memref::TransposeOp::create(*builder, location, source.memref, AffineMapAttr::get(map));
  for (int64_t d = 0; d < source.getRank(); ++d)
    result.shape[d] = source.shape[order[d]];
  for (size_t i = 0; i < source.elements.size(); ++i) {
    std::vector<int64_t> index(source.getRank());
    int64_t rest = i;
    for (int64_t d = source.getRank(); d-- > 0; rest /= result.shape[d])
      index[order[d]] = rest % result.shape[d];
    int64_t from = 0;
    for (int64_t d = 0; d < source.getRank(); ++d)
      from = from * source.shape[d] + index[d];
    result.elements[i] = source.elements[from];
  }
  return result;
}

Traced Chains::expand(const Traced &source) {
  if (!source.getType().hasStaticShape() || source.getRank() == 0)
    return source;
  Traced result = source;
  int64_t split = pick(0, source.getRank() - 1), factor = pick(1, 3);
  if (source.shape[split] % factor)
    factor = 1;
  result.shape[split] /= factor;
  result.shape.insert(result.shape.begin() + split, factor);
  SmallVector<ReassociationIndices> groups;
  for (int64_t d = 0, next = 0; d < source.getRank(); ++d) {
    groups.push_back({next++});
    if (d == split)
      groups.back().push_back(next++);
  }
  result.memref = memref::ExpandShapeOp::create(*builder, location, ArrayRef(result.shape),
                                                source.memref, groups);
  return result;
}

Traced Chains::collapse(const Traced &source) {
  if (source.getRank() < 2)
    return source;
  Traced result = source;
  int64_t first = pick(0, source.getRank() - 2);
  SmallVector<ReassociationIndices> groups;
  for (int64_t d = 0; d < source.getRank(); ++d) {
    if (d == first + 1)
      groups.back().push_back(d);
    else
      groups.push_back({d});
  }
  if (!memref::CollapseShapeOp::isGuaranteedCollapsible(source.getType(), groups))
    return source;
  result.shape[first] *= result.shape[first + 1];
  result.shape.erase(result.shape.begin() + first + 1);
  result.memref = memref::CollapseShapeOp::create(*builder, location, source.memref, groups);
  return result;
}

/// Casts to a type with unknown sizes and strides.
Traced Chains::forget(const Traced &source) {
  Traced result = source;
  SmallVector<int64_t> open(source.getRank(), ShapedType::kDynamic);
  auto type = MemRefType::get(open, source.getType().getElementType(),
                              StridedLayoutAttr::get(&context, ShapedType::kDynamic, open));
  result.memref = memref::CastOp::create(*builder, location, type, source.memref);
  return result;
}

/// Reinterprets from the base of the view, whichever part of it `source` is.
Traced Chains::reinterpret(const Traced &source) {
  Value root = source.memref;
  while (!isa<memref::ViewOp>(root.getDefiningOp()))
    root = root.getDefiningOp()->getOperand(0);
  auto view = cast<memref::ViewOp>(root.getDefiningOp());
  int64_t base = *getConstantIntValue(view.getByteShift());
  Traced result;
  result.elementBytes = source.elementBytes;
  int64_t offset = pick(0, 40);
  SmallVector<OpFoldResult> sizes, strides;
  result.elements = {base + offset * source.elementBytes};
  for (int64_t rank = pick(0, 3); rank > 0; --rank) {
    int64_t size = pick(pick(0, 30) != 0, 4), stride = pick(-4, 12);
    // No byte before the allocation's first.
    if (stride < 0 &&
        *llvm::min_element(result.elements) + (size - 1) * stride * source.elementBytes < 0)
      stride = -stride;
    std::vector<int64_t> more;
    for (int64_t element : result.elements)
      for (int64_t i = 0; i < size; ++i)
        more.push_back(element + i * stride * source.elementBytes);
    result.elements = std::move(more);
    result.shape.push_back(size);
    sizes.push_back(getIndex(size));
    strides.push_back(getIndex(stride));
    if (!size)
      break;
  }
  result.memref = memref::ReinterpretCastOp::create(*builder, location, source.memref,
                                                    getIndex(offset), sizes, strides);
  return result;
}

Traced Chains::make() {
  Traced view = makeView();
  for (int64_t length = pick(0, 4); length > 0; --length) {
    switch (pick(0, 6)) {
    case 0:
    case 1:
      view = takePart(view);
      break;
    case 2:
      view = transpose(view);
      break;
    case 3:
      view = expand(view);
      break;
    case 4:
      view = collapse(view);
      break;
    case 5:
      view = forget(view);
      break;
    case 6:
      view = reinterpret(view);
      break;
    }
  }
  return view;
}

static std::set<int64_t> enumerate(const Traced &view) {
  std::set<int64_t> bytes;
  for (int64_t element : view.elements)
    for (int64_t i = 0; i < view.elementBytes; ++i)
      bytes.insert(element + i);
  return bytes;
}

static std::string print(const Traced &view) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  for (Operation *op = view.memref.getDefiningOp(); op->getNumOperands();
       op = op->getOperand(0).getDefiningOp())
    stream << *op << "\n";
  return text;
}

TEST(Aliasing, RandomChainsAgreeWithTheirBytes) {
  Chains chains(1);
  std::vector<std::set<int64_t>> bytes;
  std::vector<View> views;
  for (int round = 0; round < 1500; ++round) {
    Traced view = chains.make();
    const std::set<int64_t> &all = bytes.emplace_back(enumerate(view));
    views.push_back(getView(view.memref));
    const View &answer = views.back();
    ASSERT_TRUE(answer.range) << print(view);
    if (all.empty())
      continue;
    ASSERT_FALSE(answer.range->isEmpty()) << print(view);
    ASSERT_LE(answer.range->begin, *all.begin()) << print(view);
    ASSERT_GE(answer.range->end, *all.rbegin() + 1) << print(view);
    if (answer.exact) {
      ASSERT_EQ(answer.range->end - answer.range->begin, int64_t(all.size())) << print(view);
    }
  }
  ASSERT_TRUE(chains.finish());
  int64_t disjoint = 0, proved = 0, overlapping = 0, provedOverlapping = 0;
  for (size_t i = 0; i < views.size(); ++i)
    for (size_t j = i + 1; j < std::min(i + 60, views.size()); ++j) {
      const std::set<int64_t> &a = bytes[i], &b = bytes[j];
      if (a.empty() || b.empty() || *a.rbegin() < *b.begin() || *b.rbegin() < *a.begin()) {
        ASSERT_NE(compare(views[i], views[j]), Sharing::Overlap);
        continue;
      }
      bool shared = llvm::any_of(a, [&](int64_t byte) { return b.count(byte); });
      Sharing answer = compare(views[i], views[j]);
      ASSERT_NE(answer, shared ? Sharing::Disjoint : Sharing::Overlap) << i << " and " << j;
      ASSERT_EQ(answer, compare(views[j], views[i]));
      (shared ? overlapping : disjoint) += 1;
      (shared ? provedOverlapping : proved) += answer != Sharing::Unknown;
    }
  std::cout << disjoint << " pairs with meeting hulls are disjoint, " << 100.0 * proved / disjoint
            << "% proved; " << overlapping << " overlap, "
            << 100.0 * provedOverlapping / overlapping << "% proved\n";
  EXPECT_GE(disjoint, 1000);
  EXPECT_GE(overlapping, 1000);
  EXPECT_GE(proved * 100, disjoint * 95);
}

TEST(Aliasing, CoversOnlyWhatIsProved) {
  Chains chains(2);
  std::vector<std::pair<View, std::set<int64_t>>> views;
  for (int round = 0; round < 300; ++round) {
    Traced view = chains.make();
    views.push_back({getView(view.memref), enumerate(view)});
  }
  size_t covered = 0;
  for (auto &[whole, bytes] : views)
    for (auto &[part, some] : views)
      if (covers(whole, part)) {
        ++covered;
        ASSERT_TRUE(std::includes(bytes.begin(), bytes.end(), some.begin(), some.end()));
      }
  EXPECT_GT(covered, views.size());
}
