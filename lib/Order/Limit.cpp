//===- Limit.cpp - Orders and repetitions that fit a limit ----------------===//

#include "weir/Order/Limit.h"

#include "weir/Order/Donation.h"
#include "weir/Order/MemoryBound.h"
#include "weir/Order/Reorder.h"

#include <algorithm>

using namespace weir;

/// Gives the commands their queues, and places for their values.
static ArenaPlan place(OrderProblem &problem, const ArenaSettings &settings) {
  if (settings.queues > 1) {
    std::vector<int64_t> queues = assignQueues(problem.accesses, settings.queues);
    for (size_t number = 0; number < queues.size(); ++number)
      problem.commands[number].queue = queues[number];
  }
  return planArena(problem, getPermissions(problem, judgeDonations(problem)), settings.effort);
}

int64_t weir::getArenaBytes(OrderProblem problem, const ArenaSettings &settings) {
  return place(problem, settings).plan.arenaBytes;
}

static double getWork(const RecomputeProblem &problem) {
  double sum = 0;
  for (const Computation &command : problem.commands)
    sum += command.work;
  return sum;
}

/// Returns the largest values that are live at the peak; of equal ones the first.
static std::vector<LargeValue> getLargest(const RecomputeProblem &problem,
                                          const LiveProfile &profile) {
  constexpr size_t maxValues = 3;
  if (profile.peak == 0)
    return {};
  int64_t peak =
      std::find(profile.live.begin(), profile.live.end(), profile.peak) - profile.live.begin();
  std::vector<LargeValue> values;
  for (int64_t number : profile.orderByFirstUse())
    if (const BufferLife &life = profile.lives[number];
        life.inArena && life.first <= peak && peak <= life.last)
      values.push_back({problem.allocations[number].value, problem.allocations[number].bytes});
  std::vector<LargeValue> largest;
  while (!values.empty() && largest.size() < maxValues) {
    auto next = std::max_element(
        values.begin(), values.end(),
        [](const LargeValue &a, const LargeValue &b) { return a.bytes < b.bytes; });
    largest.push_back(*next);
    values.erase(next);
  }
  return largest;
}

