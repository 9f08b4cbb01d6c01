//===- AddressMap.cpp - Addresses of loads and stores ---------------------===//

#include "weir/CodeProofs/AddressMap.h"

#include "Points.h"
#include "Walk.h"
#include "weir/Artifact/Error.h"
#include "weir/CodeProofs/Footprint.h"

#include <algorithm>

using namespace weir;
using namespace weir::spv;

/// Max nesting depth of selections and loops.
static constexpr size_t maxDepth = 128;
/// Max number of guards of an instruction.
static constexpr size_t maxGuards = 64;

//===----------------------------------------------------------------------===//
// Instructions
//===----------------------------------------------------------------------===//

/// Whether an access to workgroup memory stays in its variable.
bool Walk::staysInVariable(const MemoryAccess &access) const {
  const Variable &variable = *module.findVariable(access.binding);
  int64_t bytes = module.getType(module.getType(variable.type).element).bytes;
  std::optional<Reach> reach = getReach(map, access);
  if (reach && reach->begin >= 0 && (bytes == 0 || reach->end <= bytes))
    return true;
  auto extent = bytes > 0 ? getExtent(map, access) : std::nullopt;
  return extent && extent->first >= 0 && extent->second <= bytes;
}

/// Records an access to what a pointer points to. Where selections make the pointer, there is an
/// access for each choice.
void Walk::record(const Instruction &instruction, Id pointer, bool reads, bool writes,
                  const Context &context) {
  std::vector<Id> selections;
  findChoices(pointer, selections, 0);
  if (selections.size() > maxChoices)
    selections.clear();
  // Numbers that data decide have a range, which says as much as their choices.
  std::erase_if(selections, [&](Id selection) {
    Value condition = get(findSelection(selection)->condition);
    bool isFollowed = condition.kind == Value::Kind::Condition &&
                      std::none_of(condition.constraints.begin(), condition.constraints.end(),
                                   [&](const Affine &each) { return hasOthers(each); });
    return !isFollowed && !origins.contains(selection);
  });
  for (size_t ways = 0; ways < size_t(1) << selections.size(); ++ways) {
    Context chosen = context;
    for (size_t i = 0; i < selections.size(); ++i) {
      bool isFirst = !(ways >> i & 1);
      choices[selections[i]] = isFirst;
      require(chosen, get(findSelection(selections[i])->condition), isFirst);
    }
    recordOne(instruction, pointer, reads, writes, chosen);
  }
  choices.clear();
}

void Walk::recordOne(const Instruction &instruction, Id pointer, bool reads, bool writes,
                     const Context &context) {
  Value to = getUnder(pointer, context.guards);
  MemoryAccess access;
  if (to.kind == Value::Kind::Pointer) {
    if (to.root == Value::Root::Private || to.root == Value::Root::BuiltIn)
      return;
    if (to.root == Value::Root::Binding) {
      access.root = MemoryAccess::Root::Binding;
      access.binding = to.binding;
    } else if (to.root == Value::Root::Shared) {
      access.root = MemoryAccess::Root::Shared;
      access.binding = to.binding;
    }
    if (!isInHeader)
      access.address = to.number;
  }
  const Type &accessed = module.getType(module.getType(module.getTypeOf(pointer)).element);
  access.bytes = accessed.bytes;
  access.alignment = accessed.kind == Type::Kind::Vector && accessed.count == 3
                         ? accessed.alignment
                         : std::max<int64_t>(accessed.bytes, 1);
  if (accessed.kind == Type::Kind::Array || accessed.kind == Type::Kind::Struct)
    access.alignment = accessed.alignment;
  access.isPrivate = module.hasVulkanMemoryModel() && isPrivateAccess(instruction);
  access.reads = reads;
  access.writes = writes;
  access.guards = context.guards;
  access.isCertain = context.isCertain && !isInHeader && !hasReturned;
  access.loops = context.loops;
  access.isInHeader = isInHeader;
  access.position = position++;
  if (instruction.op == Op::Load && instruction.operands.size() > 1)
    access.isReadOnly = instruction.operands[1] & MemoryOperand::ReadOnly;
  if (getKind(instruction.op) == OpKind::Atomic) {
    std::optional<int64_t> scope = getConstant(instruction.operands[1]);
    bool isOfDevice =
        scope && (Scope(*scope) == Scope::Device || Scope(*scope) == Scope::QueueFamily);
    access.isAtomic = isOfDevice || (access.root == MemoryAccess::Root::Shared && scope &&
                                     Scope(*scope) == Scope::Workgroup);
    access.isCertain &= access.isAtomic; // atomic only among some invocations
  }
  access.word = instruction.word;
  access.source = instruction.source;
  if (auto number = definitions.find(pointer);
      access.root == MemoryAccess::Root::Shared && number != definitions.end() &&
      number->second->op == Op::ConvertUToPtr && !staysInVariable(access)) {
    // Numbers lead from one variable to the next; a generic address leads anywhere.
    bool isShared = module.getType(number->second->type).storage == StorageClass::Workgroup;
    access.root = isShared ? access.root : MemoryAccess::Root::Unknown;
    access.address.reset();
    leavesVariables = true;
  }
  if (instruction.op == Op::CopyAsync) {
    access.isLate = true;
    access.isCertain &= writes || getConstant(instruction.operands[2]) == access.bytes;
  }
  map.accesses.push_back(std::move(access));
}

