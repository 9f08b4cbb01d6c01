//===- Flow.cpp - Blocks, loops and selections of an entry ----------------===//
//
// PTX has labels and jumps. This finds the loops by dominators and the ends of selections by
// postdominators, and adds empty blocks so that each loop has one header, one block that leads
// back and one place where it ends. Where it ends in several, predicates lead on from there.
//
//===----------------------------------------------------------------------===//

#include "Flow.h"

#include <algorithm>
#include <unordered_map>

using namespace weir;
using namespace weir::ptx;

/// Max numbers that bound time.
static constexpr size_t maxBlocks = 1 << 13, maxLoops = 512, maxEnds = 16, maxCopies = 512,
                        maxNesting = 128;

bool ptx::isBranch(const Statement &statement) {
  std::string_view name = statement.name.front();
  return name == "bra" || name == "ret" || name == "exit" || name == "trap";
}

bool ptx::touchesMemory(const Statement &statement) {
  static constexpr std::string_view names[] = {
      "ld",       "ldu",      "st",        "atom", "red",      "bar",
      "barrier",  "membar",   "fence",     "cp",   "mbarrier", "ldmatrix",
      "stmatrix", "prefetch", "prefetchu", "wmma", "call",     "discard"};
  return !(statement.name.front() == "ld" && statement.has("param")) &&
         std::find(std::begin(names), std::end(names), statement.name.front()) != std::end(names);
}

static void collect(const Operand &operand, std::vector<uint32_t> &registers) {
  if (operand.kind == Operand::Kind::Register)
    registers.push_back(operand.number);
  for (const Operand &part : operand.parts)
    collect(part, registers);
}

std::vector<uint32_t> ptx::getRegisters(const Statement &statement, bool writes) {
  static constexpr std::string_view withoutResult[] = {
      "st",        "red",       "bra",     "bar",     "barrier",  "membar",
      "fence",     "ret",       "exit",    "trap",    "cp",       "prefetch",
      "prefetchu", "nanosleep", "discard", "pmevent", "stmatrix", "griddepcontrol"};
  bool hasResult = std::find(std::begin(withoutResult), std::end(withoutResult),
                             statement.name.front()) == std::end(withoutResult);
  std::vector<uint32_t> registers;
  for (size_t i = 0; i < statement.operands.size(); ++i) {
    // The parts of an address are read, even if the first operand is written.
    bool isWritten = i == 0 && hasResult && statement.operands[i].kind != Operand::Kind::Address;
    const bool isUpdated = i == 0 && statement.name.front() == "wgmma"; // sums that it adds to
    if (isWritten == writes || isUpdated)
      collect(statement.operands[i], registers);
  }
  return registers;
}

namespace {

struct LoopShape {
  uint32_t header;
  std::vector<uint32_t> latches;
  std::vector<bool> body; ///< by block
};

class Builder {
public:
  Builder(Entry &entry, const std::string &where) : entry(entry), where(where) {}
  Flow run();

private:
  [[noreturn]] void fail(uint32_t block, const std::string &problem) const {
    ptx::fail(where, flow.blocks[block].line, problem);
  }
  uint32_t add(uint32_t line);
  void makeBlocks();
  void connect();
  std::vector<uint32_t> makeOrder(uint32_t first, bool isReversed) const;
  std::vector<uint32_t> findDominators(const std::vector<uint32_t> &order, bool isReverse) const;
  bool dominates(const std::vector<uint32_t> &dominators, uint32_t a, uint32_t b) const;
  void findLoops();
  uint32_t insert(uint32_t to, const std::vector<uint32_t> &from, const std::vector<bool> &isIn);
  void shape(LoopShape &loop);
  uint32_t joinEnds(LoopShape &loop, std::vector<uint32_t> ends);
  void findMerges();
  /// The loop that a walk is in.
  struct Inside {
    uint32_t header = none, end = none, latch = none;
  };
  bool untangle(uint32_t from, uint32_t block, uint32_t merge, const Inside &loop, bool isSelected);
  uint32_t copy(uint32_t from, uint32_t block);

