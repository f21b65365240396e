// Deleting a namespace: everything in it goes, pods before the rest, then the "kubernetes" finalizer falls (pkg/controller/namespace).
#include "controllers/cluster.h"
#include "controllers/common.h"

namespace berth::controllers {
namespace {

constexpr const char* kKubernetesFinalizer = "kubernetes";

class NamespaceController final : public Controller {
 public:
  [[nodiscard]] std::string_view name() const override { return "namespace-controller"; }
  [[nodiscard]] std::vector<Kind> watches() const override { return collectable_kinds(); }
  [[nodiscard]] bool watches_custom_kinds() const override { return true; }
  void on_event(const Event& event, const Cache& cache, TimePoint, KeySink& sink) override {
    if (event.kind == kinds().namespace_) {
      if (event.after && event.after->is_deleting()) sink.add(event.after->name());
      return;
    }
    if (event.after || event.object().ns().empty()) return;
    const ObjectRef ns = cache.get(kinds().namespace_, "", event.object().ns());
    if (ns && ns->is_deleting()) sink.add(ns->name());
  }
  Plan reconcile(const std::string& key, TimePoint now, const Cache& cache) override;
  void on_result(const std::string& key, const Write& write, const ApiResult<json::Value>& result, TimePoint) override {
    if (write.verb == Write::Verb::kDeleteCollection) return note_deletion(key, write, result);
    if (write.verb != Write::Verb::kList) return;
    const auto it = checks_.find(key);
    if (it == checks_.end()) return;
    const bool is_unknown = !result && result.error().code == 404;  // A kind that this server does not serve.
    if (!is_unknown && (!result || !json::get_array(*result, {"items"}).empty()))
      it->second.failed = true;
    else
      ++it->second.empty;
  }

 private:
  /// The last look at the server itself, kind by kind: the caches may be behind.
  struct Check {
    std::size_t asked = 0, empty = 0;
    bool failed = false;
  };
  /// What is left once everything was told to go: sentences, sorted.
  struct Remaining {
    std::vector<std::string> content, finalizers;
  };
  void note_deletion(const std::string& key, const Write& write, const ApiResult<json::Value>& result) {
    if (!result && result.error().code != 404)
      failures_[key][write.kind->plural] = result.error().message;
    else if (const auto it = failures_.find(key); it != failures_.end())
      it->second.erase(write.kind->plural);
  }
  [[nodiscard]] Condition deletion_condition(const std::string& ns) const;
  Plan check_server(const std::string& key, const Cache& cache);
  static Remaining remaining_in(const std::string& ns, const Cache& cache);
  void note_conditions(Plan& plan, const Object& object, const json::Value& document, const Remaining& remaining, TimePoint now) const;

