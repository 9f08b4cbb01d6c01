//===- CodeImage.cpp - Checks and maps an ELF object ----------------------===//

#include "CodeImage.h"

#include <algorithm>
#include <cstring>
#include <elf.h>
#include <optional>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

namespace weir::runtime {

#if defined(__x86_64__)
static constexpr Elf64_Half hostMachine = EM_X86_64;
static constexpr const char *hostName = "x86-64";
#elif defined(__aarch64__)
static constexpr Elf64_Half hostMachine = EM_AARCH64;
static constexpr const char *hostName = "aarch64";
#else
static constexpr Elf64_Half hostMachine = EM_NONE;
static constexpr const char *hostName = "an unknown machine";
#endif

/// More than the code of any model has, and far below what could wrap.
static constexpr uint64_t maxSpan = uint64_t(1) << 30;

namespace {
/// Reads an object whose every offset may be wrong.
class ElfReader {
public:
  ElfReader(const Bytes &object, const std::string &where) : object(object), where(where) {}

  struct Function {
    std::string name;
    uint64_t address;
  };

  void read();

  std::vector<Elf64_Phdr> segments; ///< to load, by address, disjoint
  uint64_t span = 0;                ///< bytes of memory from address 0
  std::vector<Function> functions;

private:
  [[noreturn]] void fail(const std::string &what) const {
    throw Error(where + " " + what + "; compile the graph again");
  }
  template <typename T> T get(uint64_t offset, const char *what) const;
  void readHeader();
  void addSegment(const Elf64_Phdr &segment);
  void readDynamic(const Elf64_Phdr &dynamic);
  void readSymbols(uint64_t symbols, uint64_t count, uint64_t strings, uint64_t stringBytes);
  uint64_t toOffset(uint64_t address, uint64_t bytes, const char *what) const;
  bool isCode(uint64_t address, uint64_t bytes) const;

  const Bytes &object;
  const std::string &where;
  Elf64_Ehdr header = {};
  uint64_t fileEnd = 0; ///< of the segments so far
};
} // namespace

template <typename T> T ElfReader::get(uint64_t offset, const char *what) const {
  if (offset > object.size() || object.size() - offset < sizeof(T))
    fail(std::string("is cut short: ") + what + " ends behind its " +
         std::to_string(object.size()) + " bytes");
  T value;
  std::memcpy(&value, object.data() + offset, sizeof(T));
  return value;
}

void ElfReader::readHeader() {
  header = get<Elf64_Ehdr>(0, "its header");
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
    fail("is not an ELF object");
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB ||
      header.e_ident[EI_VERSION] != EV_CURRENT || header.e_type != ET_DYN)
    fail("is not a shared ELF object of 64 bits, little-endian");
  if (header.e_machine != hostMachine)
    fail("has code of ELF machine " + std::to_string(header.e_machine) + ", and this is " +
         hostName);
  if (header.e_phentsize != sizeof(Elf64_Phdr))
    fail("has program headers of " + std::to_string(header.e_phentsize) + " bytes, expected " +
         std::to_string(sizeof(Elf64_Phdr)));
}

void ElfReader::addSegment(const Elf64_Phdr &segment) {
  uint64_t page = uint64_t(sysconf(_SC_PAGESIZE));
  if (segment.p_flags & PF_W)
    fail("has a writable segment, which kernels have no use for");
  if (segment.p_filesz != segment.p_memsz || segment.p_offset > object.size() ||
      segment.p_filesz > object.size() - segment.p_offset)
    fail("has a segment of " + std::to_string(segment.p_memsz) + " bytes at offset " +
         std::to_string(segment.p_offset) + ", which leaves its " + std::to_string(object.size()));
  if (segment.p_vaddr > maxSpan || segment.p_memsz > maxSpan - segment.p_vaddr)
    fail("spans more than " + std::to_string(maxSpan) + " bytes of memory");
  if (segment.p_offset % page != segment.p_vaddr % page)
    fail("has a segment that does not lie in the file as in memory");
  if (segment.p_offset < fileEnd)
    fail("has segments that share bytes of the file");
  fileEnd = segment.p_offset + segment.p_filesz;
  // Pages of different permissions are apart, so a segment begins on a page of its own.
  uint64_t first = segment.p_vaddr / page * page;
  if (first < span)
    fail("has segments that share a page");
  span = (segment.p_vaddr + segment.p_memsz + page - 1) / page * page;
  segments.push_back(segment);
}

uint64_t ElfReader::toOffset(uint64_t address, uint64_t bytes, const char *what) const {
  for (const Elf64_Phdr &segment : segments)
    if (address >= segment.p_vaddr && address - segment.p_vaddr <= segment.p_filesz &&
        bytes <= segment.p_filesz - (address - segment.p_vaddr))
      return segment.p_offset + (address - segment.p_vaddr);
  fail(std::string("has ") + what + " outside of its segments");
}

bool ElfReader::isCode(uint64_t address, uint64_t bytes) const {
  return std::any_of(segments.begin(), segments.end(), [&](const Elf64_Phdr &segment) {
    return (segment.p_flags & PF_X) && address >= segment.p_vaddr &&
           address - segment.p_vaddr < segment.p_memsz &&
           bytes <= segment.p_memsz - (address - segment.p_vaddr);
  });
}

