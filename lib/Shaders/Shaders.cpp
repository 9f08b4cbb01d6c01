//===- Shaders.cpp - Claims on other people's compute shaders -------------===//

#include "weir/Shaders/Shaders.h"

#include "Simulation.h"
#include "weir/CodeProofs/Footprint.h"
#include "weir/CodeProofs/Races.h"

#include <algorithm>

using namespace weir;
using namespace weir::shaders;
using spv::Id, spv::MemoryAccess;
using Answer = ShaderClaim::Answer;

// Capabilities of the SPIR-V specification, section 3.31: operations on subgroups.
static constexpr uint32_t subgroupCapabilities[] = {61, 62, 63, 64, 65, 66, 67, 68, 4423, 4431};

/// Bytes of a buffer of which nothing says the size, for the simulator.
static constexpr int64_t defaultBytes = 1 << 16, maxGuessedBytes = 1 << 24;

namespace {
class Checker {
public:
  Checker(std::span<const uint32_t> words, const ShaderOptions &options, const std::string &where);

  ShaderReport run();

private:
  using Root = MemoryAccess::Root;
  /// A claim with what it is about.
  struct Question {
    ShaderClaim claim;
    SimFinding::Kind kind;
    std::optional<uint32_t> operand = {}; ///< none: workgroup memory, or barriers
    bool mayRefute = true;                ///< whether findings of the simulator count
  };

  void read(const std::string &where);
  void chooseEntry(const std::string &where);
  void findSizes(const std::string &where);
  void findOtherOrder();
  int64_t guessBytes(uint32_t binding) const;
  std::string describe(uint32_t word, const spv::SourceLine &source) const;
  std::string describe(const MemoryAccess &access) const {
    return describe(access.word, access.source);
  }
  std::string nameBuffer(uint32_t binding) const;
  std::string findLost() const;
  Question &ask(const std::string &what, const std::string &subject, SimFinding::Kind kind,
                std::optional<uint32_t> operand = {});
  void askRaces(Root root, const std::set<uint32_t> &bindings, Question &question);
  void askBounds(const MemoryAccess &access, std::optional<int64_t> bytes, Question &question);
  void askBarriers(Question &question);
  void askInitialized(Question &question);
  bool isInitialized(const MemoryAccess &read);
  std::vector<spv::ByteRange> getWrittenBefore(uint32_t variable, uint32_t position) const;
  bool dependsOnWorkgroup(const spv::Affine &sum) const;
  void proveAll();
  void simulate();

  const ShaderOptions &options;
  spv::PipelineModule pipeline;
  std::vector<uint32_t> words;
  std::optional<spv::Module> module;
  const spv::EntryPoint *entry = nullptr;
  spv::AddressMap map;
  std::string lost;                          ///< why nothing is proved; else empty
  std::optional<uint32_t> push;              ///< binding of the push constants
  std::vector<std::optional<int64_t>> sizes; ///< bytes by binding, if they are known
  std::set<uint32_t> variables;              ///< in workgroup memory
  /// Whether it may order invocations in ways that are not followed: by memory barriers, together
  /// with barriers or atomics, and by atomics alone.
  bool mayOrderBuffers = false, mayOrderShared = false;
  std::vector<Question> questions;
};
} // namespace

//===----------------------------------------------------------------------===//
// The module
//===----------------------------------------------------------------------===//

static std::span<const unsigned char> getBytes(const std::vector<uint32_t> &words) {
  return {reinterpret_cast<const unsigned char *>(words.data()), words.size() * sizeof(uint32_t)};
}

Checker::Checker(std::span<const uint32_t> given, const ShaderOptions &options,
                 const std::string &where)
    : options(options) {
  pipeline = spv::specialize(given, options.constants);
  for (const spv::Specialization &constant : options.constants)
    if (!pipeline.specIds.contains(constant.id))
      throw Error(where + ": has no specialization constant " + std::to_string(constant.id) +
                  ", which --spec names");
  words = pipeline.words;
  const auto numBindings = uint32_t(pipeline.slots.size());
  if (spv::makeStorageBuffers(words, numBindings))
    push = numBindings;
  read(where);
}

