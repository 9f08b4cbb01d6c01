//===- Fuzz.cpp - What programs that fuzz readers share -------------------===//

#include "Fuzz.h"

#include "nlohmann/json.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <sys/mman.h>
#include <unistd.h>

using namespace weir;
using namespace weir::fuzz;

void fuzz::expect(bool condition, const char *complaint) {
  if (condition)
    return;
  std::fprintf(stderr, "fuzz: %s\n", complaint);
  std::abort();
}

/// Whether `text` is UTF-8, by the library that the readers use for nothing but printing.
static bool isUtf8(const std::string &text) {
  try {
    nlohmann::json(text).dump();
    return true;
  } catch (const nlohmann::json::type_error &) {
    return false;
  }
}

void fuzz::expectReadable(const std::string &text) {
  expect(!text.empty(), "an empty sentence");
  expect(text.size() <= 16384, "a sentence of more than 16 KiB");
  expect(isUtf8(text), "a sentence that is not UTF-8");
  expect(std::none_of(text.begin(), text.end(),
                      [](unsigned char byte) {
                        return (byte < ' ' && byte != '\n' && byte != '\t') || byte == 0x7f;
                      }),
         "a sentence with control characters");
}

InputFile::InputFile(const uint8_t *data, size_t size) : file(memfd_create("input", MFD_CLOEXEC)) {
  expect(file >= 0, "no file in memory can be made");
  for (size_t done = 0; done < size;) {
    ssize_t written = write(file, data + done, size - done);
    expect(written > 0, "a file in memory cannot be written");
    done += size_t(written);
  }
  path = "/proc/self/fd/" + std::to_string(file);
}

InputFile::~InputFile() { close(file); }
