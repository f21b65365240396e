#include "autoscaler/actuator.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/check.h"
#include "base/lifeline.h"
#include "base/log.h"
#include "client/response.h"

namespace berth::autoscaler {
namespace {

using client::ApiResult;
using client::Call;

const model::Gvr kNodes{"", "v1", "nodes"};
const model::Gvr kPods{"", "v1", "pods"};
constexpr const char* kMergePatch = "application/merge-patch+json";
/// Between two attempts to take back a mark that must not stay.
constexpr Duration kTakeBackPause = std::chrono::seconds(10);

/// The node's taints without those of this key, and with one more when `effect` is given.
json::Array taints_with(const json::Value& node, std::string_view key, std::string_view effect, TimePoint now) {
  json::Array out;
  for (const json::Value& taint : json::get_array(node, {"spec", "taints"}))
    if (json::get_string(taint, {"key"}) != key) out.push_back(taint);
  if (!effect.empty())
    out.push_back(json::Object{{"key", key},
                               {"value", std::to_string(std::chrono::duration_cast<std::chrono::seconds>(now.time_since_epoch()).count())},
                               {"effect", effect}});
  return out;
}

}  // namespace

struct Actuator::Impl : Guarded<Impl> {
  /// One node on its way out.
  struct Removal {
    NodeRemoval plan;
    Options options;
    TimePoint started{}, evicted{};
    std::set<std::string> refused;  ///< Keys of pods that could not be evicted yet.
    int under_way = 0;
  };
  using RemovalPtr = std::shared_ptr<Removal>;

  Impl(client::Client& c, const ClusterCache& w, client::EventRecorder& e, ActuatorCallbacks cb, std::shared_ptr<Provider> p)
      : client(c), cache(w), events(e), callbacks(std::move(cb)), provider(std::move(p)) {}

  client::Client& client;
  const ClusterCache& cache;
  client::EventRecorder& events;
  ActuatorCallbacks callbacks;
  std::shared_ptr<Provider> provider;
  client::ObjectReference status_object;
  std::set<std::string> removing;  ///< Nodes.
  bool is_quiet = false;

  [[nodiscard]] TimePoint now() const { return client.loop()->now(); }
  /// For lengths of time alone.
  [[nodiscard]] TimePoint steady_now() const { return callbacks.steady_clock ? TimePoint(callbacks.steady_clock()) : now(); }
  /// True: the removal may not go on, and has ended.
  bool is_stopped(const RemovalPtr& removal) {
    const std::string why = callbacks.why_not ? callbacks.why_not(removal->plan) : "";
    if (!why.empty()) fail(removal, "the removal is given up: " + why, true);
    return !why.empty();
  }

  /// Calls back only while this object lives.
  void later(Duration delay, std::function<void(Impl&)> f) { client.loop()->schedule_after(delay, guarded(std::move(f))); }

  void event(const client::ObjectReference& about, bool is_warning, const std::string& reason, const std::string& message) {
    events.event(about, is_warning ? "Warning" : "Normal", reason, message);
  }
  static client::ObjectReference about(const Pod& pod) {
    return {"v1", "Pod", pod.view().ns(), pod.view().name(), pod.view().meta.uid, "", ""};
  }
  [[nodiscard]] client::ObjectReference about_node(const std::string& name) const {
    const json::Value* node = cache.find("Node", "", name);
    return {"v1", "Node", "", name, node != nullptr ? std::string(json::get_string(*node, {"metadata", "uid"})) : "", "", ""};
  }

  void say(const Note& note) {
    if (!is_quiet) log::info("autoscaler", "{}: {}", note.reason, note.message);
    if (note.pod != nullptr)
      event(about(*note.pod), note.is_warning, note.reason, note.message);
    else if (!note.node.empty())
      event(about_node(note.node), note.is_warning, note.reason, note.message);
    else if (note.request != nullptr)
      event({"autoscaling.x-k8s.io/v1", "ProvisioningRequest", note.request->ns, note.request->name, note.request->uid, "", ""},
            note.is_warning, note.reason, note.message);
    else if (!status_object.name.empty())
      event(status_object, note.is_warning, note.reason, note.message);
  }
  void say(std::string reason, std::string message, bool is_warning = false) {
    say(Note{nullptr, "", is_warning, std::move(reason), std::move(message)});
  }

