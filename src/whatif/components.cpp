#include "whatif/components.h"

#include <fmt/format.h>

#include <algorithm>

#include "autoscaler/advice.h"
#include "autoscaler/autoscaler.h"
#include "autoscaler/cluster_cache.h"
#include "descheduler/cycle.h"
#include "scheduler/config/config.h"
#include "whatif/answer.h"
#include "whatif/steps.h"

namespace berth::whatif {
namespace {

/// Pods that a scheduler places and that may be placed anew, in the order of its queue.
std::vector<std::string> movable_pods(World& world) {
  std::vector<std::string> out;
  for (const std::string& node : world.node_names())
    for (const std::string& pod : world.pods_on(node)) {
      const Record& record = *world.find(pod);
      if (!record.is_daemon() && !record.is_mirror() && !record.view().meta.is_deleting) out.push_back(pod);
    }
  return out;
}

std::map<std::string, std::string> places_of(World& world, const std::vector<std::string>& pods) {
  std::map<std::string, std::string> out;
  for (const std::string& pod : pods)
    if (const Record* record = world.find(pod)) out.emplace(pod, record->node);
  return out;
}

/// All of them leave and are scheduled anew; nothing of it is told.
void place_anew(World& world, const std::vector<std::string>& pods) {
  const std::size_t moves = world.moves.size(), departures = world.departures.size();
  for (const std::string& pod : pods)
    if (Record* record = world.find(pod); record != nullptr && !record->node.empty()) world.requeue(pod);
  world.settle();
  world.moves.resize(moves);
  world.departures.resize(departures);
}

/// A pod as the cluster's components would read it by now: one that moved runs where it is.
placement::ReadPodPtr read_again(const World& world, const Record& record) {
  const bool waits = record.node.empty();
  const bool stays = !record.is_new && record.read->node() == record.node;
  if (stays && (!waits || record.read->facts.is_unschedulable)) return record.read;
  placement::ReadPod out = *record.read;
  out.facts.is_unschedulable = waits;  // Else it would have its place.
  if (stays) return std::make_shared<const placement::ReadPod>(std::move(out));
  const TimePoint now = world.options().now;
  auto view = std::make_shared<model::PodView>(record.view());
  view->node_name = record.node;
  view->phase = waits ? "Pending" : "Running";
  view->start_time = waits ? std::string() : format_rfc3339(now);
  view->is_unready = false;
  view->meta.creation_timestamp = format_rfc3339(record.created);
  out.info = placement::PodInfo::make(std::move(view), world.cluster().era());
  out.facts.created = record.created;
  out.facts.started = waits ? std::nullopt : std::optional(now);
  out.facts.is_disrupted = out.facts.is_evicted = false;
  auto status = std::make_shared<model::PodStatus>();
  status->conditions.push_back(waits ? model::PodCondition{"PodScheduled", "False", "Unschedulable", now}
                                     : model::PodCondition{"Ready", "True", {}, now});
  out.facts.status = std::move(status);
  return std::make_shared<const placement::ReadPod>(std::move(out));
}

/// How many pods stand elsewhere when those of one controller count alike.
std::size_t really_moved(World& world, const std::map<std::string, std::string>& before, const std::map<std::string, std::string>& after) {
  std::map<std::pair<std::string, std::string>, std::int64_t> counts;
  const auto count = [&](const std::map<std::string, std::string>& places, int by) {
    for (const auto& [pod, node] : places) {
      const Record* record = world.find(pod);
      counts[{record->owner() == nullptr ? pod : record->owner()->uid, node}] += by;
    }
  };
  count(before, -1);
  count(after, 1);
  std::int64_t out = 0;
  for (const auto& [key, many] : counts) out += std::max<std::int64_t>(0, many);
  return static_cast<std::size_t>(out);
}

}  // namespace

std::vector<placement::ReadPodPtr> pods_by_now(const World& world) {
  std::vector<placement::ReadPodPtr> out;
  for (const auto& [key, record] : world.tables().pods) out.push_back(read_again(world, record));
  std::ranges::sort(out, {}, [](const placement::ReadPodPtr& pod) { return std::string_view(pod->key()); });
  return out;
}

Result<void> change_config(World& world, const json::Value& document, std::string_view from) {
  if (from != "pending" && from != "empty") return invalid(fmt::format("from: \"{}\" is neither pending nor empty", from));
  auto config = scheduler::config::parse(json::to_yaml(document), {.file = "configuration", .era = {}});
  if (!config) return std::unexpected(config.error());
  for (const std::string& note : config->notes) world.note(note);
  if (!config->extenders.empty()) world.note(fmt::format("{} extenders of the new configuration are not asked", config->extenders.size()));
  auto profiles = placement::Profiles::create(config->profiles);
  if (!profiles) return std::unexpected(profiles.error());
  profiles->set_otherwise(profiles->find(config->profiles[0].scheduler_name));
  if (config->era != world.cluster().era())
    world.note(fmt::format("the new configuration is of the {} release's rules, the cluster was looked at by the {}'s until here",
                           config->era == placement::Era::k120 ? "1.20" : "1.36", config->era == placement::Era::k120 ? "1.36" : "1.20"));
  if (from == "pending") {
    world.decide_by(std::move(*profiles), config->era);
    world.settle();
    return {};
  }
  const std::vector<std::string> pods = movable_pods(world);
  place_anew(world, pods);
  const auto before = places_of(world, pods);
  world.baseline = std::make_shared<const Fullness>(Fullness::of(world.cluster()));
  world.decide_by(std::move(*profiles), config->era);
  place_anew(world, pods);
  const auto after = places_of(world, pods);
  for (const auto& [pod, node] : after)
    if (const std::string& was = before.at(pod); was != node && !node.empty())
      world.moves.push_back({pod,
                             was,
                             node,
                             was.empty() ? "the present configuration finds no place for it" : "the present configuration puts it there",
                             {},
                             world.change()});
  world.note(
      fmt::format("every pod of {} was placed anew on the empty nodes, by the present configuration and by the new one: {} stand elsewhere "
                  "when pods of one "
                  "controller count alike",
                  pods.size(), really_moved(world, before, after)));
  return {};
}

Result<void> run_descheduler(World& world, const json::Value& document) {
  auto policy = descheduler::parse_policy(json::to_yaml(document), "policy");
  if (!policy) return std::unexpected(policy.error());
  for (const std::string& warning : policy->warnings) world.note(warning);
  if (policy->needs_metrics()) world.note("the policy reads actual use, which a dump does not have: such strategies see no use at all");
  descheduler::Snapshot snapshot(world.cluster().era());
  for (const auto& [key, object] : world.tables().objects) snapshot.add(*object);
  for (const std::string& name : world.node_names()) snapshot.add(world.node(name));
  for (placement::ReadPodPtr& pod : pods_by_now(world)) snapshot.add(std::move(pod));
  snapshot.finish();
  descheduler::CycleOptions options;
  options.now = world.options().now;
  const auto plan = descheduler::plan_cycle(*policy, snapshot, world.trial().profiles(), options);
  if (!plan) return std::unexpected(plan.error());
  const descheduler::CycleResult* result = &plan->result;
  for (const std::string& note : result->notes) world.note(note);
  for (const descheduler::StrategyRun& run : result->runs)
    if (!run.error.empty()) world.note(fmt::format("{}: {}", descheduler::strategy_name(run.strategy), run.error));
  std::size_t kept = 0;
  for (const descheduler::Removal& removal : result->removals) {
    const std::string& pod = removal.pod->key();
    const std::string reason = fmt::format("{}: {}", descheduler::strategy_name(removal.strategy), removal.why);
    if (world.find(pod) == nullptr) continue;
    if (descheduler::goes(removal.outcome)) {
      world.leave(pod, {.outcome = "evicted", .reason = reason});
      world.settle();
    } else if (removal.outcome == descheduler::Outcome::kProtected) {
      world.block(pod, {removal.message, {}});
    } else {
      ++kept;
    }
  }
  if (kept > 0)
    world.note(fmt::format("{} pods that the policy wants away have no better place, or are beyond its limits: they stay", kept));
  return {};
}

namespace {

/// The nodes of a group that grows are like those that it has, or as its provider describes them.
Result<Shape> shape_of_group(const World& world, const autoscaler::NodeGroup& group) {
  for (const autoscaler::Instance& instance : group.instances)
    if (!instance.node.empty() && world.node(instance.node) != nullptr) {
      auto shape = shape_of(world, json::Value(instance.node));
      if (shape) shape->name = autoscaler::split_group_id(group.id).second;
      return shape;
    }
  if (group.template_node != nullptr) return Shape{group.template_node, autoscaler::split_group_id(group.id).second, {}, {}};
  return invalid(fmt::format("what a node of {} would be is not known", group.id));
}

Result<autoscaler::Options> scaling_options(World& world, const json::Value& given) {
  if (!given.is_bool()) {
    std::vector<std::string> notes;
    auto out = autoscaler::Options::parse(given, &notes);
    for (const std::string& note : notes) world.note(note);
    return out;
  }
  const json::Value* found = world.tables().find("ClusterAutoscaler", "", "default");
  const auto& objects = world.tables().objects;
  const auto any = objects.lower_bound("ClusterAutoscaler/");
  if (found == nullptr && any != objects.end() && any->first.starts_with("ClusterAutoscaler/")) found = any->second.get();
  if (found == nullptr) return invalid("there is no ClusterAutoscaler among the objects: give one");
  return autoscaler::Options::parse(*found);
}

}  // namespace

Result<void> run_autoscaler(World& world, const json::Value& cluster_autoscaler) {
  auto options = scaling_options(world, cluster_autoscaler);
  if (!options) return std::unexpected(options.error());
  // Today, not in ten minutes: pauses count as over.
  options->unneeded_time = options->unready_time = options->new_pod_scale_up_delay = Duration::zero();
  autoscaler::ClusterCache seen(world.cluster().era());
  for (const auto& [key, object] : world.tables().objects) seen.upsert(*object);
  for (const std::string& name : world.node_names()) seen.upsert_node(world.node(name));
  for (placement::ReadPodPtr& pod : pods_by_now(world)) seen.upsert_pod(std::move(pod));
  const autoscaler::Snapshot snapshot = seen.snapshot();
  if (snapshot.groups.empty())
    world.note("no MachineSet or other group of nodes is to be scaled: the autoscaler has nothing to grow or to shrink");
  for (const std::string& problem : snapshot.problems) world.note(problem);
  const autoscaler::Actions actions = autoscaler::Autoscaler(world.trial().profiles(), 0).step(snapshot, *options, world.options().now);
  for (const autoscaler::Note& note : actions.notes)
    if (note.pod != nullptr) world.note(fmt::format("{}: {}", note.pod->key(), note.message));
  for (const autoscaler::Resize& resize : actions.grow) {
    const auto group = std::ranges::find(snapshot.groups, resize.group, &autoscaler::NodeGroup::id);
    auto shape = group == snapshot.groups.end() ? invalid("a group that is not there") : shape_of_group(world, *group);
    if (!shape) return std::unexpected(shape.error());
    world.note(fmt::format("{} grows from {} to {} (at most {})", resize.group, resize.from, resize.to, resize.max));
    std::vector<std::string> names;
    for (std::int64_t i = resize.from; i < resize.to; ++i) names.push_back(add_node(world, *shape, {}));
    keep_daemons(world, names);
  }
  world.settle();
  for (const autoscaler::NodeRemoval& removal : actions.remove) {
    world.note(fmt::format("{} of {} goes: {:.0f}% of it is in use", removal.node, removal.group, removal.utilization * 100));
    world.set_reason(fmt::format("the autoscaler removes {}", removal.node));
    drain(world, {removal.node});
    remove_nodes(world, {removal.node});
  }
  for (const autoscaler::Unremovable& node : actions.status.unremovable)
    world.note(fmt::format("{} stays: {}", node.node, autoscaler::to_string(node)));
  return {};
}

}  // namespace berth::whatif