void Walk::recordBarrier(const Instruction &instruction, const Context &context) {
  std::optional<int64_t> scope = getConstant(instruction.operands[0]),
                         memory = getConstant(instruction.operands[1]),
                         semantics = getConstant(instruction.operands[2]);
  if (scope && Scope(*scope) != Scope::Workgroup)
    return;
  bool isKnown = scope && memory && semantics;
  BarrierSite barrier;
  barrier.guards = context.guards;
  barrier.isCertain = isKnown && context.isCertain && !isInHeader && !hasReturned;
  barrier.loops = context.loops;
  barrier.position = position++;
  barrier.word = instruction.word;
  barrier.source = instruction.source;
  barrier.ordersBindings = barrier.ordersShared = true;
  if (isKnown) {
    bool isWide = Scope(*memory) == Scope::Workgroup || Scope(*memory) == Scope::Device ||
                  Scope(*memory) == Scope::QueueFamily;
    bool orders = isWide && (*semantics & (AcquireRelease | SequentiallyConsistent) ||
                             (*semantics & Acquire && *semantics & Release));
    constexpr int64_t both = MakeAvailable | MakeVisible;
    orders &= !module.hasVulkanMemoryModel() || (*semantics & both) == both;
    barrier.ordersBindings = orders && *semantics & UniformMemory;
    barrier.ordersShared = orders && *semantics & WorkgroupMemory;
  }
  map.barriers.push_back(std::move(barrier));
}

/// Records an instruction of PTX that the lanes of a mask run together.
void Walk::recordLanes(const Instruction &instruction, const Context &context) {
  LaneSite site;
  site.guards = context.guards;
  site.isCertain = context.isCertain && !isInHeader && !hasReturned;
  site.loops = context.loops;
  if (std::optional<int64_t> mask = getConstant(instruction.operands.back()))
    site.mask = uint32_t(*mask);
  site.word = instruction.word;
  site.source = instruction.source;
  map.laneSites.push_back(std::move(site));
}

/// Whether guards may say more of an instruction's result than its operands do.
static bool canBeVague(Op op) {
  switch (op) {
  case Op::IAdd:
  case Op::ISub:
  case Op::IMul:
  case Op::UDiv:
  case Op::SDiv:
  case Op::UMod:
  case Op::SRem:
  case Op::ShiftLeftLogical:
  case Op::ShiftRightLogical:
  case Op::ShiftRightArithmetic:
  case Op::BitwiseAnd:
  case Op::BitwiseOr:
  case Op::BitwiseXor:
  case Op::UConvert:
  case Op::SConvert:
  case Op::ExtInst:
  case Op::Select:
  case Op::ConvertUToPtr:
  case Op::AccessChain:
  case Op::InBoundsAccessChain:
    return true;
  default:
    return false;
  }
}

