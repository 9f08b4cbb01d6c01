//===- DriverCall.h - The call of a driver that is under way ----*- C++ -*-===//
//
// A driver that crashes takes the process with it, and the handler of a signal cannot ask it
// anything. So calls that often crash are stated beforehand, where a handler may read them.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_LIB_RUNTIME_DRIVERCALL_H
#define WEIR_LIB_RUNTIME_DRIVERCALL_H

#include <initializer_list>
#include <string_view>

namespace weir::runtime {

/// States what a driver does, as long as it lives. Allocates nothing.
class DriverCall {
public:
  /// `parts` follow "while" in a sentence: "building kernel 'row' of row.spv on ", "'a GPU'". A
  /// text of more than 500 bytes is cut.
  explicit DriverCall(std::initializer_list<std::string_view> parts) noexcept;
  DriverCall(const DriverCall &) = delete;
  DriverCall &operator=(const DriverCall &) = delete;
  ~DriverCall();

private:
  void *slot; ///< null if too many calls are under way
};

/// Returns what this thread's driver does, else another thread's; null if no driver is called. May
/// be called in the handler of a signal.
const char *findDriverCall() noexcept;

} // namespace weir::runtime

#endif // WEIR_LIB_RUNTIME_DRIVERCALL_H
