// Pods for simulated nodes, and what is read of their statuses.
#pragma once
#include "node/simulated/fleet.h"

namespace berth::node::simulated {

inline const TimePoint kStart = *parse_rfc3339("2026-01-01T00:00:00Z");

inline json::Value pod_document(std::string_view name, std::string_view spec_json, std::string_view annotations_json = "{}") {
  return *json::parse(fmt::format(R"({{"metadata":{{"namespace":"default","name":"{0}","uid":"uid-{0}","annotations":{2}}},"spec":{1},
    "status":{{"phase":"Pending","conditions":[{{"type":"PodScheduled","status":"True"}}]}}}})",
                                  name, spec_json, annotations_json));
}

inline json::Value simple_pod(std::string_view name, std::string_view annotations = "{}", std::string_view policy = "Always",
                              std::string_view command = "[]") {
  return pod_document(
      name,
      fmt::format(R"({{"nodeName":"node-1","restartPolicy":"{}","containers":[{{"name":"c","image":"nginx","command":{}}}]}})", policy,
                  command),
      annotations);
}

inline const json::Value& container(const json::Value& status, std::size_t i = 0) {
  return json::get_array(status, {"containerStatuses"})[i];
}

}  // namespace berth::node::simulated
