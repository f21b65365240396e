#include "apiserver/definitions/custom_resources.h"

#include "apiserver/apply/managed_fields.h"
#include "apiserver/cache/follow.h"
#include "apiserver/ground/proposals.h"
#include "base/lifeline.h"
#include "base/mutex.h"
#include "custom/check_definition.h"
#include "model/conditions.h"

namespace berth::apiserver {
namespace {

using json::Value;

constexpr std::string_view kFinalizer = "customresourcecleanup.apiextensions.k8s.io";
constexpr auto kRemainingPause = std::chrono::milliseconds(500);

using model::Condition;
using model::find_condition;
using model::set_condition;

bool is_condition_true(const Value& document, std::string_view type) { return model::condition_status(document, type) == "True"; }

json::Object names_document(const custom::Names& names) {
  json::Object out{{"plural", names.plural}};
  if (!names.singular.empty()) out["singular"] = names.singular;
  if (!names.short_names.empty()) out["shortNames"] = json::Array(names.short_names.begin(), names.short_names.end());
  out["kind"] = names.kind;
  if (!names.list_kind.empty()) out["listKind"] = names.list_kind;
  if (!names.categories.empty()) out["categories"] = json::Array(names.categories.begin(), names.categories.end());
  return out;
}

bool has_finalizer(const Value& document) {
  for (const auto& one : json::get_array(document, {"metadata", "finalizers"}))
    if (one.is_string() && json::as_view(one) == kFinalizer) return true;
  return false;
}

/// Which of the requested names are free; `used` of resources and of kinds in the same group.
struct NameCheck {
  custom::Names accepted;
  Condition condition{"NamesAccepted", "True", "NoConflicts", "no conflicts found"};
};

NameCheck check_names(const custom::Names& wanted, const custom::Names& had, const std::set<std::string>& resources,
                      const std::set<std::string>& kinds) {
  NameCheck out;
  out.accepted = had;
  const auto refuse = [&](std::string_view reason, std::string message) {
    out.condition = {"NamesAccepted", "False", std::string(reason), std::move(message)};
  };
  const auto take = [&](const std::string& name, const std::string& before, const std::set<std::string>& used, std::string_view reason,
                        std::string& into) {
    if (name != before && used.contains(name)) return refuse(reason, fmt::format("\"{}\" is already in use", name));
    into = name;
  };
  take(wanted.plural, had.plural, resources, "PluralConflict", out.accepted.plural);
  take(wanted.singular, had.singular, resources, "SingularConflict", out.accepted.singular);
  std::vector<std::string> conflicts;
  for (const auto& name : wanted.short_names)
    if (std::ranges::find(had.short_names, name) == had.short_names.end() && resources.contains(name))
      conflicts.push_back(fmt::format("\"{}\" is already in use", name));
  if (conflicts.empty()) {
    out.accepted.short_names = wanted.short_names;
  } else {
    refuse("ShortNamesConflict", conflicts.size() == 1 ? conflicts[0] : fmt::format("[{}]", fmt::join(conflicts, ", ")));
  }
  take(wanted.kind, had.kind, kinds, "KindConflict", out.accepted.kind);
  take(wanted.list_kind, had.list_kind, kinds, "ListKindConflict", out.accepted.list_kind);
  out.accepted.categories = wanted.categories;
  return out;
}

/// The server has this very kind by itself.
bool is_builtin(const custom::Definition& definition) {
  return std::ranges::any_of(model::all_kinds(), [&](const model::KindInfo& kind) {
    return kind.group == definition.group && kind.plural == definition.names.plural && kind.kind == definition.names.kind;
  });
}

std::string structural_problem(const Value& document) {
  if (json::get_bool(document, {"spec", "preserveUnknownFields"})) return "spec.preserveUnknownFields: Invalid value: true: must be false";
  std::vector<std::string> lines;
  std::size_t index = 0;
  for (const auto& version : json::get_array(document, {"spec", "versions"})) {
    const auto path = fmt::format("spec.versions[{}].schema.openAPIV3Schema", index++);
    if (const auto* schema = json::find(version, {"schema", "openAPIV3Schema"}))
      for (const auto& error : custom::check_structural(custom::read_schema(*schema), path)) lines.push_back(error.render());
  }
  if (lines.empty()) return {};
  return lines.size() == 1 ? lines[0] : fmt::format("[{}]", fmt::join(lines, ", "));
}

}  // namespace

/// Answered later than the server may live.
struct CustomResources::Follower {
  Mutex mutex;
  CustomResources* owner BERTH_GUARDED_BY(mutex) = nullptr;  ///< Null once it is gone.
  Lifeline lifeline;                                         ///< The owner's.
  void enqueue(const std::string& name) {
    const MutexLock lock(mutex);
    if (owner != nullptr) owner->enqueue(name);
  }
  void refused(const std::string& name) {
    const MutexLock lock(mutex);
    if (owner != nullptr) owner->refused(name);
  }
};

CustomResources::CustomResources(Ground& ground, EndWatches end_watches)
    : ground_(ground),
      end_watches_(std::move(end_watches)),
      table_(std::make_shared<const KindTable>(std::vector<ServedKind>(), ground.options.features)) {}

CustomResources::~CustomResources() {
  if (follower_ != nullptr) {
    follower_->lifeline.end();
    const MutexLock lock(follower_->mutex);
    follower_->owner = nullptr;
  }
  watch_.reset();
}

KindTablePtr CustomResources::table() const {
  const MutexLock lock(mutex_);
  return table_;
}

void CustomResources::start() {
  WatchFilter all;
  const auto& kind = KindTable::definitions();
  all.prefix = make_prefix(kind.storage_group, kind.plural);
  const auto stored = ground_.cache->list(all, "", 0);
  for (const auto& object : stored.items) {
    const auto document = decode_object(*object);
    auto& entry = entries_[std::string(object->meta.name)];
    update_entry(entry, *object, document);
    entry.is_builtin = is_builtin(*entry.definition);
    if (entry.definition->is_established && !entry.is_builtin) serve(entry, document, object->revision);
  }
  publish();
  follower_ = std::make_shared<Follower>();
  {
    const MutexLock lock(follower_->mutex);
    follower_->owner = this;
  }
  const auto changed = [this](const WatchEvent& event) { enqueue(std::string(event.object->meta.name)); };
  watch_ = follow(*ground_.cache, std::move(all.prefix), changed, stored.revision);
  // What was left half done goes on.
  for (const auto& object : stored.items) enqueue(std::string(object->meta.name));
}

void CustomResources::enqueue(std::string name) {
  {
    const MutexLock lock(mutex_);
    // First come, first served: of two that want one name, who came first has it.
    if (queued_.insert(name).second) queue_.push_back(std::move(name));
    if (std::exchange(is_running_, true)) return;
  }
  ground_.defer(follower_->lifeline.guard([this] { run(); }));
}

void CustomResources::run() {
  while (true) {
    std::string name;
    {
      const MutexLock lock(mutex_);
      if (queue_.empty()) {
        is_running_ = false;
        return;
      }
      name = std::move(queue_.front());
      queue_.pop_front();
      queued_.erase(name);
    }
    process(name);
  }
}

/// Reads what is new of a definition; whether its spec is another.
bool CustomResources::update_entry(Entry& entry, const StoredObject& object, const Value& document) {
  const auto generation = json::get_int(document, {"metadata", "generation"});
  entry.is_terminating = json::find(document, {"metadata", "deletionTimestamp"}) != nullptr;
  const bool is_new = entry.uid != object.meta.uid || entry.generation != generation;
  if (is_new) {
    entry.uid = object.meta.uid;
    entry.generation = generation;
    entry.problem = structural_problem(document);
  }
  auto definition = custom::read_definition(document);
  const bool is_same = !is_new && entry.definition != nullptr && entry.definition->accepted == definition->accepted &&
                       entry.definition->is_established == definition->is_established;
  if (!is_same) entry.definition = std::move(definition);
  return is_new;
}

void CustomResources::serve(Entry& entry, const Value& document, Revision since) {
  entry.kinds.clear();
  for (auto& kind : custom::make_kinds(entry.definition, entry.is_terminating))
    entry.kinds.push_back({std::move(kind), since, is_condition_true(document, "Terminating") || entry.is_terminating});
}

void CustomResources::publish() {
  std::vector<ServedKind> all;
  for (const auto& [name, entry] : entries_) all.insert(all.end(), entry.kinds.begin(), entry.kinds.end());
  auto table = std::make_shared<const KindTable>(std::move(all), ground_.options.features);
  const MutexLock lock(mutex_);
  table_ = std::move(table);
}

void CustomResources::requeue_group(const std::string& group, const std::string& except) {
  for (const auto& [name, entry] : entries_)
    if (name != except && entry.definition != nullptr && entry.definition->group == group) enqueue(name);
}

void CustomResources::forget(const std::string& name) {
  const auto found = entries_.find(name);
  if (found == entries_.end()) return;
  const auto definition = found->second.definition;
  const bool was_served = !found->second.kinds.empty();
  entries_.erase(found);
  forget_write(name);
  publish();
  if (was_served) end_watches_(definition->group, definition->accepted.plural);
  requeue_group(definition->group, name);
}

/// Names and conditions as they are to be; whether anything of the status changed.
bool CustomResources::settle_status(const Entry& entry, Value& document) {
  const auto before = *json::find(document, "status");
  const auto now = ground_.loop.now();
  const auto& definition = *entry.definition;
  std::set<std::string> resources, kinds;
  for (const auto& [name, other] : entries_) {
    if (&other == &entry || other.definition == nullptr || other.definition->group != definition.group) continue;
    const auto& names = other.definition->accepted;
    resources.insert({names.plural, names.singular});
    resources.insert(names.short_names.begin(), names.short_names.end());
    kinds.insert({names.kind, names.list_kind});
  }
  resources.erase("");
  kinds.erase("");
  // What the server has by itself stays what it is.
  for (const auto& kind : model::all_kinds())
    if (kind.group == definition.group) {
      resources.insert({kind.plural, kind.singular});
      resources.insert(kind.short_names.begin(), kind.short_names.end());
      kinds.insert({kind.kind, kind.list_kind});
    }
  if (entry.is_builtin) {
    resources.clear();
    kinds.clear();
  }
  if (!(definition.names == definition.accepted) || find_condition(document, "NamesAccepted") == nullptr) {
    auto check = check_names(definition.names, definition.accepted, resources, kinds);
    json::ensure_object(document, {"status"})["acceptedNames"] = names_document(check.accepted);
    set_condition(document, check.condition, now);
  }
  const bool accepted = is_condition_true(document, "NamesAccepted");
  if (accepted && entry.is_builtin) {
    set_condition(document, {"Established", "True", "ServedByServer", "this server serves the kind by itself: the schema here is not used"},
                  now);
  } else if (accepted && !is_condition_true(document, "Established")) {
    set_condition(document, {"Established", "True", "InitialNamesAccepted", "the initial names have been accepted"}, now);
  } else if (!accepted && !is_condition_true(document, "Established")) {
    set_condition(document, {"Established", "False", "NotAccepted", "not all names are accepted"}, now);
  }
  if (entry.problem.empty()) {
    if (find_condition(document, "NonStructuralSchema") != nullptr)
      model::remove_condition(json::find(document, {"status", "conditions"})->get_array(), "NonStructuralSchema");
  } else {
    set_condition(document, {"NonStructuralSchema", "True", "Violations", entry.problem}, now);
  }
  const auto approval = custom::approval_of(definition.group, document);
  static const std::map<custom::Approval, std::pair<std::string, std::string>> kApprovals = {
      {custom::Approval::kInvalid, {"False", "InvalidAnnotation"}},
      {custom::Approval::kMissing, {"False", "MissingAnnotation"}},
      {custom::Approval::kApproved, {"True", "ApprovedAnnotation"}},
      {custom::Approval::kBypassed, {"False", "UnapprovedAnnotation"}}};
  if (const auto found = kApprovals.find(approval.approval); found != kApprovals.end())
    set_condition(document, {"KubernetesAPIApprovalPolicyConformant", found->second.first, found->second.second, approval.reason}, now);
  return !json::equal(before, *json::find(document, "status"));
}

void CustomResources::process(const std::string& name) {
  const auto object = ground_.cache->get(object_key(KindTable::definitions(), "", name));
  if (object == nullptr) return forget(name);
  if (is_being_written(name, object->revision)) return;
  auto document = decode_object(*object);
  if (json::find(document, "status") == nullptr) json::ensure_object(document, {"status"});
  auto& entry = entries_[name];
  const bool was_terminating = entry.is_terminating;
  const bool is_new = update_entry(entry, *object, document);
  entry.is_builtin = is_builtin(*entry.definition);
  const auto accepted_before = entry.definition->accepted;
  const bool has_new_status = settle_status(entry, document);
  if (has_new_status) entry.definition = custom::read_definition(document);
  if (entry.definition->is_established && !entry.is_builtin &&
      (is_new || has_new_status || entry.kinds.empty() || was_terminating != entry.is_terminating)) {
    // A new schema: what was written before is read by it. Served before the condition says so.
    const bool was_served = !entry.kinds.empty();
    const auto since = !is_new && was_served ? entry.kinds.front().valid_since : was_served ? ground_.cache->revision() + 1 : 0;
    serve(entry, document, since);
    publish();
    if (was_served && is_new) end_watches_(entry.definition->group, entry.definition->accepted.plural);
  }
  if (entry.is_terminating && has_finalizer(document)) return finish_deletion(name, entry, *object, std::move(document));
  if (has_new_status) write(*object, std::move(document), name);
  if (!(accepted_before == entry.definition->accepted)) requeue_group(entry.definition->group, name);
}

void CustomResources::begin_deletion(Value& definition) const {
  if (json::find(definition, {"metadata", "deletionTimestamp"}) != nullptr || has_finalizer(definition)) return;
  auto& finalizers = json::ensure_object(definition, {"metadata"})["finalizers"];
  if (!finalizers.is_array()) finalizers = json::Array();
  finalizers.get_array().emplace_back(kFinalizer);
  set_condition(definition,
                {"Terminating", "True", "InstanceDeletionPending",
                 "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"},
                ground_.loop.now());
}

void CustomResources::again_later(const std::string& name) {
  ground_.loop.schedule_after(kRemainingPause, [follower = follower_, name] { follower->enqueue(name); });
}

bool CustomResources::delete_instances(const Entry& entry) {
  constexpr std::size_t kBatch = 2000;
  const auto found = ground_.cache->list({.prefix = make_prefix(entry.definition->group, entry.definition->accepted.plural)}, "", kBatch);
  const auto now = ground_.loop.now();
  bool waits = false;
  for (const auto& object : found.items) {
    auto document = decode_object(*object);
    if (!has_finalizers(document)) {
      take_away(ground_, std::string(object->key), object->revision);
    } else if (json::find(document, {"metadata", "deletionTimestamp"}) == nullptr) {
      auto& metadata = json::ensure_object(document, {"metadata"});
      metadata["deletionTimestamp"] = format_rfc3339(now);
      metadata["deletionGracePeriodSeconds"] = 0;
      metadata["generation"] = json::get_int(document, {"metadata", "generation"}) + 1;
      put(ground_, entry.kinds.front().kind->info.storage(), std::move(document), object->revision);
    } else {
      waits = true;
    }
  }
  return found.items.empty() && !waits;
}

void CustomResources::finish_deletion(const std::string& name, const Entry& entry, const StoredObject& object, Value document) {
  const auto now = ground_.loop.now();
  const bool is_served = !entry.kinds.empty();
  if (is_served && !delete_instances(entry)) {
    const auto* condition = find_condition(document, "Terminating");
    const bool is_told = condition != nullptr && json::get_string(*condition, {"reason"}) == "InstanceDeletionInProgress";
    if (!is_told) {
      set_condition(document, {"Terminating", "True", "InstanceDeletionInProgress", "CustomResource deletion is in progress"}, now);
      write(object, std::move(document), name);
    }
    return again_later(name);
  }
  const Condition done = entry.is_builtin ? Condition{"Terminating", "False", "OverlappingBuiltInResource",
                                                      "instances overlap with built-in resources in storage"}
                         : is_served      ? Condition{"Terminating", "False", "InstanceDeletionCompleted", "removed all instances"}
                                          : Condition{"Terminating", "False", "NeverEstablished", "resource was never established"};
  set_condition(document, done, now);
  json::Array kept;
  for (const auto& one : json::get_array(document, {"metadata", "finalizers"}))
    if (!one.is_string() || json::as_view(one) != kFinalizer) kept.push_back(one);
  auto& metadata = json::ensure_object(document, {"metadata"});
  if (kept.empty()) {
    metadata.erase("finalizers");
  } else {
    metadata["finalizers"] = std::move(kept);
  }
  write(object, std::move(document), name);
}

void CustomResources::write(const StoredObject& base, Value document, const std::string& name) {
  const auto& kind = KindTable::definitions();
  const auto old = decode_object(base);
  apply::track_update(kind, &old, document, {"kube-apiserver", "status", ground_.loop.now()});
  const bool is_gone = json::find(document, {"metadata", "deletionTimestamp"}) != nullptr && !has_finalizers(document);
  {
    const MutexLock lock(mutex_);
    written_[name] = base.revision;
  }
  auto done = [follower = follower_, name](const ProposeResult& result) {
    if (!result && result.error() != ProposeError::kTooLarge) follower->refused(name);
  };
  if (is_gone) return take_away(ground_, std::string(base.key), base.revision, std::move(done));
  put(ground_, kind, std::move(document), base.revision, std::move(done));
}

bool CustomResources::is_being_written(const std::string& name, Revision revision) const {
  const MutexLock lock(mutex_);
  const auto found = written_.find(name);
  return found != written_.end() && found->second == revision;
}

void CustomResources::forget_write(const std::string& name) {
  const MutexLock lock(mutex_);
  written_.erase(name);
}

/// Who was faster is seen by then, and a store that failed may do so no more.
void CustomResources::refused(const std::string& name) {
  forget_write(name);
  again_later(name);
}

}  // namespace berth::apiserver
