#include "base/config_repair.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>

#include "base/split.h"

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

/// Where a line's key begins: behind the dashes of the entries that it opens.
std::size_t key_indent_of(std::string_view line) {
  std::size_t at = indent_of(line);
  while (line.substr(at).starts_with("- ")) at = std::min(line.find_first_not_of(' ', at + 1), line.size());
  return at;
}

bool is_gap(std::string_view line) {
  const auto bare = trim(line);
  return bare.size() >= 3 && bare.find_first_not_of('.') == std::string_view::npos;
}

struct Callout {
  std::string_view before;  ///< The line without it.
  std::string_view text;    ///< As it stands there.
  int number = 0;
  bool is_bracketed = false;  ///< `<1>` or `(1)`.
};

/// The number at the end of a line: `1`, `(1)`, `<1>`; `- 1` behind a quote, as one of the documents prints it.
std::optional<Callout> callout_of(std::string_view line) {
  const std::string_view whole = trim_end(line);
  std::string_view head = whole;
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
  if (trim(head).empty() || head.ends_with('#') || number == 0) return std::nullopt;  // Behind # it is a comment, and does no harm.
  return Callout{head, trim(whole.substr(head.size())), number, bracketed};
}

/// The value of `key: value` or `- value`, when it is one plain word.
bool ends_in_plain_word(std::string_view line) {
  const std::string_view entry = line.substr(std::min(key_indent_of(line), line.size()));
  const auto colon = entry.find(": ");
  const bool is_item = colon == std::string_view::npos && key_indent_of(line) > indent_of(line);
  if (colon == std::string_view::npos && !is_item) return false;
  const std::string_view value = trim(is_item ? entry : entry.substr(colon + 2));
  return !value.empty() && value.find_first_of(" \t\"'[]{}|>&*!%@`#") == std::string_view::npos;
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

/// A text line by line. Each change keeps the lines' numbers and is noted.
class Mender {
 public:
  explicit Mender(std::string_view text) : lines_(split(text, '\n').list<std::string>()) {
    find_blocks();
    for (first_ = 0; first_ < lines_.size() && trim(lines_[first_]).empty();) ++first_;
  }

  void drop_gaps() {
    for (std::size_t i = 0; i < lines_.size(); ++i)
      if (is_gap(lines_[i]) && !in_block_[i]) change(i, "", fmt::format("\"{}\" is left out", trim(lines_[i])));
    for (first_ = 0; first_ < lines_.size() && trim(lines_[first_]).empty();) ++first_;
  }

  /// Of a text that cannot be parsed. They count up from 1; only in its turn is a number taken for one that could be a value's own.
  void drop_callouts() {
    int turn = 1;
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      const auto found = callout_of(lines_[i]);
      if (!found || !(is_certain(*found) || (found->number == turn && is_possible(*found, i, turn)))) continue;
      turn = found->number + 1;
      has_open_list_ |= trim(found->before).starts_with('"') && trim(found->before).ends_with('[');
      std::string kept(found->before);
      const auto value = trim(kept);
      // The documents' JSON leaves the comma out where a callout stands.
      const bool ends_value =
          value.starts_with('"') && value.contains(':') && !value.ends_with(',') && !value.ends_with('[') && !value.ends_with('{');
      const std::size_t next = next_of(i);
      const bool lacks_comma = ends_value && next < lines_.size() && trim(lines_[next]).starts_with('"');
      if (lacks_comma) kept += ",";
      change(i, std::move(kept), fmt::format("read without the callout \"{}\"{}", found->text, lacks_comma ? ", with a comma" : ""));
    }
  }

  /// Of a text that is parsed, on lines whose values cannot be what stands there: `tolerationSeconds: 300 (1)`.
  void drop_callouts_at(const std::set<int>& lines) {
    int turn = 1;
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      if (!lines.contains(static_cast<int>(i) + 1)) continue;
      const auto found = callout_of(lines_[i]);
      if (!found || !ends_in_plain_word(found->before) || !(found->is_bracketed || found->number == turn)) continue;
      turn = found->number + 1;
      change(i, std::string(found->before), fmt::format("read without the callout \"{}\"", found->text));
    }
  }

  /// Slips of the documents' own: a YAML head over bare JSON lists, a key without its colon above nested lines, a comma behind `{}`, an
  /// entry deeper than the one that it follows.
  void mend_slips(TextKind kind) {
    if (first_ == lines_.size() || is_json()) return;
    for (const std::string& line : lines_) has_open_list_ |= trim(line).starts_with('"') && trim(line).ends_with('[');
    if (has_open_list_) return wrap_bare_lists();
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      const auto bare = trim(lines_[i]);
      if (bare.empty() || in_block_[i]) continue;
      const std::size_t next = next_of(i);
      const bool is_nested = next < lines_.size() && indent_of(lines_[next]) > indent_of(lines_[i]);
      const std::string line(trim_end(lines_[i]));
      if (is_nested && is_word(bare) && std::isalpha(static_cast<unsigned char>(bare[0])))
        change(i, line + ":", fmt::format("\"{}\" is read as \"{}:\"", bare, bare));
      else if (bare.ends_with("{},"))
        change(i, line.substr(0, line.size() - 1), "read without the comma at its end");
      else if (kind == TextKind::kConfiguration && is_nested && is_complete_entry(line) && is_complete_entry(lines_[next]))
        change(next, line.substr(0, indent_of(line)) + std::string(trim(lines_[next])),
               fmt::format("read as if it stood as deep as line {}", i + 1));
    }
  }

  [[nodiscard]] Mended done() && { return {fmt::format("{}", fmt::join(lines_, "\n")), std::move(changes_), {}}; }

 private:
  void change(std::size_t line, std::string text, std::string_view what) {
    changes_.push_back(fmt::format("line {}: {}", line + 1, what));
    lines_[line] = std::move(text);
  }

  [[nodiscard]] bool is_json() const { return first_ < lines_.size() && trim(lines_[first_]).starts_with('{'); }

  [[nodiscard]] std::size_t next_of(std::size_t line) const {
    std::size_t next = line + 1;
    while (next < lines_.size() && trim(lines_[next]).empty()) ++next;
    return next;
  }

  /// Lines of block scalars: `|` or `>` at the end of a line, and what stands deeper below it.
  void find_blocks() {
    in_block_.assign(lines_.size(), false);
    std::optional<std::size_t> above;
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      const auto bare = trim(lines_[i]);
      if (above && (bare.empty() || indent_of(lines_[i]) > *above)) {
        in_block_[i] = true;
        continue;
      }
      const auto mark = bare.find_last_of(" \t");
      const auto word = mark == std::string_view::npos ? bare : bare.substr(mark + 1);
      const bool is_head =
          !word.empty() && (word[0] == '|' || word[0] == '>') && word.find_first_not_of("|>+-123456789") == std::string_view::npos;
      above = is_head ? std::optional(bare.contains(": ") ? key_indent_of(lines_[i]) : indent_of(lines_[i])) : std::nullopt;
    }
  }

  /// Nothing else can stand there: in brackets, behind a closed quote or bracket, behind JSON's comma.
  static bool is_certain(const Callout& callout) {
    if (callout.is_bracketed) return true;
    const auto before = trim(callout.before);
    const char last = before.back();
    return last == '"' || last == '\'' || last == '[' || last == ']' || last == '{' || last == '}' ||
           (last == ',' && before.starts_with('"'));
  }

  /// Behind a word of a value, or behind a key with its value on the lines below it.
  [[nodiscard]] bool is_possible(const Callout& callout, std::size_t line, int turn) const {
    const auto before = trim(callout.before);
    if (in_block_[line]) return turn > 1;  // A script's own number, unless callouts lead up to it.
    if (before == "-") return false;
    if (!before.ends_with(':')) return true;
    const std::size_t next = next_of(line);
    if (next == lines_.size()) return false;
    const std::size_t key = key_indent_of(callout.before), below = indent_of(lines_[next]);
    return below > key || (below == key && trim(lines_[next]).starts_with("- "));
  }

  void wrap_bare_lists() {
    for (std::size_t i = first_; i < lines_.size(); ++i) {
      std::string& line = lines_[i];
      const auto bare = trim(line);
      if (bare.empty()) continue;
      if (bare.starts_with('"') && bare.ends_with('[')) break;
      const bool needs_comma = !bare.ends_with(',') && !bare.ends_with('{');
      if (const auto colon = line.find(':'); colon != std::string::npos && !bare.starts_with('"'))
        line = "\"" + std::string(trim(std::string_view(line).substr(0, colon))) + "\"" + line.substr(colon);
      if (needs_comma) line += ",";
    }
    lines_.back() += "}";
    change(first_, "{" + lines_[first_], "this and what follows is read as one JSON object");
  }

  std::vector<std::string> lines_, changes_;
  std::vector<bool> in_block_;
  std::size_t first_ = 0;  ///< The first line that is not empty.
  bool has_open_list_ = false;
};

}  // namespace

