// DaemonSets: one pod on every node that fits (pkg/controller/daemon). Where a pod belongs is asked of placement/, by the rules that the
// scheduler then binds it by, held to its node by an affinity on metadata.name.
#include "controllers/common.h"
#include "controllers/revisions.h"
#include "controllers/taints.h"
#include "controllers/workloads.h"
#include "placement/node_match.h"

namespace berth::controllers {
namespace {

constexpr std::int64_t kBurst = 1000;

bool any_pod(const PodInfo&) { return true; }

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
  struct NodePods {
    std::vector<PodRef> old, updated;
  };
  static json::Value daemon_template(const json::Value& document, const std::string& hash);

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
  const std::string_view generation = json::get_string(document, {"metadata", "annotations", "deprecated.daemonset.template.generation"});
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
  Claim claim = claim_pods(kinds().daemon_set, *object, selector, cache, any_pod);
  plan.writes = std::move(claim.writes);
  const Revisions revisions = sync_revisions(plan, kinds().daemon_set, *object, document, cache);
  const std::string& hash = revisions.update_hash;
  const json::Value pod_template = daemon_template(document, hash);
  const model::PodView view = model::PodView::parse(pod_template);
  const Duration min_ready = seconds_at(document, {"spec", "minReadySeconds"});

  std::set<std::string> live = {revisions.update_name};
  std::map<std::string, NodePods> by_node;
  for (const PodRef& pod : claim.pods) {
    const std::string* label = pod->labels().get("controller-revision-hash");
    if (label != nullptr) live.insert(name + "-" + *label);
    NodePods& pods = by_node[target_node(*pod)];
    (label != nullptr && *label == hash ? pods.updated : pods.old).push_back(pod);
  }

  std::int64_t desired = 0, current = 0, misscheduled = 0, ready = 0, updated = 0, available = 0, unavailable = 0, surging = 0;
  std::vector<std::string> create_on;
  std::optional<Duration> pause;  ///< Until a failed pod may be replaced.
  std::vector<PodRef> remove, old_available;
  std::vector<std::pair<std::string, PodRef>> old_on;
  std::set<std::string> gone_nodes;
  for (const auto& [node, facts] : nodes_) {
    const placement::NodeMatch fit = placement::match_node(view, node, facts.labels, facts.taints);
    const auto found = by_node.find(node);
    std::vector<PodRef> alive, terminating;
    if (found != by_node.end()) {
      for (const std::vector<PodRef>* group : {&found->second.updated, &found->second.old})
        for (const PodRef& pod : *group) (pod->deleting ? terminating : alive).push_back(pod);
    }
    if (fit.belongs || (fit.may_stay && !alive.empty())) {
      for (const PodRef& pod : alive) {
        if (!pod->is_finished()) continue;
        const bool failed = pod->phase == PodPhase::kFailed;
        if (failed) {
          // A node that refuses the pod would otherwise be asked as fast as it can answer.
          if (const Duration left = backoffs_[key][node].wait(now); left > Duration{0}) {
            pause = pause ? std::min(*pause, left) : left;
            continue;
          }
        }
        plan.events.push_back(note_about(kinds().daemon_set, *object, failed ? "Warning" : "Normal",
                                         failed ? "FailedDaemonPod" : "SucceededDaemonPod",
                                         fmt::format("Found {} daemon pod {}/{} on node {}, will try to {} it",
                                                     failed ? "failed" : "succeeded", ns, pod->name(), node, failed ? "kill" : "delete")));
        remove.push_back(pod);
      }
      const bool was_finished = std::erase_if(alive, [](const PodRef& pod) { return pod->is_finished(); }) > 0;
      if (alive.empty() && terminating.empty() && fit.belongs && !was_finished) create_on.push_back(node);
      // Two of one revision: the younger one goes.
      for (const bool newer : {true, false}) {
        std::vector<PodRef> same;
        for (const PodRef& pod : alive)
          if ((pod->labels().get("controller-revision-hash") != nullptr && *pod->labels().get("controller-revision-hash") == hash) == newer)
            same.push_back(pod);
        std::sort(same.begin(), same.end(), [](const PodRef& a, const PodRef& b) {
          return std::tuple(a->node.empty(), a->created, a->name()) < std::tuple(b->node.empty(), b->created, b->name());
        });
        for (std::size_t i = 1; i < same.size(); ++i) remove.push_back(same[i]);
      }
    } else {
      for (const PodRef& pod : alive) remove.push_back(pod);
    }
    if (!fit.belongs) {
      if (!alive.empty()) ++misscheduled;
      continue;
    }
    ++desired;
    const PodRef* shown = nullptr;
    for (const PodRef& pod : alive)
      if (shown == nullptr || pod->ready) shown = &pod;
    if (shown == nullptr) {
      ++unavailable;
      continue;
    }
    ++current;
    ready += (*shown)->ready;
    const bool is_available = (*shown)->is_available(min_ready, now);
    available += is_available;
    unavailable += !is_available;
    bool has_new = false, new_available = false;
    PodRef old;
    for (const PodRef& pod : alive) {
      const std::string* label = pod->labels().get("controller-revision-hash");
      if (label != nullptr && *label == hash) {
        has_new = true;
        new_available |= pod->is_available(min_ready, now);
      } else {
        old = pod;
      }
    }
    updated += has_new;
    if (has_new && old) {
      ++surging;
      if (new_available) remove.push_back(old);  // The surge did its work.
    } else if (old) {
      old_on.emplace_back(node, old);
    }
  }
  for (const auto& [node, pods] : by_node)
    if (!nodes_.contains(node) && !node.empty())
      for (const std::vector<PodRef>* group : {&pods.updated, &pods.old})
        for (const PodRef& pod : *group)
          if (!pod->deleting && pod->node.empty()) remove.push_back(pod);

