#include "apiserver/auth/rule_coverage.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <unordered_set>

namespace berth::apiserver::auth {
namespace {

/// Of what is told.
constexpr std::size_t kLongestLine = 4096;

class Budget {
 public:
  explicit Budget(std::size_t steps) : left_(steps) {}
  void spend(std::size_t steps) { left_ -= std::min(steps, left_); }
  [[nodiscard]] bool is_spent() const { return left_ == 0; }
  [[nodiscard]] std::size_t left() const { return left_; }

 private:
  std::size_t left_;
};

/// Some of a side's values.
using Bits = std::vector<std::uint64_t>;

bool has_any(const Bits& bits) {
  return std::ranges::any_of(bits, [](std::uint64_t word) { return word != 0; });
}
void add(Bits& bits, std::size_t at) { bits[at / 64] |= std::uint64_t{1} << (at % 64); }
bool contains(const Bits& bits, std::size_t at) { return (bits[at / 64] >> (at % 64) & 1) != 0; }

/// Verbs and groups, and resources and names or URLs: one bit for all names, where a rule is for all of them.
using Box = std::vector<Bits>;

/// One list of a wanted rule: each value once, in order.
struct Side {
  explicit Side(const std::vector<std::string>& list) {
    for (const std::string& value : list)
      if (at.try_emplace(value, values.size()).second) values.push_back(value);
  }
  [[nodiscard]] Bits none() const { return Bits((values.size() + 63) / 64); }
  [[nodiscard]] Bits all() const {
    Bits out = none();
    for (std::size_t i = 0; i < values.size(); ++i) add(out, i);
    return out;
  }
  std::vector<std::string_view> values;
  std::unordered_map<std::string_view, std::size_t> at;
};

std::string_view subresource_of(std::string_view resource) {
  const auto slash = resource.find('/');
  return slash == std::string_view::npos ? std::string_view() : resource.substr(slash + 1);
}

/// A wanted rule of resources, or of URLs, and what held ones take of it.
class Wanted {
 public:
  Wanted(const PolicyRule& rule, bool of_urls) : of_urls_(of_urls), is_named_(!of_urls && !rule.names.empty()) {
    static const std::vector<std::string> any{""};
    sides_.emplace_back(rule.verbs);
    if (of_urls) {
      sides_.emplace_back(rule.urls);
      return;
    }
    sides_.emplace_back(rule.groups);
    sides_.emplace_back(rule.resources);
    sides_.emplace_back(is_named_ ? rule.names : any);
    const auto& resources = sides_[2].values;
    for (std::size_t i = 0; i < resources.size(); ++i)
      if (const auto sub = subresource_of(resources[i]); sub.data() != nullptr) by_subresource_[sub].push_back(i);
  }
  [[nodiscard]] const std::vector<Side>& sides() const { return sides_; }
  [[nodiscard]] bool of_urls() const { return of_urls_; }
  [[nodiscard]] bool is_named() const { return is_named_; }
  [[nodiscard]] bool is_empty() const {
    return std::ranges::any_of(sides_, [](const Side& side) { return side.values.empty(); });
  }
  [[nodiscard]] Box whole() const {
    Box out;
    for (const Side& side : sides_) out.push_back(side.all());
    return out;
  }
  /// What `held` takes of it; empty: nothing.
  [[nodiscard]] Box taken_by(const PolicyRule& held, Budget& budget) const {
    Box out;
    const auto put = [&](Bits bits) {
      budget.spend(bits.size());
      if (!has_any(bits)) return false;
      out.push_back(std::move(bits));
      return true;
    };
    budget.spend(held.size());
    const bool is_some =
        put(exact(0, held.verbs)) &&
        (of_urls_ ? put(urls(held.urls, budget)) : put(exact(1, held.groups)) && put(resources(held.resources)) && put(names(held.names)));
    return is_some ? out : Box();
  }

