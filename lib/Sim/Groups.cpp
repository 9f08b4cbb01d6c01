//===- Groups.cpp - Products of matrices by four warps --------------------===//
//
// Each warp of four has 16 of the 64 rows of sums. A product reads its factors at any time until
// its warp has waited for it: until then no invocation may write there, and none may use its sums.
// Stores of invocations are seen only once they have ordered them for the proxy that reads. The
// places of elements, of sums in registers and of factors in memory, are those of the PTX ISA,
// "Asynchronous wgmma Instructions".
//
//===----------------------------------------------------------------------===//

#include "Decoder.h"
#include "Machine.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>

using namespace weir;
using namespace weir::sim;
using namespace weir::spv;

static constexpr uint32_t groupRows = 64, warpRows = 16, lineElements = 64;
static constexpr int64_t lineBytes = 128, runBytes = 16, linesOfBlock = 8;

//===----------------------------------------------------------------------===//
// Decoding
//===----------------------------------------------------------------------===//

void Decoder::decodeGroupMatrix(const Instruction &instruction) {
  GroupProduct product;
  product.source = instruction.source;
  product.name = module.getString(instruction.operands[2]);
  const std::string &name = product.name;
  product.type = name.find(".tf32.") != name.npos   ? GroupProduct::Type::Tf32
                 : name.find(".bf16.") != name.npos ? GroupProduct::Type::BF16
                                                    : GroupProduct::Type::F16;
  const std::string rows = "m64n";
  std::from_chars(name.data() + name.find(rows) + rows.size(), name.data() + name.size(),
                  product.columns);
  for (size_t side : {0, 1}) {
    const PointerTarget &target = getTarget(instruction, instruction.operands[side]);
    need(instruction, !otherTargets.contains(instruction.operands[side]),
         "has an address in one of several variables, which the simulator does not support");
    GroupProduct::Side &of = product.sides[side];
    AccessSite access = makeAccess(instruction, target);
    access.isRead = access.isLate = true;
    of.site = access.site;
    of.leading = useConstant(instruction, 3 + 2 * side);
    of.stride = useConstant(instruction, 4 + 2 * side);
    of.isTransposed = useConstant(instruction, 7 + side) != 0;
    program.accesses.push_back(std::move(access));
  }
  product.scale = use(instruction, 9).scalars[0];
  for (size_t i = 10; i < instruction.operands.size(); ++i)
    product.sums.push_back(use(instruction, i).scalars[0]);
  for (size_t i = 0; i < product.sums.size(); ++i)
    product.results.push_back(makeRegister(false));
  define(instruction, product.results);
  emitProduct(std::move(product));
}

void Decoder::emitProduct(GroupProduct product) {
  emit(getProductStep(), 0, 0, 0, 0, int64_t(program.products.size()));
  program.products.push_back(std::move(product));
}

/// Decodes what orders products, and the accesses of invocations before them.
bool Decoder::decodeProductOrder(const Instruction &instruction, const std::string &name) {
  GroupProduct product;
  product.name = name;
  product.source = instruction.source;
  using Kind = GroupProduct::Kind;
  if (name == "wgmma.fence.sync.aligned")
    product.kind = Kind::Begin;
  else if (name == "wgmma.commit_group.sync.aligned")
    product.kind = Kind::Commit;
  else if (name == "wgmma.wait_group.sync.aligned")
    product.kind = Kind::Wait;
  else if (name == "fence.proxy.async" || name == "fence.proxy.async.shared::cta" ||
           name == "fence.proxy.async.shared::cluster")
    product.kind = Kind::Fence;
  else
    return false;
  if (product.kind == Kind::Wait)
    product.pending = useConstant(instruction, 1);
  emitProduct(std::move(product));
  return true;
}

/// Finds the numbers that are sums of products: results, their parts, and phis of these.
void Decoder::findSums(const Function &function) {
  for (bool changes = true; changes;) {
    changes = false;
    for (const Block &block : function.blocks)
      for (const Instruction &instruction : block.instructions) {
        const Op op = instruction.op;
        size_t end = op == Op::Phi ? instruction.operands.size() : op == Op::CompositeExtract;
        bool isSum = op == Op::GroupMatrix;
        for (size_t i = 0; i < end; i += 2)
          isSum |= sums.contains(instruction.operands[i]);
        changes |= isSum && sums.insert(instruction.result).second;
      }
  }
}

