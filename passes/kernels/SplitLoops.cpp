//===- SplitLoops.cpp - Functions with loops become segments --------------===//
//
// First every loop is brought to one form: carried values are tensors, the counter is one of
// them, and so is the condition, which is computed before the first trip and at the end of
// each. Then each block of ops is cut at its loops.
//
//===----------------------------------------------------------------------===//

#include "passes/kernels/LoopForms.h"

#include "dialects/Schedule/Schedule.h"
#include "dialects/Schedule/Segments.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace weir {
#define GEN_PASS_DEF_SPLITLOOPSPASS
#include "passes/Passes.h.inc"
} // namespace weir

using namespace mlir;
using namespace weir;

namespace {
struct SplitLoops : weir::impl::SplitLoopsPassBase<SplitLoops> {
  using SplitLoopsPassBase::SplitLoopsPassBase;

  void runOnOperation() override;
};

/// A value that a loop carries, by numbers of values between segments.
struct Carry {
  int64_t init = 0, inside = 0, next = 0, after = 0;
  std::string copy; ///< the segment that copies it
};

/// A segment with the values that it takes and gives, or a loop.
struct Step {
  mutable func::FuncOp segment; // its accessors are not const
  SmallVector<int64_t> arguments, results;
  int64_t trips = 0; ///< 0: no loop
  int64_t flag = -1;
  SmallVector<Carry> carried;
  std::vector<Step> steps;
};

/// Cuts one function.
class Splitter {
public:
  Splitter(func::FuncOp function, SymbolTable &symbols) : function(function), symbols(symbols) {
    unsigned number = 0;
    function.walk<WalkOrder::PreOrder>([&](Operation *op) { places[op] = number++; });
  }

  /// Adds the segments to the module and returns the program.
  DictionaryAttr split();

private:
  /// The pieces of a block of ops.
  struct Cut {
    SmallVector<Operation *> loops;
    DenseMap<Operation *, size_t> segmentOf;        ///< of ops of the block
    SmallVector<llvm::SetVector<Value>, 2> exports; ///< by segment: tensors that later ones read
    llvm::DenseSet<std::pair<Value, size_t>> seen;
  };

  int64_t addNumber(Value value) { return numbers[value] = count++; }
  std::vector<Step> splitBlock(Block &block, ValueRange roots, SmallVectorImpl<int64_t> &made);
  Step splitLoop(Operation *loop, ArrayRef<int64_t> inits);
  void need(Cut &cut, Block &block, Value value, size_t segment, bool isInLoop);
  Step makeSegment(ArrayRef<Value> values, Location loc);
  std::string makeCopy(RankedTensorType type, Location loc);
  void donate(std::vector<Step> &steps, const llvm::DenseSet<int64_t> &owned);
  Attribute describe(const std::vector<Step> &steps);

  func::FuncOp function;
  SymbolTable &symbols;
  DenseMap<Operation *, unsigned> places; ///< in the function's text
  DenseMap<Value, int64_t> numbers;       ///< of values between segments
  int64_t count = 0;
  llvm::MapVector<Type, std::string> copies;
  Operation *last = nullptr; ///< the segment that was made last
};
} // namespace

/// Whether an op is computed again wherever it is read: what is no tensor cannot be handed on, and
/// a constant need not be.
static bool isRepeated(Operation *op) {
  return isa<arith::ConstantOp, tensor::EmptyOp>(op) ||
         llvm::none_of(op->getResultTypes(), llvm::IsaPred<RankedTensorType>);
}

/// Returns all values that an op reads, in its regions, too.
static llvm::SetVector<Value> getReads(Operation *op) {
  llvm::SetVector<Value> reads(op->operand_begin(), op->operand_end());
  getUsedValuesDefinedAbove(op->getRegions(), reads);
  return reads;
}

