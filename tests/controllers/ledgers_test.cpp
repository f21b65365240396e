// What quotas and budgets count by differences equals a recount, whatever happened in whatever order; so does every index over labels.
#include <gtest/gtest.h>

#include <random>

#include "controllers/budget_ledger.h"
#include "controllers/daemonset_ledger.h"
#include "controllers/quota_ledger.h"

namespace berth::controllers {
namespace {

/// Random objects of two namespaces, changed, deleted and made again under their old names.
class History {
 public:
  explicit History(std::uint64_t seed) : random_(seed) {}

  /// One change; the cache and the ledgers have it.
  void step() {
    const int what = below(20);
    if (what == 0) return change(kinds().resource_quota, quota());
    if (what == 1) return change(kinds().pod_disruption_budget, budget());
    if (what == 2) return change(kinds().service, service());
    if (what == 3) return change(kinds().config_map, object("c", {}));
    change(kinds().pod, pod());
  }

  void check() const {
    cache.for_each(kinds().resource_quota, [&](const ObjectRef& one) {
      const auto* used = quotas.used(one->ns(), one->name());
      ASSERT_NE(used, nullptr);
      EXPECT_EQ(*used, QuotaLedger::recount(one, cache)) << one->text().here();
    });
    cache.for_each(kinds().pod_disruption_budget, [&](const ObjectRef& one) {
      EXPECT_EQ(budgets.counts(one->key()), BudgetLedger::recount(one, cache)) << one->text().here();
      const model::Selector selector = selector_of(kinds().pod_disruption_budget, one->document());
      std::vector<std::string> found, wanted;
      cache.for_each_matching(one->ns(), selector, [&](const PodRef& pod) { found.push_back(pod->name()); });
      for (const PodRef& pod : cache.pods_in(one->ns()))
        if (selector.matches(pod->labels())) wanted.push_back(pod->name());
      EXPECT_EQ(found, wanted) << selector.to_string();
      for (const PodRef& pod : cache.pods_in(one->ns())) check_owner(*one, selector, *pod);
    });
    cache.for_each_pod([&](const PodRef& pod) { check_selecting(*pod); });
    check_places();
  }

  Cache cache;
  QuotaLedger quotas;
  BudgetLedger budgets;
  std::set<std::string> moved;

 private:
  int below(int bound) { return static_cast<int>(random_() % static_cast<unsigned>(bound)); }
  template <typename... T>
  std::string one_of(T... choices) {
    const std::array<std::string, sizeof...(T)> all{std::string(choices)...};
    return all[random_() % all.size()];
  }

  void check_owner(const Object& budget, const model::Selector& selector, const PodInfo& pod) const {
    if (pod.object->controller_kind().empty() || !selector.matches(pod.labels())) return;
    const auto keys = budgets.budgets_of(pod.ns(), pod.object->controller_kind(), pod.object->controller_name());
    EXPECT_TRUE(std::ranges::find(keys, budget.key()) != keys.end()) << pod.name();
  }
  /// Each pod stands on its node and with its owner, as it is now, and nowhere else.
  void check_places() const {
    std::map<std::string, std::vector<PodRef>> on, controlled, orphans;
    cache.for_each_pod([&](const PodRef& pod) {
      on[pod->node].push_back(pod);
      const std::string& owner = pod->object->controller_uid();
      (owner.empty() ? orphans[pod->ns()] : controlled[owner]).push_back(pod);
      EXPECT_EQ(cache.get(kinds().pod, pod->ns(), pod->name()), pod->object);
    });
    const auto listed = [](const PodRange& pods) { return std::vector<PodRef>(pods.begin(), pods.end()); };
    for (const char* node : {"", "n1", "n2"}) EXPECT_EQ(listed(cache.pods_on(node)), on[node]) << node;
    for (const char* owner : {"r", "s"}) EXPECT_EQ(listed(cache.pods_controlled(owner)), controlled[owner]) << owner;
    for (const char* ns : {"a", "b"}) EXPECT_EQ(listed(cache.orphan_pods(ns)), orphans[ns]) << ns;
  }
  void check_selecting(const PodInfo& pod) const {
    std::vector<std::string> found, wanted;
    for (const ObjectRef& one : cache.selecting(kinds().service, pod.ns(), pod.labels())) found.push_back(one->name());
    cache.for_each_in(kinds().service, pod.ns(), [&](const ObjectRef& one) {
      if (selector_of(kinds().service, one->document()).matches(pod.labels())) wanted.push_back(one->name());
    });
    EXPECT_EQ(found, wanted);
  }

