#include "simulator/invariants.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/clock.h"
#include "model/selector.h"

namespace berth::simulator {
namespace {

constexpr std::size_t kMostTold = 5;
constexpr std::string_view kNodesPath = "/api/v1/nodes/";
/// Who evicts.
constexpr std::array<const char*, 5> kEvictors = {"user", "descheduler", "autoscaler", "pools", "controllers"};

struct Owner {
  const char *group, *plural, *kind;
};
/// Kinds that own others. What has an owner of another kind is nobody's orphan here.
constexpr std::array<Owner, 8> kOwners = {{{"", "nodes", "Node"},
                                           {"", "replicationcontrollers", "ReplicationController"},
                                           {"apps", "deployments", "Deployment"},
                                           {"apps", "replicasets", "ReplicaSet"},
                                           {"apps", "statefulsets", "StatefulSet"},
                                           {"apps", "daemonsets", "DaemonSet"},
                                           {"batch", "jobs", "Job"},
                                           {"batch", "cronjobs", "CronJob"}}};

std::string text_of(const json::Value& object, std::initializer_list<std::string_view> path) {
  return std::string(json::get_string(object, path));
}

std::vector<json::Value> all(apiserver::ObjectCache& cache, const char* group, const char* plural) {
  apiserver::WatchFilter filter;
  filter.prefix = apiserver::make_prefix(group, plural);
  std::vector<json::Value> out;
  for (const apiserver::ObjectPtr& object : cache.list(filter, "", 0).items)
    if (auto document = json::parse(object->text().here())) out.push_back(std::move(*document));
  return out;
}

bool is_ready(const json::Value& pod) {
  return std::ranges::any_of(json::get_array(pod, {"status", "conditions"}), [](const json::Value& condition) {
    return text_of(condition, {"type"}) == "Ready" && text_of(condition, {"status"}) == "True";
  });
}

/// The node controller gives a node up: its pods are evicted.
bool gives_up(const json::Value& node) {
  return std::ranges::any_of(json::get_array(node, {"spec", "taints"}), [](const json::Value& taint) {
    const std::string key = text_of(taint, {"key"});
    return text_of(taint, {"effect"}) == "NoExecute" && (key == "node.kubernetes.io/not-ready" || key == "node.kubernetes.io/unreachable");
  });
}

/// What a budget asks for: its own number, or what its controller made of a share.
std::int64_t wanted_by(const json::Value& budget) {
  const json::Value* least = json::find(budget, {"spec", "minAvailable"});
  return least != nullptr && least->is_number() ? json::get_int(budget, {"spec", "minAvailable"})
                                                : json::get_int(budget, {"status", "desiredHealthy"});
}

/// Counts by name, with the first few in words.
class Findings {
 public:
  void add(const char* name, std::int64_t count, std::string words) {
    counts_[name] += count;
    if (count > 0 && told_.size() < kMostTold) told_.emplace_back(std::move(words));
  }
  json::Value to_json() const {
    json::Object out;
    std::int64_t total = 0;
    for (const auto& [name, count] : counts_) {
      out[name] = count;
      total += count;
    }
    out["total"] = total;
    out["first"] = told_;
    return out;
  }

