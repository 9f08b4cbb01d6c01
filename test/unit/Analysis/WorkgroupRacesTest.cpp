//===- WorkgroupRacesTest.cpp - Barriers against an oracle ----------------===//
//
// Random kernels of loops, branches and affine accesses. The oracle executes each invocation by
// itself and compares their accesses between barriers, without maps, graphs or integer systems.
//
//===----------------------------------------------------------------------===//

#include "weir/Analysis/WorkgroupRaces.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FormatVariadic.h"

#include "gtest/gtest.h"

#include <map>
#include <random>
#include <set>

using namespace mlir;
using namespace weir;

static constexpr int64_t threads = 8, elements = 24, arrays = 2;

namespace {
class Generator {
public:
  Generator(unsigned seed) : random(seed) {}

  std::string run() {
    text.clear();
    next = 0;
    emitBlock({}, 0, 2);
    return llvm::formatv(R"(
module attributes {{gpu.container_module} {{
gpu.module @m {{
gpu.func @k(%x: f32) workgroup(%s0: memref<{0}xf32, #gpu.address_space<workgroup>>,
                              %s1: memref<{0}xf32, #gpu.address_space<workgroup>>)
    kernel attributes {{known_block_size = array<i32: {1}, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {{
  %t = gpu.thread_id x
  %i = arith.index_cast %t : index to i32
  %v = arith.sitofp %i : i32 to f32
{2}  gpu.return
}
}
})",
                         elements, threads, text);
  }

private:
  std::mt19937 random;
  std::string text;
  int next = 0;

  int64_t pick(int64_t from, int64_t to) {
    return std::uniform_int_distribution<int64_t>(from, to)(random);
  }
  template <typename... Args> std::string define(const char *format, Args &&...args) {
    std::string name = "%n" + std::to_string(next++);
    text += name + " = " + llvm::formatv(format, std::forward<Args>(args)...).str() + "\n";
    return name;
  }
  std::string constant(int64_t value) { return define("arith.constant {0} : index", value); }
  std::string combine(const char *op, const std::string &a, const std::string &b) {
    return define("arith.{0} {1}, {2} : index", op, a, b);
  }

  /// Returns an index a * t + b * trip + c within the array.
  std::string emitIndex(const std::vector<std::string> &trips) {
    static const int64_t factors[] = {1, 1, 1, 2, 3, 0};
    std::string sum = constant(pick(0, elements - 1));
    sum = combine("addi", sum, combine("muli", "%t", constant(factors[pick(0, 5)])));
    for (const std::string &trip : trips)
      sum = combine("addi", sum, combine("muli", trip, constant(pick(0, 1) * threads)));
    return combine("remui", sum, constant(elements));
  }

  void emitAccess(const std::vector<std::string> &trips) {
    std::string index = emitIndex(trips);
    const char *type = "memref<24xf32, #gpu.address_space<workgroup>>";
    int64_t array = pick(0, arrays - 1);
    if (pick(0, 1))
      text += llvm::formatv("memref.store %v, %s{0}[{1}] : {2}\n", array, index, type).str();
    else
      define("memref.load %s{0}[{1}] : {2}", array, index, type);
  }

  void emitBlock(std::vector<std::string> trips, int64_t depth, int64_t least) {
    for (int64_t count = pick(least, 3); count > 0; --count) {
      int64_t what = pick(0, 9);
      if (what < 2 && depth < 2) {
        std::string name = "%k" + std::to_string(next++);
        std::string lower = constant(0), upper = constant(pick(1, 4)), step = constant(1);
        text += "scf.for " + name + " = " + lower + " to " + upper + " step " + step + " {\n";
        std::vector<std::string> inner = trips;
        inner.push_back(name);
        emitBlock(inner, depth + 1, 1);
        text += "}\n";
      } else if (what == 2 && depth < 2) {
        bool uniform = !trips.empty() && pick(0, 1);
        std::string bound = constant(pick(1, uniform ? 3 : threads));
        std::string flag = define("arith.cmpi ult, {0}, {1} : index",
                                  uniform ? trips.back() : std::string("%t"), bound);
        text += "scf.if " + flag + " {\n";
        emitBlock(trips, 2, 1);
        text += pick(0, 1) ? "} else {\n" : "}\n";
        if (text.ends_with("else {\n")) {
          emitBlock(trips, 2, 1);
          text += "}\n";
        }
      } else if (what == 3 && depth < 1) {
        text += "gpu.barrier\n";
      } else {
        emitAccess(trips);
      }
    }
  }
};

/// The accesses of one invocation, by barrier interval.
struct Touch {
  Operation *op;
  int64_t array, element;
};
using History = std::vector<std::vector<Touch>>;

class Invocation {
public:
  Invocation(int64_t thread) : thread(thread), history(1) {}

  void run(Region &region) {
    for (Operation &op : region.front())
      run(&op);
  }
  History take() { return std::move(history); }

private:
  int64_t thread;
  History history;
  std::map<const void *, int64_t> values;

  int64_t &at(Value value) { return values[value.getAsOpaquePointer()]; }

  void run(Operation *op) {
    if (isa<gpu::BarrierOp>(op)) {
      history.emplace_back();
    } else if (auto loop = dyn_cast<scf::ForOp>(op)) {
      for (int64_t i = at(loop.getLowerBound()); i < at(loop.getUpperBound());
           i += at(loop.getStep())) {
        at(loop.getInductionVar()) = i;
        run(loop.getRegion());
      }
    } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
      Region &way = at(branch.getCondition()) ? branch.getThenRegion() : branch.getElseRegion();
      if (!way.empty())
        run(way);
    } else if (auto load = dyn_cast<memref::LoadOp>(op)) {
      touch(op, load.getMemRef(), load.getIndices()[0]);
    } else if (auto store = dyn_cast<memref::StoreOp>(op)) {
      touch(op, store.getMemRef(), store.getIndices()[0]);
    } else if (isa<gpu::ThreadIdOp>(op)) {
      at(op->getResult(0)) = thread;
    } else if (op->getNumResults() == 1 && op->getNumOperands() == 0) {
      APInt value;
      EXPECT_TRUE(matchPattern(op->getResult(0), m_ConstantInt(&value)));
      at(op->getResult(0)) = value.getSExtValue();
    } else if (op->getNumOperands() == 2) {
      int64_t a = at(op->getOperand(0)), b = at(op->getOperand(1));
      at(op->getResult(0)) = isa<arith::AddIOp>(op)    ? a + b
                             : isa<arith::MulIOp>(op)  ? a * b
                             : isa<arith::RemUIOp>(op) ? a % b
                                                       : int64_t(a < b);
    }
  }
  void touch(Operation *op, Value memory, Value index) {
    history.back().push_back({op, cast<BlockArgument>(memory).getArgNumber(), at(index)});
  }
};

using Conflicts = std::set<std::pair<Operation *, Operation *>>;
} // namespace

/// Returns the pairs of accesses with which two invocations conflict in some barrier interval.
static Conflicts findConflicts(gpu::GPUFuncOp kernel) {
  std::vector<History> histories;
  for (int64_t thread = 0; thread < threads; ++thread) {
    Invocation invocation(thread);
    invocation.run(kernel.getBody());
    histories.push_back(invocation.take());
    EXPECT_EQ(histories.back().size(), histories.front().size()) << "divergent barrier";
  }
  Conflicts conflicts;
  for (size_t interval = 0; interval < histories.front().size(); ++interval)
    for (int64_t s = 0; s < threads; ++s)
      for (int64_t t = 0; t < threads; ++t)
        for (const Touch &a : histories[s][interval])
          for (const Touch &b : histories[t][interval])
            if (s != t && a.array == b.array && a.element == b.element &&
                (isa<memref::StoreOp>(a.op) || isa<memref::StoreOp>(b.op)))
              conflicts.insert({a.op, b.op});
  return conflicts;
}

static std::unique_ptr<WorkgroupRaces> analyse(gpu::GPUFuncOp kernel) {
  return std::make_unique<WorkgroupRaces>(kernel, LaunchSizes::get(kernel), nullptr,
                                          [&](FunctionOpInterface f) { return f == kernel; });
}

static gpu::GPUFuncOp getKernel(ModuleOp module) {
  gpu::GPUFuncOp found;
  module.walk([&](gpu::GPUFuncOp kernel) { found = kernel; });
  return found;
}

TEST(WorkgroupRaces, RandomKernelsAgainstExecution) {
  MLIRContext context;
  context.loadDialect<arith::ArithDialect, func::FuncDialect, gpu::GPUDialect,
                      memref::MemRefDialect, scf::SCFDialect>();
  int64_t inserted = 0, needed = 0, repaired = 0, hopeless = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::string text = Generator(seed).run();
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
    ASSERT_TRUE(module) << text;
    gpu::GPUFuncOp kernel = getKernel(*module);
    std::unique_ptr<WorkgroupRaces> races = analyse(kernel);
    WorkgroupRaces::Plan plan = races->plan();
    EXPECT_TRUE(plan.cheapest) << text;

    std::vector<gpu::BarrierOp> barriers;
    for (const WorkgroupRaces::PlannedBarrier &barrier : plan.barriers) {
      OpBuilder builder(barrier.before);
      barriers.push_back(gpu::BarrierOp::create(builder, barrier.before->getLoc()));
    }
    // Only conflicts that no barrier could separate are left, and all proved ones are.
    Conflicts conflicts = findConflicts(kernel), told, proved;
    for (const AccessHazard &hazard : plan.unordered) {
      Operation *first = races->getMaps().getAccesses()[hazard.first].op;
      Operation *second = races->getMaps().getAccesses()[hazard.second].op;
      told.insert({first, second});
      told.insert({second, first});
      if (hazard.proved)
        EXPECT_TRUE(conflicts.count({first, second})) << text;
    }
    for (auto [first, second] : conflicts)
      EXPECT_TRUE(told.count({first, second}) || told.count({first, first}) ||
                  told.count({second, second}))
          << text;
    if (!plan.unordered.empty()) {
      ++hopeless;
      continue;
    }
    EXPECT_TRUE(conflicts.empty()) << text;
    repaired += !barriers.empty();

    std::unique_ptr<WorkgroupRaces> again = analyse(kernel);
    EXPECT_TRUE(again->plan().barriers.empty()) << text;
    std::vector<gpu::BarrierOp> redundant = again->findRedundant();
    for (gpu::BarrierOp barrier : barriers) {
      EXPECT_FALSE(llvm::is_contained(redundant, barrier)) << text;
      ++inserted;
      OpBuilder builder(barrier);
      Operation *marker = arith::ConstantIndexOp::create(builder, barrier.getLoc(), 0);
      barrier->remove();
      needed += !findConflicts(kernel).empty();
      marker->getBlock()->getOperations().insert(Block::iterator(marker), barrier);
      marker->erase();
    }
    // Those found in the input that are said to be needless are.
    for (gpu::BarrierOp barrier : redundant)
      barrier.erase();
    EXPECT_TRUE(findConflicts(kernel).empty()) << text;
  }
  RecordProperty("inserted", int(inserted));
  RecordProperty("needed", int(needed));
  std::cout << repaired << " kernels repaired by " << inserted << " barriers, " << needed
            << " of them needed on some execution; " << hopeless << " beyond repair\n";
  EXPECT_GE(repaired, 80);
  EXPECT_GE(hopeless, 20);
  EXPECT_GE(needed * 100, inserted * 95);
}
