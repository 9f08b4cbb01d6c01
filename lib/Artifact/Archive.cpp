//===- Archive.cpp - ZIP files with stored entries ------------------------===//

#include "Parts.h"
#include "weir/Artifact/Error.h"
#include "weir/Artifact/FileKind.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <zip.h>

using namespace weir;

namespace {
struct Discard {
  void operator()(zip_t *archive) const { zip_discard(archive); }
  void operator()(zip_file_t *file) const { zip_fclose(file); }
};
} // namespace

static std::string describe(int code) {
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  std::string text = zip_error_strerror(&error);
  zip_error_fini(&error);
  return text;
}

/// Whether `path` is folders and a file separated by "/", each a valid `isFileName`.
static bool isSafePath(std::string_view path) {
  while (true) {
    size_t slash = path.find('/');
    if (!isFileName(path.substr(0, slash)))
      return false;
    if (slash == path.npos)
      return true;
    path.remove_prefix(slash + 1);
  }
}

void weir::writeArchive(const std::string &path, const Files &files, const CheckWritten &check) {
  replaceFile(path, [&](const std::string &temporary) {
    int code = 0;
    std::unique_ptr<zip_t, Discard> archive(
        zip_open(temporary.c_str(), ZIP_CREATE | ZIP_EXCL, &code));
    if (!archive)
      throw Error("cannot write \"" + path + "\": " + describe(code));
    auto fail = [&]() {
      throw Error("cannot write \"" + path + "\": " + zip_strerror(archive.get()));
    };
    for (const auto &[name, bytes] : files) {
      if (!isSafePath(name))
        throw Error("cannot write \"" + path + "\": \"" + name +
                    "\" cannot be a file's name in an artifact");
      zip_source_t *source = zip_source_buffer(archive.get(), bytes.data(), bytes.size(), 0);
      if (!source)
        fail();
      zip_int64_t index = zip_file_add(archive.get(), name.c_str(), source, ZIP_FL_ENC_UTF_8);
      if (index < 0) {
        zip_source_free(source);
        fail();
      }
      // 1 January 1980, 0:00, the first DOS time. Not a Unix time, which libzip would convert
      // by this machine's time zone.
      if (zip_set_file_compression(archive.get(), index, ZIP_CM_STORE, 0) ||
          zip_file_set_dostime(archive.get(), index, 0, (1 << 5) | 1, 0) ||
          zip_file_set_external_attributes(archive.get(), index, 0, ZIP_OPSYS_UNIX, 0100644u << 16))
        fail();
    }
    // libzip deletes an archive without entries instead of writing it.
    if (files.empty())
      throw Error("cannot write \"" + path + "\": there is nothing to write");
    if (zip_close(archive.get()))
      fail();
    archive.release();
    if (check)
      check(temporary);
  });
}

std::string weir::readBeginning(const std::string &path) {
  std::ifstream stream(path, std::ios::binary);
  std::string beginning(1 << 16, '\0');
  stream.read(beginning.data(), std::streamsize(beginning.size()));
  beginning.resize(size_t(stream.gcount()));
  return beginning;
}

/// Returns why libzip refused a file with `code`.
static std::string explain(const std::string &path, int code) {
  if (code == ZIP_ER_EXISTS)
    return "it holds two files of one name";
  if (code != ZIP_ER_NOZIP && code != ZIP_ER_INCONS)
    return describe(code);
  std::string beginning = readBeginning(path);
  if (beginning.starts_with("PK\3\4")) {
    Bytes bytes = readFile(path, "artifact");
    // libzip searches this many bytes for the record that ends a ZIP.
    constexpr std::string_view end = "PK\5\6";
    constexpr size_t maxBytes = 22 + 65535;
    auto from = bytes.size() > maxBytes ? bytes.end() - maxBytes : bytes.begin();
    if (std::search(from, bytes.end(), end.begin(), end.end()) == bytes.end())
      return "it is cut short: it begins as an artifact and lacks the directory that ends one; "
             "copy or compile it again";
    return describe(code);
  }
  std::string kind = describeNoArtifact(findFileKind(beginning), path);
  return kind.empty() ? describe(code) : kind;
}

/// Returns what a header says that no header of an artifact says, or "". `at` is its first byte;
/// those in front of a file and those of the directory are alike from their version to their
/// date, but for where that begins.
static std::string findOddHeader(std::span<const unsigned char> bytes, size_t at) {
  auto get = [&](size_t byte) { return unsigned(bytes[at + byte] | bytes[at + byte + 1] << 8); };
  constexpr unsigned maxVersion = 63, firstOf1980 = (1 << 5) | 1;
  if (get(0) > maxVersion)
    return "needs version " + std::to_string(get(0) / 10) + "." + std::to_string(get(0) % 10) +
           " of the format";
  if (get(2) != 0)
    return "has flags";
  if (get(6) != 0 || get(8) != firstOf1980)
    return "has a date other than 1 January 1980";
  return "";
}

