//===- Pipeline.cpp - A module for one pipeline ---------------------------===//

#include "weir/SpirvReader/Pipeline.h"

#include "Words.h"
#include "weir/SpirvReader/Integers.h"

#include <algorithm>

using namespace weir::spv;

// Opcodes that no code depends on (SPIR-V specification, sections 3.49.2 and 3.49.3).
static constexpr uint32_t opDecorateId = 332, opDecorateString = 5632,
                          opMemberDecorateString = 5633;
static constexpr uint32_t opSpecConstantOp = 52;

//===----------------------------------------------------------------------===//
// Constants and descriptors
//===----------------------------------------------------------------------===//

namespace {
class Specializer {
public:
  Specializer(std::span<const uint32_t> source, const std::vector<Specialization> &constants) {
    module.words.assign(source.begin(), source.end());
    for (const Specialization &constant : constants)
      given[constant.id] = constant.bits;
  }

  PipelineModule run() {
    std::span<uint32_t> words = module.words;
    module.isWhole =
        forEachInstruction(words, [&](uint32_t op, std::span<uint32_t> all) { collect(op, all); });
    for (auto &[id, place] : places)
      module.slots.push_back(place);
    std::sort(module.slots.begin(), module.slots.end());
    module.slots.erase(std::unique(module.slots.begin(), module.slots.end()), module.slots.end());
    forEachInstruction(words, [&](uint32_t op, std::span<uint32_t> all) { rewrite(op, all); });
    // It overrides all modes, and comes after them. The reader takes a mode anywhere.
    for (Id entry : hasSize ? entries : std::vector<Id>())
      for (uint32_t word : {6u << 16 | uint32_t(Op::ExecutionMode), entry,
                            uint32_t(ExecutionMode::LocalSize), size[0], size[1], size[2]})
        module.words.push_back(word);
    return std::move(module);
  }

private:
  struct Number {
    Id type = 0;
    uint64_t bits = 0;
  };
  struct Pointer {
    StorageClass storage = {};
    Id element = 0;
  };

  void collect(uint32_t op, std::span<uint32_t> all);
  void collectDecoration(std::span<uint32_t> all);
  void declare(Id variable, Id pointer);
  void rewrite(uint32_t op, std::span<uint32_t> all);
  void rewriteDecoration(std::span<uint32_t> all);
  void rewriteConstant(Op op, std::span<uint32_t> all);
  bool fold(std::span<uint32_t> all);
  bool copy(std::span<uint32_t> all, Id from);
  std::optional<Number> compute(std::span<uint32_t> all) const;
  const Number *find(Id id) const {
    auto found = numbers.find(id);
    return found == numbers.end() ? nullptr : &found->second;
  }
  void setNumber(std::span<uint32_t> all, Number number);

  PipelineModule module;
  std::map<uint32_t, uint64_t> given; ///< by SpecId
  std::map<Id, uint32_t> specIds;
  std::map<Id, std::string> names;
  std::map<Id, DescriptorSlot> places;
  std::set<std::pair<Id, Decoration>> decorated;
  std::map<std::pair<Id, Decoration>, std::set<uint32_t>> members; ///< of decorated structs
  std::map<Id, uint32_t> widths;                                   ///< of types; a Bool has 1
  std::map<Id, Pointer> pointers;
  std::map<Id, Id> elements;    ///< of arrays
  std::map<Id, size_t> structs; ///< by type, the number of members
  std::map<Id, Number> numbers; ///< scalar constants
  std::map<Id, std::vector<Id>> composites;
  std::vector<std::pair<Id, Id>> variables; ///< with the types of their pointers
  std::set<Id> silentSets;                  ///< sets of instructions without effects
  std::vector<Id> entries;
  Id sizeId = 0;
  bool hasSize = false;
  std::array<uint32_t, 3> size = {};
};
} // namespace

