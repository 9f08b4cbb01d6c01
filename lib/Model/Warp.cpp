//===- Warp.cpp - A subgroup, lane by lane --------------------------------===//

#include "Warp.h"

#include "weir/Artifact/Error.h"
#include "weir/SpirvReader/Integers.h"

#include <algorithm>
#include <bit>

using namespace weir;
using namespace weir::model;
using namespace weir::spv;

/// Calls `visit` for each lane of a mask.
template <typename Visit> static void forEach(uint64_t mask, Visit visit) {
  for (; mask; mask &= mask - 1)
    visit(uint32_t(std::countr_zero(mask)));
}

Warp::Warp(const Code &code, const Place &place, const Latencies &latencies, Listener &listener)
    : code(code), place(place), latencies(latencies), listener(listener), size(place.subgroupSize),
      values(size_t(code.numSlots) * size), blockOf(size), cameFrom(size),
      visits(code.blocks.size()), ready(code.module.getBound()) {
  const auto &local = code.entry.localSize;
  const uint32_t invocations = local[0] * local[1] * local[2];
  for (uint32_t lane = 0; lane < size; ++lane)
    if (place.subgroup * size + lane < invocations)
      live |= Mask(1) << lane;
  for (Id id = 0; id < code.slotOf.size(); ++id) {
    if (code.slotOf[id] == Code::none)
      continue;
    const Constant *constant = code.module.findConstant(id);
    auto variable = code.addressOf.find(id);
    for (uint32_t part = 0; part < code.partsOf[id]; ++part) {
      Number number;
      const Constant *scalar = constant;
      if (constant && constant->kind == Constant::Kind::Composite)
        scalar = part < constant->parts.size() ? code.module.findConstant(constant->parts[part])
                                               : nullptr;
      if (scalar)
        number.bits = scalar->bits;
      else if (variable != code.addressOf.end())
        number = {0, id + 1}; // what it holds at the beginning
      std::fill_n(at(code.slotOf[id] + part), size, number);
    }
  }
}

void Warp::assume(const Instruction &instruction, const std::string &what) {
  std::string where = instruction.source.line ? "line " + std::to_string(instruction.source.line)
                                              : "word " + std::to_string(instruction.word);
  if (assumptions.size() < 8)
    assumptions.insert(where + ": " + what);
}

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

static uint64_t mix(uint64_t a, uint64_t b) {
  a = (a ^ b) * 0x9e3779b97f4a7c15u;
  return a ^ a >> 29;
}

/// Returns the unknown number that an operation makes of others.
Warp::Number Warp::makeUnknown(uint64_t op, std::initializer_list<Number> from) {
  uint64_t tag = mix(op, 0x51ed270b);
  for (const Number &each : from)
    tag = mix(mix(tag, each.bits), each.tag);
  return {0, tag | 1};
}

const Warp::Number &Warp::get(Id id, uint32_t part, uint32_t lane) {
  static const Number zero;
  uint32_t slot = id < code.slotOf.size() ? code.slotOf[id] : Code::none;
  if (slot == Code::none)
    return zero;
  uint32_t parts = code.partsOf[id];
  return at(slot + (part < parts ? part : 0))[lane];
}

Warp::Number Warp::computeBinary(Op op, const Number &a, const Number &b, uint32_t width) {
  if (!a.tag && !b.tag) {
    if (auto number = spv::computeBinary(op, a.bits, b.bits, width))
      return {*number, 0};
    return makeUnknown(uint64_t(op), {a, b});
  }
  switch (op) {
  case Op::IAdd:
  case Op::BitwiseOr: // that of an address adds bits that are 0
    if (a.tag && b.tag)
      return {a.bits + b.bits, makeUnknown(uint64_t(op), {{0, a.tag}, {0, b.tag}}).tag};
    return {a.bits + b.bits, a.tag | b.tag};
  case Op::ISub:
    if (!b.tag)
      return {a.bits - b.bits, a.tag};
    if (a.tag == b.tag)
      return {a.bits - b.bits, 0};
    return {a.bits - b.bits, makeUnknown(uint64_t(op), {{0, a.tag}, {0, b.tag}}).tag};
  case Op::IMul:
    if (!a.tag || !b.tag) {
      const Number &factor = a.tag ? b : a, &other = a.tag ? a : b;
      return {a.bits * b.bits, makeUnknown(uint64_t(op), {{0, other.tag}, factor}).tag};
    }
    break;
  case Op::ShiftLeftLogical:
    if (!b.tag && b.bits < width)
      return {a.bits << b.bits,
              makeUnknown(uint64_t(Op::IMul), {{0, a.tag}, {uint64_t(1) << b.bits, 0}}).tag};
    break;
  default:
    break;
  }
  return makeUnknown(uint64_t(op), {a, b});
}

