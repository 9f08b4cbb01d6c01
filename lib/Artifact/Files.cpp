//===- Files.cpp - Whole files, replaced at once --------------------------===//

#include "Parts.h"
#include "weir/Artifact/Error.h"

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <unistd.h>

using namespace weir;

Bytes weir::readFile(const std::string &path, const std::string &what) {
  auto fail = [&](const std::string &reason) {
    throw Error("cannot read " + what + " \"" + path + "\": " + reason);
  };
  std::error_code code;
  if (std::filesystem::is_directory(path, code))
    fail("it is a folder");
  std::ifstream stream(path, std::ios::binary);
  if (!stream)
    fail(std::strerror(errno));
  Bytes bytes;
  char block[1 << 16];
  while (stream.read(block, sizeof(block)) || stream.gcount())
    bytes.insert(bytes.end(), block, block + stream.gcount());
  if (stream.bad())
    fail("reading failed");
  return bytes;
}

/// Returns a name in the folder of `path` to write what becomes it under: unique among
/// the threads and the processes that may write this path. Errors: `Error` where a rename
/// would put a file in the place of a device or a pipe.
static std::string nameTemporary(const std::string &path) {
  static std::atomic<unsigned> count{0};
  std::error_code code;
  std::filesystem::file_status status = std::filesystem::status(path, code);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status))
    throw Error("cannot write \"" + path + "\": it is there and is no regular file");
  return path + ".tmp." + std::to_string(getpid()) + "." + std::to_string(count++);
}

void weir::replaceFile(const std::string &path,
                       const std::function<void(const std::string &temporary)> &write) {
  std::string temporary = nameTemporary(path);
  std::error_code code;
  try {
    write(temporary);
    std::filesystem::rename(temporary, path, code);
    if (code)
      throw Error("cannot write \"" + path + "\": " + code.message());
  } catch (...) {
    std::filesystem::remove(temporary, code);
    throw;
  }
}

/// Writes a file, not at once.
static void writeFile(const std::string &path, const std::string &temporary,
                      std::string_view text) {
  std::ofstream stream(temporary, std::ios::binary);
  stream.write(text.data(), std::streamsize(text.size()));
  stream.close();
  if (!stream)
    throw Error("cannot write \"" + path + "\": " + std::strerror(errno));
}

void weir::writeText(const std::string &path, std::string_view text) {
  replaceFile(path, [&](const std::string &temporary) { writeFile(path, temporary, text); });
}

void weir::checkWritable(const std::string &path) {
  std::string temporary = nameTemporary(path);
  writeFile(path, temporary, "");
  std::error_code code;
  std::filesystem::remove(temporary, code);
}
