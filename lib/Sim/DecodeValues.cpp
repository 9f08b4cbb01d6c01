//===- DecodeValues.cpp - Instructions that make values of values ---------===//

#include "Decoder.h"

#include <algorithm>
#include <map>
#include <optional>

using namespace weir;
using namespace weir::sim;
using namespace weir::spv;

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

Step &Decoder::emit(StepFunction run, Register to, Register a, Register b, Register c,
                    int64_t number) {
  return program.steps.emplace_back(Step{run, to, a, b, c, number});
}

Register Decoder::convert(Convert kind, bool isWide, Register a, int64_t number) {
  Register to = makeRegister(isWide);
  emit(getStep(kind), to, a, 0, 0, number);
  return to;
}

/// Extends a value of fewer than 32 bits for arithmetic.
Register Decoder::widen(const Scalar &scalar, Register value, bool isSigned, bool toDouble) {
  if (!scalar.isNarrow() || scalar.kind == Type::Kind::Bool)
    return value;
  if (scalar.kind == Type::Kind::Float)
    return convert(toDouble ? Convert::HalfToF64 : Convert::HalfToF32, toDouble, value);
  return isSigned ? convert(Convert::SignExtend, false, value, scalar.width) : value;
}

/// Converts the result of arithmetic back to its short type.
Register Decoder::narrow(const Scalar &scalar, Register value, bool isDouble) {
  if (!scalar.isNarrow() || scalar.kind == Type::Kind::Bool)
    return value;
  if (scalar.kind == Type::Kind::Float)
    return convert(isDouble ? Convert::F64ToHalf : Convert::F32ToHalf, false, value);
  return convert(Convert::Mask, false, value, scalar.width);
}

static Number getNumber(const Scalar &scalar, bool halfAsDouble) {
  if (scalar.kind == Type::Kind::Float)
    return scalar.isWide() || (scalar.isNarrow() && halfAsDouble) ? Number::F64 : Number::F32;
  return scalar.isWide() ? Number::U64 : Number::U32;
}

/// Emits one scalar of an operation whose operands all have one type.
template <typename Opcode>
Register Decoder::compute(const Instruction &instruction, Opcode op, const Scalar &result,
                          const Scalar &operand, std::span<const Register> operands,
                          bool isSigned) {
  // A product of halves plus a half fits a double, so an fma is rounded only once.
  bool asDouble = false;
  if constexpr (std::is_same_v<Opcode, Glsl>)
    asDouble = op == Glsl::Fma && operand.isNarrow();
  StepFunction run = findStep(op, getNumber(operand, asDouble));
  need(instruction, run, "has operands that the simulator does not support for it");
  Register wide[3] = {0, 0, 0};
  for (size_t i = 0; i < operands.size(); ++i)
    wide[i] = widen(operand, operands[i], isSigned, asDouble);
  bool isFloat = result.kind == Type::Kind::Float;
  Register to = makeRegister(result.isWide() || (isFloat && result.isNarrow() && asDouble));
  emit(run, to, wide[0], wide[1], wide[2]);
  return narrow(result, to, asDouble);
}

//===----------------------------------------------------------------------===//
// Instructions
//===----------------------------------------------------------------------===//

/// Whether an operation treats integers as signed.
static bool isSigned(Op op) {
  switch (op) {
  case Op::SDiv:
  case Op::SRem:
  case Op::SMod:
  case Op::ShiftRightArithmetic:
  case Op::SLessThan:
  case Op::SLessThanEqual:
  case Op::SGreaterThan:
  case Op::SGreaterThanEqual:
    return true;
  default:
    return false;
  }
}

static bool isSigned(Glsl op) {
  switch (op) {
  case Glsl::SAbs:
  case Glsl::SSign:
  case Glsl::SMin:
  case Glsl::SMax:
  case Glsl::SClamp:
  case Glsl::FindSMsb:
    return true;
  default:
    return false;
  }
}

static bool isSame(const Scalar &a, const Scalar &b) {
  return a.kind == b.kind && a.width == b.width;
}

static bool isKnown(Op op) {
  for (Number number : {Number::U32, Number::U64, Number::F32, Number::F64})
    if (findStep(op, number))
      return true;
  return false;
}

