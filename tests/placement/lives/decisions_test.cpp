// Random clusters, and everything that placement says about them, of plugins' verdicts and scores, of victims, of what binding would write,
// and in words: recorded. Where the engine and its plain form agree on what is wrong, this differs.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "placement/explain.h"
#include "placement/trial.h"
#include "tests/placement/random_cluster.h"
#include "tests/support/long_life.h"

namespace berth::placement::testing {
namespace {

using berth::testing::LongLife;

constexpr std::array<const char*, 6> kProfiles = {"1.36", "1.20", "other arguments", "an old policy", "the autoscaler's", "most allocated"};

/// The plugin at Score, with its weight.
void score_by(Profile& profile, const char* plugin, std::int64_t weight) {
  std::erase_if(profile.score, [&](const PluginUse& use) { return use.name == plugin; });
  profile.score.push_back({plugin, weight});
}

Profile other_arguments() {
  Profile out = default_profile(Era::k136);
  out.args.fit.strategy = ScoringStrategyType::kRequestedToCapacityRatio;
  out.args.fit.shape = {{0, 2}, {40, 10}, {80, 0}};
  out.args.fit.resources = {{"cpu", 3}, {"memory", 1}, {"example.com/gpu", 5}};
  out.args.fit.ignored_resources = {"example.com/nothing"};
  out.args.balanced.resources = {{"cpu", 1}, {"memory", 1}, {"example.com/gpu", 1}};
  out.args.spread.system_defaulting = false;
  model::TopologySpreadConstraint constraint;
  constraint.topology_key = "rack";
  constraint.max_skew = 1;
  out.args.spread.default_constraints = {constraint};
  out.args.inter_pod_affinity = {.hard_pod_affinity_weight = 20, .ignore_preferred_terms_of_existing_pods = true};
  out.args.volume_binding.shape = {{0, 0}, {100, 10}};
  model::NodeSelectorTerm term;
  term.expressions.push_back({"disk", model::Requirement::Op::kExists, {}});
  out.args.added_affinity = model::NodeAffinity{};
  out.args.added_affinity->preferred.push_back({30, term});
  score_by(out, "SelectorSpread", 2);
  out.pre_score.push_back({"SelectorSpread", 0});
  return out;
}

Profile old_policy() {
  Profile out = default_profile(Era::k120);
  out.always_check_all_filters = true;
  out.filter.push_back({"NodeLabel", 0});
  out.pre_filter.push_back({"ServiceAffinity", 0});
  out.filter.push_back({"ServiceAffinity", 0});
  out.pre_score.push_back({"SelectorSpread", 0});
  score_by(out, "NodeLabel", 2);
  score_by(out, "ServiceAffinity", 3);
  score_by(out, "SelectorSpread", 4);
  score_by(out, "RequestedToCapacityRatio", 5);
  out.args.node_label = {{}, {"retired"}, {"disk"}, {"rack"}};
  out.args.service_affinity = {{"rack"}, {"topology.kubernetes.io/zone"}};
  out.args.ratio = {{{0, 0}, {50, 8}, {100, 10}}, {{"cpu", 1}, {"memory", 2}}};
  return out;
}

Profile profile_of(std::size_t which) {
  switch (which) {
    case 0:
      return default_profile(Era::k136);
    case 1:
      return default_profile(Era::k120);
    case 2:
      return other_arguments();
    case 3:
      return old_policy();
    case 4:
      return cluster_autoscaler_profile();
    default: {
      Profile out = default_profile(Era::k136);
      out.args.fit.strategy = ScoringStrategyType::kMostAllocated;
      out.args.preemption.budgets_are_hard = true;
      return out;
    }
  }
}

class Decisions {
 public:
  Decisions(LongLife& life, std::uint64_t seed)
      : life_(life),
        random_(seed),
        profile_(profile_of(seed % kProfiles.size())),
        cluster_(profile_.era),
        trial_(cluster_, framework_of(profile_),
               {.engine = {.tie_break = EngineOptions::TieBreak::kFirstByName},
                .preemption = {.budgets_are_hard = profile_.args.preemption.budgets_are_hard}}) {
    random_.volumes = seed % 2 == 0;
    has_devices_ = profile_.era == Era::k136 && seed % 4 < 2;
    life_.tell(fmt::format("== {}, seed {}", kProfiles[seed % kProfiles.size()], seed));
  }

