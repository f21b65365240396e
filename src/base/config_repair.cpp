#include <algorithm>
#include <cctype>
#include <optional>

#include "base/config_reader.h"

namespace berth::config {
namespace {

std::string_view trim_end(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.remove_suffix(1);
  return text;
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) text.remove_prefix(1);
  return trim_end(text);
}

std::size_t indent_of(std::string_view line) {
  const auto at = line.find_first_not_of(" \t");
  return at == std::string_view::npos ? 0 : at;
}

struct Callout {
  std::string_view before;  ///< The line without it.
  int number = 0;
  bool is_bracketed = false;  ///< `<1>` or `(1)`.
};

/// The number at the end of a line: `1`, `(1)`, `<1>`; `- 1` behind a quote, as one of the documents prints it.
std::optional<Callout> callout_of(std::string_view line) {
  std::string_view head = trim_end(line);
  const bool bracketed = head.ends_with(')') || head.ends_with('>');
  const char open = head.ends_with(')') ? '(' : '<';
  if (bracketed) head.remove_suffix(1);
  std::size_t digits = 0;
  while (digits < head.size() && std::isdigit(static_cast<unsigned char>(head[head.size() - 1 - digits]))) ++digits;
  if (digits == 0 || digits > 2) return std::nullopt;
  const int number = std::stoi(std::string(head.substr(head.size() - digits)));
  head.remove_suffix(digits);
  if (bracketed) {
    if (!head.ends_with(open)) return std::nullopt;
    head.remove_suffix(1);
  }
  if (head.empty() || !std::isspace(static_cast<unsigned char>(head.back()))) return std::nullopt;
  head = trim_end(head);
  if (head.ends_with("\"-") || head.ends_with("'-")) head.remove_suffix(1);
  if (trim(head).empty() || number == 0) return std::nullopt;
  return Callout{head, number, bracketed};
}

/// Takes callouts off line by line; they count up from 1.
class CalloutReader {
 public:
  /// A lone number after a colon is a callout only when the next line is nested below it; otherwise it is the value.
  std::string without(std::string_view line, bool next_is_nested) {
    const auto found = callout_of(line);
    if (!found) return std::string(line);
    const std::string_view before = trim(found->before);
    const char last = before.back();
    const bool after_value = last == '"' || last == '\'' || last == ',' || last == '[' || last == ']' || last == '{' ||
                             std::isdigit(static_cast<unsigned char>(last)) || before.ends_with("true") || before.ends_with("false");
    const bool after_key = last == ':', after_dash = before == "-";
    // Behind a plain word it may be the word's own: only in its turn.
    const bool in_turn = found->number == next_;
    if (!found->is_bracketed && !(after_value || (after_key && next_is_nested) || (!after_key && !after_dash && in_turn)))
      return std::string(line);
    next_ = found->number + 1;
    return std::string(found->before);
  }

 private:
  int next_ = 1;
};

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  for (std::size_t pos = 0; pos <= text.size();) {
    const auto end = std::min(text.find('\n', pos), text.size());
    lines.emplace_back(text.substr(pos, end - pos));
    pos = end + 1;
  }
  return lines;
}

/// A YAML head over JSON lists: one JSON object.
void wrap_bare_lists(std::vector<std::string>& lines, std::string& first) {
  for (auto& line : lines) {
    const auto bare = trim(line);
    if (bare.empty()) continue;
    if (bare.starts_with('"') && bare.ends_with('[')) break;
    const bool needs_comma = !bare.ends_with(',') && !bare.ends_with('{');
    if (const auto colon = line.find(':'); colon != std::string::npos && !bare.starts_with('"'))
      line = "\"" + std::string(trim(std::string_view(line).substr(0, colon))) + "\"" + line.substr(colon);
    if (needs_comma) line += ",";
  }
  first = "{" + first;
  lines.back() += "}";
}

bool is_word(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](unsigned char c) { return std::isalnum(c) != 0; });
}

/// `key: value` with a value on the line that nothing can follow more deeply.
bool is_complete_entry(std::string_view line) {
  const auto colon = line.find(": ");
  if (colon == std::string_view::npos || !is_word(trim(line.substr(0, colon)))) return false;
  const auto value = trim(line.substr(colon + 2));
  return !value.empty() && value[0] != '|' && value[0] != '>' && value[0] != '[' && value[0] != '{' && value[0] != '&';
}

