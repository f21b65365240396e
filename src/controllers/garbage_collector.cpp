// Owners and dependents (pkg/controller/garbagecollector). A key is the uid of an object to look at.
//
//   owner goes        --> its dependents are looked at: no owner left -> deleted; another one left -> the dead references are dropped
//   owner, foreground --> dependents are deleted first; its finalizer falls when none that blocks is left
//   owner, orphan     --> dependents lose the reference; its finalizer falls when none has it
//
// An owner that is not in the graph counts as absent only after the server said so, by name and uid.
#include "controllers/cluster.h"
#include "controllers/common.h"

namespace berth::controllers {
namespace {

constexpr const char* kForeground = "foregroundDeletion";
constexpr const char* kOrphanFinalizer = "orphan";
constexpr std::size_t kAbsentMemory = 200'000;

/// What a lookup found missing. A reference may name an object that lives, by a wrong name or from another namespace: the rest of what the
/// reference says belongs to the answer.
std::string absence(const std::string& uid, Kind kind, const std::string& ns, const std::string& name) {
  return fmt::format("{} {} {}/{}", uid, kind->plural, kind->namespaced ? ns : std::string(), name);
}

class GarbageCollector final : public Controller {
 public:
  [[nodiscard]] std::string_view name() const override { return "garbage-collector-controller"; }
  [[nodiscard]] std::vector<Kind> watches() const override { return collectable_kinds(); }
  [[nodiscard]] bool watches_custom_kinds() const override { return true; }
  /// It holds the newest revision of everything, and no older one.
  [[nodiscard]] bool counts_heartbeats() const override { return true; }
  void on_custom_kind(const Cache& cache, TimePoint now, KeySink& sink) override { on_start(cache, now, sink); }
  [[nodiscard]] int concurrency() const override { return 256; }
  void on_event(const Event& event, const Cache& cache, TimePoint now, KeySink& sink) override;
  void on_start(const Cache&, TimePoint, KeySink& sink) override {
    started_ = true;
    for (const auto& [uid, node] : nodes_)
      if (is_suspect(node)) sink.add(uid);
  }
  Plan reconcile(const std::string& key, TimePoint now, const Cache& cache) override;
  void on_result(const std::string& key, const Write& write, const ApiResult<json::Value>& result, TimePoint now) override;

 private:
  struct Node {
    Kind kind = nullptr;
    ObjectRef object;
    OwnerReferences owners;
  };
  enum class OwnerState { kSolid, kAbsent, kWaiting, kUnknown };

  [[nodiscard]] bool is_suspect(const Node& node) const;
  /// A namespaced owner of another namespace than its dependent's.
  [[nodiscard]] static bool is_elsewhere(const Node& owner, const Node& dependent) {
    return owner.kind->namespaced && owner.object->ns() != dependent.object->ns();
  }
  void report_elsewhere(Plan& plan, const Node& dependent);
  [[nodiscard]] bool waits_for_dependents(const Node& node) const;
  OwnerState state_of(const Node& dependent, const OwnerReference& owner, const Cache& cache) const;
  void enqueue_dependents(const std::string& uid, KeySink& sink) const;
  void enqueue_ending(const OwnerReferences& owners, KeySink& sink) const;
  void forget(const std::string& uid);
  bool goes_on(const Event& event, KeySink& sink);
  Plan orphan_dependents(const Node& node, const json::Value& document);
  Plan delete_dependents_first(const Node& node, const json::Value& document);
  Plan attempt_to_delete(const Node& node, const json::Value& document, const Cache& cache);
  [[nodiscard]] bool closes_a_circle(const Node& node) const;

