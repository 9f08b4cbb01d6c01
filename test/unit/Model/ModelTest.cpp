#include "weir/Model/Model.h"
#include "gtest/gtest.h"
TEST(A, B) {}