/// Notes which tensors earlier segments must hand on so that a segment, or the loop behind it, has
/// `value`.
void Splitter::need(Cut &cut, Block &block, Value value, size_t segment, bool isInLoop) {
  SmallVector<std::tuple<Value, size_t, bool>> open = {{value, segment, isInLoop}};
  while (!open.empty()) {
    auto [read, place, inLoop] = open.pop_back_val();
    if (numbers.contains(read) || !cut.seen.insert({read, 2 * place + inLoop}).second)
      continue;
    Operation *maker = read.getDefiningOp();
    bool isHere = maker->getBlock() == &block;
    size_t home = isHere ? cut.segmentOf.lookup(maker) : place;
    if (!isRepeated(maker) && (home != place || inLoop)) {
      cut.exports[home].insert(read);
      open.push_back({read, home, false});
      continue;
    }
    for (Value operand : getReads(maker))
      open.push_back({operand, place, inLoop});
  }
}

/// Makes a function that computes `values` from values between segments.
Step Splitter::makeSegment(ArrayRef<Value> values, Location loc) {
  llvm::SetVector<Operation *> ops;
  llvm::SetVector<Value> taken;
  SmallVector<Value> open(values);
  while (!open.empty()) {
    Value value = open.pop_back_val();
    if (numbers.contains(value))
      taken.insert(value);
    else if (ops.insert(value.getDefiningOp()))
      llvm::append_range(open, getReads(value.getDefiningOp()));
  }
  SmallVector<Operation *> ordered(ops.begin(), ops.end());
  llvm::sort(ordered, [&](Operation *a, Operation *b) { return places[a] < places[b]; });
  SmallVector<Value> arguments(taken.begin(), taken.end());
  llvm::sort(arguments, [&](Value a, Value b) { return numbers[a] < numbers[b]; });

  Step step;
  OpBuilder builder(function.getContext());
  auto type =
      builder.getFunctionType(TypeRange(ValueRange(arguments)), TypeRange(ValueRange(values)));
  step.segment = func::FuncOp::create(loc, (function.getName() + "_part").str(), type);
  symbols.insert(step.segment, std::next(Block::iterator(last)));
  last = step.segment;
  step.segment->setAttr(schedule::segmentAttrName, builder.getUnitAttr());
  Block *body = step.segment.addEntryBlock();
  builder.setInsertionPointToStart(body);
  IRMapping mapping;
  for (auto [value, argument] : llvm::zip_equal(arguments, body->getArguments())) {
    mapping.map(value, argument);
    step.arguments.push_back(numbers[value]);
  }
  for (Operation *op : ordered)
    builder.clone(*op, mapping);
  func::ReturnOp::create(builder, loc, llvm::map_to_vector(values, [&](Value value) {
                           return mapping.lookup(value);
                         }));
  return step;
}

/// Returns the name of a segment that copies a tensor.
std::string Splitter::makeCopy(RankedTensorType type, Location loc) {
  std::string &name = copies[type];
  if (!name.empty())
    return name;
  OpBuilder builder(function.getContext());
  auto copy = func::FuncOp::create(loc, (function.getName() + "_copy").str(),
                                   builder.getFunctionType({type}, {type}));
  symbols.insert(copy, std::next(Block::iterator(last)));
  last = copy;
  copy->setAttr(schedule::segmentAttrName, builder.getUnitAttr());
  Block *body = copy.addEntryBlock();
  builder.setInsertionPointToStart(body);
  func::ReturnOp::create(builder, loc, body->getArguments());
  return name = copy.getName().str();
}

