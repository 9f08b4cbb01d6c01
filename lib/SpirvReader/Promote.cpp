//===- Promote.cpp - Variables of functions become values -----------------===//
//
// Each load becomes a copy of the value that was stored last. Where ways from several stores meet,
// a phi holds it; phis that only lead on what one other value is are left out. See "Simple and
// Efficient Construction of Static Single Assignment Form" (Braun et al., 2013).
//
//===----------------------------------------------------------------------===//

#include "weir/SpirvReader/Pipeline.h"

#include "Words.h"

#include <unordered_map>

using namespace weir::spv;

/// Max number of blocks of a function: ways are followed by recursion.
static constexpr size_t maxBlocks = 4096;
/// Max number of pairs of a variable and a block.
static constexpr size_t maxPairs = 1 << 22;

namespace {
class Promoter {
public:
  Promoter(const Module &module, const Function &function, Id &bound)
      : module(module), function(function), bound(bound) {}

  /// Finds the values of all loads.
  void run();

  struct Phi {
    Id id = 0, type = 0;
    uint32_t block = 0;
    std::vector<std::pair<Id, Id>> incoming; ///< value and label
    bool isLeftOut = false;
  };
  std::vector<Phi> phis;
  std::map<Id, Id> undefined; ///< values, by type
  /// By the first word of an instruction that goes: the value of a load, else 0.
  std::map<uint32_t, Id> replaced;

  Id resolve(Id value) const {
    for (auto next = known.find(value); next != known.end(); next = known.find(value))
      value = next->second;
    return value;
  }

private:
  void findVariables();
  void findPredecessors();
  void followBlocks();
  void dropTrivialPhis();
  Id getAtBegin(Id variable, uint32_t block);
  Id getAtEnd(Id variable, uint32_t block) {
    auto stored = lastStored.find({variable, block});
    return stored != lastStored.end() ? stored->second : getAtBegin(variable, block);
  }
  Id getUndefined(Id type) {
    auto [place, isNew] = undefined.try_emplace(type, 0);
    if (isNew)
      place->second = bound++;
    return place->second;
  }

  const Module &module;
  const Function &function;
  Id &bound;
  std::unordered_map<Id, const Instruction *> variables;
  std::vector<std::vector<uint32_t>> predecessors;
  std::map<std::pair<Id, uint32_t>, Id> lastStored, atBegin; ///< by variable and block
  std::unordered_map<Id, Id> known; ///< values of loads, and of phis that are left out
};
} // namespace

/// Whether every use of a promoted variable is a load or store of all of it.
void Promoter::findVariables() {
  for (const Instruction &instruction : function.blocks.front().instructions) {
    if (instruction.op != Op::Variable)
      continue;
    const Type &type = module.getType(module.getType(instruction.type).element);
    if (type.kind == Type::Kind::Bool || type.kind == Type::Kind::Int ||
        type.kind == Type::Kind::Float || type.kind == Type::Kind::Vector)
      variables[instruction.result] = &instruction;
  }
  constexpr uint32_t isVolatile = 1;
  for (const Block &block : function.blocks)
    for (const Instruction &instruction : block.instructions) {
      const std::span<const uint32_t> operands = instruction.operands;
      const bool isLoad = instruction.op == Op::Load, isStore = instruction.op == Op::Store;
      size_t first = 0;
      if (instruction.op == Op::Variable) {
        first = operands.size(); // an initializer is a constant
      } else if (isLoad || isStore) {
        first = isLoad ? 1 : 2;
        auto variable = variables.find(operands[0]);
        const bool isWhole = variable != variables.end() &&
                             (operands.size() == first || !(operands[first] & isVolatile)) &&
                             module.getTypeOf(isLoad ? instruction.result : operands[1]) ==
                                 module.getType(variable->second->type).element;
        if (!isWhole)
          variables.erase(operands[0]);
        if (isStore)
          variables.erase(operands[1]);
        first = operands.size();
      }
      // A literal may look like a variable, which then stays one.
      for (Id operand : operands.subspan(first))
        variables.erase(operand);
    }
}

/// Returns the value of a variable where a block begins.
Id Promoter::getAtBegin(Id variable, uint32_t block) {
  if (auto found = atBegin.find({variable, block}); found != atBegin.end())
    return found->second;
  const Instruction &declared = *variables.at(variable);
  const Id type = module.getType(declared.type).element;
  if (block == 0 || predecessors[block].empty())
    return atBegin[{variable, block}] = block == 0 && declared.operands.size() > 1
                                            ? declared.operands[1]
                                            : getUndefined(type);
  if (predecessors[block].size() == 1) {
    const Id value = getAtEnd(variable, predecessors[block][0]);
    return atBegin[{variable, block}] = value;
  }
  const size_t number = phis.size();
  const Id id = bound++;
  phis.push_back({id, type, block, {}});
  atBegin[{variable, block}] = id;
  for (uint32_t from : predecessors[block]) {
    const Id value = getAtEnd(variable, from);
    phis[number].incoming.emplace_back(value, function.blocks[from].label);
  }
  return id;
}

