#include "model/go_words.h"

#include <fmt/format.h>

namespace berth::model {
namespace {

/// A walk over JSON text that stops where encoding/json's scanner would (encoding/json/scanner.go). Without recursion: the text is a
/// stranger's.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  std::string run() {
    expect_value_ = true;
    while (error_.empty()) {
      skip_space();
      if (at_end()) {
        if (!expect_value_ && !expect_key_ && open_.empty()) return {};
        return "unexpected end of JSON input";
      }
      step();
    }
    return error_;
  }

 private:
  [[nodiscard]] bool at_end() const { return at_ >= text_.size(); }
  [[nodiscard]] char peek() const { return text_[at_]; }
  void skip_space() {
    while (!at_end() && (peek() == ' ' || peek() == '\t' || peek() == '\r' || peek() == '\n')) ++at_;
  }

  void fail(std::string_view context) {
    if (at_end()) {
      error_ = "unexpected end of JSON input";
      return;
    }
    const char c = peek();
    std::string shown;
    if (c == '\'') {
      shown = "'\\''";
    } else if (c == '"') {
      shown = "'\"'";
    } else {
      // A byte is shown as the character of that number.
      std::string character;
      const auto code = static_cast<unsigned char>(c);
      if (code < 0x80) {
        character = c;
      } else {
        character = {static_cast<char>(0xC0 | code >> 6), static_cast<char>(0x80 | (code & 0x3F))};
      }
      const auto quoted = go_quote(character);
      shown = "'" + quoted.substr(1, quoted.size() - 2) + "'";
    }
    error_ = fmt::format("invalid character {} {}", shown, context);
  }

  void step() {
    if (expect_key_) return key();
    if (expect_value_) return value();
    if (open_.empty()) return fail("after top-level value");
    const char c = peek();
    if (open_.back() == '{') {
      if (c == ',') {
        ++at_;
        expect_key_ = true;
        may_close_ = false;
      } else if (c == '}') {
        ++at_;
        open_.pop_back();
      } else {
        fail("after object key:value pair");
      }
      return;
    }
    if (c == ',') {
      ++at_;
      expect_value_ = true;
      may_close_ = false;
    } else if (c == ']') {
      ++at_;
      open_.pop_back();
    } else {
      fail("after array element");
    }
  }

  void key() {
    if (may_close_ && peek() == '}') {
      ++at_;
      open_.pop_back();
      expect_key_ = false;
      return;
    }
    if (peek() != '"') return fail("looking for beginning of object key string");
    string();
    if (!error_.empty()) return;
    skip_space();
    if (at_end() || peek() != ':') return fail("after object key");
    ++at_;
    expect_key_ = false;
    expect_value_ = true;
    may_close_ = false;
  }

  void value() {
    const char c = peek();
    if (may_close_ && c == ']') {
      ++at_;
      open_.pop_back();
      expect_value_ = false;
      return;
    }
    expect_value_ = false;
    may_close_ = false;
    if (c == '{') {
      ++at_;
      open_ += '{';
      expect_key_ = may_close_ = true;
    } else if (c == '[') {
      ++at_;
      open_ += '[';
      expect_value_ = may_close_ = true;
    } else if (c == '"') {
      string();
    } else if (c == '-' || (c >= '0' && c <= '9')) {
      number();
    } else if (c == 't' || c == 'f' || c == 'n') {
      literal(c == 't' ? "true" : c == 'f' ? "false" : "null");
    } else {
      fail("looking for beginning of value");
    }
  }

  void string() {
    ++at_;
    while (true) {
      if (at_end()) return fail("");
      const char c = peek();
      if (c == '"') {
        ++at_;
        return;
      }
      if (static_cast<unsigned char>(c) < 0x20) return fail("in string literal");
      ++at_;
      if (c != '\\') continue;
      if (at_end()) return fail("");
      if (peek() == 'u') {
        ++at_;
        for (int i = 0; i < 4; ++i, ++at_)
          if (at_end() || !std::isxdigit(static_cast<unsigned char>(peek()))) return fail("in \\u hexadecimal character escape");
      } else if (std::string_view("bfnrt\\/\"").find(peek()) == std::string_view::npos) {
        return fail("in string escape code");
      } else {
        ++at_;
      }
    }
  }

  bool digits(std::string_view context) {
    if (at_end() || !std::isdigit(static_cast<unsigned char>(peek()))) {
      fail(context);
      return false;
    }
    while (!at_end() && std::isdigit(static_cast<unsigned char>(peek()))) ++at_;
    return true;
  }

  void number() {
    if (peek() == '-') ++at_;
    if (!at_end() && peek() == '0') {
      ++at_;
    } else if (!digits("in numeric literal")) {
      return;
    }
    if (!at_end() && peek() == '.') {
      ++at_;
      if (!digits("after decimal point in numeric literal")) return;
    }
    if (!at_end() && (peek() == 'e' || peek() == 'E')) {
      ++at_;
      if (!at_end() && (peek() == '+' || peek() == '-')) ++at_;
      digits("in exponent of numeric literal");
    }
  }

  void literal(std::string_view word) {
    for (std::size_t i = 0; i < word.size(); ++i, ++at_)
      if (at_end() || peek() != word[i]) return fail(fmt::format("in literal {} (expecting '{}')", word, word[i]));
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::string open_;  ///< Brackets not closed yet.
  bool expect_key_ = false, expect_value_ = false;
  bool may_close_ = false;  ///< The list or object has just begun: it may be empty.
  std::string error_;
};

void print_value(std::string& out, const json::Value& value) {
  if (value.is_null()) {
    out += "<nil>";
  } else if (value.is_string()) {
    out += json::as_view(value);
  } else if (const auto* list = value.if_array()) {
    out += '[';
    for (std::size_t i = 0; i < list->size(); ++i) {
      if (i > 0) out += ' ';
      print_value(out, (*list)[i]);
    }
    out += ']';
  } else if (const auto* object = value.if_object()) {
    std::map<std::string_view, const json::Value*> sorted;
    for (const auto& [key, member] : *object) sorted.emplace(std::string_view(key.data(), key.size()), &member);
    out += "map[";
    bool first = true;
    for (const auto& [key, member] : sorted) {
      if (!std::exchange(first, false)) out += ' ';
      out += key;
      out += ':';
      print_value(out, *member);
    }
    out += ']';
  } else {
    out += json::serialize(value);
  }
}

}  // namespace

std::string go_value(const json::Value& value) {
  std::string out;
  print_value(out, value);
  return out;
}

std::string go_json_error(std::string_view text) { return Scanner(text).run(); }

std::string_view go_json_kind(const json::Value& value) {
  if (value.is_array()) return "array";
  if (value.is_object()) return "object";
  if (value.is_string()) return "string";
  if (value.is_bool()) return "bool";
  return value.is_null() ? "null" : "number";
}

std::string body_summary(std::string_view body) {
  constexpr std::size_t kShown = 30;
  if (body.empty()) return "<empty>";
  const auto start = body.substr(0, kShown);
  std::string out;
  if (body.front() == '{') {
    out = start;
  } else {
    for (const char c : start) out += fmt::format("{:02x}", static_cast<unsigned char>(c));
  }
  return body.size() > kShown ? out + " ..." : out;
}

}  // namespace berth::model