/// Returns the address of an element.
Warp::Number Warp::computeAddress(const Instruction &instruction, uint32_t lane) {
  Id base = instruction.operands[0];
  auto variable = code.addressOf.find(base);
  Number address =
      variable != code.addressOf.end() ? Number{variable->second, 0} : get(base, 0, lane);
  Id pointee = code.module.getType(code.module.getTypeOf(base)).element;
  for (size_t i = 1; i < instruction.operands.size(); ++i) {
    const Type &whole = code.module.getType(pointee);
    Id id = instruction.operands[i];
    uint32_t width = std::max(1u, code.getWidth(code.module.getTypeOf(id)));
    Number index = get(id, 0, lane);
    index.bits = uint64_t(extend(index.bits, width));
    if (whole.kind == Type::Kind::Struct) {
      if (index.tag || index.bits >= whole.members.size())
        throw Error(code.where + ": names a member that does not exist");
      address.bits += uint64_t(whole.offsets[index.bits]);
      pointee = whole.members[index.bits];
    } else {
      Number by{uint64_t(whole.stride), 0};
      address = computeBinary(Op::IAdd, address, computeBinary(Op::IMul, index, by, 64), 64);
      pointee = whole.element;
    }
  }
  return address;
}

/// Returns the result of an integer instruction of PTX that keeps its name; none if it is another.
static std::optional<uint64_t> computeNamed(std::string_view name, std::span<const uint64_t> use) {
  auto is = [&](std::string_view op) { return name.substr(0, name.find('.')) == op; };
  const uint32_t width = name.ends_with("64") ? 64 : name.ends_with("16") ? 16 : 32;
  if (is("bfi") && use.size() == 4) {
    uint64_t from = use[2] & 255, count = use[3] & 255;
    if (from >= width || count > width - from)
      return std::nullopt;
    uint64_t mask = count == 0 ? 0 : (~uint64_t(0) >> (64 - count)) << from;
    return (use[1] & ~mask) | (use[0] << from & mask);
  }
  if (is("shl") && use.size() == 2)
    return use[1] < width ? use[0] << use[1] : 0;
  if (is("shr") && use.size() == 2) {
    const bool isSigned = name.find(".s") != std::string_view::npos;
    uint64_t by = std::min<uint64_t>(use[1], isSigned ? width - 1 : 64);
    return isSigned ? uint64_t(extend(use[0], width) >> by) : by < width ? use[0] >> by : 0;
  }
  if ((is("mul") && use.size() == 2) || (is("mad") && use.size() == 3)) {
    if (width != 64 || name.find(".hi.") == std::string_view::npos)
      return std::nullopt;
    const uint64_t more = is("mad") ? use[2] : 0;
    if (name.ends_with("u64"))
      return uint64_t((unsigned __int128)(use[0]) * use[1] >> 64) + more;
    return uint64_t(__int128(int64_t(use[0])) * int64_t(use[1]) >> 64) + more;
  }
  if (is("bfe") && use.size() == 3) {
    const uint64_t from = use[1] & 255, count = use[2] & 255;
    if (count == 0 || from >= width || count > width - from)
      return std::nullopt;
    const uint64_t bits = cut(use[0] >> from, uint32_t(count));
    return name.find(".s") == std::string_view::npos ? bits
                                                     : uint64_t(extend(bits, uint32_t(count)));
  }
  if (is("lop3") && use.size() == 4) {
    uint64_t result = 0;
    for (uint32_t i = 0; i < 8; ++i)
      if (use[3] >> i & 1)
        result |=
            (i & 4 ? use[0] : ~use[0]) & (i & 2 ? use[1] : ~use[1]) & (i & 1 ? use[2] : ~use[2]);
    return result;
  }
  return std::nullopt;
}

