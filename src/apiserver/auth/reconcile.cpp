// Bringing the default roles into the cache, and keeping aggregated ClusterRoles' rules up to date.
#include "apiserver/auth/aggregation.h"
#include "apiserver/auth/default_roles.h"
#include "apiserver/auth/rule_coverage.h"
#include "apiserver/cache/object_codec.h"
#include "base/log.h"
#include "security/uuid.h"

namespace berth::apiserver::auth {
namespace {

constexpr const char* kAutoUpdate = "rbac.authorization.kubernetes.io/autoupdate";

/// Appends what `wanted` has and `current` lacks. True when something was added.
bool add_missing_subjects(json::Value& current, const json::Value& wanted) {
  bool changed = false;
  for (const auto& subject : json::get_array(wanted, {"subjects"})) {
    const auto& present = json::get_array(current, {"subjects"});
    if (std::any_of(present.begin(), present.end(), [&](const auto& known) { return json::equal(known, subject); })) continue;
    auto* list = json::find(current, "subjects");
    if (list == nullptr || !list->is_array()) {
      json::set(current, {"subjects"}, json::Array{});
      list = json::find(current, "subjects");
    }
    list->get_array().push_back(subject);
    changed = true;
  }
  return changed;
}

bool add_missing_rules(json::Value& current, const json::Value& wanted) {
  if (json::find(wanted, "aggregationRule") != nullptr) {
    // Its rules are gathered; only the way of gathering is ours.
    if (json::find(current, "aggregationRule") != nullptr) return false;
    json::set(current, {"aggregationRule"}, *json::find(wanted, "aggregationRule"));
    return true;
  }
  const RuleIndex held(PolicyRule::list_from_json(json::find(current, "rules")));
  const RuleIndex* roles[] = {&held};
  bool changed = false;
  for (const auto& rule : json::get_array(wanted, {"rules"})) {
    if (coverage_of(roles, {PolicyRule::from_json(rule)}).is_whole) continue;
    auto* list = json::find(current, "rules");
    if (list == nullptr || !list->is_array()) {
      json::set(current, {"rules"}, json::Array{});
      list = json::find(current, "rules");
    }
    list->get_array().push_back(rule);
    changed = true;
  }
  return changed;
}

bool add_missing_labels(json::Value& current, const json::Value& wanted) {
  bool changed = false;
  for (const auto& [key, value] : json::get_object(wanted, {"metadata", "labels"})) {
    if (json::find(current, {"metadata", "labels", key}) != nullptr) continue;
    json::set(current, {"metadata", "labels", key}, value);
    changed = true;
  }
  return changed;
}

Proposal proposal_at(Revision expected, const model::KindInfo& kind, const json::Value& document) {
  auto proposal = proposal_of(kind, document);
  proposal.expected = expected;
  return proposal;
}

json::Value newborn(json::Value document, TimePoint now) {
  json::set(document, {"metadata", "uid"}, json::Value(security::random_uuid()));
  json::set(document, {"metadata", "creationTimestamp"}, json::Value(format_rfc3339(now)));
  return document;
}

Result<void> reconcile_one(ObjectCache& cache, const json::Value& wanted, TimePoint now) {
  const auto& kind = *model::find_kind("rbac.authorization.k8s.io", "v1", json::get_string(wanted, {"kind"}));
  const auto key = object_key(kind, json::get_string(wanted, {"metadata", "namespace"}), json::get_string(wanted, {"metadata", "name"}));
  // Somebody else may write at the same time; then look again.
  for (int attempt = 0; attempt < 5; ++attempt) {
    auto current = cache.get(key);
    ProposeResult written;
    if (current == nullptr) {
      written = propose_and_wait(cache, proposal_at(0, kind, newborn(wanted, now)));
    } else {
      auto document = json::parse(current->text().here());
      if (!document) return fail(ErrorCode::kCorrupt, fmt::format("{}: {}", current->key, document.error().message));
      if (json::get_string(*document, {"metadata", "annotations", kAutoUpdate}) == "false") return {};
      const bool is_binding = json::find(wanted, "roleRef") != nullptr;
      // A binding to another role has been made by somebody who meant it: the reference cannot be changed, so it stays.
      if (is_binding && !json::equal(*json::find(wanted, "roleRef"), json::get_object(*document, {"roleRef"}))) return {};
      bool changed = add_missing_labels(*document, wanted);
      changed = (is_binding ? add_missing_subjects(*document, wanted) : add_missing_rules(*document, wanted)) || changed;
      if (!changed) return {};
      written = propose_and_wait(cache, proposal_at(current->revision, kind, *document));
    }
    if (written) return {};
    if (is_of_storage(written.error())) return fail(ErrorCode::kUnavailable, "the default roles cannot be written: the store failed");
  }
  return fail(ErrorCode::kConflict, "the default roles cannot be written: others keep changing them");
}

/// What each ClusterRole says of itself, as far as aggregation needs it.
struct RoleFacts {
  ObjectPtr object;
  std::vector<model::Selector> selectors;
  bool gathers = false;
};

}  // namespace

Result<void> reconcile_default_roles(ObjectCache& cache, const Clock& clock, model::Features features) {
  for (const auto& wanted : default_rbac_objects(features)) {
    if (auto ok = reconcile_one(cache, wanted, clock.now()); !ok) return ok;
  }
  return {};
}

/// Runs in the cache's deliveries, which come one at a time.
class Aggregator final : public WatchSink {
 public:
  explicit Aggregator(ObjectCache& cache) : cache_(cache) {}