  json::Object object(const std::string& prefix, json::Object spec) {
    return {{"metadata", json::Object{{"name", prefix + std::to_string(below(prefix == "p" ? 40 : 4))}, {"namespace", one_of("a", "b")}}},
            {"spec", std::move(spec)}};
  }
  json::Object labels() {
    json::Object out;
    for (const char* key : {"app", "tier"})
      if (below(3) > 0) out[key] = one_of("x", "y", "z");
    return out;
  }
  json::Object pod() {
    json::Object spec{{"containers", json::Array{json::Object{{"name", "c"}}}}};
    if (below(2) == 0)
      spec["containers"].get_array()[0].get_object()["resources"] =
          json::Object{{"requests", json::Object{{"cpu", one_of("100m", "2")}, {"memory", one_of("1Gi", "300M")}}}};
    if (below(4) == 0) spec["priorityClassName"] = "high";
    if (below(2) == 0) spec["nodeName"] = one_of("n1", "n2");
    if (below(4) == 0) spec["activeDeadlineSeconds"] = 5;
    json::Object out = object("p", std::move(spec));
    json::Object& metadata = out["metadata"].get_object();
    metadata["labels"] = labels();
    if (below(8) == 0) metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z";
    if (below(3) > 0) {
      const std::string name = one_of("r", "s");
      metadata["ownerReferences"] = json::Array{json::Object{
          {"apiVersion", "apps/v1"}, {"kind", one_of("ReplicaSet", "DaemonSet")}, {"name", name}, {"uid", name}, {"controller", true}}};
    }
    out["status"] = json::Object{{"phase", one_of("Pending", "Running", "Failed")},
                                 {"conditions", json::Array{json::Object{{"type", "Ready"}, {"status", one_of("True", "False")}}}}};
    return out;
  }
  json::Object quota() {
    json::Object hard;
    for (const char* resource :
         {"pods", "count/pods", "requests.cpu", "requests.memory", "configmaps", "services.nodeports", "resourcequotas"})
      if (below(2) == 0) hard[resource] = "10";
    json::Object spec{{"hard", std::move(hard)}};
    if (below(3) == 0) spec["scopes"] = json::Array{one_of("BestEffort", "NotTerminating")};
    if (below(4) == 0)
      spec["scopeSelector"] =
          json::Object{{"matchExpressions",
                        json::Array{json::Object{{"scopeName", "PriorityClass"}, {"operator", "In"}, {"values", json::Array{"high"}}}}}};
    return object("q", std::move(spec));
  }
  json::Object budget() {
    json::Object selector;
    if (below(3) > 0) selector["matchLabels"] = labels();
    if (below(3) == 0) {
      json::Object expression{{"key", one_of("app", "tier")}, {"operator", one_of("In", "NotIn")}, {"values", json::Array{"x", "y"}}};
      selector["matchExpressions"] = json::Array{std::move(expression)};
    }
    return object("b", {{"minAvailable", 1}, {"selector", std::move(selector)}});
  }
  json::Object service() {
    json::Object out = object("s", {{"type", one_of("ClusterIP", "NodePort")}, {"ports", json::Array{json::Object{{"port", 80}}}}});
    if (below(3) > 0) out["spec"].get_object()["selector"] = labels();
    return out;
  }