bool may_have_callouts(std::string_view text) {
  while (!text.empty()) {
    const auto line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (const auto found = callout_of(line); found && ends_in_plain_word(found->before)) return true;
  }
  return false;
}

Mended as_documents_mean(std::string_view text, TextKind kind, const Look& refused, const std::function<Look(const std::string&)>& look) {
  Mended best{std::string(text), {}, refused};
  const auto is_better = [](const Look& a, const Look& b) { return a.is_parsed && (!b.is_parsed || a.problems < b.problems); };
  const auto try_it = [&](Mender mender) {
    Mended one = std::move(mender).done();
    if (one.changes.empty()) return;
    one.look = look(one.text);
    if (is_better(one.look, best.look)) best = std::move(one);
  };
  if (refused.is_parsed) {
    Mender mender(text);
    mender.drop_callouts_at(refused.lines);
    try_it(std::move(mender));
    if (!best.look.is_taken()) best = {std::string(text), {}, refused};  // All of it, or nothing.
    return best;
  }
  Mender without_gaps(text);
  without_gaps.drop_gaps();
  Mender without_callouts = without_gaps;
  without_callouts.drop_callouts();
  Mender without_slips = without_callouts;
  without_slips.mend_slips(kind);
  for (Mender* one : {&without_gaps, &without_callouts, &without_slips})
    if (!best.look.is_taken()) try_it(std::move(*one));
  return best;
}

Result<std::vector<json::Value>> parse_stream(std::string_view text, std::vector<std::string>& notes) {
  auto as_it_is = json::parse_yaml_stream(text);
  if (as_it_is) return as_it_is;
  std::vector<json::Value> documents;
  const auto look = [&](const std::string& mended) {
    auto parsed = json::parse_yaml_stream(mended);
    if (!parsed) return Look{};
    const auto lacks_kind = [](const json::Value& one) { return json::get_string(one, {"kind"}).empty(); };
    const Look out{true, static_cast<std::size_t>(std::ranges::count_if(*parsed, lacks_kind)), {}};
    if (out.is_taken()) documents = std::move(*parsed);
    return out;
  };
  Mended mended = as_documents_mean(text, TextKind::kManifest, {}, look);
  if (!mended.look.is_taken()) return as_it_is;
  std::ranges::move(mended.changes, std::back_inserter(notes));
  return documents;
}

}  // namespace berth::config
