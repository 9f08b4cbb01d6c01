//===- LaunchSizes.cpp - How large the launches of a kernel are -----------===//

#include "weir/Analysis/LaunchSizes.h"

#include "Interval.h"

#include "dialects/Schedule/Schedule.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace weir;

ArrayRef<gpu::LaunchFuncOp> Launches::get(gpu::GPUFuncOp kernel) {
  auto module = kernel->getParentOfType<ModuleOp>();
  if (!module)
    return {};
  if (modules.insert(module).second) {
    SymbolTableCollection tables;
    module.walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (isa<schedule::CommandsOp>(op)) // many, and none is a launch
        return WalkResult::skip();
      if (auto launch = dyn_cast<gpu::LaunchFuncOp>(op))
        if (Operation *launched = tables.lookupNearestSymbolFrom(launch, launch.getKernel()))
          launches[{module, launched}].push_back(launch);
      return WalkResult::advance();
    });
  }
  auto it = launches.find({module, kernel});
  return it == launches.end() ? ArrayRef<gpu::LaunchFuncOp>() : ArrayRef(it->second);
}

/// Sets the sizes on which all launches of a kernel agree. Returns whether there are any launches.
static bool addLaunches(ArrayRef<gpu::LaunchFuncOp> launches, LaunchSizes &sizes) {
  auto take = [&](auto getValues, std::array<std::optional<int64_t>, 3> &to) {
    for (unsigned axis = 0; axis < 3; ++axis) {
      std::optional<int64_t> size;
      for (auto [index, launch] : llvm::enumerate(launches)) {
        gpu::KernelDim3 values = getValues(launch);
        std::optional<int64_t> known =
            getConstantIntValue((Value[]){values.x, values.y, values.z}[axis]);
        size = index == 0 || known == size ? known : std::nullopt;
        if (!size)
          break;
      }
      if (size && !to[axis])
        to[axis] = size;
    }
  };
  take([](gpu::LaunchFuncOp launch) { return launch.getBlockSizeOperandValues(); },
       sizes.workgroup);
  take([](gpu::LaunchFuncOp launch) { return launch.getGridSizeOperandValues(); }, sizes.grid);
  return !launches.empty();
}

/// Sets the sizes along axes y and z that the kernel never asks about to 1. Without any launch in
/// sight this is a guess: a larger size would do all its work several times over.
static void assumeFlat(gpu::GPUFuncOp kernel, LaunchSizes &sizes) {
  bool asks[2][3] = {}; // workgroups, invocations; by axis
  auto look = [&](Operation *scope) {
    scope->walk([&](Operation *op) {
      auto set = [&](bool workgroup, bool invocation, gpu::Dimension axis) {
        asks[0][unsigned(axis)] |= workgroup;
        asks[1][unsigned(axis)] |= invocation;
      };
      llvm::TypeSwitch<Operation *>(op)
          .Case<gpu::BlockIdOp, gpu::GridDimOp>(
              [&](auto id) { set(true, false, id.getDimension()); })
          .Case<gpu::ThreadIdOp, gpu::BlockDimOp>(
              [&](auto id) { set(false, true, id.getDimension()); })
          .Case<gpu::GlobalIdOp>([&](auto id) { set(true, true, id.getDimension()); });
    });
  };
  bool calls =
      kernel.walk([](CallOpInterface) { return WalkResult::interrupt(); }).wasInterrupted();
  look(calls ? kernel->getParentOp() : kernel.getOperation());
  for (unsigned axis : {1, 2}) {
    if (!sizes.grid[axis] && !asks[0][axis])
      sizes.grid[axis] = 1;
    if (!sizes.workgroup[axis] && !asks[1][axis])
      sizes.workgroup[axis] = 1;
  }
}

std::optional<int64_t> LaunchSizes::countSubgroups() const {
  if (!subgroup || !workgroup[1] || !workgroup[2])
    return std::nullopt;
  std::optional<int64_t> invocations =
      scaleBound(scaleBound(workgroup[0], *workgroup[1]), *workgroup[2]);
  if (!invocations)
    return std::nullopt;
  return llvm::divideCeil(*invocations, *subgroup);
}

LaunchSizes LaunchSizes::get(FunctionOpInterface kernel, Launches &launches) {
  LaunchSizes sizes;
  if (auto module = kernel->getParentOfType<ModuleOp>())
    if (auto profile = module->getAttrOfType<DictionaryAttr>(schedule::profileAttrName))
      if (auto size = profile.getAs<IntegerAttr>("subgroup_size"))
        sizes.subgroup = size.getInt();
  auto function = dyn_cast<gpu::GPUFuncOp>(kernel.getOperation());
  if (!function)
    return sizes;
  auto take = [](std::optional<ArrayRef<int32_t>> known,
                 std::array<std::optional<int64_t>, 3> &to) {
    for (unsigned axis = 0; known && axis < known->size() && axis < 3; ++axis)
      to[axis] = (*known)[axis];
  };
  take(function.getKnownBlockSize(), sizes.workgroup);
  take(function.getKnownGridSize(), sizes.grid);
  if (!addLaunches(launches.get(function), sizes))
    assumeFlat(function, sizes);
  return sizes;
}