  void patch_taints(const std::string& name, std::string_view key, std::string_view effect, std::optional<bool> cordon,
                    std::function<void(Impl&, ApiResult<json::Value>)> done, int tries = 5) {
    const json::Value* node = cache.find("Node", "", name);
    if (node == nullptr) return done(*this, std::unexpected(model::not_found("", "nodes", name)));
    json::Object spec{{"taints", taints_with(*node, key, effect, now())}};
    if (cordon) spec["unschedulable"] = *cordon;
    const json::Value body =
        json::Object{{"metadata", json::Object{{"resourceVersion", json::get_string(*node, {"metadata", "resourceVersion"})}}},
                     {"spec", std::move(spec)}};
    Call call{.verb = "patch", .gvr = kNodes, .name = name, .body = json::serialize(body), .content_type = kMergePatch};
    call.answer = client::Answer::kIdentity;
    std::string effect_text(effect), key_text(key);
    client.call(std::move(call), guarded([=](Impl& self, ApiResult<json::Value> result) {
                  // Somebody else wrote the node meanwhile: heartbeats do. The informer brings the new revision.
                  if (!result && result.error().code == 409 && tries > 1)
                    return self.later(std::chrono::milliseconds(100),
                                      [=](Impl& again) { again.patch_taints(name, key_text, effect_text, cordon, done, tries - 1); });
                  done(self, std::move(result));
                }));
  }

  void grow(const Resize& resize) {
    provider->grow(resize, guarded([resize](Impl& self, const std::string& error) {
                     if (error.empty()) {
                       self.say("ScaledUpGroup", fmt::format("Scale-up: group {} size set to {} instead of {} (max: {})", resize.group,
                                                             resize.to, resize.from, resize.max));
                       self.callbacks.grown(resize.group, resize.to - resize.from);
                       return;
                     }
                     self.say("FailedToScaleUpGroup", fmt::format("Scale-up failed for group {}: {}", resize.group, error), true);
                     self.callbacks.grow_failed(resize.group, error);
                   }));
  }

  void remove(const NodeRemoval& plan, const Options& options) {
    auto removal = std::make_shared<Removal>();
    removal->plan = plan;
    removal->options = options;
    removal->started = steady_now();
    removing.insert(plan.node);
    const std::optional<bool> cordon = options.cordon_before_terminating ? std::optional(true) : std::nullopt;
    patch_taints(plan.node, kToBeDeletedTaint, "NoSchedule", cordon, [removal](Impl& self, const ApiResult<json::Value>& result) {
      if (!result) {
        const bool is_tainted = client::is_uncertain(result.error());
        return self.fail(removal, "failed to mark the node as toBeDeleted/unschedulable: " + result.error().message, is_tainted);
      }
      self.event(self.about_node(removal->plan.node), false, "ScaleDown", "marked the node as toBeDeleted/unschedulable");
      self.read_pods(removal, [removal](Impl& read, const std::set<std::string>&) {
        for (const PodPtr& pod : removal->plan.evict) removal->refused.insert(pod->key());
        read.evict_daemons(removal);
        read.evict(removal);
      });
    });
  }

  /// Asks the server what must leave the node before its machine may go, and goes on with the pods' uids. A pod that was not judged ends
  /// the removal, and so does a server that does not say.
  void read_pods(const RemovalPtr& removal, std::function<void(Impl&, const std::set<std::string>&)> then) {
    const client::ListOptions on_node{.field_selector = "spec.nodeName=" + removal->plan.node};
    client.list(kPods, "", on_node, guarded([=](Impl& self, const ApiResult<client::ListPage>& page) {
                  if (!page) return self.fail(removal, "failed to read the node's pods: " + page.error().message, true);
                  std::set<std::string> judged, there;
                  for (const PodPtr& pod : removal->plan.evict) judged.insert(pod->view().meta.uid);
                  for (const json::Value& item : page->items) {
                    const PodPtr pod = Pod::parse(item, self.cache.cluster().era(), false);
                    if (model::counts_as_daemon(pod->view().meta) || model::is_mirror(pod->view().meta) || pod->facts.is_finished ||
                        pod->facts.ends_too_long(self.now()))
                      continue;
                    if (!judged.contains(pod->view().meta.uid))
                      return self.fail(removal, fmt::format("pod {} came to the node after it was found to be unneeded", pod->key()), true);
                    there.insert(pod->view().meta.uid);
                  }
                  then(self, there);
                }));
  }

