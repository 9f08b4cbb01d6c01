//===- Compiler.cpp - The pipelines as a library --------------------------===//

#include "weir/Compiler/Compiler.h"
