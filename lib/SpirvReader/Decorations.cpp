//===- Decorations.cpp - What Vulkan demands of buffers' variables --------===//

#include "weir/SpirvReader/Module.h"

using namespace weir;
using namespace weir::spv;

/// Returns a sentence on the first type in `id` whose bytes in memory are not stated, or "".
static std::string findUnstated(const Module &module, Id id,
                                const std::map<std::pair<Id, uint32_t>, uint32_t> &offsets) {
  const Type &type = module.getType(id);
  switch (type.kind) {
  case Type::Kind::Array:
  case Type::Kind::RuntimeArray:
    if (!module.isDecorated(id, Decoration::ArrayStride))
      return "the array %" + std::to_string(id) + " of a buffer has no ArrayStride";
    return findUnstated(module, type.element, offsets);
  case Type::Kind::Struct:
    for (uint32_t i = 0; i < type.members.size(); ++i) {
      if (!offsets.contains({id, i}))
        return "member " + std::to_string(i) + " of the struct %" + std::to_string(id) +
               " of a buffer has no Offset";
      if (std::string found = findUnstated(module, type.members[i], offsets); !found.empty())
        return found;
    }
    return "";
  default:
    return "";
  }
}

std::string Module::findUndecorated() const {
  for (const Variable &variable : variables) {
    if (variable.storage != StorageClass::StorageBuffer)
      continue;
    const std::string name = "the buffer %" + std::to_string(variable.id) + " has no ";
    if (!variable.set)
      return name + "DescriptorSet";
    if (!variable.binding)
      return name + "Binding";
    const Id element = getType(variable.type).element;
    if (getType(element).kind == Type::Kind::Struct && !isDecorated(element, Decoration::Block))
      return name + "Block";
    if (std::string found = findUnstated(*this, element, memberOffsets); !found.empty())
      return found;
  }
  return "";
}
