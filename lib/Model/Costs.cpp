//===- Costs.cpp - What instructions cost ---------------------------------===//
//
// Instructions of PTX and SPIR-V are not those that a GPU runs. These rules say how many it runs
// for one: docs/model.md has them as a table.
//
//===----------------------------------------------------------------------===//

#include "Code.h"

#include <algorithm>
#include <cstdlib>

using namespace weir;
using namespace weir::model;
using namespace weir::spv;

static Work makeWork(Pipe pipe, double count, double flops = 0) {
  Work work;
  work.issue = count;
  work.pipes[size_t(pipe)] = count;
  work.flops = flops;
  return work;
}

/// Instructions of the fma pipe for functions that are made of several.
static constexpr double exactDivision = 9, exactRoot = 8, exactReciprocal = 6, division64 = 20;

/// Returns the flops of one "m16n8k16".
static double getMatrixFlops(const std::string &name) {
  size_t at = name.find(".m");
  if (at == std::string::npos)
    return 0;
  char *end = nullptr;
  double m = double(std::strtol(name.c_str() + at + 2, &end, 10));
  double n = *end == 'n' ? double(std::strtol(end + 1, &end, 10)) : 0;
  double k = *end == 'k' ? double(std::strtol(end + 1, &end, 10)) : 0;
  return 2 * m * n * k;
}

/// Returns the cost of an instruction of PTX that keeps its name.
static Work getNamedWork(const std::string &full, Pipe &waits) {
  std::string name = full.substr(0, full.find('|'));
  if (name != full)
    return {}; // a second result of one that is counted already
  auto has = [&](const char *part) {
    return ("." + name + ".").find(std::string(".") + part + ".") != std::string::npos;
  };
  std::string op = name.substr(0, name.find('.'));
  auto is = [&](std::initializer_list<const char *> names) {
    return std::find(names.begin(), names.end(), op) != names.end();
  };
  auto wait = [&](Pipe pipe) { return waits = pipe; };
  if (name.starts_with("%") || name.starts_with("ld.param") || name.starts_with("ldmatrix"))
    return {};
  if (op == "mma") {
    Work work = makeWork(wait(Pipe::Matrix), 1);
    (has("tf32") ? work.tf32Flops : work.matrixFlops) = getMatrixFlops(name);
    return work;
  }
  if (is({"shfl", "vote", "match", "redux", "activemask", "elect", "movmatrix"}))
    return makeWork(wait(Pipe::Shuffle), 1);
  const bool isDouble = has("f64");
  const double flops = op == "fma" ? 2 : is({"add", "sub", "mul", "div"}) ? 1 : 0;
  if (op == "cvt")
    return makeWork(wait(isDouble ? Pipe::Fma64 : Pipe::Special), 1);
  if (isDouble)
    return makeWork(wait(Pipe::Fma64), is({"div", "sqrt", "rcp", "rsqrt"}) ? division64 : 1, flops);
  const bool isApproximate = has("approx") || has("full");
  if (is({"div", "rcp", "sqrt", "rsqrt", "sin", "cos", "lg2", "ex2", "tanh"})) {
    Work work = makeWork(wait(Pipe::Special), 1, flops);
    double more = isApproximate || is({"ex2", "lg2", "sin", "cos", "tanh", "rsqrt"})
                      ? (op == "div" ? 1 : 0)
                  : op == "div"  ? exactDivision
                  : op == "sqrt" ? exactRoot
                                 : exactReciprocal;
    work.add(makeWork(Pipe::Fma, more), 1);
    return work;
  }
  const bool isFloat = has("f32") || has("f16") || has("bf16") || has("f16x2") || has("bf16x2");
  const bool isPair = has("f16x2") || has("bf16x2");
  if (has("f32x2")) // two of f32, before sm_100
    return makeWork(wait(Pipe::Fma), 2, 2 * flops);
  if (isFloat && is({"fma", "add", "sub", "mul"}))
    return makeWork(wait(Pipe::Fma), 1, isPair ? 2 * flops : flops);
  return makeWork(wait(Pipe::Integer), 1);
}

/// Returns the cost of a function of GLSL.std.450.
static Work getGlslWork(Glsl function, uint32_t width, Pipe &waits) {
  switch (function) {
  case Glsl::Fma:
    return makeWork(waits = width == 64 ? Pipe::Fma64 : Pipe::Fma, 1, 2);
  case Glsl::Sqrt:
  case Glsl::InverseSqrt:
  case Glsl::Exp2:
  case Glsl::Log2:
  case Glsl::Sin:
  case Glsl::Cos:
    return makeWork(waits = Pipe::Special, 1);
  case Glsl::Exp:
  case Glsl::Log: {
    Work work = makeWork(waits = Pipe::Special, 1);
    work.add(makeWork(Pipe::Fma, 1), 1);
    return work;
  }
  default:
    return makeWork(waits = Pipe::Integer, 1);
  }
}

