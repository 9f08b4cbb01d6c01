//===- Code.cpp - A kernel's code as steps of a subgroup ------------------===//

#include "Code.h"

#include "weir/Artifact/Error.h"

#include <algorithm>
#include <cstdlib>

using namespace weir;
using namespace weir::model;
using namespace weir::spv;

/// Max number of values that are followed in one kernel.
static constexpr uint32_t maxSlots = 1 << 13;

std::vector<Id> model::getUses(const Instruction &instruction) {
  std::span<const uint32_t> all = instruction.operands;
  auto take = [&](size_t begin, size_t end) {
    begin = std::min(begin, all.size());
    return std::vector<Id>(all.begin() + ptrdiff_t(begin),
                           all.begin() + ptrdiff_t(std::max(begin, std::min(end, all.size()))));
  };
  switch (instruction.op) {
  case Op::Variable:
  case Op::Line:
  case Op::NoLine:
  case Op::LoopMerge:
  case Op::SelectionMerge:
  case Op::Branch:
  case Op::ControlBarrier:
  case Op::MemoryBarrier:
    return {};
  case Op::Load:
  case Op::CooperativeMatrixLoadKHR:
  case Op::CompositeExtract:
  case Op::BranchConditional:
  case Op::AtomicLoad:
    return take(0, 1);
  case Op::Store:
  case Op::CooperativeMatrixStoreKHR:
  case Op::CompositeInsert:
  case Op::VectorShuffle:
  case Op::CopyAsync:
    return take(0, 2);
  case Op::MBarrierInit:
  case Op::MBarrierExpect:
  case Op::MBarrierWait:
    return take(0, 1);
  case Op::CopyTile: {
    std::vector<Id> uses = take(0, 3),
                    coordinates = take(all.size() - (all.size() - 5) / 3, all.size());
    uses.insert(uses.end(), coordinates.begin(), coordinates.end());
    return uses;
  }
  case Op::GroupMatrix: {
    std::vector<Id> uses = take(0, 2), sums = take(10, all.size());
    uses.insert(uses.end(), sums.begin(), sums.end());
    return uses;
  }
  case Op::AtomicStore: {
    std::vector<Id> uses = take(0, 1);
    uses.push_back(all[3]);
    return uses;
  }
  case Op::NamedAtomic: {
    std::vector<Id> uses = take(0, 1), others = take(4, all.size());
    uses.insert(uses.end(), others.begin(), others.end());
    return uses;
  }
  case Op::Named:
  case Op::NamedEffect:
    return take(1, all.size());
  case Op::ExtInst:
    return take(2, all.size());
  case Op::Phi: {
    std::vector<Id> uses;
    for (size_t i = 0; i + 1 < all.size(); i += 2)
      uses.push_back(all[i]);
    return uses;
  }
  default:
    break;
  }
  if (getKind(instruction.op) == OpKind::Shuffle)
    return take(1, all.size());
  if (getKind(instruction.op) == OpKind::Reduction)
    return take(2, all.size());
  return take(0, all.size());
}

uint32_t Code::getWidth(Id id) const {
  const Type &type = module.getType(id);
  switch (type.kind) {
  case Type::Kind::Vector:
    return getWidth(type.element);
  case Type::Kind::Bool:
    return 1;
  case Type::Kind::Int:
    return type.width;
  case Type::Kind::Pointer:
    return 64;
  default:
    return 0;
  }
}

uint32_t Code::getParts(Id id) const {
  const Type &type = module.getType(id);
  return type.kind == Type::Kind::Vector ? std::max(1u, type.count) : 1;
}

