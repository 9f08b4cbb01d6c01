//===- Inline.cpp - Calls become the blocks of what they call -------------===//
//
// A block that calls is split behind the call: its first half branches to a copy of the callee's
// blocks, and these to the second half. Only functions with one return are copied, at the end of
// all their selections and loops, so that control flow stays structured.
//
//===----------------------------------------------------------------------===//

#include "weir/SpirvReader/Pipeline.h"

#include "Words.h"

using namespace weir::spv;

/// Max number of words of a module with its calls copied, and of rounds over nested calls.
static constexpr size_t maxWords = 1 << 20, maxRounds = 16;

namespace {
/// An instruction as words; they stay as long as the words that they are of.
struct Raw {
  Op op = Op::Nop;
  std::span<const uint32_t> words;
};

struct Body {
  std::vector<Id> parameters;
  std::vector<Raw> instructions; ///< from the first label on, without the function's end
  size_t size = 0;               ///< words of these
};

/// One call of a function.
struct Call {
  const Body *callee = nullptr;
  std::map<Id, Id> ids; ///< of the callee's parameters and results, where they are copied
  Id next = 0;          ///< label of the second half of its block
};

class Inliner {
public:
  Inliner(const Module &module, std::span<const uint32_t> words) : module(module), words(words) {}

  /// Copies the functions that call none. Returns whether there are calls of such.
  bool run(std::vector<uint32_t> &made);

private:
  void collect();
  bool canCopy(const Function &function, const Body &body) const;
  void findCalls(const Function &function, const Body &body);
  void write(const Body &body, std::vector<uint32_t> &made);
  void writeCall(const Raw &instruction, Call &call, std::vector<uint32_t> &made);

  const Module &module;
  std::span<const uint32_t> words;
  std::map<Id, Body> bodies; ///< by function
  std::map<const uint32_t *, Call> calls;
  std::map<Id, Id> lastLabels; ///< by the label of a block that is split, that of its last part
  Id bound = 0;
  size_t copied = 0; ///< words
};
} // namespace

/// Returns the number of the first operand, counted in words from the opcode on, and adds to
/// `ids` the words that are ids other than type and result. Returns none where that is not known.
static bool findIds(const Raw &instruction, std::vector<size_t> &ids) {
  const OpInfo *info = findOpInfo(uint32_t(instruction.op));
  if (!info)
    return false;
  const size_t first = 1 + size_t(info->hasType) + size_t(info->hasResult);
  const size_t count = instruction.words.size();
  auto add = [&](size_t begin, size_t end) {
    for (size_t i = first + begin; i < std::min(first + end, count); ++i)
      ids.push_back(i);
  };
  switch (instruction.op) {
  case Op::Nop:
  case Op::Line:
  case Op::NoLine:
  case Op::Label:
  case Op::Undef:
  case Op::Variable: // its initializer is a constant
    return true;
  case Op::Load:
  case Op::CompositeExtract:
  case Op::ArrayLength:
  case Op::SelectionMerge:
    add(0, 1);
    return true;
  case Op::Store:
  case Op::CompositeInsert:
  case Op::VectorShuffle:
  case Op::LoopMerge:
    add(0, 2);
    return true;
  case Op::BranchConditional:
    add(0, 3);
    return true;
  case Op::ExtInst:
    add(2, count);
    return true;
  case Op::Switch: // of 32 bits: then each second word is a label
    add(0, 2);
    for (size_t i = 3; first + i < count; i += 2)
      add(i, i + 1);
    return true;
  case Op::CooperativeMatrixLoadKHR:
  case Op::CooperativeMatrixStoreKHR:
  case Op::CooperativeMatrixMulAddKHR:
    return false;
  default:
    break;
  }
  if (uint32_t(instruction.op) >= firstOwnOpcode || getKind(instruction.op) == OpKind::Reduction)
    return false;
  add(0, count);
  return true;
}

/// Returns the result of an instruction; 0: none.
static Id getResult(const Raw &instruction) {
  const OpInfo *info = findOpInfo(uint32_t(instruction.op));
  const size_t place = info && info->hasType ? 2 : 1;
  return info && info->hasResult && place < instruction.words.size() ? instruction.words[place] : 0;
}

void Inliner::collect() {
  Body *body = nullptr;
  forEachInstruction(words, [&](uint32_t opcode, std::span<const uint32_t> all) {
    switch (Op(opcode)) {
    case Op::Function:
      body = &bodies[all[2]];
      break;
    case Op::FunctionParameter:
      body->parameters.push_back(all[2]);
      break;
    case Op::FunctionEnd:
      body = nullptr;
      break;
    default:
      if (body) {
        body->instructions.push_back({Op(opcode), all});
        body->size += all.size();
      }
      break;
    }
  });
}

/// Whether a function calls none and returns once, behind all its selections and loops.
bool Inliner::canCopy(const Function &function, const Body &body) const {
  size_t returns = 0;
  for (const Raw &instruction : body.instructions) {
    std::vector<size_t> ids;
    if (!findIds(instruction, ids) || instruction.op == Op::FunctionCall ||
        instruction.op == Op::Kill)
      return false;
    if (instruction.op == Op::Switch &&
        module.getType(module.getTypeOf(instruction.words[1])).width != 32)
      return false;
    returns += instruction.op == Op::Return || instruction.op == Op::ReturnValue;
  }
  if (returns != 1 || function.blocks.empty())
    return false;
  std::vector<bool> isSeen(function.blocks.size());
  for (uint32_t block = 0; !isSeen[block];) {
    isSeen[block] = true;
    const Block &here = function.blocks[block];
    const Op last = here.instructions.back().op;
    if (last == Op::Return || last == Op::ReturnValue)
      return true;
    if (here.merge)
      block = function.getBlock(here.merge);
    else if (last == Op::Branch)
      block = here.successors[0];
  }
  return false;
}

