// A Deployment whose template is edited again and again: it never wants more pods than it may have, and at rest all are of the newest one.
#include <algorithm>

#include "tests/world/subject.h"

namespace berth::world {
namespace {

constexpr const char* kNs = "rollout";
constexpr std::int64_t kReplicas = 4, kSurge = 2;
/// For a new leader, who waits for what he cannot watch, with room.
constexpr Duration kBegun = std::chrono::seconds(100);

class RolloutSubject final : public Subject {
 public:
  using Subject::Subject;

  void set_up() override {
    hand_ = std::make_unique<Hand>(world_, "developer");
    hand_->make(gvr::kNamespaces, "", make_namespace(kNs));
    json::Value deployment = document(fmt::format(
        R"({{"apiVersion":"apps/v1","kind":"Deployment","metadata":{{"name":"site"}},"spec":{{"replicas":{},"selector":{{"matchLabels":)"
        R"({{"app":"site"}}}},"strategy":{{"rollingUpdate":{{"maxSurge":{},"maxUnavailable":1}}}},"template":{{"metadata":)"
        R"({{"labels":{{"app":"site","version":"0"}}}}}}}}}})",
        kReplicas, kSurge));
    json::Value spec = pod_spec();
    // Of a node that has gone silent they go soon, and are made elsewhere.
    json::set(spec, {"tolerations"}, document(R"([{"operator":"Exists","effect":"NoExecute","tolerationSeconds":10}])"));
    json::set(deployment, {"spec", "template", "spec"}, std::move(spec));
    hand_->make(gvr::kDeployments, kNs, std::move(deployment));
  }

  void act(std::uint64_t which, double share) override {
    if (share < 0.2) {
      const auto pods = chronicle_.names("pods", kNs);
      if (!pods.empty()) hand_->try_remove(gvr::kPods, kNs, pods[which % pods.size()]);
      return;
    }
    // Every other time back to where it was before.
    version_ = share < 0.5 ? std::max(version_ - 1, 0) : version_ + 1;
    hand_->client.patch(gvr::kDeployments, kNs, "site", client::PatchType::kMerge, of_version(std::to_string(version_)),
                        [](const auto&) {});
  }

  void see(const Seen& seen) override {
    if (seen.resource != "replicasets" || seen.ns != kNs || seen.now.is_null()) return;
    const auto wanted = json::get_int(seen.now, {"spec", "replicas"});
    if (!seen.is_new() && wanted <= json::get_int(seen.before, {"spec", "replicas"})) return;
    std::int64_t sum = 0;
    chronicle_.for_each("replicasets", kNs, [&](const std::string&, const json::Value& set) {
      sum += json::get_int(set, {"spec", "replicas"});
    });
    if (sum > kReplicas + kSurge) find(fmt::format("{}: {} pods are wanted, {} may be", seen.words(), sum, kReplicas + kSurge));
  }

  /// Whoever controls then has begun to roll before anybody starts him anew (TaintSubject does, later).
  void heal() override {
    hand_->change(gvr::kDeployments, kNs, "site", client::PatchType::kMerge, of_version("last"));
    world_.loop().schedule_after(kBegun, [this] {
      bool has_begun = false;
      chronicle_.for_each("replicasets", kNs, [&](const std::string&, const json::Value& set) {
        has_begun = has_begun || json::get_string(set, {"metadata", "labels", "version"}) == "last";
      });
      if (!has_begun) find("nobody has begun to roll to the last version");
    });
  }

  void judge_rest() override {
    std::int64_t ready = 0;
    chronicle_.for_each("pods", kNs, [&](const std::string& name, const json::Value& pod) {
      if (is_active(pod) && is_ready(pod) && json::get_string(pod, {"metadata", "labels", "version"}) == "last")
        ++ready;
      else
        find(fmt::format("{} is {} on {}, of version {}", name, json::get_string(pod, {"status", "phase"}),
                         json::get_string(pod, {"spec", "nodeName"}), json::get_string(pod, {"metadata", "labels", "version"})));
    });
    if (ready != kReplicas) find(fmt::format("{} of {} pods", ready, kReplicas));
  }

 private:
  static json::Value of_version(const std::string& version) {
    json::Value patch = json::Object();
    json::set(patch, {"spec", "template", "metadata", "labels", "version"}, json::Value(version));
    return patch;
  }

  std::unique_ptr<Hand> hand_;
  int version_ = 0;
};

}  // namespace

std::unique_ptr<Subject> make_rollout_subject(World& world, Chronicle& chronicle) {
  return std::make_unique<RolloutSubject>(world, chronicle);
}

}  // namespace berth::world
