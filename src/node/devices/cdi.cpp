#include "node/devices/cdi.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/log.h"
#include "base/yaml.h"
#include "node/state_files.h"

namespace berth::node::devices {
namespace {

using json::get_array;
using json::get_string;

/// What no field of the CRI carries.
constexpr std::string_view kBeyond[] = {"hooks", "additionalGids", "intelRdt", "netDevices"};

struct Found {
  const json::Value *spec = nullptr, *device = nullptr;
};

Found find_device(const std::vector<json::Value>& specs, std::string_view kind, std::string_view name) {
  Found out;
  for (const json::Value& spec : specs) {
    if (get_string(spec, {"kind"}) != kind) continue;
    for (const json::Value& device : get_array(spec, {"devices"}))
      if (get_string(device, {"name"}) == name) out = {&spec, &device};
  }
  return out;
}

Result<void> add_edits(const json::Value& holder, const std::string& whose, DeviceGrant& out) {
  const json::Value* edits = json::find(holder, "containerEdits");
  if (edits == nullptr) return {};
  for (const std::string_view field : kBeyond)
    if (const json::Value* there = json::find(*edits, field); there != nullptr && !there->is_null())
      return fail(
          ErrorCode::kUnavailable,
          fmt::format("CDI device {} wants {}, which this container runtime cannot be told of: its CRI has no CDI devices", whose, field));
  for (const json::Value& one : get_array(*edits, {"env"})) {
    const std::string text(one.is_string() ? json::as_view(one) : "");
    const std::size_t equals = text.find('=');
    if (equals != std::string::npos) out.environment[text.substr(0, equals)] = text.substr(equals + 1);
  }
  for (const json::Value& node : get_array(*edits, {"deviceNodes"})) {
    const std::string_view path = get_string(node, {"path"});
    out.devices.push_back(json::Object{{"container_path", path},
                                       {"host_path", get_string(node, {"hostPath"}, path)},
                                       {"permissions", get_string(node, {"permissions"}, "rwm")}});
  }
  for (const json::Value& mount : get_array(*edits, {"mounts"})) {
    const auto& options = get_array(mount, {"options"});
    const bool is_read_only =
        std::ranges::any_of(options, [](const json::Value& one) { return one.is_string() && json::as_view(one) == "ro"; });
    out.mounts.push_back(json::Object{{"container_path", get_string(mount, {"containerPath"})},
                                      {"host_path", get_string(mount, {"hostPath"})},
                                      {"read_only", is_read_only}});
  }
  return {};
}

}  // namespace

std::vector<json::Value> read_cdi_specs(std::span<const std::string> folders) {
  std::vector<json::Value> out;
  for (const std::string& folder : folders) {
    std::vector<std::string> names;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(folder, error))
      if (const auto extension = entry.path().extension(); extension == ".json" || extension == ".yaml") names.push_back(entry.path());
    std::ranges::sort(names);
    for (const std::string& name : names) {
      auto spec = json::parse_yaml(read_file(name).value_or(""));  // JSON is YAML.
      if (spec && spec->is_object())
        out.push_back(std::move(*spec));
      else
        log::warning("devices", "{} is no CDI specification", name);
    }
  }
  return out;
}

Result<DeviceGrant> cdi_edits(const std::vector<json::Value>& specs, const std::vector<std::string>& devices) {
  DeviceGrant out;
  std::vector<const json::Value*> whole;  // Of a specification that several devices are of, what it says of all counts once.
  for (const std::string& id : devices) {
    const std::size_t equals = id.find('=');
    const Found found = equals == std::string::npos ? Found{} : find_device(specs, id.substr(0, equals), id.substr(equals + 1));
    if (found.device == nullptr)
      return fail(ErrorCode::kUnavailable,
                  fmt::format("unresolvable CDI device {}: no specification in {} has it", id, "/etc/cdi or /var/run/cdi"));
    if (std::ranges::find(whole, found.spec) == whole.end()) {
      whole.push_back(found.spec);
      if (auto added = add_edits(*found.spec, id, out); !added) return std::unexpected(added.error());
    }
    if (auto added = add_edits(*found.device, id, out); !added) return std::unexpected(added.error());
  }
  return out;
}

}  // namespace berth::node::devices
