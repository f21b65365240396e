#include <algorithm>

#include "base/config_reader.h"

namespace berth::config {
namespace {

std::string_view trim(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.remove_suffix(1);
  return text;
}

/// `name: "X" 1`, `labels: 3`, `"name":"X", 1`, `"weight" : 1 2` without the callout at the end. A lone number after a colon is a callout
/// only when the next line is nested below it; otherwise it is the value.
std::string without_callout(std::string_view line, bool next_is_nested) {
  std::string_view kept = line;
  while (!kept.empty() && std::isspace(static_cast<unsigned char>(kept.back()))) kept.remove_suffix(1);
  std::string_view head = kept;
  while (!head.empty() && head.back() >= '0' && head.back() <= '9') head.remove_suffix(1);
  if (head.size() == kept.size() || head.empty() || !std::isspace(static_cast<unsigned char>(head.back()))) return std::string(line);
  const std::string_view before = trim(head);
  if (before.empty()) return std::string(line);
  const char last = before.back();
  const bool after_value = last == '"' || last == '\'' || last == ',' || last == '[' || last == '{' ||
                           std::isdigit(static_cast<unsigned char>(last)) || before.ends_with("true") || before.ends_with("false");
  if (after_value || (last == ':' && next_is_nested)) {
    while (!head.empty() && std::isspace(static_cast<unsigned char>(head.back()))) head.remove_suffix(1);
    return std::string(head);
  }
  return std::string(line);
}

std::size_t indent_of(std::string_view line) {
  const auto at = line.find_first_not_of(" \t");
  return at == std::string_view::npos ? 0 : at;
}

}  // namespace

std::string repair_document_policy(std::string_view text) {
  std::vector<std::string> lines;
  for (std::size_t pos = 0; pos <= text.size();) {
    const auto end = std::min(text.find('\n', pos), text.size());
    lines.emplace_back(text.substr(pos, end - pos));
    pos = end + 1;
  }
  for (auto& line : lines)
    if (trim(line) == "...") line.clear();
  bool has_open_list = false;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::size_t next = i + 1;
    while (next < lines.size() && trim(lines[next]).empty()) ++next;
    const bool nested = next < lines.size() && (indent_of(lines[next]) > indent_of(lines[i]) || trim(lines[next]).starts_with("- "));
    std::string kept = without_callout(lines[i], nested);
    // The documents' JSON leaves the comma out where a callout stands.
    const auto value = trim(kept);
    const bool ends_value = kept != lines[i] && value.starts_with('"') && value.find(':') != std::string_view::npos &&
                            !value.ends_with(',') && !value.ends_with('[') && !value.ends_with('{');
    if (ends_value && next < lines.size() && trim(lines[next]).starts_with('"')) kept += ",";
    lines[i] = std::move(kept);
    const auto bare = trim(lines[i]);
    has_open_list |= bare.starts_with('"') && bare.ends_with('[');
  }
  const auto first = std::ranges::find_if(lines, [](const auto& line) { return !trim(line).empty(); });
  if (first != lines.end() && !trim(*first).starts_with('{') && has_open_list) {
    // A YAML head over JSON lists: one JSON object.
    for (auto& line : lines) {
      const auto bare = trim(line);
      if (bare.empty()) continue;
      if (bare.starts_with('"') && bare.ends_with('[')) break;
      const bool needs_comma = !bare.ends_with(',') && !bare.ends_with('{');
      if (const auto colon = line.find(':'); colon != std::string::npos && !bare.starts_with('"'))
        line = "\"" + std::string(trim(std::string_view(line).substr(0, colon))) + "\"" + line.substr(colon);
      if (needs_comma) line += ",";
    }
    *first = "{" + *first;
    lines.back() += "}";
  }
  std::string out;
  for (std::size_t i = 0; i < lines.size(); ++i) out += (i == 0 ? "" : "\n") + lines[i];
  return out;
}

}  // namespace berth::config
