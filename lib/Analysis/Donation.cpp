//===- Donation.cpp - Whether a result may take an operand's bytes --------===//

#include "weir/Analysis/Donation.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace weir;

StringRef weir::stringify(Refusal refusal) {
  switch (refusal) {
  case Refusal::MemorySpace:
    return "memory-space";
  case Refusal::Layout:
    return "layout";
  case Refusal::Size:
    return "size";
  case Refusal::Alignment:
    return "alignment";
  case Refusal::NotOwned:
    return "not-owned";
  case Refusal::ViewOfArgument:
    return "view-of-argument";
  case Refusal::ArgumentAlias:
    return "argument-alias";
  case Refusal::EscapesTwice:
    return "escapes-twice";
  case Refusal::LiveReader:
    return "live-reader";
  case Refusal::UnorderedReader:
    return "unordered-reader";
  case Refusal::AccessMapUnproven:
    return "access-map-unproven";
  }
  llvm_unreachable("no such refusal");
}

StringRef weir::describe(Refusal refusal) {
  switch (refusal) {
  case Refusal::MemorySpace:
    return "they are in different memory spaces";
  case Refusal::Layout:
    return "they have different types, or one is a part of a value";
  case Refusal::Size:
    return "they have different sizes";
  case Refusal::Alignment:
    return "it needs a larger alignment";
  case Refusal::NotOwned:
    return "that is a constant, or an argument that is not donated";
  case Refusal::ViewOfArgument:
    return "that is a part of an argument";
  case Refusal::ArgumentAlias:
    return "that is a foreign function's argument, which may share bytes with others";
  case Refusal::EscapesTwice:
    return "that is a result itself";
  case Refusal::LiveReader:
    return "a later command still touches them";
  case Refusal::UnorderedReader:
    return "a command of another queue touches them, and nothing orders it before the write";
  case Refusal::AccessMapUnproven:
    return "the access maps do not prove that each element is read before it is written";
  }
  llvm_unreachable("no such refusal");
}

/// Whether `value` is a function's argument that carries `name`.
static bool hasArgAttr(Value value, StringRef name) {
  auto argument = dyn_cast<BlockArgument>(value);
  auto function = argument ? dyn_cast<FunctionOpInterface>(argument.getOwner()->getParentOp())
                           : FunctionOpInterface();
  return function && function.getArgAttr(argument.getArgNumber(), name);
}

BlockArgument weir::getBorrower(BlockArgument argument) {
  auto function = dyn_cast<FunctionOpInterface>(argument.getOwner()->getParentOp());
  if (!function)
    return {};
  for (unsigned index = 0; index < function.getNumArguments(); ++index)
    if (auto lender = function.getArgAttrOfType<IntegerAttr>(index, schedule::donatedAttrName);
        lender && lender.getInt() == argument.getArgNumber())
      return function.getArgument(index);
  return {};
}

/// What the bytes of a whole allocation are; failure for others.
static std::optional<int64_t> getWholeBytes(const View &view) {
  auto type = dyn_cast<MemRefType>(view.allocation.value.getType());
  std::optional<int64_t> bytes = type ? schedule::getByteSize(type) : std::nullopt;
  bool whole = bytes && view.exact && view.range == ByteRange{0, *bytes};
  return whole ? bytes : std::nullopt;
}

/// Whether the bytes suit, whoever else uses them.
static std::optional<Refusal> findMisfit(const View &target, const View &source) {
  auto toType = cast<MemRefType>(target.allocation.value.getType());
  using Kind = AllocationRef::Kind;
  if (source.allocation.kind == Kind::Global)
    return Refusal::NotOwned;
  auto fromType = cast<MemRefType>(source.allocation.value.getType());
  if (toType.getMemorySpace() != fromType.getMemorySpace())
    return Refusal::MemorySpace;
  bool isArgument =
      source.allocation.kind == Kind::Entry || source.allocation.kind == Kind::Argument;
  std::optional<int64_t> have = getWholeBytes(source), want = getWholeBytes(target);
  if (!have && isArgument)
    return Refusal::ViewOfArgument;
  if (!have || !want)
    return Refusal::Layout;
  if (*want != *have)
    return Refusal::Size;
  if (toType != fromType)
    return Refusal::Layout;
  auto getAlignment = [](Value value) -> int64_t {
    auto alloc = value.getDefiningOp<memref::AllocOp>();
    return alloc ? std::max<int64_t>(256, alloc.getAlignment().value_or(1)) : 256;
  };
  if (getAlignment(target.allocation.value) > getAlignment(source.allocation.value))
    return Refusal::Alignment;
  if (isArgument && hasArgAttr(source.allocation.value, schedule::resultAttrName))
    return Refusal::EscapesTwice;
  if (isArgument && getBorrower(cast<BlockArgument>(source.allocation.value)))
    return Refusal::EscapesTwice;
  if (isArgument && !hasArgAttr(source.allocation.value, schedule::donateAttrName))
    return Refusal::NotOwned;
  if (source.allocation.kind == Kind::Argument &&
      !hasArgAttr(source.allocation.value, LLVM::LLVMDialect::getNoAliasAttrName()))
    return Refusal::ArgumentAlias;
  return std::nullopt;
}

DonationVerdict Donation::checkFit(schedule::DispatchOp dispatch, unsigned target,
                                   unsigned source) {
  const View &read = getView(dispatch.getOperands()[source]);
  std::optional<Refusal> refusal = findMisfit(getView(dispatch.getOperands()[target]), read);
  if (!refusal)
    return {};
  Operation *owner = read.allocation.value ? read.allocation.value.getDefiningOp() : nullptr;
  return {refusal, owner ? owner : dispatch, ""};
}

const InPlaceProof &Donation::prove(Kernel &known, gpu::GPUFuncOp kernel, unsigned read,
                                    unsigned written) {
  auto [proof, isNew] = known.proofs.try_emplace({read, written});
  if (isNew)
    proof->second = proveInPlace(known.maps, kernel, read, written);
  return proof->second;
}

DonationVerdict Donation::prove(schedule::DispatchOp dispatch, unsigned target, unsigned source) {
  Value to = getView(dispatch.getOperands()[target]).allocation.value;
  Value from = getView(dispatch.getOperands()[source]).allocation.value;
  auto kernel = symbols.lookupNearestSymbolFrom<gpu::GPUFuncOp>(dispatch, dispatch.getKernelAttr());
  DonationVerdict unproven{Refusal::AccessMapUnproven, dispatch, ""};
  std::unique_ptr<Kernel> &known = kernels[kernel];
  if (!known)
    known = std::make_unique<Kernel>(kernel, launches);
  for (OpOperand &reading : dispatch->getOpOperands())
    for (OpOperand &writing : dispatch->getOpOperands()) {
      if (!isa<BaseMemRefType>(reading.get().getType()) ||
          !isa<BaseMemRefType>(writing.get().getType()) ||
          getView(reading.get()).allocation.value != from ||
          getView(writing.get()).allocation.value != to)
        continue;
      unsigned read = reading.getOperandNumber(), written = writing.getOperandNumber();
      // Views of a part are elsewhere than the proof would have them.
      InPlaceProof proof;
      if (getWholeBytes(getView(reading.get())) && getWholeBytes(getView(writing.get())))
        proof = prove(*known, kernel, read, written);
      if (proof.holds)
        continue;
      unproven.detail = ("operand " + Twine(written) + " may be written before operand " +
                         Twine(read) + " is read")
                            .str();
      if (proof.read)
        unproven.witness = proof.read->op;
      return unproven;
    }
  return {};
}
