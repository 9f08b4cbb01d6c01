//===- Files.cpp - Whole files, replaced at once --------------------------===//

#include "Parts.h"
#include "weir/Artifact/Error.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <limits.h>
#include <optional>
#include <stdlib.h>
#include <sys/syscall.h>
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

ScratchFolder::ScratchFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "weir-XXXXXX").string();
  if (!mkdtemp(name.data()))
    throw Error("no temporary folder can be made as " + name + "; set TMPDIR to one that can");
  path = name;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}

//===----------------------------------------------------------------------===//
// Files that are being written
//===----------------------------------------------------------------------===//

namespace {
/// The name of a temporary file, where a handler of signals finds it.
struct Unfinished {
  std::atomic<bool> isTaken{false}, isWritten{false};
  char path[PATH_MAX];
};

/// Keeps a name in a slot. Without a free one it does nothing: a signal then leaves the file.
class UnfinishedFile {
public:
  explicit UnfinishedFile(const std::string &path);
  ~UnfinishedFile();

private:
  Unfinished *slot = nullptr;
};
} // namespace

static std::array<Unfinished, 8> unfinished;

UnfinishedFile::UnfinishedFile(const std::string &path) {
  if (path.size() >= PATH_MAX)
    return;
  for (Unfinished &each : unfinished) {
    if (each.isTaken.exchange(true))
      continue;
    slot = &each;
    std::memcpy(slot->path, path.c_str(), path.size() + 1);
    slot->isWritten = true;
    return;
  }
}

UnfinishedFile::~UnfinishedFile() {
  if (!slot)
    return;
  slot->isWritten = false;
  slot->isTaken = false;
}

/// Removes the files whose paths begin with `path`: libzip adds letters to the name while it
/// writes.
static void removeBeginningWith(char *path) noexcept {
  char *slash = std::strrchr(path, '/');
  const char *name = slash ? slash + 1 : path;
  size_t length = std::strlen(name);
  if (slash)
    *slash = 0;
  const char *folder = !slash ? "." : slash == path ? "/" : path;
  int opened = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  // Not readdir, which allocates: the signal may have come inside of malloc.
  alignas(dirent64) static char entries[1 << 14];
  for (long bytes; (bytes = syscall(SYS_getdents64, opened, entries, sizeof(entries))) > 0;)
    for (long at = 0; at < bytes;) {
      auto *entry = reinterpret_cast<const dirent64 *>(entries + at);
      if (std::strncmp(entry->d_name, name, length) == 0)
        unlinkat(opened, entry->d_name, 0);
      at += entry->d_reclen;
    }
}

void weir::removeUnfinishedFiles() noexcept {
  for (Unfinished &each : unfinished)
    if (each.isWritten)
      removeBeginningWith(each.path);
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

namespace {
/// A file to write, and the temporary file that is written first. Removes that file at the end.
struct Target {
  explicit Target(const std::string &path);
  Target(const Target &) = delete;
  Target &operator=(const Target &) = delete;
  ~Target();

  /// The file that links lead to, so that a rename keeps the link.
  std::filesystem::path file;
  std::string temporary;
  /// Folder of the temporary file for a device, which is copied to and never replaced.
  std::optional<ScratchFolder> elsewhere;
};
} // namespace

/// Chooses a temporary name that is unique among all threads and processes writing this path.
/// Errors: `Error` if a rename would replace a folder or a pipe.
Target::Target(const std::string &path) : file(path) {
  if (path == "-")
    throw Error("cannot write \"-\": standard output is not written here; name a file, or ./- for "
                "a file of that name");
  std::error_code code;
  if (std::filesystem::exists(path, code))
    file = std::filesystem::canonical(path);
  std::filesystem::file_status status = std::filesystem::status(path, code);
  if (std::filesystem::is_character_file(status)) {
    temporary = elsewhere.emplace().path / "made";
    return;
  }
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status))
    throw Error("cannot write \"" + path + "\": it exists and is not a regular file");
  static std::atomic<unsigned> count{0};
  temporary = file.string() + ".tmp." + std::to_string(getpid()) + "." + std::to_string(count++);
}

Target::~Target() {
  std::error_code code; // it is gone if it was renamed
  std::filesystem::remove(temporary, code);
}

/// Copies the finished temporary file to a device.
static void copyTo(const Target &target, const std::string &path) {
  std::ifstream source(target.temporary, std::ios::binary);
  std::ofstream device(target.file, std::ios::binary);
  if (source.peek() != std::ifstream::traits_type::eof())
    device << source.rdbuf();
  device.close();
  if (!source || !device)
    throw Error("cannot write \"" + path + "\": " + std::strerror(errno));
}

void weir::replaceFile(const std::string &path,
                       const std::function<void(const std::string &temporary)> &write) {
  Target target(path);
  UnfinishedFile unfinished(target.temporary);
  write(target.temporary);
  if (target.elsewhere)
    return copyTo(target, path);
  std::error_code code;
  std::filesystem::rename(target.temporary, target.file, code);
  if (code)
    throw Error("cannot write \"" + path + "\": " + code.message());
}

/// Writes a file directly, without the rename.
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
  Target target(path);
  UnfinishedFile unfinished(target.temporary);
  writeFile(path, target.temporary, "");
}