void Walk::visit(const Instruction &instruction, const Context &context) {
  const std::span<const uint32_t> &operands = instruction.operands;
  const Op op = instruction.op;
  const bool isStore = op == Op::Store || op == Op::AtomicStore,
             isLoad = op == Op::Load || op == Op::AtomicLoad;
  if (isStore || isLoad || getKind(op) == OpKind::Atomic)
    record(instruction, operands[0], !isStore, !isLoad, context);
  switch (op) {
  case Op::CooperativeMatrixLoadKHR:
  case Op::CooperativeMatrixStoreKHR:
    recordMatrix(instruction, context);
    break;
  case Op::GroupMatrix:
    recordGroup(instruction, context);
    break;
  case Op::CopyTile:
    recordTile(instruction, context);
    break;
  case Op::MBarrierInit:
    recordMBarrier(instruction, context, 0);
    break;
  case Op::MBarrierExpect:
  case Op::MBarrierWait:
    recordMBarrier(instruction, context, getConstant(operands[1]).value_or(-1));
    break;
  case Op::CopyAsync:
    record(instruction, operands[1], true, false, context);
    record(instruction, operands[0], false, true, context);
    break;
  case Op::NamedEffect:
    if (const std::string &name = module.getString(operands[0]);
        name.starts_with("bar.warp.sync")) {
      map.hasSubgroupOrder = true;
      recordLanes(instruction, context);
    } else if (!name.starts_with("cp.async.") && !name.starts_with("wgmma.") &&
               !isFenceForProducts(name)) { // those are followed by findFlights
      map.hasOtherOrder = true;
    }
    break;
  case Op::Named:
    if (const std::string &name = module.getString(operands[0]);
        name.starts_with("shfl.sync") && !name.ends_with("|p"))
      recordLanes(instruction, context);
    break;
  case Op::ControlBarrier:
    recordBarrier(instruction, context);
    break;
  case Op::FunctionCall:
    throw Lost{"it calls functions"};
  default:
    break;
  }
  if (instruction.op == Op::Variable) {
    Value value;
    value.kind = Value::Kind::Pointer;
    value.root = Value::Root::Private;
    define(instruction.result, value);
  } else if (instruction.result && instruction.type && !values.contains(instruction.result)) {
    Value value;
    isVague = false;
    try {
      value = evaluate(instruction);
    } catch (TooLarge) {
    }
    define(instruction.result, value);
    if ((canBeVague(instruction.op) || joins.contains(instruction.result)) &&
        (isVague || std::any_of(operands.begin(), operands.end(),
                                [&](Id operand) { return vague.contains(operand); })))
      vague.insert(instruction.result);
    if (isUniform(instruction)) {
      uniform.insert(instruction.result);
      if (value.kind == Value::Kind::Number)
        for (auto [number, factor] : value.number->terms)
          map.atoms.setUniform(number);
    }
  }
}

/// Collects the variables that stores and atomics write.
void Walk::findWrites() {
  for (const Block &block : function.blocks)
    for (const Instruction &instruction : block.instructions) {
      bool isAtomic = getKind(instruction.op) == OpKind::Atomic;
      if (instruction.op != Op::Store && instruction.op != Op::CopyAsync &&
          instruction.op != Op::CopyTile && instruction.op != Op::CooperativeMatrixStoreKHR &&
          (!isAtomic || instruction.op == Op::AtomicLoad))
        continue;
      Id at = instruction.operands[0];
      if (auto number = definitions.find(at);
          number != definitions.end() && number->second->op == Op::ConvertUToPtr) {
        auto origin = origins.find(number->second->operands[0]);
        if (origin != origins.end() && origin->second)
          written.insert(origin->second);
        else
          writesAnywhere = true;
        continue;
      }
      for (auto chain = definitions.find(at);
           chain != definitions.end() &&
           (chain->second->op == Op::AccessChain || chain->second->op == Op::InBoundsAccessChain ||
            chain->second->op == Op::CopyObject);
           chain = definitions.find(at))
        at = chain->second->operands[0];
      auto local = definitions.find(at);
      if (local != definitions.end() && local->second->op != Op::Variable)
        writesAnywhere = true;
      written.insert(at);
    }
}

/// Finds the numbers that are made of addresses, by rounds over all instructions. Those that may
/// be stored are not followed: a loaded number is taken for no address.
void Walk::findOrigins() {
  bool hasAddresses = false, changes = true;
  auto find = [&](Id id) -> std::optional<Id> {
    auto found = origins.find(id);
    return found == origins.end() ? std::nullopt : std::optional(found->second);
  };
  for (size_t round = 0; changes; ++round) {
    changes = false;
    if (round > 64)
      throw Lost{"its numbers form too long cycles"};
    for (const Block &block : function.blocks)
      for (const Instruction &instruction : block.instructions) {
        std::span<const uint32_t> operands = instruction.operands;
        std::optional<Id> origin;
        if (instruction.op == Op::ConvertPtrToU) {
          origin = operands[0];
          hasAddresses = true;
        } else if (!hasAddresses || !instruction.result || !instruction.type ||
                   instruction.op == Op::Load || instruction.op == Op::ConvertUToPtr ||
                   instruction.op == Op::GroupMatrix || getKind(instruction.op) == OpKind::Atomic ||
                   module.getType(instruction.type).kind == Type::Kind::Bool) {
          continue;
        } else {
          const Op op = instruction.op;
          size_t first = op == Op::ExtInst ? 2 : op == Op::Named || op == Op::Select ? 1 : 0;
          size_t number = 0;
          const size_t end = op == Op::CompositeExtract ? 1 : operands.size(); // literals follow
          for (size_t i = first; i < end; i += op == Op::Phi ? 2 : 1)
            if (std::optional<Id> from = find(operands[i]))
              origin = number++ && origin != from ? 0 : from;
          bool isKept = op == Op::Phi || op == Op::Select || op == Op::CopyObject ||
                        (op == Op::IAdd && number == 1) ||
                        (op == Op::ISub && number == 1 && find(operands[0]));
          if (!origin)
            continue;
          if (!isKept)
            origin = 0;
        }
        auto [place, isNew] = origins.try_emplace(instruction.result, *origin);
        changes |= isNew;
        if (place->second && place->second != *origin) {
          place->second = 0;
          changes = true;
        }
      }
  }
  for (const Block &block : function.blocks)
    for (const Instruction &instruction : block.instructions) {
      const Op op = instruction.op;
      size_t first = op == Op::Store         ? 1
                     : op == Op::NamedAtomic ? 4
                     : op == Op::AtomicStore ? 3
                                             : instruction.operands.size();
      for (size_t i = first; i < instruction.operands.size(); ++i)
        if (find(instruction.operands[i]))
          throw Lost{"it stores an address"};
    }
}

