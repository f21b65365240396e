// Default roles that somebody has edited, and roles that gather others: what a restart makes of them, and what is gathered, by plain rules.
#include "apiserver/auth/aggregation.h"
#include "apiserver/auth/default_roles.h"
#include "model/features.h"
#include "tests/apiserver/lives/access.h"

namespace berth::apiserver::auth {
namespace {

std::string plural_of(const json::Value& document) {
  const auto kind = json::get_string(document, {"kind"});
  return kind == "Role" ? "roles" : kind == "ClusterRole" ? "clusterroles" : kind == "RoleBinding" ? "rolebindings" : "clusterrolebindings";
}

class RoleLives : public AccessLives {
 protected:
  [[nodiscard]] ObjectPtr stored(const json::Value& document) const {
    return cache_->get(make_key(kRbac, plural_of(document), json::get_string(document, {"metadata", "namespace"}),
                                json::get_string(document, {"metadata", "name"})));
  }
  /// Without what every write changes.
  static json::Value plain(const ObjectPtr& object) {
    json::Value out = *json::parse(object->text().here());
    json::erase(out, {"metadata", "resourceVersion"});
    return out;
  }
  void write_one(const json::Value& document) { write(kRbac, plural_of(document), document); }

  /// What somebody may have done to a default object.
  json::Value edited(json::Value document) {
    switch (life_.dice.below(7)) {
      case 0:
        json::erase(document, {"metadata", "labels"});
        break;
      case 1:
        json::set(document, {"metadata", "labels"}, json::Object{{"kubernetes.io/bootstrapping", "mine"}, {"own", "x"}});
        break;
      case 2:
        json::set(document, {"metadata", "annotations", "rbac.authorization.kubernetes.io/autoupdate"},
                  json::Value(life_.dice.chance(50) ? "false" : "true"));
        break;
      case 3:
        if (json::find(document, "roleRef") != nullptr) json::set(document, {"roleRef", "name"}, json::Value("another"));
        break;
      default:
        break;
    }
    for (const char* list : {"rules", "subjects"}) {
      json::Value* all = json::find(document, list);
      if (all == nullptr || !all->is_array()) continue;
      if (life_.dice.chance(10)) {
        json::erase(document, {list});
        continue;
      }
      json::Array& members = all->get_array();
      if (!members.empty() && life_.dice.chance(50)) members.erase(members.begin() + life_.dice.below(members.size()));
      if (life_.dice.chance(30))
        members.push_back(
            std::string_view(list) == "rules"
                ? json::Value{{"apiGroups", json::Array{"mine"}}, {"resources", json::Array{"x"}}, {"verbs", json::Array{"get"}}}
                : json::Value{{"kind", "User"}, {"name", "mine"}});
    }
    if (json::find(document, "aggregationRule") != nullptr && life_.dice.chance(40)) json::erase(document, {"aggregationRule"});
    return document;
  }
  /// What a start makes of it.
  static json::Value reconciled(json::Value now, const json::Value& wanted) {
    if (json::get_string(now, {"metadata", "annotations", "rbac.authorization.kubernetes.io/autoupdate"}) == "false") return now;
    const json::Value* role = json::find(wanted, "roleRef");
    if (role != nullptr && !json::equal(*role, *json::find(now, "roleRef"))) return now;
    for (const auto& [key, value] : json::get_object(wanted, {"metadata", "labels"}))
      if (json::find(now, {"metadata", "labels", key}) == nullptr) json::set(now, {"metadata", "labels", key}, value);
    if (const json::Value* gathers = json::find(wanted, "aggregationRule")) {
      if (json::find(now, "aggregationRule") == nullptr) json::set(now, {"aggregationRule"}, *gathers);
      return now;
    }
    const char* list = role != nullptr ? "subjects" : "rules";
    for (const json::Value& one : json::get_array(wanted, {list})) {
      json::Array present = json::get_array(now, {list});
      const bool is_there = role != nullptr ? std::ranges::any_of(present, [&](const auto& other) { return json::equal(other, one); })
                                            : covers_all(PolicyRule::list_from_json(json::find(now, list)), {PolicyRule::from_json(one)});
      if (is_there) continue;
      present.push_back(one);
      json::set(now, {list}, std::move(present));
    }
    return now;
  }

