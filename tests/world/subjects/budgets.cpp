// Disruption budgets, and drainers who evict through different servers at once. What a budget allows is spent once: each booking takes one
// of what was allowed, each pod that goes by an eviction was booked before, and a booking stands until its pod goes or its time is over.
#include <set>

#include "tests/world/subject.h"

namespace berth::world {
namespace {

constexpr const char* kNs = "budgets";
constexpr Duration kBookingLasts = std::chrono::minutes(2);

class BudgetSubject final : public Subject {
 public:
  using Subject::Subject;

  void set_up() override {
    for (int i = 0; i < 3; ++i) hands_.push_back(std::make_unique<Hand>(world_, fmt::format("drainer-{}", i)));
    hands_[0]->make(gvr::kNamespaces, "", make_namespace(kNs));
    make_kept("least", 4, R"("minAvailable":2)");
    make_kept("most", 3, R"("maxUnavailable":1)");
  }

  void act(std::uint64_t which, double) override {
    const auto pods = chronicle_.names("pods", kNs);
    if (pods.empty()) return;
    for (std::size_t i = 0; i < hands_.size(); ++i) {
      const std::string& name = pods[(which + i) % pods.size()];
      json::Value body = document(R"({"apiVersion":"policy/v1","kind":"Eviction"})");
      json::set(body, {"metadata", "name"}, json::Value(name));
      hands_[i]->client.call({.verb = "create",
                              .gvr = gvr::kPods,
                              .ns = kNs,
                              .name = name,
                              .subresource = "eviction",
                              .body = json::serialize(body),
                              .comes_again = false},
                             [](const auto&) {});
    }
  }

  void see(const Seen& seen) override {
    if (seen.ns != kNs) return;
    if (seen.resource == "poddisruptionbudgets") see_budget(seen);
    if (seen.resource == "pods") see_pod(seen);
  }

  void judge_rest() override {
    for (const auto& [name, allowed] : std::map<std::string, int>{{"least", 2}, {"most", 1}}) {
      const json::Value& budget = chronicle_.find("poddisruptionbudgets", kNs, name);
      if (json::get_int(budget, {"status", "disruptionsAllowed"}) != allowed ||
          !json::get_object(budget, {"status", "disruptedPods"}).empty())
        find(fmt::format("budget {} at rest: {}", name, json::serialize(*json::find(budget, "status"))));
    }
  }

 private:
  void make_kept(const std::string& name, int replicas, const std::string& budget) {
    json::Value deployment =
        document(fmt::format(R"({{"apiVersion":"apps/v1","kind":"Deployment","metadata":{{"name":"{0}"}},"spec":{{"replicas":{1},)"
                             R"("selector":{{"matchLabels":{{"app":"{0}"}}}},"template":{{"metadata":{{"labels":{{"app":"{0}"}}}}}}}}}})",
                             name, replicas));
    json::set(deployment, {"spec", "template", "spec"}, pod_spec());
    hands_[0]->make(gvr::kDeployments, kNs, std::move(deployment));
    hands_[0]->make(gvr::kBudgets, kNs,
                    document(fmt::format(R"({{"apiVersion":"policy/v1","kind":"PodDisruptionBudget","metadata":{{"name":"{0}"}},)"
                                         R"("spec":{{{1},"selector":{{"matchLabels":{{"app":"{0}"}}}}}}}})",
                                         name, budget)));
  }

  void see_budget(const Seen& seen) {
    if (seen.before.is_null() || seen.now.is_null()) return;
    const auto& before = json::get_object(seen.before, {"status", "disruptedPods"});
    const auto& now = json::get_object(seen.now, {"status", "disruptedPods"});
    const auto had = json::get_int(seen.before, {"status", "disruptionsAllowed"});
    const auto has = json::get_int(seen.now, {"status", "disruptionsAllowed"});
    int booked = 0;
    for (const auto& [pod, since] : now) {
      if (before.contains(pod)) continue;
      ++booked;
      booked_.insert(std::string(Seen::uid(chronicle_.find("pods", kNs, std::string_view(pod)))));
    }
    if (booked > 0 && (booked != 1 || had < 1 || has != had - 1))
      find(fmt::format("{}: {} booked, allowed were {} and are {}", seen.words(), booked, had, has));
    for (const auto& [name, since] : before) {
      const json::Value& pod = chronicle_.find("pods", kNs, std::string_view(name));
      const auto from = parse_rfc3339(json::as_view(since));
      if (!now.contains(name) && !pod.is_null() && !is_leaving(pod) && from && seen.at < *from + kBookingLasts - 2 * kMostSkew)
        find(fmt::format("{}: forgets {}, which has not gone", seen.words(), std::string_view(name)));
    }
  }

  void see_pod(const Seen& seen) {
    if (seen.before.is_null() || !is_active(seen.before)) return;
    if (!seen.now.is_null() && !seen.is_new() && !is_leaving(seen.now)) return;
    // Somebody told it to go. Unready ones go as they like; of the others those that nobody but an eviction ends.
    if (!is_ready(seen.before) || json::get_string(seen.before, {"status", "phase"}) != "Running") return;
    const json::Value* mark = condition_of(seen.before, "DisruptionTarget");
    if (mark != nullptr && json::get_string(*mark, {"reason"}) != "EvictionByEvictionAPI") return;
    if (!booked_.contains(Seen::uid(seen.before)) && !is_surplus(seen.before))
      find(fmt::format("{}: was told to go, and no budget knows{}", seen.words(), mark == nullptr ? " (no mark)" : ""));
  }

  /// Of more than are wanted, as a controller makes who has not seen all that there are, one goes.
  bool is_surplus(const json::Value& gone) const {
    std::int64_t others = 0, wanted = 0;
    chronicle_.for_each("pods", kNs, [&](const std::string&, const json::Value& pod) {
      others += controller_of(pod) == controller_of(gone) && is_active(pod) && Seen::uid(pod) != Seen::uid(gone);
    });
    chronicle_.for_each("replicasets", kNs, [&](const std::string&, const json::Value& set) {
      if (Seen::uid(set) == controller_of(gone)) wanted = json::get_int(set, {"spec", "replicas"});
    });
    return others >= wanted;
  }

  std::vector<std::unique_ptr<Hand>> hands_;
  std::set<std::string, std::less<>> booked_;  ///< Pods' uids.
};

}  // namespace

std::unique_ptr<Subject> make_budget_subject(World& world, Chronicle& chronicle) {
  return std::make_unique<BudgetSubject>(world, chronicle);
}

}  // namespace berth::world