/// Finds the calls in a function that can be copied, and gives their parts ids.
void Inliner::findCalls(const Function &function, const Body &body) {
  Id label = 0;
  for (const Raw &instruction : body.instructions) {
    if (instruction.op == Op::Label)
      label = instruction.words[1];
    if (instruction.op != Op::FunctionCall)
      continue;
    const auto callee = bodies.find(instruction.words[3]);
    // A loop's header stays one block.
    if (callee == bodies.end() || function.blocks[function.getBlock(label)].continueTarget ||
        !canCopy(module.getFunction(callee->first), callee->second) ||
        instruction.words.size() - 4 != callee->second.parameters.size() ||
        copied + callee->second.size > maxWords)
      continue;
    copied += callee->second.size;
    Call &call = calls[instruction.words.data()];
    call.callee = &callee->second;
    call.next = bound++;
    lastLabels[label] = call.next;
    for (size_t i = 0; i < callee->second.parameters.size(); ++i)
      call.ids[callee->second.parameters[i]] = instruction.words[4 + i];
    for (const Raw &inner : callee->second.instructions)
      if (Id result = getResult(inner))
        call.ids[result] = bound++;
  }
}

/// Writes an instruction of a callee with the ids of a call.
static void writeCopy(const Raw &instruction, const std::map<Id, Id> &ids,
                      std::vector<uint32_t> &made) {
  const size_t begin = made.size();
  made.insert(made.end(), instruction.words.begin(), instruction.words.end());
  std::vector<size_t> places;
  findIds(instruction, places);
  if (getResult(instruction))
    places.push_back(findOpInfo(uint32_t(instruction.op))->hasType ? 2 : 1);
  for (size_t place : places)
    if (auto id = ids.find(made[begin + place]); id != ids.end())
      made[begin + place] = id->second;
}

void Inliner::writeCall(const Raw &instruction, Call &call, std::vector<uint32_t> &made) {
  Id value = 0;
  add(made, Op::Branch, {call.ids.at(call.callee->instructions.front().words[1])});
  bool isFirst = true;
  for (const Raw &inner : call.callee->instructions) {
    if (inner.op == Op::Return || inner.op == Op::ReturnValue) {
      if (inner.op == Op::ReturnValue) {
        auto id = call.ids.find(inner.words[1]);
        value = id == call.ids.end() ? inner.words[1] : id->second;
      }
      add(made, Op::Branch, {call.next});
    } else if (inner.op != Op::Variable) {
      writeCopy(inner, call.ids, made);
    }
    if (inner.op != Op::Label || !isFirst)
      continue;
    isFirst = false;
    for (const Raw &variable : call.callee->instructions)
      if (variable.op == Op::Variable && variable.words.size() > 4)
        add(made, Op::Store, {call.ids.at(variable.words[2]), variable.words[4]});
  }
  add(made, Op::Label, {call.next});
  if (value)
    add(made, Op::CopyObject, {instruction.words[1], instruction.words[2], value});
}

void Inliner::write(const Body &body, std::vector<uint32_t> &made) {
  bool isFirst = true;
  for (const Raw &instruction : body.instructions) {
    auto call = calls.find(instruction.words.data());
    if (call != calls.end()) {
      writeCall(instruction, call->second, made);
      continue;
    }
    const size_t begin = made.size();
    made.insert(made.end(), instruction.words.begin(), instruction.words.end());
    if (instruction.op == Op::Phi)
      for (size_t i = 4; i < instruction.words.size(); i += 2)
        if (auto last = lastLabels.find(made[begin + i]); last != lastLabels.end())
          made[begin + i] = last->second;
    if (instruction.op != Op::Label || !isFirst)
      continue;
    isFirst = false;
    for (const Raw &each : body.instructions) {
      auto inner = calls.find(each.words.data());
      if (inner == calls.end())
        continue;
      for (const Raw &variable : inner->second.callee->instructions)
        if (variable.op == Op::Variable) // its initializer is stored at each call
          add(made, Op::Variable,
              {variable.words[1], inner->second.ids.at(variable.words[2]), variable.words[3]});
    }
  }
}

bool Inliner::run(std::vector<uint32_t> &made) {
  collect();
  bound = module.getBound();
  for (const Function &function : module.getFunctions())
    findCalls(function, bodies[function.id]);
  if (calls.empty())
    return false;
  made.assign(words.begin(), words.begin() + 5);
  made[3] = bound;
  const Body *body = nullptr;
  forEachInstruction(words, [&](uint32_t opcode, std::span<const uint32_t> all) {
    const bool isInside = body && Op(opcode) != Op::FunctionParameter;
    if (Op(opcode) == Op::FunctionEnd)
      write(*body, made);
    if (Op(opcode) == Op::Function)
      body = &bodies[all[2]];
    else if (Op(opcode) == Op::FunctionEnd)
      body = nullptr;
    if (!isInside || !body)
      made.insert(made.end(), all.begin(), all.end());
  });
  return made.size() <= maxWords;
}

std::vector<uint32_t> weir::spv::inlineCalls(std::span<const uint32_t> source,
                                             const std::string &where) {
  std::vector<uint32_t> words(source.begin(), source.end());
  for (size_t round = 0; round < maxRounds; ++round) {
    const Module module(std::span(reinterpret_cast<const unsigned char *>(words.data()),
                                  words.size() * sizeof(uint32_t)),
                        where);
    std::vector<uint32_t> made;
    if (!Inliner(module, words).run(made))
      break;
    words = std::move(made);
  }
  return words;
}
