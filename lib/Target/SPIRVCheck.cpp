//===- SPIRVCheck.cpp - Reads emitted words again -------------------------===//
//
// The validator knows SPIR-V; it does not know what the kernel was meant to be.
// The second half walks the words for that: a wrong layout is valid SPIR-V.
//
//===----------------------------------------------------------------------===//

#include "weir/Device/Validity.h"
#include "weir/Target/Spirv.h"

#include "spirv-tools/libspirv.hpp"
#include "llvm/ADT/DenseMap.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace weir;

namespace {
/// The storage buffers that a module declares. Assumes valid words, as the validator has
/// run.
struct Declarations {
  explicit Declarations(ArrayRef<uint32_t> words);

  /// Returns the bytes of the array that a storage buffer's variable declares.
  std::optional<int64_t> getBytes(uint32_t variable) const;

  SmallVector<std::string> entryPoints;
  llvm::SmallDenseSet<uint32_t> capabilities;
  llvm::DenseMap<uint32_t, uint32_t> bindings;  ///< variable -> binding
  llvm::DenseMap<uint32_t, uint32_t> strides;   ///< array type -> bytes
  llvm::DenseMap<uint32_t, uint32_t> constants; ///< 32-bit value
  llvm::DenseMap<uint32_t, uint32_t> pointees;  ///< pointer type -> type
  llvm::DenseMap<uint32_t, uint32_t> members;   ///< struct of one member -> its type
  llvm::DenseMap<uint32_t, uint32_t> lengths;   ///< array type -> constant
  llvm::DenseMap<uint32_t, uint32_t> variables; ///< storage buffer -> pointer type
};
} // namespace

Declarations::Declarations(ArrayRef<uint32_t> words) {
  for (size_t at = 5; at < words.size();) {
    size_t count = words[at] >> 16;
    if (count == 0 || at + count > words.size())
      return;
    ArrayRef<uint32_t> operands = words.slice(at + 1, count - 1);
    switch (spirv::Opcode(words[at] & 0xffff)) {
    case spirv::Opcode::OpCapability:
      capabilities.insert(operands[0]);
      break;
    case spirv::Opcode::OpEntryPoint:
      entryPoints.push_back(reinterpret_cast<const char *>(&operands[2]));
      break;
    case spirv::Opcode::OpDecorate:
      if (spirv::Decoration(operands[1]) == spirv::Decoration::Binding)
        bindings[operands[0]] = operands[2];
      if (spirv::Decoration(operands[1]) == spirv::Decoration::ArrayStride)
        strides[operands[0]] = operands[2];
      break;
    case spirv::Opcode::OpConstant:
      constants[operands[1]] = operands[2];
      break;
    case spirv::Opcode::OpTypePointer:
      pointees[operands[0]] = operands[2];
      break;
    case spirv::Opcode::OpTypeStruct:
      if (operands.size() == 2)
        members[operands[0]] = operands[1];
      break;
    case spirv::Opcode::OpTypeArray:
      lengths[operands[0]] = operands[2];
      break;
    case spirv::Opcode::OpVariable:
      if (spirv::StorageClass(operands[2]) == spirv::StorageClass::StorageBuffer)
        variables[operands[1]] = operands[0];
      break;
    default:
      break;
    }
    at += count;
  }
}

std::optional<int64_t> Declarations::getBytes(uint32_t variable) const {
  auto find = [](const llvm::DenseMap<uint32_t, uint32_t> &map,
                 std::optional<uint32_t> key) -> std::optional<uint32_t> {
    auto found = key ? map.find(*key) : map.end();
    return found == map.end() ? std::nullopt : std::optional(found->second);
  };
  auto array = find(members, find(pointees, find(variables, variable)));
  auto length = find(constants, find(lengths, array));
  auto stride = find(strides, array);
  if (!length || !stride)
    return std::nullopt;
  return int64_t(*length) * *stride;
}

static std::optional<std::string> findMeaningError(ArrayRef<uint32_t> words, const Profile &profile,
                                                   StringRef entryPoint,
                                                   ArrayRef<int64_t> operandBytes) {
  Declarations declared(words);
  if (declared.entryPoints.size() != 1 || declared.entryPoints[0] != entryPoint)
    return "the entry point is not called " + entryPoint.str();
  auto uses = [&](spirv::Capability capability) {
    return declared.capabilities.contains(uint32_t(capability));
  };
  if (uses(spirv::Capability::Float64) && !profile.float64)
    return "declares Float64, which target " + profile.name + " lacks";
  if (uses(spirv::Capability::Int64) && !profile.int64)
    return "declares Int64, which target " + profile.name + " lacks";
  if ((uses(spirv::Capability::Int8) || uses(spirv::Capability::StorageBuffer8BitAccess)) &&
      !profile.storage8)
    return "declares 8-bit integers, which target " + profile.name + " lacks";
  if ((uses(spirv::Capability::Int16) || uses(spirv::Capability::StorageBuffer16BitAccess)) &&
      !profile.storage16)
    return "declares 16-bit integers, which target " + profile.name + " lacks";
  if (uses(spirv::Capability::CooperativeMatrixKHR) && !profile.cooperative.rows)
    return "declares CooperativeMatrixKHR, which target " + profile.name + " lacks";

  llvm::SmallBitVector bound(operandBytes.size());
  for (auto [variable, pointer] : declared.variables) {
    auto binding = declared.bindings.find(variable);
    if (binding == declared.bindings.end() || binding->second >= operandBytes.size() ||
        bound.test(binding->second))
      return std::string("a storage buffer is bound to no operand of its own");
    uint32_t operand = binding->second;
    bound.set(operand);
    std::optional<int64_t> bytes = declared.getBytes(variable);
    if (!bytes || *bytes != operandBytes[operand])
      return llvm::formatv("binding {0} declares {1} bytes, the operand spans {2}", operand,
                           bytes.value_or(0), operandBytes[operand])
          .str();
  }
  if (!bound.all())
    return llvm::formatv("operand {0} has no storage buffer", bound.find_first_unset()).str();
  return std::nullopt;
}

std::optional<std::string> weir::findSpirvError(ArrayRef<uint32_t> words, const Profile &profile,
                                                StringRef entryPoint,
                                                ArrayRef<int64_t> operandBytes) {
  const spv::Validity validity = spv::validate({words.data(), words.size()}, profile.api);
  if (validity.isValid == false)
    return validity.detail;
  return findMeaningError(words, profile, entryPoint, operandBytes);
}

FailureOr<std::string> weir::disassembleSpirv(ArrayRef<uint32_t> words) {
  spvtools::SpirvTools tools(SPV_ENV_UNIVERSAL_1_6);
  std::string text;
  uint32_t options = SPV_BINARY_TO_TEXT_OPTION_NO_HEADER | SPV_BINARY_TO_TEXT_OPTION_INDENT |
                     SPV_BINARY_TO_TEXT_OPTION_FRIENDLY_NAMES;
  if (!tools.Disassemble(words.data(), words.size(), &text, options))
    return failure();
  return text;
}
