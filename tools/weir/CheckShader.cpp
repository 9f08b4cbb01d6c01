//===- CheckShader.cpp - weir check-shader --------------------------------===//

#include "Output.h"
#include "Verbs.h"
#include "weir/Artifact/Artifact.h"
#include "weir/Shaders/Shaders.h"

#include <bit>
#include <charconv>
#include <cstring>
#include <memory>

using namespace weir;
using namespace weir::tool;
using Answer = ShaderClaim::Answer;

namespace {
struct CheckOptions {
  std::string module, workgroups, entry;
  std::vector<std::string> constants, sizes;
  bool json = false;
};
} // namespace

/// Parses all of a text as an integer of at least `min`; none if it is not one.
template <typename Number>
static std::optional<Number> parseNumber(std::string_view text, Number min) {
  const bool isHex = text.starts_with("0x");
  text.remove_prefix(isHex ? 2 : 0);
  Number number = 0;
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number, isHex ? 16 : 10);
  if (error != std::errc() || end != text.data() + text.size() || number < min)
    return std::nullopt;
  return number;
}

/// Parses "X,Y,Z", of which Y and Z may be left out.
static std::array<int64_t, 3> parseWorkgroups(const std::string &text) {
  std::array<int64_t, 3> sizes = {1, 1, 1};
  size_t axis = 0, begin = 0;
  for (bool isLast = false; !isLast; ++axis) {
    const size_t end = text.find(',', begin);
    isLast = end == std::string::npos;
    auto size = parseNumber<int64_t>(std::string_view(text).substr(begin, end - begin), 1);
    if (axis == 3 || !size || *size > UINT32_MAX)
      throw Error("--workgroups=" + text +
                  " is not X,Y,Z: the numbers of workgroups, each from 1 to 2^32 - 1");
    sizes[axis] = *size;
    begin = end + 1;
  }
  return sizes;
}

/// Parses "ID=V": V is an integer, true, false, or a number with a point, which has 32 bits.
static spv::Specialization parseConstant(const std::string &text) {
  const size_t equals = text.find('=');
  const std::string value = equals == std::string::npos ? "" : text.substr(equals + 1);
  const auto id = parseNumber<uint32_t>(std::string_view(text).substr(0, equals), 0);
  std::optional<uint64_t> bits;
  if (value == "true" || value == "false")
    bits = value == "true";
  else if (auto number = parseNumber<uint64_t>(value, 0))
    bits = *number;
  else if (auto number = parseNumber<int64_t>(value, INT64_MIN))
    bits = uint64_t(*number);
  else if (float number = 0; std::from_chars(value.data(), value.data() + value.size(), number) ==
                             std::from_chars_result{value.data() + value.size(), std::errc()})
    bits = std::bit_cast<uint32_t>(number);
  if (!id || !bits)
    throw Error("--spec=" + text +
                " is not ID=V: the number of a specialization constant and an "
                "integer, true, false or a number with a point");
  return {*id, *bits};
}

/// Parses "SET.BINDING=BYTES".
static std::pair<spv::DescriptorSlot, int64_t> parseSize(const std::string &text) {
  const size_t point = text.find('.'), equals = text.find('=');
  if (point != std::string::npos && equals != std::string::npos && point < equals) {
    const std::string_view all = text;
    const auto set = parseNumber<uint32_t>(all.substr(0, point), 0);
    const auto binding = parseNumber<uint32_t>(all.substr(point + 1, equals - point - 1), 0);
    const auto bytes = parseNumber<int64_t>(all.substr(equals + 1), 1);
    constexpr int64_t maxBytes = int64_t(1) << 40;
    if (set && binding && bytes && *bytes <= maxBytes)
      return {{*set, *binding}, *bytes};
  }
  throw Error("--sizes=" + text + " is not SET.BINDING=BYTES, with 1 to 2^40 bytes");
}

