#include "parity/descheduling.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "descheduler/execution.h"
#include "descheduler/prometheus.h"
#include "placement/profiles.h"

namespace berth::descheduler {
namespace {

using Strings = std::vector<std::string>;

/// What a cycle did, recorded or made here.
struct Outline {
  bool is_refused = false;  ///< The policy, when loaded or set up.
  std::string refusal;
  Strings evicted;  ///< "shop/a on n1 by profile/strategy", in order.
  Strings failed;   ///< "shop/b on n1: node", in order; the limit, or "refused".
  std::size_t plugin_errors = 0;
  std::map<std::string, std::map<std::string, std::int64_t>> counts;  ///< Of the evicted pods, by level.
  std::set<std::string> keys;                                         ///< The evicted pods.
};

// --- the recorded side ---

/// Which limit, or that somebody refused: "node eviction limit exceeded (2)" is "node".
std::string failure_kind(std::string_view message) {
  const std::size_t limit = message.find(" eviction limit exceeded");
  return limit == message.npos ? "refused" : std::string(message.substr(0, limit));
}

std::string place_of(const json::Value& pod) {
  return fmt::format("{}/{} on {}", json::get_string(pod, {"namespace"}), json::get_string(pod, {"name"}), json::get_string(pod, {"node"}));
}

Strings read_evicted(const json::Value& from) {
  Strings out;
  for (const json::Value& pod : json::get_array(from, {"evicted"}))
    out.push_back(fmt::format("{} by {}/{}", place_of(pod), json::get_string(pod, {"profile"}), json::get_string(pod, {"strategy"})));
  return out;
}

Strings read_failed(const json::Value& from) {
  Strings out;
  for (const json::Value& pod : json::get_array(from, {"failed"}))
    out.push_back(fmt::format("{}: {}", place_of(pod), failure_kind(json::get_string(pod, {"message"}))));
  return out;
}

// --- this side ---

std::string failure_kind(Outcome outcome) {
  switch (outcome) {
    case Outcome::kNodeLimit:
      return "node";
    case Outcome::kNamespaceLimit:
      return "namespace";
    case Outcome::kTotalLimit:
      return "total";
    default:
      return "refused";
  }
}

void count(Outline& out, const Removal& removal) {
  const Pod& pod = *removal.pod;
  Strings owners, images;
  for (const auto& owner : pod.owners()) owners.push_back(owner.kind + "/" + owner.name);
  for (const auto& container : pod.view().containers) images.push_back(container.image);
  std::ranges::sort(images);
  const std::string owner = fmt::format("{} {}", pod.view().ns(), owners.empty() ? "-" : fmt::format("{}", fmt::join(owners, "+")));
  const std::string node_owner = pod.node() + " " + owner;
  ++out.counts["byStrategy"][fmt::format("{}/{}", removal.profile, strategy_name(removal.strategy))];
  ++out.counts["byNode"][pod.node()];
  ++out.counts["byNamespace"][pod.view().ns()];
  ++out.counts["byOwner"][owner];
  ++out.counts["byNodeOwner"][node_owner];
  ++out.counts["byNodeOwnerImages"][fmt::format("{} {}", node_owner, fmt::join(images, "#"))];
  out.keys.insert(pod.key());
}

Outline outline_of(const CycleResult& result) {
  Outline out;
  for (const Removal& removal : result.removals) {
    const std::string place = fmt::format("{} on {}", removal.pod->key(), removal.pod->node());
    if (goes(removal.outcome)) {
      out.evicted.push_back(fmt::format("{} by {}/{}", place, removal.profile, strategy_name(removal.strategy)));
      count(out, removal);
    } else {
      out.failed.push_back(fmt::format("{}: {}", place, failure_kind(removal.outcome)));
    }
  }
  out.plugin_errors =
      static_cast<std::size_t>(std::ranges::count_if(result.runs, [](const StrategyRun& run) { return !run.error.empty(); }));
  return out;
}

Snapshot read_cluster(const json::Value& file) {
  Snapshot out;
  for (const auto& [kind, list] : json::get_object(file, {"objects"}))
    if (list.is_array())
      for (const json::Value& object : list.get_array()) out.add(object);
  for (const std::string_view list : {"nodes", "pods"})
    for (const json::Value& metrics : json::get_array(file, {"metrics", list})) out.add_usage(metrics);
  out.finish();
  return out;
}

/// The recorded vector is the answer to whatever the policy asks.
void read_prometheus_vector(const json::Value& file, const Policy& policy, Snapshot& snapshot) {
  if (json::find(file, "prometheus") == nullptr || !policy.prometheus) return;
  std::vector<std::pair<std::string, double>> samples;
  for (const json::Value& sample : json::get_array(file, {"prometheus"})) {
    const json::Value* value = json::find(sample, "value");
    samples.emplace_back(json::get_string(sample, {"instance"}),
                         value == nullptr || !value->is_number() ? NAN : value->to_number<double>());
  }
  for (const std::string& query : policy.prometheus_queries()) snapshot.queried_usage.emplace(query, usage_of_samples(samples));
}

Outline refused(const Error& error) {
  Outline out;
  out.is_refused = true;
  out.refusal = error.message;
  return out;
}

void forget_budgets(placement::Cluster& cluster) {
  std::vector<std::pair<std::string, std::string>> all;
  for (const auto& [key, budget] : cluster.disruption_budgets()) all.emplace_back(budget->meta.ns, budget->meta.name);
  for (const auto& [ns, name] : all) cluster.remove("PodDisruptionBudget", ns, name);
}

Result<Outline> run(const json::Value& file) {
  const auto now = parse_rfc3339(json::get_string(file, {"now"}));
  if (!now) return invalid("now is no time");
  const std::string legacy(json::get_string(file, {"legacyPolicy"}));
  const auto policy = parse_policy(legacy.empty() ? json::serialize(*json::find(file, "policy")) : legacy, "policy", true);
  if (!policy) return refused(policy.error());
  std::set<std::string, std::less<>> refusing;
  for (const json::Value& key : json::get_array(file, {"refuse"})) refusing.emplace(json::as_view(key));
  auto framework = placement::Framework::create(placement::default_profile(placement::Era::k136));
  if (!framework) return std::unexpected(framework.error());
  placement::Profiles profiles;
  profiles.add(*framework);
  CycleOptions options{.now = *now, .check = PlacementCheck::kOff, .counts_budgets = false};
  Snapshot snapshot = read_cluster(file);
  read_prometheus_vector(file, *policy, snapshot);
  // A fault of 0.36 (descheduler#1882): with this protection it knows of no budget.
  if (std::ranges::any_of(policy->profiles, [](const Profile& profile) { return profile.evictor.protects_without_budget; }))
    forget_budgets(snapshot.cluster);
  // One after the other, as there.
  auto cycle = Execution::begin(*policy, snapshot, profiles, options, 1);
  if (!cycle) return refused(cycle.error());
  while (!cycle->is_over())
    for (const Step& step : cycle->due()) {
      const bool is_refused = refusing.contains(step.removal.pod->key());
      cycle->answered(step, is_refused ? Answer{Outcome::kProtected, "it is refused"} : Answer{});
    }
  return outline_of(std::move(*cycle).result());
}

// --- both ---

/// `in_order`: as lists, otherwise as sets.
void compare_lists(std::string_view what, Strings expected, Strings got, bool in_order, Strings& out) {
  if (in_order && expected != got && std::ranges::is_permutation(expected, got))
    out.push_back(fmt::format("{}: expected the order [{}], got [{}]", what, fmt::join(expected, ", "), fmt::join(got, ", ")));
  std::ranges::sort(expected);
  std::ranges::sort(got);
  Strings missing, added;
  std::ranges::set_difference(expected, got, std::back_inserter(missing));
  std::ranges::set_difference(got, expected, std::back_inserter(added));
  for (const std::string& one : missing) out.push_back(fmt::format("{}: expected {}, which was not", what, one));
  for (const std::string& one : added) out.push_back(fmt::format("{}: {} was not expected", what, one));
}

/// For choices that vary from run to run: the numbers that do not, and the pods that always or never go.
void compare_counts(const json::Value& expected, const Outline& got, Strings& out) {
  for (const auto& [name, wanted] : json::get_object(expected, {"counts"})) {
    const std::string level(name.data(), name.size());
    if (wanted.is_int64()) {
      if (wanted.get_int64() != static_cast<std::int64_t>(got.evicted.size()))
        out.push_back(fmt::format("{}: expected {}, got {}", level, wanted.get_int64(), got.evicted.size()));
      continue;
    }
    std::map<std::string, std::int64_t> numbers;
    for (const auto& [what, number] : json::get_object(expected, {"counts", level}))
      numbers.emplace(std::string(what.data(), what.size()), number.is_int64() ? number.get_int64() : -1);
    const auto found = got.counts.find(level);
    if (numbers != (found == got.counts.end() ? std::map<std::string, std::int64_t>{} : found->second))
      out.push_back(fmt::format("{}: expected {}, other numbers were evicted", level, json::serialize(wanted)));
  }
  std::set<std::string> possible;
  for (const json::Value& key : json::get_array(expected, {"always"})) {
    possible.emplace(json::as_view(key));
    if (!got.keys.contains(std::string(json::as_view(key)))) out.push_back(fmt::format("always: {} was not evicted", json::as_view(key)));
  }
  for (const json::Value& key : json::get_array(expected, {"sometimes"})) possible.emplace(json::as_view(key));
  for (const std::string& key : got.keys)
    if (!possible.contains(key)) out.push_back(fmt::format("evicted: {} never was", key));
}

/// Where the failures vary, only their number by kind may be fixed.
void compare_failures(const json::Value& expected, const Outline& got, Strings& out) {
  const json::Value* failed = json::find(expected, "failed");
  if (failed != nullptr && failed->is_array())
    return compare_lists("failed", read_failed(expected), got.failed, json::get_string(expected, {"failedOrder"}) == "exact", out);
  const json::Value* by_message = json::find(expected, "failedCounts");
  if (by_message == nullptr || !by_message->is_object()) return;
  std::map<std::string, std::int64_t> wanted, numbers;
  for (const auto& [message, number] : by_message->get_object())
    wanted[failure_kind({message.data(), message.size()})] += number.is_int64() ? number.get_int64() : -1;
  for (const std::string& one : got.failed) ++numbers[one.substr(one.rfind(": ") + 2)];
  if (wanted != numbers) out.push_back("failed: expected " + json::serialize(*by_message) + ", others failed");
}

Strings compare_choice(const json::Value& expected, const Outline& got) {
  Strings out;
  const std::string_view order = json::get_string(expected, {"order"});
  if (order == "counts")
    compare_counts(expected, got, out);
  else
    compare_lists("evicted", read_evicted(expected), got.evicted, order == "exact", out);
  return out;
}

/// The result of a walk in the order of names tells its own failures only where they differ.
Strings compare(const json::Value& expected, const json::Value* canonical, const Outline& got) {
  Strings out = compare_choice(expected, got);
  compare_failures(expected, got, out);
  if (out.empty() || canonical == nullptr) return out;
  Strings by_walk = compare_choice(*canonical, got);
  compare_failures(json::find(*canonical, "failed") != nullptr ? *canonical : expected, got, by_walk);
  return by_walk.empty() ? by_walk : out;
}

}  // namespace

bool is_descheduler_vector(const json::Value& file) {
  return file.is_object() && json::find(file, "policy") != nullptr && json::find(file, "objects") != nullptr &&
         json::find(file, "expected") != nullptr;
}

std::vector<std::string> replay_descheduler(const json::Value& file) {
  if (!is_descheduler_vector(file)) return {"this is no recorded cycle: it needs policy, objects and expected"};
  const json::Value& expected = *json::find(file, "expected");
  const auto got = run(file);
  if (!got) return {got.error().message};
  std::string refusal(json::get_string(expected, {"policyError"}));
  if (refusal.empty()) refusal = json::get_string(expected, {"cycleError"});
  if (!refusal.empty() || got->is_refused) {
    if (!refusal.empty() && got->is_refused) return {};
    return {refusal.empty() ? "the policy: expected to be accepted, got " + got->refusal
                            : fmt::format("the policy: expected to be refused ({}), got accepted", refusal)};
  }
  Strings out = compare(expected, json::find(file, "canonical"), *got);
  if (const std::size_t errors = json::get_array(expected, {"pluginErrors"}).size(); errors != got->plugin_errors)
    out.push_back(fmt::format("plugin errors: expected {}, got {}", errors, got->plugin_errors));
  return out;
}

}  // namespace berth::descheduler
