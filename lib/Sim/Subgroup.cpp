//===- Subgroup.cpp - Invocations that execute together -------------------===//

#include "Subgroup.h"

#include "Machine.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>

using namespace weir;
using namespace weir::sim;

/// Max number of blocks run without an access to memory before other subgroups have their turn.
static constexpr int maxBlocks = 1 << 16;

static constexpr std::align_val_t registerAlignment{64};

void Subgroup::Free::operator()(unsigned char *bytes) const {
  ::operator delete[](bytes, registerAlignment);
}

Subgroup::Subgroup(const Program &program)
    : program(program), width(program.width),
      registers(static_cast<unsigned char *>(
          ::operator new[](program.registerBytes + 1, registerAlignment))) {
  std::memset(registers.get(), 0, program.registerBytes);
  for (const Preset &preset : program.constants)
    for (uint32_t lane = 0; lane < width; ++lane)
      if (preset.isWide)
        at<uint64_t>(preset.to)[lane] = preset.bits;
      else
        at<uint32_t>(preset.to)[lane] = uint32_t(preset.bits);
  privateBytes.resize(size_t(program.privateBytes) * width);
  privateWritten.resize(privateBytes.size());
}

void Subgroup::start(Workgroup &group, uint32_t number, uint32_t first, uint32_t lanes) {
  workgroup = &group;
  // Lanes that need not run in lockstep may make all their trips one after the other.
  maxTrips = group.machine.getMaxTrips() * (program.isWarp ? int64_t(width) : 1);
  firstInvocation = first;
  all = lanes == 64 ? ~Mask(0) : (Mask(1) << lanes) - 1;
  waiting.clear();
  exited = 0;
  trips = 0;
  go({0, program.blocks[0].firstStep, all});
  state = State::Ready;
  if (program.syncsWarps)
    resetOrder(0);
  if (!program.copies.empty())
    lates.assign(width, {});
  products.clear();
  productGroups = 0;
  hasBegunProducts = false;
  std::fill(privateBytes.begin(), privateBytes.end(), poison);
  std::fill(privateWritten.begin(), privateWritten.end(), 0);
  const std::array<uint32_t, 3> &size = program.localSize;
  const Command &command = *group.dispatch->command;
  uint32_t subgroups = group.countSubgroups();
  halve();
  for (const BuiltInRegister &builtIn : program.builtIns) {
    auto *to = at<uint32_t>(builtIn.to);
    for (uint32_t lane = 0; lane < lanes; ++lane) {
      uint32_t index = first + lane;
      const std::array<uint32_t, 3> local = {index % size[0], index / size[0] % size[1],
                                             index / size[0] / size[1]};
      uint32_t component = builtIn.component;
      switch (builtIn.builtIn) {
      case spv::BuiltIn::NumWorkgroups:
        to[lane] = uint32_t(command.grid[component]);
        break;
      case spv::BuiltIn::WorkgroupSize:
        to[lane] = size[component];
        break;
      case spv::BuiltIn::WorkgroupId:
        to[lane] = group.place[component];
        break;
      case spv::BuiltIn::LocalInvocationId:
        to[lane] = local[component];
        break;
      case spv::BuiltIn::GlobalInvocationId:
        to[lane] = group.place[component] * size[component] + local[component];
        break;
      case spv::BuiltIn::LocalInvocationIndex:
        to[lane] = index;
        break;
      case spv::BuiltIn::SubgroupSize:
        to[lane] = program.subgroupSize;
        break;
      case spv::BuiltIn::NumSubgroups:
        to[lane] = subgroups;
        break;
      case spv::BuiltIn::SubgroupId:
        to[lane] = number;
        break;
      case spv::BuiltIn::SubgroupLocalInvocationId:
        to[lane] = lane;
        break;
      default: // the decoder refuses all others
        break;
      }
    }
  }
}

void Subgroup::setMask(Mask lanes) {
  mask = lanes;
  isUniform = mask == all;
}

void Subgroup::go(const Waiting &next) {
  block = next.block;
  step = next.step;
  endStep = program.blocks[block].endStep;
  setMask(next.mask);
}

void Subgroup::run(uint64_t accesses) {
  budget = accesses;
  part();
  for (int blocks = 0; blocks < maxBlocks; ++blocks) {
    while (step < endStep) {
      const Step &next = program.steps[step++];
      next.run(*this, next);
      if (budget == 0)
        return;
    }
    endBlock(program.blocks[block]);
    if (state != State::Ready)
      return;
    if (program.isWarp && ++blocksRun == maxBlocks / 16)
      giveWay();
  }
}

/// Moves lanes of the current block along an edge. Leaves the mask set to `lanes`.
void Subgroup::follow(const Edge &edge, Mask lanes) {
  // A loop that begins counts as one, for its end.
  if ((edge.block <= block || program.blocks[edge.block].beginsLoop) && ++trips > maxTrips)
    return workgroup->reportEndless();
  setMask(lanes);
  for (uint32_t i = edge.firstStep; i < edge.endStep; ++i)
    program.steps[i].run(*this, program.steps[i]);
  wait({edge.block, program.blocks[edge.block].firstStep, lanes});
}

