//===- PtxMutants.cpp - PTX with one instruction changed ------------------===//
//
// Edits the text as LLVM writes it, one statement a line, with a search of its own: lib/PtxReader
// keeps no places. All else stays byte for byte, line by line.
//
//===----------------------------------------------------------------------===//

#include "CodeMutants.h"
#include "weir/Artifact/Error.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

using namespace weir;
using namespace weir::mutate;

/// Max number of instructions of one kind that are changed in a kernel; unrolled loops have
/// hundreds of alike ones.
static constexpr size_t maxAlike = 8;

namespace {

/// A statement of the text, without its ';'.
struct Line {
  size_t begin, end;         ///< bytes of the text, from the guard or the name on
  std::string_view guard;    ///< "@%p1 " with its blank, or ""
  std::string_view name;     ///< "ld.global.v4.b32"
  std::string_view operands; ///< "{%r1, %r2}, [%rd1]"
  std::string_view label;    ///< "$L__BB0_3" if the line is a label; all else is empty then
};

/// Bytes [begin, end) of the text become `text`.
struct Edit {
  size_t begin, end;
  std::string text;
};

class PtxChanger {
public:
  PtxChanger(const Kernel &kernel, const Bytes &code)
      : kernel(kernel), text(reinterpret_cast<const char *>(code.data()), code.size()) {
    readLines();
  }
  std::vector<CodeChange> list();

private:
  void readLines();
  void changeBarrier(const Line &line);
  void changeWait(const Line &line, const std::string &what);
  void changePhaseWait(size_t number);
  void cutMask(const Line &line);
  void changeStore(const Line &line);
  void changeGuard(size_t number);
  std::optional<size_t> findSkipped(size_t number) const;

  /// Adds a change of an instruction, the `count`-th of its kind.
  void add(const std::string &kind, const Line &line, const std::string &what, Edit edit);
  size_t place(std::string_view part) const { return size_t(part.data() - text.data()); }

  const Kernel &kernel;
  std::string_view text;
  std::vector<Line> lines;
  std::map<std::string, std::vector<CodeChange>> changes; ///< by kind
};

} // namespace

static std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t'))
    text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t'))
    text.remove_suffix(1);
  return text;
}

/// Reads the lines of the kernel's entry.
void PtxChanger::readLines() {
  size_t at = text.find(".entry " + kernel.name + "(");
  at = at == text.npos ? at : text.find("\n{", at);
  size_t last = at == text.npos ? at : text.find("\n}", at);
  if (last == text.npos)
    throw Error(kernel.code + ": weir-mutate finds no entry \"" + kernel.name +
                "\" as LLVM writes it");
  while (at < last) {
    size_t begin = at + 1;
    at = std::min(text.find('\n', begin), last);
    std::string_view whole = trim(text.substr(begin, at - begin));
    Line line{};
    if (whole.ends_with(':')) {
      line.label = whole.substr(0, whole.size() - 1);
    } else if (whole.ends_with(';') && !whole.starts_with('.')) {
      whole = trim(whole.substr(0, whole.size() - 1));
      line.begin = place(whole);
      line.end = line.begin + whole.size();
      if (whole.starts_with('@'))
        line.guard = whole.substr(0, std::min(whole.find_first_of(" \t") + 1, whole.size()));
      whole = trim(whole.substr(line.guard.size()));
      line.name = whole.substr(0, whole.find_first_of(" \t"));
      line.operands = trim(whole.substr(line.name.size()));
    } else {
      continue;
    }
    lines.push_back(line);
  }
}

void PtxChanger::add(const std::string &kind, const Line &line, const std::string &what,
                     Edit edit) {
  std::vector<CodeChange> &alike = changes[kind];
  size_t number = 1 + size_t(std::count(text.begin(), text.begin() + int64_t(line.begin), '\n'));
  std::string name = "'" + std::string(line.name) + "' in line " + std::to_string(number) +
                     " of the code of @" + kernel.name + " ";
  alike.push_back(
      {kind, {alike.size()}, name + what, [edit](Bytes &copy) {
         copy.erase(copy.begin() + int64_t(edit.begin), copy.begin() + int64_t(edit.end));
         copy.insert(copy.begin() + int64_t(edit.begin), edit.text.begin(), edit.text.end());
       }});
}

