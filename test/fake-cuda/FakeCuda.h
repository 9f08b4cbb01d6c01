//===- FakeCuda.h - A CUDA driver that records its calls --------*- C++ -*-===//
//
// It copies memory and executes nothing else. One device, "Fake GPU", of compute
// capability 9.0, unless FAKE_CUDA_DEVICES or FAKE_CUDA_CAPABILITY say otherwise.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_TEST_FAKE_CUDA_FAKECUDA_H
#define WEIR_TEST_FAKE_CUDA_FAKECUDA_H

#include <string>

namespace weir::test {

/// Returns what was called since the last time, a line each, and forgets it.
/// Addresses are printed as "A2+256": the allocation's number since a device was
/// opened, and an offset.
std::string takeCudaLog();

/// Lets the function of that symbol return `result` from now on; "" for none.
void failCuda(const std::string &symbol, int result);

/// Lets call number `call` from now on, of those that may fail, return `result`; 0 for none.
void failCudaCall(int call, int result);

/// Whether that call has come.
bool cudaCallCame();

/// Objects, allocations and contexts that were not given back.
int countLiveCuda();

} // namespace weir::test

#endif // WEIR_TEST_FAKE_CUDA_FAKECUDA_H