/// Reads the module in the form that proofs and simulator follow.
void Checker::read(const std::string &where) {
  sizes.resize(pipeline.slots.size() + (push ? 1 : 0));
  for (const auto &[slot, bytes] : options.sizes) {
    auto place = std::lower_bound(pipeline.slots.begin(), pipeline.slots.end(), slot);
    const auto binding = uint32_t(place - pipeline.slots.begin());
    if (place == pipeline.slots.end() || *place != slot || !pipeline.buffers.contains(binding))
      throw Error(where + ": has no buffer " + std::to_string(slot.set) + "." +
                  std::to_string(slot.binding) + ", which --sizes names");
    sizes[binding] = bytes;
  }
  std::map<uint32_t, int64_t> lengths;
  for (uint32_t binding = 0; binding < sizes.size(); ++binding)
    if (sizes[binding])
      lengths[binding] = *sizes[binding];
  words = spv::setLengths(words, lengths);
  try {
    words = spv::inlineCalls(words, where);
    const spv::Module plain(getBytes(words), where);
    words = spv::promoteVariables(plain, words);
    module.emplace(getBytes(words), where);
  } catch (const spv::Unsupported &error) {
    lost = error.what();
    return;
  }
  chooseEntry(where);
  findSizes(where);
  for (uint32_t capability : subgroupCapabilities)
    if (pipeline.capabilities.contains(capability))
      lost = "it has operations on subgroups, whose size the driver chooses";
  for (const auto &[binding, buffer] : pipeline.buffers)
    if (buffer.isArray)
      lost = nameBuffer(binding) + " is an array of descriptors, of which some may be the same";
  findOtherOrder();
  if (!lost.empty())
    return;
  map = spv::readAddressMap(*module, *entry, {options.workgroups, 1});
  if (!map.problem.empty())
    lost = "it is not followed: " + map.problem;
}

void Checker::findOtherOrder() {
  bool hasFences = false, hasAtomics = false, doAtomicsOrder = false;
  for (const spv::Function &function : module->getFunctions())
    for (const spv::Block &block : function.blocks)
      for (const spv::Instruction &instruction : block.instructions) {
        hasFences |= instruction.op == spv::Op::MemoryBarrier;
        if (spv::getKind(instruction.op) != spv::OpKind::Atomic)
          continue;
        hasAtomics = true;
        const spv::Constant *semantics = module->findConstant(instruction.operands[2]);
        constexpr uint64_t orders =
            spv::Acquire | spv::Release | spv::AcquireRelease | spv::SequentiallyConsistent;
        doAtomicsOrder |= !semantics || semantics->bits & orders;
      }
  mayOrderBuffers = hasFences || doAtomicsOrder;
  mayOrderShared = (hasFences && hasAtomics) || doAtomicsOrder;
}

void Checker::chooseEntry(const std::string &where) {
  std::string names;
  size_t count = 0;
  for (const spv::EntryPoint &each : module->getEntryPoints()) {
    if (each.model != spv::ExecutionModel::GLCompute)
      continue;
    names += (count++ ? ", " : "") + each.name;
    if (options.entry.empty() || each.name == options.entry)
      entry = &each;
  }
  if (count == 0)
    throw Error(where + ": has no compute shader");
  if (!entry)
    throw Error(where + ": has no compute shader '" + options.entry + "'; it has " + names);
  if (options.entry.empty() && count > 1)
    throw Error(where + ": has several compute shaders; name one by --entry: " + names);
}

/// Finds the sizes of buffers that have one by their declaration, and workgroup memory.
void Checker::findSizes(const std::string &where) {
  for (const spv::Variable &variable : module->getVariables()) {
    if (variable.storage == spv::StorageClass::Workgroup)
      variables.insert(variable.id);
    if (variable.storage != spv::StorageClass::StorageBuffer || !variable.binding ||
        *variable.binding >= sizes.size())
      continue;
    const spv::Type &block = module->getType(module->getType(variable.type).element);
    const bool isOpen = block.kind == spv::Type::Kind::Struct && !block.members.empty() &&
                        module->getType(block.members.back()).kind == spv::Type::Kind::RuntimeArray;
    std::optional<int64_t> &size = sizes[*variable.binding];
    if (size && *size < block.bytes)
      throw Error(where + ": " + nameBuffer(*variable.binding) + " has " +
                  std::to_string(block.bytes) + " bytes by its declaration, --sizes says " +
                  std::to_string(*size));
    if (!size && !isOpen && block.bytes > 0)
      size = block.bytes;
  }
}

