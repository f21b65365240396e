// A StatefulSet whose pods are scaled, deleted and rolled: its claims stay, each with its own volume, and at rest there is one pod an
// ordinal, of the newest template. Here, too, what holds of all pods: nobody takes one that may run from its node without the node's word,
// so that no second one of its name runs elsewhere.
#include "tests/world/subject.h"

namespace berth::world {
namespace {

constexpr const char* kNs = "sets";
constexpr int kVolumes = 5, kReplicas = 3;

class StatefulSetSubject final : public Subject {
 public:
  using Subject::Subject;

  void set_up() override {
    hand_ = std::make_unique<Hand>(world_, "keeper");
    hand_->make(gvr::kNamespaces, "", make_namespace(kNs));
    for (int i = 0; i < kVolumes; ++i)
      hand_->make(
          gvr::kVolumes, "",
          document(fmt::format(
              R"({{"apiVersion":"v1","kind":"PersistentVolume","metadata":{{"name":"v{}"}},"spec":{{"capacity":{{"storage":"1Gi"}},)"
              R"("accessModes":["ReadWriteOnce"],"storageClassName":"hand","hostPath":{{"path":"/v"}}}}}})",
              i)));
    json::Value set = document(
        R"({"apiVersion":"apps/v1","kind":"StatefulSet","metadata":{"name":"db"},"spec":{"serviceName":"db","selector":{"matchLabels":)"
        R"({"app":"db"}},"template":{"metadata":{"labels":{"app":"db"}}},"volumeClaimTemplates":[{"metadata":{"name":"data"},"spec":)"
        R"({"accessModes":["ReadWriteOnce"],"storageClassName":"hand","resources":{"requests":{"storage":"1Gi"}}}}]}})");
    json::set(set, {"spec", "replicas"}, kReplicas);
    json::Value spec = pod_spec();
    json::set(spec.get_object()["containers"].get_array()[0], {"volumeMounts"}, document(R"([{"name":"data","mountPath":"/data"}])"));
    json::set(set, {"spec", "template", "spec"}, std::move(spec));
    hand_->make(gvr::kSets, kNs, std::move(set));
  }

  void act(std::uint64_t which, double share) override {
    if (share < 0.4) return hand_->try_remove(gvr::kPods, kNs, fmt::format("db-{}", which % kReplicas));
    json::Value patch = json::Object();
    if (share < 0.7)
      json::set(patch, {"spec", "replicas"}, static_cast<std::int64_t>(1 + which % (kVolumes - 1)));
    else
      json::set(patch, {"spec", "template", "metadata", "annotations", "version"}, json::Value(std::to_string(++version_)));
    hand_->client.patch(gvr::kSets, kNs, "db", client::PatchType::kMerge, patch, [](const auto&) {});
  }

  void see(const Seen& seen) override {
    if (seen.resource == "pods") see_pod(seen);
    if (seen.resource == "persistentvolumeclaims") see_claim(seen);
    if (seen.resource != "persistentvolumes" || seen.before.is_null()) return;
    const auto before = json::get_string(seen.before, {"spec", "claimRef", "uid"});
    if (!before.empty() && before != json::get_string(seen.now, {"spec", "claimRef", "uid"}))
      find(fmt::format("{}: a volume leaves its claim, which stays", seen.words()));
  }

  void heal() override {
    json::Value patch = json::Object();
    json::set(patch, {"spec", "replicas"}, kReplicas);
    json::set(patch, {"spec", "template", "metadata", "annotations", "version"}, "last");
    hand_->change(gvr::kSets, kNs, "db", client::PatchType::kMerge, std::move(patch));
  }

  void judge_rest() override {
    int ready = 0;
    chronicle_.for_each("pods", kNs, [&](const std::string& name, const json::Value& pod) {
      if (is_active(pod) && is_ready(pod) && json::get_string(pod, {"metadata", "annotations", "version"}) == "last")
        ++ready;
      else
        find(fmt::format("{} is {}, of version {}", name, json::get_string(pod, {"status", "phase"}),
                         json::get_string(pod, {"metadata", "annotations", "version"})));
    });
    if (ready != kReplicas) find(fmt::format("{} of {} pods", ready, kReplicas));
    for (int i = 0; i < kReplicas; ++i)
      if (json::get_string(chronicle_.find("persistentvolumeclaims", kNs, fmt::format("data-db-{}", i)), {"status", "phase"}) != "Bound")
        find(fmt::format("the claim of ordinal {} is not bound", i));
  }

 private:
  void see_pod(const Seen& seen) {
    // Who gives no time takes it as well.
    const bool is_taken = seen.now.is_null() || seen.is_new() ||
                          (is_leaving(seen.now) && json::get_int(seen.now, {"metadata", "deletionGracePeriodSeconds"}) == 0);
    if (!seen.before.is_null() && is_taken && is_active(seen.before) && !json::get_string(seen.before, {"spec", "nodeName"}).empty())
      find(fmt::format("{}: taken from {} without a word", seen.words(), json::get_string(seen.before, {"spec", "nodeName"})));
    if (seen.ns != kNs || seen.now.is_null() || !seen.is_new()) return;
    for (const auto& volume : json::get_array(seen.now, {"spec", "volumes"}))
      if (const auto claim = json::get_string(volume, {"persistentVolumeClaim", "claimName"});
          !claim.empty() && claim != fmt::format("data-{}", seen.name))
        find(fmt::format("{}: with the claim {}", seen.words(), claim));
  }

  void see_claim(const Seen& seen) {
    if (seen.ns != kNs) return;
    const std::string key(seen.name);
    std::erase_if(volumes_, [&](const auto& entry) { return entry.second == key; });
    if (seen.now.is_null()) return find(fmt::format("{}: a claim is gone", seen.words()));
    const std::string volume(json::get_string(seen.now, {"spec", "volumeName"}));
    if (volume.empty()) return;
    const auto [at, is_free] = volumes_.emplace(volume, key);
    if (!is_free) find(fmt::format("{}: has the volume {} of {}", seen.words(), volume, at->second));
  }

  std::unique_ptr<Hand> hand_;
  std::map<std::string, std::string> volumes_;  ///< Volumes, and the claim that has each.
  int version_ = 0;
};

}  // namespace

std::unique_ptr<Subject> make_stateful_set_subject(World& world, Chronicle& chronicle) {
  return std::make_unique<StatefulSetSubject>(world, chronicle);
}

}  // namespace berth::world
