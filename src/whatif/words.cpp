#include "whatif/words.h"

#include <fmt/format.h>

#include <algorithm>

#include "whatif/text_table.h"
#include "whatif/verbs.h"

namespace berth::whatif {
namespace {

std::string string_at(const json::Value& value, std::string_view key) { return std::string(json::get_string(value, {key})); }

std::string amount_of(std::int64_t count, std::string_view one, std::string_view several) {
  return fmt::format("{} {}", count, count == 1 ? one : several);
}

std::string changes_words(const json::Array& changes) {
  constexpr std::size_t kMost = 4;
  std::string out;
  for (std::size_t i = 0; i < std::min(changes.size(), kMost); ++i) out += (i == 0 ? "" : ", then ") + change_words(changes[i]);
  if (changes.size() > kMost)
    out += fmt::format(", and {} more", amount_of(static_cast<std::int64_t>(changes.size() - kMost), "change", "changes"));
  return out;
}

std::string broken_budgets(const json::Value& answer) {
  constexpr std::size_t kMost = 3;
  std::vector<std::string> names;
  for (const json::Value& one : json::get_array(answer, {"budgets"}))
    if (json::get_bool(one, {"broken"})) names.push_back(string_at(one, "budget"));
  if (names.size() > kMost) names.resize(kMost), names.emplace_back("…");
  return names.empty() ? "" : fmt::format(" ({})", fmt::join(names, ", "));
}

/// ": 0/9 nodes are available: …" of the first pod that waits newly.
std::string because(const json::Value& answer) {
  for (const json::Value& one : json::get_array(answer, {"pending"})) {
    std::string message = in_short(json::get_string(one, {"message"}));
    if (message.empty() || json::get_bool(one, {"before"})) continue;
    while (message.ends_with('.')) message.pop_back();
    return ": " + message;
  }
  return {};
}

Verdict verdict_of_each(const json::Value& answer, std::vector<std::string> more) {
  const std::int64_t all = json::get_int(answer, {"eachCount"});
  const json::Array& leaving = json::get_array(answer, {"each"});
  if (leaving.empty())
    return {true, fmt::format("None of {} leaves a pod without a node.", amount_of(all, "single loss", "single losses")), std::move(more)};
  const json::Value* worst = &leaving[0];
  for (const json::Value& one : leaving)
    if (json::get_int(one, {"pendingCount"}) > json::get_int(*worst, {"pendingCount"})) worst = &one;
  const std::int64_t pending = json::get_int(*worst, {"pendingCount"});
  return {false,
          fmt::format("{} of {} single losses leave something undone{}.", leaving.size(), all,
                      pending > 0 ? fmt::format("; the worst is {}: {} without a node", string_at(*worst, "lost"),
                                                amount_of(pending, "pod", "pods"))
                                  : ""),
          std::move(more)};
}

Verdict verdict_of_pack(const json::Value& pack, std::vector<std::string> more) {
  const std::int64_t now = json::get_int(pack, {"nodesNow"}), needed = json::get_int(pack, {"nodesNeeded"}),
                     after = json::get_int(pack, {"nodesAfter"});
  const std::string shape = string_at(pack, "shape");
  if (json::find(pack, "lowerBound") != nullptr)
    more.push_back(fmt::format("by the sums of requests fewer than {} cannot do", json::get_int(pack, {"lowerBound"})));
  if (const json::Array& stays = json::get_array(pack, {"stays"}); !stays.empty())
    more.push_back(amount_of(static_cast<std::int64_t>(stays.size()), "node has to stay", "nodes have to stay"));
  if (after == now && shape.empty()) return {true, fmt::format("None of the {} can go.", amount_of(now, "node", "nodes")), std::move(more)};
  if (shape.empty())
    return {true, fmt::format("{} of {} do: {} can go.", after, amount_of(now, "node", "nodes"), now - after), std::move(more)};
  return {true,
          fmt::format("{} become {}: {} new of {}{}.", amount_of(now, "node", "nodes"), after, needed, shape,
                      after > needed ? fmt::format(", and {} of those that are there", after - needed) : ""),
          std::move(more)};
}

}  // namespace

std::string question_words(const json::Value& answer) {
  if (json::find(answer, "capacity") != nullptr)
    return fmt::format("How many more of the pod {} fit?", json::get_string(answer, {"capacity", "pod"}));
  const json::Array& changes = json::get_array(answer, {"question", "changes"});
  const std::string first = changes_words(changes);
  if (json::find(answer, "pack") != nullptr)
    return first.empty() ? "With how few nodes would it do?" : fmt::format("With how few nodes would it do, once {}?", first);
  const std::string each(json::get_string(answer, {"question", "each"}));
  if (each.empty()) return first.empty() ? "What if nothing changes?" : fmt::format("What if {}?", first);
  return fmt::format("What if {}{}{} is lost, each in turn?", first, first.empty() ? "any single " : ", and then any single ", each);
}

std::string orders_words(const json::Value& answer) {
  constexpr std::size_t kMostNamed = 3;
  const json::Value* orders = json::find(answer, "orders");
  if (orders == nullptr) return {};
  const auto n = [&](const json::Value& of, std::string_view key) { return json::get_int(of, {key}); };
  const std::string tried = fmt::format("{} orders of arrival that were played", n(*orders, "tried"));
  const json::Array& undecided = json::get_array(*orders, {"undecided"});
  const bool matters = n(*orders, "pendingMost") > 0 || json::get_int(answer, {"summary", "preempted"}) > 0;
  if (undecided.empty()) return matters ? fmt::format("The same stay pending in all {}.\n", tried) : "";
  const auto range = [](std::int64_t least, std::int64_t most) {
    return least == most ? std::to_string(least) : fmt::format("{} to {}", least, most);
  };
  std::string names;
  for (std::size_t i = 0; i < std::min(kMostNamed, undecided.size()); ++i) {
    const json::Value& one = undecided[i];
    names += fmt::format("{}{} {}", i == 0 ? "" : ", ", string_at(one, "pods"), range(n(one, "pendingLeast"), n(one, "pendingMost")));
    if (n(one, "lostMost") > 0) names += fmt::format(" (and {} lost for good)", range(n(one, "lostLeast"), n(one, "lostMost")));
  }
  if (undecided.size() > kMostNamed) names += fmt::format(" and {} more", undecided.size() - kMostNamed);
  return fmt::format("The order of arrival decides who stays pending: {} in {} ({}).\n",
                     range(n(*orders, "pendingLeast"), n(*orders, "pendingMost")), tried, names);
}

Verdict verdict_of(const json::Value& answer) {
  const auto n = [&](std::string_view key) { return json::get_int(answer, {"summary", key}); };
  std::vector<std::string> bad, more;
  const auto tell = [&](std::vector<std::string>& into, std::string_view key, std::string_view one, std::string_view several,
                        const std::string& tail = {}) {
    if (n(key) > 0) into.push_back(amount_of(n(key), one, several) + tail);
  };
  tell(bad, "pending", "pod stays without a node", "pods stay without a node", because(answer));
  tell(bad, "lost", "pod is lost for good", "pods are lost for good");
  tell(bad, "budgetsBroken", "budget is broken", "budgets are broken", broken_budgets(answer));
  tell(bad, "blocked", "eviction is refused by a budget", "evictions are refused by budgets");
  tell(bad, "preempted", "pod is preempted", "pods are preempted");
  tell(more, "moves", "pod moves", "pods move");
  tell(more, "placed", "new or waiting pod gets its node", "new or waiting pods get their nodes");
  tell(more, "deleted", "pod is deleted", "pods are deleted");
  tell(more, "pendingBefore", "pod had no node before, and still has none", "pods had no node before, and still have none");
  if (const json::Value* capacity = json::find(answer, "capacity")) {
    const std::int64_t total = json::get_int(*capacity, {"total"});
    return {total > 0, fmt::format("{} more fit.", total), {fmt::format("what stops the next one: {}", string_at(*capacity, "reason"))}};
  }
  const bool is_bad = !bad.empty();
  std::vector<std::string> all = bad;
  if (std::string words = orders_words(answer); !words.empty()) all.push_back(words.substr(0, words.size() - 2));  // No full stop.
  all.insert(all.end(), more.begin(), more.end());
  if (json::find(answer, "eachCount") != nullptr) return verdict_of_each(answer, std::move(all));
  if (const json::Value* pack = json::find(answer, "pack")) return verdict_of_pack(*pack, std::move(all));
  if (is_bad) return {false, bad.front() + ".", {all.begin() + 1, all.end()}};
  const bool is_still = n("moves") + n("placed") + n("deleted") == 0;
  return {true, is_still ? "Nothing has to move, and every budget is kept." : "Every pod finds a place, and every budget is kept.",
          std::move(more)};
}

}  // namespace berth::whatif
