//===- DecodePtx.cpp - Addresses that are numbers, and names of PTX -------===//
//
// A number is an address in the variables that it is made of. Each variable begins at a place of
// its own, far from others, so that an address also tells at run time which one it is in.
//
//===----------------------------------------------------------------------===//

#include "Decoder.h"
#include "PtxSteps.h"
#include "Subgroup.h"

#include <algorithm>

using namespace weir;
using namespace weir::sim;
using namespace weir::spv;

/// Where memory begins as numbers: addresses in workgroup and private memory fit 32 bits, and
/// operands are far apart.
static constexpr int64_t workgroupBase = int64_t(1) << 24, privateBase = int64_t(1) << 30;
static int64_t getOperandBase(uint32_t binding) {
  return (int64_t(binding) + 1) * (int64_t(1) << 44);
}

/// Max number of variables that an address may be in; more are refused.
static constexpr size_t maxRoots = 256;

static int64_t getBase(const PointerTarget &target) {
  return target.space == Space::Storage     ? getOperandBase(target.binding)
         : target.space == Space::Workgroup ? workgroupBase
                                            : privateBase;
}

//===----------------------------------------------------------------------===//
// Addresses
//===----------------------------------------------------------------------===//

/// Checks that a variable is in workgroup or private memory, and has a size.
void Decoder::requireLocal(const Variable &variable) const {
  if (variable.storage != StorageClass::Workgroup && variable.storage != StorageClass::Private)
    throw Error(where + ": uses a variable of .global or .const, which the simulator does not "
                        "support");
  if (module.getType(module.getType(variable.type).element).bytes == 0)
    throw Error(where + ": uses a variable without a size, which the simulator does not support; "
                        "declare how many bytes it has");
}

/// Finds the phis that get no value on any path.
void Decoder::findUnwritten(const Function &function) {
  std::vector<const Instruction *> phis;
  for (const Block &block : function.blocks)
    for (const Instruction &instruction : block.instructions)
      if (instruction.op == Op::Phi) {
        phis.push_back(&instruction);
        unwritten.insert(instruction.result);
      }
  for (bool changes = true; changes;) {
    changes = false;
    for (const Instruction *phi : phis)
      for (size_t i = 0; i < phi->operands.size(); i += 2) {
        const Constant *constant = module.findConstant(phi->operands[i]);
        if (constant ? constant->kind != Constant::Kind::Undef
                     : !unwritten.contains(phi->operands[i]))
          changes |= unwritten.erase(phi->result) > 0;
      }
  }
}

/// Finds for each number the variables whose addresses it is made of, by rounds over all
/// instructions. A loaded number is none.
void Decoder::findRoots(const Function &function) {
  auto add = [&](Id to, const std::vector<Id> &from) {
    std::vector<Id> &list = roots[to];
    bool changes = false;
    for (Id root : from)
      if (list.size() <= maxRoots && std::find(list.begin(), list.end(), root) == list.end()) {
        list.push_back(root);
        changes = true;
      }
    return changes;
  };
  for (bool changes = true; changes;) {
    changes = false;
    for (const Block &block : function.blocks)
      for (const Instruction &instruction : block.instructions) {
        std::span<const uint32_t> operands = instruction.operands;
        const Op op = instruction.op;
        if (op == Op::ConvertPtrToU) {
          changes |= add(instruction.result, {operands[0]});
          continue;
        }
        if (!instruction.result || !instruction.type || op == Op::Load || op == Op::ConvertUToPtr ||
            getKind(op) == OpKind::Atomic ||
            module.getType(instruction.type).kind == Type::Kind::Bool)
          continue;
        size_t first = op == Op::ExtInst ? 2 : op == Op::Named || op == Op::Select ? 1 : 0;
        size_t end = op == Op::CompositeExtract ? 1 : operands.size();
        for (size_t i = first; i < end; i += op == Op::Phi ? 2 : 1)
          if (auto from = roots.find(operands[i]); from != roots.end() && !from->second.empty())
            changes |= add(instruction.result, std::vector<Id>(from->second));
      }
  }
}

