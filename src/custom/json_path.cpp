#include "custom/json_path.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>

namespace berth::custom {

/// One step: from values to values.
struct JsonPath::Step {
  enum class Kind { kName, kIndices, kSlice, kAll, kDeep, kFilter } kind = Kind::kName;
  std::vector<std::string> names;  ///< kName: any of them.
  std::vector<std::int64_t> indices;
  std::optional<std::int64_t> from, to;
  std::int64_t stride = 1;
  // kFilter
  std::shared_ptr<const JsonPath> left, right;  ///< Paths from "@"; null: the literal.
  json::Value left_value, right_value;
  std::string op;  ///< Empty: what `left` leads to is there.
};

namespace {

using Step = JsonPath::Step;

struct Parser {
  std::string_view text;
  std::size_t at = 0;
  std::vector<std::shared_ptr<const Step>> steps;
  std::string error;

  [[nodiscard]] bool done() const { return at >= text.size(); }
  [[nodiscard]] char peek() const { return done() ? '\0' : text[at]; }
  void fail(std::string why) {
    if (error.empty()) error = std::move(why);
  }
  void skip_space() {
    while (peek() == ' ') ++at;
  }

  void run() {
    if (peek() == '$' || peek() == '@') ++at;
    while (!done() && error.empty()) {
      if (peek() == '.') {
        ++at;
        if (peek() == '.') {
          ++at;
          add(Step{.kind = Step::Kind::kDeep});
        }
        if (peek() != '[' && !done()) name();
      } else if (peek() == '[') {
        ++at;
        bracket();
      } else {
        name();
      }
    }
  }

  void add(Step step) { steps.push_back(std::make_shared<const Step>(std::move(step))); }

  void name() {
    std::string out;
    while (!done() && peek() != '.' && peek() != '[') {
      if (peek() == '\\' && at + 1 < text.size()) ++at;
      out += text[at++];
    }
    if (out.empty()) return fail("unexpected path");
    if (out == "*") return add(Step{.kind = Step::Kind::kAll});
    add(Step{.kind = Step::Kind::kName, .names = {std::move(out)}});
  }

  std::string quoted() {
    const char mark = text[at++];
    std::string out;
    while (!done() && peek() != mark) {
      if (peek() == '\\' && at + 1 < text.size()) ++at;
      out += text[at++];
    }
    if (done()) fail("unterminated quoted string");
    ++at;
    return out;
  }

  std::optional<std::int64_t> number() {
    std::int64_t out = 0;
    const auto [end, bad] = std::from_chars(text.data() + at, text.data() + text.size(), out);
    if (bad != std::errc()) return std::nullopt;
    at = static_cast<std::size_t>(end - text.data());
    return out;
  }

  void bracket() {
    skip_space();
    if (peek() == '*') {
      ++at;
      add(Step{.kind = Step::Kind::kAll});
    } else if (peek() == '?') {
      ++at;
      filter();
    } else if (peek() == '\'' || peek() == '"') {
      Step step{.kind = Step::Kind::kName};
      while (error.empty()) {
        step.names.push_back(quoted());
        skip_space();
        if (peek() != ',') break;
        ++at;
        skip_space();
      }
      add(std::move(step));
    } else {
      numbers();
    }
    skip_space();
    if (peek() != ']') return fail("unterminated array");
    ++at;
  }

  void numbers() {
    Step step{.kind = Step::Kind::kIndices};
    const auto first = number();
    if (peek() == ':') {
      step.kind = Step::Kind::kSlice;
      step.from = first;
      ++at;
      step.to = number();
      if (peek() == ':') {
        ++at;
        step.stride = number().value_or(1);
        if (step.stride <= 0) return fail("step must be > 0");
      }
      return add(std::move(step));
    }
    if (!first) return fail(fmt::format("invalid array index {}", text.substr(at, text.find(']', at) - at)));
    step.indices.push_back(*first);
    while (peek() == ',') {
      ++at;
      skip_space();
      const auto next = number();
      if (!next) return fail("invalid array index");
      step.indices.push_back(*next);
    }
    add(std::move(step));
  }

  /// One side of a comparison.
  void operand(std::shared_ptr<const JsonPath>& path, json::Value& value) {
    skip_space();
    if (peek() == '\'' || peek() == '"') {
      value = json::Value(quoted());
      return;
    }
    std::size_t end = at;
    int depth = 0;
    while (end < text.size() && (depth > 0 || std::string_view("=!<>)").find(text[end]) == std::string_view::npos)) {
      if (text[end] == '[') ++depth;
      if (text[end] == ']') --depth;
      ++end;
    }
    auto part = text.substr(at, end - at);
    at = end;
    while (part.ends_with(' ')) part.remove_suffix(1);
    if (part.starts_with('@') || part.starts_with('$') || part.starts_with('.')) {
      auto parsed = JsonPath::parse(part);
      if (!parsed) return fail(parsed.error());
      path = std::make_shared<const JsonPath>(std::move(*parsed));
    } else if (auto parsed = json::parse(part)) {
      value = std::move(*parsed);
    } else {
      fail(fmt::format("unrecognized identifier {}", part));
    }
  }

