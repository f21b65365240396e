// Lexical rules of cel-go's grammar (parser/gen/CEL.g4).
#include "cel/lexer.h"

#include "cel/text.h"

namespace berth::cel {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

class Lexer {
 public:
  Lexer(std::string_view source, Issues& issues) : source_(source), issues_(issues) {}
  std::vector<Token> run() {
    std::vector<Token> out;
    while (skip_space()) {
      const auto token = next();
      if (token.kind == Tok::kEnd) continue;
      out.push_back(token);
    }
    out.push_back({Tok::kEnd, source_.size(), "<EOF>"});
    return out;
  }

 private:
  [[nodiscard]] char peek(std::size_t ahead = 0) const { return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0'; }
  bool skip_space() {
    while (at_ < source_.size()) {
      const char c = source_[at_];
      if (c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f') {
        ++at_;
      } else if (c == '/' && peek(1) == '/') {
        while (at_ < source_.size() && source_[at_] != '\n') ++at_;
      } else {
        return true;
      }
    }
    return false;
  }
  Token take(Tok kind, std::size_t length) {
    Token token{kind, at_, source_.substr(at_, length)};
    at_ += length;
    return token;
  }
  Token next() {
    const char c = peek();
    if (const auto length = string_length(at_); length > 0) return take(Tok::kString, length);
    if ((c == 'b' || c == 'B') && string_length(at_ + 1) > 0) return take(Tok::kBytes, 1 + string_length(at_ + 1));
    if (is_letter(c)) {
      std::size_t n = 1;
      while (is_letter(peek(n)) || is_digit(peek(n))) ++n;
      const auto text = source_.substr(at_, n);
      return take(text == "true"    ? Tok::kTrue
                  : text == "false" ? Tok::kFalse
                  : text == "null"  ? Tok::kNull
                  : text == "in"    ? Tok::kIn
                                    : Tok::kIdent,
                  n);
    }
    if (is_digit(c) || (c == '.' && is_digit(peek(1)))) return number();
    if (c == '`') {
      std::size_t n = 1;
      const auto fits = [](char x) { return is_letter(x) || is_digit(x) || x == '.' || x == '-' || x == '/' || x == ' '; };
      while (fits(peek(n))) ++n;
      if (n > 1 && peek(n) == '`') return take(Tok::kEscapedIdent, n + 1);
    }
    for (const std::string_view two : {"==", "!=", "<=", ">=", "&&", "||"})
      if (source_.substr(at_, 2) == two) return take(Tok::kPunctuation, 2);
    if (std::string_view("<>[]{}().,-!?:+*/%").find(c) != std::string_view::npos && c != '\0') return take(Tok::kPunctuation, 1);
    return unknown();
  }
  Token number() {
    std::size_t n = 0;
    if (peek() == '0' && peek(1) == 'x' && is_hex(peek(2))) {
      n = 2;
      while (is_hex(peek(n))) ++n;
      if (peek(n) == 'u' || peek(n) == 'U') return take(Tok::kUint, n + 1);
      return take(Tok::kInt, n);
    }
    while (is_digit(peek(n))) ++n;
    bool is_double = false;
    if (peek(n) == '.' && is_digit(peek(n + 1))) {
      is_double = true;
      ++n;
      while (is_digit(peek(n))) ++n;
    }
    if (peek(n) == 'e' || peek(n) == 'E') {
      std::size_t m = n + 1;
      if (peek(m) == '+' || peek(m) == '-') ++m;
      if (is_digit(peek(m))) {
        is_double = true;
        while (is_digit(peek(m))) ++m;
        n = m;
      }
    }
    if (is_double) return take(Tok::kDouble, n);
    if (peek(n) == 'u' || peek(n) == 'U') return take(Tok::kUint, n + 1);
    return take(Tok::kInt, n);
  }
  /// The length of the string literal at `start`, 0 when there is none.
  [[nodiscard]] std::size_t string_length(std::size_t start) const {
    std::size_t i = start;
    const auto get = [&](std::size_t where) { return where < source_.size() ? source_[where] : '\0'; };
    const bool is_raw = (get(i) == 'r' || get(i) == 'R') && (get(i + 1) == '"' || get(i + 1) == '\'');
    if (is_raw) ++i;
    const char quote = get(i);
    if (quote != '"' && quote != '\'') return 0;
    if (get(i + 1) == quote && get(i + 2) == quote) {
      if (const auto end = scan(i + 3, quote, is_raw, true); end > 0) return end - start;
    }
    const auto end = scan(i + 1, quote, is_raw, false);
    return end > 0 ? end - start : 0;
  }
  [[nodiscard]] std::size_t scan(std::size_t i, char quote, bool is_raw, bool is_triple) const {
    while (i < source_.size()) {
      const char c = source_[i];
      if (c == quote && (!is_triple || source_.substr(i, 3) == std::string(3, quote))) return i + (is_triple ? 3 : 1);
      if (!is_triple && (c == '\n' || c == '\r')) return 0;
      if (c == '\\' && !is_raw) {
        const auto n = escape_length(i);
        if (n == 0) return 0;
        i += n;
      } else {
        ++i;
      }
    }
    return 0;
  }
  [[nodiscard]] std::size_t escape_length(std::size_t i) const {
    const auto get = [&](std::size_t where) { return where < source_.size() ? source_[where] : '\0'; };
    const char c = get(i + 1);
    if (c != '\0' && std::string_view("abfnrtv\"'\\?`").find(c) != std::string_view::npos) return 2;
    const auto digits = [&](std::size_t count) {
      for (std::size_t k = 0; k < count; ++k)
        if (!is_hex(get(i + 2 + k))) return false;
      return true;
    };
    if ((c == 'x' || c == 'X') && digits(2)) return 4;
    if (c == 'u' && digits(4)) return 6;
    if (c == 'U' && digits(8)) return 10;
    const auto octal = [](char x) { return x >= '0' && x <= '7'; };
    if (c >= '0' && c <= '3' && octal(get(i + 2)) && octal(get(i + 3))) return 4;
    return 0;
  }
  /// Behind the character that breaks an escape.
  [[nodiscard]] std::size_t behind_broken_escape(std::size_t at) const {
    const char kind = at + 1 < source_.size() ? source_[at + 1] : '\0';
    at += 2;
    if (kind == 'u' || kind == 'U' || kind == 'x' || kind == 'X') {
      while (at < source_.size() && is_hex(source_[at])) ++at;
      ++at;
    }
    return at;
  }
  Token unknown() {
    // What starts like a token and does not end as one is told together with the character that broke it.
    const auto start = at_;
    const char c = source_[at_];
    at_ += utf8_length(source_, at_);
    if ((c == '=' || c == '&' || c == '|') && at_ < source_.size()) {
      at_ += utf8_length(source_, at_);
    } else if (c == '"' || c == '\'') {
      while (at_ < source_.size() && source_[at_] != '\n' && source_[at_] != '\r') {
        if (source_[at_] == '\\') {
          const auto n = escape_length(at_);
          if (n == 0) {
            at_ = std::min(source_.size(), behind_broken_escape(at_));
            break;
          }
          at_ += n;
        } else {
          ++at_;
        }
      }
    }
    issues_.report(start, fmt::format("Syntax error: token recognition error at: '{}'", source_.substr(start, at_ - start)));
    return {};
  }

  std::string_view source_;
  Issues& issues_;
  std::size_t at_ = 0;
};

}  // namespace

std::vector<Token> tokenize(std::string_view source, Issues& issues) { return Lexer(source, issues).run(); }

}  // namespace berth::cel