ArenaFitter::ArenaFitter(OrderProblem given, bool mayMove, const ArenaSettings &settings)
    : settings(settings), mayMove(mayMove), problem(std::move(given)) {
  order = scheduleCommands(problem, mayMove, /*forMemory=*/true);
  ordered = getArenaBytes(problem, settings);
  summary = start = summarize(problem);
  dropUnread(start);
  current = start;
  profile = getLiveProfile(current);
  points.push_back({.peak = profile.peak, .work = getWork(current), .isPlaced = true});
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

/// Goes to the state behind `count` known steps.
void ArenaFitter::seek(size_t count) {
  if (count == taken)
    return;
  if (count < taken) {
    current = start;
    taken = 0;
  }
  while (taken < count)
    recompute(current, steps[taken++]);
  profile = getLiveProfile(current);
}

/// Goes to the state behind one step more than are known. Returns false if there is none.
bool ArenaFitter::extend() {
  // Placing takes the time of many steps, so an arena is not asked for after less than 0.8%.
  constexpr int64_t grain = 128;
  if (isComplete)
    return false;
  seek(steps.size());
  std::optional<Recomputation> step;
  if (size_t maxSteps = 2 * problem.commands.size() + 16; steps.size() < maxSteps)
    step = chooseRecomputation(current, profile);
  if (!step) {
    isComplete = points.back().isPlaced = true;
    return false;
  }
  auto lastPlaced = std::find_if(points.rbegin(), points.rend(),
                                 [](const Point &point) { return point.isPlaced; });
  Point point = {.repeated = points.back().repeated + int64_t(step->repetitions.size()),
                 .dropped = points.back().dropped + recompute(current, *step)};
  profile = getLiveProfile(current);
  point.peak = profile.peak;
  point.work = getWork(current);
  point.isPlaced = point.peak <= lastPlaced->peak - lastPlaced->peak / grain;
  steps.push_back(std::move(*step));
  points.push_back(point);
  ++taken;
  return true;
}

/// Whether the arena behind `count` steps is ever asked for. Always behind the last one.
bool ArenaFitter::isPlaced(size_t count) {
  if (!points[count].isPlaced && count == steps.size())
    extend();
  return points[count].isPlaced;
}

/// Returns the work behind `count` steps, relative to that without one.
double ArenaFitter::getRelativeWork(size_t count) const {
  double before = points.front().work;
  return before > 0 ? points[count].work / before : 1;
}

/// Returns the commands behind `count` steps, each in a wave of its own.
OrderProblem ArenaFitter::makeProblem(size_t count) {
  seek(count);
  OrderProblem made = carryOut(problem, summary, current);
  int64_t wave = 0;
  for (OrderCommand &command : made.commands)
    command.wave = wave++;
  return made;
}

/// Returns the bytes of the arena behind `count` steps, and at the least those that are live.
int64_t ArenaFitter::getBytes(size_t count) {
  Point &point = points[count];
  if (!point.bytes)
    point.bytes = std::max(getArenaBytes(makeProblem(count), settings), point.peak);
  return *point.bytes;
}

//===----------------------------------------------------------------------===//
// Answers
//===----------------------------------------------------------------------===//

FittedOrder ArenaFitter::describe() {
  FittedOrder fitted;
  fitted.order = order;
  fitted.ordered = fitted.bytes = ordered;
  seek(0);
  fitted.largest = getLargest(current, profile);
  return fitted;
}

/// Returns what `count` steps lead to, without the commands.
FittedOrder ArenaFitter::describe(size_t count) {
  FittedOrder fitted = describe();
  const Point &point = points[count];
  fitted.apart = getBytes(0);
  fitted.bytes = getBytes(count);
  fitted.repeated = point.repeated;
  fitted.dropped = point.dropped;
  fitted.work = getRelativeWork(count);
  seek(count);
  fitted.largest = getLargest(current, profile);
  return fitted;
}

std::optional<FittedOrder> ArenaFitter::fit(int64_t limit) {
  if (ordered <= limit) {
    FittedOrder fitted = describe();
    fitted.problem = problem;
    return fitted;
  }
  if (!mayMove)
    return std::nullopt;
  for (size_t count = 0; count < points.size() || extend(); ++count) {
    // No plan has less than is live.
    if (points[count].peak > limit || !isPlaced(count) || getBytes(count) > limit)
      continue;
    FittedOrder fitted = describe(count);
    fitted.problem = makeProblem(count);
    return fitted;
  }
  return std::nullopt;
}

/// Returns the number of steps to the smallest arena; nothing if the order alone has it.
std::optional<size_t> ArenaFitter::findLeast() {
  if (!mayMove)
    return std::nullopt;
  while (extend())
    ;
  std::optional<size_t> best;
  int64_t least = ordered;
  for (size_t count = points.size(); count-- > 0 && points[count].peak <= least;)
    if (isPlaced(count) && getBytes(count) <= least) {
      best = count;
      least = getBytes(count);
    }
  return least < ordered ? best : std::nullopt;
}

FittedOrder ArenaFitter::findSmallest() {
  std::optional<size_t> count = findLeast();
  return count ? describe(*count) : describe();
}

//===----------------------------------------------------------------------===//
// The curve
//===----------------------------------------------------------------------===//

/// Returns the number of steps to the knee; nothing if that is the order alone.
std::optional<size_t> ArenaFitter::findKnee() {
  std::optional<size_t> least = findLeast(), best;
  double most = 0;
  for (size_t count = 0; least && count <= *least; ++count) {
    double saved = double(ordered - points[count].peak) / double(std::max<int64_t>(ordered, 1));
    double gain = saved + 1 - getRelativeWork(count);
    if (isPlaced(count) && gain > most) {
      best = count;
      most = gain;
    }
  }
  return best && getBytes(*best) < ordered ? best : std::nullopt;
}

FittedOrder ArenaFitter::fitKnee() {
  std::optional<size_t> count = findKnee();
  FittedOrder fitted = count ? describe(*count) : describe();
  fitted.problem = count ? makeProblem(*count) : problem;
  return fitted;
}

/// Returns numbers of steps for a curve: the knee, the last and others at equal distances of live
/// bytes.
std::vector<size_t> ArenaFitter::choosePoints() {
  constexpr int64_t parts = 16; // placing and reordering take the time of many steps
  std::vector<size_t> chosen;
  std::optional<size_t> least = findLeast(), knee = findKnee();
  int64_t first = points.front().peak, part = 0;
  for (size_t count = 0; least && count <= *least; ++count) {
    // The first one, at no steps, may already be smaller: a wave for each command.
    int64_t saved = first - points[count].peak, most = first - points[*least].peak;
    bool isNext = double(saved) * double(parts) >= double(most) * double(part);
    if (count != least && count != knee && !(isNext && isPlaced(count)))
      continue;
    while (isNext && double(saved) * double(parts) >= double(most) * double(part) && part <= parts)
      ++part;
    chosen.push_back(count);
  }
  return chosen;
}

std::vector<CurvePoint> ArenaFitter::getCurve(bool mayReorder) {
  auto makePoint = [&](OrderProblem problem) {
    ArenaPlan plan = place(problem, settings);
    PlacedCommands commands = placeCommands(problem, plan);
    std::optional<PlacedOrder> found;
    if (mayReorder)
      found = findCheaperOrder(commands, ArenaGrowth(), settings.effort);
    return std::pair(CurvePoint{.bytes = plan.plan.arenaBytes,
                                .live = plan.plan.boundBytes,
                                .commands = int64_t(problem.commands.size()),
                                .barriers = found ? found->cost : countBarriers(commands)},
                     std::move(plan.chains));
  };
  auto [whole, chains] = makePoint(problem);
  std::vector<bool> takesArgument(problem.allocations.size());
  for (const Chain &chain : chains)
    if (chain.argument >= 0)
      takesArgument[chain.result] = true;
  MemoryBound bound(start, takesArgument);
  whole.bound = bound.get(0);
  std::vector<CurvePoint> curve = {whole};
  std::optional<size_t> knee = findKnee();
  for (size_t count : choosePoints()) {
    CurvePoint point = makePoint(makeProblem(count)).first;
    point.bound = bound.get(points[count].work - points.front().work);
    point.work = getRelativeWork(count);
    point.isKnee = count == knee;
    // Neither bytes nor work always change by every step; a cheap recipe may save both.
    while (curve.size() > 1 && !curve.back().isKnee &&
           (point.isKnee ? curve.back().bytes <= point.bytes
                         : curve.back().work >= point.work && curve.back().bytes > point.bytes))
      curve.pop_back();
    if (point.bytes < curve.back().bytes)
      curve.push_back(point);
  }
  curve.front().isKnee = !knee;
  return curve;
}