  Entry &entry;
  const std::string &where;
  Flow flow;
  uint32_t exit = none;
  std::vector<LoopShape> loops; ///< outer ones first
  std::vector<bool> isVisited;  ///< by `untangle`
  size_t depth = 0, copies = 0;
};

} // namespace

uint32_t Builder::add(uint32_t line) {
  if (flow.blocks.size() >= maxBlocks)
    ptx::fail(where, line, "has more than " + std::to_string(maxBlocks) + " blocks");
  flow.blocks.emplace_back().line = line;
  return uint32_t(flow.blocks.size() - 1);
}

/// Splits the statements at labels, branches and predicates.
void Builder::makeBlocks() {
  const std::vector<Statement> &statements = entry.statements;
  std::unordered_map<std::string_view, uint32_t> labels;
  for (auto [name, statement] : entry.labels)
    if (!labels.try_emplace(name, statement).second)
      ptx::fail(where, statement < statements.size() ? statements[statement].line : entry.line,
                "has the label '" + std::string(name) + "' a second time");
  auto find = [&](const Statement &branch) {
    if (branch.operands.size() != 1 || branch.operands[0].kind != Operand::Kind::Name)
      ptx::fail(where, branch.line, "branches to no label");
    auto found = labels.find(branch.operands[0].name);
    if (found == labels.end())
      ptx::fail(where, branch.line,
                "branches to '" + std::string(branch.operands[0].name) + "', which is not there");
    return found->second;
  };
  std::vector<bool> isTarget(statements.size() + 1);
  for (const Statement &statement : statements)
    if (statement.name.front() == "bra")
      isTarget[find(statement)] = true;
  std::unordered_map<uint32_t, uint32_t> blockOf;  ///< by the target's statement
  std::vector<std::pair<uint32_t, uint32_t>> open; ///< jumps: block, statement
  uint32_t here = add(entry.line);
  exit = add(entry.line);
  auto begin = [&](uint32_t statement) {
    uint32_t next = add(statement < statements.size() ? statements[statement].line : entry.line);
    flow.blocks[next].begin = flow.blocks[next].end = statement;
    return next;
  };
  for (uint32_t i = 0; i <= statements.size(); ++i) {
    if (isTarget[i] || i == 0) {
      uint32_t next = begin(i);
      if (here != none)
        flow.blocks[here].successors = {next};
      blockOf[i] = here = next;
    }
    if (i == statements.size())
      break;
    const Statement &statement = statements[i];
    if (here == none)
      continue; // cannot be reached
    auto setCondition = [&](Block &block) {
      block.condition = *statement.guard;
      block.isConditionNegated = statement.isGuardNegated;
      block.line = statement.line;
    };
    if (isBranch(statement)) {
      bool isJump = statement.name.front() == "bra";
      uint32_t from = here;
      if (isJump)
        open.emplace_back(from, find(statement));
      flow.blocks[from].successors = {isJump ? none : exit};
      here = none;
      if (statement.guard) {
        here = begin(i + 1);
        flow.blocks[from].successors.push_back(here);
        setCondition(flow.blocks[from]);
      }
    } else if (statement.guard) {
      // Statements with one predicate share a block, as long as none changes it.
      uint32_t inside = begin(i), from = here;
      auto isSame = [&](const Statement &next) {
        return next.guard == statement.guard && next.isGuardNegated == statement.isGuardNegated &&
               !isBranch(next);
      };
      bool isKept = true;
      for (uint32_t next = i; isKept && next < statements.size() && isSame(statements[next]) &&
                              (next == i || !isTarget[next]);
           ++next) {
        flow.blocks[inside].end = next + 1;
        i = next;
        std::vector<uint32_t> written = getRegisters(statements[next], true);
        isKept = std::find(written.begin(), written.end(), *statement.guard) == written.end();
      }
      here = begin(i + 1);
      flow.blocks[inside].successors = {here};
      flow.blocks[from].successors = {inside, here};
      setCondition(flow.blocks[from]);
    } else {
      flow.blocks[here].end = i + 1;
    }
  }
  if (here != none)
    flow.blocks[here].successors = {exit};
  for (auto [block, statement] : open)
    flow.blocks[block].successors[0] = blockOf.at(statement);
  for (Block &block : flow.blocks)
    if (block.successors.size() == 2 && block.successors[0] == block.successors[1]) {
      block.successors.pop_back();
      block.condition = none;
    }
}