  bool deliver(const WatchEvent& event) override {
    if (event.type == WatchEventType::kBookmark) {
      synced_ = true;
    } else if (event.type == WatchEventType::kDeleted) {
      roles_.erase(std::string(event.object->meta.name));
    } else if (event.object != nullptr) {
      roles_[std::string(event.object->meta.name)] = read(event.object);
    }
    if (synced_) gather_all();
    return true;
  }

 private:
  static RoleFacts read(const ObjectPtr& object) {
    RoleFacts facts{object, {}, false};
    auto document = json::parse(object->text().here());
    if (!document) return facts;
    facts.gathers = json::find(*document, "aggregationRule") != nullptr;
    for (const auto& selector : json::get_array(*document, {"aggregationRule", "clusterRoleSelectors"})) {
      if (auto compiled = model::Selector::from_label_selector(&selector)) facts.selectors.push_back(std::move(*compiled));
    }
    return facts;
  }

  void gather_all() {
    for (auto& [name, facts] : roles_) {
      if (facts.gathers) gather(name, facts);
    }
  }

  void gather(const std::string& name, const RoleFacts& facts) {
    json::Array rules;
    for (const auto& [other_name, other] : roles_) {
      bool selected = std::any_of(facts.selectors.begin(), facts.selectors.end(),
                                  [&](const auto& s) { return s.matches(other.object->meta.labels()); });
      if (other_name == name || !selected) continue;
      auto document = json::parse(other.object->text().here());
      if (!document) continue;
      for (const auto& rule : json::get_array(*document, {"rules"})) {
        if (std::none_of(rules.begin(), rules.end(), [&](const auto& known) { return json::equal(known, rule); })) rules.push_back(rule);
      }
    }
    auto document = json::parse(facts.object->text().here());
    if (!document) return;
    const auto* present = json::find(*document, "rules");
    if (present != nullptr && json::equal(*present, rules)) return;
    json::set(*document, {"rules"}, std::move(rules));
    // Should somebody else be faster, their write comes here and starts this anew.
    const auto& kind = *model::find_resource("rbac.authorization.k8s.io", "clusterroles");
    cache_.propose(proposal_at(facts.object->revision, kind, *document), [](const ProposeResult&) {});
  }

  ObjectCache& cache_;
  std::map<std::string, RoleFacts> roles_;
  bool synced_ = false;
};

std::unique_ptr<Watch> start_aggregation(ObjectCache& cache) {
  WatchFilter filter{.prefix = make_prefix("rbac.authorization.k8s.io", "clusterroles")};
  return cache.watch(std::move(filter), 0, true, std::make_shared<Aggregator>(cache));
}

}  // namespace berth::apiserver::auth