/// Gives each variable an address of its own.
void Code::placeVariables() {
  uint64_t own = 0, global = 0;
  auto place = [&](Id id, StorageClass storage, Id pointer, std::optional<uint32_t> binding) {
    const int64_t bytes = module.getType(module.getType(pointer).element).bytes;
    switch (storage) {
    case StorageClass::Input:
      addressOf[id] = inputBase + uint64_t(id) * 64;
      break;
    case StorageClass::StorageBuffer:
      addressOf[id] = bindingBase * (uint64_t(binding.value_or(0)) + 1);
      break;
    case StorageClass::Workgroup:
      addressOf[id] = sharedBase + uint64_t(sharedBytes);
      sharedBytes += (std::max<int64_t>(bytes, 0) + 127) / 128 * 128;
      break;
    case StorageClass::Private:
    case StorageClass::Function:
      addressOf[id] = ownBase + (own++ << 24);
      break;
    default:
      addressOf[id] = globalBase + (global++ << 28);
    }
  };
  for (const Variable &variable : module.getVariables()) {
    // Parameters of PTX are bindings of the class that they point into.
    bool isBinding = variable.binding.has_value();
    place(variable.id, isBinding ? StorageClass::StorageBuffer : variable.storage, variable.type,
          variable.binding);
  }
  for (const spv::Block &block : function.blocks)
    for (const Instruction &instruction : block.instructions)
      if (instruction.op == Op::Variable)
        place(instruction.result, StorageClass::Function, instruction.type, {});
}

/// Finds the values that addresses and branches depend on, and gives them slots.
void Code::follow() {
  std::map<Id, const Instruction *> definitions;
  std::map<Id, std::vector<Id>> stored; ///< by variable of an invocation's own
  std::vector<Id> open;
  for (const spv::Block &block : function.blocks)
    for (const Instruction &each : block.instructions) {
      if (each.result)
        definitions[each.result] = &each;
      if (each.op == Op::Store && addressOf.contains(each.operands[0]))
        stored[each.operands[0]].push_back(each.operands[1]);
      if (each.op == Op::Load || each.op == Op::Store || each.op == Op::CopyAsync ||
          each.op == Op::GroupMatrix || each.op == Op::CooperativeMatrixLoadKHR ||
          each.op == Op::CooperativeMatrixStoreKHR || getKind(each.op) == OpKind::Atomic ||
          each.op == Op::BranchConditional)
        open.push_back(each.operands[0]);
      if (each.op == Op::CopyAsync || each.op == Op::GroupMatrix)
        open.push_back(each.operands[1]);
      if (each.op == Op::CopyTile || each.op == Op::MBarrierWait) {
        std::vector<Id> uses = getUses(each);
        open.insert(open.end(), uses.begin(), uses.end());
      }
    }
  slotOf.assign(module.getBound(), none);
  partsOf.assign(module.getBound(), 1);
  while (!open.empty()) {
    Id id = open.back();
    open.pop_back();
    if (id >= slotOf.size() || slotOf[id] != none)
      continue;
    auto definition = definitions.find(id);
    const Constant *constant = module.findConstant(id);
    const bool isVariable = addressOf.contains(id);
    if (definition == definitions.end() && !constant && !isVariable)
      continue; // a literal, or a type
    Id type = constant ? constant->type : isVariable ? 0 : definition->second->type;
    if (isVariable && module.getType(module.getTypeOf(id)).kind == Type::Kind::Pointer)
      type = module.getType(module.getTypeOf(id)).element;
    if (type)
      partsOf[id] = std::min(4u, getParts(type));
    slotOf[id] = numSlots;
    numSlots += partsOf[id];
    if (numSlots > maxSlots)
      throw Error(where + ": has more than " + std::to_string(maxSlots) +
                  " numbers that addresses depend on");
    if (constant) {
      open.insert(open.end(), constant->parts.begin(), constant->parts.end());
    } else if (isVariable) {
      open.insert(open.end(), stored[id].begin(), stored[id].end());
    } else {
      std::vector<Id> uses = getUses(*definition->second);
      open.insert(open.end(), uses.begin(), uses.end());
    }
  }
}

/// Returns the bytes that one invocation of an access touches.
static int64_t getAccessBytes(const Module &module, const Instruction &instruction) {
  Id type = instruction.type;
  if (instruction.op == Op::Store)
    type = module.getTypeOf(instruction.operands[1]);
  else if (instruction.op == Op::AtomicStore)
    type = module.getTypeOf(instruction.operands[3]);
  else if (instruction.op == Op::CopyAsync)
    type = module.getType(module.getTypeOf(instruction.operands[0])).element;
  if (module.getType(type).kind == Type::Kind::CooperativeMatrix) // in registers
    type = module.getType(type).element;
  return std::max<int64_t>(1, module.getType(type).bytes);
}