/// Slips of the documents' own YAML: a key without its colon above nested lines, a comma behind `{}`, an entry deeper than the one it
/// follows.
void mend_slips(std::vector<std::string>& lines) {
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::string& line = lines[i];
    const auto bare = trim(line);
    if (bare.empty()) continue;
    std::size_t next = i + 1;
    while (next < lines.size() && trim(lines[next]).empty()) ++next;
    const bool nested = next < lines.size() && indent_of(lines[next]) > indent_of(line);
    if (nested && is_word(bare) && std::isalpha(static_cast<unsigned char>(bare[0])))
      line = std::string(trim_end(line)) + ":";
    else if (bare.ends_with("{},"))
      line = std::string(trim_end(line).substr(0, trim_end(line).size() - 1));
    else if (nested && is_complete_entry(line) && is_complete_entry(lines[next]))
      lines[next] = line.substr(0, indent_of(line)) + std::string(trim(lines[next]));
  }
}

/// Fields whose values are one word in every kind.
constexpr std::string_view kWords[] = {
    "name",           "namespace", "schedulerName", "priorityClassName", "serviceAccountName",
    "serviceAccount", "nodeName",  "key",           "operator",          "effect",
    "topologyKey",    "kind",      "image",         "apiVersion",        "scheduler.alpha.kubernetes.io/node-selector"};
/// Below these stand texts of the user's own.
constexpr std::string_view kTexts[] = {"labels",       "annotations", "data", "stringData", "env",        "matchLabels",
                                       "nodeSelector", "parameters",  "args", "command",    "description"};

/// Something that is one word, a number or a boolean has a callout behind it.
bool has_callouts(const json::Value& value, std::string_view field, bool is_text) {
  if (const auto* object = value.if_object())
    return std::ranges::any_of(*object, [&](const auto& member) {
      const std::string_view key(member.key());
      return has_callouts(member.value(), key, is_text || std::ranges::find(kTexts, key) != std::end(kTexts));
    });
  if (const auto* array = value.if_array())
    return std::ranges::any_of(*array, [&](const auto& item) { return has_callouts(item, {}, is_text); });
  if (!value.is_string()) return false;
  const auto found = callout_of(json::as_view(value));
  if (!found || found->before.find(' ') != std::string_view::npos) return false;
  if (std::ranges::find(kWords, field) != std::end(kWords)) return true;
  const bool is_number = found->before.find_first_not_of("-0123456789") == std::string_view::npos;
  return !is_text && (is_number || found->before == "true" || found->before == "false");
}

}  // namespace

std::string without_callouts(std::string_view text) {
  std::vector<std::string> lines = lines_of(text);
  for (auto& line : lines)
    if (trim(line) == "...") line.clear();
  bool has_open_list = false;
  CalloutReader callouts;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::size_t next = i + 1;
    while (next < lines.size() && trim(lines[next]).empty()) ++next;
    const bool nested = next < lines.size() && (indent_of(lines[next]) > indent_of(lines[i]) || trim(lines[next]).starts_with("- "));
    std::string kept = callouts.without(lines[i], nested);
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
  const bool is_json = first != lines.end() && trim(*first).starts_with('{');
  if (first != lines.end() && !is_json && has_open_list)
    wrap_bare_lists(lines, *first);
  else if (!is_json)
    mend_slips(lines);
  std::string out;
  for (std::size_t i = 0; i < lines.size(); ++i) out += (i == 0 ? "" : "\n") + lines[i];
  return out;
}

Result<std::vector<json::Value>> parse_stream(std::string_view text) {
  auto as_it_is = json::parse_yaml_stream(text);
  if (as_it_is && std::ranges::none_of(*as_it_is, [](const auto& document) { return has_callouts(document, {}, false); })) return as_it_is;
  const std::string repaired = without_callouts(text);
  if (repaired == text) return as_it_is;
  auto again = json::parse_yaml_stream(repaired);
  return again ? std::move(again) : std::move(as_it_is);
}

}  // namespace berth::config
