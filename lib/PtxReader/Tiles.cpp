//===- Tiles.cpp - Copies of boxes, and mbarriers -------------------------===//
//
// cp.async.bulk.tensor names a tensor map, a parameter that says where a tensor lies. The plan
// states it, so the instruction becomes one that has the tensor's place and sizes.
//
//===----------------------------------------------------------------------===//

#include "Translator.h"

#include <algorithm>
#include <utility>

using namespace weir;
using namespace weir::ptx;
using spv::StorageClass;

/// Bytes of a tensor map, and their alignment.
static constexpr int64_t mapBytes = 128, mapAlignment = 64;

/// Returns the number of the tensor map that a parameter is.
std::optional<size_t> Translator::getTensorMap(const Symbol &symbol) const {
  if (symbol.space != Symbol::Space::Param ||
      symbol.parameter + tensorMaps.size() < entry.numParameters)
    return std::nullopt;
  need(symbol.bytes == mapBytes && symbol.alignment >= mapAlignment,
       "has another parameter where the plan states a tensor map");
  return symbol.parameter + tensorMaps.size() - entry.numParameters;
}

static bool uses(const Operand &operand, uint32_t predicate) {
  return (operand.kind == Operand::Kind::Register && operand.number == predicate) ||
         std::any_of(operand.parts.begin(), operand.parts.end(),
                     [&](const Operand &part) { return uses(part, predicate); });
}

static size_t countUses(const Entry &entry, uint32_t predicate) {
  size_t count = 0;
  for (const Statement &each : entry.statements) {
    count += each.guard == predicate;
    for (const Operand &operand : each.operands)
      count += uses(operand, predicate);
  }
  return count;
}

void ptx::joinWaits(Entry &entry) {
  std::vector<bool> isDropped(entry.statements.size());
  for (size_t i = 0; i + 1 < entry.statements.size(); ++i) {
    Statement &wait = entry.statements[i];
    const Statement &again = entry.statements[i + 1];
    if (wait.name.size() < 3 || wait.name[0] != "mbarrier" || wait.name[1] != "try_wait" ||
        wait.name[2] != "parity" || wait.guard || wait.operands.size() != 3 ||
        wait.operands[0].kind != Operand::Kind::Register || again.name.front() != "bra" ||
        again.guard != wait.operands[0].number || !again.isGuardNegated ||
        again.operands.size() != 1)
      continue;
    const std::string_view label = again.operands[0].name;
    const auto isHere = [&](const auto &each) { return each.first == label; };
    const auto found = std::find_if(entry.labels.begin(), entry.labels.end(), isHere);
    const size_t jumps =
        std::count_if(entry.statements.begin(), entry.statements.end(), [&](const Statement &each) {
          return std::any_of(each.operands.begin(), each.operands.end(), [&](const Operand &to) {
            return to.kind == Operand::Kind::Name && to.name == label;
          });
        });
    if (found == entry.labels.end() || found->second != i || jumps != 1 ||
        countUses(entry, *again.guard) != 2)
      continue;
    wait.name = {"mbarrier", "wait", "parity"};
    wait.operands.erase(wait.operands.begin());
    isDropped[i + 1] = true;
    entry.labels.erase(found);
  }
  std::vector<uint32_t> places(entry.statements.size() + 1);
  std::vector<Statement> kept;
  for (size_t i = 0; i < entry.statements.size(); ++i) {
    places[i] = uint32_t(kept.size());
    if (!isDropped[i])
      kept.push_back(std::move(entry.statements[i]));
  }
  places.back() = uint32_t(kept.size());
  entry.statements = std::move(kept);
  for (auto &[name, place] : entry.labels)
    place = places[place];
}

/// Translates mbarrier where it counts the bytes of copies.
void Translator::translateMBarrier() {
  std::string_view what = statement->name.size() > 1 ? statement->name[1] : "";
  const bool isExpectation = what == "arrive" && hasName("expect_tx");
  if ((what != "init" && what != "wait" && !isExpectation) || hasName("shared::cluster"))
    refuse();
  const size_t address = isExpectation ? 1 : 0;
  const std::optional<uint64_t> number = getNumber(address + 1);
  need(number.has_value(), "has a number that is not constant");
  Id pointer = getAddress(getOperand(address), StorageClass::Workgroup, words.getInteger(64));
  if (what == "init") {
    need(*number == 1, "has a count other than 1");
    return put(Op::MBarrierInit, {pointer});
  }
  Id constant = words.getConstant(32, *number);
  if (isExpectation) {
    need(getOperand(0).kind == Operand::Kind::Sink, "returns the state of an mbarrier");
    return put(Op::MBarrierExpect, {pointer, constant});
  }
  need(*number <= 1, "has a parity other than 0 and 1");
  put(Op::MBarrierWait, {pointer, constant});
}

/// Translates cp.async.bulk.tensor.
void Translator::translateTile() {
  const std::string name = statement->getName();
  const Operand &from = getOperand(1);
  need(from.kind == Operand::Kind::Address && from.parts.size() == 2 && from.bits == 0 &&
           from.parts[0].kind == Operand::Kind::Register &&
           from.parts[1].kind == Operand::Kind::Vector,
       "has no tensor map with coordinates");
  auto known = mapOf.find(getRegister(from.parts[0].number));
  need(known != mapOf.end(), "has a tensor map that is no parameter");
  const TensorMap &map = tensorMaps[known->second];
  const size_t rank = map.shape.size();
  if (name != "cp.async.bulk.tensor." + std::to_string(rank) +
                  "d.shared::cluster.global.tile.mbarrier::complete_tx::bytes" ||
      statement->operands.size() != 3)
    refuse();
  need(from.parts[1].parts.size() == rank, "has more or fewer coordinates than its tensor map");
  needSwizzledBlocks();
  auto symbol = std::find_if(entry.symbols.begin(), entry.symbols.end(), [&](const Symbol &each) {
    return each.space == Symbol::Space::Param && int64_t(each.parameter) == map.operand;
  });
  need(symbol != entry.symbols.end() && symbol->width == 64,
       "has a tensor map of an operand that is no address");
  Id run = words.getVector(words.getInteger(32), 4);
  Id to = getAddress(getOperand(0), StorageClass::Workgroup, run),
     mbarrier = getAddress(getOperand(2), StorageClass::Workgroup, words.getInteger(64));
  Id address =
      makeInteger(Op::ConvertPtrToU, 64, {bindings[size_t(symbol - entry.symbols.begin())]});
  Id tensor =
      make(Op::ConvertUToPtr, words.getPointer(StorageClass::CrossWorkgroup, run), {address});
  std::vector<uint32_t> operands = {to, mbarrier, tensor, words.getString(name),
                                    words.getConstant(32, uint64_t(getDTypeBytes(map.dtype)))};
  for (size_t i = rank; i-- > 0;) {
    operands.push_back(words.getConstant(32, uint64_t(map.shape[i])));
    operands.push_back(words.getConstant(32, uint64_t(map.box[i])));
  }
  for (const Operand &coordinate : from.parts[1].parts)
    operands.push_back(use(coordinate, 32));
  Words::put(*body, Op::CopyTile, operands);
}
