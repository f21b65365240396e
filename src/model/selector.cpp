#include "model/selector.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace berth::model {
namespace {

std::optional<std::int64_t> to_int(std::string_view text) {
  if (!text.empty() && text[0] == '+') text.remove_prefix(1);  // strconv.ParseInt takes a sign of either kind.
  if (text.empty() || text[0] == '+') return std::nullopt;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string op_word(Requirement::Op op) {
  switch (op) {
    case Requirement::Op::kIn:
      return "in";
    case Requirement::Op::kNotIn:
      return "notin";
    case Requirement::Op::kExists:
      return "exists";
    case Requirement::Op::kDoesNotExist:
      return "!";
    case Requirement::Op::kGt:
      return "gt";
    case Requirement::Op::kLt:
      return "lt";
  }
  return "";
}

bool is_alphanumeric(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }

/// A qualified name's last part, or a label value: alphanumerics at both ends, '-', '_' and '.' between.
bool is_name_part(std::string_view text) {
  if (text.empty() || !is_alphanumeric(text.front()) || !is_alphanumeric(text.back())) return false;
  return std::ranges::all_of(text, [](char c) { return is_alphanumeric(c) || c == '-' || c == '_' || c == '.'; });
}

bool is_qualified_name(std::string_view key) {
  const auto slash = key.find('/');
  if (slash == std::string_view::npos) return key.size() <= 63 && is_name_part(key);
  const auto prefix = key.substr(0, slash);
  const auto name = key.substr(slash + 1);
  const bool prefix_ok = !prefix.empty() && prefix.size() <= 253 && is_name_part(prefix) &&
                         std::ranges::none_of(prefix, [](char c) { return (c >= 'A' && c <= 'Z') || c == '_'; });
  return prefix_ok && name.size() <= 63 && is_name_part(name);
}

constexpr std::string_view kNameWords =
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. "
    "'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
constexpr std::string_view kValueWords =
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

std::string list_words(const std::vector<std::string>& values) {
  if (values.empty()) return "null";
  return fmt::format("[\"{}\"]", fmt::join(values, "\",\""));
}

Result<Requirement> checked(Requirement requirement) {
  if (const auto problems = requirement_problems(requirement, ""); !problems.empty()) return invalid(aggregate_words(problems));
  std::ranges::sort(requirement.values);
  return requirement;
}

/// The lexer and parser of apimachinery/pkg/labels/selector.go.
class SelectorParser {
 public:
  explicit SelectorParser(std::string_view text) : text_(text) { next(); }

  Result<std::vector<Requirement>> parse() {
    std::vector<Requirement> out;
    if (kind_ == Kind::kEnd) return out;
    if (kind_ != Kind::kWord && kind_ != Kind::kNot)
      return invalid(fmt::format("found '{}', expected: !, identifier, or 'end of string'", token_));
    while (true) {
      auto one = parse_requirement();
      if (!one) return std::unexpected(one.error());
      auto good = checked(std::move(*one));
      if (!good) return invalid("unable to parse requirement: " + good.error().message);
      out.push_back(std::move(*good));
      if (kind_ == Kind::kEnd) return out;
      if (kind_ != Kind::kComma) return invalid(fmt::format("found '{}', expected: ',' or 'end of string'", token_));
      next();
      if (kind_ != Kind::kWord && kind_ != Kind::kNot) return invalid(fmt::format("found '{}', expected: identifier after ','", token_));
    }
  }

 private:
  enum class Kind { kEnd, kWord, kComma, kOpen, kClose, kNot, kEquals, kNotEquals, kGreater, kLess, kError };

  void next() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
    if (at_ >= text_.size()) {
      kind_ = Kind::kEnd;
      token_ = {};
      return;
    }
    const std::size_t start = at_;
    if (is_special(text_[at_])) {
      const auto two = text_.substr(at_, 2);
      if (two == "==" || two == "!=") {
        at_ += 2;
        kind_ = two == "==" ? Kind::kEquals : Kind::kNotEquals;
      } else {
        switch (text_[at_++]) {
          case ',':
            kind_ = Kind::kComma;
            break;
          case '(':
            kind_ = Kind::kOpen;
            break;
          case ')':
            kind_ = Kind::kClose;
            break;
          case '!':
            kind_ = Kind::kNot;
            break;
          case '=':
            kind_ = Kind::kEquals;
            break;
          case '>':
            kind_ = Kind::kGreater;
            break;
          case '<':
            kind_ = Kind::kLess;
            break;
          default:
            kind_ = Kind::kError;
            break;
        }
      }
    } else {
      while (at_ < text_.size() && !is_space(text_[at_]) && !is_special(text_[at_])) ++at_;
      kind_ = Kind::kWord;
    }
    token_ = text_.substr(start, at_ - start);
  }

  Result<Requirement> parse_requirement() {
    Requirement out;
    bool negated = false;
    if (kind_ == Kind::kNot) {
      negated = true;
      next();
    }
    if (kind_ != Kind::kWord) return invalid(fmt::format("unable to parse requirement: found '{}', expected: identifier", token_));
    out.key = std::string(token_);
    if (!is_qualified_name(out.key))
      return invalid(fmt::format("unable to parse requirement: <nil>: Invalid value: \"{}\": {}{}", out.key,
                                 out.key.empty() ? "name part must be non-empty; " : "", kNameWords));
    next();
    if (negated) {
      out.op = Requirement::Op::kDoesNotExist;
      return out;
    }
    if (kind_ == Kind::kEnd || kind_ == Kind::kComma) return out;
    if (kind_ == Kind::kEquals || kind_ == Kind::kNotEquals || kind_ == Kind::kGreater || kind_ == Kind::kLess) {
      out.op = kind_ == Kind::kEquals      ? Requirement::Op::kIn
               : kind_ == Kind::kNotEquals ? Requirement::Op::kNotIn
               : kind_ == Kind::kGreater   ? Requirement::Op::kGt
                                           : Requirement::Op::kLt;
      next();
      if (kind_ == Kind::kWord) {
        out.values.emplace_back(token_);
        next();
      } else if (kind_ == Kind::kEnd || kind_ == Kind::kComma) {
        out.values.emplace_back();
      } else {
        return invalid(fmt::format("unable to parse requirement: found '{}', expected: identifier", token_));
      }
      return out;
    }
    if (kind_ == Kind::kWord && (token_ == "in" || token_ == "notin")) {
      out.op = token_ == "in" ? Requirement::Op::kIn : Requirement::Op::kNotIn;
      next();
      return parse_set(std::move(out));
    }
    return invalid(fmt::format("unable to parse requirement: found '{}', expected: in, notin, =, ==, !=, gt, lt", token_));
  }

  Result<Requirement> parse_set(Requirement out) {
    if (kind_ != Kind::kOpen) return invalid(fmt::format("unable to parse requirement: found '{}' expected: '('", token_));
    next();
    while (true) {
      // "(a,,b)", "(,a)" and "()" hold the empty string where a value is missing.
      if (kind_ == Kind::kWord) {
        out.values.emplace_back(token_);
        next();
      } else if (kind_ == Kind::kComma || kind_ == Kind::kClose) {
        out.values.emplace_back();
      } else {
        return invalid(fmt::format("unable to parse requirement: found '{}', expected: ',', ')' or identifier", token_));
      }
      if (kind_ == Kind::kClose) break;
      if (kind_ != Kind::kComma) return invalid(fmt::format("unable to parse requirement: found '{}', expected: ',' or ')'", token_));
      next();
    }
    next();
    std::ranges::sort(out.values);
    out.values.erase(std::ranges::unique(out.values).begin(), out.values.end());
    return out;
  }

  static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }
  static bool is_special(char c) { return std::string_view("=!(),><").find(c) != std::string_view::npos; }

