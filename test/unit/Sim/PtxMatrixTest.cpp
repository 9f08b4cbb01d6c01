//===- PtxMatrixTest.cpp - Matrices in the registers of a warp ------------===//

#include "Ptx.h"

using namespace weir;
using namespace weir::test;

/// Loads 16-bit numbers with index 2 * %t and 2 * %t + 1, so row r of 16 bytes has 8 * r to
/// 8 * r + 7, in matrices one behind the other, and then a matrix by ldmatrix into %r1 to %r4.
static std::vector<uint32_t> loadMatrix(const std::string &how, const std::string &to,
                                        const std::string &result) {
  std::string fill;
  for (int i = 0; i < 4; ++i)
    fill += "add.s32 %r10, %t, " + std::to_string(32 * i) +
            ";\nshl.b32 %r11, %r10, 1;\nadd.s32 %r12, %r11, 1;\nshl.b32 %r13, %r12, 16;\n"
            "or.b32 %r14, %r11, %r13;\nst.shared.b32 [%ps+" +
            std::to_string(128 * i) + "], %r14;\n";
  return getWords(
      makePtx(fill +
              "bar.sync 0;\nshl.b32 %r20, %t, 4;\nmov.b32 %r21, tile;\nadd.s32 %r22, %r20, %r21;\n"
              "ldmatrix.sync.aligned.m8n8." +
              how + ".shared.b16 {" + to + "}, [%r22];\nst.global.b32 [%pb], " + result + ";"));
}

TEST(Matrices, are_loaded_by_rows) {
  auto pack = [](uint32_t low, uint32_t high) { return low | high << 16; };
  std::vector<uint32_t> plain = loadMatrix("x1", "%r1", "%r1"),
                        third = loadMatrix("x4", "%r1, %r2, %r3, %r4", "%r3"),
                        turned = loadMatrix("x1.trans", "%r1", "%r1");
  for (uint32_t lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(plain[lane], pack(2 * lane, 2 * lane + 1));
    EXPECT_EQ(third[lane], pack(128 + 2 * lane, 129 + 2 * lane));
    uint32_t row = lane % 4 * 2, column = lane / 4;
    EXPECT_EQ(turned[lane], pack(8 * row + column, 8 * (row + 1) + column));
  }
  // Lanes without a row may have any address.
  EXPECT_EQ(loadMatrix("x2", "%r1, %r2", "%r2"), [] {
    std::vector<uint32_t> words;
    for (uint32_t lane = 0; lane < 32; ++lane)
      words.push_back((64 + 2 * lane) | (65 + 2 * lane) << 16);
    return words;
  }());
}

TEST(Matrices, lanes_without_a_row_load_nothing) {
  const std::string body = "st.global.b32 [%pb], %t;\nst.shared.b32 [%ps], %t;\nbar.sync 0;\n"
                           "mul.lo.s32 %r20, %t, FACTOR;\nmov.b32 %r21, tile;\n"
                           "add.s32 %r22, %r20, %r21;\n"
                           "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [%r22];";
  auto with = [&](const std::string &factor) {
    std::string text = body;
    return makePtx(text.replace(text.find("FACTOR"), 6, factor));
  };
  expectSilence(with("16"));
  expectSome(with("64"), {"never written: "}); // row 2 begins behind the 128 bytes that are written
  expectSome(with("4096"), {"out of bounds: "});
}