/// Returns a size for a buffer of which nothing says one: as much as the code surely reaches.
int64_t Checker::guessBytes(uint32_t binding) const {
  int64_t bytes = 0;
  for (const MemoryAccess &access : map.accesses)
    if (access.root == Root::Binding && access.binding == binding)
      if (auto reach = spv::getReach(map, access); reach && reach->end <= maxGuessedBytes)
        bytes = std::max(bytes, reach->end);
  return bytes > 0 ? bytes : defaultBytes;
}

//===----------------------------------------------------------------------===//
// Words
//===----------------------------------------------------------------------===//

/// Returns "line 12 of a.comp", or where the module has no lines, "word 312".
std::string Checker::describe(uint32_t word, const spv::SourceLine &source) const {
  if (source.line == 0)
    return "word " + std::to_string(word);
  const std::string &file = module->getString(source.file);
  return "line " + std::to_string(source.line) + (file.empty() ? "" : " of " + file);
}

/// Returns "buffer 0.1 (out)".
std::string Checker::nameBuffer(uint32_t binding) const {
  if (push == binding)
    return "push constants";
  const spv::DescriptorSlot &slot = pipeline.slots[binding];
  auto buffer = pipeline.buffers.find(binding);
  const std::string name = buffer == pipeline.buffers.end() ? "" : buffer->second.name;
  return "buffer " + std::to_string(slot.set) + "." + std::to_string(slot.binding) +
         (name.empty() ? "" : " (" + name + ")");
}

/// Returns why an access may be anywhere, if there is one.
std::string Checker::findLost() const {
  for (const MemoryAccess &access : map.accesses)
    if (access.root == Root::Unknown)
      return "an address that is not followed (" + describe(access) + ")";
  return "";
}

Checker::Question &Checker::ask(const std::string &what, const std::string &subject,
                                SimFinding::Kind kind, std::optional<uint32_t> operand) {
  Question question{{Answer::Proved, what, subject, ""}, kind, operand};
  if (std::string reason = lost.empty() ? findLost() : lost; !reason.empty()) {
    question.claim.answer = Answer::Unknown;
    question.claim.detail = reason;
  }
  questions.push_back(question);
  return questions.back();
}

static void doubt(ShaderClaim &claim, Answer answer, const std::string &detail) {
  if (claim.answer == Answer::Proved || answer == Answer::Refuted) {
    claim.answer = answer;
    claim.detail = detail;
  }
}

//===----------------------------------------------------------------------===//
// Proofs
//===----------------------------------------------------------------------===//

void Checker::askRaces(Root root, const std::set<uint32_t> &bindings, Question &question) {
  if (question.claim.answer != Answer::Proved)
    return;
  for (uint32_t binding : bindings) {
    const spv::PairAnswer result = spv::isFreeOfRaces(map, root, binding);
    if (result.answer == spv::Answer::Yes)
      continue;
    std::string pair = "two invocations may touch a common byte";
    if (result.first)
      pair = "an invocation " + std::string(result.first->writes ? "writes" : "reads") + " (" +
             describe(*result.first) + ") and another " +
             (result.second->writes ? "writes" : "reads") + " (" + describe(*result.second) + ")";
    const bool isSure = result.answer == spv::Answer::No && question.mayRefute;
    doubt(question.claim, isSure ? Answer::Refuted : Answer::Unknown,
          isSure ? pair + " byte " + std::to_string(result.byte) + "; nothing orders the two"
                 : "it is not proved that no two meet: " + pair +
                       (question.mayRefute
                            ? ""
                            : "; what its memory barriers or atomics order is not judged"));
  }
}

void Checker::askBounds(const MemoryAccess &access, std::optional<int64_t> bytes,
                        Question &question) {
  if (question.claim.answer == Answer::Refuted)
    return;
  if (!bytes)
    return doubt(question.claim, Answer::Unknown, "its size is not known; --sizes gives it");
  const std::optional<spv::Reach> reach = spv::getReach(map, access, *bytes);
  if (reach && (reach->begin == reach->end || (reach->begin >= 0 && reach->end <= *bytes)))
    return;
  const std::string place = describe(access);
  if (reach && (reach->outside || reach->isExact)) {
    const int64_t byte = reach->outside     ? *reach->outside
                         : reach->begin < 0 ? reach->begin
                                            : reach->end - 1;
    return doubt(question.claim, Answer::Refuted,
                 "an invocation goes to byte " + std::to_string(byte) + " of " +
                     std::to_string(*bytes) + " (" + place + ")");
  }
  doubt(question.claim, Answer::Unknown,
        "it is not proved that an access stays in its " + std::to_string(*bytes) + " bytes (" +
            place + ")");
}

