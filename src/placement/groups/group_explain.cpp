#include "placement/groups/group_explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "placement/attempt.h"
#include "placement/groups/group_placement.h"
#include "placement/groups/group_preemption.h"

namespace berth::placement {
namespace {

constexpr std::string_view kHostname = "kubernetes.io/hostname";
constexpr std::size_t kMostKinds = 3, kNamesShown = 8;

std::string some_names(const std::vector<std::string>& names, const char* between) {
  const std::vector<std::string> shown(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(std::min(names.size(), kNamesShown)));
  return fmt::format("{}{}", fmt::join(shown, between), names.size() > kNamesShown ? fmt::format("{}…", between) : "");
}

model::Labels labelled(const model::Labels& labels, std::string_view key, const std::string& value) {
  auto pairs = *labels.pairs();
  std::erase_if(pairs, [&](const auto& pair) { return pair.first == key; });
  pairs.emplace_back(std::string(key), value);
  return model::Labels(std::move(pairs));
}

std::string key_of_domains(const PodGroup& group) {
  std::string out;
  for (const TopologyLevel& level : group.all_levels())
    if (level.is_required) out = level.key;
  return out;
}

class GroupExplainer {
 public:
  GroupExplainer(Trial& trial, const PodGroups& groups, const GroupToExplain& asked)
      : trial_(trial), cluster_(trial.cluster()), groups_(groups), asked_(asked), group_(*asked.group), key_(key_of_domains(*asked.group)) {
    question_ = {.group = &group_, .members = asked.waiting, .standing = standing_of(groups, cluster_, group_.key())};
  }

  GroupExplanation run() {
    out_.group = group_.key();
    out_.min_count = group_.min_count;
    out_.standing = question_.standing.size();
    out_.waiting = asked_.waiting.size();
    out_.topology_key = key_;
    if (asked_.waiting.empty()) return placed();
    if (const auto there = static_cast<std::int64_t>(out_.standing + out_.waiting); there < group_.min_count) return too_few(there);
    const GroupDecision decision = decide_group(trial_, question_);
    out_.message = decision.message;
    if (decision.outcome == GroupDecision::Outcome::kScheduled) return fits(decision);
    if (decision.outcome == GroupDecision::Outcome::kError) {
      out_.verdict = GroupExplanation::Verdict::kError;
      out_.summary = fmt::format("{} cannot be placed: {}", out_.group, decision.message);
      return std::move(out_);
    }
    pending();
    return std::move(out_);
  }

 private:
  GroupExplanation placed();
  GroupExplanation too_few(std::int64_t there);
  GroupExplanation fits(const GroupDecision& decision);
  void pending();
  [[nodiscard]] std::map<std::string, std::vector<NodeIndex>> domains() const;
  [[nodiscard]] DomainReport look_at(const std::string& name, const std::vector<NodeIndex>& nodes);
  [[nodiscard]] bool is_whole();
  /// How many of so many steps have to be taken, one after the other, until the group is whole; 0: all of them are not enough.
  template <typename Step>
  std::size_t steps_until_whole(std::size_t count, Step step);
  void try_nodes(const std::vector<NodeIndex>& nearest);
  void try_cordons(const std::vector<NodeIndex>& nodes);
  void try_labels(const std::string& domain);
  void try_endings();
  void try_victims();

