// What the cells of several kinds' table rows show, and a pod's state as its row tells it. Within src/model only; everybody else uses
// tables.h.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/json.h"

namespace berth::model {

/// The STATUS column of a pod, its ready, total and restart counts (printers.go printPod).
struct PodSummary {
  std::string status;
  int ready = 0, total = 0, restarts = 0;
  std::string last_restart;  ///< RFC 3339, or empty.
};
PodSummary summarise_pod(const json::Value& pod);

namespace tables {

json::Value name_of(const json::Value& o);
json::Value age_of(const json::Value& o, TimePoint now);
json::Value or_none(std::string_view text);
json::Value or_unset(std::string_view text);
std::string join(const std::vector<std::string>& parts, std::string_view separator = ",");
/// "a=b,c=d"; "<none>" for an empty map.
std::string map_text(const json::Object& map);
/// A metav1.LabelSelector as kubectl prints it.
std::string selector_text(const json::Value& object, json::Path path);
std::pair<std::string, std::string> containers_and_images(const json::Array& containers);
std::string array_text(const json::Array& array);

}  // namespace tables
}  // namespace berth::model
