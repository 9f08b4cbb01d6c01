//===- LoopRecording.h - Recordings that run several times ------*- C++ -*-===//

#ifndef WEIR_LIB_RUNTIME_LOOPRECORDING_H
#define WEIR_LIB_RUNTIME_LOOPRECORDING_H

#include "Device.h"

#include <functional>
#include <memory>
#include <vector>

namespace weir::runtime {

/// A plan with loops: what is between their edges is recorded once, and submitted in each trip. A
/// submission is ordered after earlier ones, and barriers reach across, as they are the plan's.
class LoopRecording : public Recording {
public:
  /// `record` records a plan that has a part of the commands. `startsOutside`: whether what it
  /// records first, which may be no command at all, must be no part of a loop: copies of arguments
  /// go with it. `isProfiled`: whether it records times of dispatches; then each piece is waited
  /// for.
  LoopRecording(Device &device, const Plan &plan, const std::vector<const Storage *> &allocations,
                bool startsOutside, bool isProfiled,
                const std::function<std::unique_ptr<Recording>(const Plan &)> &record);

  /// Returns once all but the trips behind the last flag are on their way. Errors: `Error`, also if
  /// a loop makes more trips than the plan allows.
  void submit(bool isTimed) override;
  double readNanoseconds() const override { return -1; } // a piece knows its last time alone
  std::vector<weir_dispatch_time> readDispatchTimes() const override { return times; }

private:
  /// Commands between two edges, or a loop.
  struct Piece {
    std::unique_ptr<Recording> recording; ///< null: a loop
    size_t firstDispatch = 0;             ///< of the recording, as the plan counts them
    int64_t trips = 0;
    const Storage *flag = nullptr; ///< null: the number of trips is known
    int64_t flagOffset = 0;
    std::vector<Piece> body;
  };

  std::vector<Piece> record(const Plan &plan, int64_t first, int64_t end, size_t nextLoop,
                            const std::function<std::unique_ptr<Recording>(const Plan &)> &make);
  void submit(const std::vector<Piece> &list);
  void addTimes(const Piece &piece);
  bool isSet(const Piece &loop) const;

  Device &device;
  std::vector<const Storage *> allocations;
  bool isProfiled;
  std::vector<Piece> pieces;
  std::vector<weir_dispatch_time> times; ///< by dispatch
  double elapsed = 0;                    ///< nanoseconds, of the pieces whose times are added
};

} // namespace weir::runtime

#endif // WEIR_LIB_RUNTIME_LOOPRECORDING_H