static bool isComparison(Op op) {
  return (op >= Op::IEqual && op <= Op::FUnordGreaterThanEqual) || op == Op::IsNan ||
         op == Op::IsInf;
}

static bool isLogical(Op op) { return op >= Op::LogicalEqual && op <= Op::LogicalNot; }

static bool isShift(Op op) { return op >= Op::ShiftRightLogical && op <= Op::ShiftLeftLogical; }

/// Decodes operations that work scalar by scalar on operands of one type.
void Decoder::decodeArithmetic(const Instruction &instruction) {
  bool isProduct = instruction.op == Op::VectorTimesScalar;
  Op op = isProduct ? Op::FMul : instruction.op;
  size_t count = instruction.operands.size();
  need(instruction, isKnown(op) && count == findOpInfo(uint32_t(op))->words,
       "is not supported by the simulator");
  const std::vector<Scalar> results = getScalars(instruction.type);
  std::vector<Register> made;
  for (size_t i = 0; i < results.size(); ++i) {
    std::vector<Register> scalars;
    Scalar first;
    for (size_t k = 0; k < count; ++k) {
      const Value &operand = use(instruction, k);
      const std::vector<Scalar> &types = getScalars(operand.type);
      bool isFactor = isProduct && k == 1;
      need(instruction, types.size() == (isFactor ? 1 : results.size()),
           "has operands and results of different sizes");
      const Scalar &type = types[isFactor ? 0 : i];
      Register scalar = operand.scalars[isFactor ? 0 : i];
      if (k == 0) {
        first = type;
      } else if (isShift(op)) {
        need(instruction, type.kind == Type::Kind::Int, "shifts by a value that is not an integer");
        if (type.isWide() != first.isWide())
          scalar = convert(first.isWide() ? Convert::U32ToU64 : Convert::U64ToU32, first.isWide(),
                           scalar);
      } else {
        need(instruction, isSame(type, first), "has operands of different types");
      }
      scalars.push_back(scalar);
    }
    bool makesBool = results[i].kind == Type::Kind::Bool;
    bool takesBool = first.kind == Type::Kind::Bool;
    need(instruction,
         takesBool == isLogical(op) && makesBool == (takesBool || isComparison(op)) &&
             (makesBool || isSame(first, results[i])),
         "has operands or a result of a type that it does not take");
    need(instruction, op != Op::BitReverse || !first.isNarrow(),
         "of fewer than 32 bits is not supported by the simulator");
    made.push_back(compute(instruction, op, results[i], first, scalars, isSigned(op)));
  }
  define(instruction, std::move(made));
}

void Decoder::decodeExtended(const Instruction &instruction) {
  const std::string &set = module.getInstructionSet(instruction.operands[0]);
  need(instruction, set == "GLSL.std.450", "is of a set that the simulator does not support");
  auto op = Glsl(instruction.operands[1]);
  size_t count = instruction.operands.size() - 2;
  const std::vector<Scalar> results = getScalars(instruction.type);
  static const std::map<Glsl, size_t> counts = {
      {Glsl::Atan2, 2},  {Glsl::Pow, 2},    {Glsl::FMin, 2},   {Glsl::FMax, 2},
      {Glsl::NMin, 2},   {Glsl::NMax, 2},   {Glsl::UMin, 2},   {Glsl::UMax, 2},
      {Glsl::SMin, 2},   {Glsl::SMax, 2},   {Glsl::FClamp, 3}, {Glsl::NClamp, 3},
      {Glsl::UClamp, 3}, {Glsl::SClamp, 3}, {Glsl::FMix, 3},   {Glsl::Fma, 3}};
  auto expected = counts.find(op);
  std::vector<Register> made;
  for (size_t i = 0; i < results.size(); ++i) {
    const Scalar &type = results[i];
    if (type.kind == Type::Kind::Bool || !findStep(op, getNumber(type, false)) ||
        count != (expected == counts.end() ? 1 : expected->second))
      fail(instruction, "of GLSL.std.450's instruction " + std::to_string(uint32_t(op)) +
                            " is not supported by the simulator for such operands");
    std::vector<Register> scalars;
    for (size_t k = 0; k < count; ++k) {
      const Value &operand = use(instruction, k + 2);
      const std::vector<Scalar> &types = getScalars(operand.type);
      need(instruction, types.size() == results.size() && isSame(types[i], type),
           "has operands of another type than its result");
      scalars.push_back(operand.scalars[i]);
    }
    if (op == Glsl::Fma && !options.fusesFma) {
      Register factors[] = {scalars[0], scalars[1]};
      Register terms[] = {compute(instruction, Op::FMul, type, type, factors, false), scalars[2]};
      made.push_back(compute(instruction, Op::FAdd, type, type, terms, false));
      continue;
    }
    made.push_back(compute(instruction, op, type, type, scalars, isSigned(op)));
  }
  define(instruction, std::move(made));
}