static Work getSpirvWork(const Module &module, const Instruction &instruction, uint32_t width,
                         Pipe &waits) {
  const Pipe floats = width == 64 ? Pipe::Fma64 : Pipe::Fma;
  switch (instruction.op) {
  case Op::FAdd:
  case Op::FSub:
  case Op::FMul:
  case Op::VectorTimesScalar:
    return makeWork(waits = floats, 1, 1);
  case Op::FDiv:
  case Op::FRem:
  case Op::FMod: {
    if (width == 64)
      return makeWork(waits = floats, division64, 1);
    Work work = makeWork(waits = Pipe::Special, 1, 1);
    work.add(makeWork(Pipe::Fma, exactDivision), 1);
    return work;
  }
  case Op::ConvertFToU:
  case Op::ConvertFToS:
  case Op::ConvertSToF:
  case Op::ConvertUToF:
  case Op::FConvert:
    return makeWork(waits = Pipe::Special, 1);
  case Op::ExtInst:
    return getGlslWork(Glsl(instruction.operands[1]), width, waits);
  // An address is part of the access, and 32-bit factors are multiplied to 64 bits as they are.
  case Op::IAdd:
  case Op::ISub: {
    bool hasConstant = module.findConstant(instruction.operands[0]) ||
                       module.findConstant(instruction.operands[1]);
    return makeWork(waits = Pipe::Integer, width == 64 && !hasConstant ? 2 : 1);
  }
  case Op::UDiv:
  case Op::SDiv:
  case Op::UMod:
  case Op::SRem:
  case Op::SMod:
    return makeWork(waits = Pipe::Integer, module.findConstant(instruction.operands[1]) ? 4 : 20);
  default:
    return makeWork(waits = Pipe::Integer, 1);
  }
}

Work model::getWork(const Module &module, const Instruction &instruction, uint32_t parts,
                    Pipe &waits) {
  switch (instruction.op) {
  // These name, hold or regroup numbers, and take no instruction.
  case Op::Nop:
  case Op::Line:
  case Op::NoLine:
  case Op::LoopMerge:
  case Op::SelectionMerge:
  case Op::Phi:
  case Op::Undef:
  case Op::Variable:
  case Op::CompositeConstruct:
  case Op::CompositeExtract:
  case Op::CompositeInsert:
  case Op::VectorShuffle:
  case Op::CopyObject:
  case Op::UConvert:
  case Op::SConvert:
  case Op::ConvertPtrToU:
  case Op::ConvertUToPtr:
  case Op::Bitcast:
  case Op::MemoryBarrier:
    return {};
  case Op::AccessChain:
  case Op::InBoundsAccessChain:
    return makeWork(Pipe::Integer, instruction.operands.size() > 1 ? 1 : 0);
  case Op::GroupMatrix: {
    // A quarter: four subgroups make a product together.
    const std::string &name = module.getString(instruction.operands[2]);
    Work work = makeWork(Pipe::Matrix, 1);
    const bool isTf32 = name.find(".tf32") != std::string::npos;
    (isTf32 ? work.tf32Flops : work.matrixFlops) =
        getMatrixFlops(name.substr(name.find(".m64"))) / 4;
    return work;
  }
  case Op::CooperativeMatrixMulAddKHR: {
    const Type &sums = module.getType(instruction.type),
               &left = module.getType(module.getTypeOf(instruction.operands[0]));
    Work work = makeWork(waits = Pipe::Matrix, 1);
    work.matrixFlops = 2.0 * sums.rows * sums.columns * left.columns;
    return work;
  }
  case Op::Load:
  case Op::Store:
  case Op::CooperativeMatrixLoadKHR:
  case Op::CooperativeMatrixStoreKHR:
  case Op::CopyAsync:
  case Op::CopyTile:
  case Op::MBarrierInit:
  case Op::MBarrierExpect:
  case Op::MBarrierWait:
  case Op::ControlBarrier:
  case Op::NamedEffect:
    return makeWork(Pipe::None, 1);
  case Op::Named:
    return getNamedWork(module.getString(instruction.operands[0]), waits);
  default:
    break;
  }
  if (getKind(instruction.op) == OpKind::Atomic)
    return makeWork(Pipe::None, 1);
  if (getKind(instruction.op) == OpKind::Shuffle)
    return makeWork(waits = Pipe::Shuffle, parts);
  if (getKind(instruction.op) == OpKind::Reduction)
    return makeWork(waits = Pipe::Shuffle, 5 * parts, 5); // a tree of 32 lanes
  uint32_t width = 32;
  if (instruction.type) {
    const Type *type = &module.getType(instruction.type);
    if (type->kind == Type::Kind::Vector)
      type = &module.getType(type->element);
    width = type->width;
  }
  Work one = getSpirvWork(module, instruction, width, waits), all;
  all.add(one, parts);
  return all;
}
