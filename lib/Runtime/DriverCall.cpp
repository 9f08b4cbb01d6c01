//===- DriverCall.cpp - The call of a driver that is under way ------------===//

#include "DriverCall.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <unistd.h>

namespace weir::runtime {

namespace {
struct Slot {
  std::atomic<pid_t> thread{0}; ///< 0: free
  std::atomic<bool> isStated{false};
  char text[501] = {};
};
} // namespace

static_assert(std::atomic<pid_t>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

/// One for each thread that calls a driver, unless there are very many.
static Slot slots[16];

DriverCall::DriverCall(std::initializer_list<std::string_view> parts) noexcept : slot(nullptr) {
  for (Slot &each : slots) {
    pid_t none = 0;
    if (!each.thread.compare_exchange_strong(none, gettid()))
      continue;
    size_t used = 0;
    for (std::string_view part : parts) {
      size_t copied = std::min(part.size(), sizeof(each.text) - 1 - used);
      std::memcpy(each.text + used, part.data(), copied);
      used += copied;
    }
    each.text[used] = 0;
    each.isStated = true;
    slot = &each;
    return;
  }
}

DriverCall::~DriverCall() {
  if (!slot)
    return;
  Slot &each = *static_cast<Slot *>(slot);
  each.isStated = false;
  each.thread = 0;
}

const char *findDriverCall() noexcept {
  pid_t own = gettid();
  for (const Slot &each : slots)
    if (each.thread == own && each.isStated)
      return each.text;
  for (const Slot &each : slots) // whose driver has threads of its own
    if (each.isStated)
      return each.text;
  return nullptr;
}

} // namespace weir::runtime
