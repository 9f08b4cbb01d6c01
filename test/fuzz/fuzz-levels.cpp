//===- fuzz-levels.cpp - Edited texts of every level --------------------===//
//
// An input edits the words and lines of a module of some level, from which the compiler then
// starts. Whatever the text has become, it is compiled or gets sentences that people can read.
// The compiler is not instrumented: inputs are made up without knowing what they reach.
//
//===----------------------------------------------------------------------===//

#include "Fuzz.h"
#include "driver/Compiler/Compiler.h"

#include <algorithm>
#include <random>

using namespace weir;
using namespace weir::fuzz;

namespace {
/// A module's text as words and what is between them, one line behind the other.
struct Text {
  std::string level, target;
  std::vector<std::string> tokens;
};
} // namespace

static constexpr size_t editBytes = 6, maxEdits = 6;

/// Texts that stand where others should.
static const char *const strange[] = {"0",
                                      "-1",
                                      "1",
                                      "3",
                                      "4294967296",
                                      "9223372036854775807",
                                      "9999999999999999999999",
                                      "0x7F800001",
                                      "1.0e+400",
                                      "f64",
                                      "f16",
                                      "i1",
                                      "i7",
                                      "index",
                                      "none",
                                      "complex<f32>",
                                      "vector<4xf32>",
                                      "tensor<?x?xf32>",
                                      "tensor<0xf32>",
                                      "tensor<*xf32>",
                                      "tensor<70000x70000xf32>",
                                      "memref<?xf32, strided<[?], offset: ?>>",
                                      "affine_map<(d0) -> (d0 floordiv 0)>",
                                      "dense<1>",
                                      "dense_resource<x>",
                                      "@main",
                                      "%0",
                                      "%arg0",
                                      "\"\"",
                                      "{",
                                      "}",
                                      "(",
                                      ">",
                                      "unit",
                                      "loc(unknown)",
                                      "true",
                                      "arith.divsi",
                                      "func.call",
                                      "scf.while",
                                      "schedule.barrier",
                                      "norm.layer_norm"};

/// Splits a text into words, single signs, strings and runs of blanks. Line ends are tokens.
static std::vector<std::string> split(const std::string &text) {
  auto isWord = [](char c) {
    return std::isalnum(uint8_t(c)) || c == '_' || c == '.' || c == '%' || c == '@' || c == '#';
  };
  std::vector<std::string> tokens;
  for (size_t at = 0; at < text.size();) {
    size_t end = at + 1;
    if (text[at] == '"') {
      end = text.find('"', end);
      end = end == text.npos ? text.size() : end + 1;
    } else if (text[at] == ' ') {
      end = std::min(text.find_first_not_of(' ', at), text.size());
    } else if (isWord(text[at])) {
      while (end < text.size() && isWord(text[end]))
        ++end;
    }
    tokens.push_back(text.substr(at, end - at));
    at = end;
  }
  return tokens;
}

/// Reads WEIR_FUZZ_LEVELS/TARGET-GRAPH/LEVEL.mlir.
static std::vector<Text> readTexts() {
  std::vector<std::filesystem::path> paths;
  for (const auto &each : std::filesystem::recursive_directory_iterator(WEIR_FUZZ_LEVELS))
    if (each.path().extension() == ".mlir")
      paths.push_back(each.path());
  std::sort(paths.begin(), paths.end());
  std::vector<Text> texts;
  for (const std::filesystem::path &path : paths) {
    const std::string folder = path.parent_path().filename().string();
    const Bytes bytes = readFile(path.string(), "module");
    texts.push_back({path.stem().string(), folder.substr(0, folder.find('-')),
                     split(std::string(bytes.begin(), bytes.end()))});
  }
  expect(!texts.empty(), "there are no modules in " WEIR_FUZZ_LEVELS);
  return texts;
}

/// Returns the tokens [begin, end) of the line around one.
static std::pair<size_t, size_t> findLine(const std::vector<std::string> &tokens, size_t at) {
  size_t begin = at, end = at;
  while (begin > 0 && tokens[begin - 1] != "\n")
    --begin;
  while (end < tokens.size() && tokens[end] != "\n")
    ++end;
  return {begin, std::min(end + 1, tokens.size())};
}

static void edit(std::vector<std::string> &tokens, const uint8_t *bytes,
                 const std::vector<std::string> &others) {
  if (tokens.empty())
    return;
  const size_t at = (size_t(bytes[1]) << 8 | bytes[2]) % tokens.size(),
               from = (size_t(bytes[3]) << 8 | bytes[4]) % tokens.size();
  auto [begin, end] = findLine(tokens, at);
  std::vector<std::string> line(tokens.begin() + int64_t(begin), tokens.begin() + int64_t(end));
  switch (bytes[0] % 8) {
  case 0:
    tokens[at] = tokens[from];
    break;
  case 1:
    tokens[at] = strange[bytes[5] % std::size(strange)];
    break;
  case 2:
    tokens.erase(tokens.begin() + int64_t(at));
    break;
  case 3:
    std::swap(tokens[at], tokens[from]);
    break;
  case 4:
    tokens.erase(tokens.begin() + int64_t(begin), tokens.begin() + int64_t(end));
    break;
  case 5: // a line once more, elsewhere
    tokens.insert(tokens.begin() + int64_t(findLine(tokens, from).first), line.begin(), line.end());
    break;
  case 6: { // a line of another module
    const auto [first, last] = findLine(others, (size_t(bytes[3]) << 8 | bytes[4]) % others.size());
    tokens.insert(tokens.begin() + int64_t(begin), others.begin() + int64_t(first),
                  others.begin() + int64_t(last));
    break;
  }
  default:
    tokens.insert(tokens.begin() + int64_t(at), strange[bytes[5] % std::size(strange)]);
  }
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const std::vector<Text> texts = readTexts();
  static const ScratchFolder folder;
  if (size < 2)
    return -1;
  const Text &text = texts[data[0] % texts.size()], &other = texts[data[1] % texts.size()];
  std::vector<std::string> tokens = text.tokens;
  for (size_t i = 0; i < maxEdits && 2 + (i + 1) * editBytes <= size; ++i)
    edit(tokens, data + 2 + i * editBytes, other.tokens);
  std::string whole;
  for (const std::string &token : tokens)
    whole += token;
  CompileOptions options;
  options.input = folder.path / "input.mlir";
  options.output = folder.path / "output.weir";
  options.targets = {text.target};
  options.startFrom = text.level;
  writeText(options.input, whole);
  try {
    compile(options);
  } catch (const CompileError &error) {
    expect(!error.problems.empty(), "an error without a sentence");
    for (const std::string &problem : error.problems)
      expectReadable(problem);
  } catch (const Error &error) {
    expectReadable(error.what());
  }
  return 0;
}