  void filter() {
    if (peek() != '(') return fail("unterminated filter");
    ++at;
    Step step{.kind = Step::Kind::kFilter};
    operand(step.left, step.left_value);
    skip_space();
    for (const std::string_view op : {"==", "!=", "<=", ">=", "<", ">"})
      if (step.op.empty() && text.substr(at).starts_with(op)) {
        step.op = op;
        at += op.size();
      }
    if (!step.op.empty()) operand(step.right, step.right_value);
    skip_space();
    if (peek() != ')') return fail("unterminated filter");
    ++at;
    add(std::move(step));
  }
};

using Found = std::vector<const json::Value*>;

bool compare(const json::Value& a, const json::Value& b, std::string_view op) {
  if (op == "==") return json::equal(a, b);
  if (op == "!=") return !json::equal(a, b);
  int order = 0;
  if (a.is_number() && b.is_number()) {
    const double x = a.to_number<double>(), y = b.to_number<double>();
    order = x < y ? -1 : x > y ? 1 : 0;
  } else if (a.is_string() && b.is_string()) {
    order = json::as_view(a).compare(json::as_view(b));
  } else {
    return false;
  }
  if (op == "<") return order < 0;
  if (op == "<=") return order <= 0;
  return op == ">" ? order > 0 : order >= 0;
}

bool passes(const Step& step, const json::Value& element) {
  const auto side = [&](const std::shared_ptr<const JsonPath>& path, const json::Value& literal) -> const json::Value* {
    if (path == nullptr) return &literal;
    const auto found = path->find(element);
    return found.empty() ? nullptr : found.front();
  };
  const auto* left = side(step.left, step.left_value);
  if (step.op.empty()) return left != nullptr;
  const auto* right = side(step.right, step.right_value);
  return left != nullptr && right != nullptr && compare(*left, *right, step.op);
}

void every_child(const json::Value& value, Found& out) {
  if (const auto* list = value.if_array())
    for (const auto& element : *list) out.push_back(&element);
  if (const auto* object = value.if_object())
    for (const auto& member : *object) out.push_back(&member.value());
}

void descend(const json::Value& value, Found& out) {
  out.push_back(&value);
  Found below;
  every_child(value, below);
  for (const auto* one : below) descend(*one, out);
}

void take(const Step& step, const json::Value& value, Found& out) {
  const auto* list = value.if_array();
  const auto* object = value.if_object();
  switch (step.kind) {
    case Step::Kind::kName:
      if (object == nullptr) return;
      for (const auto& name : step.names)
        if (const auto* member = object->if_contains(name)) out.push_back(member);
      return;
    case Step::Kind::kIndices:
      if (list == nullptr) return;
      for (const auto index : step.indices) {
        const auto place = index < 0 ? index + static_cast<std::int64_t>(list->size()) : index;
        if (place >= 0 && place < static_cast<std::int64_t>(list->size())) out.push_back(&(*list)[static_cast<std::size_t>(place)]);
      }
      return;
    case Step::Kind::kSlice: {
      if (list == nullptr) return;
      const auto size = static_cast<std::int64_t>(list->size());
      auto from = step.from.value_or(0), to = step.to.value_or(size);
      if (from < 0) from += size;
      if (to < 0) to += size;
      for (auto i = std::max<std::int64_t>(from, 0); i < std::min(to, size); i += step.stride)
        out.push_back(&(*list)[static_cast<std::size_t>(i)]);
      return;
    }
    case Step::Kind::kAll:
      return every_child(value, out);
    case Step::Kind::kDeep:
      return descend(value, out);
    case Step::Kind::kFilter: {
      if (list == nullptr) return;
      for (const auto& element : *list)
        if (passes(step, element)) out.push_back(&element);
    }
  }
}

}  // namespace

Expected<JsonPath, std::string> JsonPath::parse(std::string_view text) {
  Parser parser{text, 0, {}, {}};
  parser.run();
  if (!parser.error.empty()) return std::unexpected(parser.error);
  JsonPath out;
  out.steps_ = std::move(parser.steps);
  return out;
}

std::vector<const json::Value*> JsonPath::find(const json::Value& root) const {
  Found now = {&root};
  for (const auto& step : steps_) {
    Found next;
    for (const auto* value : now) take(*step, *value, next);
    now = std::move(next);
  }
  return now;
}

}  // namespace berth::custom
