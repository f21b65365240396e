// DaemonSets: one pod on every node that fits (pkg/controller/daemon). Where a pod belongs is asked of placement/, by the rules that the
// scheduler then binds it by, held to its node by an affinity on metadata.name.
#include "controllers/common.h"
#include "controllers/daemonset_model.h"
#include "controllers/revisions.h"
#include "controllers/taints.h"
#include "controllers/workloads.h"

namespace berth::controllers {
namespace {

constexpr std::size_t kBurst = 1000;  ///< Creates, and deletes, of one step.
constexpr const char* kTemplateGeneration = "deprecated.daemonset.template.generation";

class DaemonSetController final : public Controller {
 public:
  [[nodiscard]] std::string_view name() const override { return "daemonset-controller"; }
  [[nodiscard]] std::vector<Kind> watches() const override {
    return {kinds().daemon_set, kinds().pod, kinds().node, kinds().controller_revision};
  }
  void on_event(const Event& event, const Cache& cache, TimePoint, KeySink& sink) override;
  Plan reconcile(const std::string& key, TimePoint now, const Cache& cache) override;

 private:
  /// What decides about a node's pods; a heartbeat changes none of it.
  struct NodeFacts {
    model::Labels labels;
    std::vector<model::Taint> taints;
    friend bool operator==(const NodeFacts&, const NodeFacts&) = default;
  };
  static json::Value daemon_template(const json::Value& document, const std::string& hash);
  [[nodiscard]] std::vector<daemon::NodePods> group_by_node(const std::vector<PodRef>& pods, const model::PodView& view) const;
  static void carry_out(Plan& plan, const Object& object, const json::Value& pod_template, const daemon::Steps& steps);
  static json::Object status_of(const json::Value& document, const daemon::Counts& counts);

  /// Failed pods of one node: the first is replaced at once, the next ones after 1 s, 2 s, … 15 min.
  struct Backoff {
    Duration delay{0};
    TimePoint last{};
    /// Zero: go on, which counts as one more; else what is left to wait.
    Duration wait(TimePoint now) {
      constexpr Duration kBase = std::chrono::seconds(1), kMost = std::chrono::minutes(15);
      if (delay > Duration{0} && now - last < delay) return delay - (now - last);
      delay = delay == Duration{0} || now - last > 2 * kMost ? kBase : std::min(2 * delay, kMost);
      last = now;
      return Duration{0};
    }
  };

