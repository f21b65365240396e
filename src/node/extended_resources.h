// Resources that somebody else put into a node's capacity (a REST call in the place of a device plugin's): the kubelet makes them
// allocatable, real and simulated alike (kubelet nodestatus/setters.go MachineInfo).
#pragma once
#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "model/validation/validation.h"

namespace berth::node {

struct ExtendedResources {
  std::map<std::string, std::string> present;  ///< Of status.capacity.
  std::vector<std::string> gone;               ///< Allocatable still, of the capacity no more.
  friend bool operator==(const ExtendedResources&, const ExtendedResources&) = default;
};

/// `own`: what the node itself has, by name; that is its own to say.
template <typename Own>
ExtendedResources extended_resources(const json::Value& node, const Own& own) {
  ExtendedResources out;
  for (const auto& [key, value] : json::get_object(node, {"status", "capacity"}))
    if (const std::string name(key); value.is_string() && model::validation::is_extended_resource(name) && !own.contains(name))
      out.present.emplace(name, json::as_view(value));
  for (const auto& [key, value] : json::get_object(node, {"status", "allocatable"}))
    if (const std::string name(key); model::validation::is_extended_resource(name) && !own.contains(name) && !out.present.contains(name))
      out.gone.push_back(name);
  return out;
}

}  // namespace berth::node
