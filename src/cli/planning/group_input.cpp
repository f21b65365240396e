#include "cli/planning/group_input.h"

#include <fmt/format.h>

#include <algorithm>

#include "placement/groups/group_placement.h"

namespace berth::cli {

void GroupInput::add(const json::Value& object) {
  const std::string_view kind = json::get_string(object, {"kind"}), version = json::get_string(object, {"apiVersion"});
  // Others have a kind of that name, too.
  if (kind == "PodGroup" && (version.empty() || version.starts_with("scheduling.k8s.io/"))) {
    groups_.upsert(std::make_shared<const placement::PodGroup>(placement::PodGroup::parse(object)));
  }
  if (kind != "Pod" && !kind.empty()) return;
  const std::string key = model::pod_group_key(object), phase(json::get_string(object, {"status", "phase"}));
  if (key.empty() || phase == "Succeeded" || phase == "Failed") return;
  auto pod = placement::PodInfo::make(std::make_shared<const model::PodView>(model::PodView::parse(object)), era_);
  groups_.add_member(key, {pod->view().meta.uid, pod->key});
  if (pod->view().node_name.empty()) waiting_[key].push_back(std::move(pod));
}

placement::GroupToExplain GroupInput::question(const std::string& key) const {
  placement::GroupToExplain out{.group = groups_.find(key), .waiting = {}};
  if (const auto found = waiting_.find(key); found != waiting_.end()) out.waiting = found->second;
  std::ranges::stable_sort(out.waiting, std::greater(), [](const auto& pod) { return pod->view().priority; });
  return out;
}

json::Value group_of_job(const json::Value& document) {
  if (json::get_string(document, {"kind"}) != "Job" || json::get_string(document, {"spec", "completionMode"}) != "Indexed") return {};
  const std::int64_t parallelism = json::get_int(document, {"spec", "parallelism"}, 1);
  if (parallelism < 2 || json::get_int(document, {"spec", "completions"}) != parallelism) return {};
  if (json::find(document, {"spec", "template", "spec", "schedulingGroup"}) != nullptr) return {};
  json::Value out{{"kind", "PodGroup"},
                  {"metadata", {{"name", fmt::format("Job {}", json::get_string(document, {"metadata", "name"}))}}},
                  {"spec", {{"schedulingPolicy", {{"gang", {{"minCount", parallelism}}}}}}}};
  if (const auto ns = json::get_string(document, {"metadata", "namespace"}); !ns.empty())
    json::set(out, {"metadata", "namespace"}, json::Value(ns));
  return out;
}

}  // namespace berth::cli