/// Computes D = A * B + C from A and B of small integers, whose fragments each lane makes by the
/// layouts of the ISA, written as formulas of row and column: A[r][k] = r + 2k, B[k][c] = k - c,
/// C[r][c] = 100r + c. The sums are exact.
static void expectProduct(const std::string &name, uint32_t depth, bool isWide,
                          const std::string &convert) {
  std::string body = "shr.u32 %r10, %t, 2;\nand.b32 %r11, %t, 3;\n";
  int next = 20;
  auto makeElement = [&](const std::string &row, const std::string &depthIndex, bool isA) {
    // Leaves the f32 bits in %r<next>.
    std::string to = "%r" + std::to_string(next++);
    body += row + depthIndex;
    body += isA ? "mad.lo.s32 %r14, %r13, 2, %r12;\n" : "sub.s32 %r14, %r13, %r12;\n";
    body += "cvt.rn.f32.s32 " + to + ", %r14;\n";
    return to;
  };
  auto makeRegister = [&](const std::string &row, uint32_t base, bool isA) {
    if (isWide)
      return makeElement(row, "add.s32 %r13, %r11, " + std::to_string(base) + ";\n", isA);
    std::string low =
        makeElement(row, "mad.lo.s32 %r13, %r11, 2, " + std::to_string(base) + ";\n", isA);
    std::string high =
        makeElement(row, "mad.lo.s32 %r13, %r11, 2, " + std::to_string(base + 1) + ";\n", isA);
    std::string to = "%r" + std::to_string(next++);
    body += convert + " " + to + ", " + high + ", " + low + ";\n";
    return to;
  };
  std::string a, b, c;
  for (uint32_t base = 0; base < depth; base += isWide ? 4 : 8) {
    for (uint32_t row : {0, 8}) // two registers, rows `group` and `group` + 8
      a += (a.empty() ? "" : ", ") +
           makeRegister("add.s32 %r12, %r10, " + std::to_string(row) + ";\n", base, true);
    b += (b.empty() ? "" : ", ") + makeRegister("mov.b32 %r12, %r10;\n", base, false);
  }
  for (uint32_t i = 0; i < 4; ++i) {
    std::string to = "%r" + std::to_string(next++);
    body += "add.s32 %r12, %r10, " + std::to_string(i / 2 * 8) + ";\nmad.lo.s32 %r13, %r11, 2, " +
            std::to_string(i % 2) + ";\nmad.lo.s32 %r14, %r12, 100, %r13;\ncvt.rn.f32.s32 " + to +
            ", %r14;\n";
    c += (i ? ", " : "") + to;
  }
  body += name + " {%r1, %r2, %r3, %r4}, {" + a + "}, {" + b + "}, {" + c + "};\n";
  for (uint32_t i = 0; i < 4; ++i) {
    Sample sample = makePtx(body + "st.global.b32 [%pb], %r" + std::to_string(i + 1) + ";", 32);
    for (SimStrategy strategy : {SimStrategy::Recorded, SimStrategy::Split}) {
      std::vector<uint32_t> words = getWords(sample, {.strategy = strategy});
      for (uint32_t lane = 0; lane < 32; ++lane) {
        int row = int(lane / 4 + i / 2 * 8), column = int(lane % 4 * 2 + i % 2);
        int sum = 100 * row + column;
        for (int k = 0; k < int(depth); ++k)
          sum += (row + 2 * k) * (k - column);
        EXPECT_EQ(std::bit_cast<float>(words[lane]), float(sum))
            << name << " " << row << " " << column;
      }
    }
  }
}

TEST(Matrices, products) {
  for (const char *type : {"f16", "bf16"}) {
    const std::string types = std::string(".row.col.f32.") + type + "." + type + ".f32";
    const std::string convert = "cvt.rn." + std::string(type) + "x2.f32";
    expectProduct("mma.sync.aligned.m16n8k16" + types, 16, false, convert);
    expectProduct("mma.sync.aligned.m16n8k8" + types, 8, false, convert);
  }
  expectProduct("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", 8, true, "");
  expectProduct("mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32", 4, true, "");
}

TEST(Matrices, need_the_whole_warp) {
  const std::string product = "mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 {%r1, %r2, %r3, "
                              "%r4}, {%t, %t}, {%t}, {%t, %t, %t, %t};\n";
  expectSilence(makePtx("st.global.b32 [%pb], %t;\n" + product));
  expectSome(makePtx("st.global.b32 [%pb], %t;\nsetp.lt.u32 %p1, %t, 9;\n@%p1 bra end;\n" +
                     product + "end:\n"),
             {"undefined: in dispatch 0 "});
  EXPECT_NE(getError(makePtx("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%r1, %r2}, {%t, "
                             "%t, %t, %t}, {%t, %t}, {%t, %t};"))
                .find("is not supported by the simulator"),
            std::string::npos);
}