/// Decodes operations whose result is a struct of the low part and the carry or the high part.
void Decoder::decodeWithCarry(const Instruction &instruction) {
  Op low = instruction.op == Op::IAddCarry    ? Op::IAdd
           : instruction.op == Op::ISubBorrow ? Op::ISub
                                              : Op::IMul;
  const std::vector<Scalar> results = getScalars(instruction.type);
  const Value &a = use(instruction, 0), &b = use(instruction, 1);
  const std::vector<Scalar> types = getScalars(a.type);
  need(instruction, a.type == b.type && results.size() == 2 * types.size(),
       "has operands that do not fit its result");
  std::vector<Register> made;
  for (Op op : {low, instruction.op})
    for (size_t i = 0; i < types.size(); ++i) {
      need(instruction,
           types[i].kind == Type::Kind::Int && !types[i].isNarrow() &&
               isSame(types[i], results[made.size()]),
           "is supported by the simulator only for integers of 32 and 64 bits");
      Register operands[] = {a.scalars[i], b.scalars[i]};
      made.push_back(compute(instruction, op, types[i], types[i], operands, false));
    }
  define(instruction, std::move(made));
}

void Decoder::decodeConversion(const Instruction &instruction) {
  Op op = instruction.op;
  const Value &from = use(instruction, 0);
  const std::vector<Scalar> sources = getScalars(from.type), results = getScalars(instruction.type);
  need(instruction, sources.size() == results.size(), "has an operand of another size");
  bool fromFloat = op == Op::ConvertFToU || op == Op::ConvertFToS || op == Op::FConvert;
  bool toFloat = op == Op::ConvertSToF || op == Op::ConvertUToF || op == Op::FConvert;
  bool isSigned = op == Op::ConvertFToS || op == Op::ConvertSToF || op == Op::SConvert;
  std::vector<Register> made;
  for (size_t i = 0; i < sources.size(); ++i) {
    const Scalar &source = sources[i], &result = results[i];
    need(instruction,
         source.kind == (fromFloat ? Type::Kind::Float : Type::Kind::Int) &&
             result.kind == (toFloat ? Type::Kind::Float : Type::Kind::Int),
         "has an operand or result of a type that it does not take");
    // A half is converted through f32, which is exact. An integer becomes a half through f64,
    // to be rounded only once.
    bool halfOfInt = toFloat && !fromFloat && result.isNarrow();
    Register value = widen(source, from.scalars[i], isSigned, false);
    bool fromWide = source.isWide(), toWide = result.isWide() || halfOfInt;
    std::optional<Convert> step;
    if (fromFloat && toFloat) {
      if (fromWide && result.isNarrow()) {
        made.push_back(convert(Convert::F64ToHalf, false, value));
        continue;
      }
      if (fromWide != toWide)
        step = fromWide ? Convert::F64ToF32 : Convert::F32ToF64;
    } else if (fromFloat) {
      static constexpr Convert steps[2][2][2] = {
          {{Convert::F32ToU32, Convert::F32ToU64}, {Convert::F64ToU32, Convert::F64ToU64}},
          {{Convert::F32ToS32, Convert::F32ToS64}, {Convert::F64ToS32, Convert::F64ToS64}}};
      step = steps[isSigned][fromWide][toWide];
    } else if (toFloat) {
      static constexpr Convert steps[2][2][2] = {
          {{Convert::U32ToF32, Convert::U32ToF64}, {Convert::U64ToF32, Convert::U64ToF64}},
          {{Convert::S32ToF32, Convert::S32ToF64}, {Convert::S64ToF32, Convert::S64ToF64}}};
      step = steps[isSigned][fromWide][toWide];
    } else if (fromWide != toWide) {
      step = fromWide ? Convert::U64ToU32 : isSigned ? Convert::SignedToU64 : Convert::U32ToU64;
    }
    if (step)
      value = convert(*step, toWide, value);
    made.push_back(narrow(result, value, halfOfInt));
  }
  define(instruction, std::move(made));
}

