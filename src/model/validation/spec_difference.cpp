// A unified diff of two texts, as Python's difflib makes it, which Kubernetes' messages follow (apimachinery/pkg/util/diff).
#include <fmt/format.h>

#include <unordered_map>

#include "model/internal_form.h"
#include "model/validation/validation.h"

namespace berth::model::validation {
namespace {

constexpr std::size_t kContext = 3;
constexpr std::size_t kPopularFrom = 200;     ///< Of so many lines, those that are more than one in a hundred start no match.
constexpr std::size_t kMaxSteps = 1'000'000;  ///< Of looking for runs; what is left then is shown as replaced.

using Lines = std::vector<std::string_view>;

struct Match {
  std::size_t a, b, size;
};
struct Edit {
  bool is_equal;
  std::size_t a_from, a_to, b_from, b_to;
};

Lines split_lines(std::string_view text) {
  Lines out;
  while (!text.empty()) {
    const auto end = text.find('\n');
    out.push_back(text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  }
  return out;
}

class Matcher {
 public:
  Matcher(const Lines& a, const Lines& b) : a_(a), b_(b) {
    for (std::size_t i = 0; i < b.size(); ++i) places_[b[i]].push_back(i);
    if (b.size() >= kPopularFrom) std::erase_if(places_, [&](const auto& entry) { return entry.second.size() > b.size() / 100 + 1; });
  }

  /// Equal runs in order, neighbours joined.
  std::vector<Match> blocks() {
    std::vector<Match> found;
    collect(0, a_.size(), 0, b_.size(), found);
    std::vector<Match> out;
    for (const Match& match : found) {
      if (!out.empty() && out.back().a + out.back().size == match.a && out.back().b + out.back().size == match.b)
        out.back().size += match.size;
      else
        out.push_back(match);
    }
    out.push_back({a_.size(), b_.size(), 0});
    return out;
  }

 private:
  // The longest run is found first and divides the rest; depth is bounded by the number of lines, each call having at least one less.
  void collect(std::size_t a_low, std::size_t a_high, std::size_t b_low, std::size_t b_high, std::vector<Match>& out) {
    const Match match = longest(a_low, a_high, b_low, b_high);
    if (match.size == 0) return;
    if (a_low < match.a && b_low < match.b) collect(a_low, match.a, b_low, match.b, out);
    out.push_back(match);
    if (match.a + match.size < a_high && match.b + match.size < b_high)
      collect(match.a + match.size, a_high, match.b + match.size, b_high, out);
  }

  Match longest(std::size_t a_low, std::size_t a_high, std::size_t b_low, std::size_t b_high) {
    Match best{a_low, b_low, 0};
    std::unordered_map<std::size_t, std::size_t> lengths;
    for (std::size_t i = a_low; i < a_high; ++i) {
      if (++steps_ > kMaxSteps) return {a_low, b_low, 0};
      std::unordered_map<std::size_t, std::size_t> next;
      if (const auto places = places_.find(a_[i]); places != places_.end()) {
        for (const std::size_t j : places->second) {
          ++steps_;
          if (j < b_low) continue;
          if (j >= b_high) break;
          const auto before = j == 0 ? lengths.end() : lengths.find(j - 1);
          const std::size_t length = (before == lengths.end() ? 0 : before->second) + 1;
          next[j] = length;
          if (length > best.size) best = {i + 1 - length, j + 1 - length, length};
        }
      }
      lengths = std::move(next);
    }
    while (best.a > a_low && best.b > b_low && a_[best.a - 1] == b_[best.b - 1]) --best.a, --best.b, ++best.size;
    while (best.a + best.size < a_high && best.b + best.size < b_high && a_[best.a + best.size] == b_[best.b + best.size]) ++best.size;
    return best;
  }

  const Lines &a_, &b_;
  std::size_t steps_ = 0;
  std::unordered_map<std::string_view, std::vector<std::size_t>> places_;
};

std::vector<Edit> edits_of(const Lines& a, const Lines& b) {
  std::vector<Edit> out;
  std::size_t i = 0, j = 0;
  for (const Match& match : Matcher(a, b).blocks()) {
    if (i < match.a || j < match.b) out.push_back({false, i, match.a, j, match.b});
    i = match.a + match.size, j = match.b + match.size;
    if (match.size > 0) out.push_back({true, match.a, i, match.b, j});
  }
  return out;
}

/// Edits that stand together, with what is equal around them cut to the context.
std::vector<std::vector<Edit>> groups_of(std::vector<Edit> edits) {
  std::vector<std::vector<Edit>> out;
  if (edits.empty()) return out;
  const auto keep_end = [](Edit& edit) {
    if (edit.a_to - edit.a_from <= kContext) return;
    edit.a_from = edit.a_to - kContext, edit.b_from = edit.b_to - kContext;
  };
  const auto keep_start = [](Edit& edit) {
    if (edit.a_to - edit.a_from <= kContext) return;
    edit.a_to = edit.a_from + kContext, edit.b_to = edit.b_from + kContext;
  };
  if (edits.front().is_equal) keep_end(edits.front());
  if (edits.back().is_equal) keep_start(edits.back());
  std::vector<Edit> group;
  for (Edit edit : edits) {
    if (edit.is_equal && edit.a_to - edit.a_from > 2 * kContext) {
      Edit head = edit;
      keep_start(head);
      group.push_back(head);
      out.push_back(std::exchange(group, {}));
      keep_end(edit);
    }
    group.push_back(edit);
  }
  if (!group.empty() && !(group.size() == 1 && group.front().is_equal)) out.push_back(std::move(group));
  return out;
}

std::string range(std::size_t start, std::size_t stop) {
  const std::size_t length = stop - start;
  if (length == 1) return std::to_string(start + 1);
  return fmt::format("{},{}", length == 0 ? start : start + 1, length);
}

}  // namespace

std::string difference(const Value& before, const Value& after) {
  const std::string left = go_pretty_json(before), right = go_pretty_json(after);
  const Lines a = split_lines(left), b = split_lines(right);
  std::string out;
  for (const auto& group : groups_of(edits_of(a, b))) {
    out += fmt::format("@@ -{} +{} @@\n", range(group.front().a_from, group.back().a_to), range(group.front().b_from, group.back().b_to));
    for (const Edit& edit : group) {
      for (std::size_t i = edit.a_from; i < edit.a_to; ++i) out += fmt::format("{}{}\n", edit.is_equal ? ' ' : '-', a[i]);
      for (std::size_t j = edit.b_from; !edit.is_equal && j < edit.b_to; ++j) out += fmt::format("+{}\n", b[j]);
    }
  }
  return out;
}

}  // namespace berth::model::validation
