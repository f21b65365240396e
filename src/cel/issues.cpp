#include "cel/ast.h"
#include "cel/text.h"

namespace berth::cel {
namespace {

constexpr std::size_t kMostIssues = 100;
constexpr std::size_t kMostSnippet = 16384;

std::string_view line_of(std::string_view source, int line) {
  for (int i = 1; i < line; ++i) {
    const auto end = source.find('\n');
    if (end == std::string_view::npos) return {};
    source.remove_prefix(end + 1);
  }
  return source.substr(0, source.find('\n'));
}

}  // namespace

void Issues::report(std::size_t offset, std::string message) {
  Issue issue;
  const auto before = source_.substr(0, std::min(offset, source_.size()));
  issue.line = 1 + static_cast<int>(std::count(before.begin(), before.end(), '\n'));
  const auto start = before.rfind('\n');
  issue.column = static_cast<int>(rune_count(start == std::string_view::npos ? before : before.substr(start + 1)));
  issue.message = std::move(message);
  issues_.push_back(std::move(issue));
}

void Issues::report_nowhere(std::string message) { issues_.push_back({-1, -1, std::move(message)}); }

CompileError Issues::finish() {
  std::stable_sort(issues_.begin(), issues_.end(),
                   [](const Issue& a, const Issue& b) { return std::tie(a.line, a.column) < std::tie(b.line, b.column); });
  CompileError out;
  const auto shown = std::min(issues_.size(), kMostIssues);
  for (std::size_t i = 0; i < shown; ++i) {
    const auto& issue = issues_[i];
    if (i > 0) out.text += '\n';
    out.text += fmt::format("ERROR: <input>:{}:{}: {}", issue.line, issue.column + (source_.empty() ? 0 : 1), issue.message);
    if (issue.line < 1 || source_.empty()) continue;
    std::string line(line_of(source_, issue.line));
    if (line.size() > kMostSnippet) continue;
    std::replace(line.begin(), line.end(), '\t', ' ');
    out.text += "\n | " + line + "\n | ";
    const auto points = split_points(line);
    for (std::size_t c = 0; c < static_cast<std::size_t>(issue.column) && c < points.size(); ++c)
      out.text += points[c].size() > 1 ? "．" : ".";
    const auto at = static_cast<std::size_t>(issue.column);
    out.text += at < points.size() && points[at].size() > 1 ? "＾" : "^";
  }
  if (issues_.size() > shown) out.text += fmt::format("\n{} more errors were truncated", issues_.size() - shown);
  out.issues = std::move(issues_);
  return out;
}

}  // namespace berth::cel