void Checker::askBarriers(Question &question) {
  if (question.claim.answer != Answer::Proved)
    return;
  for (const spv::BarrierSite &barrier : map.barriers) {
    const std::string place = " (" + describe(barrier.word, barrier.source) + ")";
    switch (spv::isUniform(map, barrier)) {
    case spv::Answer::Yes:
      break;
    case spv::Answer::No:
      doubt(question.claim, Answer::Refuted,
            "some invocations of a workgroup reach a barrier, others do not" + place);
      break;
    case spv::Answer::Unknown:
      doubt(question.claim, Answer::Unknown,
            "it is not proved that all invocations of a workgroup reach a barrier together" +
                place);
      break;
    }
  }
}

/// Whether a sum has the number of the workgroup in it.
bool Checker::dependsOnWorkgroup(const spv::Affine &sum) const {
  return std::any_of(sum.terms.begin(), sum.terms.end(), [&](auto term) {
    const spv::Atom &atom = map.atoms[term.first];
    bool found = atom.kind == spv::Atom::Kind::Workgroup;
    spv::Atoms::forEachInside(
        atom, [&](const spv::Affine &inner) { found = found || dependsOnWorkgroup(inner); });
    return found;
  });
}

/// Returns the bytes of a variable in workgroup memory that each workgroup surely writes before a
/// position.
std::vector<spv::ByteRange> Checker::getWrittenBefore(uint32_t variable, uint32_t position) const {
  spv::AddressMap before = map;
  std::erase_if(before.accesses, [&](const MemoryAccess &access) {
    return access.root != Root::Shared || access.binding != variable || !access.writes ||
           !access.address || access.position >= position || dependsOnWorkgroup(*access.address) ||
           std::any_of(access.guards.begin(), access.guards.end(),
                       [&](const spv::Affine &guard) { return dependsOnWorkgroup(guard); });
  });
  // Footprints are asked for by binding.
  for (MemoryAccess &access : before.accesses)
    access.root = Root::Binding;
  return spv::getTouched(before, variable, /*reads=*/false).certain;
}

/// Whether it is proved that a read finds bytes which its workgroup has written.
bool Checker::isInitialized(const MemoryAccess &read) {
  const auto isVariable = [&](const spv::Variable &each) { return each.id == read.binding; };
  const auto &all = module->getVariables();
  auto variable = std::find_if(all.begin(), all.end(), isVariable);
  if (variable != all.end() && variable->initializer)
    return true;
  // By its own invocation.
  for (const MemoryAccess &write : map.accesses) {
    const bool isOwn =
        write.root == Root::Shared && write.binding == read.binding && write.writes &&
        !write.reads && read.address && write.address == read.address &&
        write.bytes >= read.bytes && write.position < read.position && write.loops == read.loops &&
        std::all_of(
            write.guards.begin(), write.guards.end(),
            [&](const spv::Affine &guard) {
              return std::find(read.guards.begin(), read.guards.end(), guard) != read.guards.end();
            });
    const bool hasOthers =
        isOwn &&
        std::any_of(write.address->terms.begin(), write.address->terms.end(), [&](auto term) {
          return map.atoms[term.first].kind == spv::Atom::Kind::Other;
        });
    if (isOwn && write.isCertain && !hasOthers)
      return true;
  }
  // By the workgroup, before a barrier that all pass once.
  const std::optional<spv::Reach> reach = spv::getReach(map, read);
  if (!reach)
    return false;
  for (const spv::BarrierSite &barrier : map.barriers) {
    if (!barrier.isUniform || !barrier.ordersShared || !barrier.loops.empty() ||
        !barrier.guards.empty() || barrier.position > read.position)
      continue;
    if (spv::doCover(getWrittenBefore(read.binding, barrier.position), 0,
                     {reach->begin, reach->end}))
      return true;
  }
  return false;
}

void Checker::askInitialized(Question &question) {
  if (question.claim.answer != Answer::Proved)
    return;
  for (const MemoryAccess &access : map.accesses)
    if (access.root == Root::Shared && access.reads && !isInitialized(access))
      return doubt(question.claim, Answer::Unknown,
                   "it is not proved that a read finds bytes that were written (" +
                       describe(access) + ")");
}

