// An answer for people.
#include <fmt/format.h>

#include <algorithm>

#include "whatif/whatif.h"

namespace berth::whatif {
namespace {

using Row = std::vector<std::string>;

std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
}

/// Columns as wide as their widest cell, the last one as long as it is; more than `most` rows are counted only.
std::string table(const Row& head, const std::vector<Row>& rows, std::size_t most) {
  std::vector<std::size_t> widths;
  for (const std::string& cell : head) widths.push_back(width_of(cell));
  const std::size_t shown = std::min(most, rows.size());
  for (std::size_t i = 0; i < shown; ++i)
    for (std::size_t k = 0; k < head.size(); ++k) widths[k] = std::max(widths[k], width_of(rows[i][k]));
  std::string out;
  const auto line = [&](const Row& row) {
    std::string text = "  ";
    for (std::size_t k = 0; k < row.size(); ++k) text += k + 1 == row.size() ? row[k] : fmt::format("{:<{}}  ", row[k], widths[k]);
    while (text.ends_with(' ')) text.pop_back();
    out += text + "\n";
  };
  line(head);
  for (std::size_t i = 0; i < shown; ++i) line(rows[i]);
  if (rows.size() > shown) out += fmt::format("  … and {} more (-o json has all)\n", rows.size() - shown);
  return out;
}

std::string text_of(const json::Value& value, std::string_view key) { return std::string(json::get_string(value, {key})); }
std::string or_none(std::string text) { return text.empty() ? "<none>" : text; }
std::string counted(std::int64_t count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

std::string percent(const json::Value& use, std::string_view key) {
  const json::Value* value = json::find(use, key);
  return value != nullptr && value->is_number() ? fmt::format("{:.0f}%", value->to_number<double>() * 100) : "-";
}
std::string change_of(const json::Value& entry, std::string_view key, bool is_share) {
  const json::Value *before = json::find(entry, "before"), *after = json::find(entry, "after");
  const auto one = [&](const json::Value* use) {
    if (use == nullptr || !use->is_object()) return std::string("-");
    return is_share ? percent(*use, key) : std::to_string(json::get_int(*use, {key}));
  };
  const std::string a = one(before), b = one(after);
  return a == b ? a : a + " → " + b;
}

std::string summary_words(const json::Value& answer) {
  const auto count = [&](std::string_view key) { return json::get_int(answer, {"summary", key}); };
  std::vector<std::string> parts;
  const auto add = [&](std::int64_t many, std::string words) {
    if (many > 0) parts.push_back(std::move(words));
  };
  add(count("moves"), counted(count("moves"), "pod moves", "pods move"));
  add(count("placed"), counted(count("placed"), "new or waiting pod is placed", "new or waiting pods are placed"));
  add(count("pending"), counted(count("pending"), "pod stays pending", "pods stay pending"));
  add(count("blocked"), counted(count("blocked"), "eviction is refused", "evictions are refused"));
  add(count("preempted"), counted(count("preempted"), "pod is preempted", "pods are preempted"));
  add(count("deleted"), counted(count("deleted"), "pod is deleted", "pods are deleted"));
  add(count("lost"), counted(count("lost"), "pod is lost for good", "pods are lost for good"));
  add(count("budgetsBroken"), counted(count("budgetsBroken"), "budget is broken", "budgets are broken"));
  std::string out = parts.empty() ? "Nothing changes" : fmt::format("{}", fmt::join(parts, ", "));
  out += ".\n";
  if (count("pendingBefore") > 0)
    out += fmt::format("{} before, and still.\n", counted(count("pendingBefore"), "pod was pending", "pods were pending"));
  const std::int64_t before = json::get_int(answer, {"summary", "nodes", "before"}),
                     after = json::get_int(answer, {"summary", "nodes", "after"});
  if (before != after) out += fmt::format("{} nodes become {}.\n", before, after);
  if (const json::Value* cost = json::find(answer, "cost")) {
    const double was = json::find(*cost, "before")->to_number<double>(), is = json::find(*cost, "after")->to_number<double>();
    out += fmt::format("Cost an hour: {:.3f} → {:.3f}.\n", was, is);
    if (const auto& missing = json::get_array(*cost, {"unpriced"}); !missing.empty()) {
      out += "No price is known of:";
      for (const json::Value& one : missing) out += " " + std::string(json::as_view(one));
      out += "\n";
    }
  }
  return out;
}

void add_each(std::string& out, const json::Value& answer, std::size_t most) {
  if (json::find(answer, "eachCount") == nullptr) return;
  const std::int64_t tried = json::get_int(answer, {"eachCount"}), failing = json::get_int(answer, {"eachPending"});
  out += failing == 0 ? fmt::format("Each of {} single losses leaves every pod that comes back with a place.\n", tried)
                      : fmt::format("{} of {} single losses leave something pending.\n", failing, tried);
  std::vector<Row> rows;
  for (const json::Value& one : json::get_array(answer, {"each"})) {
    std::string why;
    if (const auto& pending = json::get_array(one, {"pending"}); !pending.empty())
      why = fmt::format("{}: {}", json::get_string(pending[0], {"pod"}), json::get_string(pending[0], {"message"}));
    else if (const auto& blocked = json::get_array(one, {"blocked"}); !blocked.empty())
      why = fmt::format("{}: {}", json::get_string(blocked[0], {"pod"}), json::get_string(blocked[0], {"reason"}));
    else if (const auto& gone = json::get_array(one, {"lostPods"}); !gone.empty())
      why = fmt::format("{}: {}", json::get_string(gone[0], {"pod"}), json::get_string(gone[0], {"reason"}));
    std::string broken;
    for (const json::Value& budget : json::get_array(one, {"broken"}))
      broken += (broken.empty() ? "" : ", ") + std::string(json::as_view(budget));
    rows.push_back({text_of(one, "lost"), std::to_string(json::get_int(one, {"moves"})),
                    std::to_string(json::get_int(one, {"pendingCount"})), std::to_string(json::get_int(one, {"lostPodsCount"})),
                    std::to_string(json::get_int(one, {"blockedCount"})), or_none(broken), why});
  }
  if (!rows.empty()) out += "\n" + table({"LOSS", "MOVES", "PENDING", "LOST", "REFUSED", "BUDGETS BROKEN", "FOR EXAMPLE"}, rows, most);
}

void add_capacity(std::string& out, const json::Value& answer, std::size_t most) {
  const json::Value* capacity = json::find(answer, "capacity");
  if (capacity == nullptr) return;
  // cluster-capacity's words: its users look for them.
  out += fmt::format("The cluster can schedule {} instance(s) of the pod {}.\n\nTermination reason: {}\n",
                     json::get_int(*capacity, {"total"}), json::get_string(*capacity, {"pod"}), json::get_string(*capacity, {"reason"}));
  std::vector<Row> limits, zones, nodes;
  for (const json::Value& one : json::get_array(*capacity, {"limits"}))
    limits.push_back({text_of(one, "reason"), std::to_string(json::get_int(one, {"nodes"}))});
  for (const json::Value& one : json::get_array(*capacity, {"zones"}))
    zones.push_back({or_none(text_of(one, "name")), std::to_string(json::get_int(one, {"count"}))});
  for (const json::Value& one : json::get_array(*capacity, {"nodes"}))
    nodes.push_back({text_of(one, "name"), or_none(text_of(one, "zone")), std::to_string(json::get_int(one, {"count"}))});
  if (!limits.empty()) out += "\nWhat stops the next one, the most frequent first:\n" + table({"REASON", "NODES"}, limits, most);
  if (zones.size() > 1) out += "\nPod distribution among zones:\n" + table({"ZONE", "INSTANCES"}, zones, most);
  if (!nodes.empty()) out += "\nPod distribution among nodes:\n" + table({"NODE", "ZONE", "INSTANCES"}, nodes, most);
}

void add_pack(std::string& out, const json::Value& answer, std::size_t most) {
  const json::Value* pack = json::find(answer, "pack");
  if (pack == nullptr) return;
  const std::string shape = text_of(*pack, "shape");
  out += fmt::format("{} nodes are there; {}{} do.\n", json::get_int(*pack, {"nodesNow"}), json::get_int(*pack, {"nodesNeeded"}),
                     shape.empty() ? "" : " of " + shape);
  if (json::find(*pack, "lowerBound") != nullptr)
    out += fmt::format("By the sums of requests fewer than {} cannot do.\n", json::get_int(*pack, {"lowerBound"}));
  std::vector<Row> shapes, steps;
  for (const json::Value& one : json::get_array(*pack, {"shapes"}))
    shapes.push_back({text_of(one, "shape"),
                      json::get_int(one, {"nodesNeeded"}) == 0 ? "none will do" : std::to_string(json::get_int(one, {"nodesNeeded"})),
                      json::find(one, "cost") == nullptr ? "-" : fmt::format("{:.3f}", json::find(one, "cost")->to_number<double>())});
  for (const json::Value& one : json::get_array(*pack, {"steps"})) {
    std::string pods;
    for (const json::Value& pod : json::get_array(one, {"evictions"})) pods += (pods.empty() ? "" : ", ") + std::string(json::as_view(pod));
    steps.push_back({std::to_string(steps.size() + 1), text_of(one, "step"), text_of(one, "node"), pods});
  }
  if (shapes.size() > 1) out += "\nShapes:\n" + table({"SHAPE", "NODES", "COST AN HOUR"}, shapes, most);
  if (!steps.empty()) out += "\nSteps, in this order:\n" + table({"", "STEP", "NODE", "EVICTIONS"}, steps, most);
  out += "\n";
}

void add_pods(std::string& out, const json::Value& answer, std::size_t most) {
  std::vector<Row> pending, moves, refused, others;
  for (const json::Value& one : json::get_array(answer, {"pending"})) {
    std::string words = text_of(one, "message");
    if (const json::Value* go = json::find(one, "wouldHaveToGo")) {
      if (const std::string message = text_of(*go, "message"); !message.empty()) words += "; " + message;
      std::string victims;
      for (const json::Value& victim : json::get_array(*go, {"pods"}))
        victims += fmt::format("{}{} (priority {})", victims.empty() ? "" : ", ", json::get_string(victim, {"pod"}),
                               json::get_int(victim, {"priority"}));
      if (!victims.empty()) words += fmt::format("; would have to go from {}: {}", json::get_string(*go, {"node"}), victims);
    }
    pending.push_back(
        {text_of(one, "pod"), or_none(text_of(one, "from")), json::get_bool(one, {"before"}) ? "before" : text_of(one, "reason"), words});
  }
  for (const json::Value& one : json::get_array(answer, {"moves"})) {
    std::string why = text_of(one, "reason");
    if (const std::string when = text_of(one, "when"); !when.empty()) why += " (" + when + ")";
    moves.push_back({text_of(one, "pod"), or_none(text_of(one, "from")), text_of(one, "to"), why});
  }
  for (const json::Value& one : json::get_array(answer, {"evictions"})) {
    const std::string outcome = text_of(one, "outcome");
    if (outcome == "blocked")
      refused.push_back({text_of(one, "pod"), text_of(one, "node"), or_none(text_of(one, "budget")), text_of(one, "reason")});
    else if (outcome != "evicted")
      others.push_back({text_of(one, "pod"), or_none(text_of(one, "node")), outcome, text_of(one, "reason")});
  }
  if (!pending.empty()) out += "\nPending:\n" + table({"POD", "WAS ON", "BECAUSE", "MESSAGE"}, pending, most);
  if (!refused.empty()) out += "\nRefused evictions:\n" + table({"POD", "NODE", "BUDGET", "REASON"}, refused, most);
  if (!others.empty()) out += "\nPods that go:\n" + table({"POD", "NODE", "OUTCOME", "REASON"}, others, most);
  if (!moves.empty()) out += "\nMoves:\n" + table({"POD", "FROM", "TO", "BECAUSE"}, moves, most);
}

void add_fullness(std::string& out, const json::Value& answer, std::size_t most) {
  std::vector<Row> budgets, zones, nodes;
  for (const json::Value& one : json::get_array(answer, {"budgets"}))
    budgets.push_back({text_of(one, "budget"), change_of(one, "healthy", false), std::to_string(json::get_int(one, {"lowest"})),
                       change_of(one, "desired", false), change_of(one, "allowed", false),
                       json::get_bool(one, {"broken"}) ? "broken" : ""});
  for (const json::Value& one : json::get_array(answer, {"zones"}))
    zones.push_back({or_none(text_of(one, "name")), change_of(one, "nodes", false), change_of(one, "pods", false),
                     change_of(one, "cpu", true), change_of(one, "memory", true)});
  for (const json::Value& one : json::get_array(answer, {"nodes"}))
    nodes.push_back({text_of(one, "name"), or_none(text_of(one, "zone")), text_of(one, "state"), change_of(one, "pods", false),
                     change_of(one, "cpu", true), change_of(one, "memory", true)});
  if (!budgets.empty()) out += "\nBudgets:\n" + table({"BUDGET", "HEALTHY", "LOWEST", "WANTED", "ALLOWED", ""}, budgets, most);
  if (zones.size() > 1 || (!zones.empty() && !nodes.empty()))
    out += "\nZones:\n" + table({"ZONE", "NODES", "PODS", "CPU", "MEMORY"}, zones, most);
  if (!nodes.empty()) out += "\nNodes:\n" + table({"NODE", "ZONE", "STATE", "PODS", "CPU", "MEMORY"}, nodes, most);
}

/// "revision 1234, the newest change at 2026-…"
std::string moment_words(const json::Value& moment) {
  std::string out;
  const auto add = [&](std::string_view key, std::string_view words) {
    if (const std::string text = text_of(moment, key); !text.empty()) out += fmt::format("{}{} {}", out.empty() ? "" : ", ", words, text);
  };
  add("revision", "revision");
  add("newest", "the newest change at");
  add("asked", "asked at");
  return out;
}

std::string notes_of(const json::Value& answer) {
  std::string out;
  for (const json::Value& note : json::get_array(answer, {"notes"}))
    out += (out.empty() ? "\nNotes:\n  - " : "  - ") + std::string(json::as_view(note)) + "\n";
  const json::Value* moment = json::find(answer, "of");
  if (const std::string words = moment == nullptr ? "" : moment_words(*moment); !words.empty())
    out += fmt::format("\nOf the cluster at {}.\n", words);
  return out;
}

}  // namespace

std::string text_of_look(const json::Value& look) {
  std::string out;
  const std::string then = moment_words(*json::find(look, "then")), now = moment_words(*json::find(look, "now"));
  if (!then.empty()) out += fmt::format("The answer is of the cluster at {}.\n", then);
  if (!now.empty()) out += fmt::format("The cluster by now: {}.\n", now);
  const auto list = [&](std::string_view key, std::string_view head) {
    const json::Array& lines = json::get_array(look, {key});
    constexpr std::size_t kMost = 40;
    if (!lines.empty()) out += fmt::format("\n{}\n", head);
    for (std::size_t i = 0; i < std::min(kMost, lines.size()); ++i) out += fmt::format("  - {}\n", json::as_view(lines[i]));
    if (lines.size() > kMost) out += fmt::format("  … and {} more (-o json has all)\n", lines.size() - kMost);
  };
  list("changed", "Changed since, of what the answer speaks of:");
  list("differences", "Asked again, the answer is another:");
  out += json::get_bool(look, {"holds"}) ? "\nThe answer still holds.\n"
                                         : "\nThe cluster has outrun the answer: ask again before you act on it.\n";
  return out;
}

std::string to_text(const json::Value& answer, std::size_t most_rows) {
  std::string out;
  add_capacity(out, answer, most_rows);
  add_pack(out, answer, most_rows);
  const bool is_capacity_alone = !out.empty() && json::find(answer, "pack") == nullptr && json::get_array(answer, {"moves"}).empty() &&
                                 json::get_array(answer, {"evictions"}).empty();
  if (is_capacity_alone) return out + notes_of(answer);
  out += summary_words(answer);
  add_each(out, answer, most_rows);
  add_pods(out, answer, most_rows);
  add_fullness(out, answer, most_rows);
  return out + notes_of(answer);
}

}  // namespace berth::whatif