 private:
  [[nodiscard]] Bits exact(std::size_t which, const std::vector<std::string>& held) const {
    const Side& side = sides_[which];
    Bits out = side.none();
    for (const std::string& value : held) {
      if (value == "*") return side.all();
      if (const auto found = side.at.find(value); found != side.at.end()) add(out, found->second);
    }
    return out;
  }
  [[nodiscard]] Bits resources(const std::vector<std::string>& held) const {
    Bits out = exact(2, held);
    for (const std::string& value : held) {
      if (!value.starts_with("*/")) continue;
      const auto found = by_subresource_.find(std::string_view(value).substr(2));
      if (found == by_subresource_.end()) continue;
      for (const std::size_t at : found->second) add(out, at);
    }
    return out;
  }
  [[nodiscard]] Bits names(const std::vector<std::string>& held) const {
    const Side& side = sides_[3];
    if (held.empty()) return side.all();
    Bits out = side.none();
    if (!is_named_) return out;  // Who holds it for some names holds it not for all.
    for (const std::string& value : held)
      if (const auto found = side.at.find(value); found != side.at.end()) add(out, found->second);
    return out;
  }
  [[nodiscard]] Bits urls(const std::vector<std::string>& held, Budget& budget) const {
    const Side& side = sides_[1];
    Bits out = side.none();
    for (const std::string& pattern : held) {
      if (const auto found = side.at.find(pattern); found != side.at.end()) add(out, found->second);
      if (!pattern.ends_with('*')) continue;
      budget.spend(side.values.size());
      for (std::size_t i = 0; i < side.values.size() && !budget.is_spent(); ++i)
        if (url_matches(pattern, side.values[i])) add(out, i);
    }
    return out;
  }

  const bool of_urls_, is_named_;
  std::vector<Side> sides_;
  std::unordered_map<std::string_view, std::vector<std::size_t>> by_subresource_;
};

using Lists = std::vector<const RuleIndex::Numbers*>;

std::size_t size_of(const Lists& lists) {
  std::size_t out = 0;
  for (const auto* list : lists) out += list->size();
  return out;
}

/// The rules that list one of the values, or "*".
Lists lists_of(const RuleIndex::Field& field, const Side& side) {
  Lists out;
  const auto look_for = [&](std::string_view value) {
    if (const auto found = field.find(value); found != field.end()) out.push_back(&found->second);
  };
  look_for("*");
  for (const std::string_view value : side.values)
    if (value != "*") look_for(value);
  return out;
}

Lists lists_of_resources(const RuleIndex::Field& field, const Side& side) {
  Lists out = lists_of(field, side);
  std::set<std::string> patterns;
  for (const std::string_view value : side.values)
    if (const auto sub = subresource_of(value); sub.data() != nullptr) patterns.insert("*/" + std::string(sub));
  for (const std::string& pattern : patterns)
    if (const auto found = field.find(pattern); found != field.end()) out.push_back(&found->second);
  return out;
}

/// Adds the role's rules that may take something of it: those of the side of which the fewest say anything.
void add_candidates(const RuleIndex& role, const Wanted& wanted, Budget& budget, std::vector<const PolicyRule*>& out) {
  const auto* fields = role.fields();
  if (fields == nullptr) {
    for (const PolicyRule& rule : role.rules()) out.push_back(&rule);
    return budget.spend(1 + role.rules().size());
  }
  const auto& sides = wanted.sides();
  Lists best{&fields->with_urls};
  if (!wanted.of_urls()) {
    best = wanted.is_named() ? lists_of(fields->names, sides[3]) : Lists();
    best.push_back(&fields->nameless);
    for (Lists other :
         {lists_of(fields->verbs, sides[0]), lists_of(fields->groups, sides[1]), lists_of_resources(fields->resources, sides[2])})
      if (size_of(other) < size_of(best)) best = std::move(other);
    for (const Side& side : sides) budget.spend(1 + side.values.size());
  }
  budget.spend(1 + size_of(best));
  // A rule that is in several of the lists is one.
  std::unordered_set<std::uint32_t> seen;
  for (const auto* list : best)
    for (const std::uint32_t number : *list)
      if (best.size() == 1 || seen.insert(number).second) out.push_back(&role.rules()[number]);
}

bool meet(const Box& a, const Box& b, Budget& budget) {
  for (std::size_t side = 0; side < a.size(); ++side) {
    bool is_some = false;
    budget.spend(a[side].size());
    for (std::size_t i = 0; i < a[side].size() && !is_some; ++i) is_some = (a[side][i] & b[side][i]) != 0;
    if (!is_some) return false;
  }
  return true;
}

/// A part of `whole` that is in none of `taken`; nothing: they take all of it, or there are no more steps.
std::optional<Box> find_rest(Box whole, const std::vector<Box>& taken, Budget& budget) {
  struct Part {
    Box box;
    std::size_t next;
  };
  std::vector<Part> open;
  open.push_back({std::move(whole), 0});
  while (!open.empty() && !budget.is_spent()) {
    Part part = std::move(open.back());
    open.pop_back();
    std::size_t i = part.next;
    while (i < taken.size() && !budget.is_spent() && !meet(part.box, taken[i], budget)) ++i;
    if (budget.is_spent()) break;
    if (i == taken.size()) return std::move(part.box);
    // What sticks out, a side after the other: parts that have nothing in common.
    for (std::size_t side = 0; side < part.box.size(); ++side) {
      Bits rest = part.box[side];
      for (std::size_t k = 0; k < rest.size(); ++k) rest[k] &= ~taken[i][side][k];
      if (has_any(rest)) {
        Box box = part.box;
        box[side] = std::move(rest);
        for (const Bits& bits : box) budget.spend(bits.size());
        open.push_back({std::move(box), i + 1});
      }
      for (std::size_t k = 0; k < part.box[side].size(); ++k) part.box[side][k] &= taken[i][side][k];
    }
  }
  return std::nullopt;
}

/// What is missing, as Kubernetes shows it: a line for a group, resource and name with all verbs, and one for each verb of a URL.
class Listing {
 public:
  explicit Listing(const CoverageLimits& limits) : limits_(limits), steps_(limits.steps / 4) {}
  [[nodiscard]] bool is_full() const { return is_full_; }

