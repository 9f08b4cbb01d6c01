//===- Error.cpp - The one error type of the rooms without LLVM -----------===//

#include "weir/Artifact/Error.h"

weir::Error::~Error() = default;