void Specializer::collectDecoration(std::span<uint32_t> all) {
  const auto decoration = Decoration(all[2]);
  decorated.insert({all[1], decoration});
  if (all.size() != 4)
    return;
  switch (decoration) {
  case Decoration::SpecId:
    specIds[all[1]] = all[3];
    module.specIds.insert(all[3]);
    break;
  case Decoration::DescriptorSet:
    places[all[1]].set = all[3];
    break;
  case Decoration::Binding:
    places[all[1]].binding = all[3];
    break;
  case Decoration::BuiltIn:
    if (BuiltIn(all[3]) == BuiltIn::WorkgroupSize)
      sizeId = all[1];
    break;
  default:
    break;
  }
}

void Specializer::collect(uint32_t opcode, std::span<uint32_t> all) {
  switch (const auto op = Op(opcode); op) {
  case Op::Capability:
    if (all.size() == 2)
      module.capabilities.insert(all[1]);
    break;
  case Op::EntryPoint:
    if (all.size() > 3)
      entries.push_back(all[2]);
    break;
  case Op::ExtInstImport:
    if (all.size() > 2 && readText(all.subspan(2)).starts_with("NonSemantic."))
      silentSets.insert(all[1]);
    break;
  case Op::Name:
    if (all.size() > 2)
      names[all[1]] = readText(all.subspan(2));
    break;
  case Op::MemberDecorate:
    if (all.size() == 4)
      members[{all[1], Decoration(all[3])}].insert(all[2]);
    break;
  case Op::Decorate:
    if (all.size() > 2)
      collectDecoration(all);
    break;
  case Op::TypeBool:
  case Op::TypeInt:
    if (all.size() > (op == Op::TypeBool ? 1u : 2u))
      widths[all[1]] = op == Op::TypeBool ? 1 : all[2];
    break;
  case Op::TypePointer:
    if (all.size() == 4)
      pointers[all[1]] = {StorageClass(all[2]), all[3]};
    break;
  case Op::TypeArray:
  case Op::TypeRuntimeArray:
    if (all.size() > 2)
      elements[all[1]] = all[2];
    break;
  case Op::TypeStruct:
    if (all.size() > 1)
      structs[all[1]] = all.size() - 2;
    break;
  case Op::Variable:
    if (all.size() > 3)
      variables.emplace_back(all[2], all[1]);
    break;
  case Op::ArrayLength:
    module.asksForLengths = true;
    break;
  default:
    break;
  }
}

/// Notes what the declaration of a buffer says. Needs: all slots are known.
void Specializer::declare(Id variable, Id pointerType) {
  auto place = places.find(variable);
  auto pointer = pointers.find(pointerType);
  if (place == places.end() || pointer == pointers.end() ||
      (pointer->second.storage != StorageClass::StorageBuffer &&
       pointer->second.storage != StorageClass::Uniform))
    return;
  Id block = pointer->second.element;
  auto array = elements.find(block);
  if (array != elements.end())
    block = array->second;
  auto fields = structs.find(block);
  auto lacks = [&](Decoration decoration) {
    auto found = members.find({block, decoration});
    return decorated.contains({variable, decoration}) ||
           (fields != structs.end() && fields->second > 0 && found != members.end() &&
            found->second.size() == fields->second);
  };
  const auto slot = std::lower_bound(module.slots.begin(), module.slots.end(), place->second);
  DeclaredBuffer &buffer = module.buffers[uint32_t(slot - module.slots.begin())];
  const bool isUniform = pointer->second.storage == StorageClass::Uniform &&
                         decorated.contains({block, Decoration::Block});
  if (buffer.name.empty())
    buffer.name = names[variable].empty() ? names[block] : names[variable];
  buffer.isArray |= array != elements.end();
  buffer.isUniform |= isUniform;
  buffer.mayRead |= !lacks(Decoration::NonReadable);
  buffer.mayWrite |= !isUniform && !lacks(Decoration::NonWritable);
}

