//===- Notes.cpp - notes/<target>.json ------------------------------------===//
//
// Texts repeat by the thousand, so each is stored once in a list and referred to by index.
//
//===----------------------------------------------------------------------===//

#include "weir/Artifact/Notes.h"

#include "Parts.h"

#include <map>

using namespace weir;

using nlohmann::ordered_json;

std::string weir::printNotes(const Notes &notes) {
  ordered_json texts = ordered_json::array(), entries = ordered_json::array();
  std::map<std::string, size_t> known;
  auto add = [&](const std::string &text) {
    auto [entry, isNew] = known.try_emplace(text, texts.size());
    if (isNew)
      texts.push_back(text);
    return entry->second;
  };
  for (const EntryNotes &entry : notes.entries) {
    ordered_json kernels = ordered_json::array(), apart = ordered_json::array(),
                 refusals = ordered_json::array();
    for (const std::vector<OpNote> &ops : entry.kernels) {
      ordered_json list = ordered_json::array();
      for (const OpNote &op : ops)
        list.push_back(ordered_json::array({add(op.what), add(op.source)}));
      kernels.push_back(std::move(list));
    }
    for (const ApartNote &note : entry.apart)
      apart.push_back(ordered_json::array({note.producer, note.reader, add(note.why)}));
    for (const RefusalNote &note : entry.refusals)
      refusals.push_back(ordered_json::array(
          {note.argument, add(note.reason), add(note.detail), add(note.source)}));
    ordered_json object = {{"entry", entry.entry}};
    if (entry.memoryLimit)
      object["memory_limit"] = *entry.memoryLimit;
    object.update({{"kernels", kernels},
                   {"apart", apart},
                   {"dispatches", entry.dispatchKernels},
                   {"refusals", refusals}});
    if (!entry.checks.empty()) {
      ordered_json checks = ordered_json::array();
      for (const std::string &check : entry.checks)
        checks.push_back(add(check));
      object["checks"] = std::move(checks);
    }
    entries.push_back(std::move(object));
  }
  return printJson({{"schema_version", schemaVersion}, {"texts", texts}, {"entries", entries}});
}

Notes weir::parseNotes(const std::string &json, const std::string &where) {
  Json tree = parseJson(json, where);
  JsonNode node(tree, where);
  readSchemaVersion(node);
  node.object({"schema_version", "texts", "entries"});
  std::vector<std::string> texts =
      node["texts"].list([](const JsonNode &text) { return text.string(); });
  auto readText = [&](const JsonNode &text) {
    return texts[text.integer(0, int64_t(texts.size()) - 1)];
  };
  Notes notes;
  notes.entries = node["entries"].list([&](const JsonNode &object) {
    object.object({"entry", "kernels", "apart", "dispatches", "refusals"},
                  {"memory_limit", "checks"});
    EntryNotes entry;
    entry.entry = readFileName(object["entry"]);
    if (object.has("memory_limit"))
      entry.memoryLimit = object["memory_limit"].bytes();
    entry.kernels = object["kernels"].list([&](const JsonNode &kernel) {
      return kernel.list([&](const JsonNode &op) {
        op.tuple(2);
        return OpNote{readText(op.element(0)), readText(op.element(1))};
      });
    });
    int64_t last = int64_t(entry.kernels.size()) - 1;
    entry.apart = object["apart"].list([&](const JsonNode &note) {
      note.tuple(3);
      return ApartNote{note.element(0).integer(0, last), note.element(1).integer(0, last),
                       readText(note.element(2))};
    });
    entry.dispatchKernels =
        object["dispatches"].list([&](const JsonNode &kernel) { return kernel.integer(-1, last); });
    entry.refusals = object["refusals"].list([&](const JsonNode &note) {
      note.tuple(4);
      return RefusalNote{note.element(0).integer(0), readText(note.element(1)),
                         readText(note.element(2)), readText(note.element(3))};
    });
    if (object.has("checks"))
      entry.checks = object["checks"].list(readText);
    return entry;
  });
  return notes;
}