/// Whether lanes give each other their first operand.
bool Warp::isExchange(const Instruction &instruction) const {
  switch (instruction.op) {
  case Op::GroupNonUniformShuffle:
  case Op::GroupNonUniformShuffleXor:
  case Op::GroupNonUniformShuffleUp:
  case Op::GroupNonUniformShuffleDown:
  case Op::GroupNonUniformBroadcast:
  case Op::GroupNonUniformBroadcastFirst:
    return true;
  case Op::Named:
    return code.module.getString(instruction.operands[0]).starts_with("shfl");
  default:
    return false;
  }
}

/// Returns the number that all lanes have, if it is one and known.
std::optional<Warp::Number> Warp::getShared(Id id, uint32_t part) {
  std::optional<Number> shared;
  bool isOne = true;
  forEach(live, [&](uint32_t lane) {
    const Number &number = get(id, part, lane);
    isOne &= number.tag == 0 && (!shared || *shared == number);
    shared = number;
  });
  return isOne ? shared : std::nullopt;
}

Warp::Number Warp::computeLane(const Step &step, uint32_t part, uint32_t lane) {
  const Instruction &instruction = *step.instruction;
  std::span<const uint32_t> all = instruction.operands;
  auto use = [&](size_t i) -> const Number & { return get(all[i], part, lane); };
  auto getWidth = [&](size_t i) {
    return std::max(1u, code.getWidth(code.module.getTypeOf(all[i])));
  };
  auto isVariable = [&](size_t i) { return code.addressOf.contains(all[i]); };
  switch (instruction.op) {
  case Op::AccessChain:
  case Op::InBoundsAccessChain:
    return computeAddress(instruction, lane);
  case Op::ConvertPtrToU:
    return isVariable(0) ? Number{code.addressOf.at(all[0]), 0} : use(0);
  case Op::ConvertUToPtr:
  case Op::CopyObject:
    return use(0);
  case Op::CompositeExtract:
    return all.size() == 2 ? get(all[0], all[1], lane) : makeUnknown(all.size(), {use(0)});
  case Op::CompositeConstruct:
    return part < all.size() ? get(all[part], 0, lane) : Number();
  case Op::UConvert:
  case Op::SConvert: {
    Number number = use(0);
    if (instruction.op == Op::SConvert || number.tag)
      number.bits = uint64_t(extend(number.bits, getWidth(0)));
    return number;
  }
  case Op::Bitcast:
    return getWidth(0) == step.width ? use(0) : makeUnknown(uint64_t(instruction.op), {use(0)});
  case Op::SNegate:
    return computeBinary(Op::ISub, Number(), use(0), step.width);
  case Op::Not:
  case Op::LogicalNot:
    if (use(0).tag)
      break;
    return {~use(0).bits, 0};
  case Op::Select: {
    const Number &condition = use(0);
    if (!condition.tag)
      return use(condition.bits ? 1 : 2);
    if (use(1) == use(2))
      return use(1);
    break;
  }
  case Op::ExtInst: {
    const Number &a = use(2), &b = use(all.size() > 3 ? 3 : 2);
    if (!a.tag && !b.tag && step.width)
      if (auto number = computeGlsl(Glsl(all[1]), a.bits, b.bits, step.width))
        return {*number, 0};
    return makeUnknown(uint64_t(all[1]) << 16, {a, b});
  }
  default:
    if (step.inWidth)
      return computeBinary(instruction.op, use(0), use(1), step.inWidth);
  }
  if (isExchange(instruction))
    if (std::optional<Number> number = getShared(step.uses[0], part))
      return *number;
  // One number for all lanes that have the same operands; what lanes exchange has others.
  uint64_t what = uint64_t(instruction.op);
  if (instruction.op == Op::Named) {
    what = all[0];
    std::array<uint64_t, 4> known = {};
    bool areKnown = step.uses.size() <= known.size();
    for (size_t i = 0; areKnown && i < step.uses.size(); ++i) {
      known[i] = get(step.uses[i], 0, lane).bits;
      areKnown = get(step.uses[i], 0, lane).tag == 0;
    }
    if (areKnown)
      if (auto number =
              computeNamed(code.module.getString(all[0]), std::span(known).first(step.uses.size())))
        return {*number, 0};
  }
  Number result{part, what};
  for (Id id : step.uses)
    result = makeUnknown(what, {result, get(id, part, lane)});
  return {0, result.tag | 1};
}

