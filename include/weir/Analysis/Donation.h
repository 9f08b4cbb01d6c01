//===- Donation.h - Whether a result may take an operand's bytes -*- C++ -*-===//
//
// What bytes, layouts and kernels say of a pair of operands of one dispatch,
// before anyone asks who else uses the bytes. docs/donation.md explains it.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_ANALYSIS_DONATION_H
#define WEIR_ANALYSIS_DONATION_H

#include "dialects/Schedule/Schedule.h"
#include "weir/Analysis/AccessMap.h"
#include "weir/Analysis/Aliasing.h"
#include "weir/Analysis/InPlace.h"

#include <map>

namespace weir {

/// Why a result may not take an operand's bytes; docs/donation.md explains each.
enum class Refusal {
  MemorySpace,
  Layout,
  Size,
  Alignment,
  NotOwned,
  ViewOfArgument,
  ArgumentAlias,
  EscapesTwice,
  LiveReader,
  UnorderedReader,
  AccessMapUnproven
};

/// "memory-space"
llvm::StringRef stringify(Refusal refusal);

/// "they are in different memory spaces"
llvm::StringRef describe(Refusal refusal);

/// The result that lies in an argument's bytes from the start, since a kernel inserts into
/// it; null where there is none.
mlir::BlockArgument getBorrower(mlir::BlockArgument argument);

/// The answer for a pair of operands.
struct DonationVerdict {
  std::optional<Refusal> refusal; ///< nothing: allowed
  mlir::Operation *witness = nullptr;
  std::string detail;
};

/// Remembers access maps; lives as long as the kernels stay as they are. Whoever
/// changes views empties `views`.
class Donation {
public:
  explicit Donation(Views &views) : views(views) {}

  /// Whether the bytes of `source` suit `target`: whole allocations of one type
  /// of which the first may be given away.
  DonationVerdict checkFit(schedule::DispatchOp dispatch, unsigned target, unsigned source);

  /// Whether the kernel's own accesses allow it, for all operands that name the
  /// two allocations.
  DonationVerdict prove(schedule::DispatchOp dispatch, unsigned target, unsigned source);

  const View &getView(mlir::Value memref) { return views.get(memref); }
  Views &getViews() { return views; }

private:
  /// What is known of one kernel.
  struct Kernel {
    Kernel(mlir::gpu::GPUFuncOp op, Launches &launches)
        : maps(op, LaunchSizes::get(op, launches)) {}

    AccessMaps maps;
    std::map<std::pair<unsigned, unsigned>, InPlaceProof> proofs; ///< by read and written operand
  };

  const InPlaceProof &prove(Kernel &known, mlir::gpu::GPUFuncOp kernel, unsigned read,
                            unsigned written);

  Views &views;
  Launches launches;
  mlir::SymbolTableCollection symbols;
  llvm::DenseMap<mlir::Operation *, std::unique_ptr<Kernel>> kernels;
};

} // namespace weir

#endif // WEIR_ANALYSIS_DONATION_H
