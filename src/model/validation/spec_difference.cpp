// A unified diff of two documents (Kubernetes: apimachinery/pkg/util/diff).
#include <fmt/format.h>

#include "base/json_indented.h"
#include "model/validation/validation.h"

namespace berth::model::validation {
namespace {

constexpr std::size_t kContext = 3;
constexpr std::size_t kMaxCells = 4'000'000;  ///< Beyond, what lies between the first and the last change is shown as replaced.

using Lines = std::vector<std::string_view>;

Lines split_lines(std::string_view text) {
  Lines out;
  while (!text.empty()) {
    const auto end = text.find('\n');
    out.push_back(text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  }
  return out;
}

/// Members in one order, so that only what changed differs.
Value by_name(const Value& value) {
  if (const auto* list = value.if_array()) {
    json::Array out;
    for (const auto& element : *list) out.push_back(by_name(element));
    return out;
  }
  const auto* object = value.if_object();
  if (object == nullptr) return value;
  std::map<std::string_view, const Value*> members;
  for (const auto& [key, member] : *object) members.emplace(std::string_view(key), &member);
  json::Object out;
  for (const auto& [key, member] : members) out[key] = by_name(*member);
  return out;
}

struct Edit {
  char mark;  ///< ' ', '-' or '+'.
  std::string_view line;
};

/// The edits from `a` to `b` by a longest common subsequence.
void append_edits(std::span<const std::string_view> a, std::span<const std::string_view> b, std::vector<Edit>& out) {
  if (a.size() * b.size() > kMaxCells) {
    for (const auto line : a) out.push_back({'-', line});
    for (const auto line : b) out.push_back({'+', line});
    return;
  }
  const std::size_t width = b.size() + 1;
  std::vector<std::uint32_t> common((a.size() + 1) * width, 0);
  for (std::size_t i = a.size(); i-- > 0;)
    for (std::size_t j = b.size(); j-- > 0;)
      common[i * width + j] =
          a[i] == b[j] ? common[(i + 1) * width + j + 1] + 1 : std::max(common[(i + 1) * width + j], common[i * width + j + 1]);
  std::size_t i = 0, j = 0;
  while (i < a.size() || j < b.size()) {
    if (i < a.size() && j < b.size() && a[i] == b[j]) {
      out.push_back({' ', a[i]});
      ++i, ++j;
    } else if (i < a.size() && (j == b.size() || common[(i + 1) * width + j] >= common[i * width + j + 1])) {
      out.push_back({'-', a[i++]});
    } else {
      out.push_back({'+', b[j++]});
    }
  }
}

std::string range(std::size_t start, std::size_t length) {
  if (length == 1) return std::to_string(start + 1);
  return fmt::format("{},{}", length == 0 ? start : start + 1, length);
}

}  // namespace

std::string spec_difference(const Value& wanted, const Value& present) {
  const std::string left = json::serialize_indented(by_name(present), 2), right = json::serialize_indented(by_name(wanted), 2);
  const Lines a = split_lines(left), b = split_lines(right);
  std::size_t head = 0, tail = 0;
  while (head < a.size() && head < b.size() && a[head] == b[head]) ++head;
  while (tail < a.size() - head && tail < b.size() - head && a[a.size() - 1 - tail] == b[b.size() - 1 - tail]) ++tail;
  std::vector<Edit> edits;
  for (std::size_t i = 0; i < head; ++i) edits.push_back({' ', a[i]});
  append_edits(std::span(a).subspan(head, a.size() - head - tail), std::span(b).subspan(head, b.size() - head - tail), edits);
  for (std::size_t i = a.size() - tail; i < a.size(); ++i) edits.push_back({' ', a[i]});

  std::string out;
  std::size_t line_a = 0, line_b = 0;
  const auto pass = [&](const Edit& edit) {
    line_a += edit.mark != '+';
    line_b += edit.mark != '-';
  };
  for (std::size_t at = 0; at < edits.size();) {
    std::size_t first = at;
    while (first < edits.size() && edits[first].mark == ' ') ++first;
    if (first == edits.size()) break;
    // A hunk ends where more equal lines follow than two contexts hold.
    std::size_t last = first, end = first;
    while (end < edits.size() && end - last <= 2 * kContext) last = edits[end].mark == ' ' ? last : end, ++end;
    const std::size_t from = std::max(at, first > kContext ? first - kContext : 0), to = std::min(edits.size(), last + kContext + 1);
    for (; at < from; ++at) pass(edits[at]);
    const std::size_t start_a = line_a, start_b = line_b;
    std::string body;
    for (; at < to; ++at) {
      pass(edits[at]);
      body += fmt::format("{}{}\n", edits[at].mark, edits[at].line);
    }
    out += fmt::format("@@ -{} +{} @@\n{}", range(start_a, line_a - start_a), range(start_b, line_b - start_b), body);
  }
  return out;
}

}  // namespace berth::model::validation
