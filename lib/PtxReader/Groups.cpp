//===- Groups.cpp - Products of matrices by four warps --------------------===//
//
// wgmma names its factors by descriptors of 64 bits: an address in workgroup memory divided by 16,
// and constants that say how the factor's lines lie. Proofs need the address itself. So it is
// remembered of which address a shift, a conversion, an or and a sum made a number.
//
//===----------------------------------------------------------------------===//

#include "Translator.h"

#include <charconv>

using namespace weir;
using namespace weir::ptx;
using spv::StorageClass;

// Fields of a descriptor. Source: PTX ISA, "Matrix Descriptor Format" of wgmma.
static constexpr uint64_t addressBits = 0xffff, strideBits = 0x3fff;
static constexpr unsigned leadingShift = 16, strideShift = 32, swizzleShift = 62;
/// Lines of 128 bytes, of which eight have their runs of 16 bytes in different banks.
static constexpr uint64_t swizzle128 = 1;
/// Bytes that such a swizzle repeats after.
static constexpr int64_t swizzleBytes = 1024;

/// Returns what a number will be that the statement makes, as an address and constants.
std::optional<Translator::Described> Translator::describe() {
  if (statement->operands.size() < 2 || statement->operands[0].kind != Operand::Kind::Register ||
      statement->operands[1].kind != Operand::Kind::Register || statement->operands[1].width < 32)
    return std::nullopt;
  const std::string name = statement->getName();
  const Operand &from = statement->operands[1];
  auto find = [&]() -> std::optional<Described> {
    auto known = described.find(getRegister(from.number));
    return known == described.end() ? std::nullopt : std::optional(known->second);
  };
  const bool isWide = name == "shr.u64" || name == "shr.b64";
  if (isWide || name == "shr.u32" || name == "shr.b32")
    return getNumber(2) == 4 && from.width == (isWide ? 64 : 32)
               ? std::optional(Described{getRegister(from.number), 0, from.width})
               : std::nullopt;
  if (name == "cvt.u64.u32" && from.width == 32)
    return find();
  const bool isSum = name == "add.s64" || name == "add.u64";
  if (!isSum && name != "or.b64")
    return std::nullopt;
  std::optional<Described> made = find();
  std::optional<uint64_t> constant = getNumber(2);
  if (isSum) { // so many runs of 16 bytes behind the address
    if (!made || !constant || *constant > addressBits)
      return std::nullopt;
    made->address = makeInteger(Op::IAdd, made->width,
                                {made->address, words.getConstant(made->width, *constant * 16)});
    return made;
  }
  if (!made || !constant || *constant & addressBits)
    return std::nullopt;
  made->constants |= *constant;
  return made;
}

/// Checks that the runs of a line are exchanged by its place in a variable.
void Translator::needSwizzledBlocks() const {
  for (const Symbol &symbol : entry.symbols)
    need(symbol.space != Symbol::Space::Shared || symbol.alignment >= swizzleBytes,
         "has lines in a variable that is not aligned to 1024 bytes");
}

/// Appends what a descriptor says to the operands of a product: a pointer goes to `pointer`, the
/// bytes from one line's neighbour to the next to `strides`.
void Translator::readDescriptor(const Operand &operand, Id &pointer, std::vector<Id> &strides) {
  need(operand.kind == Operand::Kind::Register && operand.width == 64,
       "has a factor that is not in workgroup memory");
  auto found = described.find(getRegister(operand.number));
  need(found != described.end(), "has a descriptor that is not made of an address and constants");
  const Id address = found->second.address;
  const uint64_t constants = found->second.constants;
  const uint64_t leading = constants >> leadingShift & strideBits,
                 stride = constants >> strideShift & strideBits;
  const uint64_t all = leading << leadingShift | stride << strideShift | swizzle128 << swizzleShift;
  need(constants == all, "has a descriptor without a swizzle of 128 bytes");
  need(stride * 16 % swizzleBytes == 0, "has lines that do not lie in blocks of 1024 bytes");
  needSwizzledBlocks();
  Id run = words.getVector(words.getInteger(32), 4);
  pointer = make(Op::ConvertUToPtr, words.getPointer(StorageClass::Workgroup, run), {address});
  strides.push_back(words.getConstant(32, leading * 16));
  strides.push_back(words.getConstant(32, stride * 16));
}

/// Translates wgmma: what orders products keeps its name.
void Translator::translateGroupMatrix() {
  std::string_view what = statement->name.size() > 1 ? statement->name[1] : "";
  if (what == "fence" || what == "commit_group" || what == "wait_group") {
    std::vector<uint32_t> operands = {words.getString(statement->getName())};
    for (const Operand &operand : statement->operands)
      useAll(operand, 32, operands);
    return Words::put(*body, Op::NamedEffect, operands);
  }
  const std::string name = statement->getName();
  constexpr std::string_view begin = "wgmma.mma_async.sync.aligned.m64n";
  uint32_t columns = 0;
  if (!name.starts_with(begin))
    refuse();
  const char *end = name.data() + name.size();
  auto [rest, error] = std::from_chars(name.data() + begin.size(), end, columns);
  const std::string_view types(rest, size_t(end - rest));
  if (error != std::errc() || columns < 8 || columns > 256 || columns % 8 ||
      (types != "k16.f32.bf16.bf16" && types != "k16.f32.f16.f16" && types != "k8.f32.tf32.tf32"))
    refuse();
  const bool isTf32 = types == "k8.f32.tf32.tf32"; // whose factors cannot be transposed
  need(statement->operands.size() == (isTf32 ? 6 : 8) && getNumber(4) == 1 && getNumber(5) == 1,
       "negates a factor, or does not say how factors lie");
  std::vector<Id> operands(2);
  operands.push_back(words.getString(name));
  readDescriptor(getOperand(1), operands[0], operands);
  readDescriptor(getOperand(2), operands[1], operands);
  for (size_t i : {6, 7}) {
    std::optional<uint64_t> isTransposed = isTf32 ? 0 : getNumber(i);
    need(isTransposed && *isTransposed <= 1, "does not say how factors lie");
    const uint32_t lines = i == 6 ? 64 : columns;
    need(*isTransposed == 0 || lines % 64 == 0, "has lines that are not whole");
    operands.push_back(words.getConstant(32, *isTransposed));
  }
  operands.push_back(usePredicate(getOperand(3)));
  const Operand &sums = getOperand(0);
  need(sums.kind == Operand::Kind::Vector && sums.parts.size() == columns / 2,
       "has more or fewer sums than its shape needs");
  for (const Operand &sum : sums.parts) {
    need(sum.kind == Operand::Kind::Register && sum.width == 32, "has sums that are no registers");
    operands.push_back(getRegister(sum.number));
  }
  Id whole = make(Op::GroupMatrix, words.getVector(words.getInteger(32), columns / 2), operands);
  for (uint32_t i = 0; i < columns / 2; ++i)
    set(sums.parts[i], make(Op::CompositeExtract, words.getInteger(32), {whole, i}), 32);
}
