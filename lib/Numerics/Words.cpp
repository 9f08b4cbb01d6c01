//===- Words.cpp - Kernels' memory in words of 32 bits --------------------===//
//
// Each load and store is rewritten by itself. Casts between an integer and its words
// stay behind; WordValues.cpp takes them away together with the integers.
//
//===----------------------------------------------------------------------===//

#include "weir/Numerics/Words.h"

#include "WideIntegers.h"
#include "WordValues.h"

#include "dialects/Schedule/Schedule.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace weir;

static constexpr unsigned wordBits = 32;

bool LackingIntegers::isShort(Type type) const {
  Type element = getElementTypeOrSelf(type);
  if (!element.isIntOrFloat())
    return false;
  unsigned bits = element.getIntOrFloatBitWidth();
  return (bits == 8 && !has8) || (bits == 16 && !has16);
}

bool LackingIntegers::isWide(Type type) const {
  return getElementTypeOrSelf(type).isInteger(64) && !has64;
}

static int64_t getLaneCount(Type element) {
  auto vector = dyn_cast<VectorType>(element);
  return vector ? vector.getNumElements() : 1;
}

/// Returns the words of an element of packed memory: 0 where it is none, or shares its word.
static int64_t getWholeWords(Type element) {
  int64_t bits = getLaneCount(element) * getElementTypeOrSelf(element).getIntOrFloatBitWidth();
  return bits % wordBits ? 0 : bits / wordBits;
}

bool weir::storesWholeWords(gpu::GPUFuncOp kernel, unsigned argument) {
  BlockArgument memory = kernel.getArgument(argument);
  if (getWholeWords(cast<MemRefType>(memory.getType()).getElementType()))
    return true;
  return llvm::none_of(memory.getUsers(), llvm::IsaPred<memref::StoreOp>);
}

namespace {
/// Memory of a kernel, before and after.
class WordMemory {
public:
  WordMemory(Value memory, WordForm form, const LackingIntegers &lacking)
      : memory(memory), old(cast<MemRefType>(memory.getType())), form(form),
        isWide(lacking.isWide(old.getElementType())) {}

  LogicalResult rewrite(gpu::GPUFuncOp kernel);

private:
  MemRefType getNewType() const;
  Value load(OpBuilder &b, memref::LoadOp op);
  Value loadWide(OpBuilder &b, memref::LoadOp op);
  Value loadPacked(OpBuilder &b, memref::LoadOp op);
  void store(OpBuilder &b, memref::StoreOp op);
  void storeWide(OpBuilder &b, memref::StoreOp op);

  Value at(OpBuilder &b, Location loc, Value index, int64_t factor, int64_t offset = 0) {
    Value place =
        arith::MulIOp::create(b, loc, index, arith::ConstantIndexOp::create(b, loc, factor));
    return offset ? arith::AddIOp::create(b, loc, place,
                                          arith::ConstantIndexOp::create(b, loc, offset))
                        .getResult()
                  : place;
  }

  Value memory;
  MemRefType old;
  WordForm form;
  bool isWide;
};
} // namespace

MemRefType WordMemory::getNewType() const {
  Type element = old.getElementType(), word = IntegerType::get(old.getContext(), wordBits);
  int64_t lanes = getLaneCount(element), count = old.getDimSize(0);
  auto make = [&](int64_t number, int64_t width) {
    Type type = width == 1 ? word : VectorType::get({width}, word);
    return MemRefType::get({number}, type, old.getLayout(), old.getMemorySpace());
  };
  if (isWide) // vectors have at most four words
    return lanes > 2 ? make(count * lanes / 2, 4) : make(count, 2 * lanes);
  if (form == WordForm::Apart)
    return make(count, lanes);
  if (int64_t words = getWholeWords(element))
    return make(count, words);
  int64_t bits = getElementTypeOrSelf(element).getIntOrFloatBitWidth();
  return make(llvm::divideCeil(count * lanes * bits, wordBits), 1);
}

/// Returns the integer, or the vector of them, of two words.
static Value join(OpBuilder &b, Location loc, Type type, Value low, Value high) {
  return UnrealizedConversionCastOp::create(b, loc, type, ValueRange{low, high}).getResult(0);
}