void Walk::define(Id id, const Value &value) {
  values[id] = value;
  made.push_back(id);
}

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

/// Adds a guard, and what a choice in it must be so that it holds. Where that says all that the
/// guard does, it stands for it.
void Walk::addGuard(Context &context, const Affine &guard) {
  try {
    if (map.atoms.getRange(guard).min >= 0)
      return; // it always holds
  } catch (TooLarge) {
  }
  if (context.guards.size() > maxGuards)
    throw Lost{"its branches are nested too deeply"};
  const size_t place = context.guards.size();
  context.guards.push_back(guard);
  Affine left = guard; // without the choices that are known
  for (auto [number, factor] : guard.terms) {
    const Atom atom = map.atoms[number];
    if (atom.kind != Atom::Kind::Choice || context.guards.size() > maxGuards / 2)
      continue;
    try {
      Affine others = guard - Affine::number(number, factor);
      bool mayBeFirst = map.atoms.getRange(others + atom.of * factor).max >= 0,
           mayBeSecond = map.atoms.getRange(others + atom.otherwise * factor).max >= 0;
      Value condition;
      condition.kind = Value::Kind::Condition;
      condition.constraints = atom.conditions;
      if (mayBeFirst == mayBeSecond)
        continue;
      require(context, condition, mayBeFirst);
      left = left + ((mayBeFirst ? atom.of : atom.otherwise) - Affine::number(number)) * factor;
    } catch (TooLarge) {
    }
  }
  if (left.isConstant() && left.constant >= 0)
    context.guards.erase(context.guards.begin() + ptrdiff_t(place));
}

/// Adds to the guards that `condition` is true or false.
void Walk::require(Context &context, const Value &condition, bool isTrue) {
  const std::vector<Affine> &constraints = condition.constraints;
  auto add = [&](const Affine &guard) { addGuard(context, guard); };
  if (condition.kind == Value::Kind::Condition && isTrue) {
    std::for_each(constraints.begin(), constraints.end(), add);
  } else if (condition.kind == Value::Kind::Condition && constraints.size() == 1) {
    add(negate(constraints[0]));
  } else if (condition.kind == Value::Kind::Condition && constraints.empty()) {
    context.guards.push_back(Affine::of(-1)); // never runs
  } else {
    if (condition.kind != Value::Kind::Condition) {
      context.isCertain = false;
      return;
    }
    // Two constraints that state x = 0: if x is never negative, the negation is x > 0.
    if (constraints.size() == 2 && constraints[0] == constraints[1] * -1)
      for (const Affine &constraint : constraints)
        if (auto range = map.atoms.getRange(constraint, context.guards); range && range->min >= 0) {
          add(constraint - Affine::of(1));
          return;
        }
    if (std::any_of(constraints.begin(), constraints.end(),
                    [&](const Affine &each) { return hasOthers(each); })) {
      context.isCertain = false;
      return;
    }
    // Not pushed by `add`: the choice says no more than this condition.
    if (context.guards.size() > maxGuards)
      throw Lost{"its branches are nested too deeply"};
    context.guards.push_back(map.atoms.choose(constraints, Affine::of(-1), Affine()));
  }
}

/// Marks the loops as irregular, since control jumps out of the region: to a loop's end, or out of
/// the function.
void Walk::leave(Context &context) {
  for (uint32_t loop : context.loops)
    map.loops[loop].isIrregular = true;
}