/// Splits a block at its loops. `made` gets the numbers of new values that are equal to `roots`.
std::vector<Step> Splitter::splitBlock(Block &block, ValueRange roots,
                                       SmallVectorImpl<int64_t> &made) {
  Cut cut;
  for (Operation &op : block) {
    cut.segmentOf[&op] = cut.loops.size();
    if (isLoop(&op))
      cut.loops.push_back(&op);
  }
  cut.exports.resize(cut.loops.size() + 1);
  for (Operation *loop : cut.loops)
    for (Value result : loop->getResults())
      addNumber(result);
  for (auto [place, loop] : llvm::enumerate(cut.loops)) {
    for (Value init : loop->getOperands().take_back(getNumCarried(loop)))
      need(cut, block, init, place, /*isInLoop=*/false);
    llvm::SetVector<Value> reads;
    getUsedValuesDefinedAbove(loop->getRegions(), reads);
    for (Value read : reads)
      need(cut, block, read, place, /*isInLoop=*/true);
  }
  for (Value root : roots)
    need(cut, block, root, cut.loops.size(), /*isInLoop=*/false);

  std::vector<Step> steps;
  for (size_t place = 0; place <= cut.loops.size(); ++place) {
    Operation *loop = place < cut.loops.size() ? cut.loops[place] : nullptr;
    SmallVector<Value> values =
        loop ? SmallVector<Value>(loop->getOperands().take_back(getNumCarried(loop)))
             : SmallVector<Value>(roots);
    const size_t fresh = values.size();
    llvm::append_range(values, cut.exports[place]);
    if (values.empty())
      continue;
    Step step = makeSegment(values, loop ? loop->getLoc() : block.getParentOp()->getLoc());
    SmallVector<int64_t> results;
    for (auto [index, value] : llvm::enumerate(values))
      results.push_back(index < fresh ? count++ : addNumber(value));
    step.results = results;
    steps.push_back(std::move(step));
    results.truncate(fresh);
    if (!loop)
      made.assign(results.begin(), results.end());
    else if (Step each = splitLoop(loop, results); !each.carried.empty())
      steps.push_back(std::move(each));
  }
  return steps;
}

Step Splitter::splitLoop(Operation *loop, ArrayRef<int64_t> inits) {
  Step step;
  step.trips = getMaxTrips(loop);
  Block &body = getBody(loop);
  const bool isWhile = isa<scf::WhileOp>(loop);
  step.flag = isWhile ? 0 : -1;
  SmallVector<Value> ends; // of a trip
  for (auto [index, init, end] : llvm::enumerate(inits, body.getTerminator()->getOperands())) {
    Carry carried;
    carried.init = init;
    // A condition is read by the host alone, and an `scf.for` has a counter as its first argument.
    if (isWhile && index == 0) {
      carried.inside = count++;
      carried.after = count++;
    } else {
      Value result = loop->getResult(isWhile ? index - 1 : index);
      Value argument = body.getArgument(isWhile ? index - 1 : index + 1);
      if (end == argument) { // the same in all trips
        numbers[argument] = numbers[result] = init;
        continue;
      }
      carried.inside = addNumber(argument);
      carried.after = numbers[result];
    }
    carried.copy = makeCopy(cast<RankedTensorType>(end.getType()), loop->getLoc());
    step.carried.push_back(carried);
    ends.push_back(end);
  }
  if (ends.empty()) // nothing changes
    return step;
  SmallVector<int64_t> nexts;
  step.steps = splitBlock(body, ends, nexts);
  for (auto [carried, next] : llvm::zip_equal(step.carried, nexts))
    carried.next = next;
  return step;
}

/// Calls `look` with the arguments of each segment of a step.
static void walkArguments(const Step &step, llvm::function_ref<void(int64_t)> look) {
  llvm::for_each(step.arguments, look);
  for (const Step &inner : step.steps)
    walkArguments(inner, look);
}

/// Donates each value that is owned here to the segment that is the last to take it.
void Splitter::donate(std::vector<Step> &steps, const llvm::DenseSet<int64_t> &given) {
  llvm::DenseSet<int64_t> owned = given;
  for (const Step &step : steps) {
    owned.insert(step.results.begin(), step.results.end());
    for (const Carry &carried : step.carried)
      owned.insert(carried.after);
  }
  llvm::DenseSet<int64_t> later;
  for (Step &step : llvm::reverse(steps)) {
    for (auto [index, number] : llvm::enumerate(step.arguments))
      if (owned.contains(number) && !later.contains(number))
        step.segment.setArgAttr(index, schedule::donateAttrName,
                                UnitAttr::get(function.getContext()));
    walkArguments(step, [&](int64_t number) { later.insert(number); });
    llvm::DenseSet<int64_t> inner;
    for (const Carry &carried : step.carried)
      inner.insert(carried.inside);
    donate(step.steps, inner);
  }
}