  Trial& trial_;
  Cluster& cluster_;
  const PodGroups& groups_;
  const GroupToExplain& asked_;
  const PodGroup& group_;
  const std::string key_;  ///< Of the narrowest domains that are required; empty: none is.
  GroupQuestion question_;
  GroupExplanation out_;
};

GroupExplanation GroupExplainer::placed() {
  const bool is_whole = static_cast<std::int64_t>(out_.standing) >= group_.min_count;
  out_.verdict = is_whole ? GroupExplanation::Verdict::kPlaced : GroupExplanation::Verdict::kTooFew;
  out_.summary = is_whole ? fmt::format("all {} pods of {} have a node", out_.standing, out_.group)
                          : fmt::format("{} has {} of the {} pods that it needs (minCount): none is tried before the others are there",
                                        out_.group, out_.standing, group_.min_count);
  return std::move(out_);
}

GroupExplanation GroupExplainer::too_few(std::int64_t there) {
  out_.verdict = GroupExplanation::Verdict::kTooFew;
  out_.summary = fmt::format("{} waits for pods, not for room: it has {} of the {} that it needs (minCount), and none is tried before",
                             out_.group, there, group_.min_count);
  return std::move(out_);
}

GroupExplanation GroupExplainer::fits(const GroupDecision& decision) {
  out_.verdict = GroupExplanation::Verdict::kFits;
  std::set<std::string> domains;
  for (std::size_t i = 0; i < decision.members.size(); ++i) {
    if (!decision.members[i].has_place()) continue;
    const NodeInfo& node = *cluster_.node(decision.members[i].decision.node);
    out_.places.emplace_back(asked_.waiting[i]->key, node.name);
    const std::string* domain = key_.empty() ? nullptr : node.label(key_);
    if (domain != nullptr) domains.insert(*domain);
  }
  out_.summary = fmt::format("{} of the {} pods of {} that wait would be placed now{}", out_.places.size(), out_.waiting, out_.group,
                             domains.size() == 1 ? fmt::format(", in {}={}", key_, *domains.begin()) : std::string());
  return std::move(out_);
}

std::map<std::string, std::vector<NodeIndex>> GroupExplainer::domains() const {
  std::map<std::string, std::vector<NodeIndex>> out;
  std::optional<std::string> held;
  if (!key_.empty() && !question_.standing.empty())
    if (const NodeInfo* node = cluster_.node(question_.standing.front()); node != nullptr && node->node != nullptr)
      if (const std::string* value = node->label(key_)) held = *value;
  for (const NodeInfo* node : cluster_.nodes()) {
    const std::string* value = key_.empty() ? nullptr : node->label(key_);
    if (!key_.empty() && (value == nullptr || (held && *value != *held))) continue;
    out[value == nullptr ? std::string() : *value].push_back(node->index);
  }
  return out;
}

DomainReport GroupExplainer::look_at(const std::string& name, const std::vector<NodeIndex>& nodes) {
  DomainReport out{.name = name, .nodes = nodes.size(), .placeable = 0, .stopped = {}, .why = {}};
  Trial there = trial_.within(nodes);
  for (const PodInfoPtr& pod : asked_.waiting) {
    const Placement placement = there.place(pod);
    out.placeable += placement.is_placed();
    if (placement.is_placed() || !out.stopped.empty()) continue;
    out.stopped = pod->key;
    out.why = placement.status.message();
  }
  return out;
}

bool GroupExplainer::is_whole() { return decide_group(trial_, question_).outcome == GroupDecision::Outcome::kScheduled; }

template <typename Step>
std::size_t GroupExplainer::steps_until_whole(std::size_t count, Step step) {
  const auto is_enough = [&](std::size_t steps) {
    Attempt attempt(trial_);
    for (std::size_t i = 0; i < steps; ++i) step(i);
    return is_whole();
  };
  // The first power of two that is enough, then between it and the one before.
  std::size_t enough = 1;
  while (enough < count && !is_enough(enough)) enough = std::min(enough * 2, count);
  if (enough >= count && !is_enough(count)) return 0;
  std::size_t few = enough / 2;
  while (enough - few > 1) {
    const std::size_t middle = few + (enough - few) / 2;
    (is_enough(middle) ? enough : few) = middle;
  }
  return enough;
}

void GroupExplainer::pending() {
  out_.verdict = GroupExplanation::Verdict::kPending;
  const auto all = domains();
  std::vector<std::pair<DomainReport, std::vector<NodeIndex>>> looked;
  for (const auto& [name, nodes] : all)
    if (looked.size() < asked_.most_domains) looked.emplace_back(look_at(name, nodes), nodes);
  std::ranges::stable_sort(looked, [](const auto& a, const auto& b) {
    return a.first.placeable != b.first.placeable ? a.first.placeable > b.first.placeable : a.first.nodes < b.first.nodes;
  });
  for (const auto& one : looked) out_.domains.push_back(one.first);
  const std::size_t needed =
      static_cast<std::size_t>(group_.min_count) - std::min(out_.standing, static_cast<std::size_t>(group_.min_count));
  if (looked.empty()) {
    out_.summary = fmt::format("{} fits nowhere: no node has the label {}{}", out_.group, key_,
                               question_.standing.empty() ? "" : " of the domain that its pods stand in");
  } else {
    const DomainReport& best = out_.domains.front();
    out_.summary = fmt::format("{} fits nowhere: of the {} pods that it needs {} find a place{}", out_.group, needed, best.placeable,
                               key_.empty() ? std::string() : fmt::format(" in the nearest domain, {}={}", key_, best.name));
  }
  try_labels(looked.empty() ? "VALUE" : looked.front().first.name);
  if (!looked.empty()) try_cordons(looked.front().second);
  if (!looked.empty()) try_nodes(looked.front().second);
  try_endings();
  try_victims();
}

/// Nodes like those of the nearest domain, empty ones: of each kind the fewest.
void GroupExplainer::try_nodes(const std::vector<NodeIndex>& nearest) {
  std::map<std::string, std::pair<std::size_t, model::NodeViewPtr>> kinds;
  for (const NodeIndex index : nearest) {
    const NodeInfo& node = *cluster_.node(index);
    std::string key;
    for (const auto& [name, amount] : node.node->allocatable) key += fmt::format("{}={};", name, amount.to_string());
    for (const auto& taint : node.node->taints) key += fmt::format("{}={}:{};", taint.key, taint.value, taint.effect);
    auto& kind = kinds[key];
    if (kind.first++ == 0) kind.second = node.node;
  }
  std::vector<std::pair<std::size_t, model::NodeViewPtr>> most;
  for (const auto& [key, kind] : kinds) most.push_back(kind);
  std::ranges::stable_sort(most, std::greater(), [](const auto& kind) { return kind.first; });
  if (most.size() > kMostKinds) most.resize(kMostKinds);
  for (const auto& [count, like] : most) {
    const std::size_t nodes = steps_until_whole(out_.waiting, [&](std::size_t i) {
      auto added = std::make_shared<model::NodeView>(*like);
      added->meta.name = fmt::format("{}-like-{}", like->name(), i);
      added->meta.uid = added->meta.name;
      added->meta.labels = labelled(like->meta.labels, kHostname, added->meta.name);
      added->unschedulable = false;
      std::erase_if(added->taints, [](const auto& taint) { return taint.key == "node.kubernetes.io/unschedulable"; });
      cluster_.upsert_node(std::move(added));
    });
    if (nodes == 0) continue;
    const std::string* domain = key_.empty() ? nullptr : like->meta.labels.get(key_);
    out_.changes.push_back(fmt::format("{} more node{} like {}, without pods{}", nodes, nodes == 1 ? "" : "s", like->name(),
                                       domain != nullptr ? fmt::format(", in {}={}", key_, *domain) : std::string()));
  }
}

void GroupExplainer::try_cordons(const std::vector<NodeIndex>& nodes) {
  std::vector<model::NodeViewPtr> cordoned;
  for (const NodeIndex index : nodes)
    if (const NodeInfo& node = *cluster_.node(index); node.node->unschedulable) cordoned.push_back(node.node);
  if (cordoned.empty()) return;
  const std::size_t count = steps_until_whole(cordoned.size(), [&](std::size_t i) {
    auto open = std::make_shared<model::NodeView>(*cordoned[i]);
    open->unschedulable = false;
    std::erase_if(open->taints, [](const auto& taint) { return taint.key == "node.kubernetes.io/unschedulable"; });
    cluster_.upsert_node(std::move(open));
  });
  std::vector<std::string> names;
  for (std::size_t i = 0; i < count; ++i) names.push_back(cordoned[i]->name());
  if (count > 0) out_.changes.push_back(fmt::format("kubectl uncordon {}", some_names(names, " ")));
}

/// Nodes without the label of the topology are in no domain.
void GroupExplainer::try_labels(const std::string& domain) {
  if (key_.empty()) return;
  std::vector<model::NodeViewPtr> outside;
  for (const NodeInfo* node : cluster_.nodes())
    if (node->label(key_) == nullptr) outside.push_back(node->node);
  if (outside.empty()) return;
  const std::size_t count = steps_until_whole(outside.size(), [&](std::size_t i) {
    auto node = std::make_shared<model::NodeView>(*outside[i]);
    node->meta.labels = labelled(outside[i]->meta.labels, key_, domain);
    cluster_.upsert_node(std::move(node));
  });
  std::vector<std::string> names;
  for (std::size_t i = 0; i < count; ++i) names.push_back(outside[i]->name());
  if (count > 0)
    out_.changes.push_back(fmt::format("kubectl label node {} {}={}, if that is where {} {}", some_names(names, " "), key_, domain,
                                       count == 1 ? "it" : "they", count == 1 ? "is" : "are"));
}

void GroupExplainer::try_endings() {
  struct Ending {
    GroupEnding told;
    std::vector<PodInfoPtr> pods;
  };
  std::map<std::string, Ending> by_name;
  const auto add = [&](const std::string& what, const PodInfoPtr& pod) {
    Ending& one = by_name[what];
    one.told.priority = one.pods.empty() ? pod->view().priority : std::max(one.told.priority, pod->view().priority);
    one.told.what = what;
    one.pods.push_back(pod);
  };
  for (const NodeInfo* node : cluster_.nodes())
    for (const PodInfoPtr& pod : node->pods) {
      const std::string& group = groups_.group_of(pod->view().meta.uid);
      if (group == group_.key()) continue;
      if (const PodGroupPtr other = group.empty() ? nullptr : groups_.find(group)) {
        add(fmt::format("{} {}", other->is_gang ? "gang" : "PodGroup", group), pod);
      } else if (const auto* owner = pod->view().meta.controller();
                 owner != nullptr && owner->kind != "DaemonSet" && owner->kind != "Node") {
        add(fmt::format("{} {}/{}", owner->kind, pod->view().ns(), owner->name), pod);
      }
    }
  std::vector<Ending> all;
  for (auto& [what, ending] : by_name) {
    ending.told.pods = ending.pods.size();
    all.push_back(std::move(ending));
  }
  std::ranges::stable_sort(all, {}, [](const Ending& one) { return std::pair(one.told.priority, one.told.pods); });
  if (all.size() > asked_.most_trials) all.resize(asked_.most_trials);
  for (const Ending& one : all) {
    if (out_.endings.size() >= asked_.most_endings) return;
    Attempt attempt(trial_);
    for (const PodInfoPtr& pod : one.pods) (void)trial_.evict(pod);
    if (is_whole()) out_.endings.push_back(one.told);
  }
}

void GroupExplainer::try_victims() {
  const GroupVictims found = find_group_victims(trial_, question_, groups_);
  if (!found.status.is_success()) return;
  for (const PodInfoPtr& pod : found.victims) out_.victims.push_back(fmt::format("{} (priority {})", pod->key, pod->view().priority));
}

std::string_view verdict_name(GroupExplanation::Verdict verdict) {
  switch (verdict) {
    case GroupExplanation::Verdict::kPlaced:
      return "Placed";
    case GroupExplanation::Verdict::kFits:
      return "Fits";
    case GroupExplanation::Verdict::kPending:
      return "Pending";
    case GroupExplanation::Verdict::kTooFew:
      return "TooFewPods";
    case GroupExplanation::Verdict::kError:
      return "Error";
  }
  return "";
}

json::Array array_of(const std::vector<std::string>& list) {
  json::Array out;
  for (const auto& one : list) out.emplace_back(one);
  return out;
}

}  // namespace

GroupExplanation explain_group(Trial& trial, const PodGroups& groups, const GroupToExplain& asked) {
  return GroupExplainer(trial, groups, asked).run();
}

json::Value to_json(const GroupExplanation& e) {
  json::Object out{{"podGroup", e.group},
                   {"verdict", verdict_name(e.verdict)},
                   {"summary", e.summary},
                   {"minCount", e.min_count},
                   {"standing", static_cast<std::int64_t>(e.standing)},
                   {"waiting", static_cast<std::int64_t>(e.waiting)}};
  if (!e.topology_key.empty()) out["topologyKey"] = e.topology_key;
  if (!e.message.empty()) out["message"] = e.message;
  json::Array places, domains, endings;
  for (const auto& [pod, node] : e.places) places.push_back(json::Object{{"pod", pod}, {"node", node}});
  for (const DomainReport& one : e.domains) {
    json::Object domain{{"nodes", static_cast<std::int64_t>(one.nodes)}, {"placeable", static_cast<std::int64_t>(one.placeable)}};
    if (!one.name.empty()) domain["name"] = one.name;
    if (!one.stopped.empty()) domain["stoppedBy"] = json::Object{{"pod", one.stopped}, {"message", one.why}};
    domains.push_back(std::move(domain));
  }
  for (const GroupEnding& one : e.endings)
    endings.push_back(json::Object{{"what", one.what}, {"pods", static_cast<std::int64_t>(one.pods)}, {"priority", one.priority}});
  if (!places.empty()) out["places"] = std::move(places);
  if (!domains.empty()) out["domains"] = std::move(domains);
  if (!e.changes.empty()) out["changes"] = array_of(e.changes);
  if (!endings.empty()) out["endings"] = std::move(endings);
  if (!e.victims.empty()) out["victims"] = array_of(e.victims);
  return out;
}

std::string to_text(const GroupExplanation& e) {
  constexpr std::size_t kDomainsShown = 5;
  std::string out = fmt::format("PodGroup {}\n", e.summary);
  for (const auto& [pod, node] : e.places) out += fmt::format("  {} on {}\n", pod, node);
  for (std::size_t i = 0; i < e.domains.size(); ++i) {
    const DomainReport& one = e.domains[i];
    if (i == kDomainsShown) {
      out += fmt::format("  ... and {} more domains\n", e.domains.size() - kDomainsShown);
      break;
    }
    out += fmt::format("  {}: {} of the {} that wait find a place on {} node{}\n",
                       one.name.empty() ? "the cluster" : fmt::format("{}={}", e.topology_key, one.name), one.placeable, e.waiting,
                       one.nodes, one.nodes == 1 ? "" : "s");
    if (!one.stopped.empty()) out += fmt::format("    {} stops it: {}\n", one.stopped, one.why);
  }
  if (e.verdict != GroupExplanation::Verdict::kPending) return out;
  if (!e.changes.empty() || !e.endings.empty()) out += "It would be placed with any one of these:\n";
  for (const std::string& one : e.changes) out += fmt::format("  {}\n", one);
  for (const GroupEnding& one : e.endings)
    out += fmt::format("  the end of {} ({} pod{}, priority {})\n", one.what, one.pods, one.pods == 1 ? "" : "s", one.priority);
  if (e.changes.empty() && e.endings.empty()) out += "No node added, opened or labelled, and no single group's end, would place it.\n";
  if (!e.victims.empty()) out += fmt::format("The scheduler would evict for it: {}\n", some_names(e.victims, ", "));
  return out;
}

}  // namespace berth::placement
