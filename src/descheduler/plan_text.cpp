// How a cycle's result is shown.
#include <fmt/format.h>

#include <algorithm>

#include "descheduler/descheduler.h"

namespace berth::descheduler {
namespace {

std::string table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string out;
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) out += i + 1 == row.size() ? row[i] : fmt::format("{:<{}}", row[i], widths[i] + 3);
    out += "\n";
  }
  return out;
}

std::string destination_of(const Removal& removal) {
  if (!removal.destination.empty()) return removal.destination;
  return removal.pod->view().is_terminal() ? "<finished>" : "<not asked>";
}

std::string_view outcome_word(Outcome outcome) {
  switch (outcome) {
    case Outcome::kPlanned:
    case Outcome::kEvicted:
      return "evicted";
    case Outcome::kNodeLimit:
      return "limit of the node";
    case Outcome::kNamespaceLimit:
      return "limit of the namespace";
    case Outcome::kTotalLimit:
      return "limit of the cycle";
    case Outcome::kNoBetterPlace:
      return "no better place";
    case Outcome::kProtected:
      return "disruption budget";
    case Outcome::kFailed:
      break;
  }
  return "failed";
}

}  // namespace

std::string to_text(const CycleResult& result, bool is_plan, std::size_t most_kept) {
  std::vector<std::vector<std::string>> evicted = {{"POD", "FROM", "TO", "STRATEGY", "WHY"}};
  std::vector<std::vector<std::string>> kept = {{"POD", "ON", "STRATEGY", "KEPT BY", "BECAUSE"}};
  std::size_t kept_count = 0;
  for (const Removal& removal : result.removals) {
    const std::string strategy(strategy_name(removal.strategy));
    if (goes(removal.outcome))
      evicted.push_back({removal.pod->key(), removal.pod->node(), destination_of(removal), strategy, removal.why});
    else if (++kept_count <= most_kept)
      kept.push_back({removal.pod->key(), removal.pod->node(), strategy, std::string(outcome_word(removal.outcome)), removal.message});
  }
  std::string out;
  for (const std::string& note : result.notes) out += note + "\n";
  for (const StrategyRun& run : result.runs)
    if (!run.error.empty()) out += fmt::format("{} of profile {} did not run: {}\n", strategy_name(run.strategy), run.profile, run.error);
  if (evicted.size() > 1) out += table(evicted) + "\n";
  if (kept.size() > 1) out += table(kept);
  if (kept_count > most_kept) out += fmt::format("and {} more that stay\n", kept_count - most_kept);
  if (kept.size() > 1) out += "\n";
  if (!result.standing.empty()) {
    std::vector<std::vector<std::string>> standing = {{"POD", "ON", "STAYS BECAUSE"}};
    for (const Standing& one : result.standing) standing.push_back({one.pod->key(), one.pod->node(), one.why});
    out += table(standing) + "\n";
  }
  const std::size_t count = evicted.size() - 1;
  out += fmt::format("{} pod{} {}\n", count, count == 1 ? "" : "s", is_plan ? "would be evicted; nothing was changed" : "evicted");
  return out;
}

json::Value to_json(const CycleResult& result, bool is_plan) {
  json::Array evictions, kept;
  for (const Removal& removal : result.removals) {
    json::Object one = {{"namespace", removal.pod->view().ns()},       {"pod", removal.pod->view().name()}, {"node", removal.pod->node()},
                        {"strategy", strategy_name(removal.strategy)}, {"profile", removal.profile},        {"why", removal.why}};
    if (goes(removal.outcome)) {
      if (!removal.destination.empty()) one["destination"] = removal.destination;
      evictions.push_back(std::move(one));
    } else {
      one["keptBy"] = outcome_word(removal.outcome);
      one["because"] = removal.message;
      kept.push_back(std::move(one));
    }
  }
  json::Array standing;
  for (const Standing& one : result.standing)
    standing.push_back(json::Object{
        {"namespace", one.pod->view().ns()}, {"pod", one.pod->view().name()}, {"node", one.pod->node()}, {"because", one.why}});
  json::Array notes;
  for (const std::string& note : result.notes) notes.emplace_back(note);
  for (const StrategyRun& run : result.runs)
    if (!run.error.empty()) notes.emplace_back(fmt::format("{} did not run: {}", strategy_name(run.strategy), run.error));
  json::Object out{{"dryRun", is_plan}, {"evictions", std::move(evictions)}, {"kept", std::move(kept)}, {"notes", std::move(notes)}};
  if (!standing.empty()) out["standing"] = std::move(standing);
  return out;
}

}  // namespace berth::descheduler