  void run(int steps) {
    for (int i = 0; i < 7; ++i) cluster_.upsert_node(random_.node(fmt::format("n{}", i)));
    for (int i = 0; i < steps; ++i) {
      change();
      ask(i);
    }
  }

 private:
  void change() {
    const int what = random_.below(100);
    if (what < 6) {
      const std::string name = fmt::format("n{}", random_.below(9));
      if (random_.chance(35))
        (void)cluster_.remove_node(name);
      else
        cluster_.upsert_node(random_.node(name));
    } else if (what < 30) {
      random_.change_objects(cluster_);
    } else if (what < 40) {
      change_budget();
    } else if (what < 55 && has_devices_) {
      change_devices();
    } else if (what < 75 && !placed_.empty()) {
      const auto at = placed_.begin() + random_.below(static_cast<int>(placed_.size()));
      if (random_.chance(50))
        (void)trial_.evict(cluster_.find_pod(*at));
      else
        (void)cluster_.remove_pod(*at);
      placed_.erase(at);
    }
  }
  void change_budget() {
    const std::string ns = random_.chance(50) ? "default" : "team-a", name = fmt::format("b{}", random_.below(2));
    if (random_.chance(30)) {
      (void)cluster_.remove("PodDisruptionBudget", ns, name);
      return;
    }
    cluster_.upsert(json::Value{{"kind", "PodDisruptionBudget"},
                                {"metadata", {{"name", name}, {"namespace", ns}}},
                                {"spec", {{"selector", {{"matchLabels", {{"app", random_.chance(50) ? "web" : "db"}}}}}}},
                                {"status", {{"disruptionsAllowed", random_.below(3)}}}});
  }
  void change_devices() {
    if (cluster_.device_classes().empty())
      for (const char* name : {"gpu", "nic"})
        cluster_.upsert(json::Value{
            {"kind", "DeviceClass"},
            {"metadata", {{"name", name}}},
            {"spec",
             {{"selectors",
               json::Array{{{"cel", {{"expression", fmt::format("device.attributes[\"d.example.com\"].kind == \"{}\"", name)}}}}}},
              {"extendedResourceName", fmt::format("example.com/{}", name)}}}});
    if (random_.chance(50)) return change_slice();
    const std::string ns = random_.chance(60) ? "default" : "team-a", name = fmt::format("rc{}", random_.below(4));
    if (random_.chance(20)) {
      (void)cluster_.remove("ResourceClaim", ns, name);
      return;
    }
    json::Value exactly{
        {"deviceClassName", random_.chance(70) ? "gpu" : "nic"}, {"allocationMode", "ExactCount"}, {"count", 1 + random_.below(2)}};
    if (random_.chance(20)) exactly = json::Value{{"deviceClassName", "gpu"}, {"allocationMode", "All"}};
    if (random_.chance(30))
      json::set(exactly, {"selectors"}, json::Array{{{"cel", {{"expression", "device.attributes[\"d.example.com\"].size > 1"}}}}});
    if (random_.chance(20)) json::set(exactly, {"tolerations"}, json::Array{{{"operator", "Exists"}}});
    json::Array requests;
    if (random_.chance(25)) {
      json::Value first = exactly;
      json::set(first, {"name"}, json::Value("big"));
      json::set(first, {"count"}, json::Value(3));
      json::set(first, {"allocationMode"}, json::Value("ExactCount"));
      json::Value second{{"name", "small"}, {"deviceClassName", "nic"}, {"allocationMode", "ExactCount"}, {"count", 1}};
      requests.push_back({{"name", "r"}, {"firstAvailable", json::Array{first, second}}});
    } else {
      requests.push_back({{"name", "r"}, {"exactly", exactly}});
    }
    json::Value spec{{"devices", {{"requests", requests}}}};
    if (random_.chance(20))
      json::set(spec, {"devices", "constraints"}, json::Array{{{"requests", json::Array{"r"}}, {"matchAttribute", "d.example.com/size"}}});
    cluster_.upsert(json::Value{{"kind", "ResourceClaim"},
                                {"metadata", {{"name", name}, {"namespace", ns}, {"uid", fmt::format("{}-{}-{}", ns, name, ++uids_)}}},
                                {"spec", std::move(spec)}});
  }
  void change_slice() {
    const std::string node = fmt::format("n{}", random_.below(7)), name = "s-" + node;
    if (random_.chance(15)) {
      (void)cluster_.remove("ResourceSlice", "", name);
      return;
    }
    json::Array devices;
    for (int i = 1 + random_.below(3); i > 0; --i) {
      json::Value device{
          {"name", fmt::format("d{}", i)},
          {"attributes", {{"kind", {{"string", random_.chance(60) ? "gpu" : "nic"}}}, {"size", {{"int", 1 + random_.below(3)}}}}}};
      if (random_.chance(15)) json::set(device, {"taints"}, json::Array{{{"key", "worn"}, {"effect", "NoSchedule"}}});
      devices.push_back(std::move(device));
    }
    cluster_.upsert(json::Value{{"kind", "ResourceSlice"},
                                {"metadata", {{"name", name}}},
                                {"spec",
                                 {{"driver", "d.example.com"},
                                  {"nodeName", node},
                                  {"pool", {{"name", node}, {"generation", 1}, {"resourceSliceCount", 1}}},
                                  {"devices", std::move(devices)}}}});
  }

