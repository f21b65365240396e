#include "node/simulated/devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "model/quantity.h"

namespace berth::node::simulated {
namespace {

constexpr int kMostDevices = 128;  ///< Of one ResourceSlice.

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> out;
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t end = std::min(text.find(separator, start), text.size());
    if (const auto part = trimmed(text.substr(start, end - start)); !part.empty()) out.push_back(part);
    start = end + 1;
  }
  return out;
}

bool is_version(std::string_view text) {
  return std::ranges::count(text, '.') == 2 && text.front() != '.' && text.back() != '.' &&
         std::ranges::all_of(text, [](char c) { return c == '.' || (c >= '0' && c <= '9'); });
}

void add_property(DeviceGroup& group, std::string_view key, std::string_view value) {
  std::int64_t number = 0;
  const auto read = std::from_chars(value.data(), value.data() + value.size(), number);
  if (read.ec == std::errc() && read.ptr == value.data() + value.size())
    group.attributes[key] = json::Object{{"int", number}};
  else if (value == "true" || value == "false")
    group.attributes[key] = json::Object{{"bool", value == "true"}};
  else if (is_version(value))
    group.attributes[key] = json::Object{{"version", value}};
  else if (const auto amount = model::Quantity::parse(value))
    group.capacity[key] = json::Object{{"value", amount->to_string()}};
  else
    group.attributes[key] = json::Object{{"string", value}};
}

}  // namespace

Result<std::vector<DeviceGroup>> parse_devices(std::string_view text) {
  std::vector<DeviceGroup> out;
  for (const std::string_view entry : split(text, ';')) {
    DeviceGroup group;
    for (const std::string_view part : split(entry, ',')) {
      const auto equals = part.find('=');
      const auto key = trimmed(part.substr(0, equals));
      const auto value = equals == std::string_view::npos ? std::string_view() : trimmed(part.substr(equals + 1));
      if (key.empty() || value.empty()) return invalid(fmt::format("\"{}\": wanted KEY=VALUE", part));
      if (!group.driver.empty()) {
        if (group.attributes.contains(key) || group.capacity.contains(key))
          return invalid(fmt::format("\"{}\": {} is there twice", part, key));
        add_property(group, key, value);
        continue;
      }
      group.driver = key;
      const auto read = std::from_chars(value.data(), value.data() + value.size(), group.count);
      if (read.ec != std::errc() || read.ptr != value.data() + value.size() || group.count < 1 || group.count > kMostDevices)
        return invalid(fmt::format("\"{}\": wanted DRIVER=COUNT with 1 to {} devices", part, kMostDevices));
    }
    if (std::ranges::find(out, group.driver, &DeviceGroup::driver) != out.end())
      return invalid(fmt::format("driver {} is there twice", group.driver));
    out.push_back(std::move(group));
  }
  return out;
}

std::vector<json::Value> make_slices(const json::Value& node, const std::vector<DeviceGroup>& groups) {
  const std::string name(json::get_string(node, {"metadata", "name"}));
  std::vector<json::Value> out;
  for (const DeviceGroup& group : groups) {
    json::Array devices;
    for (int i = 0; i < group.count; ++i) {
      json::Object attributes = group.attributes;
      attributes["index"] = json::Object{{"int", i}};
      json::Object device{{"name", fmt::format("device-{}", i)}, {"attributes", std::move(attributes)}};
      if (!group.capacity.empty()) device["capacity"] = group.capacity;
      devices.push_back(std::move(device));
    }
    json::Object owner{
        {"apiVersion", "v1"}, {"kind", "Node"}, {"name", name}, {"uid", json::get_string(node, {"metadata", "uid"})}, {"controller", true}};
    out.emplace_back(
        json::Object{{"apiVersion", "resource.k8s.io/v1"},
                     {"kind", "ResourceSlice"},
                     {"metadata", {{"name", fmt::format("{}-{}", name, group.driver)}, {"ownerReferences", json::Array{std::move(owner)}}}},
                     {"spec",
                      {{"driver", group.driver},
                       {"nodeName", name},
                       {"pool", {{"name", name}, {"generation", 1}, {"resourceSliceCount", 1}}},
                       {"devices", std::move(devices)}}}});
  }
  return out;
}

}  // namespace berth::node::simulated