  std::string_view text_;
  std::size_t at_ = 0;
  Kind kind_ = Kind::kEnd;
  std::string_view token_;
};

std::string string_of(const json::Value& value) { return value.is_string() ? std::string(json::as_view(value)) : std::string(); }

}  // namespace

std::vector<std::string> requirement_problems(const Requirement& requirement, std::string_view path) {
  const auto& [key, op, values] = requirement;
  std::vector<std::string> out;
  // Each names the key: many bad values and a long key would make a text that is the product of both.
  constexpr std::size_t kMostBytes = 64 * 1024;
  std::size_t bytes = 0;
  const auto say = [&](std::string_view field, std::string_view value, std::string_view words) {
    if (bytes > kMostBytes) return;
    bytes += out.emplace_back(fmt::format("{}{}: Invalid value: {}: {}", path, field, value, words)).size();
  };
  const auto quoted = [](std::string_view text) { return fmt::format("\"{}\"", text); };
  if (!is_qualified_name(key)) say("key", quoted(key), (key.empty() ? "name part must be non-empty; " : "") + std::string(kNameWords));
  switch (op) {
    case Requirement::Op::kIn:
    case Requirement::Op::kNotIn:
      if (values.empty()) say("values", list_words(values), "for 'in', 'notin' operators, values set can't be empty");
      break;
    case Requirement::Op::kExists:
    case Requirement::Op::kDoesNotExist:
      if (!values.empty()) say("values", list_words(values), "values set must be empty for exists and does not exist");
      break;
    case Requirement::Op::kGt:
    case Requirement::Op::kLt:
      if (values.size() != 1) say("values", list_words(values), "for 'Gt', 'Lt' operators, exactly one value is required");
      for (std::size_t i = 0; i < values.size() && bytes <= kMostBytes; ++i)
        if (!to_int(values[i]))
          say(fmt::format("values[{}]", i), quoted(values[i]), "for 'Gt', 'Lt' operators, the value must be an integer");
      break;
  }
  for (std::size_t i = 0; i < values.size() && bytes <= kMostBytes; ++i) {
    const auto field = fmt::format("values[{}][{}]", i, key);
    if (values[i].size() > 63) say(field, quoted(values[i]), "must be no more than 63 bytes");
    if (!values[i].empty() && !is_name_part(values[i])) say(field, quoted(values[i]), kValueWords);
  }
  return out;
}

