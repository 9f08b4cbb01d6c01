//===- NpyTest.cpp - Arrays that NumPy wrote, and others ------------------===//

#include "Refusal.h"
#include "weir/Artifact/Artifact.h"

using namespace weir;
using namespace weir::test;

/// Returns an .npy file of version 1 with a header and `bytes` bytes of elements, 0, 1...
static Bytes makeNpy(const std::string &header, size_t bytes, char version = 1) {
  std::string text = "\x93NUMPY";
  text += version;
  text += '\0';
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i)
    text += char(header.size() >> (8 * i));
  text += header;
  for (size_t i = 0; i < bytes; ++i)
    text += char(i);
  return Bytes(text.begin(), text.end());
}

static std::string makeHeader(const std::string &type, const std::string &shape,
                              const std::string &isFortran = "False") {
  return "{'descr': '" + type + "', 'fortran_order': " + isFortran + ", 'shape': " + shape +
         ", }    \n";
}

static Tensor parse(const Bytes &bytes) { return parseNpy(bytes, "a.npy"); }

TEST(Npy, reads_types_shapes_and_versions) {
  struct Case {
    const char *type, *shape;
    DType dtype;
    std::vector<int64_t> sizes;
    size_t bytes;
  };
  for (const Case &c :
       {Case{"<f4", "(2, 3)", "F32", {2, 3}, 24}, Case{"<f8", "()", "F64", {}, 8},
        Case{"<f2", "(3,)", "F16", {3}, 6}, Case{"<i8", "(0, 5)", "I64", {0, 5}, 0},
        Case{"|b1", "(2,)", "BOOL", {2}, 2}, Case{"|u1", "(1, 1,)", "U8", {1, 1}, 1},
        Case{"<i2", "(1,)", "I16", {1}, 2}})
    for (char version : {1, 2, 3}) {
      SCOPED_TRACE(c.type);
      Tensor tensor = parse(makeNpy(makeHeader(c.type, c.shape), c.bytes, version));
      EXPECT_EQ(tensor.spec.dtype, c.dtype);
      EXPECT_EQ(tensor.spec.shape, c.sizes);
      ASSERT_EQ(tensor.data.size(), c.bytes);
      for (size_t i = 0; i < c.bytes; ++i)
        EXPECT_EQ(tensor.data[i], i);
    }
  // Of one dimension the order says nothing.
  EXPECT_EQ(parse(makeNpy(makeHeader("<f4", "(1, 3)", "True"), 12)).data.size(), 12u);
}

TEST(Npy, refuses_what_it_does_not_mean) {
  struct Case {
    std::string header;
    size_t bytes;
    const char *error;
  };
  const Case cases[] = {
      {makeHeader(">f4", "(2,)"), 8, "elements of type '>f4'"},
      {makeHeader("<c8", "(1,)"), 8, "elements of type '<c8'"},
      {makeHeader("|O", "(1,)"), 8, "elements of type '|O'"},
      {makeHeader("<f4", "(2, 2)", "True"), 16, "is in Fortran order"},
      {makeHeader("<f4", "(2, 2)", "Maybe"), 16, "expected False"},
      {makeHeader("<f4", "(2, 2)"), 15, "has 15 bytes of elements, its shape needs 16"},
      {makeHeader("<f4", "(2, 2)"), 17, "has 17 bytes of elements, its shape needs 16"},
      {makeHeader("<f4", "(4294967296, 4294967296)"), 4, "exceed 64 bits"},
      {makeHeader("<f4", "(99999999999999999999,)"), 4, "expected a size"},
      {makeHeader("<f4", "(-1,)"), 4, "expected a size"},
      {makeHeader("<f4", "(1)"), 4, "expected ,"},
      {makeHeader("<f4", "(1"), 4, "expected a size"},
      {makeHeader("<f4", "(1, 2 3)"), 4, "expected )"},
      {makeHeader("<f4", "[1]"), 4, "expected ("},
      {"{'descr': '<f4', 'shape': (1,)}", 4, "expected the keys"},
      {"{'descr': '<f4', 'descr': '<f4', 'shape': (1,)}", 4, "unknown or there twice"},
      {"{'other': '<f4'}", 4, "unknown or there twice"},
      {makeHeader("<f4", "(1,)") + "x", 4, "expected the end"},
      {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", 4, "expected a string"},
      {"{'descr': '<f4", 4, "expected a string"},
      {"", 4, "expected {"},
  };
  for (const Case &c : cases) {
    SCOPED_TRACE(c.header);
    EXPECT_ERROR(parse(makeNpy(c.header, c.bytes)), c.error);
    EXPECT_ERROR(parse(makeNpy(c.header, c.bytes)), "a.npy: ");
  }
  Bytes good = makeNpy(makeHeader("<f4", "(1,)"), 4), other = good;
  other[6] = 4;
  EXPECT_ERROR(parse(other), "version 4.0");
  other = good;
  other[9] = 255; // the header's length
  EXPECT_ERROR(parse(other), "the .npy header claims");
  other[0] = 'N';
  EXPECT_ERROR(parse(other), "is not a .npy file");
}

TEST(Npy, refuses_every_beginning) {
  Bytes good = makeNpy(makeHeader("<f4", "(2,)"), 8);
  EXPECT_EQ(parse(good).data.size(), 8u);
  for (size_t size = 0; size < good.size(); ++size)
    EXPECT_THROW(parse(Bytes(good.begin(), good.begin() + int64_t(size))), Error) << size;
}