  void evict(const RemovalPtr& removal) {
    if (is_stopped(removal)) return;
    std::vector<PodPtr> pods;
    for (const PodPtr& pod : removal->plan.evict) {
      if (!removal->refused.contains(pod->key())) continue;
      if (is_there(*pod))
        pods.push_back(pod);
      else
        removal->refused.erase(pod->key());
    }
    removal->under_way = static_cast<int>(pods.size());
    if (pods.empty()) {
      removal->evicted = steady_now();
      return wait_for_end(removal);
    }
    for (const PodPtr& pod : pods) {
      client.call(eviction_call(*removal, *pod),
                  guarded([removal, pod](Impl& self, const ApiResult<json::Value>& result) { self.evicted(removal, *pod, result); }));
    }
  }

  static Call eviction_call(const Removal& removal, const Pod& pod) {
    const std::int64_t most = std::chrono::duration_cast<std::chrono::seconds>(removal.options.max_pod_grace_period).count();
    const std::int64_t grace = std::min(pod.view().termination_grace_period_seconds, most);
    const json::Value body = json::Object{
        {"apiVersion", "policy/v1"},
        {"kind", "Eviction"},
        {"metadata", json::Object{{"namespace", pod.view().ns()}, {"name", pod.view().name()}}},
        {"deleteOptions", json::Object{{"gracePeriodSeconds", grace}, {"preconditions", json::Object{{"uid", pod.view().meta.uid}}}}}};
    Call call{.verb = "create",
              .gvr = kPods,
              .ns = pod.view().ns(),
              .name = pod.view().name(),
              .subresource = "eviction",
              .body = json::serialize(body)};
    call.answer = client::Answer::kNone;
    return call;
  }

  /// They end in good order where they can; the node does not wait for them.
  void evict_daemons(const RemovalPtr& removal) {
    for (const PodPtr& pod : removal->plan.daemons)
      client.call(eviction_call(*removal, *pod), guarded([pod](Impl&, const ApiResult<json::Value>& result) {
                    if (!result && result.error().code != 404)
                      log::warning("autoscaler", "pod {} of a DaemonSet is not evicted: {}", pod->key(), result.error().message);
                  }));
  }

  void evicted(const RemovalPtr& removal, const Pod& pod, const ApiResult<json::Value>& result) {
    if (result || result.error().code == 404) {
      removal->refused.erase(pod.key());
      if (result) {
        event(about(pod), false, "ScaleDown", "deleting pod for node scale down");
        callbacks.evicted(1);
      }
    }
    BERTH_CHECK(removal->under_way > 0, "{}: an eviction is answered twice", pod.key());
    if (--removal->under_way > 0) return;
    if (removal->refused.empty()) {
      removal->evicted = steady_now();
      return wait_for_end(removal);
    }
    if (removal->started + removal->options.max_pod_eviction_time <= steady_now()) {
      for (const PodPtr& held : removal->plan.evict)
        if (removal->refused.contains(held->key())) event(about(*held), true, "ScaleDownFailed", "failed to delete pod for ScaleDown");
      if (callbacks.evictions_failed) callbacks.evictions_failed(static_cast<std::int64_t>(removal->refused.size()));
      return fail(removal, fmt::format("failed to drain the node: pods were not evicted in time: {}", fmt::join(removal->refused, ", ")),
                  true);
    }
    later(std::min<Duration>(std::chrono::seconds(10), removal->options.max_pod_eviction_time),
          [removal](Impl& self) { self.evict(removal); });
  }

  [[nodiscard]] bool is_there(const Pod& pod) const {
    const auto found = cache.pods().find(pod.key());
    return found != cache.pods().end() && found->second->view().meta.uid == pod.view().meta.uid;
  }

  void wait_for_end(const RemovalPtr& removal) {
    if (is_stopped(removal)) return;
    std::int64_t grace = 0;
    bool waits = false;
    for (const PodPtr& pod : removal->plan.evict) {
      grace = std::max(grace, pod->view().termination_grace_period_seconds);
      waits = waits || is_there(*pod);
    }
    const Duration most = std::min<Duration>(std::chrono::seconds(grace), removal->options.max_pod_grace_period) + std::chrono::seconds(10);
    const bool may_wait = removal->evicted + most > steady_now();
    const auto wait = [removal](Impl& self) {
      self.later(std::chrono::milliseconds(250), [removal](Impl& later) { later.wait_for_end(removal); });
    };
    if (waits && may_wait) return wait(*this);
    if (waits) return fail(removal, "failed to drain the node: pods remain after their grace period", true);
    read_pods(removal, [=](Impl& self, const std::set<std::string>& there) {
      if (!there.empty() && may_wait) return wait(self);  // The watch is ahead of the list, or it lost the pod.
      if (!there.empty()) return self.fail(removal, "failed to drain the node: pods remain after their grace period", true);
      self.conclude(removal);
    });
  }