/// Walks from `block` on until `merge`, or until control leaves the region otherwise.
/// `isSelected`: whether it is inside a selection of the innermost loop.
Walk::End Walk::walk(uint32_t block, std::optional<uint32_t> merge, Context &context,
                     bool isSelected) {
  if (++depth > maxDepth)
    throw Lost{"its control flow is nested too deeply"};
  End end = End::Left;
  for (std::optional<uint32_t> next = block; next;) {
    block = *next;
    if (block == merge) {
      end = End::Merge;
      break;
    }
    if (!open.empty()) {
      const OpenLoop &loop = open.back();
      if (block == loop.header && !isSelected)
        break;
      if (block == loop.header || block == loop.merge ||
          (block == loop.continueTarget && isSelected)) {
        leave(context);
        break;
      }
    }
    if (visitOf[block])
      throw Lost{"its control flow is not structured"};
    const Block &here = function.blocks[block];
    if (here.continueTarget) {
      next = walkLoop(block, context);
      continue;
    }
    visitOf[block] = ++visits;
    for (const Instruction &instruction : here.instructions) {
      if (instruction.op == Op::Phi && arms && arms->merge == block)
        joinArms(instruction);
      visit(instruction, context);
    }
    next = branch(here, context, isSelected);
  }
  --depth;
  return end;
}

/// Walks the arms of a block's selection, if it has one; returns the block where control goes
/// on.
std::optional<uint32_t> Walk::branch(const Block &block, Context &context, bool isSelected) {
  const Instruction &last = block.instructions.back();
  if (last.op == Op::Branch)
    return block.successors[0];
  if (last.op != Op::BranchConditional && last.op != Op::Switch) {
    if (!open.empty() || depth > 2)
      hasReturned = true; // some invocations do not reach the code that follows
    leave(context);
    return std::nullopt;
  }
  Value condition = last.op == Op::Switch ? Value() : get(last.operands[0]);
  findFirstWay(block, condition);
  if (!block.merge) {
    // One successor leaves the loop or continues it.
    if (open.empty() || last.op == Op::Switch)
      throw Lost{"its control flow is not structured"};
    const OpenLoop &loop = open.back();
    if (loop.test && &block == &function.blocks[*loop.test] && !isSelected) {
      uint32_t next = block.successors[block.successors[0] == loop.merge ? 1 : 0];
      if (loop.left)
        context.guards.push_back(*loop.left);
      else
        context.isCertain = false;
      return next == loop.header ? std::nullopt : std::optional(next);
    }
    auto isExit = [&](uint32_t target) {
      return target == loop.merge || target == loop.header ||
             (target == loop.continueTarget && isSelected);
    };
    leave(context);
    if (isExit(block.successors[0]) && isExit(block.successors[1]))
      return std::nullopt;
    bool isFirst = isExit(block.successors[0]);
    if (!isFirst && !isExit(block.successors[1]))
      throw Lost{"its control flow is not structured"};
    require(context, condition, !isFirst);
    return block.successors[isFirst ? 1 : 0];
  }
  uint32_t merge = function.getBlock(block.merge);
  std::vector<bool> isLeft;
  std::vector<uint32_t> begins; // of arms
  for (size_t i = 0; i < block.successors.size(); ++i) {
    // Several cases may lead to one block.
    if (std::find(block.successors.begin(), block.successors.begin() + i, block.successors[i]) !=
        block.successors.begin() + i) {
      if (last.op == Op::BranchConditional)
        throw Lost{"its control flow is not structured"};
      continue;
    }
    Context arm = context;
    require(arm, condition, i == 0);
    begins.push_back(visits + 1);
    isLeft.push_back(walk(block.successors[i], merge, arm, true) == End::Left);
  }
  if (std::all_of(isLeft.begin(), isLeft.end(), [](bool left) { return left; }))
    return std::nullopt;
  if (last.op == Op::BranchConditional && isLeft[0] != isLeft[1])
    require(context, condition, isLeft[1]);
  else if (std::find(isLeft.begin(), isLeft.end(), true) != isLeft.end())
    context.isCertain = false;
  else if (last.op == Op::BranchConditional)
    arms = {merge,
            uint32_t(&block - function.blocks.data()),
            size_t(block.successors[0] == merge ? 0 : 1),
            last.operands[0],
            begins[0],
            begins[1],
            visits + 1};
  return merge;
}

