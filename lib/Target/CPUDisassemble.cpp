//===- CPUDisassemble.cpp - Machine code as text --------------------------===//

#include "weir/Artifact/Error.h"
#include "weir/Target/Cpu.h"

#include "llvm/MC/MCAsmInfo.h"
#include "llvm/MC/MCContext.h"
#include "llvm/MC/MCDisassembler/MCDisassembler.h"
#include "llvm/MC/MCInst.h"
#include "llvm/MC/MCInstPrinter.h"
#include "llvm/MC/MCInstrInfo.h"
#include "llvm/MC/MCRegisterInfo.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/TargetSelect.h"

using namespace weir;

namespace {
/// Prints functions of one instruction set.
class Disassembler {
public:
  explicit Disassembler(const llvm::Triple &triple);

  void print(llvm::raw_ostream &out, llvm::ArrayRef<uint8_t> code, uint64_t address);

private:
  const llvm::Target *target;
  llvm::Triple triple;
  std::unique_ptr<llvm::MCRegisterInfo> registers;
  std::unique_ptr<llvm::MCAsmInfo> syntax;
  std::unique_ptr<llvm::MCInstrInfo> instructions;
  std::unique_ptr<llvm::MCSubtargetInfo> features;
  std::unique_ptr<llvm::MCContext> context;
  std::unique_ptr<llvm::MCDisassembler> decoder;
  std::unique_ptr<llvm::MCInstPrinter> printer;
};
} // namespace

static const llvm::Target *findTarget(const llvm::Triple &triple) {
  LLVMInitializeX86TargetInfo();
  LLVMInitializeX86TargetMC();
  LLVMInitializeX86Disassembler();
  LLVMInitializeAArch64TargetInfo();
  LLVMInitializeAArch64TargetMC();
  LLVMInitializeAArch64Disassembler();
  std::string error;
  const llvm::Target *target = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target)
    throw Error("this LLVM reads no code for " + triple.str() + ": " + error);
  return target;
}

Disassembler::Disassembler(const llvm::Triple &triple)
    : target(findTarget(triple)), triple(triple), registers(target->createMCRegInfo(triple)),
      syntax(target->createMCAsmInfo(*registers, triple, llvm::MCTargetOptions())),
      instructions(target->createMCInstrInfo()),
      features(
          target->createMCSubtargetInfo(triple, triple.isAArch64() ? "generic" : "x86-64-v4", "")),
      context(
          std::make_unique<llvm::MCContext>(triple, syntax.get(), registers.get(), features.get())),
      decoder(target->createMCDisassembler(*features, *context)),
      printer(target->createMCInstPrinter(triple, /*SyntaxVariant=*/triple.isX86() ? 1 : 0, *syntax,
                                          *instructions, *registers)) {
  printer->setPrintBranchImmAsAddress(true);
  printer->setPrintImmHex(true);
}

void Disassembler::print(llvm::raw_ostream &out, llvm::ArrayRef<uint8_t> code, uint64_t address) {
  for (uint64_t offset = 0; offset < code.size();) {
    llvm::MCInst instruction;
    uint64_t size = 0;
    auto status = decoder->getInstruction(instruction, size, code.drop_front(offset),
                                          address + offset, llvm::nulls());
    out << llvm::formatv("{0,8:x-}:", address + offset);
    if (status == llvm::MCDisassembler::Success) {
      printer->printInst(&instruction, address + offset, "", *features, out);
    } else {
      size = std::max<uint64_t>(size, 1);
      out << "\t(no instruction)";
    }
    out << "\n";
    offset += size;
  }
}

std::string weir::disassembleCpu(llvm::StringRef object) {
  auto describe = [](llvm::Error error) {
    return Error("the kernels' code cannot be read: " + llvm::toString(std::move(error)));
  };
  llvm::Expected<std::unique_ptr<llvm::object::ObjectFile>> file =
      llvm::object::ObjectFile::createELFObjectFile(llvm::MemoryBufferRef(object, "kernels.so"));
  if (!file)
    throw describe(file.takeError());
  const auto &elf = llvm::cast<llvm::object::ELFObjectFileBase>(**file);
  Disassembler disassembler(elf.makeTriple());
  std::string text;
  llvm::raw_string_ostream out(text);
  for (const llvm::object::ELFSymbolRef &symbol : elf.getDynamicSymbolIterators()) {
    llvm::Expected<llvm::StringRef> name = symbol.getName();
    llvm::Expected<llvm::object::section_iterator> section = symbol.getSection();
    llvm::Expected<uint64_t> address = symbol.getAddress();
    if (llvm::Error error = llvm::joinErrors(
            name.takeError(), llvm::joinErrors(section.takeError(), address.takeError())))
      throw describe(std::move(error));
    if (*section == elf.section_end() || symbol.getELFType() != llvm::ELF::STT_FUNC)
      continue;
    llvm::Expected<llvm::StringRef> bytes = (*section)->getContents();
    if (!bytes)
      throw describe(bytes.takeError());
    uint64_t begin = *address - (*section)->getAddress(), size = symbol.getSize();
    if (begin > bytes->size() || size > bytes->size() - begin)
      throw Error("the kernels' code cannot be read: " + name->str() + " lies outside its section");
    out << name->str() << ": " << size << " bytes\n";
    disassembler.print(out, llvm::arrayRefFromStringRef(bytes->substr(begin, size)), *address);
    out << "\n";
  }
  return text;
}
