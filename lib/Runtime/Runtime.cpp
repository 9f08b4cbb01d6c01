//===- Runtime.cpp - The C ABI --------------------------------------------===//

#include "weir/weir.h"