Attribute Splitter::describe(const std::vector<Step> &steps) {
  Builder builder(function.getContext());
  SmallVector<Attribute> list;
  for (const Step &step : steps) {
    SmallVector<NamedAttribute> fields;
    auto set = [&](StringRef name, Attribute value) {
      fields.push_back(builder.getNamedAttr(name, value));
    };
    if (!step.trips) {
      set("segment", builder.getStringAttr(step.segment.getName()));
      set("arguments", builder.getDenseI64ArrayAttr(step.arguments));
      set("results", builder.getDenseI64ArrayAttr(step.results));
    } else {
      set("trips", builder.getI64IntegerAttr(step.trips));
      if (step.flag >= 0)
        set("flag", builder.getI64IntegerAttr(step.flag));
      SmallVector<Attribute> carried, names;
      for (const Carry &each : step.carried) {
        carried.push_back(
            builder.getDenseI64ArrayAttr({each.init, each.inside, each.next, each.after}));
        names.push_back(builder.getStringAttr(each.copy));
      }
      set("carried", builder.getArrayAttr(carried));
      set("copies", builder.getArrayAttr(names));
      set("steps", describe(step.steps));
    }
    list.push_back(builder.getDictionaryAttr(fields));
  }
  return builder.getArrayAttr(list);
}

DictionaryAttr Splitter::split() {
  last = function;
  for (BlockArgument argument : function.getArguments())
    addNumber(argument);
  SmallVector<int64_t> results;
  Block &body = function.getBody().front();
  std::vector<Step> steps = splitBlock(body, body.getTerminator()->getOperands(), results);
  llvm::DenseSet<int64_t> donated;
  for (unsigned index = 0; index < function.getNumArguments(); ++index)
    if (function.getArgAttr(index, schedule::donateAttrName))
      donated.insert(index);
  donate(steps, donated);

  Builder builder(function.getContext());
  auto getAttrs = [&](unsigned number, auto get) {
    SmallVector<Attribute> all;
    for (unsigned index = 0; index < number; ++index)
      all.push_back(builder.getDictionaryAttr(get(index)));
    return builder.getArrayAttr(all);
  };
  NamedAttribute fields[] = {
      builder.getNamedAttr("type", TypeAttr::get(function.getFunctionType())),
      builder.getNamedAttr("arg_attrs", getAttrs(function.getNumArguments(),
                                                 [&](unsigned index) {
                                                   return function_interface_impl::getArgAttrs(
                                                       function, index);
                                                 })),
      builder.getNamedAttr("res_attrs", getAttrs(function.getNumResults(),
                                                 [&](unsigned index) {
                                                   return function_interface_impl::getResultAttrs(
                                                       function, index);
                                                 })),
      builder.getNamedAttr("results", builder.getDenseI64ArrayAttr(results)),
      builder.getNamedAttr("steps", describe(steps)),
      builder.getNamedAttr("values", builder.getI64IntegerAttr(count))};
  return builder.getDictionaryAttr(fields);
}

void SplitLoops::runOnOperation() {
  ModuleOp module = getOperation();
  SymbolTable symbols(module);
  SmallVector<NamedAttribute> programs;
  for (auto function : llvm::make_early_inc_range(module.getOps<func::FuncOp>())) {
    bool hasLoops = llvm::any_of(function.getBody().front(),
                                 [](Operation &op) { return isa<scf::ForOp, scf::WhileOp>(op); });
    if (!hasLoops)
      continue;
    if (failed(bringToForm(function)))
      return signalPassFailure();
    DictionaryAttr program = Splitter(function, symbols).split();
    programs.emplace_back(function.getNameAttr(), program);
    symbols.erase(function);
  }
  if (!programs.empty())
    module->setAttr(schedule::programsAttrName, DictionaryAttr::get(&getContext(), programs));
}
