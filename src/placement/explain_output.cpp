#include <fmt/format.h>

#include <algorithm>

#include "placement/explain.h"
#include "placement/lacks.h"

namespace berth::placement {
namespace {

std::string_view verdict_name(Explanation::Verdict verdict) {
  switch (verdict) {
    case Explanation::Verdict::kRuns:
      return "Runs";
    case Explanation::Verdict::kFits:
      return "Fits";
    case Explanation::Verdict::kPending:
      return "Pending";
    case Explanation::Verdict::kGated:
      return "Gated";
    case Explanation::Verdict::kError:
      return "Error";
    case Explanation::Verdict::kOtherScheduler:
      return "OtherScheduler";
  }
  return "";
}

json::Array array_of(const std::vector<std::string>& list) {
  json::Array out;
  for (const auto& one : list) out.emplace_back(one);
  return out;
}

void add_nodes(const Explanation& e, bool is_wide, std::string& out) {
  constexpr std::size_t kShort = 10;
  std::size_t width = 4, shown = 0;
  for (const auto& node : e.nodes) width = std::max(width, node.name.size());
  out += fmt::format("\n{:<{}}  VERDICT\n", "NODE", width);
  for (const auto& node : e.nodes) {
    if (!is_wide && shown++ == kShort) {
      out += fmt::format("... and {} more nodes (-o wide shows all)\n", e.nodes.size() - kShort);
      break;
    }
    if (node.is_feasible) {
      out += fmt::format("{:<{}}  fits, score {}", node.name, width, node.total);
      std::vector<std::string> parts;
      for (const auto& [plugin, score] : node.scores) parts.push_back(fmt::format("{} {}", plugin, score));
      if (is_wide && !parts.empty()) out += fmt::format(" = {}", fmt::join(parts, " + "));
      if (!node.would_refuse.empty()) out += fmt::format("; {}", node.would_refuse);
      out += "\n";
      continue;
    }
    std::string indent;
    for (const auto& rejection : node.rejections) {
      const std::string plugin = rejection.plugin.empty() ? "" : rejection.plugin + ": ";
      const bool has_names = !rejection.lacks.empty();
      out += fmt::format("{:<{}}  {}{}{}\n", indent.empty() ? node.name : "", width, plugin, has_names ? "would need " : "",
                         some_of(has_names ? rejection.lacks : rejection.reasons, is_wide ? SIZE_MAX : 5));
      indent = " ";
      if (!is_wide) continue;
      if (has_names) out += fmt::format("{:<{}}    {}\n", "", width, fmt::join(rejection.reasons, ", "));
      out += fmt::format("{:<{}}    {}\n", "", width,
                         rejection.code == "Unschedulable" ? "(evicting pods could help)" : "(evicting pods cannot help)");
    }
  }
}

}  // namespace

json::Value to_json(const Explanation& e) {
  json::Array nodes;
  for (const auto& node : e.nodes) {
    json::Object one = {{"name", node.name}, {"feasible", node.is_feasible}};
    if (node.is_feasible) {
      json::Object scores;
      for (const auto& [plugin, score] : node.scores) scores[plugin] = score;
      one["total"] = node.total;
      one["scores"] = std::move(scores);
      if (!node.would_refuse.empty()) one["wouldRefuse"] = node.would_refuse;
    } else {
      json::Array rejections;
      for (const auto& rejection : node.rejections)
        rejections.push_back(json::Object{{"plugin", rejection.plugin},
                                          {"code", rejection.code},
                                          {"reasons", array_of(rejection.reasons)},
                                          {"lacks", array_of(rejection.lacks)}});
      one["rejections"] = std::move(rejections);
      one["lacks"] = array_of(node.lacks);
    }
    nodes.push_back(std::move(one));
  }
  json::Object out = {{"pod", e.pod}, {"scheduler", e.scheduler}, {"verdict", verdict_name(e.verdict)}, {"summary", e.summary}};
  if (!e.message.empty()) out["message"] = e.message;
  if (!e.configuration.empty()) out["configuration"] = e.configuration;
  if (!e.contradiction.empty()) out["contradiction"] = e.contradiction;
  if (!e.notes.empty()) out["notes"] = array_of(e.notes);
  if (!e.current_node.empty()) out["currentNode"] = e.current_node;
  if (e.resize) out["resize"] = to_json(*e.resize);
  out["bestNodes"] = array_of(e.best_nodes);
  if (!e.why_winner.empty()) out["whyWinner"] = array_of(e.why_winner);
  if (!e.nearest_node.empty()) out["nearestNode"] = e.nearest_node;
  if (e.verdict == Explanation::Verdict::kPending) {
    json::Array relaxations;
    for (const auto& one : e.relaxations)
      relaxations.push_back(json::Object{{"changes", array_of(one.changes)}, {"nodes", array_of(one.nodes)}});
    out["relaxations"] = std::move(relaxations);
    json::Array changes;
    for (const auto& one : e.node_changes) {
      json::Object change = {{"node", one.node}};
      if (one.is_new_node)
        change["addOneLikeIt"] = true;
      else
        change["commands"] = array_of(one.commands);
      changes.push_back(std::move(change));
    }
    out["nodeChanges"] = std::move(changes);
    if (e.eviction)
      out["eviction"] = json::Object{{"node", e.eviction->node},
                                     {"victims", array_of(e.eviction->victims)},
                                     {"violatedBudgets", array_of(e.eviction->broken_budgets)},
                                     {"withoutController", array_of(e.eviction->orphans)},
                                     {"allowed", e.eviction->is_allowed}};
  }
  out["nodes"] = std::move(nodes);
  return out;
}

std::string to_text(const Explanation& e, bool is_wide) {
  std::string out = e.summary + ".\n";
  if (!e.contradiction.empty()) out += e.contradiction + "\n";
  if (!e.message.empty() && e.verdict == Explanation::Verdict::kPending) out += fmt::format("  {}\n", e.message);
  if (e.resize) out += words_of(*e.resize) + ".\n";
  for (const auto& note : e.notes) out += fmt::format("  {}.\n", note);
  for (const auto& line : e.why_winner) out += fmt::format("  {}\n", line);
  if (e.verdict == Explanation::Verdict::kPending) {
    const auto nearest = std::ranges::find(e.nodes, e.nearest_node, &NodeReport::name);
    if (nearest != e.nodes.end()) {
      std::vector<std::string> lacks = nearest->lacks;
      if (lacks.empty())
        for (const auto& rejection : nearest->rejections) lacks.insert(lacks.end(), rejection.reasons.begin(), rejection.reasons.end());
      out += fmt::format("\nNearest node: {}; it would need\n", nearest->name);
      constexpr std::size_t kMost = 12;
      for (std::size_t i = 0; i < lacks.size() && (is_wide || i < kMost); ++i) out += fmt::format("  - {}\n", lacks[i]);
      if (!is_wide && lacks.size() > kMost) out += fmt::format("  ... and {} more (-o wide shows all)\n", lacks.size() - kMost);
    }
    if (!e.relaxations.empty()) {
      out += "\nThe smallest change of the pod that would place it, any one of:\n";
      for (std::size_t i = 0; i < e.relaxations.size() && (is_wide || i < 5); ++i)
        out += fmt::format("  - {} -> {}\n", fmt::join(e.relaxations[i].changes, ", and "),
                           some_of(e.relaxations[i].nodes, is_wide ? SIZE_MAX : 3));
      if (!is_wide && e.relaxations.size() > 5) out += fmt::format("  ... and {} more\n", e.relaxations.size() - 5);
    } else {
      out += "\nNo change of one or two of the pod's own constraints would place it: it needs other nodes.\n";
    }
    if (!e.node_changes.empty()) out += "\nOr a change of the nodes, any one of:\n";
    for (const auto& one : e.node_changes)
      out +=
          one.is_new_node ? fmt::format("  - one more node like {}\n", one.node) : fmt::format("  - {}\n", fmt::join(one.commands, " && "));
    if (e.eviction) {
      out += fmt::format("\n{} on {}:\n",
                         e.eviction->is_allowed ? "Preemption would evict" : "Evicting would help (its preemptionPolicy forbids it)",
                         e.eviction->node);
      for (const auto& victim : e.eviction->victims) out += fmt::format("  - {}\n", victim);
      if (!e.eviction->broken_budgets.empty())
        out += fmt::format("  That violates the disruption budget(s) {}.\n", fmt::join(e.eviction->broken_budgets, ", "));
      if (!e.eviction->orphans.empty()) out += fmt::format("  Nothing would make these anew: {}.\n", fmt::join(e.eviction->orphans, ", "));
    }
  }
  if (!e.nodes.empty()) add_nodes(e, is_wide, out);
  if (!e.configuration.empty()) out += fmt::format("\nBy the configuration of {}: {}.\n", e.scheduler, e.configuration);
  return out;
}

}  // namespace berth::placement