void Warp::compute(const Step &step, Mask mask) {
  for (uint32_t part = 0; part < step.parts; ++part) {
    Number *to = at(step.slot + part);
    const uint32_t width = std::max(1u, step.width);
    if (step.isBinary) {
      const Number *a = at(code.slotOf[step.uses[0]] + part);
      const Number *b = at(code.slotOf[step.uses[1]] + part);
      const Instruction &instruction = *step.instruction;
      const bool isEquality = instruction.op == Op::IEqual || instruction.op == Op::INotEqual;
      bool isAssumed = false;
      forEach(mask, [&](uint32_t lane) {
        Number number = computeBinary(instruction.op, a[lane], b[lane], step.inWidth);
        if (number.tag && isEquality && !code.loopConditions.contains(instruction.result)) {
          number = {instruction.op == Op::INotEqual, 0};
          isAssumed = true;
        }
        if (!number.tag)
          number.bits = cut(number.bits, width);
        to[lane] = number;
      });
      if (isAssumed)
        assume(instruction,
               "loaded data is compared with another number; they are assumed to differ");
      continue;
    }
    forEach(mask, [&](uint32_t lane) {
      Number number = computeLane(step, part, lane);
      if (!number.tag)
        number.bits = cut(number.bits, width);
      to[lane] = number;
    });
  }
  laneSteps += uint64_t(std::popcount(mask));
}