  std::unordered_map<std::string, Node> nodes_;  ///< By uid.
  /// By the owner's uid, and their own: entries of nodes_.
  std::unordered_map<std::string, std::map<std::string_view, const Node*>> dependents_;
  std::unordered_set<std::string> absent_;    ///< Uids of what went, and absence() of what was not found.
  std::unordered_set<std::string> reported_;  ///< Dependents whose owner is in another namespace.
  bool started_ = false;
};

OwnerReferences owners_of(const Event& event) {
  if (event.pod_after) return event.pod_after->owners;
  // Most objects have no owner: the parse is spared by a look at the bytes.
  if (event.after->text()->find("\"ownerReferences\"") == std::string::npos) return {};
  return owner_references(*event.after->parsed());
}

void GarbageCollector::forget(const std::string& uid) {
  const auto it = nodes_.find(uid);
  if (it == nodes_.end()) return;
  for (const OwnerReference& owner : it->second.owners) {
    const auto group = dependents_.find(owner.uid);
    if (group == dependents_.end()) continue;
    group->second.erase(uid);
    if (group->second.empty()) dependents_.erase(group);
  }
  nodes_.erase(it);
}

/// An object that changed, but for its owners: most events are of that kind. How its owners are is told by events of theirs.
bool GarbageCollector::goes_on(const Event& event, KeySink& sink) {
  if (!event.before || !event.after || event.before->uid() != event.after->uid()) return false;
  if (event.before->owners_digest() != event.after->owners_digest()) return false;
  const auto known = nodes_.find(event.after->uid());
  if (known == nodes_.end()) return false;
  known->second.object = event.after;
  if (!event.after->is_deleting()) return true;
  if (started_) sink.add(known->first);
  if (!event.before->is_deleting()) enqueue_dependents(known->first, sink);
  enqueue_ending(known->second.owners, sink);
  return true;
}

void GarbageCollector::on_event(const Event& event, const Cache&, TimePoint, KeySink& sink) {
  if (goes_on(event, sink)) return;
  const bool replaced = event.before && (!event.after || event.before->uid() != event.after->uid());
  OwnerReferences lost;
  if (const auto it = nodes_.find(event.object().uid()); it != nodes_.end()) lost = it->second.owners;
  if (replaced) {
    const std::string& uid = event.before->uid();
    if (absent_.size() > kAbsentMemory) absent_.clear();
    absent_.insert(uid);
    reported_.erase(uid);
    if (const auto it = nodes_.find(uid); it != nodes_.end()) lost = it->second.owners;
    forget(uid);
    enqueue_dependents(uid, sink);
  }
  if (event.after) {
    const std::string& uid = event.after->uid();
    forget(uid);
    auto& [key, node] = *nodes_.try_emplace(uid).first;
    node.kind = event.kind;
    node.object = event.after;
    node.owners = owners_of(event);
    for (const OwnerReference& owner : node.owners) dependents_[owner.uid].emplace(key, &node);
    if (started_ && is_suspect(node)) sink.add(uid);
    if (event.after->is_deleting() && (!event.before || !event.before->is_deleting())) enqueue_dependents(uid, sink);
  }
  enqueue_ending(lost, sink);
}

/// A dependent that goes or let go of its owner may be what a foreground or orphan deletion waits for.
void GarbageCollector::enqueue_ending(const OwnerReferences& owners, KeySink& sink) const {
  for (const OwnerReference& owner : owners)
    if (const auto it = nodes_.find(owner.uid); it != nodes_.end() && it->second.object->is_deleting()) sink.add(owner.uid);
}

void GarbageCollector::enqueue_dependents(const std::string& uid, KeySink& sink) const {
  if (const auto it = dependents_.find(uid); it != dependents_.end())
    for (const auto& [dependent, node] : it->second) sink.add(std::string(dependent));
}

/// Whether a look at it could lead to anything: being deleted itself, or an owner missing or on its way out.
bool GarbageCollector::is_suspect(const Node& node) const {
  if (node.object->is_deleting()) return true;
  return std::any_of(node.owners.begin(), node.owners.end(), [&](const OwnerReference& owner) {
    const auto it = nodes_.find(owner.uid);
    return it == nodes_.end() || it->second.object->is_deleting() || it->second.object->name() != owner.name ||
           it->second.kind->kind != owner.kind || is_elsewhere(it->second, node);
  });
}

bool GarbageCollector::waits_for_dependents(const Node& node) const {
  return node.object->is_deleting() && has_finalizer(*node.object->parsed(), kForeground);
}

GarbageCollector::OwnerState GarbageCollector::state_of(const Node& dependent, const OwnerReference& owner, const Cache& cache) const {
  if (absent_.contains(owner.uid)) return OwnerState::kAbsent;
  const Kind kind = cache.find_reference(owner.api_version, owner.kind);
  // A kind nobody serves cannot be asked for: its dependents are left alone. So is a namespaced owner of a cluster-scoped object.
  if (kind == nullptr || (kind->namespaced && !dependent.kind->namespaced)) return OwnerState::kSolid;
  if (absent_.contains(absence(owner.uid, kind, dependent.object->ns(), owner.name))) return OwnerState::kAbsent;
  const auto it = nodes_.find(owner.uid);
  if (it == nodes_.end()) return OwnerState::kUnknown;
  const Node& found = it->second;
  if (found.object->name() != owner.name || found.kind->kind != owner.kind ||
      (kind->namespaced && found.object->ns() != dependent.object->ns()))
    return OwnerState::kUnknown;
  return waits_for_dependents(found) ? OwnerState::kWaiting : OwnerState::kSolid;
}

Plan GarbageCollector::reconcile(const std::string& key, TimePoint, const Cache& cache) {
  const auto it = nodes_.find(key);
  if (it == nodes_.end()) return {};
  const Node& node = it->second;
  const auto parsed = node.object->parsed();
  const json::Value& document = *parsed;
  if (!node.object->is_deleting()) return node.owners.empty() ? Plan{} : attempt_to_delete(node, document, cache);
  if (has_finalizer(document, kOrphanFinalizer)) return orphan_dependents(node, document);
  if (has_finalizer(document, kForeground)) return delete_dependents_first(node, document);
  return {};
}

Plan GarbageCollector::orphan_dependents(const Node& node, const json::Value& document) {
  Plan plan;
  if (const auto it = dependents_.find(node.object->uid()); it != dependents_.end()) {
    for (const auto& [uid, known] : it->second) {
      if (plan.is_full()) break;
      const Node& dependent = *known;
      const auto dependent_document_parsed = dependent.object->parsed();
      const json::Value& dependent_document = *dependent_document_parsed;
      json::Array kept;
      for (const json::Value& owner : json::get_array(dependent_document, {"metadata", "ownerReferences"}))
        if (json::get_string(owner, {"uid"}) != node.object->uid()) kept.push_back(owner);
      json::Value value = kept.empty() ? json::Value(nullptr) : json::Value(std::move(kept));
      plan.add(patch_object(dependent.kind, *dependent.object, {{"metadata", json::Object{{"ownerReferences", std::move(value)}}}}),
               dependent.object->text_bytes());
    }
  }
  if (plan.writes.empty()) plan.writes.push_back(remove_finalizer(node.kind, *node.object, document, kOrphanFinalizer));
  return plan;
}

Plan GarbageCollector::delete_dependents_first(const Node& node, const json::Value& document) {
  Plan plan;
  bool blocked = false;
  if (const auto it = dependents_.find(node.object->uid()); it != dependents_.end()) {
    for (const auto& [uid, known] : it->second) {
      const Node& dependent = *known;
      const bool blocks = std::any_of(dependent.owners.begin(), dependent.owners.end(), [&](const OwnerReference& owner) {
        return owner.uid == node.object->uid() && owner.blocks_deletion;
      });
      blocked |= blocks;
      if (blocks && !dependent.object->is_deleting()) plan.enqueue.emplace_back(uid);
    }
  }
  if (!blocked) plan.writes.push_back(remove_finalizer(node.kind, *node.object, document, kForeground));
  return plan;
}

Plan GarbageCollector::attempt_to_delete(const Node& node, const json::Value& document, const Cache& cache) {
  Plan plan;
  report_elsewhere(plan, node);
  std::set<std::string> dead;
  bool solid = false, waiting = false;
  for (const OwnerReference& owner : node.owners) {
    switch (state_of(node, owner, cache)) {
      case OwnerState::kSolid:
        solid = true;
        break;
      case OwnerState::kWaiting:
        waiting = true;
        dead.insert(owner.uid);
        break;
      case OwnerState::kAbsent:
        dead.insert(owner.uid);
        break;
      case OwnerState::kUnknown: {
        const Kind kind = cache.find_reference(owner.api_version, owner.kind);
        Write write;
        write.verb = Write::Verb::kGet;
        write.kind = kind;
        write.ns = kind->namespaced ? node.object->ns() : std::string();
        write.name = owner.name;
        write.tag = owner.uid;
        write.may_fail = true;
        plan.writes.push_back(std::move(write));
        break;
      }
    }
  }
  if (!plan.writes.empty()) {
    plan.requeue_after = std::chrono::milliseconds(10);
    plan.cooldown = std::chrono::milliseconds(5);
    return plan;
  }
  if (solid && dead.empty()) return plan;
  if (solid) {
    json::Array kept;
    for (const json::Value& owner : json::get_array(document, {"metadata", "ownerReferences"}))
      if (!dead.contains(std::string(json::get_string(owner, {"uid"})))) kept.push_back(owner);
    plan.writes.push_back(patch_object(node.kind, *node.object, {{"metadata", json::Object{{"ownerReferences", std::move(kept)}}}}));
    return plan;
  }
  if (waiting && closes_a_circle(node)) {
    json::Array unblocked;
    for (const json::Value& owner : json::get_array(document, {"metadata", "ownerReferences"})) {
      unblocked.push_back(owner);
      if (json::get_bool(owner, {"blockOwnerDeletion"}, false)) unblocked.back().as_object()["blockOwnerDeletion"] = false;
    }
    plan.writes.push_back(patch_object(node.kind, *node.object, {{"metadata", json::Object{{"ownerReferences", std::move(unblocked)}}}}));
    return plan;
  }
  const bool has_dependents = dependents_.contains(node.object->uid());
  Write write = delete_object(node.kind, *node.object);
  if (waiting && has_dependents)
    write.delete_options.propagation = Propagation::kForeground;
  else if (has_finalizer(document, kOrphanFinalizer))
    write.delete_options.propagation = Propagation::kOrphan;
  else if (has_finalizer(document, kForeground))
    write.delete_options.propagation = Propagation::kForeground;
  write.delete_options.precondition_resource_version = std::to_string(node.object->revision());
  plan.writes.push_back(std::move(write));
  return plan;
}

/// Whether it blocks owners that wait for it while one of its own dependents waits too: a circle of owners would wait for itself for ever
/// (attemptToDeleteItem's detection, which may be wrong about a mere chain; then a deletion is in the background that need not be).
bool GarbageCollector::closes_a_circle(const Node& node) const {
  if (std::none_of(node.owners.begin(), node.owners.end(), [](const OwnerReference& owner) { return owner.blocks_deletion; })) return false;
  const auto group = dependents_.find(node.object->uid());
  return group != dependents_.end() &&
         std::any_of(group->second.begin(), group->second.end(), [&](const auto& one) { return waits_for_dependents(*one.second); });
}

void GarbageCollector::report_elsewhere(Plan& plan, const Node& dependent) {
  const std::string& ns = dependent.object->ns();
  for (const OwnerReference& owner : dependent.owners) {
    const auto it = nodes_.find(owner.uid);
    if (it == nodes_.end() || !is_elsewhere(it->second, dependent) || !reported_.insert(dependent.object->uid()).second) continue;
    plan.events.push_back(note_about(dependent.kind, *dependent.object, "Warning", "OwnerRefInvalidNamespace",
                                     fmt::format("ownerRef [{}/{}, namespace: {}, name: {}, uid: {}] does not exist in namespace \"{}\"",
                                                 owner.api_version, owner.kind, ns, owner.name, owner.uid, ns)));
  }
}

void GarbageCollector::on_result(const std::string&, const Write& write, const ApiResult<json::Value>& result, TimePoint) {
  if (write.verb != Write::Verb::kGet) return;
  const bool gone = result ? json::get_string(*result, {"metadata", "uid"}) != write.tag : result.error().code == 404;
  if (gone) absent_.insert(absence(write.tag, write.kind, write.ns, write.name));
}

}  // namespace

ControllerPtr make_garbage_collector() { return std::make_unique<GarbageCollector>(); }

}  // namespace berth::controllers