/// Decodes OpConvertPtrToU of a variable.
void Decoder::decodeAddress(const Instruction &instruction) {
  const PointerTarget &target = getTarget(instruction, instruction.operands[0]);
  const Scalar scalar = getScalars(instruction.type).at(0);
  need(instruction, !target.isInput && scalar.kind == Type::Kind::Int && !scalar.isNarrow(),
       "makes an address of fewer than 32 bits");
  Register to = makeRegister(scalar.isWide());
  preset(to, scalar, uint64_t(getBase(target) + target.offset));
  define(instruction, {to});
}

/// Decodes OpConvertUToPtr: the targets are the variables that the number is made of.
void Decoder::decodePointer(const Instruction &instruction) {
  Sized number = useNumber(instruction, 0);
  const Type &type = module.getType(instruction.type);
  std::vector<PointerTarget> found;
  need(instruction, roots[instruction.operands[0]].size() <= maxRoots,
       "has an address that may be in more than 256 variables");
  for (Id root : roots[instruction.operands[0]]) {
    PointerTarget target = getTarget(instruction, root);
    bool fits = type.storage == StorageClass::Generic ||
                (type.storage == StorageClass::Workgroup && target.space == Space::Workgroup) ||
                (type.storage == StorageClass::Private && target.space == Space::Private) ||
                (type.storage == StorageClass::CrossWorkgroup && target.space == Space::Storage);
    if (!fits)
      continue;
    target.offset = -getBase(target);
    target.dynamic = resize(number, 64);
    target.type = type.element;
    target.isAddressed = true;
    found.push_back(std::move(target));
  }
  need(instruction, !found.empty(),
       "has an address that is made of no parameter or variable of its state space");
  targets[instruction.result] = found.front();
  found.erase(found.begin());
  if (!found.empty())
    otherTargets[instruction.result] = std::move(found);
}

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

Decoder::Sized Decoder::useNumber(const Instruction &instruction, size_t operand) {
  const Value &value = use(instruction, operand);
  const std::vector<Scalar> &scalars = getScalars(value.type);
  need(instruction, scalars.size() == 1, "has an operand that is not one number");
  return {value.scalars[0], scalars[0].kind == Type::Kind::Bool ? 32 : scalars[0].width, false};
}

/// Returns a number in a register of 32 or 64 bits; of 8 and 16 in one of 32.
Register Decoder::resize(const Sized &number, uint32_t bits) {
  const bool isWide = number.bits == 64;
  if (isWide == (bits == 64)) {
    Register value = number.value;
    if (number.isSigned && number.bits < bits)
      value = convert(Convert::SignExtend, false, value, number.bits);
    bool isCut = bits < 32 && (bits < number.bits || value != number.value);
    return isCut ? convert(Convert::Mask, false, value, bits) : value;
  }
  if (isWide)
    return resize({convert(Convert::U64ToU32, false, number.value), 32, number.isSigned}, bits);
  Register value = resize(number, 32);
  return convert(number.isSigned ? Convert::SignedToU64 : Convert::U32ToU64, true, value);
}

Register Decoder::computeU32(Op op, Register a, Register b) {
  Register to = makeRegister(false);
  emit(findStep(op, Number::U32), to, a, b);
  return to;
}

Register Decoder::getBuiltIn(BuiltIn builtIn) {
  for (const BuiltInRegister &known : program.builtIns)
    if (known.builtIn == builtIn)
      return known.to;
  program.builtIns.push_back({builtIn, 0, makeRegister(false)});
  return program.builtIns.back().to;
}

/// Returns the last part of a name, "s32", and the one before.
static std::pair<std::string, std::string> getTypes(const std::string &name) {
  size_t last = name.rfind('.'), before = last == name.npos ? last : name.rfind('.', last - 1);
  if (before == name.npos)
    return {};
  return {name.substr(last + 1), name.substr(before + 1, last - before - 1)};
}

static bool isIntegerType(const std::string &type) {
  return type.size() > 1 && (type[0] == 's' || type[0] == 'u' || type[0] == 'b') &&
         type.find_first_not_of("0123456789", 1) == type.npos;
}

