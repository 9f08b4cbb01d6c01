//===- Reference.cpp - A graph on the host, compiled ----------------------===//

#include "weir/Reference/Reference.h"
