//===- PTXCheck.cpp - Reads emitted PTX again -----------------------------===//
//
// ptxas takes what is wrong here: an approximate root, a flushed denormal, a
// product that the driver may contract, a load that another operand's stores
// don't reach. So the text is read, instruction by instruction.
//
//===----------------------------------------------------------------------===//

#include "weir/Target/Ptx.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace weir;

/// Returns the parts of an instruction's name, "mul", "rn", "f32"; none for a directive,
/// a label or an empty line.
static SmallVector<StringRef> getOpcode(StringRef line) {
  if (line.starts_with("@"))
    line = line.drop_until(llvm::isSpace).ltrim();
  StringRef name = line.take_until([](char c) { return llvm::isSpace(c) || c == ';'; });
  SmallVector<StringRef> parts;
  if (!name.empty() && llvm::isAlpha(name.front()) && !name.ends_with(":"))
    name.split(parts, '.');
  return parts;
}

static std::string findInstructionError(ArrayRef<StringRef> opcode) {
  auto has = [&](StringRef part) { return llvm::is_contained(opcode, part); };
  StringRef name = opcode.front();
  bool isFloat = has("f16") || has("f16x2") || has("bf16") || has("bf16x2") || has("f32") ||
                 has("f32x2") || has("f64");
  bool rounds = name == "add" || name == "sub" || name == "mul" || name == "mad" || name == "fma" ||
                name == "div" || name == "sqrt" || name == "rcp";
  if (isFloat && rounds && !has("rn"))
    return "does not round to nearest";
  if (has("ftz"))
    return "flushes denormals";
  if (has("approx"))
    return "is approximate";
  if (name == "ld" && has("nc"))
    return "reads past what other operands' stores write";
  if (name == "call")
    return "calls a function";
  return "";
}

std::optional<std::string> weir::findPtxError(StringRef text, const Profile &profile,
                                              StringRef entryPoint, unsigned operands,
                                              ArrayRef<int32_t> workgroup, bool hasLaunchMemory,
                                              unsigned tensorMaps) {
  StringRef version = StringRef(profile.api);
  version.consume_front("ptx");
  std::string target = profile.getChip();
  std::string size = llvm::formatv("{0}, {1}, {2}", workgroup[0], workgroup[1], workgroup[2]);
  StringRef foundVersion, foundTarget, foundEntry, foundSize;
  unsigned entries = 0, parameters = 0, launchMemories = 0, maps = 0;
  for (StringRef rest = text; !rest.empty();) {
    StringRef line;
    std::tie(line, rest) = rest.split('\n');
    line = line.split("//").first.trim();
    if (line.consume_front(".version "))
      foundVersion = line.trim();
    else if (line.consume_front(".target "))
      foundTarget = line.trim();
    else if (line.consume_front(".visible .entry ") || line.consume_front(".entry ")) {
      ++entries;
      foundEntry = line.take_until([](char c) { return c == '('; });
    } else if (line.starts_with(".param .u64 "))
      ++parameters;
    else if (line.starts_with(".param .align 64 .b8 ") && line.trim(",").ends_with("[128]"))
      ++maps;
    else if (line.starts_with(".param "))
      return "a parameter is not an address: " + line.str();
    else if (line.consume_front(".reqntid "))
      foundSize = line.trim();
    else if (line.starts_with(".extern .shared ") && line.ends_with("[];"))
      ++launchMemories;
    else if (line.starts_with(".extern") || line.starts_with(".visible") ||
             line.starts_with(".func") || line.starts_with(".weak"))
      return "it declares a symbol beside the entry: " + line.str();
    SmallVector<StringRef> opcode = getOpcode(line);
    if (opcode.empty())
      continue;
    if (std::string error = findInstructionError(opcode); !error.empty())
      return llvm::formatv("'{0}' {1}", llvm::join(opcode, "."), error).str();
  }
  if (foundVersion != version || foundTarget != target)
    return llvm::formatv("it is of PTX {0} for {1}, not of {2} for {3}", foundVersion, foundTarget,
                         version, target)
        .str();
  if (entries != 1 || foundEntry != entryPoint)
    return "its one entry is not called " + entryPoint.str();
  if (launchMemories != (hasLaunchMemory ? 1 : 0))
    return llvm::formatv("it declares {0} variables whose size its launch states, expected {1}",
                         launchMemories, hasLaunchMemory ? 1 : 0)
        .str();
  if (parameters != operands)
    return llvm::formatv("it has {0} parameters for {1} operands", parameters, operands).str();
  if (maps != tensorMaps)
    return llvm::formatv("it has {0} tensor maps, expected {1}", maps, tensorMaps).str();
  if (foundSize != size)
    return llvm::formatv("its workgroup is '{0}', not '{1}'", foundSize, size).str();
  return std::nullopt;
}