void Specializer::rewriteDecoration(std::span<uint32_t> all) {
  if (all.size() != 4)
    return;
  if (Decoration(all[2]) == Decoration::DescriptorSet)
    all[3] = 0;
  else if (Decoration(all[2]) == Decoration::Binding)
    all[3] = uint32_t(std::lower_bound(module.slots.begin(), module.slots.end(), places[all[1]]) -
                      module.slots.begin());
  else if (Decoration(all[2]) == Decoration::BuiltIn && all[1] == sizeId)
    drop(all);
}

void Specializer::rewrite(uint32_t opcode, std::span<uint32_t> all) {
  switch (opcode) {
  case opDecorateId:
  case opDecorateString:
  case opMemberDecorateString:
    return drop(all);
  case opSpecConstantOp:
    if (all.size() > 4)
      fold(all);
    return;
  default:
    break;
  }
  switch (const auto op = Op(opcode); op) {
  case Op::Decorate:
    return rewriteDecoration(all);
  case Op::ExecutionModeId:
    if (all.size() > 2 && sizeId && ExecutionMode(all[2]) == ExecutionMode::LocalSizeId)
      drop(all);
    break;
  case Op::ExtInst:
    if (all.size() > 3 && silentSets.contains(all[3]))
      drop(all);
    break;
  case Op::Variable:
    if (all.size() > 3)
      declare(all[2], all[1]);
    break;
  default:
    if (all.size() > 2)
      rewriteConstant(op, all);
    break;
  }
}

/// Replaces a constant's instruction by that of a number; the rest of its words do nothing.
void Specializer::setNumber(std::span<uint32_t> all, Number number) {
  const Id type = number.type, result = all[2];
  numbers[result] = number;
  const uint32_t width = widths[type];
  const bool isBool = width == 1;
  const size_t count = isBool ? 3 : width > 32 ? 5 : 4;
  drop(all.subspan(count));
  const Op op = !isBool ? Op::Constant : number.bits ? Op::ConstantTrue : Op::ConstantFalse;
  all[0] = uint32_t(count) << 16 | uint32_t(op);
  all[1] = type;
  all[2] = result;
  for (size_t i = 3; i < count; ++i)
    all[i] = uint32_t(number.bits >> (32 * (i - 3)));
}

void Specializer::rewriteConstant(Op op, std::span<uint32_t> all) {
  const uint64_t *value = nullptr;
  if (auto id = specIds.find(all[2]); id != specIds.end())
    if (auto found = given.find(id->second); found != given.end())
      value = &found->second;
  auto become = [&](Op other) { all[0] = uint32_t(all.size()) << 16 | uint32_t(other); };
  switch (op) {
  case Op::ConstantTrue:
  case Op::ConstantFalse:
  case Op::SpecConstantTrue:
  case Op::SpecConstantFalse: {
    bool isTrue = op == Op::ConstantTrue || op == Op::SpecConstantTrue;
    if (value && op != Op::ConstantTrue && op != Op::ConstantFalse)
      isTrue = *value;
    become(isTrue ? Op::ConstantTrue : Op::ConstantFalse);
    numbers[all[2]] = {all[1], isTrue};
    break;
  }
  case Op::Constant:
  case Op::SpecConstant:
    if (all.size() < 4)
      break;
    if (op == Op::SpecConstant) {
      become(Op::Constant);
      for (size_t i = 3; value && i < all.size() && i < 5; ++i)
        all[i] = uint32_t(*value >> (32 * (i - 3)));
    }
    numbers[all[2]] = {all[1], all[3] | (all.size() > 4 ? uint64_t(all[4]) << 32 : 0)};
    break;
  case Op::ConstantNull:
    if (widths.contains(all[1]))
      numbers[all[2]] = {all[1], 0};
    break;
  case Op::ConstantComposite:
  case Op::SpecConstantComposite:
    become(Op::ConstantComposite);
    composites[all[2]].assign(all.begin() + 3, all.end());
    if (all.size() == 6 && all[2] == sizeId)
      for (size_t axis = 0; axis < 3; ++axis) {
        size[axis] = uint32_t(numbers[all[3 + axis]].bits);
        hasSize = true;
      }
    break;
  default:
    break;
  }
}