/// Registers hold bits, so scalars of one size need no step. A 64-bit scalar converts to two
/// 32-bit ones, low half first, and back.
void Decoder::decodeBitcast(const Instruction &instruction) {
  const Value &from = use(instruction, 0);
  const std::vector<Scalar> sources = getScalars(from.type), results = getScalars(instruction.type);
  auto isOf = [](const std::vector<Scalar> &scalars, int64_t width) {
    return std::all_of(scalars.begin(), scalars.end(), [&](const Scalar &scalar) {
      return scalar.width == width && scalar.kind != Type::Kind::Bool;
    });
  };
  bool fits = !sources.empty() && !results.empty();
  if (fits && sources.size() == results.size() && isOf(sources, sources[0].width) &&
      isOf(results, sources[0].width)) {
    define(instruction, from.scalars);
    return;
  }
  bool splits = isOf(sources, 64) && isOf(results, 32) && results.size() == 2 * sources.size();
  bool joins = isOf(sources, 32) && isOf(results, 64) && sources.size() == 2 * results.size();
  need(instruction, fits && (splits || joins),
       "between scalars of these sizes is not supported by the simulator");
  Register half = makeRegister(/*isWide=*/true);
  preset(half, {.kind = Type::Kind::Int, .width = 64}, 32);
  auto compute64 = [&](Op op, Register a, Register b) {
    Register to = makeRegister(/*isWide=*/true);
    emit(findStep(op, Number::U64), to, a, b);
    return to;
  };
  std::vector<Register> made;
  for (size_t i = 0; splits && i < sources.size(); ++i) {
    Register high = compute64(Op::ShiftRightLogical, from.scalars[i], half);
    for (Register word : {from.scalars[i], high})
      made.push_back(convert(Convert::U64ToU32, /*isWide=*/false, word));
  }
  for (size_t i = 0; joins && i < results.size(); ++i) {
    Register low = convert(Convert::U32ToU64, /*isWide=*/true, from.scalars[2 * i]);
    Register high = convert(Convert::U32ToU64, /*isWide=*/true, from.scalars[2 * i + 1]);
    made.push_back(compute64(Op::BitwiseOr, low, compute64(Op::ShiftLeftLogical, high, half)));
  }
  define(instruction, std::move(made));
}

void Decoder::decodeSelect(const Instruction &instruction) {
  const Value &condition = use(instruction, 0);
  const Value &a = useAs(instruction, 1, instruction.type);
  const Value &b = useAs(instruction, 2, instruction.type);
  const std::vector<Scalar> results = getScalars(instruction.type);
  const std::vector<Scalar> &conditions = getScalars(condition.type);
  need(instruction,
       !conditions.empty() && conditions[0].kind == Type::Kind::Bool &&
           (conditions.size() == 1 || conditions.size() == results.size()),
       "has a condition that does not fit its result");
  std::vector<Register> made;
  for (size_t i = 0; i < results.size(); ++i) {
    bool isWide = results[i].isWide();
    made.push_back(makeRegister(isWide));
    emit(getStep(isWide ? Convert::Select64 : Convert::Select32), made.back(),
         condition.scalars[conditions.size() == 1 ? 0 : i], a.scalars[i], b.scalars[i]);
  }
  define(instruction, std::move(made));
}

std::pair<size_t, Id> Decoder::findMember(const Instruction &instruction, Id type,
                                          size_t firstLiteral) {
  size_t first = 0;
  for (size_t i = firstLiteral; i < instruction.operands.size(); ++i) {
    const Type &whole = module.getType(type);
    uint32_t index = instruction.operands[i];
    bool isStruct = whole.kind == Type::Kind::Struct;
    need(instruction,
         isStruct ? index < whole.members.size()
                  : (whole.kind == Type::Kind::Vector || whole.kind == Type::Kind::Array) &&
                        index < whole.count,
         "names a member that does not exist");
    if (!isStruct) {
      first += index * getScalars(whole.element).size();
      type = whole.element;
      continue;
    }
    for (uint32_t member = 0; member < index; ++member)
      first += getScalars(whole.members[member]).size();
    type = whole.members[index];
  }
  return {first, type};
}