/// Returns the site of a matrix that a subgroup loads or stores.
static Site makeMatrixSite(const Module &module, const Instruction &instruction,
                           const std::string &where) {
  const bool isStore = instruction.op == Op::CooperativeMatrixStoreKHR;
  const size_t layoutAt = isStore ? 2 : 1;
  const Type &matrix =
      module.getType(isStore ? module.getTypeOf(instruction.operands[1]) : instruction.type);
  auto getConstant = [&](size_t operand) {
    const Constant *constant = instruction.operands.size() > operand
                                   ? module.findConstant(instruction.operands[operand])
                                   : nullptr;
    if (!constant || matrix.kind != Type::Kind::CooperativeMatrix)
      throw Error(where + ": " + getName(instruction.op) + " at word " +
                  std::to_string(instruction.word) +
                  " has no constant layout and stride, which the model needs");
    return constant->bits;
  };
  const bool areRows = CooperativeLayout(getConstant(layoutAt)) == CooperativeLayout::RowMajor;
  const int64_t bytes = module.getType(matrix.element).bytes;
  Site site{&instruction, !isStore, isStore, false, bytes};
  site.lines = areRows ? matrix.rows : matrix.columns;
  site.lineBytes = (areRows ? matrix.columns : matrix.rows) * bytes;
  site.lineStride = int64_t(getConstant(layoutAt + 1)) * bytes;
  return site;
}

Step Code::makeStep(const Instruction &instruction) {
  Step step;
  step.instruction = &instruction;
  step.uses = getUses(instruction);
  step.site = uint32_t(sites.size());
  if (instruction.result && instruction.result < slotOf.size() && instruction.type) {
    step.slot = slotOf[instruction.result];
    step.isFollowed = step.slot != none;
    step.parts = partsOf[instruction.result];
    step.width = getWidth(instruction.type);
  }
  auto addSite = [&](bool reads, bool writes, bool passesL1) {
    constexpr int64_t maxAccess = 256;
    if (getAccessBytes(module, instruction) > maxAccess)
      throw Error(where + ": " + getName(instruction.op) + " at word " +
                  std::to_string(instruction.word) + " moves more than " +
                  std::to_string(maxAccess) + " bytes of an invocation at once");
    sites.push_back({&instruction, reads, writes, passesL1, getAccessBytes(module, instruction)});
  };
  switch (instruction.op) {
  case Op::Load:
    step.kind = Step::Kind::Load;
    addSite(true, false, false);
    break;
  case Op::Store:
    step.kind = Step::Kind::Store;
    addSite(false, true, false);
    break;
  case Op::CooperativeMatrixLoadKHR:
  case Op::CooperativeMatrixStoreKHR:
    step.kind = instruction.result ? Step::Kind::Load : Step::Kind::Store;
    sites.push_back(makeMatrixSite(module, instruction, where));
    break;
  case Op::CopyAsync: {
    copiesAsync = true;
    step.kind = Step::Kind::Copy;
    const std::string &name = module.getString(instruction.operands[3]);
    addSite(true, false, name.find(".cg.") != std::string::npos);
    sites.back().isCopied = sites.back().passesL1;
    addSite(false, true, false);
    break;
  }
  case Op::CopyTile: {
    constexpr int64_t line = 128;
    copiesAsync = true;
    step.kind = Step::Kind::Tile;
    sites.push_back({&instruction, true, false, true, line});
    sites.back().isCopied = true;
    sites.push_back({&instruction, false, true, false, line});
    break;
  }
  case Op::MBarrierWait:
    step.kind = Step::Kind::WaitTile;
    break;
  case Op::GroupMatrix: {
    step.kind = Step::Kind::Product;
    constexpr int64_t run = 16;
    for (int i = 0; i < 2; ++i)
      sites.push_back({&instruction, true, false, false, run});
    step.groupColumns = int64_t(module.getType(instruction.type).count) * 2;
    break;
  }
  case Op::ControlBarrier:
    hasBarriers = true;
    step.kind = Step::Kind::Barrier;
    break;
  case Op::Variable:
    step.kind = Step::Kind::Variable;
    break;
  case Op::NamedEffect: {
    const std::string &name = module.getString(instruction.operands[0]);
    const bool isOfProducts = name.starts_with("wgmma.");
    if (name.find("commit_group") != std::string::npos)
      step.kind = isOfProducts ? Step::Kind::CommitProducts : Step::Kind::CommitCopies;
    if (name.find("wait_all") != std::string::npos)
      step.kind = Step::Kind::WaitCopies;
    if (name.find("wait_group") != std::string::npos && instruction.operands.size() > 1) {
      step.kind = isOfProducts ? Step::Kind::WaitProducts : Step::Kind::WaitCopies;
      const Constant *count = module.findConstant(instruction.operands[1]);
      step.groups = count ? int64_t(count->bits) : 0;
    }
    break;
  }
  case Op::FunctionCall:
  case Op::Switch:
  case Op::Kill:
    throw Error(where + ": has " + getName(instruction.op) + " at word " +
                std::to_string(instruction.word) + ", which the model does not follow");
  default:
    if (step.isFollowed && step.width && step.uses.size() == 2 && instruction.op != Op::Named &&
        getKind(instruction.op) == OpKind::Plain && instruction.op != Op::ExtInst &&
        slotOf[step.uses[0]] != none && slotOf[step.uses[1]] != none &&
        instruction.op != Op::AccessChain && instruction.op != Op::InBoundsAccessChain &&
        instruction.op != Op::CompositeConstruct) {
      step.inWidth = std::max(1u, getWidth(module.getTypeOf(step.uses[0])));
      step.isBinary = partsOf[step.uses[0]] == step.parts && partsOf[step.uses[1]] == step.parts;
    }
    if (getKind(instruction.op) == OpKind::Atomic) {
      step.kind = instruction.op == Op::AtomicStore ? Step::Kind::Store : Step::Kind::Load;
      addSite(instruction.op != Op::AtomicStore, instruction.op != Op::AtomicLoad, true);
    }
  }
  return step;
}

