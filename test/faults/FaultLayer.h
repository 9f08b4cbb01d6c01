//===- FaultLayer.h - A Vulkan layer whose calls fail -----------*- C++ -*-===//
//
// It counts the runtime's calls of the driver below it that may fail, lets one of them fail or
// crash, and counts the objects that live. A program that the layer is loaded into by
// VK_INSTANCE_LAYERS is controlled by its environment:
//
//   WEIR_FAULT_CALL      the number of the call that fails, from 1 on; default: none
//   WEIR_FAULT_NAME      only calls of this function count, as vkCreateComputePipelines
//   WEIR_FAULT_RESULT    the VkResult that it returns, below 0, or the signal that it raises
//   WEIR_FAULT_DISCRETE  if set, the device claims to have memory of its own
//   WEIR_FAULT_REPORT    a file that gets "CALLS calls, LIVE live" when the program ends
//
// A test in whose process the layer is may call these functions as well.
//
//===----------------------------------------------------------------------===//

#ifndef WEIR_TEST_FAULTS_FAULTLAYER_H
#define WEIR_TEST_FAULTS_FAULTLAYER_H

extern "C" {

/// Lets call number `call` from now on fail with `result`; 0 for none. After VK_ERROR_DEVICE_LOST
/// everything that may return it does so, until the next call of this function.
void weir_faults_set(int call, int result);

/// Whether the call that was set has come.
bool weir_faults_came();

/// Returns the number of objects that were created and not destroyed.
int weir_faults_live();

/// Lets devices claim to have memory of their own, so that bytes are copied to it.
void weir_faults_be_discrete(bool isDiscrete);
}

#endif // WEIR_TEST_FAULTS_FAULTLAYER_H
