//===- Cooperative.cpp - Matrices that subgroups load and store -----------===//
//
// All invocations of a subgroup make such an access together. SPIR-V does not say which of them
// touches which element, so that each counts as one that may touch any.
//
//===----------------------------------------------------------------------===//

#include "Walk.h"

#include <algorithm>

using namespace weir::spv;

bool weir::spv::isPrivateAccess(const Instruction &instruction) {
  size_t operand;
  switch (instruction.op) {
  case Op::Load:
    operand = 1;
    break;
  case Op::Store:
    operand = 2;
    break;
  case Op::CooperativeMatrixLoadKHR:
    operand = 3;
    break;
  case Op::CooperativeMatrixStoreKHR:
    operand = 4;
    break;
  default:
    return false;
  }
  return instruction.operands.size() <= operand ||
         !(instruction.operands[operand] & MemoryOperand::NonPrivatePointer);
}

/// Whether a sum is the same for all invocations of a subgroup, in one trip of all loops.
static bool isSameInSubgroup(const Atoms &atoms, const Affine &sum) {
  return std::all_of(sum.terms.begin(), sum.terms.end(), [&](auto term) {
    const Atom &atom = atoms[term.first];
    return atom.kind == Atom::Kind::Workgroup || atom.kind == Atom::Kind::Subgroup ||
           atom.kind == Atom::Kind::Trip ||
           (atom.kind == Atom::Kind::Digit && isSameInSubgroup(atoms, atom.of));
  });
}

/// Records an access to a matrix by the invocations of a subgroup: what it surely touches, its
/// first line and its last one, and all between them, which it may touch.
void Walk::recordMatrix(const Instruction &instruction, const Context &context) {
  const bool isStore = instruction.op == Op::CooperativeMatrixStoreKHR;
  const std::span<const uint32_t> operands = instruction.operands;
  const size_t layoutAt = isStore ? 2 : 1, strideAt = layoutAt + 1;
  const Type &matrix = module.getType(isStore ? module.getTypeOf(operands[1]) : instruction.type);
  const size_t first = map.accesses.size();
  record(instruction, operands[0], !isStore, isStore, context);
  std::optional<int64_t> layout = getConstant(operands[layoutAt]), stride;
  if (operands.size() > strideAt)
    stride = getConstant(operands[strideAt]);
  const Type &pointee = module.getType(module.getType(module.getTypeOf(operands[0])).element);
  const bool isScalar = pointee.kind == Type::Kind::Int || pointee.kind == Type::Kind::Float;
  const bool isKnown = matrix.kind == Type::Kind::CooperativeMatrix && isScalar &&
                       module.getType(matrix.element).bytes == pointee.bytes && layout &&
                       *layout <= int64_t(CooperativeLayout::ColumnMajor) && stride &&
                       *stride < (int64_t(1) << 32);
  auto isOfSubgroup = [&](const Affine &sum) { return isSameInSubgroup(map.atoms, sum); };
  std::vector<MemoryAccess> parts;
  for (size_t i = first; i < map.accesses.size(); ++i) {
    MemoryAccess &access = map.accesses[i];
    access.isCooperative = true;
    if (!isKnown || !access.address || !isOfSubgroup(*access.address) ||
        !std::all_of(access.guards.begin(), access.guards.end(), isOfSubgroup))
      throw Lost{"the invocations of a subgroup may not agree on a matrix that they access"};
    const bool areRows = CooperativeLayout(*layout) == CooperativeLayout::RowMajor;
    const int64_t lines = areRows ? matrix.rows : matrix.columns,
                  length = areRows ? matrix.columns : matrix.rows;
    const int64_t reach = (lines - 1) * *stride * pointee.bytes;
    access.bytes = length * pointee.bytes;
    MemoryAccess last = access, whole = access;
    last.address = *access.address + Affine::of(reach);
    whole.bytes += reach;
    whole.isCertain = false;
    if (access.root == MemoryAccess::Root::Shared && !staysInVariable(whole)) {
      // Lines that are too far apart lead from one variable to any other.
      whole.address.reset();
      for (const Variable &variable : module.getVariables())
        if (variable.storage == StorageClass::Workgroup && variable.id != access.binding) {
          parts.push_back(whole);
          parts.back().binding = variable.id;
        }
    }
    parts.push_back(std::move(last));
    parts.push_back(std::move(whole));
  }
  map.accesses.insert(map.accesses.end(), parts.begin(), parts.end());
}