void Checker::proveAll() {
  using Kind = SimFinding::Kind;
  const auto forEachBuffer = [&](auto visit) {
    for (const auto &[binding, buffer] : pipeline.buffers)
      visit(binding);
    if (push)
      visit(*push);
  };
  forEachBuffer([&](uint32_t binding) {
    Question &question = ask("races", nameBuffer(binding), Kind::Race, binding);
    // GLSL orders buffers by a memory barrier before a barrier; Vulkan's memory model asks for
    // more.
    question.mayRefute = !mayOrderBuffers;
    askRaces(Root::Binding, {binding}, question);
  });
  if (!variables.empty() || !module) {
    Question &question = ask("races", "workgroup memory", Kind::Race);
    question.mayRefute = !mayOrderShared;
    std::set<uint32_t> accessed;
    for (const MemoryAccess &access : map.accesses)
      if (access.root == Root::Shared)
        accessed.insert(access.binding);
    askRaces(Root::Shared, accessed, question);
  }
  Question &barriers = ask("barriers", "barriers", Kind::Divergent);
  askBarriers(barriers);
  forEachBuffer([&](uint32_t binding) {
    Question &question = ask("bounds", nameBuffer(binding), Kind::OutOfBounds, binding);
    question.mayRefute = sizes[binding].has_value();
    for (const MemoryAccess &access : map.accesses)
      if (access.root == Root::Binding && access.binding == binding)
        askBounds(access, sizes[binding], question);
  });
  if (variables.empty() && module)
    return;
  Question &bounds = ask("bounds", "workgroup memory", Kind::OutOfBounds);
  for (const MemoryAccess &access : map.accesses)
    if (access.root == Root::Shared) {
      const spv::Variable *variable = module->findVariable(access.binding);
      const int64_t bytes =
          variable ? module->getType(module->getType(variable->type).element).bytes : 0;
      askBounds(access, bytes > 0 ? std::optional(bytes) : std::nullopt, bounds);
    }
  Question &initialized = ask("initialized", "workgroup memory", Kind::Unwritten);
  askInitialized(initialized);
}

//===----------------------------------------------------------------------===//
// Counterexamples
//===----------------------------------------------------------------------===//

/// Looks for counterexamples of what is not proved. One that was found by proofs gets invocations.
void Checker::simulate() {
  const auto isOpen = [](const Question &question) {
    return question.mayRefute && question.claim.answer != Answer::Proved;
  };
  if (!module || std::none_of(questions.begin(), questions.end(), isOpen))
    return;
  for (uint32_t capability : subgroupCapabilities)
    if (pipeline.capabilities.contains(capability))
      return;
  Simulation simulation;
  simulation.words = words;
  simulation.entry = entry;
  simulation.workgroups = options.workgroups;
  for (uint32_t binding = 0; binding < sizes.size(); ++binding) {
    simulation.bytes.push_back(sizes[binding].value_or(guessBytes(binding)));
    simulation.names.push_back(nameBuffer(binding));
  }
  std::set<const Question *> found;
  const std::string problem =
      simulateAll(simulation, [&](const SimFinding &finding, const std::string &contents) {
        for (Question &question : questions) {
          if (!isOpen(question) || found.contains(&question) || finding.kind != question.kind ||
              finding.operand != question.operand || finding.isPrivate)
            continue;
          question.claim.answer = Answer::Refuted;
          question.claim.detail = finding.sentence + " (on " + contents + ")";
          found.insert(&question);
        }
        return std::any_of(questions.begin(), questions.end(), [&](const Question &question) {
          return isOpen(question) && !found.contains(&question);
        });
      });
  if (problem.empty())
    return;
  for (Question &question : questions)
    if (question.claim.answer == Answer::Unknown)
      question.claim.detail += "; " + problem;
}

ShaderReport Checker::run() {
  questions.reserve(2 * pipeline.buffers.size() + 6); // `ask` returns references
  proveAll();
  simulate();
  ShaderReport report;
  report.entry = entry ? entry->name : options.entry;
  if (entry)
    std::copy(entry->localSize.begin(), entry->localSize.end(), report.workgroupSize.begin());
  for (Question &question : questions)
    report.claims.push_back(std::move(question.claim));
  return report;
}

ShaderReport weir::checkShader(std::span<const uint32_t> words, const ShaderOptions &options,
                               const std::string &where) {
  return Checker(words, options, where).run();
}