  if (json::get_string(document, {"spec", "updateStrategy", "type"}) != "OnDelete") {
    const std::int64_t surge =
        scaled_value(json::find(document, {"spec", "updateStrategy", "rollingUpdate", "maxSurge"}), desired, true, 0);
    std::int64_t budget =
        scaled_value(json::find(document, {"spec", "updateStrategy", "rollingUpdate", "maxUnavailable"}), desired, true, 1);
    if (surge == 0 && budget == 0) budget = 1;
    std::int64_t room = surge - surging;
    for (const auto& [node, pod] : old_on) {
      if (!pod->is_available(min_ready, now)) {
        // It gives nothing: replacing it costs no availability.
        remove.push_back(pod);
      } else if (surge > 0) {
        if (room-- > 0) create_on.push_back(node);
      } else if (unavailable < budget) {
        ++unavailable;
        remove.push_back(pod);
        --available;
      }
    }
  }

  if (!object->is_deleting()) {
    const auto creates = std::min<std::size_t>(create_on.size(), kBurst);
    for (std::size_t i = 0; i < creates; ++i) {
      json::Value pod = pod_from_template(pod_template, kinds().daemon_set, *object, name + "-");
      json::Object term{
          {"matchFields",
           json::Array{json::Object{{"key", "metadata.name"}, {"operator", "In"}, {"values", json::Array{json::Value(create_on[i])}}}}}};
      json::set(pod, {"spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"},
                json::Object{{"nodeSelectorTerms", json::Array{std::move(term)}}});
      Write write = create_object(kinds().pod, ns, std::move(pod));
      write.slow_start = true;
      write.stage = 1;
      write.on_success = note_about(kinds().daemon_set, *object, "Normal", "SuccessfulCreate", "Created pod: {}");
      write.on_failure = note_about(kinds().daemon_set, *object, "Warning", "FailedCreate", "Error creating: {}");
      plan.writes.push_back(std::move(write));
    }
    std::set<std::string> removed;
    for (const PodRef& pod : remove) {
      if (!removed.insert(pod->name()).second) continue;
      Write write = delete_object(kinds().pod, *pod->object);
      write.stage = 1;
      write.on_success = note_about(kinds().daemon_set, *object, "Normal", "SuccessfulDelete", "Deleted pod: " + pod->name());
      write.on_failure = note_about(kinds().daemon_set, *object, "Warning", "FailedDelete", "Error deleting: {}");
      plan.writes.push_back(std::move(write));
    }
    truncate_history(plan, document, revisions, live);
  }
  json::Object status = json::get_object(document, {"status"});
  const auto put = [&status](std::string_view field, std::int64_t value, bool always) {
    if (value != 0 || always)
      status[field] = value;
    else
      status.erase(field);
  };
  put("desiredNumberScheduled", desired, true);
  put("currentNumberScheduled", current, true);
  put("numberMisscheduled", misscheduled, true);
  put("numberReady", ready, true);
  put("updatedNumberScheduled", updated, false);
  put("numberAvailable", available, false);
  put("numberUnavailable", desired - available, false);
  put("observedGeneration", json::get_int(document, {"metadata", "generation"}), false);
  if (auto write = patch_status(kinds().daemon_set, *object, document, status)) plan.writes.push_back(std::move(*write));
  plan.requeue_after = next_availability(claim.pods, min_ready, now);
  if (pause && (!plan.requeue_after || *pause < *plan.requeue_after)) plan.requeue_after = pause;
  plan.cooldown = std::min<Duration>(Duration(static_cast<std::int64_t>(nodes_.size()) * 10), std::chrono::milliseconds(100));
  return plan;
}

}  // namespace

ControllerPtr make_daemonset_controller() { return std::make_unique<DaemonSetController>(); }

}  // namespace berth::controllers
