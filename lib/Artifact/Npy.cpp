//===- Npy.cpp - NumPy's file of one array --------------------------------===//
//
// Magic, version, header length, a Python dictionary of three keys as text, and the
// elements. numpy.lib.format describes versions 1 to 3.
//
//===----------------------------------------------------------------------===//

#include "weir/Artifact/Artifact.h"

#include <charconv>
#include <optional>

using namespace weir;

static constexpr std::string_view magic = "\x93NUMPY";

namespace {
/// Reads the header's dictionary. Errors of all calls: `Error` at the first unexpected
/// character.
class HeaderReader {
public:
  HeaderReader(std::string_view text, const std::string &where) : rest(text), where(where) {}

  struct Header {
    std::optional<std::string> type;
    std::optional<bool> isFortran;
    std::optional<std::vector<int64_t>> shape;
  };
  Header read();

private:
  void skipSpace() { rest.remove_prefix(std::min(rest.find_first_not_of(" \n"), rest.size())); }
  bool take(std::string_view word) {
    skipSpace();
    if (!rest.starts_with(word))
      return false;
    rest.remove_prefix(word.size());
    return true;
  }
  void expect(std::string_view word) {
    if (!take(word))
      fail("expected " + std::string(word));
  }
  [[noreturn]] void fail(const std::string &what) {
    throw Error(where + ": the .npy header is malformed: " + what + " at \"" +
                std::string(rest.substr(0, 20)) + "\"");
  }
  bool readBool() {
    bool isTrue = take("True");
    if (!isTrue)
      expect("False");
    return isTrue;
  }
  std::string readString();
  std::vector<int64_t> readShape();

  std::string_view rest;
  const std::string &where;
};
} // namespace

std::string HeaderReader::readString() {
  skipSpace();
  char quote = rest.empty() ? ' ' : rest.front();
  size_t end = rest.find(quote, 1);
  if ((quote != '\'' && quote != '"') || end == rest.npos)
    fail("expected a string");
  std::string text(rest.substr(1, end - 1));
  rest.remove_prefix(end + 1);
  return text;
}

/// Reads "()", "(3,)" or "(3, 4)".
std::vector<int64_t> HeaderReader::readShape() {
  std::vector<int64_t> shape;
  expect("(");
  while (!take(")")) {
    skipSpace();
    int64_t size = -1;
    auto [end, code] = std::from_chars(rest.data(), rest.data() + rest.size(), size);
    if (code != std::errc() || size < 0)
      fail("expected a size");
    rest.remove_prefix(size_t(end - rest.data()));
    shape.push_back(size);
    if (take(","))
      continue;
    if (shape.size() == 1) // (3) is a number, not a tuple
      fail("expected ,");
    expect(")");
    break;
  }
  return shape;
}

HeaderReader::Header HeaderReader::read() {
  Header header;
  expect("{");
  while (!take("}")) {
    std::string key = readString();
    expect(":");
    if (key == "descr" && !header.type)
      header.type = readString();
    else if (key == "fortran_order" && !header.isFortran)
      header.isFortran = readBool();
    else if (key == "shape" && !header.shape)
      header.shape = readShape();
    else
      fail("key '" + key + "' is unknown or there twice");
    if (!take(",")) {
      expect("}");
      break;
    }
  }
  skipSpace();
  if (!rest.empty())
    fail("expected the end");
  if (!header.type || !header.isFortran || !header.shape)
    fail("expected the keys descr, fortran_order and shape");
  return header;
}

/// Returns the type that NumPy calls `name`, or "".
static DType getDType(std::string_view name) {
  static constexpr std::pair<std::string_view, const char *> types[] = {
      {"<f8", "F64"}, {"<f4", "F32"}, {"<f2", "F16"}, {"<i8", "I64"},
      {"<i4", "I32"}, {"<i2", "I16"}, {"|i1", "I8"},  {"<u8", "U64"},
      {"<u4", "U32"}, {"<u2", "U16"}, {"|u1", "U8"},  {"|b1", "BOOL"}};
  for (auto [text, type] : types)
    if (name == text)
      return type;
  return "";
}

Tensor weir::parseNpy(const Bytes &bytes, const std::string &where) {
  auto fail = [&](const std::string &complaint) { throw Error(where + ": " + complaint); };
  std::string_view text(reinterpret_cast<const char *>(bytes.data()), bytes.size());
  if (!text.starts_with(magic) || bytes.size() < 10)
    fail("is not a .npy file: it does not begin with \"\\x93NUMPY\", a version and a length");
  unsigned version = bytes[6];
  if (version < 1 || version > 3 || bytes[7] != 0)
    fail("is of .npy version " + std::to_string(version) + "." + std::to_string(bytes[7]) +
         "; versions 1.0 to 3.0 are read");
  size_t lengthBytes = version == 1 ? 2 : 4, begin = 8 + lengthBytes;
  if (bytes.size() < begin)
    fail("ends before its .npy header");
  uint64_t length = 0;
  for (size_t i = 0; i < lengthBytes; ++i)
    length |= uint64_t(bytes[8 + i]) << (8 * i);
  if (length > bytes.size() - begin)
    fail("the .npy header claims " + std::to_string(length) + " bytes, the file has " +
         std::to_string(bytes.size() - begin) + " after the length");
  HeaderReader::Header header = HeaderReader(text.substr(begin, length), where).read();
  DType dtype = getDType(*header.type);
  if (dtype.empty())
    fail("holds elements of type '" + *header.type +
         "'; floats, integers and booleans in little-endian order are read: convert it with "
         "astype");
  // With at most one dimension longer than 1, Fortran order equals C order.
  size_t longer = 0;
  for (int64_t size : *header.shape)
    longer += size > 1;
  if (*header.isFortran && longer > 1)
    fail("is in Fortran order; save numpy.ascontiguousarray(...) of it");
  Tensor tensor;
  tensor.spec.dtype = dtype;
  tensor.spec.shape = *header.shape;
  int64_t needed = 0;
  try {
    needed = getByteSize(tensor.spec);
  } catch (const Error &error) {
    fail(error.what());
  }
  uint64_t data = bytes.size() - begin - length;
  if (uint64_t(needed) != data)
    fail("has " + std::to_string(data) + " bytes of elements, its shape needs " +
         std::to_string(needed));
  tensor.data.assign(bytes.begin() + int64_t(begin + length), bytes.end());
  return tensor;
}

Tensor weir::readNpy(const std::string &path) { return parseNpy(readFile(path, "array"), path); }
