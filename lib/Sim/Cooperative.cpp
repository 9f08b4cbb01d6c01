//===- Cooperative.cpp - Matrices that the invocations of a subgroup share -===//
//
// SPIR-V leaves it to the device which invocation has which element, and in what order the products
// of an element are added. Here, elements are numbered row by row: of 32 lanes, lane i has elements
// i, i + 32...; of an accumulator, lane 31 - i has them. So what one kind leaves in memory no other
// kind, and no invocation by its own number, finds there without a barrier. A sum begins with the
// accumulator and takes one product after the other, each with one rounding to f32.
//
//===----------------------------------------------------------------------===//

#include "Decoder.h"
#include "Machine.h"

#include <bit>
#include <cmath>
#include <numeric>

using namespace weir;
using namespace weir::sim;
using namespace weir::spv;

//===----------------------------------------------------------------------===//
// Decoding
//===----------------------------------------------------------------------===//

/// Adds the scalars of a matrix that each lane has.
void Decoder::collectElements(Id id, int64_t offset, std::vector<Scalar> &scalars) const {
  const Type &type = module.getType(id), &element = module.getType(type.element);
  const uint32_t count = type.rows * type.columns;
  if (count % options.subgroupSize || scalars.size() + count / options.subgroupSize > maxScalars)
    throw Error(where + ": a cooperative matrix has " + std::to_string(count) +
                " elements, which subgroups of " + std::to_string(options.subgroupSize) +
                " invocations don't share evenly");
  for (uint32_t i = 0; i < count / options.subgroupSize; ++i)
    scalars.push_back({element.kind, element.width, offset + i * element.bytes});
}

/// Checks that other invocations may see what an access touches.
void Decoder::checkVisible(const Instruction &instruction, const PointerTarget &target,
                           size_t memoryOperand) const {
  if (!module.hasVulkanMemoryModel() || target.isInput || target.space == Space::Private)
    return;
  need(instruction,
       instruction.operands.size() > memoryOperand &&
           instruction.operands[memoryOperand] & MemoryOperand::NonPrivatePointer,
       "is private to its invocation, which the simulator does not support");
}

/// Emits a check that all lanes execute the instruction, with one value of a register.
void Decoder::needSubgroup(const Instruction &instruction, Register uniform) {
  CooperativeStep step;
  step.uniform = uniform;
  step.source = instruction.source;
  emit(getCooperativeStep(), 0, 0, 0, 0, int64_t(program.cooperatives.size()));
  program.cooperatives.push_back(std::move(step));
}

void Decoder::decodeCooperativeAccess(const Instruction &instruction) {
  const bool isWrite = instruction.op == Op::CooperativeMatrixStoreKHR;
  const size_t layoutAt = isWrite ? 2 : 1;
  PointerTarget target = getTarget(instruction, instruction.operands[0]);
  checkVisible(instruction, target, layoutAt + 2);
  Value value;
  if (isWrite)
    value = use(instruction, 1);
  else
    values[instruction.result] = value = makeValue(instruction.type);
  const Type &matrix = module.getType(value.type), &pointee = module.getType(target.type);
  need(instruction, matrix.kind == Type::Kind::CooperativeMatrix, "is of another type");
  const int64_t bytes = module.getType(matrix.element).bytes;
  need(instruction,
       (pointee.kind == Type::Kind::Int || pointee.kind == Type::Kind::Float) &&
           pointee.bytes == bytes && !target.isInput && target.space != Space::Private,
       "points to something other than elements of the matrix's size in a buffer or workgroup "
       "memory");
  const uint32_t layout = useConstant(instruction, layoutAt);
  need(instruction, layout <= uint32_t(CooperativeLayout::ColumnMajor),
       "has a layout that the simulator does not support");
  need(instruction,
       instruction.operands.size() > layoutAt + 1 &&
           module.findConstant(instruction.operands[layoutAt + 1]),
       "has a stride that is no constant, which the simulator does not support");
  const int64_t stride = useConstant(instruction, layoutAt + 1);
  needSubgroup(instruction, target.dynamic);

  auto getNumber = [&](uint32_t bits) {
    Register to = makeRegister(false);
    preset(to, {Type::Kind::Int, 32, 0}, bits);
    return to;
  };
  Register lane = getBuiltIn(BuiltIn::SubgroupLocalInvocationId);
  if (matrix.use == CooperativeUse::Accumulator)
    lane = computeU32(Op::ISub, getNumber(options.subgroupSize - 1), lane);
  if (target.dynamic == noRegister) {
    target.dynamic = makeRegister(true);
    preset(target.dynamic, {Type::Kind::Int, 64, 0}, 0);
  }
  const bool areRows = CooperativeLayout(layout) == CooperativeLayout::RowMajor;
  const Register base = target.dynamic, columns = getNumber(matrix.columns);
  target.stride = std::gcd(target.stride, bytes);
  for (size_t i = 0; i < value.scalars.size(); ++i) {
    Register number = computeU32(Op::IAdd, lane, getNumber(uint32_t(i) * options.subgroupSize));
    Register row = computeU32(Op::UDiv, number, columns),
             column = computeU32(Op::UMod, number, columns);
    Register line = makeRegister(true), at = makeRegister(true);
    emit(getStep(Convert::Index32), line, base, areRows ? row : column, 0, stride * bytes);
    emit(getStep(Convert::Index32), at, line, areRows ? column : row, 0, bytes);
    target.dynamic = at;
    AccessSite access = makeAccess(instruction, target);
    access.isRead = !isWrite;
    access.isWrite = isWrite;
    access.scalars[0].value = value.scalars[i];
    emit(getAccessStep(), 0, 0, 0, 0,
         addAccess(instruction, std::move(access), instruction.operands[0]));
  }
}