static std::vector<uint32_t> readWords(const std::string &path) {
  const Bytes bytes = readFile(path, "SPIR-V module");
  if (bytes.size() % 4 != 0 || bytes.size() < 20)
    throw Error(path + ": is not a SPIR-V module: " + std::to_string(bytes.size()) +
                " bytes, expected a multiple of 4 and at least 20");
  std::vector<uint32_t> words(bytes.size() / 4);
  std::memcpy(words.data(), bytes.data(), bytes.size());
  if (words[0] == __builtin_bswap32(0x07230203))
    for (uint32_t &word : words)
      word = __builtin_bswap32(word);
  if (words[0] != 0x07230203)
    throw Error(path + ": is not a SPIR-V module: the first word is not 0x07230203");
  return words;
}

static const char *getName(Answer answer) {
  return answer == Answer::Proved ? "proved" : answer == Answer::Refuted ? "REFUTED" : "unknown";
}

static int runCheck(const CheckOptions &options) {
  ShaderOptions asked;
  asked.workgroups = parseWorkgroups(options.workgroups);
  asked.entry = options.entry;
  for (const std::string &constant : options.constants)
    asked.constants.push_back(parseConstant(constant));
  for (const std::string &sizes : options.sizes)
    for (size_t begin = 0; begin <= sizes.size();) {
      const size_t end = std::min(sizes.find(',', begin), sizes.size());
      asked.sizes.insert(parseSize(sizes.substr(begin, end - begin)));
      begin = end + 1;
    }
  const ShaderReport report = checkShader(readWords(options.module), asked, options.module);
  size_t counts[3] = {};
  Json claims = Json::array();
  std::vector<std::vector<std::string>> rows;
  for (const ShaderClaim &claim : report.claims) {
    ++counts[size_t(claim.answer)];
    std::string answer = getName(claim.answer);
    rows.push_back({claim.what, claim.subject, answer, claim.detail});
    if (claim.answer == Answer::Refuted)
      answer = "refuted";
    claims.push_back({{"claim", claim.what},
                      {"subject", claim.subject},
                      {"answer", answer},
                      {"detail", claim.detail}});
  }
  const size_t refuted = counts[size_t(Answer::Refuted)], unknown = counts[size_t(Answer::Unknown)];
  if (options.json) {
    printJson({{"entry", report.entry},
               {"workgroups", asked.workgroups},
               {"workgroup_size", report.workgroupSize},
               {"proved", counts[size_t(Answer::Proved)]},
               {"refuted", refuted},
               {"unknown", unknown},
               {"claims", claims}});
  } else {
    printTable({"claim", "of", "", "detail"}, rows);
    std::cout << counts[size_t(Answer::Proved)] << " proved, " << refuted << " refuted, " << unknown
              << " unknown.\n";
  }
  return refuted ? CheckFailed : unknown ? Undecided : Done;
}

void tool::addCheckShader(CLI::App &app, Verb &chosen) {
  auto options = std::make_shared<CheckOptions>();
  CLI::App *verb = app.add_subcommand(
      "check-shader", "Prove or refute that a compute shader has no races, divergent barriers, "
                      "accesses out of bounds or reads of memory that nothing wrote; exits with 1 "
                      "if a claim is refuted, with 3 if one is neither proved nor refuted");
  verb->add_option("module", options->module, "The SPIR-V module")->required()->type_name("X.spv");
  verb->add_option("--workgroups", options->workgroups, "Numbers of workgroups of the dispatch")
      ->required()
      ->type_name("X,Y,Z");
  verb->add_option("--entry", options->entry, "The entry point (default: the only compute shader)")
      ->type_name("NAME");
  verb->add_option("--spec", options->constants,
                   "Value of the specialization constant with this id; repeatable")
      ->type_name("ID=V");
  verb->add_option("--sizes", options->sizes,
                   "Bytes of buffers whose declaration leaves them open; repeatable")
      ->type_name("SET.BINDING=BYTES,...");
  verb->add_flag("--json", options->json, "Print JSON");
  verb->callback([options, &chosen] { chosen = [options] { return runCheck(*options); }; });
}