  PodInfoPtr some_pod(int step) {
    auto view = std::make_shared<model::PodView>(*random_.pod(fmt::format("p{}", step)));
    view->meta.uid = fmt::format("u{}", step);
    if (random_.chance(8)) view->nominated_node_name = fmt::format("n{}", random_.below(8));
    if (random_.chance(5)) view->scheduling_gates = {"example.com/gate"};
    if (random_.chance(40)) view->priority = 10 * random_.below(4);
    if (has_devices_ && random_.chance(35)) {
      model::PodResourceClaim claim;
      claim.name = "x";
      claim.claim_name = fmt::format("rc{}", random_.below(5));
      view->resource_claims = {claim};
    }
    return PodInfo::make(std::move(view), cluster_.era());
  }

  void ask(int step) {
    const PodInfoPtr pod = some_pod(step);
    life_.tell(fmt::format("{} of priority {}{}", pod->key, pod->view().priority,
                           pod->view().nominated_node_name.empty() ? "" : ", nominated " + pod->view().nominated_node_name));
    if (!pod->view().nominated_node_name.empty()) cluster_.upsert_pod(pod);
    const Status admitted = trial_.admits(*pod);
    if (!admitted.is_success()) life_.tell("  is not let in: " + shown(admitted));
    const Evaluation all = trial_.evaluate(*pod);
    tell(all);
    if (random_.chance(20)) life_.tell(to_text(explain(trial_.profiles().of(*pod), cluster_, pod), true));
    const BestNodes best = trial_.best(pod);
    const Decision& decision = best.decision;
    if (decision.outcome == Decision::Outcome::kError) life_.tell("  error: " + decision.error);
    if (decision.outcome == Decision::Outcome::kUnschedulable) {
      const PostFilterResult victims = trial_.victims_for(pod, random_.chance(50) ? &all : nullptr);
      tell(victims);
      life_.tell("  " + fit_error_message(*decision.diagnosis, cluster_.era(), victims.status.message()));
      if (victims.choice() != nullptr && random_.chance(70)) make_room(pod, *victims.choice());
    }
    if (decision.outcome == Decision::Outcome::kScheduled) {
      life_.tell(fmt::format("  -> {} with {}, of {} equals", decision.node_name, decision.score, best.nodes.size()));
      if (random_.chance(85)) reserve(pod, decision.node);
    }
    if (!pod->view().nominated_node_name.empty() && !cluster_.pod_node(pod->key).is_valid()) (void)cluster_.remove_pod(pod->key);
  }
  void make_room(const PodInfoPtr& pod, const Candidate& candidate) {
    const std::string node = cluster_.node(candidate.node)->name;
    for (const PodInfoPtr& victim : candidate.victims) {
      (void)trial_.evict(victim);
      std::erase(placed_, victim->key);
    }
    cluster_.nominate(pod, node);
    const Decision decision = trial_.decide(pod);
    life_.tell(fmt::format("  with room on {}: {} {}", node, decision.node_name, decision.nominated_first));
    if (decision.outcome == Decision::Outcome::kScheduled) reserve(pod, decision.node);
    cluster_.nominate(pod, "");
  }
  void reserve(const PodInfoPtr& pod, NodeIndex node) {
    auto reservation = trial_.reserve(pod, node);
    if (!reservation) return life_.tell("  not reserved: " + shown(reservation.error()));
    const auto writes = reservation->pre_bind(cluster_);
    if (!writes) life_.tell("  cannot be bound: " + shown(writes.error()));
    if (writes)
      for (const PreBindWrite& write : *writes)
        life_.tell(fmt::format("  writes {}/{}/{} {}{} {} {}", write.resource, write.ns, write.name,
                               write.merge_patch.is_null() ? "" : json::serialize(write.merge_patch), write.wait_bound ? ", waits" : "",
                               write.uid, write.allocation == nullptr ? "" : shown(*write.allocation)));
    if (random_.chance(15)) {
      trial_.undo(*reservation);
      return life_.tell("  given back");
    }
    placed_.push_back(pod->key);
  }