/// Emits a step that checks that products have ended before their sums are used other than as sums
/// of further products.
void Decoder::checkSums(const Instruction &instruction) {
  const Op op = instruction.op;
  if (op == Op::GroupMatrix || op == Op::CompositeExtract || op == Op::Phi ||
      std::none_of(instruction.operands.begin(), instruction.operands.end(),
                   [&](uint32_t id) { return sums.contains(id); }))
    return;
  GroupProduct product;
  product.kind = GroupProduct::Kind::Use;
  product.source = instruction.source;
  emitProduct(std::move(product));
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

/// Returns the byte of an element, a row of the first factor or a column of the second.
static int64_t getPlace(const GroupProduct::Side &side, int64_t begin, uint32_t element,
                        uint32_t term, int64_t bytes) {
  int64_t at = side.isTransposed
                   ? begin + element / lineElements * side.leading +
                         term / linesOfBlock * side.stride + term % linesOfBlock * lineBytes +
                         element % lineElements * bytes
                   : begin + element / linesOfBlock * side.stride +
                         element % linesOfBlock * lineBytes + term * bytes;
  return at ^ (at / lineBytes % linesOfBlock * runBytes);
}

/// Returns the number that bits of a factor are. Of tf32, the last 13 bits are ignored.
static float getNumber(GroupProduct::Type type, uint32_t bits) {
  using Type = GroupProduct::Type;
  if (type == Type::F16)
    return float(std::bit_cast<_Float16>(uint16_t(bits)));
  return std::bit_cast<float>(type == Type::BF16 ? bits << 16 : bits & ~0x1fffu);
}

/// Loads a factor's numbers for a warp, and notes that they are being read.
std::vector<float> Workgroup::readFactor(const GroupProduct &product, size_t number,
                                         const Subgroup &subgroup, uint32_t first, uint32_t count,
                                         Subgroup::OpenProduct &open) {
  const GroupProduct::Side &side = product.sides[number];
  const AccessSite &access = program.accesses[side.site];
  const int64_t begin = getOffset(access, subgroup, 0), granule = program.workgroupGranule,
                bytes = product.getElementBytes();
  const uint32_t depth = product.getDepth();
  Now touch = makeTouch(side.site, subgroup, 0, memoryPhase);
  std::vector<float> numbers(size_t(count) * depth);
  std::vector<uint32_t> touched;
  for (uint32_t i = 0; i < count; ++i)
    for (uint32_t term = 0; term < depth; ++term) {
      const int64_t at = getPlace(side, begin, first + i, term, bytes);
      if (at < access.objectBegin || at + bytes > access.objectEnd) {
        machine.reportOutside(*dispatch, access, touch, at - access.objectBegin,
                              access.objectEnd - access.objectBegin);
        continue;
      }
      uint32_t bits = 0;
      std::memcpy(&bits, &memory[size_t(at)], size_t(bytes));
      numbers[size_t(i) * depth + term] = getNumber(product.type, bits);
      touched.push_back(uint32_t(at / granule));
    }
  std::sort(touched.begin(), touched.end());
  touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
  for (uint32_t i : touched) {
    Cell &cell = cells[i];
    const int64_t byte = int64_t(i) * granule;
    if (!landing.empty() && landing[i])
      machine.reportLate(*dispatch, pending[landing[i] - 1].touch, touch, byte);
    else if (!cell.write.site)
      machine.reportUnwritten(*dispatch, access, touch, byte);
    else if (doRace(program, cell.write, touch))
      machine.reportInside(*dispatch, cell.write, touch, byte);
    else if (writtenAt[i] >= fences[cell.write.invocation])
      machine.reportCode(ReportKind::Race, *dispatch, this->number, product.source,
                         "'" + product.name + "' reads what an invocation wrote without a " +
                             "fence.proxy.async behind it");
    cell.addRead(touch);
    if (reading[i]++ == 0)
      readers[i] = touch;
  }
  open.cells.insert(open.cells.end(), touched.begin(), touched.end());
  return numbers;
}

/// Reports a write to bytes that a product may still read.
void Workgroup::checkReaders(int64_t cell, const Now &touch) {
  if (!reading.empty() && reading[size_t(cell)])
    machine.reportLate(*dispatch, readers[size_t(cell)], touch, cell * program.workgroupGranule);
}

/// Notes a write by an invocation, which products do not see before it passes a fence.
void Workgroup::noteWrite(int64_t cell, const Touch &touch) {
  if (fences.empty())
    return;
  writtenAt[size_t(cell)] = fences[touch.invocation];
}

/// Adds a product to the sums of a warp: as mma does, one term after the other.
void Workgroup::addProduct(const GroupProduct &product, Subgroup &subgroup) {
  const uint32_t warp = subgroup.firstInvocation / warpLanes % (groupRows / warpRows);
  Subgroup::OpenProduct open;
  open.group = subgroup.productGroups;
  std::vector<float> a = readFactor(product, 0, subgroup, warp * warpRows, warpRows, open),
                     b = readFactor(product, 1, subgroup, 0, product.columns, open);
  subgroup.products.push_back(std::move(open));
  const uint32_t depth = product.getDepth();
  const bool isAdded = subgroup.at<uint32_t>(product.scale)[0] != 0;
  subgroup.forEachLane([&](uint32_t lane) {
    for (size_t i = 0; i < product.sums.size(); ++i) {
      const size_t row = lane / 4 + i / 2 % 2 * 8, column = i / 4 * 8 + lane % 4 * 2 + i % 2;
      float sum = isAdded ? subgroup.at<float>(product.sums[i])[lane] : 0;
      for (size_t term = 0; term < depth; ++term)
        sum = std::fma(a[row * depth + term], b[column * depth + term], sum);
      subgroup.at<float>(product.results[i])[lane] =
          sum == sum ? sum : std::bit_cast<float>(0x7fffffffu);
    }
  });
}

void Workgroup::orderProducts(const GroupProduct &product, Subgroup &subgroup) {
  using Kind = GroupProduct::Kind;
  auto report = [&](const std::string &problem) {
    machine.reportCode(ReportKind::Race, *dispatch, number, product.source, problem);
  };
  switch (product.kind) {
  case Kind::Product: {
    if (!subgroup.hasBegunProducts)
      report("'" + product.name +
             "' has no wgmma.fence before it, so that its sums may still "
             "change");
    for (const GroupProduct::Side &side : product.sides) {
      const AccessSite &access = program.accesses[side.site];
      subgroup.forEachLane([&](uint32_t lane) {
        if (getOffset(access, subgroup, lane) != getOffset(access, subgroup, 0))
          report("'" + product.name + "' has other factors in one lane than in another");
      });
    }
    addProduct(product, subgroup);
    break;
  }
  case Kind::Begin:
    subgroup.hasBegunProducts = true;
    break;
  case Kind::Commit:
    ++subgroup.productGroups;
    break;
  case Kind::Wait:
    subgroup.hasBegunProducts = false;
    std::erase_if(subgroup.products, [&](const Subgroup::OpenProduct &each) {
      if (int64_t(each.group) + product.pending >= int64_t(subgroup.productGroups))
        return false;
      for (uint32_t cell : each.cells)
        --reading[cell];
      return true;
    });
    break;
  case Kind::Fence:
    subgroup.forEachLane([&](uint32_t lane) { ++fences[subgroup.firstInvocation + lane]; });
    break;
  case Kind::Use:
    if (!subgroup.products.empty())
      report("the instruction may use sums of products that no wgmma.wait_group has waited for");
    break;
  }
}

static void runProduct(Subgroup &subgroup, const Step &step) {
  using Kind = GroupProduct::Kind;
  const GroupProduct &product = subgroup.program.products[size_t(step.number)];
  const bool isTogether = product.kind != Kind::Fence && product.kind != Kind::Use;
  if (isTogether && !subgroup.gather(noRegister, nullptr))
    return;
  if (isTogether && subgroup.mask != ~0u)
    return subgroup.workgroup->reportInactive(product.source, subgroup,
                                              uint32_t(std::countr_zero(subgroup.mask)));
  subgroup.workgroup->orderProducts(product, subgroup);
  if (isTogether)
    subgroup.halve();
}

StepFunction sim::getProductStep() { return runProduct; }