/// Notes that a phi is a selection by the condition of a branch, where it has a number from each of
/// its arms.
void Walk::joinArms(const Instruction &phi) {
  if (phi.operands.size() != 4)
    return;
  std::optional<Id> found[2];
  for (size_t i = 0; i < 4; i += 2) {
    const uint32_t from = function.getBlock(phi.operands[i + 1]), visit = visitOf[from];
    const size_t arm = from == arms->branch                           ? arms->direct
                       : visit >= arms->begin && visit < arms->middle ? 0
                       : visit >= arms->middle && visit < arms->end   ? 1
                                                                      : 2;
    if (arm < 2)
      found[arm] = phi.operands[i];
  }
  if (found[0] && found[1])
    joins[phi.result] = {arms->condition, *found[0], *found[1]};
}

/// Returns the block of a loop, other than its header, that each trip passes and that alone leads
/// out of it.
std::optional<uint32_t> Walk::findTest(const OpenLoop &loop) const {
  std::optional<uint32_t> test;
  std::vector<bool> isSeen(function.blocks.size());
  std::vector<uint32_t> open = {loop.header};
  isSeen[loop.header] = isSeen[loop.merge] = true;
  auto visit = [&](uint32_t block) {
    if (!isSeen[block])
      open.push_back(block);
    isSeen[block] = true;
  };
  while (!open.empty()) {
    uint32_t block = open.back();
    open.pop_back();
    const Block &here = function.blocks[block];
    bool leadsOut = here.successors.empty() ||
                    std::find(here.successors.begin(), here.successors.end(), loop.merge) !=
                        here.successors.end();
    if (leadsOut && (test || block == loop.header || here.successors.size() != 2))
      return std::nullopt;
    if (leadsOut)
      test = block;
    for (uint32_t to : here.successors)
      visit(to);
  }
  if (!test || function.blocks[*test].instructions.back().op != Op::BranchConditional)
    return std::nullopt;
  // No way leads back to the header without passing it.
  isSeen.assign(isSeen.size(), false);
  isSeen[*test] = isSeen[loop.header] = true;
  for (uint32_t to : function.blocks[loop.header].successors)
    visit(to);
  while (!open.empty()) {
    uint32_t block = open.back();
    open.pop_back();
    for (uint32_t to : function.blocks[block].successors) {
      if (to == loop.header)
        return std::nullopt;
      visit(to);
    }
  }
  return test;
}

/// Walks a loop; returns the block where control goes on behind it.
uint32_t Walk::walkLoop(uint32_t block, Context &context) {
  const Block &header = function.blocks[block];
  OpenLoop loop{uint32_t(map.loops.size()), block, function.getBlock(header.merge),
                function.getBlock(header.continueTarget)};
  Loop &own = map.loops.emplace_back();
  own.around = context.loops;
  own.isInEachTrip =
      context.isCertain && !hasReturned &&
      context.guards.size() == (own.around.empty() ? 0 : map.loops[own.around.back()].guards);
  const size_t madeBefore = made.size();
  Context atHeader = context;
  atHeader.loops.push_back(loop.number);
  Context inside = atHeader;
  const Instruction &last = header.instructions.back();
  uint32_t body = header.successors.empty() ? loop.merge : header.successors[0];
  if (last.op == Op::BranchConditional && body == loop.merge)
    body = header.successors[1];
  else if (last.op == Op::BranchConditional && header.successors[1] != loop.merge)
    throw Lost{"its control flow is not structured"};
  else if (last.op != Op::Branch && last.op != Op::BranchConditional)
    throw Lost{"its control flow is not structured"};
  if (header.successors.size() == 1)
    loop.test = findTest(loop);
  try {
    countTrips(header, loop, inside);
  } catch (TooLarge) {
    inside.isCertain = false;
  }
  map.loops[loop.number].guards = inside.guards.size();
  open.push_back(loop);
  visitOf[block] = ++visits;
  bool wasInHeader = isInHeader;
  isInHeader = true;
  for (const Instruction &instruction : header.instructions)
    visit(instruction, atHeader);
  isInHeader = wasInHeader;
  Context end = inside;
  walk(body, std::nullopt, inside, false);
  if (!visitOf[loop.continueTarget]) {
    // The end is only reached from inside selections.
    end.isCertain = false;
    walk(loop.continueTarget, std::nullopt, end, false);
  }
  open.pop_back();
  // Behind the loop its counter has another value, and so has everything computed from it. A test
  // at the begin is passed once more than there are trips, and what is computed there as well.
  auto isOfLoop = [&](Id id) {
    Value &value = values[id];
    bool outlasts = loop.test && (isKnownBehind(value, loop.number) || takeLastTrip(value, loop));
    if (!outlasts)
      values.erase(id);
    return !outlasts;
  };
  made.erase(std::remove_if(made.begin() + ptrdiff_t(madeBefore), made.end(), isOfLoop),
             made.end());
  return loop.merge;
}