/// Makes an instruction of a constant that equals another one.
bool Specializer::copy(std::span<uint32_t> all, Id from) {
  if (const Number *number = find(from)) {
    if (!widths.contains(number->type))
      return false;
    setNumber(all, *number);
    return true;
  }
  auto composite = composites.find(from);
  if (composite == composites.end() || composite->second.size() + 3 > all.size())
    return false;
  const std::vector<Id> parts = composite->second;
  drop(all.subspan(3 + parts.size()));
  all[0] = uint32_t(3 + parts.size()) << 16 | uint32_t(Op::ConstantComposite);
  std::copy(parts.begin(), parts.end(), all.begin() + 3);
  composites[all[2]] = parts;
  return true;
}

/// Computes an operation on scalars; none if it is not one, or undefined.
std::optional<Specializer::Number> Specializer::compute(std::span<uint32_t> all) const {
  const auto op = Op(all[3]);
  const Number *a = find(all[4]), *b = all.size() > 5 ? find(all[5]) : nullptr;
  auto width = a ? widths.find(a->type) : widths.end(), to = widths.find(all[1]);
  if (width == widths.end() || to == widths.end() || width->second > 64 || to->second > 64 ||
      width->second == 0 || to->second == 0)
    return std::nullopt;
  const uint64_t x = cut(a->bits, width->second);
  std::optional<uint64_t> result;
  switch (op) {
  case Op::UConvert:
    result = x;
    break;
  case Op::SConvert:
    result = uint64_t(extend(x, width->second));
    break;
  case Op::SNegate:
    result = ~x + 1;
    break;
  case Op::Not:
    result = ~x;
    break;
  case Op::LogicalNot:
    result = !x;
    break;
  default: {
    auto other = b ? widths.find(b->type) : widths.end();
    if (other == widths.end() || all.size() != 6)
      return std::nullopt;
    const bool isShift =
        op == Op::ShiftLeftLogical || op == Op::ShiftRightLogical || op == Op::ShiftRightArithmetic;
    if (!isShift && other->second != width->second)
      return std::nullopt;
    result = computeBinary(op, x, cut(b->bits, other->second), width->second);
    break;
  }
  }
  if (!result)
    return std::nullopt;
  return Number{all[1], cut(*result, to->second)};
}

/// Folds OpSpecConstantOp, if all that it needs is known; else it stays.
bool Specializer::fold(std::span<uint32_t> all) {
  switch (Op(all[3])) {
  case Op::CompositeExtract: {
    Id part = all[4];
    for (uint32_t index : all.subspan(5)) {
      auto composite = composites.find(part);
      if (composite == composites.end() || index >= composite->second.size())
        return false;
      part = composite->second[index];
    }
    return copy(all, part);
  }
  case Op::Select: {
    const Number *condition = find(all[4]);
    return condition && all.size() == 7 && copy(all, all[condition->bits ? 5 : 6]);
  }
  default:
    if (std::optional<Number> number = compute(all)) {
      setNumber(all, *number);
      return true;
    }
    return false;
  }
}

PipelineModule weir::spv::specialize(std::span<const uint32_t> words,
                                     const std::vector<Specialization> &constants) {
  return Specializer(words, constants).run();
}

