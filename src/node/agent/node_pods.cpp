#include "node/agent/node_pods.h"

#include <set>

#include "base/log.h"
#include "base/mutex.h"
#include "node/eviction/manager.h"
#include "node/pod_addresses.h"

namespace berth::node::agent {
namespace {

const model::Gvr kPods{"", "v1", "pods"}, kNodeObjects{"", "v1", "nodes"};
constexpr std::string_view kByLabels = "NodeAffinity";  // Why a pod is refused that the node's labels keep out.

std::string key_of(const json::Value& pod) {
  return fmt::format("{}/{}", json::get_string(pod, {"metadata", "namespace"}), json::get_string(pod, {"metadata", "name"}));
}

/// Others have written over what this node said of the pod, such as a node controller that took it for lost: some condition stands
/// otherwise in the API.
bool is_written_over(const json::Value& said, const json::Value& document) {
  const json::Array& there = json::get_array(document, {"status", "conditions"});
  return std::ranges::any_of(json::get_array(said, {"conditions"}), [&](const json::Value& own) {
    return std::ranges::any_of(there, [&](const json::Value& one) {
      return json::get_string(one, {"type"}) == json::get_string(own, {"type"}) &&
             json::get_string(one, {"status"}) != json::get_string(own, {"status"});
    });
  });
}

}  // namespace

NodePods::NodePods(client::Client& client, PodEnvironment& environment, Refuse refuse)
    : client_(client), loop_(*client.loop()), environment_(environment), refuse_(std::move(refuse)) {}

NodePods::~NodePods() {
  std::map<std::string, std::shared_ptr<Pod>> pods;
  std::vector<std::shared_ptr<Pod>> dead;
  {
    MutexLock lock(mutex_);
    pods.swap(pods_);
    dead.swap(graveyard_);
  }
  // All are told before the first is waited for.
  for (const auto& [uid, pod] : pods) pod->worker->quit();
}

void NodePods::start() {
  loop_.assert_on_loop();
  if (informer_) return;
  informer_ = std::make_unique<client::Informer>(client_, kPods,
                                                 client::InformerOptions{.field_selector = "spec.nodeName=" + environment_.node_name});
  informer_->add_handler({.on_add = [this](const client::ObjectRef& object) { pod_seen(*object); },
                          .on_update =
                              [this](const client::ObjectRef& before, const client::ObjectRef& after) {
                                if (before->uid() != after->uid()) pod_gone(*before);
                                pod_seen(*after);
                              },
                          .on_delete = [this](const client::ObjectRef& object) { pod_gone(*object); }});
  informer_->on_synced([this] {
    is_synced_ = true;
    for (const auto& worker : workers()) push_status(worker->uid());  // Static pods that have no mirror yet get one.
  });
  informer_->start();
}

void NodePods::stop() {
  loop_.assert_on_loop();
  informer_.reset();
  lifeline_.end();
}

std::shared_ptr<NodePods::Pod> NodePods::find(const std::string& uid) const {
  MutexLock lock(mutex_);
  const auto found = pods_.find(uid);
  return found == pods_.end() ? nullptr : found->second;
}

void NodePods::pod_seen(const client::Object& object) {
  json::Value document = object.document();
  json::erase(document, {"metadata", "managedFields"});  // Nobody here reads it, and it is a good part of a pod.
  if (is_mirror_pod(document)) return mirror_seen(object, document);
  std::shared_ptr<Pod> pod = find(object.uid());
  if (!pod) {
    pod = std::make_shared<Pod>();
    pod->worker = std::make_shared<PodWorker>(environment_, document);
    {
      MutexLock lock(mutex_);
      pods_[object.uid()] = pod;
    }
    start_admitted(pod, document);
  } else {
    pod->worker->update(document);
    insist(pod, object.uid(), document);
  }
  if (object.is_deleting()) {
    pod->is_deleting = true;
    pod->worker->terminate(std::chrono::seconds(
        std::clamp<std::int64_t>(json::get_int(document, {"metadata", "deletionGracePeriodSeconds"}, 30), 0, 1'000'000'000)));
    push_status(object.uid());
  }
}

std::optional<Refusal> NodePods::why_not(const std::shared_ptr<Pod>& pod, const json::Value& document, const json::Value* node) const {
  if (!needs_admission(document)) return std::nullopt;
  std::vector<json::Value> active;
  for (const auto& worker : workers())
    if (worker != pod->worker && !worker->is_over()) active.push_back(worker->granted());
  return refuse_(document, active, node);
}

void NodePods::start_admitted(const std::shared_ptr<Pod>& pod, const json::Value& document, const json::Value* node) {
  if (const auto refusal = why_not(pod, document, node)) {
    // Labels that somebody gave the node a moment ago count as well.
    if (refusal->reason == kByLabels && node == nullptr)
      return client_.get(kNodeObjects, "", environment_.node_name,
                         lifeline_.guard([this, pod, document](model::ApiResult<json::Value> read) {
                           const json::Value unknown;
                           start_admitted(pod, document, read ? &*read : &unknown);
                         }));
    environment_.event(document, "Warning", refusal->reason, refusal->message, "");
    pod->worker->reject_pod(refusal->reason, "Pod was rejected: " + refusal->message);
  }
  pod->worker->start();
}

/// The object is gone without us (forced deletion): its containers must go too.
void NodePods::pod_gone(const client::Object& object) {
  if (const auto found = mirrors_.find(object.ns() + "/" + object.name()); found != mirrors_.end() && found->second.uid == object.uid()) {
    mirrors_.erase(found);
    for (const auto& worker : workers()) push_status(worker->uid());  // A static pod whose mirror was deleted gets another.
    return;
  }
  stop_pod(object.uid());
}

void NodePods::stop_pod(const std::string& uid) {
  std::shared_ptr<Pod> pod;
  {
    MutexLock lock(mutex_);
    const auto found = pods_.find(uid);
    if (found == pods_.end()) return;
    pod = found->second;
    if (pod->worker->is_finished()) {
      graveyard_.push_back(pod);
      pods_.erase(found);
      return;
    }
  }
  pod->is_stale = true;
  pod->worker->terminate(Duration::zero());
}

/// The node's word about its pods counts: it is said again (pkg/kubelet/status/status_manager.go, needsReconcile). `seen` may be older than
/// what was said last; then saying it again changes nothing.
void NodePods::insist(const std::shared_ptr<Pod>& pod, const std::string& api_uid, const json::Value& seen) {
  if (pod->reported_uid != api_uid || !is_written_over(pod->reported, seen)) return;
  pod->says_again = true;
  push_status(pod->worker->uid());
}

void NodePods::push_later(const std::string& uid) {
  loop_.schedule_after(std::chrono::seconds(1), lifeline_.guard([this, uid] { push_status(uid); }));
}

void NodePods::push_status(const std::string& uid) {
  loop_.assert_on_loop();
  const std::shared_ptr<Pod> pod = find(uid);
  if (!pod) return;
  if (pod->is_stale) {
    if (pod->worker->is_finished()) stop_pod(uid);
    return;
  }
  if (pod->is_writing) return;
  const json::Value document = pod->worker->pod();
  std::string api_uid = uid;
  if (pod->is_static) {
    if (!is_synced_) return;
    const auto mirror = mirrors_.find(key_of(document));
    if (mirror == mirrors_.end() || mirror->second.uid.empty() ||
        mirror->second.hash != json::get_string(document, {"metadata", "annotations", kConfigHashAnnotation}))
      return ensure_mirror(pod);
    api_uid = mirror->second.uid;
  }
  json::Value status = pod->worker->status();
  if (!status.is_null() && (std::exchange(pod->says_again, false) || pod->reported_uid != api_uid || !json::equal(status, pod->reported)))
    return write_status(uid, pod, api_uid, std::move(status));
  if (!pod->is_deleting || !pod->worker->is_finished()) return;
  pod->is_writing = true;
  client_.remove(kPods, std::string(json::get_string(document, {"metadata", "namespace"})),
                 std::string(json::get_string(document, {"metadata", "name"})), {.grace_period_seconds = 0, .precondition_uid = uid},
                 lifeline_.guard([this, pod, uid](model::ApiResult<json::Value> result) {
                   if (result || result.error().code == 404 || result.error().code == 409) return;  // The watch says the rest.
                   pod->is_writing = false;
                   push_later(uid);
                 }));
}

namespace {

/// The status as a patch that also takes away the conditions that come and go: a patch only adds to a list. Those of `reported`, the status
/// written last, may not be seen in `pod` yet.
json::Value without_gone_conditions(json::Value status, const json::Value& reported, const json::Value& pod) {
  const auto has = [](const json::Array& conditions, std::string_view type) {
    return std::ranges::any_of(conditions, [&](const json::Value& c) { return json::get_string(c, {"type"}) == type; });
  };
  for (const std::string_view type : {"PodResizePending", "PodResizeInProgress"}) {
    if (has(json::get_array(status, {"conditions"}), type)) continue;
    if (!has(json::get_array(reported, {"conditions"}), type) && !has(json::get_array(pod, {"status", "conditions"}), type)) continue;
    if (json::Value* conditions = json::find(status, "conditions"))
      conditions->as_array().push_back(json::Object{{"$patch", "delete"}, {"type", type}});
  }
  return status;
}

/// Others' conditions first, as they stand, then the kubelet's own in its order.
json::Array condition_order(const json::Value& status, const json::Value& pod) {
  json::Array order;
  const json::Array& own = json::get_array(status, {"conditions"});
  const auto add = [&](const json::Value& condition) { order.push_back(json::Object{{"type", json::get_string(condition, {"type"})}}); };
  for (const json::Value& there : json::get_array(pod, {"status", "conditions"}))
    if (std::ranges::none_of(own, [&](const json::Value& c) { return json::get_string(c, {"type"}) == json::get_string(there, {"type"}); }))
      add(there);
  for (const json::Value& condition : own)
    if (!condition.as_object().contains("$patch")) add(condition);
  return order;
}

}  // namespace

void NodePods::write_status(const std::string& uid, const std::shared_ptr<Pod>& pod, const std::string& api_uid, json::Value status) {
  const json::Value document = pod->worker->pod();
  const std::string ns(json::get_string(document, {"metadata", "namespace"})), name(json::get_string(document, {"metadata", "name"}));
  pod->is_writing = true;
  json::Value patch = without_gone_conditions(status, pod->reported, document);
  const json::Value* seen = json::find(document, "status");
  if (has_other_addresses(pod->reported, status) || (seen != nullptr && has_other_addresses(*seen, status))) replace_addresses(patch);
  if (patch.as_object().contains("conditions")) patch.as_object()["$setElementOrder/conditions"] = condition_order(patch, document);
  json::Value body = json::Object{{"metadata", json::Object{{"uid", api_uid}}}, {"status", std::move(patch)}};
  // What the server is told of a start belongs to it; what a running pod goes through later does not.
  std::optional<net::tracing::Scope> scope;
  const std::string_view told = json::get_string(pod->reported, {"phase"}, json::get_string(document, {"status", "phase"}));
  if (environment_.tracer != nullptr && (told.empty() || told == "Pending"))
    if (const auto way = environment_.tracer->way_of(api_uid); way && way->is_sampled) scope.emplace(*way);
  client_.patch(kPods, ns, name, client::PatchType::kStrategicMerge, body,
                lifeline_.guard([this, pod, uid, api_uid, status = std::move(status)](model::ApiResult<json::Value> result) {
                  pod->is_writing = false;
                  if (result || result.error().code == 404 || result.error().code == 409) {
                    pod->reported = status;
                    pod->reported_uid = api_uid;
                    return push_status(uid);
                  }
                  log::warning("node", "pod status: {}", result.error().message);
                  push_later(uid);
                }),
                "status");
}

// ---- static pods

void NodePods::set_static_pods(std::vector<json::Value> pods) {
  loop_.assert_on_loop();
  std::map<std::string, json::Value> wanted;
  for (json::Value& pod : pods) wanted.emplace(std::string(json::get_string(pod, {"metadata", "uid"})), std::move(pod));
  std::vector<std::shared_ptr<Pod>> gone;
  {
    MutexLock lock(mutex_);
    for (const auto& [uid, pod] : pods_)
      if (pod->is_static && !pod->is_stale && !wanted.contains(uid)) gone.push_back(pod);
  }
  for (const auto& pod : gone) {
    const json::Value document = pod->worker->pod();
    pod->is_stale = true;
    pod->worker->terminate(std::chrono::seconds(json::get_int(document, {"spec", "terminationGracePeriodSeconds"}, 30)));
    if (const auto mirror = mirrors_.find(key_of(document)); mirror != mirrors_.end() && !mirror->second.uid.empty())
      client_.remove(kPods, std::string(json::get_string(document, {"metadata", "namespace"})),
                     std::string(json::get_string(document, {"metadata", "name"})),
                     {.grace_period_seconds = 0, .precondition_uid = mirror->second.uid}, [](const model::ApiResult<json::Value>&) {});
  }
  for (auto& [uid, document] : wanted) {
    if (find(uid)) continue;
    // One of the same name that is still stopping goes first: the next look at the manifests starts this one.
    bool in_the_way = false;
    for (const auto& worker : workers()) in_the_way = in_the_way || key_of(worker->pod()) == key_of(document);
    if (in_the_way) continue;
    auto pod = std::make_shared<Pod>();
    pod->is_static = true;
    pod->worker = std::make_shared<PodWorker>(environment_, document);
    {
      MutexLock lock(mutex_);
      pods_[uid] = pod;
    }
    pod->worker->start();
    push_status(uid);
  }
  // Mirrors of manifests that went while no agent ran.
  if (!is_synced_) return;
  std::set<std::string> names;
  for (const auto& worker : workers()) names.insert(key_of(worker->pod()));
  for (auto& [key, mirror] : mirrors_) {
    if (names.contains(key) || mirror.uid.empty()) continue;
    const std::size_t slash = key.find('/');
    client_.remove(kPods, key.substr(0, slash), key.substr(slash + 1), {.grace_period_seconds = 0, .precondition_uid = mirror.uid},
                   [](const model::ApiResult<json::Value>&) {});
  }
}

void NodePods::mirror_seen(const client::Object& object, const json::Value& document) {
  Mirror& mirror = mirrors_[object.ns() + "/" + object.name()];
  mirror.uid = object.uid();
  mirror.hash = json::get_string(document, {"metadata", "annotations", kConfigMirrorAnnotation});
  if (object.is_deleting()) {
    // A deleted mirror stops nothing; it goes, and another is made.
    client_.remove(kPods, object.ns(), object.name(), {.grace_period_seconds = 0, .precondition_uid = object.uid()},
                   [](const model::ApiResult<json::Value>&) {});
    return;
  }
  for (const auto& worker : workers()) {
    if (key_of(worker->pod()) != object.ns() + "/" + object.name()) continue;
    if (const auto pod = find(worker->uid())) insist(pod, object.uid(), document);
    push_status(worker->uid());
  }
}

void NodePods::ensure_mirror(const std::shared_ptr<Pod>& pod) {
  const json::Value document = pod->worker->pod();
  const std::string ns(json::get_string(document, {"metadata", "namespace"})), name(json::get_string(document, {"metadata", "name"})),
      uid = pod->worker->uid();
  Mirror& mirror = mirrors_[key_of(document)];
  if (mirror.is_writing) return;
  if (!mirror.uid.empty()) {
    // The mirror of an older manifest.
    client_.remove(kPods, ns, name, {.grace_period_seconds = 0, .precondition_uid = mirror.uid},
                   [](const model::ApiResult<json::Value>&) {});
    return;
  }
  mirror.is_writing = true;
  client_.create(kPods, ns, mirror_pod(document, environment_.node_name, environment_.node_uid()),
                 lifeline_.guard([this, key = key_of(document), uid](model::ApiResult<json::Value> result) {
                   const auto found = mirrors_.find(key);
                   if (found != mirrors_.end()) {
                     found->second.is_writing = false;
                     if (!result && found->second.uid.empty()) mirrors_.erase(found);
                   }
                   if (result) return;
                   log::warning("node", "mirror pod {}: {}", key, result.error().message);
                   push_later(uid);
                 }));
}

// ---- for others

std::vector<std::shared_ptr<PodWorker>> NodePods::workers() const {
  MutexLock lock(mutex_);
  std::vector<std::shared_ptr<PodWorker>> out;
  for (const auto& [uid, pod] : pods_) out.push_back(pod->worker);
  return out;
}

std::shared_ptr<PodWorker> NodePods::worker(const std::string& uid) const {
  const std::shared_ptr<Pod> pod = find(uid);
  return pod ? pod->worker : nullptr;
}

bool NodePods::contains(const std::string& uid) const {
  MutexLock lock(mutex_);
  return pods_.contains(uid);
}

std::optional<KubeletBackend::Pod> NodePods::find_pod(const std::string& ns, const std::string& name) const {
  for (const auto& worker : workers()) {
    const json::Value document = worker->pod();
    if (json::get_string(document, {"metadata", "name"}) == name && json::get_string(document, {"metadata", "namespace"}) == ns)
      return KubeletBackend::Pod{read_pod_spec(document), worker->state(), worker->log_directory(), worker->sandbox_id()};
  }
  return std::nullopt;
}

json::Value NodePods::pod_list() const {
  json::Array items;
  for (const auto& worker : workers()) {
    json::Value pod = worker->pod();
    pod.as_object()["status"] = worker->status();
    items.push_back(std::move(pod));
  }
  return json::Object{{"kind", "PodList"}, {"apiVersion", "v1"}, {"metadata", json::Object{}}, {"items", std::move(items)}};
}

void NodePods::bury() {
  std::vector<std::shared_ptr<Pod>> dead;  // Destroyed, and so joined, after the lock is gone.
  MutexLock lock(mutex_);
  dead.swap(graveyard_);
}

}  // namespace berth::node::agent
