//===- Words.cpp - Makes the words of a module ----------------------------===//

#include "Words.h"

using namespace weir;
using namespace weir::ptx;
using spv::StorageClass;

void Words::put(std::vector<uint32_t> &to, Op op, std::span<const uint32_t> operands) {
  to.push_back(uint32_t(operands.size() + 1) << 16 | uint32_t(op));
  to.insert(to.end(), operands.begin(), operands.end());
}

/// Appends the words of a text.
void Words::putText(std::vector<uint32_t> &words, std::string_view text) {
  for (size_t i = 0; i <= text.size(); i += 4) {
    uint32_t word = 0;
    for (size_t k = 0; k < 4 && i + k < text.size(); ++k)
      word |= uint32_t(uint8_t(text[i + k])) << (8 * k);
    words.push_back(word);
  }
}

/// Returns the id of a type or constant; makes it if it is new.
Id Words::getType(Op op, std::vector<uint32_t> operands) {
  auto [place, isNew] = known.try_emplace({op, operands}, 0);
  if (!isNew)
    return place->second;
  Id id = place->second = makeId();
  // Constants have their type first.
  bool isConstant = op == Op::Constant || op == Op::Undef;
  operands.insert(operands.begin() + (isConstant ? 1 : 0), id);
  put(types, op, operands);
  return id;
}

Id Words::getInteger(uint32_t width) {
  return width == 1 ? getBool() : getType(Op::TypeInt, {width, 0});
}

Id Words::getConstant(uint32_t width, uint64_t bits) {
  if (width == 1) {
    Op op = bits ? Op::ConstantTrue : Op::ConstantFalse;
    auto [place, isNew] = known.try_emplace({op, {}}, 0);
    if (isNew) {
      place->second = makeId();
      const uint32_t operands[] = {getBool(), place->second};
      put(types, op, operands);
    }
    return place->second;
  }
  bits &= ~uint64_t(0) >> (64 - width);
  std::vector<uint32_t> operands = {getInteger(width), uint32_t(bits)};
  if (width == 64)
    operands.push_back(uint32_t(bits >> 32));
  return getType(Op::Constant, std::move(operands));
}

Id Words::getUndefined(Id type) { return getType(Op::Undef, {type}); }

Id Words::getString(std::string_view text) {
  auto found = knownStrings.find(text);
  if (found != knownStrings.end())
    return found->second;
  Id id = makeId();
  std::vector<uint32_t> operands = {id};
  putText(operands, text);
  put(strings, Op::String, operands);
  knownStrings.emplace(text, id);
  return id;
}

Id Words::makeVariable(StorageClass storage, int64_t bytes) {
  Id byte = getInteger(8);
  Id array = bytes ? getType(Op::TypeArray, {byte, getConstant(32, uint64_t(bytes))})
                   : getType(Op::TypeRuntimeArray, {byte});
  Id id = makeId();
  const uint32_t operands[] = {getPointer(storage, array), id, uint32_t(storage)};
  put(types, Op::Variable, operands);
  return id;
}

Id Words::makeBinding(uint32_t binding) {
  Id id = makeVariable(StorageClass::StorageBuffer, 0);
  const uint32_t operands[] = {id, uint32_t(spv::Decoration::Binding), binding};
  put(decorations, Op::Decorate, operands);
  return id;
}

Id Words::getBuiltIn(spv::BuiltIn builtIn, bool isVector) {
  auto [place, isNew] = known.try_emplace({Op::Load, {uint32_t(builtIn)}}, 0);
  if (isNew) {
    Id number = getInteger(32);
    Id pointer = getPointer(StorageClass::Input, isVector ? getVector(number, 3) : number);
    Id id = place->second = makeId();
    const uint32_t operands[] = {pointer, id, uint32_t(StorageClass::Input)};
    put(types, Op::Variable, operands);
    const uint32_t decoration[] = {id, uint32_t(spv::Decoration::BuiltIn), uint32_t(builtIn)};
    put(decorations, Op::Decorate, decoration);
  }
  return place->second;
}

std::vector<uint32_t> Words::finish(const std::string &entry,
                                    const std::array<uint32_t, 3> &workgroup,
                                    std::span<const uint32_t> function) {
  Id type = getType(Op::TypeFunction, {getVoid()});
  Id id = makeId();
  std::vector<uint32_t> words = {0x07230203, 0x00010600, 0, 0, 0}, operands = {glsl};
  putText(operands, "GLSL.std.450");
  put(words, Op::ExtInstImport, operands);
  operands = {uint32_t(spv::ExecutionModel::GLCompute), id};
  putText(operands, entry);
  put(words, Op::EntryPoint, operands);
  const uint32_t sizes[] = {id, uint32_t(spv::ExecutionMode::LocalSize), workgroup[0], workgroup[1],
                            workgroup[2]};
  put(words, Op::ExecutionMode, sizes);
  for (const std::vector<uint32_t> *part : {&strings, &decorations, &types})
    words.insert(words.end(), part->begin(), part->end());
  const uint32_t head[] = {getVoid(), id, 0, type};
  put(words, Op::Function, head);
  words.insert(words.end(), function.begin(), function.end());
  put(words, Op::FunctionEnd, {});
  words[3] = next;
  return words;
}
