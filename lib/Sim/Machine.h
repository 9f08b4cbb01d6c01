//===- Machine.h - One plan's dispatches in flight --------------*- C++ -*-===//

#ifndef WEIR_LIB_SIM_MACHINE_H
#define WEIR_LIB_SIM_MACHINE_H

#include "Order.h"
#include "Program.h"
#include "Reports.h"
#include "Shadow.h"
#include "Subgroup.h"

#include "weir/Artifact/Artifact.h"
#include "weir/Sim/Sim.h"

#include <array>
#include <cstdlib>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <vector>

namespace weir::sim {

/// Byte that fills memory without contents: makes NaNs, and integers with all bits set.
inline constexpr unsigned char poison = 0xff;

/// Zeroed memory that is committed when touched. Errors of `allocate`: `Error` when the host
/// lacks memory.
template <typename T> struct Lazy {
  struct Free {
    void operator()(T *items) const { std::free(items); }
  };
  std::unique_ptr<T[], Free> items;
  T &operator[](size_t i) const { return items[i]; }
};

/// Whether two accesses of one dispatch race. Needs: one of them writes.
inline bool doRace(const Program &program, const Touch &a, const Now &b) {
  if (!areConcurrent(a, b))
    return false;
  const AccessSite &one = program.accesses[a.site], &two = program.accesses[b.site];
  bool areAtomic = one.isAtomic() && two.isAtomic();
  return !areAtomic || (a.workgroup != b.workgroup && !(one.isOfDevice && two.isOfDevice));
}

/// Returns the recorded read of a cell that races with `touch` of the same dispatch, or null.
inline const Touch *findRace(const Program &program, const Touch *reads, const Now &touch) {
  for (const Touch *read = reads; read != reads + 2; ++read)
    if (read->site && doRace(program, *read, touch) &&
        (program.accesses[read->site].isWrite || program.accesses[touch.site].isWrite))
      return read;
  return nullptr;
}

/// The bytes of one allocation.
struct Store {
  int64_t bytes = 0;
  int shift = 0; ///< log2 of the bytes of a cell
  /// The current bytes, and those before the latest dispatch that wrote: dispatches to which
  /// that write is not visible may still read them.
  Lazy<unsigned char> values, stale;
  Lazy<Cell> cells;
  int64_t initialValue = -1; ///< value of the plan that it holds at the start of a run, or -1
  bool isWritable = true;
  bool isArena = false;
  /// The latest dispatch that read a cell by a path that sees no writes; only if there is one.
  Lazy<uint32_t> readOnly;
};

/// An operand of a dispatch.
struct Binding {
  Store *store = nullptr;
  int64_t offset = 0, bytes = 0;
  int64_t value = -1; ///< value of the plan; -1: a constant
  int64_t begin = 0;  ///< byte of the store where that value begins
  bool isLive = true; ///< whether it is in a slot that is live in the dispatch's wave
};

class Machine;
class Workgroup;

struct DispatchRun {
  size_t number = 0; ///< index among the plan's dispatches
  uint32_t serial = 0;
  const Command *command = nullptr;
  const Program *program = nullptr;
  std::vector<Binding> bindings;
  uint64_t workgroups = 0, begun = 0, ended = 0;
  bool isWriter = false; ///< for SimStrategy::WriterFirst
  size_t turn = 0;       ///< for SimStrategy::Split
  std::vector<std::unique_ptr<Workgroup>> running;
};

class Workgroup {
public:
  Workgroup(Machine &machine, const Program &program);
  void start(DispatchRun &dispatch, uint64_t number);

  /// Runs one of its subgroups, chosen by the machine's strategy: the last, the first, a random
  /// one, or each in turn.
  void advance(uint64_t accesses);
  bool isOver() const { return over; }
  uint32_t countSubgroups() const { return uint32_t(subgroups.size()); }

  // For steps of its subgroups; each handles all active lanes.
  void accessStorage(const AccessSite &access, Subgroup &subgroup);
  void accessMemory(const AccessSite &access, Subgroup &subgroup);
  void accessPrivate(const AccessSite &access, Subgroup &subgroup);
  void reportDivergence(const Barrier &barrier);
  /// Whether an address is in the object of an access, or nearer to it than to others.
  bool isNear(const AccessSite &access, const Subgroup &subgroup, uint32_t lane) const;
  void copyLate(const LateCopy &copy, Subgroup &subgroup);
  /// Runs a step of copies of boxes. Returns false where a wait goes on.
  bool runTile(const TileStep &tile, Subgroup &subgroup);
  void orderProducts(const GroupProduct &product, Subgroup &subgroup);
  void reportInactive(const spv::SourceLine &source, const Subgroup &subgroup, uint32_t lane);
  void reportStranger(const Meeting &meeting, const Subgroup &subgroup, uint32_t lane);
  void reportHang(const std::string &name, const spv::SourceLine &source, const Subgroup &subgroup,
                  uint32_t lane, uint32_t missing);
  void reportUnreachable(const Subgroup &subgroup);
  void reportPhase(const Subgroup &subgroup);
  void reportEndless();

