//===- Matrix.cpp - Matrices in the registers of a warp -------------------===//
//
// The places of elements are those of the PTX ISA, "Matrix multiply-accumulate operation using
// mma instruction": lane = 4 * group + part. The ISA leaves the order and rounding of an element's
// sum open; here it begins with the accumulator and takes one product after the other, each with
// one rounding to f32.
//
//===----------------------------------------------------------------------===//

#include "Decoder.h"
#include "Machine.h"

#include <bit>
#include <cmath>

using namespace weir;
using namespace weir::sim;
using namespace weir::spv;

static constexpr uint32_t numRows = 16, numColumns = 8, maxTerms = 16;

//===----------------------------------------------------------------------===//
// Decoding
//===----------------------------------------------------------------------===//

/// Returns the number of matrices that an instruction loads, 0 if it is unknown.
static uint32_t countMatrices(const std::string &name) {
  if (!name.starts_with("ldmatrix.sync.aligned.m8n8."))
    return 0;
  for (auto [part, count] : {std::pair(".x1.", 1u), {".x2.", 2u}, {".x4.", 4u}})
    if (name.find(part) != name.npos)
      return count;
  return 0;
}

/// Finds the loads of rows of matrices: only as many lanes load as there are rows.
void Decoder::findMatrices(const Function &function) {
  for (const Block &block : function.blocks)
    for (const Instruction &instruction : block.instructions)
      if (instruction.op == Op::Named && instruction.operands.size() == 2)
        if (uint32_t count = countMatrices(module.getString(instruction.operands[0])))
          matrixRows[instruction.operands[1]] = ~0u >> (32 - 8 * count);
}