Value WordMemory::loadWide(OpBuilder &b, memref::LoadOp op) {
  Location loc = op.getLoc();
  Value index = op.getIndices().front();
  auto vector = dyn_cast<VectorType>(op.getType());
  auto get = [&](Value place) -> Value { return memref::LoadOp::create(b, loc, memory, place); };
  auto pick = [&](Value one, Value two, ArrayRef<int64_t> numbers) -> Value {
    return vector::ShuffleOp::create(b, loc, one, two, numbers);
  };
  if (!vector) {
    Value both = get(index);
    return join(b, loc, op.getType(), vector::ExtractOp::create(b, loc, both, 0),
                vector::ExtractOp::create(b, loc, both, 1));
  }
  if (vector.getNumElements() == 2) {
    Value all = get(index);
    return join(b, loc, vector, pick(all, all, {0, 2}), pick(all, all, {1, 3}));
  }
  Value one = get(at(b, loc, index, 2)), two = get(at(b, loc, index, 2, 1));
  return join(b, loc, vector, pick(one, two, {0, 2, 4, 6}), pick(one, two, {1, 3, 5, 7}));
}

void WordMemory::storeWide(OpBuilder &b, memref::StoreOp op) {
  Location loc = op.getLoc();
  Value index = op.getIndices().front();
  Type word = b.getI32Type();
  auto vector = dyn_cast<VectorType>(op.getValueToStore().getType());
  if (vector)
    word = vector.clone(word);
  auto halves =
      UnrealizedConversionCastOp::create(b, loc, TypeRange{word, word}, op.getValueToStore());
  Value low = halves.getResult(0), high = halves.getResult(1);
  auto put = [&](Value value, Value place) {
    memref::StoreOp::create(b, loc, value, memory, place);
  };
  auto weave = [&](ArrayRef<int64_t> numbers) -> Value {
    return vector::ShuffleOp::create(b, loc, low, high, numbers);
  };
  if (!vector) {
    auto both = VectorType::get({2}, word);
    put(vector::FromElementsOp::create(b, loc, both, ValueRange{low, high}), index);
  } else if (vector.getNumElements() == 2) {
    put(weave({0, 2, 1, 3}), index);
  } else {
    put(weave({0, 4, 1, 5}), at(b, loc, index, 2));
    put(weave({2, 6, 3, 7}), at(b, loc, index, 2, 1));
  }
}

/// Returns the elements of packed memory that a load gets, in a word each.
Value WordMemory::loadPacked(OpBuilder &b, memref::LoadOp op) {
  Location loc = op.getLoc();
  Type element = op.getType();
  WordBuilder w(b, loc, b.getI32Type());
  unsigned bits = getElementTypeOrSelf(element).getIntOrFloatBitWidth();
  uint32_t ones = (1u << bits) - 1;
  int64_t perWord = wordBits / bits, lanes = getLaneCount(element);
  Value index = op.getIndices().front();
  SmallVector<Value> elements;
  if (int64_t words = getWholeWords(element)) {
    Value all = memref::LoadOp::create(b, loc, memory, index);
    for (int64_t lane = 0; lane < lanes; ++lane) {
      Value word =
          words == 1 ? all : vector::ExtractOp::create(b, loc, all, lane / perWord).getResult();
      if (lane % perWord)
        word = w.right(word, uint32_t(lane % perWord * bits));
      elements.push_back(lane % perWord == perWord - 1 ? word : w.mask(word, ones));
    }
  } else {
    Value count = arith::ConstantIndexOp::create(b, loc, perWord);
    for (int64_t lane = 0; lane < lanes; ++lane) {
      Value place = lanes == 1 ? index : at(b, loc, index, lanes, lane);
      Value number = arith::DivUIOp::create(b, loc, place, count);
      Value rest = arith::RemUIOp::create(b, loc, place, count);
      Value word = memref::LoadOp::create(b, loc, memory, number);
      Value by = w.mul(arith::IndexCastUIOp::create(b, loc, b.getI32Type(), rest), w.number(bits));
      elements.push_back(w.mask(w.right(word, by), ones));
    }
  }
  if (!isa<VectorType>(element))
    return elements.front();
  return vector::FromElementsOp::create(b, loc, VectorType::get({lanes}, b.getI32Type()), elements);
}

Value WordMemory::load(OpBuilder &b, memref::LoadOp op) {
  if (isWide)
    return loadWide(b, op);
  Value words = form == WordForm::Packed
                    ? loadPacked(b, op)
                    : memref::LoadOp::create(b, op.getLoc(), memory, op.getIndices()).getResult();
  return arith::TruncIOp::create(b, op.getLoc(), op.getType(), words);
}