  std::map<std::string, Check> checks_;
  std::map<std::string, std::map<std::string, std::string>> failures_;  ///< By namespace and kind: why its objects would not go.
};

std::vector<Kind> namespaced_kinds(const Cache& cache) {
  std::vector<Kind> all = cache.all_collectable();
  std::erase_if(all, [](Kind kind) { return !kind->namespaced; });
  return all;
}

Write empty_out(Kind kind, const std::string& ns) {
  Write write;
  write.verb = Write::Verb::kDeleteCollection;
  write.kind = kind;
  write.ns = ns;
  write.delete_options.propagation = Propagation::kBackground;
  return write;
}

Plan NamespaceController::reconcile(const std::string& key, TimePoint now, const Cache& cache) {
  Plan plan;
  const ObjectRef object = cache.get(kinds().namespace_, "", key);
  if (!object || !object->is_deleting()) {
    checks_.erase(key);
    failures_.erase(key);
    return plan;
  }
  json::Value document = object->document();
  json::Array kept;
  bool ours = false;
  for (const json::Value& finalizer : json::get_array(document, {"spec", "finalizers"})) {
    if (finalizer.is_string() && json::as_view(finalizer) == kKubernetesFinalizer)
      ours = true;
    else
      kept.push_back(finalizer);
  }
  if (!ours) return plan;

  std::vector<Kind> filled;
  for (const Kind kind : namespaced_kinds(cache))
    if (cache.size_in(kind, key) > 0) filled.push_back(kind);
  const bool has_pods = cache.size_in(kinds().pod, key) > 0;
  bool is_told = true;
  for (const Kind kind : filled) {
    if (has_pods && kind != kinds().pod) continue;
    bool untouched = false;
    cache.for_each_in(kind, key, [&](const ObjectRef& item) { untouched |= !item->is_deleting(); });
    if (untouched) plan.writes.push_back(empty_out(kind, key)), is_told = false;
  }
  if (!filled.empty()) {
    checks_.erase(key);
    // While pods are left nothing else was looked at, and so nothing is said of it.
    const auto failed = failures_.find(key);
    is_told = is_told || (failed != failures_.end() && !failed->second.empty());
    if (has_pods)
      note_conditions(plan, *object, document, {}, now);
    else if (is_told)
      note_conditions(plan, *object, document, remaining_in(key, cache), now);
    plan.requeue_after =
        find_condition(document, "NamespaceContentRemaining") == nullptr ? std::chrono::seconds(1) : std::chrono::seconds(5);
    plan.cooldown = std::chrono::milliseconds(50);
    return plan;
  }
  const auto check = checks_.find(key);
  if (check == checks_.end() || check->second.failed || check->second.empty < check->second.asked) {
    plan = check_server(key, cache);
    note_conditions(plan, *object, document, {}, now);
    return plan;
  }
  checks_.erase(check);
  json::set(document, {"spec", "finalizers"}, std::move(kept));
  Write write;
  write.verb = Write::Verb::kUpdate;
  write.kind = kinds().namespace_;
  write.name = key;
  write.subresource = "finalize";
  write.body = std::move(document);
  plan.writes.push_back(std::move(write));
  return plan;
}

Plan NamespaceController::check_server(const std::string& key, const Cache& cache) {
  Plan plan;
  Check& check = checks_[key] = Check{};
  plan.writes.push_back(empty_out(kinds().event, key));
  for (const Kind kind : namespaced_kinds(cache)) {
    Write write;
    write.verb = Write::Verb::kList;
    write.kind = kind;
    write.ns = key;
    write.query = "limit=1";
    write.stage = 1;
    plan.writes.push_back(std::move(write));
    ++check.asked;
  }
  plan.requeue_after = std::chrono::milliseconds(5);
  return plan;
}

NamespaceController::Remaining NamespaceController::remaining_in(const std::string& ns, const Cache& cache) {
  Remaining remaining;
  std::map<std::string, int> finalizers;
  for (const Kind kind : namespaced_kinds(cache)) {
    const std::size_t count = cache.size_in(kind, ns);
    if (count == 0) continue;
    remaining.content.push_back(fmt::format("{}.{} has {} resource instances", kind->plural, kind->group, count));
    if (count > 1000) continue;
    cache.for_each_in(kind, ns, [&](const ObjectRef& item) {
      if (!item->is_deleting() || item->text()->find("\"finalizers\"") == std::string::npos) return;
      const auto held_document_parsed = item->parsed();
      const json::Value& held_document = *held_document_parsed;
      for (const json::Value& finalizer : json::get_array(held_document, {"metadata", "finalizers"}))
        if (finalizer.is_string()) ++finalizers[std::string(json::as_view(finalizer))];
    });
  }
  for (const auto& [name, count] : finalizers) remaining.finalizers.push_back(fmt::format("{} in {} resource instances", name, count));
  std::ranges::sort(remaining.content);
  std::ranges::sort(remaining.finalizers);
  return remaining;
}

/// Whether what was told to go went; otherwise what the server, or a webhook through it, said.
Condition NamespaceController::deletion_condition(const std::string& ns) const {
  constexpr const char* kType = "NamespaceDeletionContentFailure";
  const auto it = failures_.find(ns);
  if (it == failures_.end() || it->second.empty())
    return {kType, "False", "ContentDeleted", "All content successfully deleted, may be waiting on finalization"};
  std::set<std::string> said;
  for (const auto& [plural, why] : it->second) said.insert(why);
  return {kType, "True", "ContentDeletionFailed",
          fmt::format("Failed to delete all resource types, {} remaining: {}", it->second.size(), fmt::join(said, ", "))};
}

/// The five conditions of a namespace that goes (pkg/controller/namespace/deletion/status_condition_utils.go).
void NamespaceController::note_conditions(Plan& plan, const Object& object, const json::Value& document, const Remaining& remaining,
                                          TimePoint now) const {
  json::Object status = json::get_object(document, {"status"});
  json::Array conditions = json::get_array(document, {"status", "conditions"});
  set_condition(conditions, {"NamespaceDeletionDiscoveryFailure", "False", "ResourcesDiscovered", "All resources successfully discovered"},
                now);
  set_condition(
      conditions,
      {"NamespaceDeletionGroupVersionParsingFailure", "False", "ParsedGroupVersions", "All legacy kube types successfully parsed"}, now);
  set_condition(conditions, deletion_condition(object.name()), now);
  if (remaining.content.empty())
    set_condition(conditions, {"NamespaceContentRemaining", "False", "ContentRemoved", "All content successfully removed"}, now);
  else
    set_condition(conditions,
                  {"NamespaceContentRemaining", "True", "SomeResourcesRemain",
                   fmt::format("Some resources are remaining: {}", fmt::join(remaining.content, ", "))},
                  now);
  if (remaining.finalizers.empty())
    set_condition(conditions,
                  {"NamespaceFinalizersRemaining", "False", "ContentHasNoFinalizers", "All content-preserving finalizers finished"}, now);
  else
    set_condition(conditions,
                  {"NamespaceFinalizersRemaining", "True", "SomeFinalizersRemain",
                   fmt::format("Some content in the namespace has finalizers remaining: {}", fmt::join(remaining.finalizers, ", "))},
                  now);
  status["conditions"] = std::move(conditions);
  if (auto write = patch_status(kinds().namespace_, object, document, status)) {
    write->may_fail = true;
    plan.writes.push_back(std::move(*write));
  }
}

}  // namespace

ControllerPtr make_namespace_controller() { return std::make_unique<NamespaceController>(); }

}  // namespace berth::controllers
