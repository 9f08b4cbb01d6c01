//===- Emitter.cpp - Block code of kernels --------------------------------===//