/// Finds the predecessors of blocks, of those that control may come from. Others may lead in
/// circles without a begin.
void Promoter::findPredecessors() {
  predecessors.resize(function.blocks.size());
  std::vector<bool> isReached(function.blocks.size());
  std::vector<uint32_t> open = {0};
  isReached[0] = true;
  while (!open.empty()) {
    const uint32_t from = open.back();
    open.pop_back();
    for (uint32_t to : function.blocks[from].successors) {
      if (predecessors[to].empty() || predecessors[to].back() != from)
        predecessors[to].push_back(from);
      if (!isReached[to])
        open.push_back(to);
      isReached[to] = true;
    }
  }
}

void Promoter::followBlocks() {
  for (uint32_t number = 0; number < function.blocks.size(); ++number)
    for (const Instruction &instruction : function.blocks[number].instructions)
      if (instruction.op == Op::Store && variables.contains(instruction.operands[0]))
        lastStored[{instruction.operands[0], number}] = instruction.operands[1];
  for (uint32_t number = 0; number < function.blocks.size(); ++number) {
    std::unordered_map<Id, Id> stored; // so far in this block
    for (const Instruction &instruction : function.blocks[number].instructions) {
      if (instruction.op == Op::Variable && variables.contains(instruction.result)) {
        replaced[instruction.word] = 0;
      } else if (instruction.op == Op::Store && variables.contains(instruction.operands[0])) {
        replaced[instruction.word] = 0;
        stored[instruction.operands[0]] = instruction.operands[1];
      } else if (instruction.op == Op::Load && variables.contains(instruction.operands[0])) {
        auto own = stored.find(instruction.operands[0]);
        const Id value =
            own != stored.end() ? own->second : getAtBegin(instruction.operands[0], number);
        replaced[instruction.word] = value;
        known[instruction.result] = value;
      }
    }
  }
}

/// Leaves out phis that have one value besides themselves.
void Promoter::dropTrivialPhis() {
  for (bool changes = true; changes;) {
    changes = false;
    for (Phi &phi : phis) {
      if (phi.isLeftOut)
        continue;
      std::set<Id> values;
      for (auto [value, label] : phi.incoming)
        if (Id resolved = resolve(value); resolved != phi.id)
          values.insert(resolved);
      if (values.size() != 1)
        continue;
      known[phi.id] = *values.begin();
      phi.isLeftOut = changes = true;
    }
  }
}

void Promoter::run() {
  if (function.blocks.empty() || function.blocks.size() > maxBlocks)
    return;
  findVariables();
  if (variables.empty() || variables.size() * function.blocks.size() > maxPairs)
    return;
  findPredecessors();
  if (!predecessors[0].empty())
    return; // SPIR-V does not allow that
  followBlocks();
  dropTrivialPhis();
}

std::vector<uint32_t> weir::spv::promoteVariables(const Module &module,
                                                  std::span<const uint32_t> words) {
  Id bound = module.getBound();
  std::map<Id, Id> undefined;
  std::map<uint32_t, Id> replaced;               // by word, a value or 0
  std::map<Id, std::vector<Promoter::Phi>> phis; // by label
  for (const Function &function : module.getFunctions()) {
    Promoter promoter(module, function, bound);
    promoter.undefined = std::move(undefined);
    promoter.run();
    undefined = std::move(promoter.undefined);
    for (auto [word, value] : promoter.replaced)
      replaced[word] = promoter.resolve(value);
    for (Promoter::Phi &phi : promoter.phis) {
      if (phi.isLeftOut)
        continue;
      for (auto &[value, label] : phi.incoming)
        value = promoter.resolve(value);
      phis[function.blocks[phi.block].label].push_back(std::move(phi));
    }
  }
  if (replaced.empty())
    return {words.begin(), words.end()};
  std::vector<uint32_t> made(words.begin(), words.begin() + 5);
  made[3] = bound;
  uint32_t at = 5;
  bool isInFunctions = false;
  forEachInstruction(words, [&](uint32_t opcode, std::span<const uint32_t> all) {
    if (Op(opcode) == Op::Function && !isInFunctions) {
      isInFunctions = true;
      for (auto [type, id] : undefined)
        add(made, Op::Undef, {type, id});
    }
    auto gone = replaced.find(at);
    at += uint32_t(all.size());
    if (gone == replaced.end())
      made.insert(made.end(), all.begin(), all.end());
    else if (gone->second)
      add(made, Op::CopyObject, {all[1], all[2], gone->second});
    if (Op(opcode) != Op::Label)
      return;
    if (auto first = phis.find(all[1]); first != phis.end())
      for (const Promoter::Phi &phi : first->second) {
        made.push_back(uint32_t(3 + 2 * phi.incoming.size()) << 16 | uint32_t(Op::Phi));
        made.push_back(phi.type);
        made.push_back(phi.id);
        for (auto [value, label] : phi.incoming) {
          made.push_back(value);
          made.push_back(label);
        }
      }
  });
  return made;
}
