//===- Verify.cpp - Re-proves an artifact's plan -------------------------===//

#include "weir/Verify/Verify.h"
