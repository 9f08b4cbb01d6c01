//===- PhiloxTest.cpp - The published vectors of Philox4x32-10 -------------===//

#include "dialects/Random/Philox.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Matchers.h"

#include <gtest/gtest.h>

using namespace mlir;

namespace {
using Words = std::array<uint32_t, 4>;

struct Vector {
  Words counter;
  std::array<uint32_t, 2> key;
  Words block;
};

// Random123's kat_vectors, philox 4x32 with 10 rounds.
TEST(Philox, GivesThePublishedBlocks) {
  MLIRContext context;
  context.loadDialect<arith::ArithDialect>();
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context));
  ImplicitLocOpBuilder builder(module->getLoc(), &context);
  builder.setInsertionPointToEnd(module->getBody());
  auto constant = [&](uint32_t word) -> Value {
    return arith::ConstantIntOp::create(builder, int32_t(word), 32);
  };
  for (const Vector &vector :
       {Vector{{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        Vector{{~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        Vector{{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
               {0xa4093822, 0x299f31d0},
               {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}}) {
    std::array<Value, 4> counter, block;
    for (size_t i = 0; i < 4; ++i)
      counter[i] = constant(vector.counter[i]);
    block = weir::random::buildPhilox(builder, counter,
                                      {constant(vector.key[0]), constant(vector.key[1])});
    for (size_t i = 0; i < 4; ++i) {
      APInt word;
      ASSERT_TRUE(matchPattern(block[i], m_ConstantInt(&word)));
      EXPECT_EQ(word.getZExtValue(), vector.block[i]);
    }
  }
}
} // namespace