  /// What of `wanted` is in none of `taken`, as far as there is room, but something of `rest`, which is known to be missing, at least.
  void add(const Wanted& wanted, const std::vector<Box>& taken, const Box& rest) {
    const auto before = lines_.size();
    const auto& sides = wanted.sides();
    if (wanted.of_urls()) {
      for (std::size_t u = 0; u < sides[1].values.size() && !is_full_; ++u) add_verbs(wanted, taken, {u});
    } else {
      for (std::size_t g = 0; g < sides[1].values.size() && !is_full_; ++g)
        for (std::size_t r = 0; r < sides[2].values.size() && !is_full_; ++r)
          for (std::size_t n = 0; n < sides[3].values.size() && !is_full_; ++n) add_verbs(wanted, taken, {g, r, n});
    }
    if (lines_.size() != before || before != 0) return;
    std::vector<std::size_t> place;
    for (std::size_t side = 1; side < rest.size(); ++side) place.push_back(first_of(rest[side]));
    put(wanted, place, first_of(rest[0]));
  }
  [[nodiscard]] std::vector<std::string> lines() const {
    std::set<std::string> out;
    for (const auto& [place, verbs] : lines_) {
      PolicyRule rule;
      for (const std::string_view verb : verbs) rule.verbs.emplace_back(verb);
      if (!place.url.empty()) {
        rule.urls = {std::string(place.url)};
      } else {
        rule.groups = {std::string(place.group)};
        rule.resources = {std::string(place.resource)};
        if (place.name) rule.names = {std::string(*place.name)};
      }
      std::string line = rule.to_string();
      if (line.size() > kLongestLine) line.replace(kLongestLine, std::string::npos, "...");
      out.insert(std::move(line));
    }
    return {out.begin(), out.end()};
  }

 private:
  struct Place {
    std::string_view group, resource, url, url_verb;
    std::optional<std::string_view> name;
    friend auto operator<=>(const Place&, const Place&) = default;
  };