 private:
  std::map<std::string, std::int64_t> counts_ = {{"budgets", 0},        {"counts", 0},  {"leaving", 0},
                                                 {"onMissingNodes", 0}, {"orphans", 0}, {"unready", 0}};
  json::Array told_;
};

void look_at_owners(const json::Value& object, const std::string& what, const std::set<std::string>& uids, Findings& out) {
  if (json::find(object, {"metadata", "deletionTimestamp"}) != nullptr) out.add("leaving", 1, what + " is still being deleted");
  for (const json::Value& owner : json::get_array(object, {"metadata", "ownerReferences"})) {
    const std::string kind = text_of(owner, {"kind"});
    if (std::ranges::find(kOwners, kind, &Owner::kind) != kOwners.end() && !uids.contains(text_of(owner, {"uid"})))
      out.add("orphans", 1, fmt::format("{}: its {} {} is gone", what, kind, text_of(owner, {"name"})));
  }
}

void look_at_pod(const json::Value& pod, const std::string& what, const std::set<std::string>& nodes, Findings& out) {
  const std::string node = text_of(pod, {"spec", "nodeName"});
  if (!node.empty() && !nodes.contains(node)) out.add("onMissingNodes", 1, fmt::format("{} is on {}, which is not there", what, node));
  const bool is_running = text_of(pod, {"status", "phase"}) == "Running";
  if (is_ready(pod) != is_running)
    out.add("unready", 1, fmt::format("{} is {}", what, is_running ? "running and not ready" : "ready and not running"));
}

/// A workload whose controller has nothing left to do says so in its status.
void look_at_status(const json::Value& object, const std::string& kind, const std::string& what, Findings& out) {
  const auto expect = [&](const char* field, std::int64_t wanted) {
    const std::int64_t count = json::get_int(object, {"status", field});
    if (count != wanted) out.add("counts", 1, fmt::format("{}: {} is {} instead of {}", what, field, count, wanted));
  };
  if (kind == "DaemonSet") {
    const std::int64_t wanted = json::get_int(object, {"status", "desiredNumberScheduled"});
    for (const char* field : {"numberReady", "updatedNumberScheduled"}) expect(field, wanted);
    expect("numberMisscheduled", 0);
  } else if (kind == "Deployment" || kind == "ReplicaSet" || kind == "StatefulSet" || kind == "ReplicationController") {
    const std::int64_t wanted = json::get_int(object, {"spec", "replicas"}, 1);
    for (const char* field : {"replicas", "readyReplicas"}) expect(field, wanted);
    if (kind == "Deployment") expect("updatedReplicas", wanted);
  }
}

}  // namespace

Invariants::Invariants(Cluster& cluster, double eviction_rate)
    : cluster_(cluster),
      least_between_turns_(eviction_rate > 0 ? std::chrono::milliseconds(static_cast<std::int64_t>(1000 / eviction_rate) - 1)
                                             : Duration(0)) {
  cluster_.link("controllers").on_request = [this](const net::HttpRequest& request) { see(request); };
  for (const char* who : kEvictors) cluster_.link(who).on_eviction = [this](const std::string& path) { return see_eviction(path); };
}
Invariants::~Invariants() {
  cluster_.link("controllers").on_request = nullptr;
  for (const char* who : kEvictors) cluster_.link(who).on_eviction = nullptr;
}

/// One that takes a healthy pod must leave as many healthy ones as each budget that selects it wants. Whether an unhealthy one may go is
/// the budget's policy.
std::function<void()> Invariants::see_eviction(const std::string& path) {
  apiserver::ObjectCache* cache = cluster_.cache();
  // /api/v1/namespaces/NS/pods/NAME/eviction
  const std::size_t ns_at = path.find("/namespaces/"), pods_at = path.find("/pods/", ns_at), end = path.rfind('/');
  if (cache == nullptr || ns_at == std::string::npos || pods_at == std::string::npos || end < pods_at + 6) return nullptr;
  const std::string ns = path.substr(ns_at + 12, pods_at - ns_at - 12), name = path.substr(pods_at + 6, end - pods_at - 6);
  const auto is_healthy = [](const apiserver::ObjectPtr& object) {
    const auto pod = json::parse(object->text().here());
    return pod && is_ready(*pod) && json::find(*pod, {"metadata", "deletionTimestamp"}) == nullptr;
  };
  apiserver::WatchFilter pods;
  pods.prefix = apiserver::make_prefix("", "pods", ns);
  const auto victim = cache->get(apiserver::make_key("", "pods", ns, name));
  if (victim == nullptr || !is_healthy(victim)) return nullptr;
  std::vector<std::string> broken;
  for (const json::Value& budget : all(*cache, "policy", "poddisruptionbudgets")) {
    const auto selector = model::Selector::from_label_selector(json::find(budget, {"spec", "selector"}));
    if (text_of(budget, {"metadata", "namespace"}) != ns || !selector || !selector->matches(victim->meta.labels())) continue;
    pods.labels = *selector;
    const std::int64_t left = std::ranges::count_if(cache->list(pods, "", 0).items, is_healthy) - 1;
    if (left < wanted_by(budget))
      broken.push_back(fmt::format("budget {}/{} wants {} healthy pods, and the eviction of {} at {} left {}", ns,
                                   text_of(budget, {"metadata", "name"}), wanted_by(budget), name, format_rfc3339(cluster_.loop().now()),
                                   left));
  }
  if (broken.empty()) return nullptr;
  return [this, broken = std::move(broken)] {
    if (broken_budgets_ == 0) first_broken_budget_ = broken.front();
    broken_budgets_ += static_cast<std::int64_t>(broken.size());
  };
}

/// Turns are patches that give a node up which is not given up yet, and that the server will take: a patch on an outdated revision is
/// refused and made again.
void Invariants::see(const net::HttpRequest& request) {
  if (request.method != "PATCH" || !request.path.starts_with(kNodesPath) || request.body.find("NoExecute") == std::string::npos) return;
  apiserver::ObjectCache* cache = cluster_.cache();
  const auto body = json::parse(request.body);
  if (cache == nullptr || !body) return;
  apiserver::WatchFilter filter;
  filter.prefix = apiserver::make_prefix("", "nodes");
  filter.name = request.path.substr(kNodesPath.size());
  const auto found = cache->list(filter, "", 0).items;
  const auto node = found.empty() ? body : json::parse(found.front()->text().here());
  if (found.empty() || !node || !gives_up(*body) || gives_up(*node)) return;
  const std::string revision = text_of(*body, {"metadata", "resourceVersion"});
  if (!revision.empty() && revision != text_of(*node, {"metadata", "resourceVersion"})) return;
  if (std::exchange(starts_seen_, cluster_.controller_starts()) != cluster_.controller_starts()) last_turn_.clear();
  const std::string zone = text_of(*node, {"metadata", "labels", "topology.kubernetes.io/region"}) + "/" +
                           text_of(*node, {"metadata", "labels", "topology.kubernetes.io/zone"});
  const TimePoint now = cluster_.loop().now();
  const auto [last, is_first] = last_turn_.try_emplace(zone, now);
  if (is_first) return;
  if (now - std::exchange(last->second, now) >= least_between_turns_ || hasty_turns_++ > 0) return;
  first_hasty_ = fmt::format("zone {}: {} is given up at {}, sooner after the one before than its rate allows", zone, *filter.name,
                             format_rfc3339(now));
}

json::Value Invariants::now() const {
  Findings out;
  out.add("zoneRates", hasty_turns_, first_hasty_);
  out.add("budgets", broken_budgets_, first_broken_budget_);
  apiserver::ObjectCache* cache = cluster_.cache();
  if (cache == nullptr) return out.to_json();
  std::set<std::string> uids, nodes;
  std::map<std::string, std::vector<json::Value>> objects;
  for (const Owner& owner : kOwners) {
    auto& list = objects[owner.kind] = all(*cache, owner.group, owner.plural);
    for (const json::Value& object : list) uids.insert(text_of(object, {"metadata", "uid"}));
  }
  objects["Pod"] = all(*cache, "", "pods");
  for (const json::Value& node : objects["Node"]) nodes.insert(text_of(node, {"metadata", "name"}));
  for (const auto& [kind, list] : objects)
    for (const json::Value& object : list) {
      const std::string what =
          fmt::format("{} {}/{}", kind, text_of(object, {"metadata", "namespace"}), text_of(object, {"metadata", "name"}));
      look_at_owners(object, what, uids, out);
      if (kind == "Pod") look_at_pod(object, what, nodes, out);
      look_at_status(object, kind, what, out);
    }
  return out.to_json();
}

}  // namespace berth::simulator