  Machine &machine;
  const Program &program;
  DispatchRun *dispatch = nullptr;
  uint32_t number = 0; ///< counted along x first
  std::array<uint32_t, 3> place = {0, 0, 0};

private:
  Now makeTouch(uint16_t site, const Subgroup &subgroup, uint32_t lane, uint32_t phase) const;
  void meet();
  void abandon();

  bool over = false;
  uint32_t turn = 0;
  uint32_t storagePhase = 0, memoryPhase = 0;
  std::vector<std::unique_ptr<Subgroup>> subgroups;
  std::vector<unsigned char> memory;
  std::vector<Cell> cells;         ///< of `memory`
  std::vector<unsigned char> seen; ///< bytes of a load that reads stale contents

  /// A copy of a lane to workgroup memory.
  struct Pending {
    Touch touch; ///< that writes
    uint16_t fromSite = 0;
    Store *source = nullptr; ///< null: nothing is read
    int64_t from = 0, read = 0, to = 0, bytes = 0;
    std::array<unsigned char, 16> data = {};
    uint32_t group = 0; ///< of its lane
    bool hasLanded = false;
    std::vector<unsigned char> box; ///< of a copy of a box, in place of `data`
  };
  void startCopy(const LateCopy &copy, Subgroup &subgroup, uint32_t lane);
  void land(Pending &copy, const Subgroup &subgroup, uint32_t lane);
  void checkSources(const Store &store, int64_t at, int64_t bytes, const Touch &touch);
  std::vector<Pending> pending;
  std::vector<uint32_t> landing; ///< by cell of `memory`: 1 + index of the copy that lands there
  size_t numPending = 0;         ///< that have not landed

  struct MBarrier {
    bool parity = false;     ///< of the phase that goes on
    bool hasArrived = false; ///< whether its one arrival took place
    int64_t left = 0;        ///< bytes that are expected and not copied
    std::vector<uint32_t> copies;
  };
  void touchMBarrier(const TileStep &tile, const Subgroup &subgroup, uint32_t lane);
  std::vector<unsigned char> readBox(const TileStep &tile, const Subgroup &subgroup, uint32_t lane);
  void startTile(const TileStep &tile, Subgroup &subgroup, uint32_t lane);
  void landTile(Pending &copy);
  bool endPhase(const TileStep &tile, MBarrier &mbarrier);
  void wake();
  std::map<int64_t, MBarrier> mbarriers; ///< by byte

  std::vector<float> readFactor(const GroupProduct &product, size_t side, const Subgroup &subgroup,
                                uint32_t first, uint32_t count, Subgroup::OpenProduct &open);
  void addProduct(const GroupProduct &product, Subgroup &subgroup);
  void checkReaders(int64_t cell, const Now &touch);
  void noteWrite(int64_t cell, const Touch &touch);
  // Of programs with products or copies of boxes. By cell: the number of products that read it, the
  // last of them, and the number of fences that its writer had passed. By invocation: the fences
  // that it passed.
  std::vector<uint32_t> reading, writtenAt, fences;
  std::vector<Touch> readers;
};

/// Returns where an access is in its operand or space.
int64_t getOffset(const AccessSite &access, const Subgroup &subgroup, uint32_t lane);

class Machine {
public:
  Machine(const Artifact &artifact, const EntrySpec &entry, const Plan &plan,
          const Profile &profile, bool fusesFma, std::function<void(double)> progress);

  /// Runs the entry. From the second call on, arguments that are neither donated nor replaced
  /// keep the contents that the last run left.
  std::vector<Tensor> invoke(const std::vector<Tensor> &arguments, SimStrategy strategy,
                             uint64_t seed);

  /// Makes the next run take a new value of an argument.
  void replaceArgument(size_t index) { replaced.insert(index); }

  // Called before each cell that a load or store touches.
  /// Returns whether the load reads the current bytes, rather than the stale ones.
  bool checkRead(DispatchRun &dispatch, uint32_t operand, int64_t cell, const Now &touch);
  void checkWrite(DispatchRun &dispatch, uint32_t operand, int64_t cell, const Now &touch);