void PtxChanger::changeBarrier(const Line &line) {
  // The ';' alone is no statement.
  add("drop-code-barrier", line, "is gone", {line.begin, line.end + 1, ""});
  add("weaken-code-barrier", line, "orders the lanes of a warp only",
      {line.begin, line.end, "bar.warp.sync \t-1"});
  add("renumber-code-barrier", line, "is barrier 1", {place(line.operands), line.end, "1"});
}

/// Removes a wait for copies or products, and lets it leave one more group on its way.
void PtxChanger::changeWait(const Line &line, const std::string &what) {
  int64_t groups = 0;
  std::from_chars(line.operands.data(), line.operands.data() + line.operands.size(), groups);
  add("drop-" + what + "-wait", line, "is gone", {line.begin, line.end + 1, ""});
  add("weaken-" + what + "-wait", line, "leaves one more group on its way",
      {place(line.operands), line.end, std::to_string(groups + 1)});
}

/// Removes a wait for a phase of an mbarrier, a loop of two lines, and lets it wait for another
/// one.
void PtxChanger::changePhaseWait(size_t number) {
  const Line &line = lines[number];
  const size_t comma = line.operands.rfind(',');
  if (number + 1 == lines.size() || !lines[number + 1].name.starts_with("bra") ||
      comma == line.operands.npos)
    return;
  const bool isOdd = trim(line.operands.substr(comma + 1)) == "1";
  add("drop-phase-wait", line, "is gone", {line.begin, lines[number + 1].end + 1, ""});
  add("turn-phase-wait", line, "waits for the other parity",
      {place(line.operands) + comma + 1, line.end, isOdd ? " 0" : " 1"});
}

/// Takes a lane out of a shuffle's mask, another one for each shuffle.
void PtxChanger::cutMask(const Line &line) {
  size_t comma = line.operands.rfind(',');
  if (comma == line.operands.npos || trim(line.operands.substr(comma + 1)) != "-1")
    return;
  int64_t lanes =
      std::min<int64_t>(32, kernel.workgroup[0] * kernel.workgroup[1] * kernel.workgroup[2]);
  int64_t lane = int64_t(changes["cut-shuffle-mask"].size() * 5 + 3) % lanes;
  add("cut-shuffle-mask", line, "has a mask without lane " + std::to_string(lane),
      {place(line.operands) + comma + 1, line.end,
       " " + std::to_string(int32_t(~(uint32_t(1) << lane)))});
}

/// Moves a store by its size, and stores half of what it does.
void PtxChanger::changeStore(const Line &line) {
  std::string_view name = line.name;
  size_t dot = name.rfind('.');
  unsigned bits = 0;
  std::from_chars(name.data() + dot + 2, name.data() + name.size(), bits);
  size_t count = name.find(".v4.") != name.npos ? 4 : name.find(".v2.") != name.npos ? 2 : 1;
  size_t close = line.operands.find(']'), brace = line.operands.find('{');
  if (bits < 8 || close == line.operands.npos)
    return;
  std::string_view address = line.operands.substr(1, close - 1);
  int64_t offset = 0;
  if (size_t plus = address.find('+'); plus != address.npos) {
    std::from_chars(address.data() + plus + 1, address.data() + address.size(), offset);
    address = address.substr(0, plus);
  }
  const int64_t bytes = int64_t(count) * bits / 8;
  add("shift-store", line, "goes " + std::to_string(bytes) + " bytes further on",
      {place(address), place(line.operands) + close,
       std::string(address) + "+" + std::to_string(offset + bytes)});
  std::string half(name);
  std::string values(line.operands.substr(close));
  if (count == 1 && bits == 8)
    return;
  if (count == 1) {
    half.replace(dot + 2, half.npos, std::to_string(bits / 2));
    half[dot + 1] = 'b';
  } else {
    half.erase(half.find(".v"), 3);
    std::string_view parts = line.operands.substr(brace + 1);
    size_t comma = parts.find(',');
    values = "], " + std::string(parts.substr(0, comma));
    if (count == 4) {
      half.insert(name.find(".v"), ".v2");
      comma = parts.find(',', comma + 1);
      values = "], {" + std::string(parts.substr(0, comma)) + "}";
    }
  }
  add("narrow-store", line, "stores the first half only",
      {line.begin + line.guard.size(), line.end,
       half + " \t" + std::string(line.operands.substr(0, close)) + values});
}