std::string aggregate_words(const std::vector<std::string>& problems) {
  std::vector<std::string> distinct;
  for (const auto& one : problems)
    if (std::ranges::find(distinct, one) == distinct.end()) distinct.push_back(one);
  if (distinct.size() == 1) return distinct.front();
  return fmt::format("[{}]", fmt::join(distinct, ", "));
}

Labels::Labels(std::vector<std::pair<std::string, std::string>> pairs) {
  std::ranges::stable_sort(pairs, {}, &std::pair<std::string, std::string>::first);
  // Of equal keys the last one counts, as in a JSON object.
  std::size_t kept = 0;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    if (i + 1 < pairs.size() && pairs[i].first == pairs[i + 1].first) continue;
    if (kept != i) pairs[kept] = std::move(pairs[i]);
    ++kept;
  }
  pairs.resize(kept);
  pairs_ = std::move(pairs);
}

Labels Labels::from_json(const json::Value* labels) {
  if (labels == nullptr || !labels->is_object()) return {};
  std::vector<std::pair<std::string, std::string>> pairs;
  pairs.reserve(labels->get_object().size());
  for (const auto& [key, value] : labels->get_object())
    if (value.is_string()) pairs.emplace_back(std::string(key), std::string(json::as_view(value)));
  return Labels(std::move(pairs));
}

const std::string* Labels::get(std::string_view key) const {
  const auto& pairs = *pairs_;
  const auto at = std::ranges::lower_bound(pairs, key, {}, [](const auto& pair) -> std::string_view { return pair.first; });
  return at != pairs.end() && at->first == key ? &at->second : nullptr;
}

bool Requirement::matches(const Labels& labels) const {
  const std::string* value = labels.get(key);
  switch (op) {
    case Op::kIn:
      return value != nullptr && std::ranges::binary_search(values, *value);
    case Op::kNotIn:
      return value == nullptr || !std::ranges::binary_search(values, *value);
    case Op::kExists:
      return value != nullptr;
    case Op::kDoesNotExist:
      return value == nullptr;
    case Op::kGt:
    case Op::kLt: {
      if (value == nullptr || values.size() != 1) return false;
      const auto left = to_int(*value);
      const auto right = to_int(values[0]);
      if (!left || !right) return false;
      return op == Op::kGt ? *left > *right : *left < *right;
    }
  }
  return false;
}

Selector::Selector(std::vector<Requirement> requirements) : requirements_(std::move(requirements)) {
  for (auto& requirement : requirements_) std::ranges::sort(requirement.values);
  std::ranges::stable_sort(requirements_, {}, &Requirement::key);
}

Selector Selector::nothing() {
  Selector out;
  out.nothing_ = true;
  return out;
}

