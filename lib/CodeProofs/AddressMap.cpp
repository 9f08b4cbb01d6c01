//===- AddressMap.cpp - Addresses of loads and stores ---------------------===//

#include "weir/CodeProofs/AddressMap.h"

#include "Walk.h"
#include "weir/Artifact/Error.h"

#include <algorithm>

using namespace weir;
using namespace weir::spv;

/// Max nesting depth of selections and loops.
static constexpr size_t maxDepth = 128;

//===----------------------------------------------------------------------===//
// Instructions
//===----------------------------------------------------------------------===//

void Walk::record(const Instruction &instruction, Id type, bool reads, bool writes,
                  const Context &context) {
  Value to = get(instruction.operands[0]);
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
  const Type &accessed = module.getType(type);
  access.bytes = accessed.bytes;
  access.alignment = accessed.kind == Type::Kind::Vector && accessed.count == 3
                         ? accessed.alignment
                         : std::max<int64_t>(accessed.bytes, 1);
  if (accessed.kind == Type::Kind::Array || accessed.kind == Type::Kind::Struct)
    access.alignment = accessed.alignment;
  access.reads = reads;
  access.writes = writes;
  access.guards = context.guards;
  access.isCertain = context.isCertain && !isInHeader && !hasReturned;
  access.loops = context.loops;
  access.isInHeader = isInHeader;
  access.position = position++;
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
    barrier.ordersBindings = orders && *semantics & UniformMemory;
    barrier.ordersShared = orders && *semantics & WorkgroupMemory;
  }
  map.barriers.push_back(std::move(barrier));
}