Warp::Number Warp::readBuiltIn(uint64_t address, uint32_t part, uint32_t lane) {
  const Variable *variable = code.module.findVariable(Id((address - Code::inputBase) / 64));
  if (!variable || !variable->builtIn)
    return makeUnknown(address, {});
  part += uint32_t(address % 64 / 4);
  const auto &local = code.entry.localSize;
  const uint32_t invocation = place.subgroup * size + lane;
  const std::array<uint32_t, 3> id = {invocation % local[0], invocation / local[0] % local[1],
                                      invocation / local[0] / local[1]};
  part = std::min(part, 2u);
  switch (*variable->builtIn) {
  case BuiltIn::NumWorkgroups:
    return {place.grid[part], 0};
  case BuiltIn::WorkgroupSize:
    return {local[part], 0};
  case BuiltIn::WorkgroupId:
    return {place.workgroup[part], 0};
  case BuiltIn::LocalInvocationId:
    return {id[part], 0};
  case BuiltIn::GlobalInvocationId:
    return {uint64_t(place.workgroup[part]) * local[part] + id[part], 0};
  case BuiltIn::LocalInvocationIndex:
    return {invocation, 0};
  case BuiltIn::SubgroupSize:
    return {size, 0};
  case BuiltIn::NumSubgroups:
    return {(local[0] * local[1] * local[2] + size - 1) / size, 0};
  case BuiltIn::SubgroupId:
    return {place.subgroup, 0};
  case BuiltIn::SubgroupLocalInvocationId:
    return {lane, 0};
  }
  return makeUnknown(address, {});
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// Numbers that are not known are spread over an operand: each lies in sectors of its own.
static constexpr uint64_t spreadCount = 1 << 17, spreadBytes = 1 << 22;

/// Sends a request; returns its latency, 0 if it is for a built-in number or own variable.
double Warp::access(uint32_t site, Id pointer, Mask mask, uint32_t words) {
  const Site &what = code.sites[site];
  addresses.clear();
  bool isUnknown = false;
  auto variable = code.addressOf.find(pointer);
  forEach(mask, [&](uint32_t lane) {
    Number address =
        variable != code.addressOf.end() ? Number{variable->second, 0} : get(pointer, 0, lane);
    isUnknown |= address.tag != 0;
    addresses.push_back(
        int64_t(address.bits + (address.tag ? address.tag % spreadCount * spreadBytes : 0)));
  });
  if (addresses.empty())
    return 0;
  // Neighbouring lanes have neighbouring parts of a line, as many bytes each.
  int64_t bytes = what.bytes;
  if (what.lines) {
    bytes = std::clamp<int64_t>(what.lines * what.lineBytes / size, what.bytes, what.lineBytes);
    for (size_t lane = 0; lane < addresses.size(); ++lane) {
      const int64_t parts = what.lineBytes / bytes;
      addresses[lane] +=
          int64_t(lane) / parts % what.lines * what.lineStride + int64_t(lane) % parts * bytes;
    }
  }
  const uint64_t first = uint64_t(addresses.front());
  if (first >= Code::inputBase && first < Code::ownBase)
    return 0;
  const bool isOwn = first >= Code::ownBase && first < Code::globalBase;
  if (isOwn && variable != code.addressOf.end())
    return 0; // a register
  Request request;
  request.site = site;
  request.space = isOwn ? Space::Own : first < Code::inputBase ? Space::Shared : Space::Global;
  if (isUnknown && !isOwn)
    assume(*what.instruction, "the address depends on what is loaded or not computed; lanes with "
                              "different data are assumed to touch different sectors");
  request.addresses = addresses;
  request.bytes = bytes * words;
  request.subgroup = place.subgroup;
  request.lanes = size;
  hasRead |= what.reads && request.space == Space::Global;
  request.reads = what.reads;
  request.writes = what.writes;
  request.passesL1 = what.passesL1;
  // Where the base is not aligned, loads stay apart.
  for (int64_t address : addresses)
    if (words > 1 && address % request.bytes != 0) {
      request.bytes = what.bytes;
      for (uint32_t i = 1; i < words; ++i) {
        listener.request(request);
        for (int64_t &each : addresses)
          each += what.bytes;
      }
      break;
    }
  return listener.request(request);
}

void Warp::load(const Step &step, Mask mask) {
  Id pointer = step.instruction->operands[0];
  auto variable = code.addressOf.find(pointer);
  for (uint32_t part = 0; part < step.parts; ++part)
    forEach(mask, [&](uint32_t lane) {
      Number address =
          variable != code.addressOf.end() ? Number{variable->second, 0} : get(pointer, 0, lane);
      Number &to = at(step.slot + part)[lane];
      if (!address.tag && address.bits >= Code::inputBase && address.bits < Code::ownBase)
        to = readBuiltIn(address.bits, part, lane);
      else if (variable != code.addressOf.end() && address.bits >= Code::ownBase &&
               address.bits < Code::globalBase)
        to = get(pointer, part, lane); // what was stored last
      else
        to = makeUnknown(part, {address});
      if (!to.tag)
        to.bits = cut(to.bits, std::max(1u, step.width));
    });
}

//===----------------------------------------------------------------------===//
// Time
//===----------------------------------------------------------------------===//

double Warp::getReady(const Step &step) const {
  double time = 0;
  for (Id id : step.uses)
    if (id < ready.size())
      time = std::max(time, ready[id]);
  return time;
}

void Warp::schedule(const Step &step, double latency) {
  const bool isEarly = step.kind == Step::Kind::Load || step.kind == Step::Kind::Copy ||
                       (step.kind == Step::Kind::Plain && step.isFollowed);
  double &now = isEarly ? ahead : clock;
  double start = std::max(now, getReady(step));
  // To name a part of a vector or a matrix is no instruction, so it keeps none waiting.
  if (step.issue > 0 || step.kind != Step::Kind::Plain)
    now = start + step.issue;
  if (step.kind == Step::Kind::Store)
    ahead = std::max(ahead, start); // no load moves up over it
  if (step.kind == Step::Kind::Copy) {
    copies = std::max(copies, start + latency);
    hasCopied = true;
  } else if (step.instruction->result && step.instruction->result < ready.size()) {
    ready[step.instruction->result] =
        start + (step.issue > 0 || step.kind == Step::Kind::Load ? latency : 0);
  }
}

/// Waits until only the last `groupsLeft` groups of copies may be on their way.
void Warp::waitForCopies(int64_t groupsLeft) {
  if (groups.size() <= size_t(groupsLeft))
    return;
  const size_t landed = groups.size() - size_t(groupsLeft);
  const double now = std::max(clock, ahead);
  double share = 2; // more than any
  for (; landedGroups < landed; ++landedGroups) {
    const CopyGroup &group = groups[landedGroups];
    if (group.isEmpty)
      continue;
    const double past = group.landed > group.begun
                            ? std::min(1.0, (now - group.begun) / (group.landed - group.begun))
                            : 1;
    share = std::min(share, group.barriers < barriers ? past : 0);
  }
  if (share <= 1)
    roundsAhead += share;
  clock = ahead = std::max(now, groups[landed - 1].landed);
}

/// Runs a product of matrices by four subgroups, which read its factors once for all of them, a
/// quarter each, in lines without bank conflicts. It ends behind those before it.
void Warp::multiply(const Step &step) {
  constexpr int64_t rows = 64, depthBytes = 32, subgroups = 4, run = 16;
  for (uint32_t i = 0; i < 2; ++i) {
    const int64_t bytes = (i == 0 ? rows : step.groupColumns) * depthBytes / subgroups;
    const Number base = get(step.instruction->operands[i], 0, 0);
    if (base.tag)
      assume(*step.instruction, "the address of a factor is not computed");
    const int64_t begin = base.tag ? int64_t(Code::sharedBase) : int64_t(base.bits) / run * run;
    for (int64_t at = 0; at < bytes; at += run * size) {
      addresses.clear();
      for (int64_t lane = 0; lane < std::min<int64_t>(size, (bytes - at) / run); ++lane)
        addresses.push_back(begin + at + lane * run);
      Request request;
      request.site = step.site + i;
      request.space = Space::Shared;
      request.addresses = addresses;
      request.bytes = run;
      request.subgroup = place.subgroup;
      request.lanes = size;
      request.reads = true;
      listener.request(request);
    }
  }
  clock = std::max(clock, ahead) + step.issue;
  // Half a clock a column: the rate of the matrix pipe, where no other subgroups share it.
  products = std::max(products, clock) + double(step.groupColumns) / 2;
}

/// Copies a box, line by line, as far as it is in the tensor. No lane waits for addresses.
void Warp::copyTile(const Step &step, uint32_t lane) {
  constexpr int64_t run = 16;
  std::span<const uint32_t> operands = step.instruction->operands;
  const size_t rank = (operands.size() - 5) / 3;
  auto getConstant = [&](size_t i) {
    const Constant *constant = code.module.findConstant(operands[i]);
    return constant ? int64_t(constant->bits) : 1;
  };
  const int64_t element = getConstant(4);
  Number base = get(operands[2], 0, lane);
  std::vector<int64_t> begin, strides, shape, box;
  int64_t lines = 1, stride = element;
  for (size_t i = 0; i < rank; ++i) {
    const Number at = get(operands[5 + 2 * rank + i], 0, lane);
    if (at.tag)
      assume(*step.instruction, "the place of a box is not computed");
    begin.push_back(at.tag ? 0 : int64_t(int32_t(at.bits)));
    shape.push_back(getConstant(5 + 2 * i));
    box.push_back(getConstant(6 + 2 * i));
    strides.push_back(stride);
    stride *= shape.back();
    lines *= i ? box.back() : 1;
  }
  addresses.clear();
  Request request;
  request.subgroup = place.subgroup;
  request.lanes = 1;
  request.bytes = std::min(box[0], shape[0] - begin[0]) * element;
  for (int64_t number = 0; number < lines && request.bytes > 0; ++number) {
    int64_t address = int64_t(base.bits) + begin[0] * element, rest = number;
    bool isInside = true;
    for (size_t i = 1; i < rank; ++i) {
      const int64_t at = begin[i] + rest % box[i];
      rest /= box[i];
      isInside &= at < shape[i];
      address += at * strides[i];
    }
    if (isInside)
      addresses.push_back(address);
  }
  double latency = 0;
  if (!addresses.empty()) {
    request.addresses = addresses;
    request.site = step.site;
    request.space = Space::Global;
    request.reads = request.passesL1 = true;
    hasRead = true;
    latency = listener.request(request);
  }
  // Zeros for elements outside are written, too. A line is a turn of workgroup memory.
  const int64_t to = int64_t(get(operands[0], 0, lane).bits), line = box[0] * element;
  request.reads = request.passesL1 = false;
  request.writes = true;
  request.site = step.site + 1;
  request.space = Space::Shared;
  request.bytes = run;
  for (int64_t number = 0; number < lines; ++number) {
    addresses.clear();
    for (int64_t at = 0; at < line; at += run)
      addresses.push_back(to + number * line + at);
    request.addresses = addresses;
    listener.request(request);
  }
  clock = std::max(clock, ahead) + step.issue;
  double &ready = tiles[get(operands[1], 0, lane).bits];
  ready = std::max(ready, clock + latency);
}

void Warp::run(const Step &step, Mask mask) {
  const Instruction &instruction = *step.instruction;
  double latency = latencies[size_t(step.waits)];
  switch (step.kind) {
  case Step::Kind::Load:
    latency =
        step.words ? access(step.site, instruction.operands[0], mask, step.words) : joinedLatency;
    joinedLatency = latency;
    if (step.isFollowed)
      load(step, mask);
    break;
  case Step::Kind::Store: {
    access(step.site, instruction.operands[0], mask);
    Id pointer = instruction.operands[0];
    if (code.addressOf.contains(pointer) && code.slotOf[pointer] != Code::none &&
        instruction.op == Op::Store)
      for (uint32_t part = 0; part < code.partsOf[pointer]; ++part)
        forEach(mask, [&](uint32_t lane) {
          at(code.slotOf[pointer] + part)[lane] = get(instruction.operands[1], part, lane);
        });
    break;
  }
  case Step::Kind::Copy:
    latency = access(step.site, instruction.operands[1], mask);
    latency += access(step.site + 1, instruction.operands[0], mask);
    break;
  case Step::Kind::Barrier:
    clock = ahead = std::max(clock, ahead) + step.issue;
    ++barriers;
    return;
  case Step::Kind::CommitCopies:
    groups.push_back({std::max(clock, ahead), copies, barriers, !hasCopied});
    hasCopied = false;
    return;
  case Step::Kind::WaitCopies:
    return waitForCopies(step.groups);
  case Step::Kind::Tile:
    return forEach(mask, [&](uint32_t lane) { copyTile(step, lane); });
  case Step::Kind::WaitTile: {
    const auto lane = uint32_t(std::countr_zero(mask));
    auto found = tiles.find(get(instruction.operands[0], 0, lane).bits);
    clock = ahead = std::max({clock, ahead, found == tiles.end() ? 0 : found->second}) + step.issue;
    return;
  }
  case Step::Kind::Product:
    return multiply(step);
  case Step::Kind::CommitProducts:
    productGroups.push_back(products);
    return;
  case Step::Kind::WaitProducts:
    if (productGroups.size() > size_t(step.groups))
      clock = ahead =
          std::max({clock, ahead, productGroups[productGroups.size() - 1 - size_t(step.groups)]});
    return;
  case Step::Kind::Variable:
    return;
  case Step::Kind::Plain:
    if (step.isFollowed)
      compute(step, mask);
    break;
  }
  schedule(step, latency);
}

//===----------------------------------------------------------------------===//
// Control
//===----------------------------------------------------------------------===//

/// Gives phis the values of the blocks that the lanes come from.
void Warp::enter(const CodeBlock &block, Mask mask) {
  std::vector<std::pair<Number *, Number>> news;
  for (const Instruction &phi : block.block->instructions) {
    if (phi.op != Op::Phi)
      break;
    uint32_t slot = code.slotOf[phi.result];
    forEach(mask, [&](uint32_t lane) {
      for (size_t i = 0; i + 1 < phi.operands.size(); i += 2) {
        if (phi.operands[i + 1] != cameFrom[lane])
          continue;
        Id from = phi.operands[i];
        if (from < ready.size())
          ready[phi.result] = std::max(
              ready[from], lane == uint32_t(std::countr_zero(mask)) ? 0 : ready[phi.result]);
        if (slot != Code::none)
          for (uint32_t part = 0; part < code.partsOf[phi.result]; ++part)
            news.emplace_back(&at(slot + part)[lane], get(from, part, lane));
      }
    });
  }
  for (auto &[to, number] : news)
    *to = number;
}

void Warp::branch(const CodeBlock &block, Mask mask) {
  const Instruction &last = block.block->instructions.back();
  if (last.op == Op::Return) {
    live &= ~mask;
    return;
  }
  const auto &next = block.block->successors;
  forEach(mask, [&](uint32_t lane) { cameFrom[lane] = block.block->label; });
  if (last.op == Op::Branch) {
    forEach(mask, [&](uint32_t lane) { blockOf[lane] = next[0]; });
    return;
  }
  if (last.op != Op::BranchConditional)
    throw Error(code.where + ": ends a block in a way that the model does not follow");
  const uint32_t to[] = {code.function.getBlock(last.operands[1]),
                         code.function.getBlock(last.operands[2])};
  // A branch on loaded data enters a selection, and stays in a loop once.
  uint32_t assumed = 0;
  bool isAssumed = false;
  for (uint32_t i = 0; i < 2; ++i)
    if (next.size() == 2 && (block.leavesLoop[i] || block.isMerge[i]))
      assumed = 1 - i;
  const bool isLoop = block.leavesLoop[0] || block.leavesLoop[1];
  auto &visit = visits[size_t(&block - code.blocks.data())];
  if (isLoop && visit % 2 == 1)
    assumed = 1 - assumed;
  forEach(mask, [&](uint32_t lane) {
    const Number &condition = get(last.operands[0], 0, lane);
    isAssumed |= condition.tag != 0;
    blockOf[lane] = to[condition.tag ? assumed : condition.bits & 1 ? 0 : 1];
  });
  if (isAssumed) {
    ++visit;
    assume(last, isLoop ? "the trips of the loop depend on loaded data; it is assumed to run once"
                        : "the branch depends on loaded data; it is assumed to be taken into the "
                          "selection");
  }
}

void Warp::step() {
  uint32_t best = UINT32_MAX, number = 0;
  forEach(live, [&](uint32_t lane) {
    if (code.blocks[blockOf[lane]].rank < best) {
      best = code.blocks[blockOf[lane]].rank;
      number = blockOf[lane];
    }
  });
  Mask mask = 0;
  forEach(live, [&](uint32_t lane) {
    if (blockOf[lane] == number)
      mask |= Mask(1) << lane;
  });
  const CodeBlock &block = code.blocks[number];
  ++laneSteps;
  clock = ahead = std::max(clock, ahead);
  hasRead = false;
  enter(block, mask);
  for (const Step &step : block.steps)
    run(step, mask);
  rounds += hasRead;
  work.add(block.work, 1);
  clock = ahead = std::max(clock, ahead) + 1;
  branch(block, mask);
}