void Subgroup::endBlock(const CodeBlock &code) {
  Mask lanes = mask;
  switch (code.end) {
  case CodeBlock::End::Unreachable:
    workgroup->reportUnreachable(*this);
    break;
  case CodeBlock::End::Return:
    exited |= lanes;
    break;
  case CodeBlock::End::Branch:
    follow(code.edges[0], lanes);
    break;
  case CodeBlock::End::Conditional: {
    const auto *condition = at<uint32_t>(code.selector);
    Mask taken = 0;
    for (Mask rest = lanes; rest; rest &= rest - 1) {
      auto lane = uint32_t(std::countr_zero(rest));
      taken |= Mask(condition[lane] != 0) << lane;
    }
    if (taken)
      follow(code.edges[0], taken);
    if (lanes & ~taken)
      follow(code.edges[1], lanes & ~taken);
    break;
  }
  case CodeBlock::End::Switch: {
    Mask rest = lanes;
    for (size_t i = 0; i < code.literals.size() && rest; ++i) {
      Mask taken = 0;
      for (uint32_t lane = 0; lane < width; ++lane) {
        uint64_t selector =
            code.isWide ? at<uint64_t>(code.selector)[lane] : at<uint32_t>(code.selector)[lane];
        taken |= Mask(rest >> lane & 1 && selector == code.literals[i]) << lane;
      }
      rest &= ~taken;
      if (taken)
        follow(code.edges[i + 1], taken);
    }
    if (rest)
      follow(code.edges[0], rest);
    break;
  }
  }
  if (state == State::Ready)
    choose();
}

//===----------------------------------------------------------------------===//
// Steps that look beyond registers
//===----------------------------------------------------------------------===//

static void runAccess(const AccessSite &access, Subgroup &subgroup) {
  Workgroup &workgroup = *subgroup.workgroup;
  switch (access.space) {
  case Space::Storage:
    workgroup.accessStorage(access, subgroup);
    --subgroup.budget;
    break;
  case Space::Workgroup:
    workgroup.accessMemory(access, subgroup);
    --subgroup.budget;
    break;
  case Space::Private:
    workgroup.accessPrivate(access, subgroup);
    break;
  }
}

static void runAccessStep(Subgroup &subgroup, const Step &step) {
  const AccessSite *access = &subgroup.program.accesses[size_t(step.number)];
  if (access->alternatives == 1 && access->lanes == ~0u)
    return runAccess(*access, subgroup);
  // The lanes go by the object that their addresses are in; the last site takes the others.
  const Mask lanes = subgroup.mask;
  const bool wasUniform = subgroup.isUniform;
  const uint64_t budget = subgroup.budget;
  Mask rest = lanes & (access->lanes == ~0u ? lanes : access->lanes);
  for (uint32_t i = 0; i < access->alternatives && rest; ++i) {
    Mask here = 0;
    for (Mask each = rest; each; each &= each - 1) {
      auto lane = uint32_t(std::countr_zero(each));
      if (i + 1 == access->alternatives || subgroup.workgroup->isNear(access[i], subgroup, lane))
        here |= Mask(1) << lane;
    }
    rest &= ~here;
    subgroup.mask = here;
    subgroup.isUniform = false;
    if (here)
      runAccess(access[i], subgroup);
  }
  subgroup.mask = lanes;
  subgroup.isUniform = wasUniform;
  subgroup.budget = budget - 1;
}

StepFunction sim::getAccessStep() { return runAccessStep; }

static void runBarrier(Subgroup &subgroup, const Step &step) {
  const Barrier &barrier = subgroup.program.barriers[size_t(step.number)];
  if (subgroup.program.isWarp && !subgroup.gather(noRegister, nullptr))
    return;
  subgroup.barrier = uint32_t(step.number);
  if (!subgroup.isUniform)
    return subgroup.workgroup->reportDivergence(barrier);
  subgroup.stop(Subgroup::State::AtBarrier);
}

StepFunction sim::getBarrierStep() { return runBarrier; }

template <typename T> static void shuffle(Subgroup &subgroup, const Step &step) {
  const Shuffle &shuffle = subgroup.program.shuffles[size_t(step.number)];
  auto *to = subgroup.at<T>(step.to);
  const auto *from = subgroup.at<T>(step.a);
  const auto *index = subgroup.at<uint32_t>(step.b);
  auto first = uint32_t(std::countr_zero(subgroup.mask));
  for (Mask rest = subgroup.mask; rest; rest &= rest - 1) {
    auto lane = uint32_t(std::countr_zero(rest));
    uint64_t source = first;
    switch (shuffle.op) {
    case spv::Op::GroupNonUniformShuffle:
    case spv::Op::GroupNonUniformBroadcast:
      source = index[lane];
      break;
    case spv::Op::GroupNonUniformShuffleXor:
      source = lane ^ index[lane];
      break;
    case spv::Op::GroupNonUniformShuffleUp:
      source = uint64_t(lane) - index[lane];
      break;
    case spv::Op::GroupNonUniformShuffleDown:
      source = uint64_t(lane) + index[lane];
      break;
    default: // OpGroupNonUniformBroadcastFirst
      break;
    }
    if (source < maxLanes && subgroup.isActive(uint32_t(source))) {
      to[lane] = from[source];
      continue;
    }
    subgroup.workgroup->reportInactive(shuffle.source, subgroup, lane);
    to[lane] = T(-1);
  }
}

static void runShuffle(Subgroup &subgroup, const Step &step) {
  if (step.c)
    shuffle<uint64_t>(subgroup, step);
  else
    shuffle<uint32_t>(subgroup, step);
}

StepFunction sim::getShuffleStep() { return runShuffle; }