/// Checks that a ZIP is headers and files, a directory and its end, one behind the other and
/// nothing between: other readers could see something else in it. Errors: `Error`.
static void checkLayout(const std::string &path, const Files &files, size_t fileBytes) {
  constexpr size_t headerBytes = 30, entryBytes = 46, endBytes = 22;
  if (fileBytes > UINT32_MAX)
    return; // larger ones have other headers beside these
  auto fail = [&](const std::string &complaint) {
    throw Error("cannot read artifact \"" + path + "\": " + complaint);
  };
  size_t wanted = endBytes;
  for (const auto &[name, content] : files)
    wanted += headerBytes + entryBytes + 2 * name.size() + content.size();
  if (wanted != fileBytes)
    fail("it has bytes that belong to none of its files");
  std::ifstream stream(path, std::ios::binary);
  auto read = [&](size_t from, size_t count) {
    Bytes bytes(count);
    stream.seekg(std::streamoff(from));
    stream.read(reinterpret_cast<char *>(bytes.data()), std::streamsize(count));
    if (!stream)
      fail("it became shorter while it was read");
    return bytes;
  };
  size_t header = 0, entry = 0;
  for (const auto &[name, content] : files)
    entry += headerBytes + name.size() + content.size();
  const Bytes directory = read(entry, fileBytes - entry);
  entry = 0;
  for (const auto &[name, content] : files) {
    const Bytes own = read(header, headerBytes);
    for (const std::string &odd : {findOddHeader(own, 4), findOddHeader(directory, entry + 6)})
      if (!odd.empty())
        fail("\"" + name + "\" " + odd);
    if (own[4] != directory[entry + 6])
      fail("\"" + name + "\" needs two versions of the format");
    header += headerBytes + name.size() + content.size();
    entry += entryBytes + name.size();
  }
}

Files weir::readArchive(const std::string &path) {
  auto fail = [&](const std::string &complaint) {
    throw Error("cannot read artifact \"" + path + "\": " + complaint);
  };
  std::error_code status;
  if (std::filesystem::is_directory(path, status))
    fail("it is a folder");
  int code = 0;
  std::unique_ptr<zip_t, Discard> archive(
      zip_open(path.c_str(), ZIP_RDONLY | ZIP_CHECKCONS, &code));
  if (!archive)
    fail(explain(path, code));
  const uint64_t fileBytes = std::filesystem::file_size(path, status);
  if (status)
    fail(status.message());
  uint64_t left = fileBytes;

  Files files;
  zip_int64_t count = zip_get_num_entries(archive.get(), 0);
  for (zip_int64_t i = 0; i < count; ++i) {
    zip_stat_t stat;
    if (zip_stat_index(archive.get(), i, ZIP_FL_ENC_RAW, &stat))
      fail(zip_strerror(archive.get()));
    constexpr zip_uint64_t needed = ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE |
                                    ZIP_STAT_COMP_METHOD | ZIP_STAT_ENCRYPTION_METHOD;
    if ((stat.valid & needed) != needed)
      fail("an entry lacks its name, sizes or method");
    std::string name = stat.name;
    if (!isSafePath(name))
      fail("\"" + name + "\" cannot be a file's name in an artifact");
    if (stat.comp_method != ZIP_CM_STORE || stat.encryption_method != ZIP_EM_NONE)
      fail("\"" + name + "\" is compressed or encrypted; artifacts store their files as they are");
    // Entries must not share bytes, so all of them together fit the file.
    if (stat.size != stat.comp_size || stat.size > left)
      fail("\"" + name + "\" claims more bytes than the file has");
    left -= stat.size;

    Bytes bytes(stat.size);
    std::unique_ptr<zip_file_t, Discard> file(zip_fopen_index(archive.get(), i, 0));
    if (!file)
      fail("\"" + name + "\": " + zip_strerror(archive.get()));
    uint64_t done = 0;
    // libzip checks the CRC when a read finds the end, so read beyond it.
    unsigned char beyond;
    while (true) {
      zip_int64_t got = done < stat.size
                            ? zip_fread(file.get(), bytes.data() + done, stat.size - done)
                            : zip_fread(file.get(), &beyond, 1);
      if (got < 0)
        fail("\"" + name + "\": " + zip_file_strerror(file.get()));
      if (got == 0)
        break;
      done += got;
    }
    if (done != stat.size)
      fail("\"" + name + "\" does not have the size that it claims");
    if (!files.empty() && files.rbegin()->first >= name)
      fail(files.contains(name) ? "it holds two files of one name, \"" + name + "\""
                                : "\"" + name + "\" stands behind \"" + files.rbegin()->first +
                                      "\"; an artifact's files are in the order of their names");
    files.emplace(name, std::move(bytes));
  }
  checkLayout(path, files, fileBytes);
  return files;
}