void ElfReader::readDynamic(const Elf64_Phdr &dynamic) {
  std::map<Elf64_Sxword, uint64_t> found;
  uint64_t offset = toOffset(dynamic.p_vaddr, dynamic.p_filesz, "its dynamic section");
  for (uint64_t i = 0; i < dynamic.p_filesz / sizeof(Elf64_Dyn); ++i) {
    auto entry = get<Elf64_Dyn>(offset + i * sizeof(Elf64_Dyn), "its dynamic section");
    if (entry.d_tag == DT_NULL)
      break;
    found[entry.d_tag] = entry.d_un.d_val;
  }
  static constexpr std::pair<Elf64_Sxword, const char *> refused[] = {
      {DT_RELA, "relocations"},          {DT_REL, "relocations"},
      {DT_RELR, "relocations"},          {DT_JMPREL, "relocations"},
      {DT_TEXTREL, "relocations"},       {DT_NEEDED, "a library that it needs"},
      {DT_INIT, "code that runs first"}, {DT_INIT_ARRAY, "code that runs first"},
      {DT_FINI, "code that runs last"},  {DT_FINI_ARRAY, "code that runs last"}};
  for (auto [tag, what] : refused)
    if (found.count(tag))
      fail(std::string("has ") + what + ", which kernels have no use for");
  if (!found.count(DT_SYMTAB) || !found.count(DT_STRTAB) || !found.count(DT_STRSZ) ||
      !found.count(DT_HASH))
    fail("has no table of symbols");
  // The second number of the hash table is how many symbols there are.
  uint64_t hash = toOffset(found[DT_HASH], 8, "its hash table");
  readSymbols(found[DT_SYMTAB], get<uint32_t>(hash + 4, "its hash table"), found[DT_STRTAB],
              found[DT_STRSZ]);
}

void ElfReader::readSymbols(uint64_t symbols, uint64_t count, uint64_t strings,
                            uint64_t stringBytes) {
  uint64_t table = toOffset(symbols, count * sizeof(Elf64_Sym), "its symbols");
  uint64_t names = toOffset(strings, stringBytes, "its names");
  for (uint64_t i = 1; i < count; ++i) {
    auto symbol = get<Elf64_Sym>(table + i * sizeof(Elf64_Sym), "its symbols");
    if (symbol.st_name >= stringBytes)
      fail("has a symbol whose name is outside of its names");
    const char *begin = reinterpret_cast<const char *>(object.data()) + names + symbol.st_name;
    std::string name(begin, strnlen(begin, stringBytes - symbol.st_name));
    if (symbol.st_shndx == SHN_UNDEF)
      fail("calls '" + name + "', which it does not have");
    if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC)
      continue;
    if (!isCode(symbol.st_value, symbol.st_size))
      fail("has function '" + name + "' outside of its code");
    functions.push_back({std::move(name), symbol.st_value});
  }
}

void ElfReader::read() {
  readHeader();
  std::optional<Elf64_Phdr> dynamic;
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    auto segment = get<Elf64_Phdr>(header.e_phoff + i * sizeof(Elf64_Phdr), "its program headers");
    switch (segment.p_type) {
    case PT_LOAD:
      addSegment(segment);
      break;
    case PT_DYNAMIC:
      dynamic = segment;
      break;
    case PT_TLS:
      fail("has variables of each thread, which kernels have no use for");
    case PT_INTERP:
      fail("is a program, not a library");
    default:
      break; // says nothing about memory
    }
  }
  if (segments.empty() || !dynamic)
    fail("has no code");
  readDynamic(*dynamic);
}

CodeImage::CodeImage(const Bytes &object, const std::string &where) : where(where) {
  ElfReader reader(object, where);
  reader.read();
  void *memory =
      mmap(nullptr, reader.span, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    throw Error("there is no memory for the " + std::to_string(reader.span) + " bytes of " + where);
  base = memory;
  span = reader.span;
  char *bytes = static_cast<char *>(base);
  for (const Elf64_Phdr &segment : reader.segments)
    std::memcpy(bytes + segment.p_vaddr, object.data() + segment.p_offset, segment.p_filesz);
  // Pages of no segment stay without access.
  bool isProtected = mprotect(base, span, PROT_NONE) == 0;
  uint64_t page = uint64_t(sysconf(_SC_PAGESIZE));
  for (const Elf64_Phdr &segment : reader.segments) {
    uint64_t begin = segment.p_vaddr / page * page;
    uint64_t end = segment.p_vaddr + segment.p_memsz;
    int access = PROT_READ | (segment.p_flags & PF_X ? PROT_EXEC : 0);
    isProtected &= mprotect(bytes + begin, end - begin, access) == 0;
  }
  if (!isProtected) {
    munmap(base, span);
    throw Error("the system does not let the code of " + where + " run: " + std::strerror(errno));
  }
  __builtin___clear_cache(bytes, bytes + span);
  for (const ElfReader::Function &function : reader.functions)
    functions[function.name] = bytes + function.address;
}

CodeImage::~CodeImage() { munmap(base, span); }

void *CodeImage::find(const std::string &name) const {
  auto found = functions.find(name);
  if (found == functions.end())
    throw Error(where + " has no function '" + name + "'; compile the graph again");
  return found->second;
}

} // namespace weir::runtime
