// matches(), find() and findAll() over RE2.
#include <re2/re2.h>

#include "cel/functions.h"

namespace berth::cel {
namespace {

/// RE2's complaint in Go's words: "error parsing regexp: missing closing ]: `[a`".
std::string go_words(const re2::RE2& pattern) {
  std::string what;
  switch (pattern.error_code()) {
    case re2::RE2::ErrorBadEscape:
      what = "invalid escape sequence";
      break;
    case re2::RE2::ErrorBadCharClass:
      what = "invalid character class";
      break;
    case re2::RE2::ErrorBadCharRange:
      what = "invalid character class range";
      break;
    case re2::RE2::ErrorMissingBracket:
      what = "missing closing ]";
      break;
    case re2::RE2::ErrorMissingParen:
      what = "missing closing )";
      break;
    case re2::RE2::ErrorUnexpectedParen:
      what = "unexpected )";
      break;
    case re2::RE2::ErrorTrailingBackslash:
      return "error parsing regexp: trailing backslash at end of expression: ``";
    case re2::RE2::ErrorRepeatArgument:
      what = "missing argument to repetition operator";
      break;
    case re2::RE2::ErrorRepeatSize:
      what = "invalid repeat count";
      break;
    case re2::RE2::ErrorRepeatOp:
      what = "invalid nested repetition operator";
      break;
    case re2::RE2::ErrorBadPerlOp:
      what = "invalid or unsupported Perl syntax";
      break;
    case re2::RE2::ErrorBadUTF8:
      what = "invalid UTF-8";
      break;
    case re2::RE2::ErrorBadNamedCapture:
      what = "invalid named capture";
      break;
    case re2::RE2::ErrorPatternTooLarge:
      what = "expression too large";
      break;
    default:
      what = pattern.error();
      break;
  }
  return fmt::format("error parsing regexp: {}: `{}`", what, pattern.error_arg());
}

std::shared_ptr<const re2::RE2> compile(std::string_view text) {
  re2::RE2::Options options;
  options.set_log_errors(false);
  return std::make_shared<const re2::RE2>(re2::StringPiece(text.data(), text.size()), options);
}

/// The pattern of a call, from compile time or made now.
Expected<std::shared_ptr<const re2::RE2>, std::string> pattern_of(const Args& args) {
  if (args.compiled != nullptr) return std::shared_ptr<const re2::RE2>(static_cast<const re2::RE2*>(args.compiled), [](const re2::RE2*) {});
  auto made = compile(args[1].text());
  if (!made->ok()) return std::unexpected(go_words(*made));
  return made;
}

Value matches(const Args& args) {
  const auto pattern = pattern_of(args);
  if (!pattern) return Value::error(pattern.error());
  return Value::boolean(re2::RE2::PartialMatch(re2::StringPiece(args[0].text().data(), args[0].text().size()), **pattern));
}

Value find(const Args& args) {
  const auto pattern = pattern_of(args);
  if (!pattern) return Value::error("Illegal regex: " + pattern.error());
  const re2::StringPiece text(args[0].text().data(), args[0].text().size());
  re2::StringPiece match;
  if (!(*pattern)->Match(text, 0, text.size(), re2::RE2::UNANCHORED, &match, 1)) return Value::string("");
  return Value::string(std::string(match.data(), match.size()));
}

Value find_all(const Args& args) {
  const auto pattern = pattern_of(args);
  if (!pattern) return Value::error("Illegal regex: " + pattern.error());
  const re2::StringPiece text(args[0].text().data(), args[0].text().size());
  const auto limit = args.size() > 2 ? args[2].as_int() : -1;
  std::vector<Value> out;
  std::size_t at = 0;
  const char* last_end = nullptr;
  while (at <= text.size() && (limit < 0 || static_cast<std::int64_t>(out.size()) < limit)) {
    re2::StringPiece match;
    if (!(*pattern)->Match(text, at, text.size(), re2::RE2::UNANCHORED, &match, 1)) break;
    const auto start = static_cast<std::size_t>(match.data() - text.data());
    // An empty match right behind the match before it does not count.
    if (!match.empty() || match.data() != last_end) out.push_back(Value::string(std::string(match.data(), match.size())));
    last_end = match.data() + match.size();
    if (!match.empty()) {
      at = start + match.size();
    } else {
      at = start + 1;
      while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) ++at;
    }
  }
  return Value::list(std::move(out));
}

}  // namespace

Expected<std::shared_ptr<const void>, std::string> compile_pattern(std::string_view pattern) {
  auto made = compile(pattern);
  if (!made->ok()) return std::unexpected(go_words(*made));
  return std::shared_ptr<const void>(std::move(made));
}

void add_regex(Registry& r) {
  r.add("matches", "matches", "(string, string): bool", matches);
  r.add("matches", "matches_string", "string.(string): bool", matches);
  r.add("find", "string_find_string", "string.(string): string", find);
  r.add("findAll", "string_find_all_string", "string.(string): list(string)", find_all);
  r.add("findAll", "string_find_all_string_int", "string.(string, int): list(string)", find_all);
}

}  // namespace berth::cel