/// Whether a sum is the same in all trips of a loop, and of those inside it.
bool Walk::isSameInTrips(const Affine &sum, uint32_t loop) const {
  return std::all_of(sum.terms.begin(), sum.terms.end(), [&](auto term) {
    const Atom &atom = map.atoms[term.first];
    bool isSame =
        atom.kind != Atom::Kind::Other && (atom.kind != Atom::Kind::Trip || atom.number < loop);
    Atoms::forEachInside(
        atom, [&](const Affine &inner) { isSame = isSame && isSameInTrips(inner, loop); });
    return isSame;
  });
}

/// Whether a value that was made in a loop is known behind it: it has the same value in all trips.
bool Walk::isKnownBehind(const Value &value, uint32_t loop) const {
  auto isSame = [&](const Affine &sum) { return isSameInTrips(sum, loop); };
  switch (value.kind) {
  case Value::Kind::Number:
  case Value::Kind::Pointer:
    return value.number && isSame(*value.number);
  case Value::Kind::Condition:
    return std::all_of(value.constraints.begin(), value.constraints.end(), isSame);
  default:
    return false;
  }
}

/// Sets a value that was made in a loop to that of the last trip, if the number of trips is known.
bool Walk::takeLastTrip(Value &value, const OpenLoop &loop) const {
  if (!loop.last || !value.number ||
      (value.kind != Value::Kind::Number && value.kind != Value::Kind::Pointer))
    return false;
  Affine sum = *value.number;
  for (auto [atom, factor] : value.number->terms)
    if (map.atoms[atom].kind == Atom::Kind::Trip && map.atoms[atom].number == loop.number)
      sum = sum + Affine::number(atom, -factor) + Affine::of(*loop.last) * factor;
  if (!isSameInTrips(sum, loop.number))
    return false;
  value.number = sum;
  return true;
}

/// Makes the atoms that identify invocations: local ids, or subgroup and lane, or both, as the
/// code uses them.
void Walk::makeIds() {
  auto add = [&](std::vector<uint32_t> &ids, BuiltIn builtIn, uint32_t axis) {
    const Value id = getBuiltIn(builtIn, axis);
    for (auto [atom, factor] : id.number->terms)
      ids.push_back(atom);
  };
  bool hasLanes = false, hasLocals = false;
  for (uint32_t i = 0; i < map.atoms.size(); ++i) {
    hasLanes |= map.atoms[i].kind == Atom::Kind::Subgroup || map.atoms[i].kind == Atom::Kind::Lane;
    hasLocals |= map.atoms[i].kind == Atom::Kind::Local;
  }
  for (uint32_t axis = 0; axis < 3; ++axis) {
    add(map.groupIds, BuiltIn::WorkgroupId, axis);
    if (hasLocals || !hasLanes)
      add(map.localIds, BuiltIn::LocalInvocationId, axis);
  }
  map.hasLocalIds = hasLocals || !hasLanes;
  map.hasLaneIds = hasLanes;
  if (hasLanes) {
    add(map.laneIds, BuiltIn::SubgroupId, 0);
    add(map.laneIds, BuiltIn::SubgroupLocalInvocationId, 0);
  }
}

static uint32_t getBit(Atom::Kind kind) { return 1u << uint32_t(kind); }

/// Returns the kinds of all atoms in a sum, nested ones included, as bits.
static uint32_t getKinds(const Atoms &atoms, const Affine &sum) {
  uint32_t kinds = 0;
  for (auto [number, factor] : sum.terms) {
    kinds |= getBit(atoms[number].kind);
    Atoms::forEachInside(atoms[number],
                         [&](const Affine &inner) { kinds |= getKinds(atoms, inner); });
  }
  return kinds;
}

static uint32_t getKinds(const Atoms &atoms, const std::vector<Affine> &sums) {
  uint32_t kinds = 0;
  for (const Affine &sum : sums)
    kinds |= getKinds(atoms, sum);
  return kinds;
}

static const uint32_t localKinds = getBit(Atom::Kind::Local),
                      laneKinds = getBit(Atom::Kind::Lane) | getBit(Atom::Kind::Subgroup);

/// Whether a sum has numbers that may differ between invocations although their ids and counters
/// are equal.
static bool mayVary(const Atoms &atoms, const Affine &sum) {
  return std::any_of(sum.terms.begin(), sum.terms.end(), [&](auto term) {
    bool found = atoms[term.first].kind == Atom::Kind::Other && !atoms.isUniform(term.first);
    Atoms::forEachInside(atoms[term.first],
                         [&](const Affine &inner) { found = found || mayVary(atoms, inner); });
    return found;
  });
}

