#include <algorithm>

#include "base/config_reader.h"
#include "berth/plugin_testing.h"
#include "placement/columns/cluster_index.h"

namespace berth::plugin_testing {
namespace {

using model::Labels;
using model::NodeView;
using model::PodView;
using model::Quantity;
using namespace placement;
using More = std::span<const PluginRegistration>;

constexpr int kNodes = 6;

model::NodeViewPtr make_node(int number, const World& world, Dice& dice) {
  auto out = std::make_shared<NodeView>();
  out->meta.name = "n" + std::to_string(number);
  std::vector<std::pair<std::string, std::string>> labels = {{"kubernetes.io/hostname", out->meta.name}};
  labels.emplace_back("topology.kubernetes.io/zone", "z" + std::to_string(dice.below(3)));
  if (dice.chance(50)) labels.emplace_back("disk", dice.chance(50) ? "ssd" : "hdd");
  out->meta.labels = Labels(std::move(labels));
  if (dice.chance(15)) out->taints.push_back({"dedicated", "a", dice.chance(50) ? "NoSchedule" : "PreferNoSchedule"});
  out->allocatable = {{"cpu", Quantity::from_milli(1000 * (1 + dice.below(8)))},
                      {"memory", Quantity::from_value((1LL + dice.below(8)) << 30)},
                      {"pods", Quantity::from_value(110)}};
  if (world.dress_node) world.dress_node(*out, dice);
  out->allocatable.sort({}, &std::pair<std::string, Quantity>::first);
  out->capacity = out->allocatable;
  return out;
}

/// With what an API server adds: the token's volume, tolerations of nodes that are lost, an owner.
model::PodViewPtr make_pod(const std::string& name, const World& world, Dice& dice) {
  auto out = std::make_shared<PodView>();
  out->meta.ns = dice.chance(70) ? "default" : "team-a";
  out->meta.name = name;
  out->meta.uid = "uid-" + name;
  const std::string app = dice.chance(50) ? "web" : "db";
  out->meta.labels = Labels({{"app", app}, {"pod-template-hash", "7d4b9"}});
  out->meta.owner_references = {{"apps/v1", "ReplicaSet", app + "-7d4b9", "rs-" + app, true}};
  out->scheduler_name = "default-scheduler";
  out->priority = dice.chance(30) ? dice.below(3) * 10 : 0;
  model::ContainerView container;
  container.name = "c";
  container.image = app + ":v1";
  if (dice.chance(90)) container.requests.emplace_back("cpu", Quantity::from_milli(100 * (1 + dice.below(8))));
  if (dice.chance(90)) container.requests.emplace_back("memory", Quantity::from_value((1LL + dice.below(6)) << 27));
  out->containers.push_back(std::move(container));
  model::VolumeView token;
  token.name = "kube-api-access-" + std::to_string(10000 + dice.below(90000));
  out->volumes.push_back(std::move(token));
  for (const char* lost : {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"})
    out->tolerations.push_back({lost, "Exists", "", "NoExecute", 300});
  if (dice.chance(20)) out->tolerations.push_back({"dedicated", "Exists", "", "", {}});
  if (dice.chance(15)) out->node_selector.emplace_back("disk", "ssd");
  if (world.dress_pod) world.dress_pod(*out, dice);
  out->meta.annotations.sort();
  return out;
}

struct Setting {
  std::mt19937_64 random;
  Dice dice{random};
  Cluster cluster;
  FrameworkPtr framework;
  std::string error;

  Setting(const Profile& profile, const World& world, std::uint64_t seed, More more) : random(seed), cluster(profile.era) {
    auto made = Framework::create(profile, more);
    if (!made) {
      error = made.error().message;
      return;
    }
    framework = *made;
    for (int i = 0; i < kNodes; ++i) cluster.upsert_node(make_node(i, world, dice));
  }
  [[nodiscard]] Trial trial(bool is_plain = false) {
    TrialOptions options;
    options.engine.tie_break = EngineOptions::TieBreak::kFirstByName;
    options.engine.plain = is_plain;
    return {cluster, Profiles(framework), options};
  }
  [[nodiscard]] PodInfoPtr pod(const World& world, int number) {
    return PodInfo::make(make_pod("p" + std::to_string(number), world, dice), cluster.era());
  }
};

std::string with_seed(std::uint64_t seed, const std::string& what) { return what.empty() ? what : fmt::format("seed {}: {}", seed, what); }

template <typename One>
std::string over_seeds(const CheckOptions& options, One&& one) {
  for (std::uint64_t seed = options.first_seed; seed < options.first_seed + static_cast<std::uint64_t>(options.seeds); ++seed)
    if (std::string found = one(seed); !found.empty()) return with_seed(seed, found);
  return {};
}

/// The cluster as it shows: each node's pods with their annotations.
std::string picture(const Cluster& cluster) {
  std::string out;
  for (const NodeInfo* node : cluster.nodes()) {
    out += node->name + ":";
    std::vector<std::string> pods;
    for (const auto& pod : node->pods) {
      pods.push_back(pod->key);
      for (const auto& [key, value] : pod->view().meta.annotations) pods.back() += fmt::format(" {}={}", key, value);
    }
    std::ranges::sort(pods);
    out += fmt::format(" {}\n", fmt::join(pods, ", "));
  }
  return out;
}

/// Of every node, for one pod: what the plugin says now.
std::string opinion(const Trial& trial, const PodInfo& pod) {
  const Evaluation found = trial.evaluate(pod);
  std::string out = found.pre_filter.message();
  for (const auto& one : found.feasible) out += fmt::format("\n{} {}", one.node.value, fmt::join(one.scores, " "));
  for (const auto& one : found.rejected) out += fmt::format("\n{} {}", one.node.value, one.status.message());
  return out;
}

std::string columns_once(const Profile& profile, const World& world, std::uint64_t seed, More more) {
  Setting setting(profile, world, seed, more);
  if (!setting.error.empty()) return setting.error;
  Trial trial = setting.trial();
  std::vector<PodInfoPtr> there;
  for (int i = 0; i < 60; ++i) {
    const PodInfoPtr pod = setting.pod(world, i);
    const BestNodes by_columns = trial.best(pod);
    const Evaluation plain = trial.evaluate(*pod);
    if (!plain.errors.empty()) return fmt::format("a plugin fails: {}", plain.errors.front());
    auto wanted = plain.tied;
    std::ranges::sort(wanted, {}, [&](NodeIndex node) -> const std::string& { return setting.cluster.node(node)->name; });
    if (by_columns.nodes != wanted)
      return fmt::format(
          "pod {}: the columns find {} best nodes and the plain form {}, or others: does the plugin look at more than its "
          "column_kind says?\nplain form:{}",
          pod->key, by_columns.nodes.size(), wanted.size(), opinion(trial, *pod));
    const Placement placed = trial.place(pod);
    if (placed.status.is_error()) return fmt::format("pod {}: {}", pod->key, placed.status.message());
    if (!wanted.empty() && !placed.is_placed())
      return fmt::format("pod {}: fits, and Reserve refuses it: {}", pod->key, placed.status.message());
    if (placed.is_placed()) there.push_back(setting.cluster.find_pod(pod->key));
    if (there.empty() || !setting.dice.chance(30)) continue;
    const auto leaving = there.begin() + setting.dice.below(static_cast<int>(there.size()));
    (void)trial.evict(*leaving);
    there.erase(leaving);
  }
  return {};
}

std::string forks_once(const Profile& profile, const World& world, std::uint64_t seed, More more) {
  Setting setting(profile, world, seed, more);
  if (!setting.error.empty()) return setting.error;
  Trial trial = setting.trial();
  for (int i = 0; i < 12; ++i) (void)trial.place(setting.pod(world, i));
  const PodInfoPtr witness = setting.pod(world, 100);
  const std::string before = picture(setting.cluster), thought = opinion(trial, *witness);
  const PodInfoPtr tried = setting.pod(world, 101);
  if (const Decision decision = trial.decide(tried); decision.outcome == Decision::Outcome::kScheduled) {
    auto reserved = trial.reserve(tried, decision.node);
    if (!reserved) return fmt::format("pod {}: fits, and Reserve refuses it: {}", tried->key, reserved.error().message());
    trial.undo(*reserved);
  }
  if (picture(setting.cluster) != before || opinion(trial, *witness) != thought) return "a reservation that was undone left a trace";
  Trial fork = trial.fork();
  for (int i = 200; i < 212; ++i) (void)fork.place(setting.pod(world, i));
  if (picture(setting.cluster) != before || opinion(trial, *witness) != thought)
    return "what was placed in a fork shows in what it was forked from: the plugin keeps state beside the cluster";
  return {};
}

std::string signature_once(const Profile& profile, const World& world, std::uint64_t seed, More more) {
  Setting setting(profile, world, seed, more);
  if (!setting.error.empty()) return setting.error;
  Trial trial = setting.trial();
  for (int i = 0; i < 20; ++i) (void)trial.place(setting.pod(world, i));
  std::vector<Change> changes(common_changes().begin(), common_changes().end());
  changes.insert(changes.end(), world.changes.begin(), world.changes.end());
  ClusterIndex index(setting.cluster);
  for (int i = 0; i < 6; ++i) {
    const auto view = make_pod("asking", world, setting.dice);
    const auto found = compare_alike(setting.framework, setting.cluster, seed % 2 == 0 ? &index : nullptr, view, changes, setting.dice);
    if (!found.difference.empty()) return "a plugin reads what it did not sign: " + found.difference;
  }
  return {};
}

}  // namespace

std::string check_signature(const Profile& profile, const World& world, const CheckOptions& options, More more) {
  return over_seeds(options, [&](std::uint64_t seed) { return signature_once(profile, world, seed, more); });
}
std::string check_columns(const Profile& profile, const World& world, const CheckOptions& options, More more) {
  return over_seeds(options, [&](std::uint64_t seed) { return columns_once(profile, world, seed, more); });
}
std::string check_forks(const Profile& profile, const World& world, const CheckOptions& options, More more) {
  return over_seeds(options, [&](std::uint64_t seed) { return forks_once(profile, world, seed, more); });
}
std::string check_plugin(const Profile& profile, const World& world, const CheckOptions& options, More more) {
  if (const auto made = Framework::create(profile, more); !made) return made.error().message;
  for (const auto& check : {check_signature, check_columns, check_forks})
    if (std::string found = check(profile, world, options, more); !found.empty()) return found;
  return {};
}

Profile profile_with(std::string_view plugin, json::Value args, std::int64_t weight) {
  Profile out = default_profile(Era::k136);
  if (!args.is_null()) out.args.own.insert_or_assign(std::string(plugin), std::move(args));
  const auto* registration = find_plugin(plugin);
  const auto made = registration == nullptr ? Result<PluginPtr>(nullptr) : make_plugin(*registration, out);
  // One that cannot be made is named all the same: whoever makes the profile's objects is told what is wrong.
  const Points points = made && *made != nullptr ? (*made)->points() : Points{.filter = true};
  const auto join = [&](bool takes_part, std::vector<PluginUse>& list, std::int64_t at_weight = 0) {
    if (takes_part) list.push_back({std::string(plugin), at_weight});
  };
  join(points.pre_enqueue, out.pre_enqueue);
  join(points.pre_filter, out.pre_filter);
  join(points.filter, out.filter);
  join(points.post_filter, out.post_filter);
  join(points.pre_score, out.pre_score);
  join(points.score, out.score, weight);
  join(points.reserve, out.reserve);
  join(points.permit, out.permit);
  join(points.pre_bind, out.pre_bind);
  join(points.bind, out.bind);
  join(points.post_bind, out.post_bind);
  return out;
}

}  // namespace berth::plugin_testing
