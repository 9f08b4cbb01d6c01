//===- SpirvMutants.cpp - SPIR-V with one instruction changed -------------===//

#include "CodeMutants.h"
#include "weir/SpirvReader/Module.h"

#include <algorithm>
#include <cstring>
#include <utility>

using namespace weir;
using namespace weir::mutate;

/// Lets `change` edit the words of a module.
template <typename Change> static void changeWords(Bytes &code, Change change) {
  std::vector<uint32_t> words(code.size() / sizeof(uint32_t));
  std::memcpy(words.data(), code.data(), code.size());
  if (words[0] != 0x07230203)
    throw Error("weir-mutate edits SPIR-V of this machine's byte order only");
  change(words);
  code.resize(words.size() * sizeof(uint32_t));
  std::memcpy(code.data(), words.data(), code.size());
}

/// Makes the barrier at a word order no memory: its semantics become a new constant 0.
static void weakenBarrier(std::vector<uint32_t> &words, uint32_t barrier) {
  uint32_t &bound = words[3];
  uint32_t semantics = std::exchange(words[barrier + 3], bound);
  for (uint32_t at = 5; at < words.size(); at += words[at] >> 16)
    if ((words[at] & 0xffff) == uint32_t(spv::Op::Constant) && words[at + 2] == semantics) {
      uint32_t zero[] = {words[at], words[at + 1], bound++, 0};
      words.insert(words.begin() + at, std::begin(zero), std::end(zero));
      return;
    }
  throw Error("the semantics of a barrier are not a constant");
}

std::vector<CodeChange> mutate::listSpirvChanges(const Kernel &kernel, const Bytes &code) {
  std::vector<CodeChange> changes;
  spv::Module module(code, kernel.code);
  size_t count = 0;
  for (const spv::Function &function : module.getFunctions())
    for (const spv::Block &block : function.blocks)
      for (const spv::Instruction &instruction : block.instructions) {
        if (instruction.op != spv::Op::ControlBarrier)
          continue;
        std::string name = "barrier " + std::to_string(count) + " in the code of @" + kernel.name;
        uint32_t word = instruction.word;
        changes.push_back({"drop-code-barrier", {count}, name + " is gone", [word](Bytes &copy) {
                             changeWords(copy, [&](std::vector<uint32_t> &words) {
                               std::fill_n(words.begin() + word, words[word] >> 16,
                                           1u << 16); // OpNop
                             });
                           }});
        changes.push_back(
            {"weaken-code-barrier", {count}, name + " orders no memory", [word](Bytes &copy) {
               changeWords(copy, [&](std::vector<uint32_t> &words) { weakenBarrier(words, word); });
             }});
        ++count;
      }
  return changes;
}

std::vector<CodeChange> mutate::listCodeChanges(const Kernel &kernel, const Bytes &code) {
  return kernel.code.ends_with(".ptx") ? listPtxChanges(kernel, code)
                                       : listSpirvChanges(kernel, code);
}
