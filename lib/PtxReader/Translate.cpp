//===- Translate.cpp - Instructions of PTX --------------------------------===//
//
// Integer arithmetic, memory and control become opcodes of SPIR-V. What proofs need not follow
// keeps its name (Op::Named), so that nothing about it is lost. All values are integers, as the
// registers are.
//
//===----------------------------------------------------------------------===//

#include "Translator.h"

#include <algorithm>

using namespace weir;
using namespace weir::ptx;
using spv::Glsl;
using spv::StorageClass;

/// Returns the type that a part of a name stands for; width 0 if it stands for none.
static NumberType readType(std::string_view part) {
  using Kind = NumberType::Kind;
  if (part == "pred")
    return {Kind::Predicate, 1};
  for (auto [text, width] : {std::pair("f16x2", 32u),
                             {"bf16x2", 32u},
                             {"f32x2", 64u},
                             {"bf16", 16u},
                             {"tf32", 32u},
                             {"f16", 16u},
                             {"f32", 32u},
                             {"f64", 64u},
                             {"e4m3x2", 16u},
                             {"e5m2x2", 16u}})
    if (part == text)
      return {Kind::Float, width};
  for (auto [text, width] : {std::pair("8", 8u), {"16", 16u}, {"32", 32u}, {"64", 64u}})
    if (part.size() > 1 && part.substr(1) == text)
      switch (part[0]) {
      case 'b':
        return {Kind::Bits, width};
      case 'u':
        return {Kind::Unsigned, width};
      case 's':
        return {Kind::Signed, width};
      }
  return {};
}

NumberType Translator::getType() const {
  for (size_t i = statement->name.size(); i-- > 1;)
    if (NumberType type = readType(statement->name[i]); type.width)
      return type;
  refuse();
}

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

/// Translates what keeps its name: the first operand is what it writes, the others what it reads.
void Translator::translateNamed() {
  uint32_t width = 32;
  for (size_t i = 1; i < statement->name.size(); ++i)
    if (NumberType type = readType(statement->name[i]); type.width > 1)
      width = type.width;
  std::vector<Id> values;
  for (size_t i = 1; i < statement->operands.size(); ++i)
    useAll(statement->operands[i], width, values);
  std::string name = statement->getName();
  const Operand &to = getOperand(0);
  auto write = [&](const Operand &target, const std::string &as) {
    if (target.kind == Operand::Kind::Sink)
      return;
    if (target.kind != Operand::Kind::Vector) {
      need(target.kind == Operand::Kind::Register && target.width <= 64,
           "writes to something that is no register");
      set(target, makeNamed(words.getInteger(target.width), as, values), target.width);
      return;
    }
    size_t count = target.parts.size();
    need(count >= 2 && count <= 16, "has a vector that is not of 2 to 16 registers");
    uint32_t part = 0;
    for (const Operand &each : target.parts)
      part = each.kind == Operand::Kind::Register ? each.width : part;
    need(part >= 8 && part <= 64, "has a vector without registers");
    Id whole = makeNamed(words.getVector(words.getInteger(part), uint32_t(count)), as, values);
    for (uint32_t i = 0; i < count; ++i)
      if (target.parts[i].kind != Operand::Kind::Sink)
        set(target.parts[i], make(Op::CompositeExtract, words.getInteger(part), {whole, i}), part);
  };
  if (to.kind == Operand::Kind::Pair) {
    write(to.parts[0], name);
    write(to.parts[1], name + "|p");
  } else {
    write(to, name);
  }
}

void Translator::translateArithmetic() {
  NumberType type = getType();
  std::string_view name = statement->name.front();
  if (hasName("cc"))
    refuse(); // a carry is a register that no operand names
  if (!type.isInteger() || hasName("sat") || type.width < 16)
    return translateNamed();
  Op op = name == "add"   ? Op::IAdd
          : name == "sub" ? Op::ISub
          : name == "div" ? (type.isSigned() ? Op::SDiv : Op::UDiv)
                          : (type.isSigned() ? Op::SRem : Op::UMod);
  if (name == "neg") {
    Id zero = words.getConstant(type.width, 0);
    return set(getOperand(0),
               makeInteger(Op::ISub, type.width, {zero, use(getOperand(1), type.width)}),
               type.width);
  }
  Id a = use(getOperand(1), type.width), b = use(getOperand(2), type.width);
  set(getOperand(0), makeInteger(op, type.width, {a, b}), type.width);
}