  /// Nothing is left on the node.
  void conclude(const RemovalPtr& removal) {
    // Somebody has something to do before the node goes, and says so by an annotation; but not for ever.
    const auto facts = cache.nodes().find(removal->plan.node);
    const bool is_delayed = facts != cache.nodes().end() && facts->second.delays_deletion;
    if (is_delayed && removal->evicted + removal->options.max_deletion_delay > steady_now())
      return later(std::chrono::seconds(1), [removal](Impl& self) { self.wait_for_end(removal); });
    const NodeRemoval& plan = removal->plan;
    provider->remove(plan.group, plan.instance, plan.node, guarded([removal](Impl& self, const std::string& error) {
                       if (!error.empty()) return self.fail(removal, "failed to delete the machine: " + error, true);
                       const std::string& node = removal->plan.node;
                       self.event(self.about_node(node), false, "ScaleDown", "nodes removed by cluster autoscaler");
                       if (removal->plan.is_empty)
                         self.say("ScaleDownEmpty", fmt::format("Scale-down: empty node {} removed", node));
                       else
                         self.say("ScaleDown", fmt::format("Scale-down: node {} removed with drain", node));
                       self.removing.erase(node);
                       self.callbacks.removal_ended(node, removal->plan.is_empty, true);
                     }));
  }

  void fail(const RemovalPtr& removal, const std::string& why, bool is_tainted) {
    const std::string& node = removal->plan.node;
    log::warning("autoscaler", "node {}: {}", node, why);
    event(about_node(node), true, "ScaleDownFailed", why);
    removing.erase(node);
    if (is_tainted) untaint(node, kToBeDeletedTaint, removal->options.cordon_before_terminating);
    callbacks.removal_ended(node, removal->plan.is_empty, false);
  }

  void untaint(const std::string& node, std::string_view key, bool uncordon = false) {
    patch_taints(node, key, "", uncordon ? std::optional(false) : std::nullopt,
                 [node, key = std::string(key), uncordon](Impl& self, const ApiResult<json::Value>& result) {
                   if (result || result.error().code == 404) return;
                   log::warning("autoscaler", "node {}: taint not removed: {}", node, result.error().message);
                   self.later(kTakeBackPause, [=](Impl& again) {
                     if (!again.removing.contains(node)) again.untaint(node, key, uncordon);
                   });
                 });
  }
};

Actuator::Actuator(client::Client& client, const ClusterCache& cache, client::EventRecorder& events, ActuatorCallbacks callbacks,
                   std::shared_ptr<Provider> provider)
    : impl_(std::make_shared<Impl>(client, cache, events, std::move(callbacks), std::move(provider))) {}
Actuator::~Actuator() { impl_->end(); }

void Actuator::set_status_object(client::ObjectReference object) { impl_->status_object = std::move(object); }

void Actuator::carry_out(const Actions& actions, const Options& options) {
  impl_->is_quiet = options.log_verbosity < 1;
  for (const Note& note : actions.notes) impl_->say(note);
  for (const Resize& resize : actions.grow) impl_->grow(resize);
  for (const Resize& resize : actions.give_up)
    impl_->provider->give_up(resize, [group = resize.group](const std::string& error) {
      if (!error.empty()) log::warning("autoscaler", "group {}: {}", group, error);
    });
  for (const auto& [group, instance, has_failed] : actions.delete_instances)
    impl_->provider->remove(group, instance, "", [instance = instance](const std::string& error) {
      if (!error.empty()) log::warning("autoscaler", "machine {}: {}", instance, error);
    });
  for (const NodeRemoval& removal : actions.remove) impl_->remove(removal, options);
  for (const auto& [node, is_wanted] : actions.soft_taints)
    impl_->patch_taints(node, kDeletionCandidateTaint, is_wanted ? "PreferNoSchedule" : "", std::nullopt,
                        [node](Impl&, const ApiResult<json::Value>& result) {
                          if (!result && result.error().code != 404)
                            log::warning("autoscaler", "node {}: {}", node, result.error().message);
                        });
}

void Actuator::clean_up() {
  for (const placement::NodeInfo* node : impl_->cache.cluster().nodes())
    if (has_taint(*node->node, kToBeDeletedTaint)) impl_->untaint(node->name, kToBeDeletedTaint);
}

}  // namespace berth::autoscaler