  static std::string shown(const Status& status) {
    return fmt::format("{} {}: {}", code_name(status.code), status.plugin, status.message());
  }
  static std::string shown(const model::Allocation& allocation) {
    std::string out;
    for (const auto& device : allocation.devices) out += fmt::format("{}/{}/{} ", device.driver, device.pool, device.device);
    return out;
  }
  void tell(const Evaluation& all) {
    if (!all.pre_filter.is_success()) life_.tell("  at once: " + shown(all.pre_filter));
    if (all.pre_filter_nodes) life_.tell(fmt::format("  of {} alone", fmt::join(*all.pre_filter_nodes, " ")));
    for (const auto& one : all.rejected) {
      life_.tell(fmt::format("  {}: {}", cluster_.node(one.node)->name, shown(one.status)));
      for (const Status& each : one.all) life_.tell("    " + shown(each));
    }
    for (const auto& one : all.feasible)
      life_.tell(fmt::format("  {}: {} = {}", cluster_.node(one.node)->name, one.total, fmt::join(one.scores, " + ")));
    for (const std::string& error : all.errors) life_.tell("  error: " + error);
    if (!all.feasible.empty()) life_.tell(fmt::format("  by {}{}", fmt::join(all.scorers, " "), all.nominated_first ? ", nominated" : ""));
  }
  void tell(const PostFilterResult& victims) {
    life_.tell("  victims: " + shown(victims.status));
    if (const Candidate* choice = victims.choice()) {
      std::string line = fmt::format("  on {}, {} budgets broken:", cluster_.node(choice->node)->name, choice->budget_violations);
      for (const PodInfoPtr& one : choice->victims) line += fmt::format(" {} of {}", one->key, one->view().priority);
      for (const NodeIndex one : victims.tied) line += ", or " + cluster_.node(one)->name;
      life_.tell(line);
    }
    if (victims.release) life_.tell(fmt::format("  gives back {}{}", victims.release->name, victims.release->is_deleted ? " whole" : ""));
    if (victims.waits_for_victims) life_.tell("  waits for victims");
  }

  LongLife& life_;
  RandomWorld random_;
  Profile profile_;
  Cluster cluster_;
  Trial trial_;
  std::vector<std::string> placed_;
  bool has_devices_ = false;
  int uids_ = 0;
};

TEST(PlacementLives, DecisionsAreAsRecorded) {
  LongLife life("tests/placement/lives/decisions.txt", 1, 30'000);
  for (std::uint64_t seed = 1; seed <= 48; ++seed) Decisions(life, seed).run(60);
  life.expect_as_recorded();
}

}  // namespace
}  // namespace berth::placement::testing
