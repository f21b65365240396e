#include "tests/world/subjects/scaling.h"

namespace berth::world {
namespace {

constexpr Duration kKnownFor = std::chrono::seconds(90);  ///< A pod's binding is known to whoever takes its node away by then.

}  // namespace

void ScalingSubject::begin(const std::string& user) {
  hand_ = std::make_unique<Hand>(world_, user);
  hand_->make(gvr::kNamespaces, "", make_namespace(ns_));
}

void ScalingSubject::make_pods(const std::string& name, json::Object annotations, json::Value spec) {
  json::Value deployment =
      document(fmt::format(R"({{"apiVersion":"apps/v1","kind":"Deployment","metadata":{{"name":"{0}"}},"spec":{{"replicas":1,"selector":)"
                           R"({{"matchLabels":{{"app":"{0}"}}}},"template":{{"metadata":{{"labels":{{"app":"{0}"}}}}}}}}}})",
                           name));
  json::set(deployment, {"spec", "template", "metadata", "annotations"}, std::move(annotations));
  json::set(deployment, {"spec", "template", "spec"}, std::move(spec));
  hand_->make(gvr::kDeployments, ns_, std::move(deployment));
}

void ScalingSubject::scale(std::int64_t replicas) {
  hand_->change(gvr::kDeployments, ns_, "moves", client::PatchType::kMerge, json::Object{{"spec", json::Object{{"replicas", replicas}}}});
}

void ScalingSubject::note_binding(const Seen& seen) {
  if (seen.is_new()) bound_.erase(std::string(Seen::uid(seen.before)));
  if (!json::get_string(seen.now, {"spec", "nodeName"}).empty()) bound_.emplace(Seen::uid(seen.now), seen.at);
}

void ScalingSubject::judge_end(const Seen& node) {
  chronicle_.for_each("pods", ns_, [&](const std::string& name, const json::Value& pod) {
    if (json::get_string(pod, {"spec", "nodeName"}) != node.name || !is_active(pod)) return;
    if (const auto since = bound_.find(Seen::uid(pod)); since != bound_.end() && since->second + kKnownFor < node.at)
      find(fmt::format("{}: goes, and {} is on it", node.words(), name));
  });
}

void ScalingSubject::judge_pods(int wanted, std::string_view when) {
  int running = 0;
  std::string others;
  chronicle_.for_each("pods", ns_, [&](const std::string& name, const json::Value& pod) {
    if (is_active(pod) && is_ready(pod))
      ++running;
    else
      others += fmt::format(" {} on \"{}\"", name, json::get_string(pod, {"spec", "nodeName"}));
  });
  if (running != wanted) find(fmt::format("{} of {} pods run {};{} do not", running, wanted, when, others));
}

}  // namespace berth::world