/// Returns the blocks that can be reached from `first`, or that reach it if `isReversed`, in
/// reverse postorder.
std::vector<uint32_t> Builder::makeOrder(uint32_t first, bool isReversed) const {
  std::vector<uint32_t> order;
  std::vector<bool> isSeen(flow.blocks.size());
  std::vector<std::pair<uint32_t, size_t>> stack = {{first, 0}};
  isSeen[first] = true;
  while (!stack.empty()) {
    auto &[block, next] = stack.back();
    const Block &at = flow.blocks[block];
    const std::vector<uint32_t> &neighbours = isReversed ? at.predecessors : at.successors;
    if (next == neighbours.size()) {
      order.push_back(block);
      stack.pop_back();
      continue;
    }
    uint32_t to = neighbours[next++];
    if (!isSeen[to]) {
      isSeen[to] = true;
      stack.emplace_back(to, 0);
    }
  }
  std::reverse(order.begin(), order.end());
  return order;
}

/// Fills the predecessors and the order.
void Builder::connect() {
  flow.order = makeOrder(0, /*isReversed=*/false);
  for (Block &block : flow.blocks)
    block.predecessors.clear();
  for (uint32_t block : flow.order)
    for (uint32_t to : flow.blocks[block].successors)
      flow.blocks[to].predecessors.push_back(block);
}

/// Returns the immediate dominators; of the first block in `order` itself; `none` of others that
/// cannot be reached. After Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm".
std::vector<uint32_t> Builder::findDominators(const std::vector<uint32_t> &order,
                                              bool isReverse) const {
  std::vector<uint32_t> place(flow.blocks.size(), none), dominators(flow.blocks.size(), none);
  for (uint32_t i = 0; i < order.size(); ++i)
    place[order[i]] = i;
  dominators[order[0]] = order[0];
  for (bool changes = true; changes;) {
    changes = false;
    for (size_t i = 1; i < order.size(); ++i) {
      const Block &block = flow.blocks[order[i]];
      uint32_t best = none;
      for (uint32_t from : isReverse ? block.successors : block.predecessors) {
        if (place[from] == none || dominators[from] == none)
          continue;
        for (uint32_t other = from; best != none && best != other;)
          if (place[best] > place[other])
            best = dominators[best];
          else
            other = dominators[other];
        best = best == none ? from : best;
      }
      changes |= best != dominators[order[i]];
      dominators[order[i]] = best;
    }
  }
  return dominators;
}

/// Finds the loops by edges that lead back to a dominator.
void Builder::findLoops() {
  std::vector<uint32_t> dominators = findDominators(flow.order, false);
  // A block's dominators are all blocks on its path up the tree, so numbers of a walk tell.
  std::vector<std::vector<uint32_t>> children(flow.blocks.size());
  for (uint32_t block : flow.order)
    if (block != 0)
      children[dominators[block]].push_back(block);
  std::vector<uint32_t> first(flow.blocks.size()), last(flow.blocks.size());
  uint32_t clock = 0;
  std::vector<std::pair<uint32_t, size_t>> stack = {{0, 0}};
  while (!stack.empty()) {
    auto &[block, next] = stack.back();
    if (next == 0)
      first[block] = clock++;
    if (next < children[block].size()) {
      stack.emplace_back(children[block][next++], 0);
    } else {
      last[block] = clock++;
      stack.pop_back();
    }
  }
  std::vector<uint32_t> place(flow.blocks.size());
  for (uint32_t i = 0; i < flow.order.size(); ++i)
    place[flow.order[i]] = i;
  for (uint32_t header : flow.order) {
    LoopShape loop{header, {}, {}};
    for (uint32_t from : flow.blocks[header].predecessors) {
      if (place[from] < place[header])
        continue;
      if (first[from] < first[header] || last[from] > last[header])
        fail(header, "is jumped into from outside of its loop");
      loop.latches.push_back(from);
    }
    if (loop.latches.empty())
      continue;
    if (loops.size() >= maxLoops)
      fail(header, "is the loop beyond " + std::to_string(maxLoops));
    loop.body.resize(flow.blocks.size());
    loop.body[header] = true;
    std::vector<uint32_t> open = loop.latches;
    while (!open.empty()) {
      uint32_t block = open.back();
      open.pop_back();
      if (loop.body[block])
        continue;
      loop.body[block] = true;
      for (uint32_t from : flow.blocks[block].predecessors)
        open.push_back(from);
    }
    loops.push_back(std::move(loop));
  }
}