  std::map<std::string, NodeFacts> nodes_;
  std::map<std::string, std::map<std::string, Backoff>> backoffs_;  ///< By key and node.
};

std::vector<Toleration> daemon_tolerations(bool host_network) {
  std::vector<Toleration> all = {
      {kTaintNotReady, "Exists", "", "NoExecute", {}},      {kTaintUnreachable, "Exists", "", "NoExecute", {}},
      {kTaintDiskPressure, "Exists", "", "NoSchedule", {}}, {kTaintMemoryPressure, "Exists", "", "NoSchedule", {}},
      {kTaintPidPressure, "Exists", "", "NoSchedule", {}},  {kTaintUnschedulable, "Exists", "", "NoSchedule", {}}};
  if (host_network) all.push_back({kTaintNetworkUnavailable, "Exists", "", "NoSchedule", {}});
  return all;
}

/// The node a daemon pod is for: where it is, or where its affinity sends it.
std::string target_node(const PodInfo& pod) {
  if (!pod.node.empty()) return pod.node;
  const json::Value document = pod.object->document();
  for (const json::Value& term : json::get_array(
           document, {"spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"}))
    for (const json::Value& field : json::get_array(term, {"matchFields"}))
      for (const json::Value& value : json::get_array(field, {"values"}))
        if (value.is_string()) return std::string(json::as_view(value));
  return {};
}

void DaemonSetController::on_event(const Event& event, const Cache& cache, TimePoint, KeySink& sink) {
  if (event.kind == kinds().pod) return enqueue_pod_owners(kinds().daemon_set, event, cache, sink, label_selector_of);
  if (event.kind == kinds().daemon_set) return sink.add(event.object().key());
  if (event.kind == kinds().controller_revision) {
    if (event.object().controller_kind() == "DaemonSet") sink.add(event.object().ns() + "/" + event.object().controller_name());
    return;
  }
  const std::string& name = event.object().name();
  if (!event.after) {
    nodes_.erase(name);
  } else {
    NodeFacts facts{event.after->labels(), {}};
    if (event.after->bytes().find("\"taints\"") != std::string::npos) {
      const json::Value document = event.after->document();
      for (const json::Value& taint : json::get_array(document, {"spec", "taints"})) facts.taints.push_back(model::parse_taint(taint));
    }
    const auto it = nodes_.find(name);
    if (it != nodes_.end() && it->second == facts) return;
    nodes_[name] = std::move(facts);
  }
  cache.for_each(kinds().daemon_set, [&](const ObjectRef& set) { sink.add(set->key()); });
}

json::Value DaemonSetController::daemon_template(const json::Value& document, const std::string& hash) {
  json::Value pod_template = json::get_object(document, {"spec", "template"});
  json::set(pod_template, {"metadata", "labels", "controller-revision-hash"}, json::Value(hash));
  const std::string_view generation = json::get_string(document, {"metadata", "annotations", kTemplateGeneration});
  if (!generation.empty()) json::set(pod_template, {"metadata", "labels", "pod-template-generation"}, json::Value(generation));
  json::Array tolerations = json::get_array(pod_template, {"spec", "tolerations"});
  for (const Toleration& own : daemon_tolerations(json::get_bool(pod_template, {"spec", "hostNetwork"}))) {
    const bool there = std::any_of(tolerations.begin(), tolerations.end(), [&](const json::Value& t) {
      return json::get_string(t, {"key"}) == own.key && json::get_string(t, {"operator"}) == "Exists" &&
             json::get_string(t, {"effect"}) == own.effect && json::find(t, "tolerationSeconds") == nullptr;
    });
    if (!there) tolerations.push_back(json::Object{{"key", own.key}, {"operator", own.op}, {"effect", own.effect}});
  }
  json::set(pod_template, {"spec", "tolerations"}, std::move(tolerations));
  return pod_template;
}

Plan DaemonSetController::reconcile(const std::string& key, TimePoint now, const Cache& cache) {
  Plan plan;
  const auto [ns, name] = split_key(key);
  const ObjectRef object = cache.get(kinds().daemon_set, ns, name);
  if (!object) {
    backoffs_.erase(key);
    return plan;
  }
  const json::Value document = object->document();
  const model::Selector selector = label_selector_of(document);
  if (selector.is_everything()) {
    plan.events.push_back(note_about(kinds().daemon_set, *object, "Warning", "SelectingAll",
                                     "This daemon set is selecting all pods. A non-empty selector is required."));
    return plan;
  }
  // Its revisions may be gone before its pods: nothing can be told of a set on its way out.
  if (object->is_deleting()) return plan;
  Claim claim = claim_pods(kinds().daemon_set, *object, selector, cache, any_pod);
  plan.writes = std::move(claim.writes);
  const Revisions revisions = sync_revisions(plan, kinds().daemon_set, *object, document, cache);
  daemon::Wish wish{.hash = revisions.update_hash,
                    .template_generation = std::string(json::get_string(document, {"metadata", "annotations", kTemplateGeneration})),
                    .min_ready = seconds_at(document, {"spec", "minReadySeconds"}),
                    .rolling = json::get_string(document, {"spec", "updateStrategy", "type"}) != "OnDelete"};
  const json::Value pod_template = daemon_template(document, wish.hash);
  const std::vector<daemon::NodePods> nodes = group_by_node(claim.pods, model::PodView::parse(pod_template));
  const daemon::Counts counts = daemon::count(nodes, wish, now);
  wish.max_surge = scaled_value(json::find(document, {"spec", "updateStrategy", "rollingUpdate", "maxSurge"}), counts.desired, true, 0);
  wish.max_unavailable =
      scaled_value(json::find(document, {"spec", "updateStrategy", "rollingUpdate", "maxUnavailable"}), counts.desired, true, 1);
  if (wish.max_surge == 0 && wish.max_unavailable == 0) wish.max_unavailable = 1;

  std::optional<Duration> pause;  // Until a failed pod may be replaced.
  daemon::Steps steps = daemon::keep_nodes(nodes, wish, now, [&](const std::string& node) {
    // A node that refuses the pod would otherwise be asked as fast as it can answer.
    const Duration left = backoffs_[key][node].wait(now);
    if (left > Duration{0}) pause = pause ? std::min(*pause, left) : left;
    return left == Duration{0};
  });
  if (steps.empty()) steps = daemon::roll(nodes, wish, now);
  carry_out(plan, *object, pod_template, steps);

  std::set<std::string> live = {revisions.update_name};
  for (const PodRef& pod : claim.pods)
    if (const std::string* hash = pod->labels().get("controller-revision-hash")) live.insert(name + "-" + *hash);
  truncate_history(plan, document, revisions, live);
  if (auto write = patch_status(kinds().daemon_set, *object, document, status_of(document, counts)))
    plan.writes.push_back(std::move(*write));
  plan.requeue_after = next_availability(claim.pods, wish.min_ready, now);
  if (pause && (!plan.requeue_after || *pause < *plan.requeue_after)) plan.requeue_after = pause;
  plan.cooldown = std::min<Duration>(Duration(static_cast<std::int64_t>(nodes_.size()) * 10), std::chrono::milliseconds(100));
  return plan;
}

std::vector<daemon::NodePods> DaemonSetController::group_by_node(const std::vector<PodRef>& pods, const model::PodView& view) const {
  std::map<std::string, std::vector<PodRef>> by_node;
  for (const PodRef& pod : pods)
    if (!pod->is_finished() || !pod->deleting) by_node[target_node(*pod)].push_back(pod);
  std::vector<daemon::NodePods> nodes;
  nodes.reserve(nodes_.size());
  for (const auto& [name, facts] : nodes_) {
    nodes.push_back({name, true, placement::match_node(view, name, facts.labels, facts.taints), {}});
    const auto found = by_node.find(name);
    if (found == by_node.end()) continue;
    nodes.back().pods = std::move(found->second);
    daemon::sort_oldest_first(nodes.back().pods);
    by_node.erase(found);
  }
  for (auto& [name, left] : by_node) nodes.push_back({name, false, {}, std::move(left)});
  return nodes;
}

void DaemonSetController::carry_out(Plan& plan, const Object& object, const json::Value& pod_template, const daemon::Steps& steps) {
  const auto found = [&](const PodRef& pod, const char* type, const char* reason, const char* how, const char* what) {
    plan.events.push_back(note_about(
        kinds().daemon_set, object, type, reason,
        fmt::format("Found {} daemon pod {}/{} on node {}, will try to {} it", how, pod->ns(), pod->name(), target_node(*pod), what)));
  };
  for (const PodRef& pod : steps.failed) found(pod, "Warning", "FailedDaemonPod", "failed", "kill");
  for (const PodRef& pod : steps.succeeded) found(pod, "Normal", "SucceededDaemonPod", "succeeded", "delete");
  for (std::size_t i = 0; i < std::min(steps.create_on.size(), kBurst); ++i) {
    json::Value pod = pod_from_template(pod_template, kinds().daemon_set, object, object.name() + "-");
    json::Object term{
        {"matchFields", json::Array{json::Object{
                            {"key", "metadata.name"}, {"operator", "In"}, {"values", json::Array{json::Value(steps.create_on[i])}}}}}};
    json::set(pod, {"spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"},
              json::Object{{"nodeSelectorTerms", json::Array{std::move(term)}}});
    Write write = create_object(kinds().pod, object.ns(), std::move(pod));
    write.slow_start = true;
    write.stage = 1;
    write.on_success = note_about(kinds().daemon_set, object, "Normal", "SuccessfulCreate", "Created pod: {}");
    write.on_failure = note_about(kinds().daemon_set, object, "Warning", "FailedCreate", "Error creating: {}");
    plan.writes.push_back(std::move(write));
  }
  for (std::size_t i = 0; i < std::min(steps.remove.size(), kBurst); ++i) {
    const PodInfo& pod = *steps.remove[i];
    Write write = delete_object(kinds().pod, *pod.object);
    write.stage = 1;
    write.on_success = note_about(kinds().daemon_set, object, "Normal", "SuccessfulDelete", "Deleted pod: " + pod.name());
    write.on_failure = note_about(kinds().daemon_set, object, "Warning", "FailedDelete", "Error deleting: {}");
    plan.writes.push_back(std::move(write));
  }
}

json::Object DaemonSetController::status_of(const json::Value& document, const daemon::Counts& counts) {
  json::Object status = json::get_object(document, {"status"});
  status["desiredNumberScheduled"] = counts.desired;
  status["currentNumberScheduled"] = counts.current;
  status["numberMisscheduled"] = counts.misscheduled;
  status["numberReady"] = counts.ready;
  for (const auto& [field, value] : {std::pair{"updatedNumberScheduled", counts.updated},
                                     {"numberAvailable", counts.available},
                                     {"numberUnavailable", counts.desired - counts.available},
                                     {"observedGeneration", json::get_int(document, {"metadata", "generation"})}}) {
    if (value != 0)
      status[field] = value;
    else
      status.erase(field);
  }
  return status;
}

}  // namespace

ControllerPtr make_daemonset_controller() { return std::make_unique<DaemonSetController>(); }

}  // namespace berth::controllers