  void change(Kind kind, json::Object document) {
    json::Object& metadata = document["metadata"].get_object();
    metadata["resourceVersion"] = std::to_string(++revision_);
    metadata["uid"] = fmt::format("uid-{}", below(3));  // Sometimes another object of the same name.
    const Event event = cache.apply(kind, std::make_shared<Object>(json::Value(std::move(document))), below(5) == 0);
    if (event.before == event.after) return;
    const auto& counted = quota_counted_kinds();
    if (std::ranges::find(counted, kind) != counted.end()) quotas.observe(event, cache, [&](const std::string& key) { moved.insert(key); });
    if (kind == kinds().pod_disruption_budget) budgets.take_budget(event, cache);
    if (kind == kinds().pod) (void)budgets.take_pod(event, cache, [&](const std::string& key) { moved.insert(key); });
  }

  std::mt19937_64 random_;
  std::int64_t revision_ = 0;
};

class Ledgers : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Seeds, Ledgers, ::testing::Range(1, 21));

TEST_P(Ledgers, EqualARecountAfterEveryChange) {
  History history(static_cast<std::uint64_t>(GetParam()));
  for (int i = 0; i < 400 && !HasFailure(); ++i) {
    history.step();
    history.check();
  }
}

/// A DaemonSet's pods and nodes, changed at random; what the ledger says beside one made anew from what there is.
class DaemonHistory {
 public:
  explicit DaemonHistory(std::uint64_t seed) : random_(seed) {
    const auto parsed = json::parse(R"({"spec":{"tolerations":[{"key":"soft","operator":"Exists","effect":"NoExecute"}],
"nodeSelector":{"pool":"a"},"containers":[{"name":"c"}]}})");
    view_ = model::PodView::parse(*parsed);
    wish_ = {.hash = "new", .template_generation = "", .min_ready = std::chrono::seconds(30), .max_surge = below(2), .max_unavailable = 1};
    ledger_ = fresh();
  }

  void step() {
    now_ += std::chrono::seconds(below(10));
    if (below(3) == 0) return change_node();
    const std::string name = fmt::format("p{}", below(12));
    const PodRef before = pods_.contains(name) ? pods_.at(name) : nullptr;
    const PodRef after = below(4) == 0 ? nullptr : pod(name);
    if (!before && !after) return;
    if (after)
      pods_[name] = after;
    else
      pods_.erase(name);
    ledger_.take_pod(before, after);
  }

  void check() {
    daemon::Ledger other = fresh();
    ledger_.refresh(wish_, now_);
    other.refresh(wish_, now_);
    EXPECT_EQ(ledger_.counts(), other.counts());
    EXPECT_EQ(ledger_.is_outdated(), other.is_outdated());
    EXPECT_EQ(ledger_.hashes(), other.hashes());
    EXPECT_EQ(ledger_.next_due(), other.next_due());
    EXPECT_EQ(other.counts(), daemon::count(other.all_nodes(), wish_, now_));
    const daemon::Steps some = steps(ledger_.open_nodes()), all = steps(other.all_nodes());
    EXPECT_EQ(text(some), text(all)) << "nothing is to be done on nodes that are not open";
    EXPECT_EQ(text(daemon::roll(ledger_.all_nodes(), wish_, now_)), text(daemon::roll(other.all_nodes(), wish_, now_)));
    std::set<std::string> open(some.create_on.begin(), some.create_on.end());
    for (const PodRef& one : some.remove) open.insert(daemon::target_node(*one));
    ledger_.settle(std::move(open));
  }

 private:
  int below(int bound) { return static_cast<int>(random_() % static_cast<unsigned>(bound)); }
  daemon::Steps steps(const std::vector<daemon::NodePods>& nodes) const {
    return daemon::keep_nodes(nodes, wish_, now_, [](const std::string&) { return true; });
  }
  static std::multiset<std::string> text(const daemon::Steps& steps) {
    std::multiset<std::string> out(steps.create_on.begin(), steps.create_on.end());
    for (const PodRef& pod : steps.remove) out.insert("-" + pod->name());
    return out;
  }
  daemon::Ledger fresh() const {
    std::vector<PodRef> pods;
    for (const auto& [name, pod] : pods_) pods.push_back(pod);
    daemon::Ledger ledger;
    ledger.build({"set", "", "new", ""}, model::Selector::everything(), pods, nodes_, view_);
    return ledger;
  }
  void change_node() {
    const std::string name = fmt::format("n{}", below(5));
    if (below(4) == 0) {
      nodes_.erase(name);
      return ledger_.take_node(name, nullptr);
    }
    daemon::NodeFacts facts;
    const json::Value labels = json::Object{{"pool", below(4) == 0 ? "b" : "a"}};
    facts.labels = model::Labels::from_json(&labels);
    if (below(2) == 0) facts.taints.push_back({below(2) == 0 ? "soft" : "hard", "", "NoExecute"});
    nodes_[name] = facts;
    ledger_.take_node(name, &facts);
  }
  PodRef pod(const std::string& name) {
    auto one = std::make_shared<PodInfo>();
    json::Value document = json::Object{
        {"metadata",
         json::Object{{"name", name},
                      {"namespace", "a"},
                      {"uid", name},
                      {"resourceVersion", std::to_string(++revision_)},
                      {"labels", json::Object{{"controller-revision-hash", below(2) == 0 ? "new" : "old"}}},
                      {"ownerReferences",
                       json::Array{json::Object{
                           {"apiVersion", "apps/v1"}, {"kind", "DaemonSet"}, {"name", "d"}, {"uid", "set"}, {"controller", true}}}}}},
        {"spec", json::Object{{"nodeName", fmt::format("n{}", below(5))}}},
        {"status", json::Object{{"phase", below(6) == 0 ? "Failed" : "Running"},
                                {"conditions", json::Array{json::Object{{"type", "Ready"},
                                                                        {"status", below(3) == 0 ? "False" : "True"},
                                                                        {"lastTransitionTime", format_rfc3339(now_)}}}}}}};
    if (below(6) == 0) json::set(document, {"metadata", "deletionTimestamp"}, json::Value(format_rfc3339(now_)));
    return make_pod_info(std::make_shared<Object>(document));
  }

  std::mt19937_64 random_;
  std::int64_t revision_ = 0;
  TimePoint now_ = *parse_rfc3339("2026-01-05T10:00:00Z");
  model::PodView view_;
  daemon::Wish wish_;
  daemon::NodeFactsMap nodes_;
  std::map<std::string, PodRef> pods_;
  daemon::Ledger ledger_;
};

TEST_P(Ledgers, OfADaemonSetEqualsOneMadeAnew) {
  DaemonHistory history(static_cast<std::uint64_t>(GetParam()));
  for (int i = 0; i < 1500 && !HasFailure(); ++i) {
    history.step();
    history.check();
  }
}

TEST(LabelIndex, ASelectorWithoutValuesIsFoundAndOneThatMatchesNothingIsNot) {
  SelectorIndex index;
  index.set("a", "all", model::Selector::everything());
  index.set("a", "none", model::Selector::nothing());
  index.set("a", "either", *model::Selector::parse("app in (x,y),!gone"));
  const model::Labels labels(std::vector<std::pair<std::string, std::string>>{{"app", "y"}});
  EXPECT_EQ(index.matching("a", labels), (std::vector<std::string>{"all", "either"}));
  EXPECT_TRUE(index.matching("b", labels).empty());
  index.set("a", "either", *model::Selector::parse("app=z"));
  index.erase("a", "all");
  EXPECT_TRUE(index.matching("a", labels).empty());
}

}  // namespace
}  // namespace berth::controllers