/// Whether a guard is the same for all invocations of a workgroup.
bool Walk::isSameForAll(const Affine &guard) const {
  return !(getKinds(map.atoms, guard) & (localKinds | laneKinds)) && !mayVary(map.atoms, guard);
}

/// Whether loaded numbers exist for which the guards that have such numbers hold.
bool Walk::canDataAllow(const std::vector<Affine> &guards) const {
  std::vector<Affine> ofData;
  for (const Affine &guard : guards)
    if (hasOthers(guard)) {
      if (guard.terms.size() != 1 || !map.atoms[guard.terms[0].first].isLoaded)
        return false;
      ofData.push_back(guard);
    }
  try {
    // Each is of one number, so their intervals are all that they say.
    return !ofData.empty() && map.atoms.getRange(Affine(), ofData);
  } catch (TooLarge) {
    return false;
  }
}

/// Whether the address of an access depends on the unknown relation of local ids and lanes.
bool Walk::usesBothIds(const MemoryAccess &access) const {
  uint32_t kinds = getKinds(map.atoms, access.guards);
  if (access.address)
    kinds |= getKinds(map.atoms, *access.address);
  return kinds & localKinds && kinds & laneKinds;
}

void Walk::run() {
  for (const Block &block : function.blocks)
    for (const Instruction &instruction : block.instructions)
      if (instruction.result)
        definitions[instruction.result] = &instruction;
  if (function.blocks.empty())
    throw Lost{"it has no code"};
  for (Id id = 1; id < module.getBound(); ++id)
    if (module.findConstant(id) && module.isDecorated(id, Decoration::BuiltIn))
      throw Lost{"a constant sets its workgroup's size"};
  findOrigins();
  findWrites();
  Context context;
  walk(0, std::nullopt, context, false);
  findFlights();
  makeIds();
  // Whether a loop is regular is known only after all of it is walked.
  auto isRegular = [&](const std::vector<uint32_t> &loops) {
    return std::none_of(loops.begin(), loops.end(),
                        [&](uint32_t loop) { return map.loops[loop].isIrregular; });
  };
  // If the last subgroup is not full, some of its lanes have no invocation.
  bool areLanesFull =
      map.laneIds.empty() ||
      map.localSize[0] * map.localSize[1] * map.localSize[2] % launch.subgroupSize == 0;
  auto dependOnOthers = [&](const std::vector<Affine> &guards) {
    return std::any_of(guards.begin(), guards.end(),
                       [&](const Affine &guard) { return hasOthers(guard); });
  };
  for (MemoryAccess &access : map.accesses) {
    access.isCertain &= areLanesFull && isRegular(access.loops) && !usesBothIds(access);
    access.isDecidedByData = access.isCertain && canDataAllow(access.guards);
    access.isCertain &= !dependOnOthers(access.guards);
  }
  if (leavesVariables) // all workgroup memory is one
    for (MemoryAccess &access : map.accesses)
      if (access.root == MemoryAccess::Root::Shared) {
        access.binding = 0;
        access.address.reset();
      }
  for (BarrierSite &barrier : map.barriers) {
    barrier.isCertain &= isRegular(barrier.loops);
    barrier.isUniform =
        barrier.isCertain && std::all_of(barrier.guards.begin(), barrier.guards.end(),
                                         [&](const Affine &guard) { return isSameForAll(guard); });
  }
  for (LaneSite &site : map.laneSites)
    site.isCertain &= isRegular(site.loops);
  for (auto &[word, site] : mbarriers)
    site.isTogether &= isRegular(site.loops);
  followMBarriers();
  std::erase_if(map.accesses, [&](const MemoryAccess &access) {
    return std::any_of(access.guards.begin(), access.guards.end(), [&](const Affine &guard) {
      try {
        return map.atoms.getRange(guard).max < 0;
      } catch (TooLarge) {
        return false;
      }
    });
  });
}

AddressMap weir::spv::readAddressMap(const Module &module, const EntryPoint &entry,
                                     const Launch &launch) {
  AddressMap map;
  map.launch = launch;
  std::copy(entry.localSize.begin(), entry.localSize.end(), map.localSize.begin());
  try {
    Walk(module, entry, launch, map).run();
  } catch (const Lost &lost) {
    map.problem = lost.problem;
  } catch (TooLarge) {
    map.problem = "its numbers are too large";
  } catch (const Error &error) {
    map.problem = error.what();
  }
  return map;
}