  json::Value some_role(const std::string& name, int floor) {
    json::Value out = json::Object{{"kind", "ClusterRole"}, {"metadata", json::Object{{"name", name}}}};
    json::Object labels{{"floor", std::to_string(floor)}};
    for (const char* label : {"red", "blue"})
      if (life_.dice.chance(50)) labels[label] = life_.one({"1", "2"});
    json::set(out, {"metadata", "labels"}, std::move(labels));
    json::Array rules;
    for (int i = life_.dice.below(3); i > 0; --i)
      rules.push_back(json::Object{{"verbs", json::Array{"get"}}, {"resources", json::Array{life_.one({"x", "y", "z"})}}});
    if (!rules.empty() || life_.dice.chance(50)) json::set(out, {"rules"}, std::move(rules));
    if (floor == 0) return out;
    json::Array selectors;
    for (int i = life_.dice.below(3); i > 0; --i) {
      // Only what stands on a lower floor.
      json::Value below =
          json::Object{{"key", "floor"}, {"operator", "In"}, {"values", floor == 1 ? json::Array{"0"} : json::Array{"0", "1"}}};
      if (life_.dice.chance(10)) below = json::Object{{"key", "floor"}, {"operator", "Nonsense"}};
      selectors.push_back(json::Object{{"matchLabels", json::Object{{life_.one({"red", "blue"}), life_.one({"1", "2"})}}},
                                       {"matchExpressions", json::Array{std::move(below)}}});
    }
    json::set(out, {"aggregationRule", "clusterRoleSelectors"}, std::move(selectors));
    return out;
  }
  void expect_gathered(const std::map<std::string, json::Value>& roles) const {
    std::map<std::string, json::Array> rules;
    // By name the lower floors come first.
    for (const auto& [name, role] : roles) {
      rules[name] = json::get_array(role, {"rules"});
      if (json::find(role, "aggregationRule") == nullptr) continue;
      json::Array gathered;
      for (const auto& [other, its] : roles) {
        const bool is_selected =
            std::ranges::any_of(json::get_array(role, {"aggregationRule", "clusterRoleSelectors"}), [&](const auto& one) {
              const json::Value& floor = json::get_array(one, {"matchExpressions"})[0];
              const auto& floors = json::get_array(floor, {"values"});
              for (const auto& [label, value] : json::get_object(one, {"matchLabels"}))
                if (json::get_string(its, {"metadata", "labels", label}) != json::as_view(value)) return false;
              return std::ranges::any_of(floors, [&](const auto& each) {
                return json::as_view(each) == json::get_string(its, {"metadata", "labels", "floor"});
              });
            });
        if (!is_selected) continue;
        for (const json::Value& rule : rules[other])
          if (std::ranges::none_of(gathered, [&](const auto& known) { return json::equal(known, rule); })) gathered.push_back(rule);
      }
      rules[name] = std::move(gathered);
    }
    for (const auto& [name, role] : roles) {
      const json::Value there = plain(stored(role));
      EXPECT_TRUE(json::equal(json::Value(json::get_array(there, {"rules"})), json::Value(rules[name])))
          << name << " has " << json::serialize(there) << ", wanted " << json::serialize(json::Value(rules[name]));
    }
  }

  Life life_{"", 0};
};

TEST_F(RoleLives, AStartAddsWhatIsMissingAndTakesNothingAway) {
  const auto wanted = default_rbac_objects();
  for (std::uint64_t seed = 1; seed <= 12 && !HasFailure(); ++seed) {
    life_.dice = testing::Dice(seed);
    open();
    std::map<std::string, json::Value> before;
    for (const json::Value& one : wanted) {
      if (life_.dice.chance(20)) continue;
      write_one(life_.dice.chance(60) ? edited(one) : one);
      before[std::string(stored(one)->key)] = plain(stored(one));
    }
    ASSERT_TRUE(reconcile_default_roles(*cache_, clock_, {}));
    for (const json::Value& one : wanted) {
      const ObjectPtr there = stored(one);
      ASSERT_NE(there, nullptr);
      json::Value now = plain(there);
      const auto known = before.find(std::string(there->key));
      if (known == before.end()) {
        EXPECT_FALSE(json::get_string(now, {"metadata", "uid"}).empty());
        EXPECT_EQ(json::get_string(now, {"metadata", "creationTimestamp"}), format_rfc3339(clock_.now()));
        json::erase(now, {"metadata", "uid"});
        json::erase(now, {"metadata", "creationTimestamp"});
      }
      const json::Value expected = known == before.end() ? one : reconciled(known->second, one);
      EXPECT_TRUE(json::equal(now, expected)) << json::serialize(now) << "\nexpected\n" << json::serialize(expected);
    }
    const Revision last = cache_->revision();
    ASSERT_TRUE(reconcile_default_roles(*cache_, clock_, {}));
    EXPECT_EQ(cache_->revision(), last) << "there is nothing more to do";
  }
}

/// Three floors: roles of rules, roles that gather those, and roles that gather both.
TEST_F(RoleLives, WhatIsGatheredIsWhatIsSelected) {
  for (std::uint64_t seed = 1; seed <= 12 && !HasFailure(); ++seed) {
    life_.dice = testing::Dice(seed);
    open();
    std::map<std::string, json::Value> roles;
    std::unique_ptr<Watch> gathering;
    if (life_.dice.chance(50)) gathering = start_aggregation(*cache_);
    for (int i = 0; i < 80 && !HasFailure(); ++i) {
      SCOPED_TRACE(fmt::format("seed {}, step {}", seed, i));
      const int floor = life_.dice.below(3);
      const std::string name = fmt::format("{}{}", "abc"[floor], life_.dice.below(4));
      if (life_.dice.chance(20)) {
        EXPECT_EQ(erase(kRbac, "clusterroles", "", name), roles.erase(name) != 0);
      } else {
        json::Value role = some_role(name, floor);
        write_one(role);
        roles[name] = std::move(role);
      }
      if (gathering == nullptr && life_.dice.chance(15)) gathering = start_aggregation(*cache_);
      if (gathering != nullptr) expect_gathered(roles);
    }
  }
}

}  // namespace
}  // namespace berth::apiserver::auth
