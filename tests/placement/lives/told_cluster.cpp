#include "tests/placement/lives/told_cluster.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tests/placement/decision_check.h"
#include "tests/placement/random_cluster.h"

namespace berth::placement::testing {
namespace {

Profile with(Profile profile, const std::set<std::string>& plugins) {
  const auto leave = [&](auto& uses) { std::erase_if(uses, [&](const auto& use) { return !plugins.contains(use.name); }); };
  leave(profile.pre_filter);
  leave(profile.filter);
  return profile;
}

}  // namespace

ToldCluster::ToldCluster(berth::testing::LongLife& told, Profile profile, const std::set<std::string>& plugins, std::size_t waiting)
    : told_(told),
      profile_(with(std::move(profile), plugins)),
      framework_(framework_of(profile_)),
      cluster_(profile_.era),
      trial_(cluster_, framework_, {.engine = {.tie_break = EngineOptions::TieBreak::kFirstByName}}),
      pending_(waiting) {
  for (const auto& use : profile_.filter) {
    alone_.emplace_back(use.name, framework_of(with(profile_, {use.name})));
    plugins_.push_back(*make_plugin(*find_plugin(use.name), profile_));
  }
}

std::string ToldCluster::key_of(const json::Value& object) {
  return fmt::format("{}/{}/{}", json::get_string(object, {"kind"}), json::get_string(object, {"metadata", "namespace"}),
                     json::get_string(object, {"metadata", "name"}));
}

PodInfoPtr ToldCluster::read(const json::Value& document) const {
  return PodInfo::make(std::make_shared<const model::PodView>(model::PodView::parse(document)), profile_.era);
}

const json::Value* ToldCluster::find(std::string_view kind, std::string_view ns, std::string_view name) const {
  const auto found = objects_.find(fmt::format("{}/{}/{}", kind, ns, name));
  return found == objects_.end() ? nullptr : &found->second;
}

void ToldCluster::begin_with(const json::Value& object) {
  objects_[key_of(object)] = object;
  cluster_.upsert(object);
}

void ToldCluster::wait(std::size_t i, json::Value document) {
  const PodInfoPtr pod = read(document);
  told_.tell(fmt::format("waits: {}", json::serialize(document)));
  pending_[i] = {std::move(document), pod, {}, {}, false};
  look(pending_[i]);
}

void ToldCluster::change(const json::Value& before, const json::Value& now, ClusterEvent event) {
  const bool goes = now.is_null();
  const json::Value& object = goes ? before : now;
  const std::string kind(json::get_string(object, {"kind"}));
  if (goes) {
    objects_.erase(key_of(before));
    cluster_.remove(kind, json::get_string(before, {"metadata", "namespace"}), json::get_string(before, {"metadata", "name"}));
  } else {
    begin_with(now);
  }
  told_.tell(goes ? "goes: " + key_of(before) : "comes: " + json::serialize(now));
  EventChange change{.event = event};
  std::optional<model::NodeView> node_before, node;
  PodInfoPtr pod_before, pod;
  if (kind == "Node") {
    if (!before.is_null()) change.node_before = &node_before.emplace(model::NodeView::parse(before));
    if (!goes) change.node = &node.emplace(model::NodeView::parse(now));
  } else if (kind == "Pod") {
    if (!before.is_null()) change.pod_before = (pod_before = read(before)).get();
    if (!goes) change.pod = (pod = read(now)).get();
  } else {
    if (!before.is_null()) change.object_before = &before;
    if (!goes) change.object = &now;
  }
  tell_plugins(change, 0, pending_.size());
}

void ToldCluster::change_own(std::size_t i, json::Value now, ClusterEvent event) {
  Pending& one = pending_[i];
  told_.tell(fmt::format("waits, changed: {}", json::serialize(now)));
  const PodInfoPtr before = one.pod;
  one.pod = read(now);
  one.document = std::move(now);
  tell_plugins({.event = event, .pod_before = before.get(), .pod = one.pod.get()}, i, 1);
}

void ToldCluster::tell_plugins(const EventChange& change, std::size_t first, std::size_t count) {
  const auto shown_of = [](const json::Value* object) { return object == nullptr ? "not there" : json::serialize(*object); };
  const std::string said = shown_of(change.object_before);
  for (std::size_t i = first; i < first + count; ++i) {
    Pending& one = pending_[i];
    std::string woken;
    bool by_holder = false;
    for (const PluginPtr& plugin : plugins_) {
      if (!plugin->events_to_register().has(change.event) || !plugin->queueing_hint(cluster_, *one.pod, change)) continue;
      woken += fmt::format(" {}", plugin->name());
      by_holder = by_holder || one.held_by.contains(std::string(plugin->name()));
    }
    if (!woken.empty()) told_.tell(fmt::format("  wakes {} by{}", one.pod->key, woken));
    const std::set<std::string> held_by = one.held_by;
    const bool had_failed = one.has_failed;
    look(one);
    // As in Kubernetes nobody is woken where a node goes (what stood there goes after it), where one comes that attaches without limit (its
    // CSINode comes after it), nor where a neighbour attaches the very volume.
    const bool is_told_later = change.event == ClusterEvent::kNodeDeleted ||
                               ((change.event == ClusterEvent::kAssignedPodAdded || change.event == ClusterEvent::kNodeAdded) &&
                                held_by.contains("NodeVolumeLimits"));
    const bool may_have_come = one.held_by.empty() && !one.has_failed && !is_told_later;
    if (may_have_come && !held_by.empty() && !had_failed && !by_holder)
      ADD_FAILURE() << one.pod->key << " fits now; " << fmt::format("{}", fmt::join(held_by, ", "))
                    << " held it back, and this wakes it for none of them:\n"
                    << told_.last(16) << "was " << said;
  }
}

void ToldCluster::look(Pending& one) {
  std::string all;
  for (const auto& [name, framework] : alone_) all += fmt::format("\n    {}: {}", name, shown(evaluate(*framework, cluster_, *one.pod)));
  const Evaluation said = evaluate(*framework_, cluster_, *one.pod);
  one.held_by.clear();
  one.has_failed = !said.errors.empty();
  if (said.feasible.empty())
    for (const auto& plugin : said.diagnosis.plugins) one.held_by.emplace(plugin);
  const Decision decision = trial_.decide(one.pod);
  // Where a node's answer is an error, the engine may have been content before it came there.
  if (const std::string wrong = one.has_failed ? "" : difference(cluster_, *framework_, *one.pod, decision, true); !wrong.empty())
    ADD_FAILURE() << wrong << "\n" << told_.last();
  if (all == one.shown) return;
  told_.tell(fmt::format("  {}:{}", one.pod->key, all));
  one.shown = std::move(all);
}

std::string ToldCluster::shown(const Evaluation& said) const {
  if (!said.errors.empty()) return "error " + said.errors.front();
  if (!said.pre_filter.is_success()) return fmt::format("{} {}", code_name(said.pre_filter.code), said.pre_filter.message());
  std::string out;
  for (const auto& one : said.rejected)
    out += fmt::format("{} {} {}. ", cluster_.node(one.node)->name, code_name(one.status.code), one.status.message());
  return out;
}

std::uint64_t ToldCluster::more_seeds() {
  const char* seeds = std::getenv("BERTH_SEEDS");
  return seeds == nullptr ? 0 : std::stoull(seeds);
}

void ToldCluster::bind(std::size_t i) {
  Pending& one = pending_[i];
  if (!one.held_by.empty() || one.has_failed) return;
  const Decision decision = trial_.decide(one.pod);
  if (decision.outcome != Decision::Outcome::kScheduled) return;
  auto reservation = trial_.reserve(one.pod, decision.node);
  if (!reservation) return told_.tell(fmt::format("  {} is not reserved: {}", one.pod->key, reservation.error().message()));
  const auto writes = reservation->pre_bind(cluster_);
  if (writes)
    for (const PreBindWrite& write : *writes)
      told_.tell(fmt::format("  {} on {} writes {}/{}/{} {}{}", one.pod->key, decision.node_name, write.resource, write.ns, write.name,
                             json::serialize(write.merge_patch), write.wait_bound ? ", waits" : ""));
  const std::vector<Pending> before = pending_;
  for (Pending& other : pending_)
    if (&other != &one) look(other);
  trial_.undo(*reservation);
  for (std::size_t k = 0; k < pending_.size(); ++k) {
    look(pending_[k]);
    if (pending_[k].shown != before[k].shown) ADD_FAILURE() << "something is left of " << one.pod->key << ":\n" << told_.last(16);
  }
}

}  // namespace berth::placement::testing