/// Emits an instruction by its PTX name. Conversions between integers and floats may take two.
Decoder::Sized Decoder::compute(const Instruction &instruction, const std::string &name,
                                std::vector<Sized> operands) {
  if (name.starts_with("cvt.") && operands.size() == 1) {
    auto [from, to] = getTypes(name);
    const bool isInteger = isIntegerType(from);
    if (isInteger) {
      const auto bits = uint32_t(std::stoul(from.substr(1)));
      operands[0] = {resize({operands[0].value, operands[0].bits, false}, bits), bits,
                     from[0] == 's'};
      if (bits < 64 && (to == "f16" || to == "bf16"))
        return compute(instruction, "cvt.rn." + to + ".f64",
                       {compute(instruction, "cvt.rn.f64." + from, operands)});
    } else if (isIntegerType(to) && from != "f64") {
      Sized wide = compute(instruction, "cvt.f64." + from, operands);
      return compute(instruction, name.substr(0, name.rfind('.')) + ".f64", {wide});
    }
  }
  if (name.starts_with("bfi.") && operands.size() == 4) {
    operands[2] = compute(instruction, "bfi.place", {operands[2], operands[3]});
    operands.pop_back();
  }
  NamedStep step = findNamedStep(name);
  if (!step.run)
    fail(instruction, "is not supported by the simulator");
  need(instruction, operands.size() == step.bits.size() + step.constants && operands.size() <= 4,
       "has more or fewer operands than the simulator knows for it");
  Register wide[3] = {0, 0, 0};
  for (size_t i = 0; i < step.bits.size(); ++i)
    wide[i] = resize(operands[i], step.bits[i]);
  if (step.constants)
    step.number = useConstant(instruction, instruction.operands.size() - 1);
  Sized result = {makeRegister(step.resultBits == 64), step.resultBits, step.isSigned};
  emit(step.run, result.value, wide[0], wide[1], wide[2], step.number);
  return result;
}

/// Decodes OpNamed: a special register, an instruction of one lane, or one of several.
void Decoder::decodeNamed(const Instruction &instruction, const std::string &name) {
  if (name.starts_with('%') || name == "activemask.b32" || name.starts_with("isspacep."))
    return decodeSpecial(instruction, name);
  if (name.starts_with("mma.") || name.starts_with("ldmatrix."))
    return decodeMatrix(instruction, name);
  if (name.find(".sync.") != name.npos)
    return decodeMeeting(instruction, name);
  std::vector<Sized> operands;
  for (size_t i = 1; i < instruction.operands.size(); ++i)
    operands.push_back(useNumber(instruction, i));
  Sized result = compute(instruction, name, std::move(operands));
  const std::vector<Scalar> results = getScalars(instruction.type);
  need(instruction, results.size() == 1, "has a vector of results, which is not supported");
  define(instruction, {resize(result, results[0].width)});
}

void Decoder::decodeSpecial(const Instruction &instruction, const std::string &name) {
  Register lane = getBuiltIn(BuiltIn::SubgroupLocalInvocationId);
  auto getNumber = [&](uint32_t bits) {
    Register to = makeRegister(false);
    preset(to, {Type::Kind::Int, 32, 0}, bits);
    return to;
  };
  if (name == "%warpid")
    return void(define(instruction, {getBuiltIn(BuiltIn::SubgroupId)}));
  if (name == "%nwarpid")
    return void(define(instruction, {getBuiltIn(BuiltIn::NumSubgroups)}));
  if (name.starts_with("%lanemask_")) {
    const std::string kind = name.substr(10);
    Register own = computeU32(Op::ShiftLeftLogical, getNumber(1), lane);
    Register below = computeU32(Op::ISub, own, getNumber(1));
    Register upTo = computeU32(Op::BitwiseOr, below, own);
    Register all = getNumber(~0u);
    if (Register to = kind == "eq"   ? own
                      : kind == "lt" ? below
                      : kind == "le" ? upTo
                      : kind == "ge" ? computeU32(Op::BitwiseXor, below, all)
                      : kind == "gt" ? computeU32(Op::BitwiseXor, upTo, all)
                                     : noRegister;
        to != noRegister)
      return void(define(instruction, {to}));
  }
  if (name.starts_with("isspacep.")) {
    // Addresses in operands are above all others.
    Register address = resize(useNumber(instruction, 1), 64), to = makeRegister(false);
    const std::string space = name.substr(9);
    need(instruction, space == "global" || space == "shared" || space == "local",
         "is not supported by the simulator");
    auto isBelow = [&](int64_t border) {
      Register bound = makeRegister(true), below = makeRegister(false);
      preset(bound, {Type::Kind::Int, 64, 0}, uint64_t(border));
      emit(findStep(Op::ULessThan, Number::U64), below, address, bound);
      return below;
    };
    Register isShared = isBelow(privateBase), isLocal = isBelow(int64_t(1) << 32);
    if (space == "shared")
      to = isShared;
    else if (space == "global")
      emit(findStep(Op::LogicalNot, Number::U32), to, isLocal);
    else
      emit(findStep(Op::LogicalNotEqual, Number::U32), to, isLocal, isShared);
    return void(define(instruction, {to}));
  }
  if (name == "activemask.b32") {
    Register to = makeRegister(false);
    emit(getActiveStep(), to, 0);
    return void(define(instruction, {to}));
  }
  fail(instruction, "is not supported by the simulator: its value is the machine's");
}