  static std::size_t first_of(const Bits& bits) {
    std::size_t at = 0;
    while (!contains(bits, at)) ++at;
    return at;
  }
  void add_verbs(const Wanted& wanted, const std::vector<Box>& taken, const std::vector<std::size_t>& place) {
    Bits held = wanted.sides()[0].none();
    for (const Box& box : taken) {
      steps_.spend(1 + held.size());
      bool is_here = true;
      for (std::size_t i = 0; i < place.size() && is_here; ++i) is_here = contains(box[i + 1], place[i]);
      for (std::size_t k = 0; k < held.size() && is_here; ++k) held[k] |= box[0][k];
    }
    steps_.spend(1);
    if (steps_.is_spent()) is_full_ = true;
    for (std::size_t v = 0; v < wanted.sides()[0].values.size() && !is_full_; ++v)
      if (!contains(held, v)) put(wanted, place, v);
  }
  void put(const Wanted& wanted, const std::vector<std::size_t>& at, std::size_t verb) {
    const auto& sides = wanted.sides();
    const std::string_view shown = sides[0].values[verb];
    Place place;
    if (wanted.of_urls()) {
      place.url = sides[1].values[at[0]];
      place.url_verb = shown;
    } else {
      place.group = sides[1].values[at[0]];
      place.resource = sides[2].values[at[1]];
      if (wanted.is_named()) place.name = sides[3].values[at[2]];
    }
    const auto [line, is_new] = lines_.try_emplace(place);
    if (is_new) bytes_ += 40 + place.group.size() + place.resource.size() + place.url.size() + place.name.value_or("").size();
    steps_.spend(line->second.size());
    if (std::ranges::find(line->second, shown) == line->second.end()) {
      line->second.push_back(shown);
      bytes_ += shown.size() + 3;
    }
    // The last one that has no room any more stays: something is always told.
    if (bytes_ > limits_.bytes || lines_.size() > limits_.lines) {
      is_full_ = true;
      if (lines_.size() > 1 && is_new) lines_.erase(line);
    }
  }

  const CoverageLimits limits_;
  Budget steps_;
  std::map<Place, std::vector<std::string_view>> lines_;
  std::size_t bytes_ = 0;
  bool is_full_ = false;
};

}  // namespace

Coverage coverage_of(std::span<const RuleIndex* const> held, const std::vector<PolicyRule>& wanted_rules, const CoverageLimits& limits) {
  Budget budget(limits.steps);
  Listing listing(limits);
  Coverage out;
  for (const PolicyRule& rule : wanted_rules) {
    for (const bool of_urls : {true, false}) {
      if (listing.is_full() || out.is_too_entangled) break;
      budget.spend(rule.size());
      const Wanted wanted(rule, of_urls);
      if (wanted.is_empty()) continue;
      const Box whole = wanted.whole();
      std::vector<const PolicyRule*> candidates;
      for (const RuleIndex* role : held)
        if (!budget.is_spent()) add_candidates(*role, wanted, budget, candidates);
      std::vector<Box> taken;
      bool is_covered = false;
      for (auto at = candidates.begin(); at != candidates.end() && !is_covered && !budget.is_spent(); ++at) {
        Box box = wanted.taken_by(**at, budget);
        if (box.empty()) continue;
        is_covered = box == whole;
        taken.push_back(std::move(box));
      }
      if (is_covered) continue;
      const auto rest = find_rest(whole, taken, budget);
      if (!rest && !budget.is_spent()) continue;
      out.is_whole = false;
      if (rest)
        listing.add(wanted, taken, *rest);
      else
        out.is_too_entangled = true;
    }
  }
  out.steps = limits.steps - budget.left();
  out.missing = listing.lines();
  out.has_more = listing.is_full();
  // What was found missing is enough to refuse.
  if (!out.missing.empty() && std::exchange(out.is_too_entangled, false)) out.has_more = true;
  return out;
}

}  // namespace berth::apiserver::auth