/// Translates mul and mad.
void Translator::translateMultiply() {
  NumberType type = getType();
  const uint32_t width = type.width;
  const bool isWide = hasName("wide"), isHigh = hasName("hi");
  if (hasName("cc"))
    refuse();
  if (!type.isInteger() || hasName("sat") || (isHigh && width == 64) || width < 16)
    return translateNamed();
  need(isWide + isHigh + hasName("lo") == 1 && !(isWide && width == 64),
       "is a product without .lo, .hi or .wide");
  uint32_t inner = isWide || isHigh ? 2 * width : width;
  Id a = resize(use(getOperand(1), width), width, inner, type.isSigned());
  Id b = resize(use(getOperand(2), width), width, inner, type.isSigned());
  Id product = makeInteger(Op::IMul, inner, {a, b});
  if (isHigh) {
    product = makeInteger(type.isSigned() ? Op::ShiftRightArithmetic : Op::ShiftRightLogical, inner,
                          {product, words.getConstant(32, width)});
    product = resize(product, inner, width, false);
  }
  uint32_t result = isWide ? inner : width;
  if (statement->name.front() == "mad")
    product = makeInteger(Op::IAdd, result, {product, use(getOperand(3), result)});
  set(getOperand(0), product, result);
}

void Translator::translateMinMax() {
  NumberType type = getType();
  if (!type.isInteger() || hasName("relu") || type.width < 16)
    return translateNamed();
  bool isMin = statement->name.front() == "min";
  Glsl operation =
      type.isSigned() ? (isMin ? Glsl::SMin : Glsl::SMax) : (isMin ? Glsl::UMin : Glsl::UMax);
  Id a = use(getOperand(1), type.width), b = use(getOperand(2), type.width);
  Id result =
      make(Op::ExtInst, words.getInteger(type.width), {words.getGlsl(), uint32_t(operation), a, b});
  set(getOperand(0), result, type.width);
}

/// Translates and, or, xor and not.
void Translator::translateLogic() {
  NumberType type = getType();
  std::string_view name = statement->name.front();
  const bool isPredicate = type.width == 1;
  auto get = [&](size_t i) {
    return isPredicate ? usePredicate(getOperand(i)) : use(getOperand(i), type.width);
  };
  Id result;
  if (name == "not") {
    result = makeInteger(isPredicate ? Op::LogicalNot : Op::Not, type.width, {get(1)});
  } else {
    Op op = name == "and"  ? (isPredicate ? Op::LogicalAnd : Op::BitwiseAnd)
            : name == "or" ? (isPredicate ? Op::LogicalOr : Op::BitwiseOr)
                           : (isPredicate ? Op::LogicalNotEqual : Op::BitwiseXor);
    Id a = get(1), b = get(2);
    result = makeInteger(op, type.width, {a, b});
  }
  set(getOperand(0), result, type.width);
}

void Translator::translateConvert() {
  std::vector<NumberType> types;
  for (std::string_view part : statement->name)
    if (NumberType type = readType(part); type.width)
      types.push_back(type);
  if (types.size() != 2 || hasName("sat") || hasName("pack") || !types[0].isInteger() ||
      !types[1].isInteger())
    return translateNamed();
  Id value = use(getOperand(1), types[1].width);
  value = resize(value, types[1].width, types[0].width, types[1].isSigned());
  set(getOperand(0), value, types[0].width, types[0].isSigned());
}

