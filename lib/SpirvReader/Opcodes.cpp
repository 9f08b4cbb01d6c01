//===- Opcodes.cpp - Opcodes that the reader knows ------------------------===//

#include "weir/SpirvReader/Opcodes.h"

#include <unordered_map>

using namespace weir::spv;

const OpInfo *weir::spv::findOpInfo(uint32_t opcode) {
  static const std::unordered_map<uint32_t, OpInfo> infos = {
#define WEIR_SPIRV_OP(name, number, hasType, hasResult, words, kind)                               \
  {number, {"Op" #name, hasType, hasResult, words}},
#include "weir/SpirvReader/Opcodes.def"
#undef WEIR_SPIRV_OP
  };
  auto found = infos.find(opcode);
  return found == infos.end() ? nullptr : &found->second;
}

const char *weir::spv::getName(Op op) {
  const OpInfo *info = findOpInfo(uint32_t(op));
  return info ? info->name : "an unknown opcode";
}