bool weir::spv::makeStorageBuffers(std::vector<uint32_t> &words, uint32_t pushBinding) {
  std::vector<uint32_t> decorations;
  size_t firstType = 0, at = 5;
  forEachInstruction(std::span(words), [&](uint32_t opcode, std::span<uint32_t> all) {
    const auto op = Op(opcode);
    if (op >= Op::TypeVoid && op <= Op::TypeFunction && !firstType)
      firstType = at;
    at += all.size();
    if ((op != Op::TypePointer && op != Op::Variable) || all.size() < 4)
      return;
    uint32_t &storage = all[op == Op::TypePointer ? 2 : 3];
    if (StorageClass(storage) != StorageClass::Uniform &&
        StorageClass(storage) != StorageClass::PushConstant)
      return;
    if (op == Op::Variable && StorageClass(storage) == StorageClass::PushConstant)
      for (auto [decoration, value] : {std::pair(Decoration::DescriptorSet, 0u),
                                       std::pair(Decoration::Binding, pushBinding)}) {
        const uint32_t made[] = {4u << 16 | uint32_t(Op::Decorate), all[2], uint32_t(decoration),
                                 value};
        decorations.insert(decorations.end(), std::begin(made), std::end(made));
      }
    storage = uint32_t(StorageClass::StorageBuffer);
  });
  words.insert(words.begin() + ptrdiff_t(firstType), decorations.begin(), decorations.end());
  return !decorations.empty();
}

//===----------------------------------------------------------------------===//
// Lengths
//===----------------------------------------------------------------------===//

std::vector<uint32_t> weir::spv::setLengths(std::span<const uint32_t> source,
                                            const std::map<uint32_t, int64_t> &bytes) {
  std::vector<uint32_t> words(source.begin(), source.end());
  std::map<Id, uint32_t> bindings, strides;
  std::map<std::pair<Id, uint32_t>, uint32_t> offsets;
  std::map<Id, Id> pointees, typeOf;
  std::map<Id, std::vector<Id>> structs;
  std::vector<uint32_t> constants;
  size_t firstFunction = 0, at = 5;
  forEachInstruction(std::span(words), [&](uint32_t opcode, std::span<uint32_t> all) {
    const size_t here = at;
    at += all.size();
    const auto op = Op(opcode);
    if (op == Op::Decorate && all.size() == 4 && Decoration(all[2]) == Decoration::Binding) {
      bindings[all[1]] = all[3];
    } else if (op == Op::Decorate && all.size() == 4 &&
               Decoration(all[2]) == Decoration::ArrayStride) {
      strides[all[1]] = all[3];
    } else if (op == Op::MemberDecorate && all.size() == 5 &&
               Decoration(all[3]) == Decoration::Offset) {
      offsets[{all[1], all[2]}] = all[4];
    } else if (op == Op::TypePointer && all.size() == 4) {
      pointees[all[1]] = all[3];
    } else if (op == Op::TypeStruct && all.size() > 1) {
      structs[all[1]].assign(all.begin() + 2, all.end());
    } else if (op == Op::Variable && all.size() > 3) {
      typeOf[all[2]] = all[1];
    } else if (op == Op::Function && !firstFunction) {
      firstFunction = here;
    } else if (op == Op::ArrayLength && all.size() == 5 && firstFunction) {
      auto binding = bindings.find(all[3]);
      const Id block = pointees[typeOf[all[3]]];
      const std::vector<Id> &members = structs[block];
      auto offset = offsets.find({block, all[4]});
      auto given = binding == bindings.end() ? bytes.end() : bytes.find(binding->second);
      if (given == bytes.end() || all[4] >= members.size() || offset == offsets.end() ||
          strides[members[all[4]]] == 0)
        return;
      const int64_t length =
          std::max<int64_t>(given->second - int64_t(offset->second), 0) / strides[members[all[4]]];
      const Id constant = words[3]++;
      const uint32_t made[] = {4u << 16 | uint32_t(Op::Constant), all[1], constant,
                               uint32_t(std::min<int64_t>(length, UINT32_MAX))};
      constants.insert(constants.end(), std::begin(made), std::end(made));
      all[0] = 4u << 16 | uint32_t(Op::CopyObject);
      all[3] = constant;
      drop(all.subspan(4));
    }
  });
  words.insert(words.begin() + ptrdiff_t(firstFunction), constants.begin(), constants.end());
  return words;
}
