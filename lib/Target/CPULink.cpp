//===- CPULink.cpp - One object of all kernels, by lld --------------------===//

#include "weir/Artifact/Error.h"
#include "weir/Target/Cpu.h"

#include "lld/Common/Driver.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

#include <mutex>

LLD_HAS_DRIVER(elf)

using namespace weir;

namespace {
/// A folder of temporary files, gone with this.
class TemporaryFolder {
public:
  TemporaryFolder() {
    if (std::error_code error = llvm::sys::fs::createUniqueDirectory("weir", path))
      throw Error("no temporary folder can be made to link code in: " + error.message());
  }
  ~TemporaryFolder() { llvm::sys::fs::remove_directories(path); }

  std::string get(const llvm::Twine &name) const {
    llvm::SmallString<128> file(path);
    llvm::sys::path::append(file, name);
    return file.str().str();
  }

private:
  llvm::SmallString<128> path;
};
} // namespace

static void writeObject(const std::string &path, llvm::StringRef object) {
  std::error_code error;
  llvm::raw_fd_ostream file(path, error);
  file << object;
  file.close();
  if (error || file.has_error()) {
    std::string message = error ? error.message() : file.error().message();
    file.clear_error();
    throw Error(path + " cannot be written: " + message);
  }
}

std::string weir::linkCpuObjects(llvm::ArrayRef<llvm::StringRef> objects) {
  static std::mutex oneAtATime; // lld keeps its state in globals
  std::lock_guard lock(oneAtATime);
  TemporaryFolder folder;
  std::string output = folder.get("kernels.so");
  std::vector<std::string> words = {"ld.lld", "-shared", "-o", output};
  // Nothing of elsewhere, nothing that is written or runs on loading, nothing but functions' names.
  for (const char *word :
       {"--no-undefined", "-z", "rodynamic", "-z", "norelro", "-z", "separate-code", "-z",
        "max-page-size=4096", "--hash-style=sysv", "--build-id=none", "--strip-all", "--threads=1"})
    words.push_back(word);
  for (auto [number, object] : llvm::enumerate(objects)) {
    words.push_back(folder.get(std::to_string(number) + ".o"));
    writeObject(words.back(), object);
  }
  std::vector<const char *> arguments;
  for (const std::string &word : words)
    arguments.push_back(word.c_str());
  std::string said;
  llvm::raw_string_ostream stream(said);
  lld::Result result = lld::lldMain(arguments, stream, stream, {{lld::Gnu, &lld::elf::link}});
  if (result.retCode != 0)
    throw Error("the kernels' code cannot be linked: " + said);
  auto linked = llvm::MemoryBuffer::getFile(output);
  if (!linked)
    throw Error(output + " cannot be read: " + linked.getError().message());
  return (*linked)->getBuffer().str();
}