/// Translates setp.
void Translator::translateCompare() {
  NumberType type = getType();
  std::string_view comparison = statement->name.size() > 1 ? statement->name[1] : "";
  Id result;
  if (type.isInteger() && type.width >= 16) {
    bool isSigned = type.isSigned();
    Op op = comparison == "eq"   ? Op::IEqual
            : comparison == "ne" ? Op::INotEqual
            : comparison == "lo" ? Op::ULessThan
            : comparison == "ls" ? Op::ULessThanEqual
            : comparison == "hi" ? Op::UGreaterThan
            : comparison == "hs" ? Op::UGreaterThanEqual
            : comparison == "lt" ? (isSigned ? Op::SLessThan : Op::ULessThan)
            : comparison == "le" ? (isSigned ? Op::SLessThanEqual : Op::ULessThanEqual)
            : comparison == "gt" ? (isSigned ? Op::SGreaterThan : Op::UGreaterThan)
            : comparison == "ge" ? (isSigned ? Op::SGreaterThanEqual : Op::UGreaterThanEqual)
                                 : Op::Nop;
    if (op == Op::Nop)
      refuse();
    Id a = use(getOperand(1), type.width), b = use(getOperand(2), type.width);
    result = makeInteger(op, 1, {a, b});
  } else {
    need(!statement->name.back().ends_with("x2"), "compares two pairs of numbers");
    std::vector<Id> values = {use(getOperand(1), type.width), use(getOperand(2), type.width)};
    result = makeNamed(words.getBool(),
                       "setp." + std::string(comparison) + (hasName("ftz") ? ".ftz." : ".") +
                           std::string(statement->name.back()),
                       values);
  }
  const Operand &to = getOperand(0);
  auto combine = [&](Id value) {
    if (statement->operands.size() < 4)
      return value;
    Op op = hasName("and") ? Op::LogicalAnd : hasName("or") ? Op::LogicalOr : Op::LogicalNotEqual;
    if (op == Op::LogicalNotEqual && !hasName("xor"))
      refuse();
    return makeInteger(op, 1, {value, usePredicate(getOperand(3))});
  };
  if (to.kind == Operand::Kind::Pair) {
    Id second = combine(makeInteger(Op::LogicalNot, 1, {result}));
    result = combine(result);
    set(to.parts[0], result, 1);
    set(to.parts[1], second, 1);
  } else {
    set(to, combine(result), 1);
  }
}