Result<Selector> Selector::parse(std::string_view text) {
  auto requirements = SelectorParser(text).parse();
  if (!requirements) return std::unexpected(requirements.error());
  return Selector(std::move(*requirements));
}

Result<Selector> Selector::from_label_selector(const json::Value* selector) {
  if (selector == nullptr || selector->is_null()) return nothing();
  std::vector<Requirement> out;
  for (const auto& [key, value] : json::get_object(*selector, {"matchLabels"}))
    out.push_back({std::string(key), Requirement::Op::kIn, {string_of(value)}});
  for (const auto& expression : json::get_array(*selector, {"matchExpressions"})) {
    Requirement one;
    one.key = std::string(json::get_string(expression, {"key"}));
    const auto op = json::get_string(expression, {"operator"});
    if (op == "In") {
      one.op = Requirement::Op::kIn;
    } else if (op == "NotIn") {
      one.op = Requirement::Op::kNotIn;
    } else if (op == "Exists") {
      one.op = Requirement::Op::kExists;
    } else if (op == "DoesNotExist") {
      one.op = Requirement::Op::kDoesNotExist;
    } else {
      return invalid(fmt::format("\"{}\" is not a valid label selector operator", op));
    }
    for (const auto& value : json::get_array(expression, {"values"})) one.values.push_back(string_of(value));
    auto good = checked(std::move(one));
    if (!good) return std::unexpected(good.error());
    out.push_back(std::move(*good));
  }
  return Selector(std::move(out));
}

Selector Selector::from_map(const json::Value* map) {
  std::vector<Requirement> out;
  if (map != nullptr && map->is_object())
    for (const auto& [key, value] : map->get_object()) out.push_back({std::string(key), Requirement::Op::kIn, {string_of(value)}});
  return Selector(std::move(out));
}

bool Selector::matches(const Labels& labels) const {
  return !nothing_ && std::ranges::all_of(requirements_, [&](const Requirement& r) { return r.matches(labels); });
}

std::string Selector::to_string() const {
  std::string out;
  for (const auto& [key, op, values] : requirements_) {
    if (!out.empty()) out += ',';
    if (op == Requirement::Op::kDoesNotExist) {
      out += "!" + key;
    } else if (op == Requirement::Op::kExists) {
      out += key;
    } else if (op == Requirement::Op::kGt || op == Requirement::Op::kLt) {
      out += key + (op == Requirement::Op::kGt ? ">" : "<") + (values.empty() ? "" : values[0]);
    } else if (op == Requirement::Op::kIn && values.size() == 1) {
      out += key + "=" + values[0];
    } else {
      out += fmt::format("{} {} ({})", key, op_word(op), fmt::join(values, ","));
    }
  }
  return out;
}

Result<FieldSelector> FieldSelector::parse(std::string_view text) {
  FieldSelector out;
  std::string current;
  std::vector<std::string> terms;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size()) {
      current += text[i];
      current += text[++i];
    } else if (text[i] == ',') {
      terms.push_back(std::move(current));
      current.clear();
    } else {
      current += text[i];
    }
  }
  terms.push_back(std::move(current));
  for (const auto& term : terms) {
    if (term.empty()) continue;
    std::size_t at = 0;
    while (at < term.size() && term[at] != '=' && !(term[at] == '!' && at + 1 < term.size() && term[at + 1] == '='))
      at += term[at] == '\\' ? 2 : 1;
    if (at >= term.size()) return invalid(fmt::format("invalid selector: '{}'; can't understand '{}'", text, term));
    const bool equals = term[at] == '=';
    const std::size_t width = term.compare(at, 2, "==") == 0 || !equals ? 2 : 1;
    std::string value;
    for (std::size_t i = at + width; i < term.size(); ++i) {
      if (term[i] == '\\') {
        if (i + 1 >= term.size() || std::string_view("\\,=").find(term[i + 1]) == std::string_view::npos)
          return invalid(fmt::format("invalid field selector: invalid escape sequence: {}", term.substr(i)));
        value += term[++i];
      } else if (term[i] == '=') {
        return invalid(fmt::format("invalid field selector: unescaped character in value: {}", term[i]));
      } else {
        value += term[i];
      }
    }
    out.terms.push_back({term.substr(0, at), equals, std::move(value)});
  }
  return out;
}

}  // namespace berth::model
