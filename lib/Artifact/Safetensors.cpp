//===- Safetensors.cpp - Named tensors in one file ------------------------===//
//
// Eight bytes of header length (little-endian), a JSON header, the tensors'
// bytes. https://huggingface.co/docs/safetensors gives the format.
//
//===----------------------------------------------------------------------===//

#include "Parts.h"
#include "weir/Artifact/Error.h"
#include "weir/Artifact/FileKind.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <set>

using namespace weir;
using ordered_json = nlohmann::ordered_json;

static constexpr const char *metadataKey = "__metadata__";

Bytes weir::printSafetensors(const std::vector<Tensor> &tensors) {
  // Built as text, since appending to an ordered object searches all earlier keys.
  std::string header = "{";
  std::set<std::string> names;
  int64_t offset = 0;
  for (const Tensor &tensor : tensors) {
    const TensorSpec &spec = tensor.spec;
    if (spec.name == metadataKey || !names.insert(spec.name).second)
      throw Error("safetensors cannot hold " +
                  std::string(names.count(spec.name) ? "two tensors" : "a tensor") + " called \"" +
                  spec.name + "\"; rename it");
    if (getByteSize(spec) != int64_t(tensor.data.size()))
      throw Error("tensor \"" + spec.name + "\" has " + std::to_string(tensor.data.size()) +
                  " bytes, its shape needs " + std::to_string(getByteSize(spec)));
    int64_t end = offset + int64_t(tensor.data.size());
    ordered_json entry = {
        {"dtype", spec.dtype}, {"shape", spec.shape}, {"data_offsets", {offset, end}}};
    try {
      header +=
          (header.size() > 1 ? "," : "") + ordered_json(spec.name).dump() + ":" + entry.dump();
    } catch (const ordered_json::exception &) {
      throw Error("a tensor's name holds bytes that are not UTF-8; rename it");
    }
    offset = end;
  }
  header += "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');

  Bytes bytes;
  bytes.reserve(8 + header.size() + offset);
  for (int i = 0; i < 8; ++i)
    bytes.push_back((uint64_t(header.size()) >> (8 * i)) & 0xff);
  bytes.insert(bytes.end(), header.begin(), header.end());
  for (const Tensor &tensor : tensors)
    bytes.insert(bytes.end(), tensor.data.begin(), tensor.data.end());
  return bytes;
}

std::vector<Tensor> weir::parseSafetensors(const Bytes &bytes, const std::string &where) {
  auto fail = [&](const std::string &complaint) { throw Error(where + ": " + complaint); };
  if (bytes.size() < 8)
    fail("a safetensors file has at least 8 bytes, this one has " + std::to_string(bytes.size()));
  uint64_t length = 0;
  for (int i = 0; i < 8; ++i)
    length |= uint64_t(bytes[i]) << (8 * i);
  if (length > bytes.size() - 8)
    fail("the safetensors header claims " + std::to_string(length) + " bytes, the file has " +
         std::to_string(bytes.size() - 8) + " after the length");

  Json tree =
      parseJson(std::string_view(reinterpret_cast<const char *>(bytes.data()) + 8, length), where);
  JsonNode header(tree, where);
  const unsigned char *data = bytes.data() + 8 + length;
  int64_t total = int64_t(bytes.size() - 8 - length);

  std::vector<Tensor> tensors;
  std::vector<std::pair<int64_t, int64_t>> ranges;
  header.forEachMember([&](std::string_view name, const JsonNode &value) {
    if (name == metadataKey) {
      JsonNode(value, where).forEachMember([&](std::string_view, const JsonNode &text) {
        JsonNode(text, where).string();
      });
      return;
    }
    std::string place = where + ": tensor \"" + std::string(name) + "\"";
    JsonNode entry(value, place);
    entry.object({"dtype", "shape", "data_offsets"});
    Tensor tensor;
    tensor.spec.name = name;
    tensor.spec.dtype = entry["dtype"].string();
    tensor.spec.shape = entry["shape"].list([](const JsonNode &size) { return size.bytes(); });
    JsonNode offsets = entry["data_offsets"];
    offsets.tuple(2);
    int64_t begin = offsets.element(0).integer(0, total);
    int64_t end = offsets.element(1).integer(begin, total);
    int64_t needed = 0;
    try {
      needed = getByteSize(tensor.spec);
    } catch (const Error &error) {
      fail(error.what());
    }
    if (end - begin != needed)
      throw Error(place + " has " + std::to_string(end - begin) + " bytes, its shape needs " +
                  std::to_string(needed));
    tensor.data.assign(data + begin, data + end);
    ranges.emplace_back(begin, end);
    tensors.push_back(std::move(tensor));
  });

  // Tensors must follow each other without gaps from the first byte to the last.
  std::sort(ranges.begin(), ranges.end());
  int64_t covered = 0;
  for (auto [begin, end] : ranges) {
    if (begin != covered)
      fail(std::string("tensors ") + (begin < covered ? "overlap" : "leave a hole") + " at byte " +
           std::to_string(std::min(begin, covered)));
    covered = end;
  }
  if (covered != total)
    fail("the last " + std::to_string(total - covered) + " bytes belong to no tensor");
  return tensors;
}

std::vector<Tensor> weir::readSafetensors(const std::string &path) {
  Bytes bytes = readFile(path, "tensors");
  std::string_view text(reinterpret_cast<const char *>(bytes.data()), bytes.size());
  if (std::string kind = describeNoTensors(findFileKind(text)); !kind.empty())
    throw Error(path + ": " + kind);
  return parseSafetensors(bytes, path);
}

void weir::writeSafetensors(const std::string &path, const std::vector<Tensor> &tensors) {
  Bytes bytes = printSafetensors(tensors);
  writeText(path, {reinterpret_cast<const char *>(bytes.data()), bytes.size()});
}