/// Decodes mma, and the exchange of rows that ldmatrix has loaded.
void Decoder::decodeMatrix(const Instruction &instruction, const std::string &full) {
  Matrix matrix;
  matrix.source = instruction.source;
  matrix.name = full.substr(0, full.find('|'));
  const std::string &name = matrix.name;
  size_t count = 4, results = 1;
  if (uint32_t matrices = countMatrices(name)) {
    matrix.number = uint32_t(std::stoul(full.substr(full.find('|') + 1)));
    need(instruction, matrix.number < matrices, "has another number of results");
    matrix.isTransposed = name.find(".trans.") != name.npos;
  } else {
    struct Known {
      const char *shape, *type;
      Matrix::Type kind;
      uint32_t depth;
    };
    static constexpr Known known[] = {
        {"m16n8k16", "f16", Matrix::Type::Half, 16},   {"m16n8k8", "f16", Matrix::Type::Half, 8},
        {"m16n8k16", "bf16", Matrix::Type::BHalf, 16}, {"m16n8k8", "bf16", Matrix::Type::BHalf, 8},
        {"m16n8k8", "tf32", Matrix::Type::Tf32, 8},    {"m16n8k4", "tf32", Matrix::Type::Tf32, 4}};
    for (const Known &each : known)
      if (name == std::string("mma.sync.aligned.") + each.shape + ".row.col.f32." + each.type +
                      "." + each.type + ".f32") {
        matrix.type = each.kind;
        matrix.depth = each.depth;
      }
    need(instruction, matrix.depth > 0, "is not supported by the simulator");
    matrix.isProduct = true;
    // Two numbers of 16 bits a register, or one of 32.
    const uint32_t perRegister = matrix.type == Matrix::Type::Tf32 ? 1 : 2;
    count = (numRows + numColumns) * matrix.depth / perRegister / warpLanes + 4;
    results = 4;
  }
  for (size_t i = 1; i < instruction.operands.size(); ++i) {
    const Value &value = use(instruction, i);
    for (const Scalar &scalar : getScalars(value.type))
      need(instruction, scalar.width == 32, "has operands that are not of 32 bits");
    matrix.operands.insert(matrix.operands.end(), value.scalars.begin(), value.scalars.end());
  }
  need(instruction,
       matrix.operands.size() == count && getScalars(instruction.type).size() == results,
       "has more or fewer registers than its shape needs");
  for (size_t i = 0; i < results; ++i)
    matrix.results.push_back(makeRegister(false));
  define(instruction, matrix.results);
  emit(getMatrixStep(), 0, 0, 0, 0, int64_t(program.matrices.size()));
  program.matrices.push_back(std::move(matrix));
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

/// Passes the words of rows round: lane 8 * n + r has row r of matrix n.
static void exchangeRows(Subgroup &subgroup, const Matrix &matrix) {
  auto *to = subgroup.at<uint32_t>(matrix.results[0]);
  const uint32_t first = 8 * matrix.number;
  auto getElement = [&](uint32_t row, uint32_t column) {
    return subgroup.at<uint32_t>(matrix.operands[column / 2])[first + row] >> 16 * (column % 2) &
           0xffff;
  };
  subgroup.forEachLane([&](uint32_t lane) {
    const uint32_t group = lane / 4, part = lane % 4 * 2;
    to[lane] = matrix.isTransposed ? getElement(part, group) | getElement(part + 1, group) << 16
                                   : getElement(group, part) | getElement(group, part + 1) << 16;
  });
}

static float getNumber(Matrix::Type type, uint32_t bits) {
  switch (type) {
  case Matrix::Type::Half:
    return float(std::bit_cast<_Float16>(uint16_t(bits)));
  case Matrix::Type::BHalf:
    return std::bit_cast<float>(bits << 16);
  case Matrix::Type::Tf32: // the low bits are ignored
    return std::bit_cast<float>(bits & ~0x1fffu);
  }
  return 0;
}

static void multiply(Subgroup &subgroup, const Matrix &matrix) {
  const bool isWide = matrix.type == Matrix::Type::Tf32;
  float a[numRows][maxTerms], b[maxTerms][numColumns];
  const uint32_t step = isWide ? 4 : 8; // of the depth, from one register to the next
  const uint32_t parts = matrix.depth / step;
  subgroup.forEachLane([&](uint32_t lane) {
    const uint32_t group = lane / 4, part = lane % 4;
    for (uint32_t i = 0; i < parts; ++i)
      for (uint32_t half = 0; half < (isWide ? 1 : 2); ++half) {
        const uint32_t k = i * step + (isWide ? part : 2 * part + half);
        auto get = [&](size_t number) {
          uint32_t bits = subgroup.at<uint32_t>(matrix.operands[number])[lane];
          return getNumber(matrix.type, isWide ? bits : bits >> 16 * half & 0xffff);
        };
        a[group][k] = get(2 * i);
        a[group + 8][k] = get(2 * i + 1);
        b[k][group] = get(2 * parts + i);
      }
  });
  subgroup.forEachLane([&](uint32_t lane) {
    const uint32_t group = lane / 4, part = lane % 4;
    for (uint32_t i = 0; i < 4; ++i) {
      const uint32_t row = group + i / 2 * 8, column = 2 * part + i % 2;
      float sum = subgroup.at<float>(matrix.operands[3 * parts + i])[lane];
      for (uint32_t k = 0; k < matrix.depth; ++k)
        sum = std::fma(a[row][k], b[k][column], sum);
      subgroup.at<float>(matrix.results[i])[lane] =
          sum == sum ? sum : std::bit_cast<float>(0x7fffffffu);
    }
  });
}

static void runMatrix(Subgroup &subgroup, const Step &step) {
  const Matrix &matrix = subgroup.program.matrices[size_t(step.number)];
  if (!subgroup.gather(noRegister, nullptr))
    return;
  if (subgroup.mask != ~0u)
    return subgroup.workgroup->reportInactive(matrix.source, subgroup,
                                              uint32_t(std::countr_zero(subgroup.mask)));
  if (matrix.isProduct)
    multiply(subgroup, matrix);
  else
    exchangeRows(subgroup, matrix);
  subgroup.halve();
}

StepFunction sim::getMatrixStep() { return runMatrix; }