/// Translates mov, cvta and selp.
void Translator::translateMove() {
  NumberType type = getType();
  if (statement->name.front() == "selp") {
    Id a = use(getOperand(1), type.width), b = use(getOperand(2), type.width);
    Id condition = usePredicate(getOperand(3));
    set(getOperand(0), makeInteger(Op::Select, type.width, {condition, a, b}), type.width);
  } else if (type.width == 1) {
    set(getOperand(0), usePredicate(getOperand(1)), 1);
  } else {
    set(getOperand(0), use(getOperand(1), type.width), type.width);
  }
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// Returns how many elements a load or store has.
static uint32_t getCount(const Statement &statement) {
  return statement.has("v8") ? 8 : statement.has("v4") ? 4 : statement.has("v2") ? 2 : 1;
}

/// Translates a load of a parameter, which is an address or another number.
void Translator::loadParameter() {
  NumberType type = getType();
  const Operand &from = getOperand(1);
  need(from.kind == Operand::Kind::Address, "has no address");
  const Operand &base = from.parts[0];
  if (base.kind != Operand::Kind::Symbol ||
      entry.symbols[base.number].space != Symbol::Space::Param)
    fail("loads what is no parameter");
  need(!getTensorMap(entry.symbols[base.number]), "loads a tensor map");
  if (from.bits || entry.symbols[base.number].width != type.width || hasName("v2") ||
      hasName("v4") || hasName("v8"))
    return loadPart();
  if (type.width == 64 && type.isInteger()) {
    Id address = makeInteger(Op::ConvertPtrToU, 64, {bindings[base.number]});
    return set(getOperand(0), address, 64);
  }
  std::string name = "ld.param." + std::to_string(entry.symbols[base.number].parameter);
  set(getOperand(0), makeNamed(words.getInteger(type.width), name, {}), type.width,
      type.isSigned());
}

/// Translates a load of a part of a parameter, or of one that is no number. It may be an address,
/// of which nothing is known.
void Translator::loadPart() {
  const NumberType type = getType();
  const uint32_t count = getCount(*statement);
  const Operand &from = getOperand(1), &to = getOperand(0);
  const bool isVector = to.kind == Operand::Kind::Vector;
  need(isVector ? to.parts.size() == count : count == 1, "has a vector of another size");
  for (uint32_t i = 0; i < count; ++i) {
    std::string name = "ld.param." + std::to_string(entry.symbols[from.parts[0].number].parameter) +
                       "+" + std::to_string(int64_t(from.bits + uint64_t(i) * type.width / 8));
    const Operand &part = isVector ? to.parts[i] : to;
    if (part.kind != Operand::Kind::Sink)
      set(part, makeNamed(words.getInteger(type.width), name, {}), type.width, type.isSigned());
  }
}

static bool isAtomic(const Statement &statement) {
  return statement.has("relaxed") || statement.has("acquire") || statement.has("release") ||
         statement.has("volatile");
}

void Translator::translateLoad() {
  if (hasName("param"))
    return loadParameter();
  NumberType type = getType();
  uint32_t count = getCount(*statement);
  Id element = words.getInteger(type.width);
  Id whole = count == 1 ? element : words.getVector(element, count);
  StorageClass storage = getSpace();
  Id pointer = getAddress(getOperand(1), storage, whole);
  Id value;
  if (isAtomic(*statement)) {
    value = make(Op::AtomicLoad, whole,
                 {pointer, words.getConstant(32, getScope()), words.getConstant(32, 0)});
  } else if (hasName("nc") || statement->name.front() == "ldu") {
    value = make(Op::Load, whole, {pointer, spv::MemoryOperand::ReadOnly});
  } else {
    value = make(Op::Load, whole, {pointer});
  }
  const Operand &to = getOperand(0);
  if (count == 1)
    return set(to, value, type.width, type.isSigned());
  need(to.kind == Operand::Kind::Vector && to.parts.size() == count,
       "has a vector of another size");
  for (uint32_t i = 0; i < count; ++i)
    if (to.parts[i].kind != Operand::Kind::Sink)
      set(to.parts[i], make(Op::CompositeExtract, element, {value, i}), type.width,
          type.isSigned());
}

void Translator::translateStore() {
  NumberType type = getType();
  uint32_t count = getCount(*statement);
  Id element = words.getInteger(type.width);
  Id whole = count == 1 ? element : words.getVector(element, count);
  const Operand &from = getOperand(1);
  Id value;
  if (count == 1) {
    value = use(from, type.width);
  } else {
    need(from.kind == Operand::Kind::Vector && from.parts.size() == count,
         "has a vector of another size");
    std::vector<uint32_t> parts;
    for (const Operand &part : from.parts)
      parts.push_back(use(part, type.width));
    value = make(Op::CompositeConstruct, whole, std::move(parts));
  }
  Id pointer = getAddress(getOperand(0), getSpace(), whole);
  if (isAtomic(*statement))
    put(Op::AtomicStore,
        {pointer, words.getConstant(32, getScope()), words.getConstant(32, 0), value});
  else
    put(Op::Store, {pointer, value});
}

/// Translates atom and red.
void Translator::translateAtomic() {
  NumberType type = getType();
  const bool isReduction = statement->name.front() == "red";
  const size_t address = isReduction ? 0 : 1;
  need(!hasName("async"), "is a reduction that lands later");
  uint32_t count = getCount(*statement);
  need(type.width >= 16, "is atomic on less than 16 bits");
  Id element = words.getInteger(type.width);
  Id whole = count == 1 ? element : words.getVector(element, count);
  std::vector<uint32_t> operands = {getAddress(getOperand(address), getSpace(), whole),
                                    words.getConstant(32, getScope()), words.getConstant(32, 0),
                                    words.getString(statement->getName())};
  for (size_t i = address + 1; i < statement->operands.size(); ++i)
    useAll(statement->operands[i], type.width, operands);
  Id value = make(Op::NamedAtomic, whole, std::move(operands));
  if (isReduction)
    return;
  const Operand &to = getOperand(0);
  need(count == 1 || to.kind == Operand::Kind::Sink, "returns a vector");
  set(to, value, type.width);
}

/// Translates cp.async.
void Translator::translateCopy() {
  if (hasName("bulk") && hasName("tensor") && !tensorMaps.empty())
    return translateTile();
  if (!hasName("async") || hasName("bulk") || hasName("tensor"))
    refuse();
  if (hasName("commit_group") || hasName("wait_group") || hasName("wait_all")) {
    std::vector<uint32_t> operands = {words.getString(statement->getName())};
    for (const Operand &operand : statement->operands)
      useAll(operand, 32, operands);
    return Words::put(*body, Op::NamedEffect, operands);
  }
  if (hasName("mbarrier"))
    refuse();
  const Operand &count = getOperand(2);
  if (!(hasName("ca") || hasName("cg")) || count.kind != Operand::Kind::Integer ||
      (count.bits != 4 && count.bits != 8 && count.bits != 16))
    refuse();
  Id number = words.getInteger(32);
  Id whole = count.bits == 4 ? number : words.getVector(number, uint32_t(count.bits / 4));
  Id to = getAddress(getOperand(0), StorageClass::Workgroup, whole);
  Id from = getAddress(getOperand(1), StorageClass::CrossWorkgroup, whole);
  Id bytes = statement->operands.size() > 3 && statement->operands[3].width != 64
                 ? use(getOperand(3), 32)
                 : words.getConstant(32, count.bits);
  put(Op::CopyAsync, {to, from, bytes, words.getString(statement->getName())});
}

/// Translates ldmatrix: each lane loads a row, and the rows are passed round.
void Translator::translateMatrix() {
  if (!hasName("b16") || !hasName("aligned"))
    refuse();
  Id row = words.getVector(words.getInteger(32), 4);
  Id pointer = getAddress(getOperand(1), StorageClass::Workgroup, row);
  Id value = make(Op::Load, row, {pointer});
  const Operand &to = getOperand(0);
  need(to.kind == Operand::Kind::Vector, "writes no vector");
  for (size_t i = 0; i < to.parts.size(); ++i)
    set(to.parts[i],
        makeNamed(words.getInteger(32), statement->getName() + "|" + std::to_string(i), {value}),
        32);
}

/// Translates bar, barrier, membar and fence.
void Translator::translateBarrier() {
  using namespace spv;
  std::string_view name = statement->name.front();
  auto number = [&](uint32_t bits) { return words.getConstant(32, bits); };
  uint32_t semantics = AcquireRelease | UniformMemory | WorkgroupMemory;
  if (name == "membar" || name == "fence") {
    if (hasName("proxy") || hasName("mbarrier_init"))
      return Words::put(*body, Op::NamedEffect,
                        std::vector<uint32_t>{words.getString(statement->getName())});
    bool isWorkgroup = hasName("cta");
    return put(Op::MemoryBarrier, {number(uint32_t(isWorkgroup ? Scope::Workgroup : Scope::Device)),
                                   number(semantics)});
  }
  if (hasName("warp")) {
    // It orders a part of the warp only.
    std::vector<uint32_t> operands = {words.getString(statement->getName())};
    useAll(getOperand(0), 32, operands);
    return Words::put(*body, Op::NamedEffect, operands);
  }
  if (!hasName("sync") || hasName("cluster") || hasName("red"))
    refuse();
  need(getOperand(0).kind == Operand::Kind::Integer, "is a barrier with a number that varies");
  need(getOperand(0).bits < 16, "is a barrier with a number above 15");
  if (statement->operands.size() > 1) {
    const Operand &count = getOperand(1);
    need(count.kind == Operand::Kind::Integer &&
             count.bits == uint64_t(workgroup[0]) * workgroup[1] * workgroup[2],
         "is a barrier for a part of the workgroup");
  }
  Id scope = number(uint32_t(Scope::Workgroup));
  put(Op::ControlBarrier, {scope, scope, number(semantics)});
}

/// Translates mbarrier: it is in workgroup memory, and orders nothing that is followed.
void Translator::translateObject() {
  std::string_view what = statement->name.size() > 1 ? statement->name[1] : "";
  const bool isWait = what == "test_wait" || what == "try_wait",
             isArrival = what == "arrive" || what == "arrive_drop",
             isWhole = what == "init" || what == "inval";
  if (what == "pending_count")
    return translateNamed();
  if ((!isWait && !isArrival && !isWhole) || hasName("expect_tx") || hasName("shared::cluster"))
    refuse();
  const size_t address = isWhole ? 0 : 1;
  Id state = words.getInteger(64);
  Id pointer = getAddress(getOperand(address), StorageClass::Workgroup, state);
  const std::string name = statement->getName();
  std::vector<uint32_t> operands;
  for (size_t i = address + 1; i < statement->operands.size(); ++i)
    useAll(statement->operands[i], what == "init" ? 32 : 64, operands);
  Words::put(*body, Op::NamedEffect, std::vector<uint32_t>{words.getString(name)});
  if (isWhole)
    return put(Op::Store, {pointer, makeNamed(state, name, operands)});
  operands.insert(operands.begin(),
                  {pointer, words.getConstant(32, uint32_t(spv::Scope::Workgroup)),
                   words.getConstant(32, 0), words.getString(name)});
  Id value = make(Op::NamedAtomic, state, std::move(operands));
  if (isArrival)
    set(getOperand(0), value, 64);
  else
    set(getOperand(0), makeNamed(words.getBool(), name, {value}), 1);
}

//===----------------------------------------------------------------------===//
// All
//===----------------------------------------------------------------------===//

void Translator::translate() {
  std::string_view name = statement->name.front();
  auto isOneOf = [&](std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  if (isOneOf({"add", "sub", "div", "rem", "neg"}))
    translateArithmetic();
  else if (isOneOf({"mul", "mad"}))
    translateMultiply();
  else if (isOneOf({"min", "max"}))
    translateMinMax();
  else if (isOneOf({"and", "or", "xor", "not"}))
    translateLogic();
  else if (isOneOf({"shl", "shr"}))
    translateShift();
  else if (name == "bfe")
    translateExtract();
  else if (name == "bfi")
    translateInsert();
  else if (name == "shf")
    translateFunnel();
  else if (name == "prmt")
    translatePermute();
  else if (name == "lop3")
    translateTable();
  else if (isOneOf({"mul24", "mad24"}))
    translateShortProduct();
  else if (name == "cvt")
    translateConvert();
  else if (name == "setp")
    translateCompare();
  else if (isOneOf({"mov", "cvta", "selp"}))
    translateMove();
  else if (isOneOf({"ld", "ldu"}))
    translateLoad();
  else if (name == "st" && !hasName("async") && !hasName("bulk"))
    translateStore();
  else if (isOneOf({"atom", "red"}))
    translateAtomic();
  else if (name == "cp")
    translateCopy();
  else if (name == "ldmatrix")
    translateMatrix();
  else if (isOneOf({"bar", "barrier", "membar", "fence"}))
    translateBarrier();
  else if (name == "wgmma")
    translateGroupMatrix();
  else if (name == "mbarrier")
    tensorMaps.empty() ? translateObject() : translateMBarrier();
  else if (isOneOf({"fma",        "abs",      "rcp",   "sqrt",      "rsqrt",       "sin",
                    "cos",        "lg2",      "ex2",   "tanh",      "copysign",    "testp",
                    "sad",        "popc",     "clz",   "bfind",     "fns",         "brev",
                    "szext",      "bmsk",     "dp4a",  "dp2a",      "slct",        "set",
                    "cnot",       "isspacep", "mma",   "shfl",      "vote",        "match",
                    "activemask", "redux",    "elect", "movmatrix", "createpolicy"}))
    translateNamed();
  else if (!isOneOf({"nanosleep", "prefetch", "prefetchu", "pmevent"}))
    refuse();
}