void Walk::visit(const Instruction &instruction, const Context &context) {
  const std::span<const uint32_t> &operands = instruction.operands;
  const Op op = instruction.op;
  const bool isStore = op == Op::Store || op == Op::AtomicStore,
             isLoad = op == Op::Load || op == Op::AtomicLoad;
  if (isStore)
    record(instruction, module.getTypeOf(operands[op == Op::Store ? 1 : 3]), false, true, context);
  else if (isLoad || getKind(op) == OpKind::Atomic)
    record(instruction, instruction.type, true, !isLoad, context);
  switch (op) {
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
    try {
      value = evaluate(instruction);
    } catch (TooLarge) {
    }
    define(instruction.result, value);
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
      if (instruction.op != Op::Store && (!isAtomic || instruction.op == Op::AtomicLoad))
        continue;
      Id at = instruction.operands[0];
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

void Walk::define(Id id, const Value &value) {
  values[id] = value;
  made.push_back(id);
}

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

/// Adds to the guards that `condition` is true or false.
void Walk::require(Context &context, const Value &condition, bool isTrue) {
  const std::vector<Affine> &constraints = condition.constraints;
  if (condition.kind == Value::Kind::Condition && isTrue) {
    context.guards.insert(context.guards.end(), constraints.begin(), constraints.end());
  } else if (condition.kind == Value::Kind::Condition && constraints.size() == 1) {
    context.guards.push_back(negate(constraints[0]));
  } else if (condition.kind == Value::Kind::Condition && constraints.empty()) {
    context.guards.push_back(Affine::of(-1)); // never runs
  } else {
    context.isCertain = false;
    // Two constraints that state x = 0: if x is never negative, the negation is x > 0.
    if (condition.kind == Value::Kind::Condition && constraints.size() == 2 &&
        constraints[0] == constraints[1] * -1)
      for (const Affine &constraint : constraints)
        if (map.atoms.getRange(constraint).min >= 0) {
          context.guards.push_back(constraint - Affine::of(1));
          context.isCertain = true;
          return;
        }
  }
  if (context.guards.size() > 64)
    throw Lost{"its branches are nested too deeply"};
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
    if (isVisited[block])
      throw Lost{"its control flow is not structured"};
    const Block &here = function.blocks[block];
    if (here.continueTarget) {
      next = walkLoop(block, context);
      continue;
    }
    isVisited[block] = true;
    for (const Instruction &instruction : here.instructions)
      visit(instruction, context);
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
  if (!block.merge) {
    // One successor leaves the loop or continues it.
    if (open.empty() || last.op == Op::Switch)
      throw Lost{"its control flow is not structured"};
    const OpenLoop &loop = open.back();
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
    isLeft.push_back(walk(block.successors[i], merge, arm, true) == End::Left);
  }
  if (std::all_of(isLeft.begin(), isLeft.end(), [](bool left) { return left; }))
    return std::nullopt;
  if (last.op == Op::BranchConditional && isLeft[0] != isLeft[1])
    require(context, condition, isLeft[1]);
  else if (std::find(isLeft.begin(), isLeft.end(), true) != isLeft.end())
    context.isCertain = false;
  return merge;
}

/// Recognises a counted loop by its header. If it is one, makes the counter known and adds the
/// loop's condition to the guards of `inside`.
void Walk::countTrips(const Block &header, OpenLoop loop, bool staysIfTrue, Context &inside) {
  inside.isCertain = false;
  auto test = definitions.find(header.instructions.back().operands[0]);
  if (!staysIfTrue || test == definitions.end() ||
      (test->second->op != Op::SLessThan && test->second->op != Op::ULessThan))
    return;
  Id counter = test->second->operands[0], bound = test->second->operands[1];
  bool isSigned = test->second->op == Op::SLessThan;
  for (const Instruction &phi : header.instructions) {
    if (phi.op != Op::Phi)
      return;
    if (phi.result != counter || phi.operands.size() != 4)
      continue;
    // The phi has one edge from before the loop and one from its end.
    uint32_t width = getWidth(counter);
    size_t before = isVisited[function.getBlock(phi.operands[1])] ? 0 : 2;
    auto step = definitions.find(phi.operands[2 - before]);
    if (width == 0 || isVisited[function.getBlock(phi.operands[3 - before])] ||
        step == definitions.end() || step->second->op != Op::IAdd)
      return;
    std::span<const uint32_t> sum = step->second->operands;
    std::optional<int64_t> by;
    if (sum[0] == counter || sum[1] == counter)
      by = getConstant(sum[0] == counter ? sum[1] : sum[0]);
    std::optional<Affine> first = isSigned ? getSigned(phi.operands[before])
                                           : getUnsigned(phi.operands[before]),
                          end = isSigned ? getSigned(bound) : getUnsigned(bound);
    __int128 limit = __int128(1) << (isSigned ? width - 1 : width);
    if (!by || *by < 1 || !first || !end || __int128(map.atoms.getRange(*end).max) + *by > limit)
      return;
    Affine distance = *end - *first;
    int64_t maxTrips = map.atoms.getRange(distance).max;
    maxTrips = maxTrips <= 0 ? 0 : (maxTrips - 1) / *by + 1;
    map.loops[loop.number].maxTrips = maxTrips;
    inside.isCertain = true;
    if (maxTrips == 0) {
      inside.guards.push_back(Affine::of(-1));
      return;
    }
    Affine trip = map.atoms.getId(Atom::Kind::Trip, loop.number, maxTrips);
    define(counter, makeNumber(*first + trip * *by));
    if (!distance.isConstant())
      inside.guards.push_back(distance - trip * *by - Affine::of(1));
    return;
  }
}

/// Walks a loop; returns the block where control goes on behind it.
uint32_t Walk::walkLoop(uint32_t block, Context &context) {
  const Block &header = function.blocks[block];
  OpenLoop loop{uint32_t(map.loops.size()), block, function.getBlock(header.merge),
                function.getBlock(header.continueTarget)};
  map.loops.emplace_back();
  const size_t madeBefore = made.size();
  Context atHeader = context;
  atHeader.loops.push_back(loop.number);
  Context inside = atHeader;
  const Instruction &last = header.instructions.back();
  std::optional<uint32_t> body;
  if (last.op == Op::Branch) {
    body = header.successors[0];
    inside.isCertain = false;
  } else if (last.op == Op::BranchConditional) {
    bool staysIfTrue = header.successors[1] == loop.merge;
    if (!staysIfTrue && header.successors[0] != loop.merge)
      throw Lost{"its control flow is not structured"};
    body = header.successors[staysIfTrue ? 0 : 1];
    try {
      countTrips(header, loop, staysIfTrue, inside);
    } catch (TooLarge) {
      inside.isCertain = false;
    }
  } else {
    throw Lost{"its control flow is not structured"};
  }
  open.push_back(loop);
  isVisited[block] = true;
  bool wasInHeader = isInHeader;
  isInHeader = true;
  for (const Instruction &instruction : header.instructions)
    visit(instruction, atHeader);
  isInHeader = wasInHeader;
  Context end = inside;
  walk(*body, std::nullopt, inside, false);
  if (!isVisited[loop.continueTarget]) {
    // The end is only reached from inside selections.
    end.isCertain = false;
    walk(loop.continueTarget, std::nullopt, end, false);
  }
  open.pop_back();
  // Behind the loop its counter has another value, and so has everything computed from it.
  for (size_t i = madeBefore; i < made.size(); ++i)
    values.erase(made[i]);
  made.resize(madeBefore);
  return loop.merge;
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
  for (auto [number, factor] : sum.terms)
    kinds |= getBit(atoms[number].kind) | getKinds(atoms, atoms[number].of);
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
  findWrites();
  Context context;
  walk(0, std::nullopt, context, false);
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
  for (MemoryAccess &access : map.accesses)
    access.isCertain &= areLanesFull && isRegular(access.loops) && !usesBothIds(access);
  for (BarrierSite &barrier : map.barriers) {
    barrier.isCertain &= isRegular(barrier.loops);
    barrier.isUniform =
        barrier.isCertain && !(getKinds(map.atoms, barrier.guards) &
                               (localKinds | laneKinds | getBit(Atom::Kind::Other)));
  }
  std::erase_if(map.accesses, [](const MemoryAccess &access) {
    return std::any_of(access.guards.begin(), access.guards.end(), [](const Affine &guard) {
      return guard.isConstant() && guard.constant < 0;
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