void Decoder::decodeComposite(const Instruction &instruction) {
  std::vector<Register> made;
  switch (instruction.op) {
  case Op::CompositeConstruct: {
    std::vector<Scalar> types;
    for (size_t i = 0; i < instruction.operands.size(); ++i) {
      const Value &part = use(instruction, i);
      made.insert(made.end(), part.scalars.begin(), part.scalars.end());
      const std::vector<Scalar> &scalars = getScalars(part.type);
      types.insert(types.end(), scalars.begin(), scalars.end());
      need(instruction, made.size() <= maxScalars, "makes more scalars than its type has");
    }
    const std::vector<Scalar> &results = getScalars(instruction.type);
    need(instruction,
         std::equal(types.begin(), types.end(), results.begin(), results.end(), isSame),
         "has parts of other types than its result");
    break;
  }
  case Op::CompositeExtract: {
    const Value &whole = use(instruction, 0);
    auto [first, type] = findMember(instruction, whole.type, 1);
    need(instruction, type == instruction.type, "has a result of another type than the member");
    made.assign(whole.scalars.begin() + first,
                whole.scalars.begin() + first + getScalars(type).size());
    break;
  }
  case Op::CompositeInsert: {
    const Value &part = use(instruction, 0);
    made = useAs(instruction, 1, instruction.type).scalars;
    auto [first, type] = findMember(instruction, instruction.type, 2);
    need(instruction, type == part.type, "inserts another type than the member's");
    std::copy(part.scalars.begin(), part.scalars.end(), made.begin() + first);
    break;
  }
  default: { // OpVectorShuffle
    const Value &a = use(instruction, 0), &b = use(instruction, 1);
    const Type &result = module.getType(instruction.type);
    std::vector<Register> both = a.scalars;
    both.insert(both.end(), b.scalars.begin(), b.scalars.end());
    need(instruction,
         result.kind == Type::Kind::Vector && module.getType(a.type).kind == Type::Kind::Vector &&
             module.getType(b.type).kind == Type::Kind::Vector &&
             module.getType(a.type).element == result.element &&
             module.getType(b.type).element == result.element,
         "is not of vectors of one type");
    for (size_t i = 2; i < instruction.operands.size(); ++i) {
      uint32_t literal = instruction.operands[i];
      need(instruction, literal < both.size() || literal == ~uint32_t(0),
           "names an element that does not exist");
      made.push_back(both[literal == ~uint32_t(0) ? 0 : literal]);
    }
    break;
  }
  }
  define(instruction, std::move(made));
}

/// Decodes access to a vector's element by an index known only at run time.
void Decoder::decodeDynamic(const Instruction &instruction) {
  bool inserts = instruction.op == Op::VectorInsertDynamic;
  const Value whole = use(instruction, 0);
  const Type &vector = module.getType(whole.type);
  const Value &index = use(instruction, inserts ? 2 : 1);
  const Type &indexType = module.getType(index.type);
  need(instruction, vector.kind == Type::Kind::Vector && indexType.kind == Type::Kind::Int,
       "is not of a vector and an integer");
  need(instruction, instruction.type == (inserts ? whole.type : vector.element),
       "has a result of another type");
  bool isWide = getScalars(vector.element)[0].isWide();
  Register position = index.scalars[0];
  if (indexType.width == 64)
    position = convert(Convert::U64ToU32, false, position);
  // Registers made in sequence are adjacent.
  Value row = makeValue(whole.type);
  for (size_t i = 0; i < row.scalars.size(); ++i)
    emit(getStep(isWide ? Convert::Copy64 : Convert::Copy32), row.scalars[i], whole.scalars[i]);
  if (inserts) {
    const Value &element = useAs(instruction, 1, vector.element);
    emit(getStep(isWide ? Convert::Insert64 : Convert::Insert32), row.scalars[0], 0, position,
         element.scalars[0], vector.count);
    define(instruction, row.scalars);
    return;
  }
  Register to = makeRegister(isWide);
  emit(getStep(isWide ? Convert::Extract64 : Convert::Extract32), to, row.scalars[0], position, 0,
       vector.count);
  define(instruction, {to});
}