/// Adds an empty block on the edges from some blocks to `to`. `isIn` says for each loop whether
/// the new block is in it.
uint32_t Builder::insert(uint32_t to, const std::vector<uint32_t> &from,
                         const std::vector<bool> &isIn) {
  uint32_t block = add(flow.blocks[to].line);
  flow.blocks[block].successors = {to};
  for (uint32_t each : from) {
    std::replace(flow.blocks[each].successors.begin(), flow.blocks[each].successors.end(), to,
                 block);
    std::erase(flow.blocks[to].predecessors, each);
  }
  flow.blocks[to].predecessors.push_back(block);
  flow.blocks[block].predecessors = from;
  flow.blocks[block].begin = flow.blocks[block].end = 0;
  for (size_t i = 0; i < loops.size(); ++i)
    loops[i].body.push_back(isIn[i]);
  return block;
}

/// Gives a loop one header, one block that leads back, and one end. A header that tests the
/// loop's condition and touches no memory stays. Otherwise an empty one comes before it, and the
/// block that leads back tests.
void Builder::shape(LoopShape &loop) {
  uint32_t header = loop.header;
  loop.latches.clear(); // an inner loop may have got an end that leads back
  std::vector<uint32_t> outside;
  for (uint32_t from : flow.blocks[header].predecessors)
    (loop.body[from] ? loop.latches : outside).push_back(from);
  auto areInside = [&](uint32_t a, uint32_t b) {
    std::vector<bool> isIn;
    for (const LoopShape &each : loops)
      isIn.push_back(each.body[a] && each.body[b]);
    return isIn;
  };
  auto leaves = [&](uint32_t block) {
    const std::vector<uint32_t> &to = flow.blocks[block].successors;
    return std::any_of(to.begin(), to.end(), [&](uint32_t each) { return !loop.body[each]; });
  };
  const Block &top = flow.blocks[header];
  bool isLatch = std::find(loop.latches.begin(), loop.latches.end(), header) != loop.latches.end();
  bool testsFirst = leaves(header) && !isLatch && top.successors.size() == 2 &&
                    std::none_of(entry.statements.begin() + top.begin,
                                 entry.statements.begin() + top.end, touchesMemory);
  uint32_t latch = loop.latches[0];
  if (loop.latches.size() > 1 ||
      (flow.blocks[latch].successors.size() == 2 && (testsFirst || !leaves(latch))))
    latch = insert(header, std::vector<uint32_t>(loop.latches), areInside(header, header));
  if (!testsFirst) {
    header = insert(header, std::vector<uint32_t>(flow.blocks[header].predecessors),
                    areInside(header, header));
    loop.header = header;
  }
  if (outside.size() > 1) {
    std::vector<bool> isIn;
    for (const LoopShape &each : loops)
      isIn.push_back(&each != &loop && each.body[header]);
    insert(header, outside, isIn);
  }
  flow.blocks[header].continueTarget = latch;
  std::vector<uint32_t> ends, from;
  for (uint32_t block = 0; block < flow.blocks.size(); ++block)
    if (loop.body[block])
      for (uint32_t to : flow.blocks[block].successors)
        if (!loop.body[to]) {
          if (std::find(ends.begin(), ends.end(), to) == ends.end())
            ends.push_back(to);
          if (from.empty() || from.back() != block)
            from.push_back(block);
        }
  if (ends.empty())
    fail(header, "is a loop without an end");
  flow.blocks[header].merge = ends.size() > 1 ? joinEnds(loop, std::move(ends))
                                              : insert(ends[0], from, areInside(ends[0], header));
}