/// Joins loads of 4 bytes of workgroup memory that are side by side to one of up to 16.
void Code::joinLoads(CodeBlock &block) {
  std::map<Id, const Instruction *> definitions;
  for (const Step &step : block.steps)
    if (step.instruction->result)
      definitions[step.instruction->result] = step.instruction;
  std::map<std::pair<Id, int64_t>, Step *> loads; ///< by base and offset
  auto join = [&] {
    for (auto &[place, first] : loads) {
      if (first->words != 1 || place.second % 8 != 0)
        continue;
      for (uint32_t count : {4u, 2u}) {
        if (place.second % (4 * count) != 0)
          continue;
        std::vector<Step *> others;
        for (uint32_t i = 1; i < count; ++i)
          if (auto other = loads.find({place.first, place.second + 4 * i});
              other != loads.end() && other->second->words == 1)
            others.push_back(other->second);
        if (others.size() != count - 1)
          continue;
        first->words = count;
        for (Step *other : others) {
          other->words = 0;
          block.work.issue -= other->issue;
          other->issue = 0;
        }
        break;
      }
    }
    loads.clear();
  };
  for (Step &step : block.steps) {
    if (step.kind == Step::Kind::Store || step.kind == Step::Kind::Copy ||
        step.kind == Step::Kind::WaitTile || step.kind == Step::Kind::Barrier)
      join();
    const Instruction &load = *step.instruction;
    if (load.op != Op::Load || sites[step.site].bytes != 4 ||
        module.getType(module.getTypeOf(load.operands[0])).storage != StorageClass::Workgroup)
      continue;
    auto pointer = definitions.find(load.operands[0]);
    if (pointer == definitions.end() || pointer->second->op != Op::ConvertUToPtr)
      continue;
    Id base = pointer->second->operands[0];
    int64_t offset = 0;
    for (auto sum = definitions.find(base); sum != definitions.end() && sum->second->op == Op::IAdd;
         sum = definitions.find(base)) {
      const Constant *constant = module.findConstant(sum->second->operands[1]);
      if (!constant)
        break;
      offset += int64_t(int32_t(constant->bits));
      base = sum->second->operands[0];
    }
    loads.emplace(std::pair(base, offset), &step);
  }
  join();
}

