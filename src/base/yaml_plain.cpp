#include "base/yaml_plain.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/yaml_scalar.h"

namespace berth::json {
namespace {

constexpr int kMostDeep = 100;
constexpr std::size_t kLongestKey = 500;

/// Whatever is not plain.
struct NotPlain {};

/// Printable ASCII and line ends alone: what else there may be has rules of its own.
bool is_plain_text(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return (c >= ' ' && c < 0x7f) || c == '\n'; });
}

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) { next_line(); }

  Value read() {
    if (is_at_end_) throw NotPlain{};
    Value out = block(indent_, 0);
    if (!is_at_end_) throw NotPlain{};
    return out;
  }

 private:
  /// The line that is being read, without its indentation; a dash in front of an entry counts as indentation.
  void next_line() {
    if (at_ >= text_.size()) {
      is_at_end_ = true;
      line_ = {};
      return;
    }
    const std::size_t end = std::min(text_.find('\n', at_), text_.size());
    line_ = text_.substr(at_, end - at_);
    at_ = end + 1;
    indent_ = std::min(line_.find_first_not_of(' '), line_.size());
    line_.remove_prefix(indent_);
    if (line_.empty() || line_.back() == ' ' || line_[0] == '#' || (indent_ == 0 && (line_.starts_with("---") || line_.starts_with("..."))))
      throw NotPlain{};
  }
  [[nodiscard]] bool is_entry() const { return line_.starts_with("- "); }

  /// A map or list whose first line, at `indent`, is the current one.
  Value block(std::size_t indent, int depth) {
    if (depth > kMostDeep) throw NotPlain{};
    return is_entry() ? Value(list(indent, depth)) : Value(map(indent, depth));
  }

  Array list(std::size_t indent, int depth) {
    Array out;
    while (!is_at_end_ && indent_ == indent && is_entry()) {
      const std::size_t inside = std::min(line_.find_first_not_of(' ', 2), line_.size());
      line_.remove_prefix(inside);
      indent_ += inside;
      if (is_entry() || key_end() != std::string_view::npos) {
        out.push_back(block(indent_, depth + 1));
      } else {
        out.push_back(scalar(line_, indent, depth));
      }
      if (!is_at_end_ && indent_ > indent) throw NotPlain{};
    }
    return out;
  }

  Object map(std::size_t indent, int depth) {
    Object out;
    while (!is_at_end_ && indent_ == indent && !is_entry()) {
      const std::size_t end = key_end();
      if (end == std::string_view::npos) throw NotPlain{};
      const std::string_view key = line_.substr(0, end);
      check_plain(key);
      if (key.size() > kLongestKey || key == "<<" || is_yaml_word(key) || yaml_number(key)) throw NotPlain{};
      std::string_view rest = line_.substr(end + 1);
      rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
      Value value = rest.empty() ? below(indent, depth) : scalar(rest, indent, depth);
      out.insert_or_assign(key, std::move(value));
      if (!is_at_end_ && indent_ > indent) throw NotPlain{};  // Perhaps the scalar goes on.
    }
    return out;
  }

  /// What stands below a key without a value: entries may stand as far left as the key.
  Value below(std::size_t indent, int depth) {
    next_line();
    if (is_at_end_ || indent_ < indent || (indent_ == indent && !is_entry())) return nullptr;
    return block(indent_, depth + 1);
  }

  /// Where the key of the current line ends: at its colon; npos without one.
  [[nodiscard]] std::size_t key_end() const {
    if (line_[0] == '"' || line_[0] == '\'' || line_[0] == '[' || line_[0] == '{') return std::string_view::npos;
    const std::size_t at = line_.find(": ");
    if (at != std::string_view::npos) return at;
    return line_.ends_with(':') ? line_.size() - 1 : std::string_view::npos;
  }

  static void check_plain(std::string_view text) {
    constexpr std::string_view kIndicators = "?:,[]{}#&*!|>'\"%@`";
    const bool is_odd = text.empty() || kIndicators.contains(text[0]) || text.back() == ' ' || text.back() == ':' ||
                        (text[0] == '-' && (text.size() == 1 || text[1] == ' ')) || text.contains(": ") || text.contains(" #");
    if (is_odd) throw NotPlain{};
  }

  /// The value of an entry of a block at `indent`. Goes on to the next line.
  Value scalar(std::string_view text, std::size_t indent, int depth) {
    if (text == "|" || text == "|-") return literal(indent, text.size() == 1);
    Value out = one_line(text);
    if (depth > kMostDeep) throw NotPlain{};
    next_line();
    return out;
  }

  static Value one_line(std::string_view text) {
    if (text == "{}") return Object();
    if (text == "[]") return Array();
    if (text[0] == '"') return double_quoted(text);
    if (text[0] == '\'') return single_quoted(text);
    check_plain(text);
    if (!yaml_infinity(text).empty()) throw NotPlain{};
    return yaml_value(text);
  }

  /// With the escapes that texts of one line mostly have; the others are the YAML parser's.
  static Value double_quoted(std::string_view text) {
    std::string out;
    for (std::size_t i = 1; i < text.size(); ++i) {
      if (text[i] == '"') {
        if (i + 1 == text.size()) return Value(out);
        break;
      }
      if (text[i] != '\\') {
        out += text[i];
        continue;
      }
      constexpr std::string_view kEscaped = "\"\\nt", kMeant = "\"\\\n\t";
      const std::size_t which = i + 1 < text.size() ? kEscaped.find(text[i + 1]) : std::string_view::npos;
      if (which == std::string_view::npos) break;
      out += kMeant[which];
      ++i;
    }
    throw NotPlain{};
  }

  static Value single_quoted(std::string_view text) {
    std::string out;
    for (std::size_t i = 1; i < text.size(); ++i) {
      if (text[i] != '\'') {
        out += text[i];
        continue;
      }
      if (i + 1 == text.size()) return Value(out);
      if (text[++i] != '\'') break;
      out += '\'';
    }
    throw NotPlain{};
  }

  /// Lines deeper than `indent`, as they are; empty ones at the end do not count.
  Value literal(std::size_t indent, bool ends_line) {
    std::string out;
    std::size_t inside = 0, empty = 0;
    while (at_ < text_.size()) {
      const std::size_t end = std::min(text_.find('\n', at_), text_.size());
      const std::string_view line = text_.substr(at_, end - at_);
      const std::size_t here = std::min(line.find_first_not_of(' '), line.size());
      if (here == line.size()) {  // Blank: how many spaces it has may matter.
        if (inside == 0 || !line.empty()) throw NotPlain{};
        ++empty;
        at_ = end + 1;
        continue;
      }
      if (inside == 0) inside = here;
      if (here <= indent) break;
      if (here < inside || end == text_.size()) throw NotPlain{};
      out.append(empty, '\n').append(line.substr(inside)).append("\n");
      empty = 0;
      at_ = end + 1;
    }
    if (out.empty()) throw NotPlain{};
    if (!ends_line) out.pop_back();
    next_line();
    return Value(out);
  }

  std::string_view text_, line_;
  std::size_t at_ = 0, indent_ = 0;
  bool is_at_end_ = false;
};

}  // namespace

std::optional<Value> parse_plain_yaml(std::string_view text) {
  if (!is_plain_text(text)) return std::nullopt;
  try {
    return Reader(text).read();
  } catch (const NotPlain&) {
    return std::nullopt;
  }
}

}  // namespace berth::json
