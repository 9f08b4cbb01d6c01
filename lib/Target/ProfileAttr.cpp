//===- ProfileAttr.cpp - The profile as an attribute of the module --------===//
//
// The attribute mirrors the JSON of a profile file key by key, so the keys and
// their checks are written once, in the artifact's room.
//
//===----------------------------------------------------------------------===//

#include "weir/Target/ProfileAttr.h"

#include "dialects/Schedule/Schedule.h"
#include "mlir/IR/Builders.h"
#include "nlohmann/json.hpp"
#include "weir/Target/Errors.h"

using namespace mlir;
using json = nlohmann::ordered_json;

static Attribute toAttribute(Builder &builder, const json &value) {
  if (value.is_boolean())
    return builder.getBoolAttr(value.get<bool>());
  if (value.is_number_integer())
    return builder.getI64IntegerAttr(value.get<int64_t>());
  if (value.is_string())
    return builder.getStringAttr(value.get<std::string>());
  SmallVector<Attribute> elements;
  for (const json &element : value)
    elements.push_back(toAttribute(builder, element));
  return builder.getArrayAttr(elements);
}

static json toJson(Attribute attribute) {
  if (auto flag = dyn_cast<BoolAttr>(attribute))
    return flag.getValue();
  if (auto integer = dyn_cast<IntegerAttr>(attribute))
    return integer.getInt();
  if (auto string = dyn_cast<StringAttr>(attribute))
    return string.getValue().str();
  json result = json::array();
  if (auto array = dyn_cast<ArrayAttr>(attribute))
    for (Attribute element : array)
      result.push_back(toJson(element));
  return result;
}

void weir::setProfile(ModuleOp module, const Profile &profile) {
  Builder builder(module.getContext());
  SmallVector<NamedAttribute> entries;
  json object = json::parse(printProfile(profile));
  for (auto &[key, value] : object.items())
    entries.push_back(builder.getNamedAttr(key, toAttribute(builder, value)));
  module->setAttr(schedule::profileAttrName, builder.getDictionaryAttr(entries));
}

FailureOr<weir::Profile> weir::getProfile(ModuleOp module) {
  auto dictionary = module->getAttrOfType<DictionaryAttr>(schedule::profileAttrName);
  if (!dictionary) {
    module.emitError() << "module has no attribute " << schedule::profileAttrName
                       << "; run weir-set-profile first";
    return failure();
  }
  json object = json::object();
  for (NamedAttribute entry : dictionary)
    object[entry.getName().str()] = toJson(entry.getValue());
  return catchErrors([&] { return module.emitError(); },
                     [&] { return parseProfile(object.dump(), schedule::profileAttrName.str()); });
}
