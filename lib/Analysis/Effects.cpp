//===- Effects.cpp - What a kernel does to its operands -------------------===//