/// Makes one end of several: each block that leaves the loop says by predicates where it goes on.
/// Returns that end, behind which branches lead on.
uint32_t Builder::joinEnds(LoopShape &loop, std::vector<uint32_t> ends) {
  if (ends.size() > maxEnds)
    fail(loop.header, "is a loop that ends in more than " + std::to_string(maxEnds) + " places");
  auto isEnd = [&](uint32_t block) { return !loop.body[block]; };
  // A block that only leaves, to two places, leaves to one of them from a block of its own.
  for (uint32_t block = 0, count = uint32_t(flow.blocks.size()); block < count; ++block)
    if (const Block &here = flow.blocks[block]; loop.body[block] && here.successors.size() == 2 &&
                                                isEnd(here.successors[0]) &&
                                                isEnd(here.successors[1])) {
      std::vector<bool> isIn;
      for (const LoopShape &each : loops)
        isIn.push_back(each.body[block]);
      insert(here.successors[1], {block}, isIn);
    }
  // The blocks that lead on are in a loop around if one of the ends is.
  std::vector<bool> isAround;
  for (const LoopShape &each : loops)
    isAround.push_back(
        &each != &loop && each.body[loop.header] &&
        std::any_of(ends.begin(), ends.end(), [&](uint32_t end) { return each.body[end]; }));
  std::vector<uint32_t> predicates;
  for (size_t i = 0; i + 1 < ends.size(); ++i) {
    predicates.push_back(uint32_t(entry.widths.size()));
    entry.widths.push_back(1);
  }
  const uint32_t first = add(flow.blocks[loop.header].line);
  auto addToLoops = [&] {
    for (size_t i = 0; i < loops.size(); ++i)
      loops[i].body.push_back(isAround[i]);
  };
  addToLoops();
  for (uint32_t block = 0; block < first; ++block) {
    if (!loop.body[block])
      continue;
    for (uint32_t &to : flow.blocks[block].successors) {
      auto end = std::find(ends.begin(), ends.end(), to);
      if (end == ends.end())
        continue;
      for (size_t i = 0; i < predicates.size(); ++i)
        flow.blocks[block].sets.emplace_back(predicates[i], i == size_t(end - ends.begin()));
      std::erase(flow.blocks[to].predecessors, block);
      to = first;
      flow.blocks[first].predecessors.push_back(block);
    }
  }
  for (uint32_t here = first, i = 0; i < predicates.size(); ++i) {
    const bool isLast = i + 1 == predicates.size();
    uint32_t next = isLast ? ends[i + 1] : add(flow.blocks[first].line);
    if (!isLast)
      addToLoops();
    flow.blocks[here].condition = predicates[i];
    flow.blocks[here].successors = {ends[i], next};
    flow.blocks[ends[i]].predecessors.push_back(here);
    flow.blocks[next].predecessors.push_back(here);
    here = next;
  }
  return first;
}

/// Finds where the arms of selections meet.
void Builder::findMerges() {
  // Postdominators: the order of the reversed blocks, from the exit.
  std::vector<uint32_t> order = makeOrder(exit, /*isReversed=*/true);
  std::vector<uint32_t> after = findDominators(order, true);
  std::vector<uint32_t> innermost(flow.blocks.size(), none);
  for (uint32_t i = 0; i < loops.size(); ++i) // outer loops come first
    for (uint32_t block = 0; block < flow.blocks.size(); ++block)
      if (loops[i].body[block])
        innermost[block] = i;
  for (uint32_t block : flow.order) {
    Block &here = flow.blocks[block];
    if (here.successors.size() != 2 || here.merge != none)
      continue;
    if (uint32_t loop = innermost[block]; loop != none) {
      // Branches out of the loop or back to its header have no merge.
      uint32_t end = flow.blocks[loops[loop].header].merge;
      if (here.successors[0] == end || here.successors[1] == end)
        continue;
    }
    here.merge = after[block];
    if (here.merge == none)
      fail(block, "branches to code that does not end");
  }
}