void WordMemory::store(OpBuilder &b, memref::StoreOp op) {
  if (isWide)
    return storeWide(b, op);
  Location loc = op.getLoc();
  Type element = op.getValueToStore().getType();
  WordBuilder whole(b, loc, element), w(b, loc, b.getI32Type());
  Value words = arith::ExtUIOp::create(b, loc, whole.getWordType(), op.getValueToStore());
  if (form == WordForm::Packed) {
    unsigned bits = getElementTypeOrSelf(element).getIntOrFloatBitWidth();
    int64_t perWord = wordBits / bits;
    SmallVector<Value> joined;
    for (int64_t lane = 0; lane < getLaneCount(element); ++lane) {
      Value part = vector::ExtractOp::create(b, loc, words, lane);
      if (lane % perWord == 0)
        joined.push_back(part);
      else
        joined.back() = w.either(joined.back(), w.left(part, uint32_t(lane % perWord * bits)));
    }
    words = joined.size() == 1
                ? joined.front()
                : vector::FromElementsOp::create(
                      b, loc, VectorType::get({int64_t(joined.size())}, b.getI32Type()), joined)
                      .getResult();
  }
  memref::StoreOp::create(b, loc, words, memory, op.getIndices());
}

LogicalResult WordMemory::rewrite(gpu::GPUFuncOp kernel) {
  SmallVector<Operation *> users(memory.getUsers());
  for (Operation *user : users)
    if (!isa<memref::LoadOp, memref::StoreOp>(user))
      return user->emitError() << "kernel @" << kernel.getName() << " uses memory of "
                               << getElementTypeOrSelf(old.getElementType())
                               << ", which the target lacks, by " << user->getName()
                               << ", which has no form in words of 32 bits";
  memory.setType(getNewType());
  for (Operation *user : users) {
    OpBuilder b(user);
    if (auto access = dyn_cast<memref::LoadOp>(user)) {
      access.replaceAllUsesWith(load(b, access));
      access.erase();
    } else {
      store(b, cast<memref::StoreOp>(user));
      user->erase();
    }
  }
  return success();
}

/// Lets the declared slices of an argument whose elements lie apart count their words.
static void scaleSlice(gpu::GPUFuncOp kernel, unsigned argument, unsigned bits) {
  auto effect = kernel.getArgAttrOfType<schedule::EffectAttr>(argument, schedule::effectAttrName);
  if (!effect || effect.getSlice().empty())
    return;
  SmallVector<int64_t> slice(effect.getSlice());
  for (int64_t &number : MutableArrayRef(slice).take_front(3))
    number *= wordBits / bits;
  kernel.setArgAttr(argument, schedule::effectAttrName,
                    schedule::EffectAttr::get(kernel.getContext(), effect.getAccess(),
                                              effect.getCoversAll(), slice));
}

LogicalResult weir::storeInWords(gpu::GPUFuncOp kernel, ArrayRef<WordForm> forms,
                                 const LackingIntegers &lacking) {
  Block &entry = kernel.getBody().front();
  SmallVector<std::pair<Value, WordForm>> memories;
  unsigned inputs = kernel.getFunctionType().getNumInputs();
  for (BlockArgument argument : entry.getArguments())
    memories.emplace_back(argument, argument.getArgNumber() < inputs
                                        ? forms[argument.getArgNumber()]
                                        : WordForm::Apart);
  kernel.walk([&](memref::AllocaOp op) { memories.emplace_back(op, WordForm::Apart); });
  for (auto [memory, form] : memories) {
    auto type = dyn_cast<MemRefType>(memory.getType());
    if (!type ||
        (!lacking.isShort(type.getElementType()) && !lacking.isWide(type.getElementType())))
      continue;
    auto argument = dyn_cast<BlockArgument>(memory);
    if (argument && argument.getArgNumber() < inputs && form == WordForm::Apart &&
        lacking.isShort(type.getElementType()))
      scaleSlice(kernel, argument.getArgNumber(),
                 getElementTypeOrSelf(type.getElementType()).getIntOrFloatBitWidth());
    if (failed(WordMemory(memory, form, lacking).rewrite(kernel)))
      return failure();
  }
  SmallVector<Type> types(llvm::to_vector(entry.getArgumentTypes()));
  types.truncate(inputs);
  kernel.setFunctionType(FunctionType::get(kernel.getContext(), types, {}));
  return computeInWords(kernel, lacking);
}