/// Returns the line of the label that a branch goes to, if all that it skips is one block.
std::optional<size_t> PtxChanger::findSkipped(size_t number) const {
  for (size_t i = number + 1; i < lines.size(); ++i) {
    if (!lines[i].label.empty())
      return i > number + 1 && lines[i].label == lines[number].operands ? std::optional(i)
                                                                        : std::nullopt;
    if (lines[i].name.starts_with("bra") || lines[i].name == "ret" || lines[i].name == "exit")
      return std::nullopt;
  }
  return std::nullopt;
}

/// Negates and drops the guard of a branch that skips a block, or of another instruction. The
/// branches of loops stay, so that all invocations end.
void PtxChanger::changeGuard(size_t number) {
  const Line &line = lines[number];
  const bool isBranch = line.name.starts_with("bra");
  if (line.name == "ret" || line.name == "exit" || (isBranch && !findSkipped(number)))
    return;
  size_t at = line.begin + 1;
  const bool isNegated = line.guard.starts_with("@!");
  add("negate-guard", line, "has the opposite guard", {at, at + isNegated, isNegated ? "" : "!"});
  if (isBranch)
    add("drop-guard", line, "is gone, and what it skips always runs",
        {line.begin, line.end + 1, ""});
  else
    add("drop-guard", line, "has no guard", {line.begin, place(line.name), ""});
}

std::vector<CodeChange> PtxChanger::list() {
  for (size_t i = 0; i < lines.size(); ++i) {
    const Line &line = lines[i];
    if (line.name == "bar.sync" && line.operands == "0" && line.guard.empty())
      changeBarrier(line);
    if (line.name == "cp.async.wait_group" && line.guard.empty())
      changeWait(line, "copy");
    if (line.name == "wgmma.wait_group.sync.aligned")
      changeWait(line, "product");
    if (line.name == "wgmma.fence.sync.aligned")
      add("drop-product-fence", line, "is gone", {line.begin, line.end + 1, ""});
    if (line.name.starts_with("fence.proxy.async"))
      add("drop-proxy-fence", line, "is gone", {line.begin, line.end + 1, ""});
    if (line.name.starts_with("mbarrier.try_wait.parity"))
      changePhaseWait(i);
    if (line.name.starts_with("mbarrier.arrive.expect_tx"))
      add("expect-fewer", line, "expects 1024 bytes",
          {place(line.operands) + line.operands.rfind(',') + 1, line.end, " 1024"});
    if (line.name.starts_with("cp.async.bulk.tensor"))
      add("drop-box", line, "is gone", {line.begin, line.end + 1, ""});
    if (line.name.starts_with("shfl.sync."))
      cutMask(line);
    if (line.name.starts_with("ld.global.") && !line.name.starts_with("ld.global.nc"))
      add("make-noncoherent", line, "is ld.global.nc",
          {place(line.name) + 9, place(line.name) + 9, ".nc"});
    if (line.name.starts_with("st.global."))
      changeStore(line);
    if (!line.guard.empty())
      changeGuard(i);
  }
  std::vector<CodeChange> chosen;
  for (auto &[kind, alike] : changes)
    for (size_t i = 0; i < std::min(alike.size(), maxAlike); ++i)
      chosen.push_back(std::move(alike[i * alike.size() / std::min(alike.size(), maxAlike)]));
  return chosen;
}

std::vector<CodeChange> mutate::listPtxChanges(const Kernel &kernel, const Bytes &code) {
  return PtxChanger(kernel, code).list();
}
