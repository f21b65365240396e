#include "whatif/text_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace berth::whatif {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
}

/// The digits at the front, without leading zeros.
std::string_view take_number(std::string_view& text) {
  const std::size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
  std::string_view out = text.substr(0, end);
  text.remove_prefix(end);
  while (out.size() > 1 && out.front() == '0') out.remove_prefix(1);
  return out;
}

}  // namespace

bool comes_before(std::string_view a, std::string_view b) {
  while (!a.empty() && !b.empty()) {
    if (is_digit(a.front()) && is_digit(b.front())) {
      const std::string_view first = take_number(a), second = take_number(b);
      if (first.size() != second.size()) return first.size() < second.size();
      if (first != second) return first < second;
      continue;
    }
    if (a.front() != b.front()) return a.front() < b.front();
    a.remove_prefix(1);
    b.remove_prefix(1);
  }
  return a.size() < b.size();
}

void sort_rows(std::vector<Row>& rows) {
  std::ranges::stable_sort(rows, [](const Row& a, const Row& b) {
    for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
      if (comes_before(a[i], b[i])) return true;
      if (comes_before(b[i], a[i])) return false;
    }
    return false;
  });
}

std::vector<Row> together(std::vector<Row> rows) {
  constexpr std::size_t kFew = 2;
  sort_rows(rows);
  std::map<Row, std::vector<std::size_t>> groups;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    Row key = rows[i];
    key.front() = key.front().substr(0, key.front().rfind('-') + 1);
    if (!key.front().empty()) groups[std::move(key)].push_back(i);
  }
  std::vector<std::size_t> count(rows.size(), 1);  // 0: told by another row.
  for (const auto& [key, members] : groups) {
    if (members.size() <= kFew) continue;
    for (const std::size_t one : members) count[one] = 0;
    count[members.front()] = members.size();
    rows[members.front()].front() = fmt::format("{}* ({} pods)", key.front(), members.size());
  }
  std::vector<Row> out;
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (count[i] > 0) out.push_back(std::move(rows[i]));
  return out;
}

std::string in_short(std::string_view message) {
  constexpr std::size_t kMost = 140;
  message = message.substr(0, message.find(" preemption: "));
  if (constexpr std::string_view kTail = " no new claims to deallocate,"; message.ends_with(kTail)) message.remove_suffix(kTail.size());
  if (width_of(message) <= kMost) return std::string(message);
  std::size_t end = kMost;
  while ((message[end] & 0xC0) == 0x80) --end;
  return std::string(message.substr(0, end)) + "…";
}

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

}  // namespace berth::whatif