/// Makes a copy of a block for one that leads there; none if it must stay one: a loop, or what all
/// invocations meet at.
uint32_t Builder::copy(uint32_t from, uint32_t block) {
  const Block &here = flow.blocks[block];
  bool isLoops =
      here.continueTarget != none ||
      std::any_of(flow.blocks.begin(), flow.blocks.end(), [&](const Block &each) {
        return each.continueTarget != none && (each.continueTarget == block || each.merge == block);
      });
  bool isBarrier =
      std::any_of(entry.statements.begin() + here.begin, entry.statements.begin() + here.end,
                  [](const Statement &each) {
                    return each.name.front() == "bar" || each.name.front() == "barrier";
                  });
  if (from == none || block == exit || isLoops || isBarrier || ++copies > maxCopies)
    return none;
  uint32_t made = add(here.line);
  flow.blocks[made] = Block(flow.blocks[block]);
  isVisited.push_back(false);
  for (LoopShape &loop : loops)
    loop.body.push_back(loop.body[block]);
  std::replace(flow.blocks[from].successors.begin(), flow.blocks[from].successors.end(), block,
               made);
  return made;
}

/// Gives arms of selections that share code a copy each, so that they only meet at the merge. Walks
/// from `block` on, where `from` leads, until `merge`; returns whether control comes there.
bool Builder::untangle(uint32_t from, uint32_t block, uint32_t merge, const Inside &loop,
                       bool isSelected) {
  if (depth >= maxNesting)
    return true; // proofs do not follow that either
  ++depth;
  bool comes = false;
  while (true) {
    if (block == merge) {
      comes = true;
      break;
    }
    if (block == loop.header || block == loop.end || (block == loop.latch && isSelected))
      break;
    if (isVisited[block] && (block = copy(from, block)) == none)
      break;
    isVisited[block] = true;
    const Block here = flow.blocks[block]; // copies move the others
    if (here.successors.empty())
      break;
    from = block;
    if (here.continueTarget != none) {
      Inside inside{block, here.merge, here.continueTarget};
      for (uint32_t to : here.successors)
        if (to != here.merge)
          untangle(block, to, none, inside, false);
      if (!isVisited[here.continueTarget])
        untangle(none, here.continueTarget, none, inside, false);
      from = none;
      block = here.merge;
    } else if (here.successors.size() == 1) {
      block = here.successors[0];
    } else if (here.merge == none) {
      auto leaves = [&](uint32_t to) {
        return to == loop.end || to == loop.header || (to == loop.latch && isSelected);
      };
      if (leaves(here.successors[0]) && leaves(here.successors[1]))
        break;
      block = here.successors[leaves(here.successors[0]) ? 1 : 0];
    } else {
      bool first = untangle(from, here.successors[0], here.merge, loop, true),
           second = untangle(from, here.successors[1], here.merge, loop, true);
      if (!first && !second)
        break;
      from = none;
      block = here.merge;
    }
  }
  --depth;
  return comes;
}

Flow Builder::run() {
  makeBlocks();
  connect();
  findLoops();
  // Inner loops first: what is added for them then is known to the outer ones.
  for (size_t i = loops.size(); i-- > 0;)
    shape(loops[i]);
  connect();
  if (std::find(flow.order.begin(), flow.order.end(), exit) == flow.order.end())
    ptx::fail(where, entry.line, "has no end");
  findMerges();
  isVisited.resize(flow.blocks.size());
  untangle(none, 0, none, {}, false);
  connect();
  return std::move(flow);
}

Flow ptx::makeFlow(Entry &entry, const std::string &where) { return Builder(entry, where).run(); }
