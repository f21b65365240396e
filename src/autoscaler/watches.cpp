#include "autoscaler/watches.h"

#include <algorithm>

#include "autoscaler/own_writes.h"
#include "base/log.h"

namespace berth::autoscaler {

using client::ObjectRef;

namespace {

const model::Gvr kConfigMaps{"", "v1", "configmaps"};
constexpr std::string_view kRules = "ClusterAutoscaler";

bool may_do_without(std::string_view kind) {
  constexpr std::string_view kNeeded[] = {"Node", "Pod", "Namespace", "PodDisruptionBudget", "ClusterAutoscaler", "Machine", "MachineSet"};
  return std::ranges::find(kNeeded, kind) == std::end(kNeeded);
}

}  // namespace

void Watches::start(std::function<void()> synced) {
  synced_ = std::move(synced);
  if (has_rules_) return watch_all();
  for (const WatchedKind& one : watched_kinds())
    if (one.kind == kRules) probe(one);
}

std::int64_t Watches::seen(const std::string& resource) const {
  const auto found = informer_of_.find(resource);
  return found == informer_of_.end() ? INT64_MAX : found->second->revision();
}

void Watches::watch_all() {
  if (is_watching_) return;
  is_watching_ = true;
  std::vector<const WatchedKind*> kinds;
  for (const WatchedKind& one : watched_kinds())
    if (has_rules_ || one.kind != kRules) kinds.push_back(&one);
  probes_open_ = kinds.size();
  for (const WatchedKind* one : kinds) probe(*one);
  // Only two objects of the namespace's ConfigMaps matter.
  watch_config_map("cluster-autoscaler-priority-expander");
  watch_config_map("cluster-autoscaler-price-expander");
}

void Watches::watch_config_map(const std::string& name) {
  informers_.push_back(std::make_unique<client::Informer>(client_, kConfigMaps,
                                                          client::InformerOptions{.ns = ns_, .field_selector = "metadata.name=" + name}));
  subscribe(*informers_.back(), "ConfigMap");
  informers_.back()->start();
}

/// A kind that this server does not serve is left out; a server that does not answer is asked again.
void Watches::probe(const WatchedKind& one) {
  client::Call call{.verb = "list", .gvr = one.gvr, .query = "limit=1"};
  call.answer = client::Answer::kNone;
  client_.call(std::move(call),
               guarded([&one](Watches& self, const client::ApiResult<json::Value>& result) { self.answered(one, result); }));
}

void Watches::answered(const WatchedKind& one, const client::ApiResult<json::Value>& result) {
  const bool is_counted = is_watching_;
  // Who may not list volumes, devices or owners scales without them; the informer says which right is missing.
  const bool goes_without = !result && result.error().code == 403 && may_do_without(one.kind);
  if (!result && result.error().code != 404 && !goes_without) {
    if (told_.insert(result.error().message).second)
      log::warning("autoscaler", "waiting for {}: {}", one.gvr.resource, result.error().message);
    client_.loop()->schedule_after(std::chrono::seconds(2), guarded([&one](Watches& self) { self.probe(one); }));
    return;
  }
  if (result || goes_without) {
    has_machines_ |= result && (one.kind.ends_with("MachineSet") || one.kind.ends_with("MachineDeployment"));
    informers_.push_back(std::make_unique<client::Informer>(client_, one.gvr, client::InformerOptions{.is_optional = goes_without}));
    informer_of_[resource_name(one.gvr)] = informers_.back().get();
    subscribe(*informers_.back(), one.kind);
    informers_.back()->start();
  }
  if (!result && !goes_without && one.kind == kRules && !is_counted)
    log::warning("autoscaler", "this server serves no ClusterAutoscaler: there are no rules to scale by");
  if (is_counted && --probes_open_ == 0) wait_for_sync();
}

void Watches::subscribe(client::Informer& informer, std::string_view kind) {
  informer.add_handler(
      {.on_add = guarded([kind](Watches& self, const ObjectRef& object) { self.put(kind, object); }),
       .on_update = guarded([kind](Watches& self, const ObjectRef&, const ObjectRef& after) { self.put(kind, after); }),
       .on_delete = guarded([kind](Watches& self, const ObjectRef& object) { self.cache_.remove(kind, object->ns(), object->name()); })});
}

void Watches::put(std::string_view kind, const ObjectRef& object) {
  if (kind == "Pod") return cache_.upsert_pod(object);
  const auto parsed = object->parsed();
  if (!parsed->is_object()) return;
  if (json::get_string(*parsed, {"kind"}) == kind) {
    cache_.upsert(*parsed);
  } else {
    // The items of a list leave out what the list says.
    json::Value document = *parsed;
    document.get_object()["kind"] = kind;
    cache_.upsert(document);
  }
  if (cache_.cluster_autoscaler() != nullptr) watch_all();
}

void Watches::wait_for_sync() {
  if (std::ranges::all_of(informers_, [](const auto& informer) { return informer->has_synced(); })) return synced_();
  client_.loop()->schedule_after(std::chrono::milliseconds(50), guarded(&Watches::wait_for_sync));
}

}  // namespace berth::autoscaler