void Decoder::decodeCooperativeProduct(const Instruction &instruction) {
  const Value &a = use(instruction, 0), &b = use(instruction, 1),
              &c = useAs(instruction, 2, instruction.type);
  const Type &left = module.getType(a.type), &right = module.getType(b.type),
             &sums = module.getType(c.type);
  auto is = [&](const Type &type, CooperativeUse use, uint32_t width) {
    return type.kind == Type::Kind::CooperativeMatrix && type.use == use &&
           module.getType(type.element).kind == Type::Kind::Float &&
           module.getType(type.element).width == width;
  };
  need(instruction,
       is(left, CooperativeUse::MatrixA, 16) && is(right, CooperativeUse::MatrixB, 16) &&
           is(sums, CooperativeUse::Accumulator, 32) && instruction.operands.size() == 3,
       "has other types than f16 for factors and f32 for sums, which the simulator does not "
       "support");
  need(instruction,
       left.rows == sums.rows && right.columns == sums.columns && left.columns == right.rows,
       "has matrices of shapes that don't fit");
  CooperativeStep step;
  step.isProduct = true;
  step.rows = sums.rows;
  step.columns = sums.columns;
  step.depth = left.columns;
  step.a = a.scalars;
  step.b = b.scalars;
  step.c = c.scalars;
  step.source = instruction.source;
  step.results = makeValue(instruction.type).scalars;
  define(instruction, step.results);
  emit(getCooperativeStep(), 0, 0, 0, 0, int64_t(program.cooperatives.size()));
  program.cooperatives.push_back(std::move(step));
}

/// Makes a matrix of equal elements.
void Decoder::decodeCooperativeSplat(const Instruction &instruction) {
  need(instruction, instruction.operands.size() == 1, "has more than one element for a matrix");
  const Value &element = useAs(instruction, 0, module.getType(instruction.type).element);
  define(instruction,
         std::vector<Register>(getScalars(instruction.type).size(), element.scalars[0]));
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

static void multiply(Subgroup &subgroup, const CooperativeStep &step) {
  const uint32_t lanes = subgroup.program.subgroupSize;
  auto getHalf = [&](const std::vector<Register> &matrix, uint32_t number) {
    uint32_t bits = subgroup.at<uint32_t>(matrix[number / lanes])[number % lanes];
    return float(std::bit_cast<_Float16>(uint16_t(bits)));
  };
  for (uint32_t row = 0; row < step.rows; ++row)
    for (uint32_t column = 0; column < step.columns; ++column) {
      const uint32_t number = row * step.columns + column;
      const uint32_t lane = lanes - 1 - number % lanes;
      float sum = subgroup.at<float>(step.c[number / lanes])[lane];
      for (uint32_t k = 0; k < step.depth; ++k)
        sum = std::fma(getHalf(step.a, row * step.depth + k),
                       getHalf(step.b, k * step.columns + column), sum);
      subgroup.at<float>(step.results[number / lanes])[lane] = sum;
    }
}

static void runCooperative(Subgroup &subgroup, const Step &step) {
  const CooperativeStep &cooperative = subgroup.program.cooperatives[size_t(step.number)];
  const uint32_t lanes = subgroup.program.subgroupSize;
  const Mask all = lanes == maxLanes ? ~Mask(0) : (Mask(1) << lanes) - 1;
  auto report = [&](uint32_t lane) {
    subgroup.workgroup->reportInactive(cooperative.source, subgroup, lane);
  };
  if (subgroup.mask != all)
    return report(uint32_t(std::countr_zero(subgroup.mask)));
  if (cooperative.uniform != noRegister) {
    const auto *values = subgroup.at<int64_t>(cooperative.uniform);
    for (uint32_t lane = 1; lane < lanes; ++lane)
      if (values[lane] != values[0])
        return report(lane);
  }
  if (cooperative.isProduct)
    multiply(subgroup, cooperative);
}

StepFunction sim::getCooperativeStep() { return runCooperative; }
