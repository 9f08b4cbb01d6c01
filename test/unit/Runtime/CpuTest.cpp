//===- CpuTest.cpp - Machine code in memory, threads that share a run -----===//

#include "lib/Runtime/CodeImage.h"
#include "lib/Runtime/ThreadPool.h"

#include "gtest/gtest.h"

#include <cstdlib>
#include <cstring>
#include <elf.h>
#include <fstream>
#include <iterator>
#include <random>

using namespace weir;
using namespace weir::runtime;

//===----------------------------------------------------------------------===//
// CodeImage
//===----------------------------------------------------------------------===//

static Bytes readObject(const std::string &name) {
  std::ifstream file(WEIR_TEST_OBJECTS "/" + name + ".so", std::ios::binary);
  return Bytes(std::istreambuf_iterator<char>(file), {});
}

static std::string getError(const Bytes &object) {
  try {
    CodeImage image(object, "code");
  } catch (const Error &error) {
    return error.what();
  }
  return "";
}

using Fill = void (*)(void *const *, const int64_t *, int64_t, int64_t);

TEST(CodeImage, runs_a_function) {
  CodeImage image(readObject("good"), "code");
  auto fill = reinterpret_cast<Fill>(image.find("fill"));
  std::vector<float> values(8, -1);
  void *operands[] = {values.data()};
  int64_t grid[] = {7, 1, 1};
  fill(operands, grid, 2, 5);
  EXPECT_EQ(values, (std::vector<float>{-1, -1, 702, 703, 704, -1, -1, -1}));
  EXPECT_THROW(image.find("empty"), Error);
}

TEST(CodeImage, refuses_what_kernels_have_no_use_for) {
  EXPECT_EQ(getError(readObject("writes")),
            "code has a writable segment, which kernels have no use for; compile the graph again");
  EXPECT_NE(getError(readObject("starts")), "");
  EXPECT_NE(getError(readObject("relocates")), "");
  EXPECT_NE(getError(readObject("calls")), "");
}

TEST(CodeImage, refuses_other_files) {
  EXPECT_EQ(getError({}),
            "code is cut short: its header ends behind its 0 bytes; compile the graph again");
  Bytes object = readObject("good");
  Bytes text = object;
  text[0] = 'X';
  EXPECT_EQ(getError(text), "code is not an ELF object; compile the graph again");
  Bytes other = object;
  other[offsetof(Elf64_Ehdr, e_machine)] = EM_RISCV;
  EXPECT_NE(getError(other).find("code has code of ELF machine"), std::string::npos);
}

TEST(CodeImage, refuses_every_shorter_object) {
  Bytes object = readObject("good");
  Elf64_Ehdr header;
  std::memcpy(&header, object.data(), sizeof header);
  // Behind the segments are sections, which nobody reads.
  size_t end = 0;
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    std::memcpy(&segment, object.data() + header.e_phoff + i * sizeof segment, sizeof segment);
    if (segment.p_type == PT_LOAD)
      end = std::max<size_t>(end, segment.p_offset + segment.p_filesz);
  }
  for (size_t size = 0; size < end; ++size)
    EXPECT_NE(getError(Bytes(object.begin(), object.begin() + size)), "") << size;
  EXPECT_EQ(getError(Bytes(object.begin(), object.begin() + end)), "");
}

TEST(CodeImage, survives_any_byte_of_its_tables) {
  Bytes object = readObject("good");
  std::mt19937 random(1);
  size_t refused = 0;
  for (int round = 0; round < 20000; ++round) {
    Bytes broken = object;
    for (int edits = 1 + round % 3; edits > 0; --edits)
      broken[random() % 0x300] = decltype(broken)::value_type(random());
    refused += !getError(broken).empty();
  }
  EXPECT_GT(refused, 5000u);
}

//===----------------------------------------------------------------------===//
// ThreadPool
//===----------------------------------------------------------------------===//

namespace {
/// Each piece of a step adds up what the pieces of the step before left.
class Sums : public Work {
public:
  explicit Sums(std::vector<size_t> pieces) : pieces(std::move(pieces)) {
    for (size_t count : this->pieces)
      values.emplace_back(count, 0);
  }
  size_t getStepCount() const override { return pieces.size(); }
  size_t getPieceCount(size_t step) const override { return pieces[step]; }
  void run(size_t step, size_t piece) const noexcept override {
    int64_t sum = int64_t(piece) + 1;
    if (step > 0)
      for (int64_t value : values[step - 1])
        sum += value;
    values[step][piece] += sum % 1000003; // not atomic: a piece is done once
  }

  std::vector<size_t> pieces;
  mutable std::vector<std::vector<int64_t>> values;
};
} // namespace

TEST(ThreadPool, steps_follow_each_other) {
  std::mt19937 random(7);
  for (size_t threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads), alone(1);
    EXPECT_EQ(pool.getThreadCount(), threads);
    for (int round = 0; round < 200; ++round) {
      std::vector<size_t> pieces(random() % 12);
      for (size_t &count : pieces)
        count = random() % 4 == 0 ? 1 : 1 + random() % 9;
      Sums shared(pieces), expected(pieces);
      pool.run(shared);
      alone.run(expected);
      ASSERT_EQ(shared.values, expected.values) << threads << " threads, round " << round;
    }
  }
}

TEST(ThreadPool, wakes_after_sleep) {
  ThreadPool pool(3);
  for (int round = 0; round < 5; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    Sums shared({6, 6, 1, 6}), expected({6, 6, 1, 6});
    pool.run(shared);
    ThreadPool(1).run(expected);
    EXPECT_EQ(shared.values, expected.values);
  }
}

TEST(ThreadPool, count_from_the_environment) {
  setenv("WEIR_THREADS", "5", 1);
  EXPECT_EQ(chooseThreadCount(), 5u);
  for (const char *wrong : {"", "0", "-1", "1025", "2x", "99999999999999999999"}) {
    setenv("WEIR_THREADS", wrong, 1);
    EXPECT_THROW(chooseThreadCount(), Error) << wrong;
  }
  unsetenv("WEIR_THREADS");
  EXPECT_GE(chooseThreadCount(), 1u);
}