//===----------------------------------------------------------------------===//
// Several lanes
//===----------------------------------------------------------------------===//

void Decoder::decodeMeeting(const Instruction &instruction, const std::string &full) {
  using Kind = Meeting::Kind;
  using How = Meeting::How;
  Meeting meeting;
  meeting.isPredicate = full.ends_with("|p");
  meeting.name = meeting.isPredicate ? full.substr(0, full.size() - 2) : full;
  meeting.source = instruction.source;
  const std::string &name = meeting.name;
  size_t count = 0; // of operands, the members last
  auto getOperation = [&](const std::string &operation) {
    const bool isSigned = name.ends_with(".s32");
    return operation == "add"   ? How::Add
           : operation == "min" ? (isSigned ? How::MinSigned : How::Min)
           : operation == "max" ? (isSigned ? How::MaxSigned : How::Max)
           : operation == "and" ? How::And
           : operation == "or"  ? How::Or
           : operation == "xor" ? How::ExclusiveOr
                                : How::Index;
  };
  const std::string head = name.substr(0, name.find('.'));
  const std::string rest = name.size() > head.size() + 6 ? name.substr(head.size() + 6) : "";
  const std::string what = rest.substr(0, rest.find('.'));
  if (head == "shfl" && name.ends_with(".b32")) {
    meeting.kind = Kind::Shuffle;
    count = 4;
    meeting.how = what == "up"     ? How::Up
                  : what == "down" ? How::Down
                  : what == "bfly" ? How::Xor
                                   : How::Index;
  } else if (head == "vote") {
    meeting.kind = what == "all"      ? Kind::VoteAll
                   : what == "any"    ? Kind::VoteAny
                   : what == "uni"    ? Kind::VoteUniform
                   : what == "ballot" ? Kind::VoteBallot
                                      : Kind::Warp;
    count = 2;
  } else if (name.starts_with("match.any.sync.") || name.starts_with("match.all.sync.")) {
    meeting.kind = name[7] == 'n' ? Kind::MatchAny : Kind::MatchAll;
    count = 2;
  } else if (head == "redux" && name.find("32") != name.npos && rest.find(".f") == rest.npos) {
    meeting.kind = Kind::Reduce;
    meeting.how = getOperation(what);
    count = meeting.how == How::Index ? 0 : 2;
  } else if (head == "elect") {
    meeting.kind = Kind::Elect;
    count = 1;
  }
  need(instruction, count != 0 && meeting.kind != Kind::Warp, "is not supported by the simulator");
  need(instruction, instruction.operands.size() == count + 1, "has more or fewer operands");
  std::vector<Register> numbers;
  for (size_t i = 1; i <= count; ++i) {
    Sized number = useNumber(instruction, i);
    need(instruction, number.bits == 32, "is of 64 bits, which the simulator does not support");
    numbers.push_back(number.value);
  }
  meeting.members = numbers.back();
  if (count > 1)
    meeting.value = numbers[0];
  if (count == 4) {
    meeting.lane = numbers[1];
    meeting.clamp = numbers[2];
  }
  meeting.to = makeRegister(false);
  need(instruction, getScalars(instruction.type).size() == 1, "has a vector of results");
  define(instruction, {meeting.to});
  emit(getMeetingStep(), 0, 0, 0, 0, int64_t(program.meetings.size()));
  program.meetings.push_back(std::move(meeting));
}

//===----------------------------------------------------------------------===//
// Effects
//===----------------------------------------------------------------------===//