/// Ranks blocks so that those of a loop or selection come before what follows it.
void Code::order() {
  std::vector<uint32_t> finished;
  std::vector<char> state(blocks.size());
  std::vector<uint32_t> stack = {0};
  while (!stack.empty()) {
    uint32_t at = stack.back();
    if (state[at]) {
      stack.pop_back();
      if (state[at] == 1) {
        state[at] = 2;
        finished.push_back(at);
      }
      continue;
    }
    state[at] = 1;
    const spv::Block &block = *blocks[at].block;
    // The last one pushed finishes first and so ranks last.
    for (auto successor = block.successors.rbegin(); successor != block.successors.rend();
         ++successor)
      if (!state[*successor])
        stack.push_back(*successor);
    for (Id label : {block.continueTarget, block.merge})
      if (label && !state[function.getBlock(label)])
        stack.push_back(function.getBlock(label));
  }
  for (size_t i = 0; i < finished.size(); ++i)
    blocks[finished[i]].rank = uint32_t(finished.size() - i);
}

Code::Code(const Module &module, const spv::EntryPoint &entry, const std::string &where)
    : module(module), entry(entry), function(module.getFunction(entry.function)), where(where) {
  if (function.blocks.empty())
    throw Error(where + ": has an entry point without a body");
  placeVariables();
  follow();
  std::vector<Id> loopMerges;
  for (const spv::Block &block : function.blocks)
    if (block.continueTarget)
      loopMerges.push_back(block.merge);
  // A constant that is added to an address is part of the access.
  std::map<Id, bool> isOffset;
  for (const spv::Block &block : function.blocks)
    for (const Instruction &each : block.instructions)
      for (Id id : getUses(each)) {
        auto place = isOffset.try_emplace(id, true).first;
        place->second &= each.op == Op::ConvertUToPtr;
      }
  blocks.resize(function.blocks.size());
  for (size_t i = 0; i < blocks.size(); ++i) {
    const spv::Block &block = function.blocks[i];
    CodeBlock &code = blocks[i];
    code.block = &block;
    for (const Instruction &instruction : block.instructions) {
      if (instruction.op == Op::Phi || &instruction == &block.instructions.back())
        continue;
      Step step = makeStep(instruction);
      uint32_t parts =
          instruction.type && step.kind == Step::Kind::Plain ? getParts(instruction.type) : 1;
      Work work = getWork(module, instruction, parts, step.waits);
      if (instruction.op == Op::IAdd && isOffset[instruction.result] &&
          module.findConstant(instruction.operands[1]))
        work = {};
      step.issue = work.issue;
      code.work.add(work, 1);
      if (step.kind != Step::Kind::Plain || step.isFollowed || step.issue > 0 || instruction.result)
        code.steps.push_back(std::move(step));
    }
    if (block.instructions.back().op == Op::BranchConditional)
      code.work.issue += 1;
    else if (block.instructions.back().op != Op::Branch &&
             block.instructions.back().op != Op::Return)
      makeStep(block.instructions.back()); // refuses what is not followed
    joinLoads(code);
    for (size_t j = 0; j < std::min<size_t>(2, block.successors.size()); ++j) {
      Id label = function.blocks[block.successors[j]].label;
      code.leavesLoop[j] =
          std::find(loopMerges.begin(), loopMerges.end(), label) != loopMerges.end();
      code.isMerge[j] = block.merge == label;
    }
    if (code.leavesLoop[0] || code.leavesLoop[1])
      loopConditions.insert(block.instructions.back().operands[0]);
  }
  order();
}