  /// Reports a load or store outside of its operand or variable, at `offset` from its begin.
  void reportOutside(const DispatchRun &dispatch, const AccessSite &access, const Touch &touch,
                     int64_t offset, int64_t bytes);
  /// Reports a load of bytes that nothing wrote, in private or workgroup memory.
  void reportUnwritten(const DispatchRun &dispatch, const AccessSite &access, const Touch &touch,
                       int64_t byte);
  /// Reports a race inside a dispatch, in `store` or, without one, in workgroup memory.
  void reportInside(const DispatchRun &dispatch, const Touch &a, const Touch &b, int64_t byte,
                    const Store *store = nullptr);
  /// Reports an access to bytes that a copy has not yet left, in `store` or in workgroup memory.
  void reportLate(const DispatchRun &dispatch, const Touch &copy, const Touch &touch, int64_t byte,
                  const Store *store = nullptr);
  void reportMisaligned(const DispatchRun &dispatch, const AccessSite &access, const Touch &touch,
                        int64_t byte);
  void reportReadOnly(const DispatchRun &dispatch, const Touch &write, int64_t byte,
                      const Store &store);
  void reportCode(ReportKind kind, const DispatchRun &dispatch, uint32_t workgroup,
                  const spv::SourceLine &source, const std::string &problem);

  int64_t getMaxTrips() const { return profile.maxLoopTrips; }

  /// Called with the bytes of each operand that a dispatch may have written; may be empty.
  std::function<void(size_t, size_t, const Bytes &)> onWrite;

  Reports reports;
  SimStrategy strategy = SimStrategy::Random;
  std::mt19937_64 random;

private:
  spv::Module readModule(const Kernel &kernel) const;
  void decodeKernels(bool fusesFma);
  void makeStores();
  void begin(const std::vector<Tensor> &arguments);
  void bind(DispatchRun &dispatch);
  void checkEffects(const DispatchRun &dispatch);
  std::vector<Tensor> readResults();

  void admit();
  DispatchRun &pick();
  void advance(DispatchRun &dispatch);
  void end(DispatchRun &dispatch);
  void tellWrites(const DispatchRun &dispatch) const;
  void poisonDead();
  void rankWriters();

  /// Returns the dispatch of this run with a serial, or null if an earlier run had it.
  DispatchRun *findDispatch(uint32_t serial) {
    return serial > firstSerial ? &dispatches[serial - firstSerial - 1] : nullptr;
  }
  const DispatchRun *findDispatch(uint32_t serial) const {
    return const_cast<Machine *>(this)->findDispatch(serial);
  }
  /// The contents of a cell: a value of the plan, or none, and the byte where it begins.
  struct Holder {
    int64_t value = -1, begin = 0;
  };
  /// Returns the contents that the dispatch finds, or those at the end of the run.
  Holder findHolder(const Store &store, int64_t cell, std::optional<size_t> dispatch) const;
  std::string describe(const DispatchRun &dispatch) const;
  std::string describe(const DispatchRun &dispatch, const Touch &touch) const;
  std::string describeSource(const DispatchRun &dispatch, const spv::SourceLine &source) const;
  std::string describeByte(const Store &store, int64_t byte) const;
  std::string describeValue(int64_t value) const;

  /// Reports a read of bytes that hold another value, or none.
  void checkContents(DispatchRun &dispatch, uint32_t operand, int64_t cell, const Touch &touch);
  void checkLife(DispatchRun &dispatch, uint32_t operand, int64_t cell, const Touch &touch);
  void reportPair(ReportKind kind, const DispatchRun &first, const Touch &firstTouch,
                  const DispatchRun &second, const Touch &secondTouch, const Store &store,
                  int64_t cell);
  void makeReader(Cell &cell, const DispatchRun &dispatch);

  const EntrySpec &entry;
  const Plan &plan;
  const Profile &profile;
  const Artifact &artifact;
  std::function<void(double)> progress;
  Order order;
  std::vector<spv::Module> modules; ///< by kernel
  std::vector<Program> programs;    ///< by kernel; never grows later
  std::vector<Store> stores;        ///< by allocation
  /// Operands that dispatches insert into, in recorded order: afterwards, bytes that they do
  /// not write hold the new value, too.
  std::vector<std::pair<size_t, const PlanOperand *>> insertions;

  // Of the run under way.
  bool hasRun = false;
  std::set<size_t> replaced; ///< arguments with a new value for the next run
  uint32_t firstSerial = 0;
  std::vector<DispatchRun> dispatches;
  std::vector<DispatchRun *> active;        ///< those that may run, in recorded order
  std::vector<std::vector<size_t>> byQueue; ///< dispatches
  std::vector<size_t> admitted, ended;  ///< by queue: number of dispatches of `byQueue`, in order
  std::map<int64_t, size_t> unfinished; ///< dispatches, by wave; none is 0
  std::vector<bool> isPoisoned;         ///< by slot
  uint64_t workgroups = 0, endedWorkgroups = 0;
  struct Reader {
    uint32_t dispatch; ///< a serial
    Touch reads[2];    ///< as in a cell
    uint32_t next;
  };
  std::map<const Program *, std::vector<std::unique_ptr<Workgroup>>> idleWorkgroups;
  std::vector<Reader> readers; ///< nodes of the cells' lists; 0 ends a list
};

} // namespace weir::sim

#endif // WEIR_LIB_SIM_MACHINE_H