void Decoder::decodeOwn(const Instruction &instruction) {
  if (instruction.op == Op::CopyAsync)
    return decodeCopy(instruction);
  if (instruction.op == Op::GroupMatrix)
    return decodeGroupMatrix(instruction);
  if (instruction.op == Op::CopyTile || instruction.op == Op::MBarrierInit ||
      instruction.op == Op::MBarrierExpect || instruction.op == Op::MBarrierWait)
    return decodeTile(instruction);
  const std::string name = module.getString(instruction.operands[0]);
  if (instruction.op == Op::Named)
    return decodeNamed(instruction, name);
  if (name.starts_with("cp.async."))
    return decodeGroup(instruction, name);
  if (decodeProductOrder(instruction, name))
    return;
  if (name == "bar.warp.sync" || name == "barrier.warp.sync") {
    Meeting meeting;
    meeting.name = name;
    meeting.source = instruction.source;
    meeting.members = resize(useNumber(instruction, 1), 32);
    emit(getMeetingStep(), 0, 0, 0, 0, int64_t(program.meetings.size()));
    program.meetings.push_back(std::move(meeting));
    program.syncsWarps = true;
    return;
  }
  fail(instruction, "is not supported by the simulator");
}

/// Returns the operation of atom and red.
Op Decoder::getAtomic(const Instruction &instruction) const {
  const std::string name = "." + module.getString(instruction.operands[3]) + ".";
  auto has = [&](const char *part) {
    return name.find("." + std::string(part) + ".") != name.npos;
  };
  need(instruction, !has("acquire") && !has("release") && !has("acq_rel") && !has("sc"),
       "orders other memory, which the simulator does not support");
  const bool isSigned = has("s32") || has("s64");
  need(instruction, isSigned || has("u32") || has("u64") || has("b32") || has("b64"),
       "is atomic on other numbers than integers of 32 and 64 bits, which the simulator does not "
       "support");
  for (auto [text, op] : {std::pair("add", Op::AtomicIAdd),
                          {"exch", Op::AtomicExchange},
                          {"cas", Op::AtomicCompareExchange},
                          {"min", isSigned ? Op::AtomicSMin : Op::AtomicUMin},
                          {"max", isSigned ? Op::AtomicSMax : Op::AtomicUMax},
                          {"and", Op::AtomicAnd},
                          {"or", Op::AtomicOr},
                          {"xor", Op::AtomicXor}})
    if (has(text))
      return op;
  fail(instruction, "is not supported by the simulator");
}

/// Decodes cp.async.
void Decoder::decodeCopy(const Instruction &instruction) {
  Register values = 0;
  uint16_t sites[2];
  for (size_t i = 0; i < 2; ++i) { // to, from
    const PointerTarget &target = getTarget(instruction, instruction.operands[i]);
    need(instruction, !otherTargets.contains(instruction.operands[i]),
         "has an address in one of several variables, which the simulator does not support");
    AccessSite access = makeAccess(instruction, target);
    access.isWrite = i == 0;
    access.isRead = i == 1;
    access.isLate = true;
    for (AccessSite::Scalar &scalar : access.scalars)
      scalar.value = values;
    sites[i] = access.site;
    program.accesses.push_back(std::move(access));
  }
  LateCopy copy;
  copy.to = sites[0];
  copy.from = sites[1];
  copy.bytes = resize(useNumber(instruction, 2), 32);
  emit(getCopyStep(), 0, 0, 0, 0, int64_t(program.copies.size()));
  program.copies.push_back(copy);
}

/// Decodes what ends a group of copies, or waits for groups.
void Decoder::decodeGroup(const Instruction &instruction, const std::string &name) {
  LateCopy copy;
  if (name == "cp.async.commit_group") {
    copy.kind = LateCopy::Kind::Commit;
  } else if (name == "cp.async.wait_all" || name == "cp.async.wait_group") {
    copy.kind = LateCopy::Kind::Wait;
    copy.pending = name == "cp.async.wait_all" ? -1 : int64_t(useConstant(instruction, 1));
  } else {
    fail(instruction, "is not supported by the simulator");
  }
  emit(getCopyStep(), 0, 0, 0, 0, int64_t(program.copies.size()));
  program.copies.push_back(copy);
}
