//===- Devices.cpp - weir devices -----------------------------------------===//

#include "Handles.h"
#include "Output.h"
#include "Verbs.h"
#include "weir/Artifact/Artifact.h"

#include <iostream>
#include <memory>

using namespace weir;
using namespace weir::tool;

namespace {
struct DevicesOptions {
  bool json = false;
  std::string api;     ///< empty: all
  std::string profile; ///< a path; "-" is standard output
  size_t index = 0;
};
} // namespace

static std::string getProfileText(weir_device *device) {
  char *text = nullptr;
  check(weir_device_profile(device, &text));
  std::string profile = text;
  weir_string_free(text);
  return profile;
}

static void emitProfile(const DevicesOptions &options) {
  std::string text =
      getProfileText(openDevice(options.api.empty() ? "vulkan" : options.api, options.index).get());
  if (options.profile == "-")
    std::cout << text;
  else
    writeText(options.profile, text);
}

/// Returns the number of devices of an API; 0 if it is not here, unless it was asked for.
static size_t count(const DevicesOptions &options, const std::string &api) {
  size_t number = 0;
  weir_status status = weir_device_count(api.c_str(), &number);
  if (!options.api.empty())
    check(status);
  return status == WEIR_OK ? number : 0;
}

static int runDevices(const DevicesOptions &options) {
  if (!options.profile.empty()) {
    emitProfile(options);
    return Done;
  }
  std::vector<std::string> apis = {"cuda", "vulkan", "cpu"}; // the order of `chooseApi`
  if (!options.api.empty())
    apis = {options.api};
  Json list = Json::array();
  std::vector<std::vector<std::string>> rows;
  bool hasDefault = false;
  for (const std::string &api : apis)
    for (size_t i = 0, number = count(options, api); i < number; ++i) {
      DeviceHandle device = openDevice(api, i);
      std::string name = weir_device_name(device.get()), text = getProfileText(device.get());
      Profile profile = parseProfile(text, "the profile of device " + std::to_string(i));
      bool isDefault =
          options.api.empty() && !hasDefault && (api == "cpu" || weir_device_is_gpu(device.get()));
      hasDefault |= isDefault;
      list.push_back({{"index", i},
                      {"api", api},
                      {"name", name},
                      {"default", isDefault},
                      {"profile", Json::parse(text)}});
      rows.push_back({api, std::to_string(i), name, profile.isa.empty() ? profile.api : profile.isa,
                      std::to_string(profile.subgroupSize),
                      std::to_string(profile.maxWorkgroupSize),
                      std::to_string(profile.workgroupMemory), isDefault ? "default" : ""});
    }
  if (options.json) {
    printJson(list);
    return Done;
  }
  printTable({"api", "index", "device", "code", "subgroup", "workgroup", "workgroup bytes", ""},
             rows);
  std::cout << "\nBuilt-in profiles for weir compile --target:\n";
  for (const std::string &api : apis)
    for (const std::string &name : getBuiltinProfileNames(api.substr(0, api.find(':'))))
      std::cout << "  " << api.substr(0, api.find(':')) << ":" << name << "\n";
  return Done;
}

void tool::addDevices(CLI::App &app, Verb &chosen) {
  auto options = std::make_shared<DevicesOptions>();
  CLI::App *verb = app.add_subcommand("devices", "List this machine's devices");
  verb->add_option(
          "--api", options->api,
          "The devices to list: vulkan, cuda, cpu, or cpu:x86-64-v3, the processor as if it had no "
          "better instruction set (default all; of --emit-profile vulkan)")
      ->type_name("API");
  verb->add_flag("--json", options->json, "Print JSON, with the profile that fits each device");
  verb->add_option("--emit-profile", options->profile,
                   "Write the profile that fits device --index, for compile's "
                   "--target=vulkan:FILE, cuda:FILE or cpu:FILE; without FILE to standard output")
      ->expected(0, 1)
      ->default_str("-")
      ->type_name("FILE");
  verb->add_option("--index", options->index, "Index of the device of --emit-profile (default 0)")
      ->type_name("N");
  verb->callback([options, verb, &chosen] {
    if (verb->count("--emit-profile") && options->profile.empty())
      options->profile = "-";
    chosen = [options] { return runDevices(*options); };
  });
}
