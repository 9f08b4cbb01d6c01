//===- Fuzz.h - What programs that fuzz readers share -----------*- C++ -*-===//

#ifndef WEIR_TEST_FUZZ_FUZZ_H
#define WEIR_TEST_FUZZ_FUZZ_H

#include "weir/Artifact/Artifact.h"

#include <cstdint>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

namespace weir::fuzz {

/// Stops the program unless `condition` holds, so that libFuzzer keeps the input.
void expect(bool condition, const char *complaint);

/// Stops the program unless people can read `text`: not empty, at most 16 KiB, UTF-8, no control
/// characters but line feeds and tabs.
void expectReadable(const std::string &text);

/// Calls `read` on an input. An `Error` that people can read is an answer; anything else that
/// leaves `read` stops the program.
template <typename Read> int expectAnswer(Read read) {
  try {
    read();
  } catch (const Error &error) {
    expectReadable(error.what());
  }
  return 0;
}

/// Reads a text, and expects that what is printed of the result is read as the same.
template <typename Parse, typename Print>
int expectRoundTrip(const uint8_t *data, size_t size, Parse parse, Print print) {
  std::string text(data, data + size);
  return expectAnswer([&] {
    auto value = parse(text, "input.json");
    std::string printed = print(value);
    expect(print(parse(printed, "printed.json")) == printed, "printing changes what is read");
  });
}

/// A file in memory with the bytes of an input.
class InputFile {
public:
  InputFile(const uint8_t *data, size_t size);
  ~InputFile();
  InputFile(const InputFile &) = delete;
  InputFile &operator=(const InputFile &) = delete;
  std::string path;

private:
  int file;
};

} // namespace weir::fuzz

#endif // WEIR_TEST_FUZZ_FUZZ_H
