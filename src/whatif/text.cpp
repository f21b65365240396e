// An answer for people.
#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "pools/plan_words.h"
#include "whatif/text_table.h"
#include "whatif/whatif.h"
#include "whatif/words.h"

namespace berth::whatif {
namespace {

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

bool asks_for_changes(const json::Value& answer) { return !json::get_array(answer, {"question", "changes"}).empty(); }

/// What goes wrong first, then what moves.
std::string summary_words(const json::Value& answer) {
  const auto count = [&](std::string_view key) { return json::get_int(answer, {"summary", key}); };
  std::vector<std::string> parts;
  const auto add = [&](std::string_view key, std::string_view one, std::string_view many) {
    if (count(key) > 0) parts.push_back(counted(count(key), one, many));
  };
  add("pending", "pod stays pending", "pods stay pending");
  add("lost", "pod is lost for good", "pods are lost for good");
  add("blocked", "eviction is refused", "evictions are refused");
  add("budgetsBroken", "budget is broken", "budgets are broken");
  add("preempted", "pod is preempted", "pods are preempted");
  const bool is_well = parts.empty();
  add("moves", "pod moves", "pods move");
  add("placed", "new or waiting pod is placed", "new or waiting pods are placed");
  add("deleted", "pod is deleted", "pods are deleted");
  std::string out;
  if (!parts.empty())
    out = fmt::format("{}{}.\n", fmt::join(parts, ", "),
                      is_well && count("moves") > 0 ? "; everybody has a place, and no budget is broken" : "");
  else if (asks_for_changes(answer) || json::find(answer, "eachCount") == nullptr)
    out = "Nothing changes.\n";
  if (count("pendingBefore") > 0)
    out += fmt::format("{} before, and still.\n", counted(count("pendingBefore"), "pod was pending", "pods were pending"));
  const std::int64_t before = json::get_int(answer, {"summary", "nodes", "before"}),
                     after = json::get_int(answer, {"summary", "nodes", "after"});
  if (before != after) out += fmt::format("{} nodes become {}.\n", before, after);
  return out;
}

std::string cost_words(const json::Value& answer) {
  const json::Value* cost = json::find(answer, "cost");
  if (cost == nullptr) return {};
  const double was = json::find(*cost, "before")->to_number<double>(), is = json::find(*cost, "after")->to_number<double>();
  const std::string currency = text_of(*cost, "currency");
  std::string out = fmt::format("Cost an hour: {:.3f} → {:.3f}{}.\n", was, is, currency.empty() ? "" : " " + currency);
  if (const auto& missing = json::get_array(*cost, {"unpriced"}); !missing.empty()) {
    out += "No price is known of:";
    for (const json::Value& one : missing) out += " " + std::string(json::as_view(one));
    out += "\n";
  }
  return out;
}

/// What NodePools would buy, a plan after the other.
std::string bought_words(const json::Value& answer) {
  std::string out;
  for (const json::Value& plan : json::get_array(answer, {"bought"})) out += "\nBought:\n" + pools::provision_text(plan);
  return out;
}

/// How many of the single losses leave something; empty where none were asked about.
std::string each_words(const json::Value& answer) {
  if (json::find(answer, "eachCount") == nullptr) return {};
  const std::int64_t tried = json::get_int(answer, {"eachCount"}), failing = json::get_int(answer, {"eachPending"});
  return failing == 0 ? fmt::format("Each of {} single losses leaves every pod that comes back with a place.\n", tried)
                      : fmt::format("{} of {} single losses leave something pending.\n", failing, tried);
}

void add_each(std::string& out, const json::Value& answer, std::size_t most) {
  std::vector<const json::Value*> losses;
  for (const json::Value& one : json::get_array(answer, {"each"})) losses.push_back(&one);
  // The worst first.
  const auto weight = [](const json::Value& one) {
    return std::tuple(-json::get_int(one, {"pendingCount"}), -json::get_int(one, {"lostPodsCount"}), -json::get_int(one, {"blockedCount"}));
  };
  std::ranges::stable_sort(losses, [&](const json::Value* a, const json::Value* b) {
    return weight(*a) != weight(*b) ? weight(*a) < weight(*b) : comes_before(text_of(*a, "lost"), text_of(*b, "lost"));
  });
  std::vector<Row> rows;
  for (const json::Value* loss : losses) {
    const json::Value& one = *loss;
    std::string why;
    if (const auto& pending = json::get_array(one, {"pending"}); !pending.empty())
      why = fmt::format("{}: {}", json::get_string(pending[0], {"pod"}), in_short(json::get_string(pending[0], {"message"})));
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

void add_gangs(std::string& out, const json::Value& answer, std::size_t most) {
  std::vector<Row> rows;
  for (const json::Value& one : json::get_array(answer, {"gangs"})) {
    const std::int64_t needed = json::get_int(one, {"needed"}), running = json::get_int(one, {"running"});
    const std::string verdict = text_of(one, "verdict");
    rows.push_back({text_of(one, "gang"), std::to_string(needed), fmt::format("{} → {}", json::get_int(one, {"runningBefore"}), running),
                    std::to_string(json::get_int(one, {"waiting"})),
                    verdict == "waits" && running > 0 ? fmt::format("waits: {} stand for nothing", running) : verdict});
  }
  if (!rows.empty()) out += "\n" + table({"GANG", "NEEDS", "RUN", "WAIT", "IT"}, rows, most);
}

void add_capacity(std::string& out, const json::Value& answer, std::size_t most) {
  const json::Value* capacity = json::find(answer, "capacity");
  if (capacity == nullptr) return;
  // cluster-capacity's words: its users look for them.
  const std::int64_t gang = json::get_int(*capacity, {"gang"});
  out += fmt::format("The cluster can schedule {} {} of the pod {}.\n\nTermination reason: {}\n", json::get_int(*capacity, {"total"}),
                     gang > 0 ? fmt::format("gang(s) of {}", gang) : "instance(s)", json::get_string(*capacity, {"pod"}),
                     json::get_string(*capacity, {"reason"}));
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
  const std::int64_t now = json::get_int(*pack, {"nodesNow"}), needed = json::get_int(*pack, {"nodesNeeded"}),
                     after = json::get_int(*pack, {"nodesAfter"});
  const json::Array& stays = json::get_array(*pack, {"stays"});
  if (shape.empty())
    out += after == now ? fmt::format("{} nodes are there, and none of them can go.\n", now)
                        : fmt::format("{} nodes are there; {} do.\n", now, after);
  else
    out += fmt::format("{} nodes are there; after this plan there are {}: {} new of {}{}.\n", now, after, needed, shape,
                       after > needed ? fmt::format(", and {} of those that are there", after - needed) : "");
  std::vector<Row> staying;
  for (const json::Value& one : stays) staying.push_back({text_of(one, "node"), text_of(one, "reason")});
  sort_rows(staying);
  if (!staying.empty()) out += "\nThese stay:\n" + table({"NODE", "BECAUSE"}, staying, most) + "\n";
  if (json::find(*pack, "lowerBound") != nullptr)
    out += fmt::format("By the sums of requests fewer than {} of {} cannot do.\n", json::get_int(*pack, {"lowerBound"}), shape);
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

/// Who would have to go for the pod, where that was asked.
std::string preemption_words(const json::Value& pending) {
  const json::Value* go = json::find(pending, "wouldHaveToGo");
  if (go == nullptr) return {};
  std::string out, victims;
  if (const std::string message = text_of(*go, "message"); !message.empty()) out = "; " + message;
  for (const json::Value& victim : json::get_array(*go, {"pods"}))
    victims += fmt::format("{}{} (priority {})", victims.empty() ? "" : ", ", json::get_string(victim, {"pod"}),
                           json::get_int(victim, {"priority"}));
  if (!victims.empty()) out += fmt::format("; would have to go from {}: {}", json::get_string(*go, {"node"}), victims);
  return out;
}

void add_pods(std::string& out, const json::Value& answer, std::size_t most) {
  std::vector<Row> pending, before, moves, refused, others;
  for (const json::Value& one : json::get_array(answer, {"pending"})) {
    const std::string words = in_short(text_of(one, "message")) + preemption_words(one);
    if (json::get_bool(one, {"before"}))
      before.push_back({text_of(one, "pod"), words});
    else
      pending.push_back({text_of(one, "pod"), or_none(text_of(one, "from")), text_of(one, "reason"), words});
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
  const auto add = [&](std::string_view title, const Row& head, std::vector<Row> rows) {
    if (!rows.empty()) out += fmt::format("\n{}:\n{}", title, table(head, together(std::move(rows)), most));
  };
  add("Pending", {"POD", "WAS ON", "BECAUSE", "MESSAGE"}, std::move(pending));
  add("Refused evictions", {"POD", "NODE", "BUDGET", "REASON"}, std::move(refused));
  add("Pods that go", {"POD", "NODE", "OUTCOME", "REASON"}, std::move(others));
  add("Moves", {"POD", "FROM", "TO", "BECAUSE"}, std::move(moves));
  add("Pending before, and still", {"POD", "MESSAGE"}, std::move(before));
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
  for (std::vector<Row>* rows : {&budgets, &zones, &nodes}) sort_rows(*rows);
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
  if (const std::string by = text_of(answer, "configuration"); !by.empty()) out += fmt::format("By the configuration of {}.\n", by);
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
  // What was asked for comes first.
  out += asks_for_changes(answer) ? summary_words(answer) + each_words(answer) : each_words(answer) + summary_words(answer);
  out += orders_words(answer);
  out += cost_words(answer);
  out += bought_words(answer);
  add_gangs(out, answer, most_rows);
  add_each(out, answer, most_rows);
  add_pods(out, answer, most_rows);
  add_fullness(out, answer, most_rows);
  return out + notes_of(answer);
}

}  // namespace berth::whatif
