#include "node/agent/container_devices.h"

#include <algorithm>

namespace berth::node::agent {
namespace {

json::Array& list_of(json::Object& config, std::string_view field) {
  auto& list = config[field];
  if (!list.is_array()) list = json::Array();
  return list.get_array();
}

}  // namespace

void add_devices(const devices::DeviceGrant& grant, json::Object& config) {
  auto& variables = list_of(config, "envs");
  for (const auto& [name, value] : grant.environment)
    if (std::ranges::none_of(variables, [&](const json::Value& one) { return json::get_string(one, {"key"}) == name; }))
      variables.push_back(json::Object{{"key", name}, {"value", value}});
  for (const auto& mount : grant.mounts)
    list_of(config, "mounts")
        .push_back(json::Object{{"container_path", json::get_string(mount, {"container_path"})},
                                {"host_path", json::get_string(mount, {"host_path"})},
                                {"readonly", json::get_bool(mount, {"read_only"})}});
  for (const auto& device : grant.devices)
    list_of(config, "devices")
        .push_back(json::Object{{"container_path", json::get_string(device, {"container_path"})},
                                {"host_path", json::get_string(device, {"host_path"})},
                                {"permissions", json::get_string(device, {"permissions"})}});
  for (const auto& [name, value] : grant.annotations) config["annotations"].get_object().emplace(name, value);
  for (const auto& name : grant.cdi_devices) list_of(config, "CDI_devices").push_back(json::Object{{"name", name}});
}

Result<void> add_block_volumes(const std::map<std::string, PlacedVolume>& volumes, const json::Value& container, json::Object& config) {
  for (const json::Value& device : json::get_array(container, {"volumeDevices"})) {
    const std::string name(json::get_string(device, {"name"}));
    const auto volume = volumes.find(name);
    if (volume == volumes.end() || !volume->second.is_block)
      return invalid(fmt::format("volume \"{}\" is no block device: volumeDevices wants volumeMode Block", name));
    list_of(config, "devices")
        .push_back(json::Object{{"container_path", json::get_string(device, {"devicePath"})},
                                {"host_path", volume->second.host_path},
                                {"permissions", volume->second.read_only ? "r" : "mrw"}});
  }
  return {};
}

}  // namespace berth::node::agent
