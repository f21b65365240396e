// Recursive descent over cel-go's grammar (parser/gen/CEL.g4).
#include <charconv>

#include "cel/ast.h"
#include "cel/lexer.h"
#include "cel/text.h"

namespace berth::cel {
namespace {

constexpr std::size_t kMostCodePoints = 100'000;
constexpr std::uint32_t kMostDepth = 250;
constexpr std::string_view kStartOfExpression =
    "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}";

bool is_reserved(std::string_view id) {
  static constexpr std::string_view kWords[] = {"as",  "break", "const",   "continue",  "else",   "for", "function", "if",   "import",
                                                "let", "loop",  "package", "namespace", "return", "var", "void",     "while"};
  return std::find(std::begin(kWords), std::end(kWords), id) != std::end(kWords);
}

class Parser {
 public:
  Parser(std::vector<Token> tokens, std::string_view source, bool has_bind, Issues& issues)
      : tokens_(std::move(tokens)), source_(source), has_bind_(has_bind), issues_(issues) {}

  NodePtr run() {
    auto root = expression();
    if (root == nullptr || has_failed_) return nullptr;
    if (now().kind != Tok::kEnd) {
      fail(fmt::format("extraneous input '{}' expecting <EOF>", now().text));
      return nullptr;
    }
    return root;
  }

 private:
  [[nodiscard]] const Token& now() const { return tokens_[at_]; }
  [[nodiscard]] const Token& ahead(std::size_t n) const { return tokens_[std::min(at_ + n, tokens_.size() - 1)]; }
  const Token& take() { return tokens_[at_ + 1 < tokens_.size() ? at_++ : at_]; }
  bool accept(std::string_view punctuation) {
    if (!now().is(punctuation)) return false;
    take();
    return true;
  }
  NodePtr fail(const std::string& message) {
    if (!has_failed_) issues_.report(now().offset, "Syntax error: " + message);
    has_failed_ = true;
    return nullptr;
  }
  NodePtr expected(std::string_view what) { return fail(fmt::format("mismatched input '{}' expecting {}", now().text, what)); }
  [[nodiscard]] bool starts_expression() const {
    const auto& t = now();
    return t.kind != Tok::kEnd && t.kind != Tok::kIn && t.kind != Tok::kEscapedIdent &&
           (t.kind != Tok::kPunctuation || t.is("[") || t.is("{") || t.is("(") || t.is(".") || t.is("-") || t.is("!"));
  }
  bool expect(std::string_view punctuation, std::string_view what) {
    if (accept(punctuation)) return true;
    // As the real parser recovers: a token too many before the wanted one, a wanted one forgotten before what may follow it, or neither.
    if (ahead(1).is(punctuation) && now().kind != Tok::kEnd) {
      fail(fmt::format("extraneous input '{}' expecting {}", now().text, what));
    } else if ((punctuation == ":" && starts_expression()) || (punctuation == ")" && now().kind == Tok::kEnd && open_ == 1)) {
      fail(fmt::format("missing '{}' at '{}'", punctuation, now().text));
    } else {
      expected(what);
    }
    return false;
  }
  bool deeper() {
    if (++depth_ <= kMostDepth) return true;
    too_deep();
    return false;
  }
  void too_deep() {
    if (!has_failed_) issues_.report_nowhere(fmt::format("expression recursion limit exceeded: {}", kMostDepth));
    has_failed_ = true;
  }
  NodePtr make(NodeKind kind, std::size_t offset, std::string_view name = {}) {
    auto node = std::make_shared<Node>();
    node->kind = kind;
    node->offset = static_cast<std::uint32_t>(offset);
    node->name = name;
    return node;
  }
  /// Sets the depth, expands macros.
  NodePtr finish(NodePtr node) {
    for (const auto& child : node->children) node->depth = std::max(node->depth, child->depth + 1);
    if (node->depth > kMostDepth) {
      if (!has_failed_) issues_.report_nowhere("max recursion depth exceeded");
      has_failed_ = true;
      return nullptr;
    }
    if (node->kind != NodeKind::kCall) return node;
    auto expanded = expand_macro(node, has_bind_, issues_);
    if (!expanded) return node;
    if (*expanded == nullptr) {
      has_macro_errors_ = true;
      return node;
    }
    return *expanded;
  }
  NodePtr call(std::size_t offset, std::string_view function, std::vector<NodePtr> arguments) {
    auto node = make(NodeKind::kCall, offset, function);
    node->children = std::move(arguments);
    return finish(std::move(node));
  }

  NodePtr expression() {
    if (!deeper()) return nullptr;
    auto out = ternary();
    --depth_;
    return out;
  }
  NodePtr ternary() {
    auto condition = logical(op::kOr, "||");
    if (condition == nullptr || !now().is("?")) return condition;
    const auto offset = take().offset;
    auto truthy = logical(op::kOr, "||");
    if (truthy == nullptr) return nullptr;
    if (!expect(":", "':'")) return nullptr;
    auto falsy = expression();
    if (falsy == nullptr) return nullptr;
    return call(offset, op::kConditional, {condition, truthy, falsy});
  }
  /// A chain of && or ||, as a balanced tree.
  NodePtr logical(std::string_view function, std::string_view token) {
    const auto term = [&] { return token == "||" ? logical(op::kAnd, "&&") : relation(); };
    std::vector<NodePtr> terms{term()};
    if (terms[0] == nullptr) return nullptr;
    std::vector<std::size_t> offsets;
    while (now().is(token)) {
      offsets.push_back(take().offset);
      terms.push_back(term());
      if (terms.back() == nullptr) return nullptr;
    }
    if (terms.size() == 1) return terms[0];
    return balanced(function, terms, offsets, 0, offsets.size() - 1);
  }
  NodePtr balanced(std::string_view function, const std::vector<NodePtr>& terms, const std::vector<std::size_t>& offsets, std::size_t low,
                   std::size_t high) {
    const auto middle = (low + high + 1) / 2;
    auto left = middle == low ? terms[middle] : balanced(function, terms, offsets, low, middle - 1);
    auto right = middle == high ? terms[middle + 1] : balanced(function, terms, offsets, middle + 1, high);
    if (left == nullptr || right == nullptr) return nullptr;
    return call(offsets[middle], function, {left, right});
  }
  NodePtr relation() {
    auto left = sum();
    while (left != nullptr) {
      std::string_view function;
      const auto& token = now();
      if (token.kind == Tok::kIn)
        function = op::kIn;
      else if (token.is("<"))
        function = op::kLess;
      else if (token.is("<="))
        function = op::kLessEquals;
      else if (token.is(">="))
        function = op::kGreaterEquals;
      else if (token.is(">"))
        function = op::kGreater;
      else if (token.is("=="))
        function = op::kEquals;
      else if (token.is("!="))
        function = op::kNotEquals;
      else
        break;
      const auto offset = take().offset;
      auto right = sum();
      if (right == nullptr) return nullptr;
      left = call(offset, function, {left, right});
    }
    return left;
  }
  NodePtr sum() {
    auto left = product();
    while (left != nullptr && (now().is("+") || now().is("-"))) {
      const auto& token = take();
      const auto function = token.text == "+" ? op::kAdd : op::kSubtract;
      auto right = product();
      if (right == nullptr) return nullptr;
      left = call(token.offset, function, {left, right});
    }
    return left;
  }
  NodePtr product() {
    auto left = unary();
    while (left != nullptr && (now().is("*") || now().is("/") || now().is("%"))) {
      const auto& token = take();
      const auto function = token.text == "*" ? op::kMultiply : token.text == "/" ? op::kDivide : op::kModulo;
      auto right = unary();
      if (right == nullptr) return nullptr;
      left = call(token.offset, function, {left, right});
    }
    return left;
  }
  NodePtr unary() {
    if (now().is("!") || (now().is("-") && !(ahead(1).kind == Tok::kInt || ahead(1).kind == Tok::kDouble))) {
      const auto sign = now().text;
      const auto offset = now().offset;
      std::size_t count = 0;
      while (now().is(sign)) {
        take();
        ++count;
      }
      if (now().kind == Tok::kEnd && sign == "!") return fail(fmt::format("extraneous input '<EOF>' expecting {}", kStartOfExpression));
      if (now().kind == Tok::kEnd) issues_.report(now().offset, "Syntax error: no viable alternative at input '-'");
      auto operand = member();
      if (operand == nullptr || count % 2 == 0) return operand;
      return call(offset, sign == "!" ? op::kNot : op::kNegate, {operand});
    }
    return member();
  }
  NodePtr member() {
    auto node = primary();
    while (node != nullptr) {
      if (now().is(".")) {
        node = after_dot(std::move(node));
      } else if (now().is("[")) {
        const auto offset = take().offset;
        const bool is_optional = accept("?");
        auto index = expression();
        if (index == nullptr) return nullptr;
        if (!expect("]", "']'")) return nullptr;
        node = call(offset, is_optional ? op::kOptIndex : op::kIndex, {node, index});
      } else {
        break;
      }
    }
    return node;
  }
  NodePtr after_dot(NodePtr operand) {
    const auto dot = take().offset;
    const bool is_optional = accept("?");
    if (now().kind == Tok::kEscapedIdent) {
      issues_.report(now().offset, "unsupported syntax: '`'");
      has_macro_errors_ = true;
    } else if (now().kind != Tok::kIdent) {
      if (is_optional) return expected("{IDENTIFIER, ESC_IDENTIFIER}");
      if (now().kind == Tok::kIn || now().kind == Tok::kTrue || now().kind == Tok::kFalse || now().kind == Tok::kNull)
        return now().kind == Tok::kIn ? fail("no viable alternative at input '.in'") : expected("IDENTIFIER");
      return fail(fmt::format("no viable alternative at input '.{}'", now().kind == Tok::kEnd ? "" : now().text));
    }
    const auto id = take();
    if (is_optional) {
      auto field = make(NodeKind::kLiteral, id.offset);
      field->literal = Value::string(std::string(id.text));
      return call(dot, op::kOptSelect, {operand, field});
    }
    if (now().is("(")) {
      const auto open = take().offset;
      auto node = make(NodeKind::kCall, open, id.text);
      node->has_target = true;
      node->children.push_back(std::move(operand));
      if (!arguments(node->children)) return nullptr;
      return finish(std::move(node));
    }
    auto node = make(NodeKind::kSelect, dot, id.text);
    node->children.push_back(std::move(operand));
    return finish(std::move(node));
  }
  bool arguments(std::vector<NodePtr>& out) {
    if (accept(")")) return true;
    if (!starts_expression()) {
      std::string set(kStartOfExpression);
      set.insert(set.find("'.'"), "')', ");
      expected(set);
      return false;
    }
    ++open_;
    while (true) {
      auto argument = expression();
      if (argument == nullptr) return false;
      out.push_back(std::move(argument));
      if (accept(",")) continue;
      if (!expect(")", "')'")) return false;
      --open_;
      return true;
    }
  }
  NodePtr primary() {
    const auto& token = now();
    if (token.is("(")) {
      take();
      ++open_;
      auto inner = expression();
      if (inner == nullptr || !expect(")", "')'")) return nullptr;
      --open_;
      return inner;
    }
    if (token.is("[")) return list();
    if (token.is("{")) return map();
    if (token.is(".") && ahead(1).kind == Tok::kIdent) return identifier(true);
    if (token.kind == Tok::kIdent) return identifier(false);
    if (auto value = literal()) return value;
    if (has_failed_) return nullptr;
    const auto before = at_;
    take();
    const bool is_one_too_many = token.kind != Tok::kEnd && starts_expression();
    at_ = before;
    return fail(fmt::format("{} input '{}' expecting {}", is_one_too_many ? "extraneous" : "mismatched", token.text, kStartOfExpression));
  }
  NodePtr identifier(bool has_dot) {
    const auto start = now().offset;
    if (has_dot) take();
    if (auto message = message_literal(has_dot, start); message != nullptr || has_failed_) return message;
    const auto id = take();
    const auto name = (has_dot ? "." : "") + std::string(id.text);
    if (is_reserved(id.text)) {
      issues_.report(start, fmt::format("reserved identifier: {}", id.text));
      has_macro_errors_ = true;
    }
    if (!now().is("(")) return make(NodeKind::kIdent, id.offset, name);
    auto node = make(NodeKind::kCall, take().offset, name);
    if (!arguments(node->children)) return nullptr;
    return finish(std::move(node));
  }
  /// Name.Of.Type{field: value}; null when this is none.
  NodePtr message_literal(bool has_dot, std::size_t) {
    std::size_t n = 1;
    while (ahead(n).is(".") && ahead(n + 1).kind == Tok::kIdent) n += 2;
    if (!ahead(n).is("{")) return nullptr;
    std::string name = has_dot ? "." : "";
    for (std::size_t i = 0; i < n; ++i) name += take().text;
    auto node = make(NodeKind::kStruct, take().offset, name);
    while (!accept("}")) {
      node->optionals.push_back(accept("?"));
      if (now().kind != Tok::kIdent) return expected("{'}', IDENTIFIER}");
      node->fields.emplace_back(take().text);
      if (!expect(":", "':'")) return nullptr;
      auto value = expression();
      if (value == nullptr) return nullptr;
      node->children.push_back(std::move(value));
      if (accept(",")) continue;
      if (!expect("}", "{'}', ','}")) return nullptr;
      break;
    }
    return finish(std::move(node));
  }
  NodePtr list() {
    auto node = make(NodeKind::kList, take().offset);
    while (!accept("]")) {
      if (node->children.empty() && now().is(",") && ahead(1).is("]")) {
        take();
        continue;
      }
      if (!node->children.empty() && !starts_expression() && !now().is("?") && now().kind != Tok::kEnd) return expected("']'");
      node->optionals.push_back(accept("?"));
      auto element = expression();
      if (element == nullptr) return nullptr;
      node->children.push_back(std::move(element));
      if (accept(",")) continue;
      if (!expect("]", "{']', ','}")) return nullptr;
      break;
    }
    return finish(std::move(node));
  }
  NodePtr map() {
    auto node = make(NodeKind::kMap, take().offset);
    while (!accept("}")) {
      if (node->children.empty() && now().is(",") && ahead(1).is("}")) {
        take();
        continue;
      }
      node->optionals.push_back(accept("?"));
      auto key = expression();
      if (key == nullptr) return nullptr;
      if (!expect(":", "':'")) return nullptr;
      auto value = expression();
      if (value == nullptr) return nullptr;
      node->children.push_back(std::move(key));
      node->children.push_back(std::move(value));
      if (accept(",")) continue;
      if (!expect("}", "{'}', ','}")) return nullptr;
      break;
    }
    return finish(std::move(node));
  }
  NodePtr literal() {
    const auto start = now().offset;
    const bool is_negative = now().is("-") && (ahead(1).kind == Tok::kInt || ahead(1).kind == Tok::kDouble);
    if (is_negative) take();
    const auto token = now();
    auto node = make(NodeKind::kLiteral, start);
    const auto wrong = [&](std::string_view what) {
      issues_.report(start, std::string(what));
      has_macro_errors_ = true;
    };
    switch (token.kind) {
      case Tok::kTrue:
      case Tok::kFalse:
        node->literal = Value::boolean(token.kind == Tok::kTrue);
        break;
      case Tok::kNull:
        break;
      case Tok::kInt:
      case Tok::kUint:
        integer(*node, token, is_negative, wrong);
        break;
      case Tok::kDouble: {
        double value = 0;
        const auto result = std::from_chars(token.text.data(), token.text.data() + token.text.size(), value);
        if (result.ec == std::errc::result_out_of_range &&
            (token.text.find("e-") != std::string_view::npos || token.text.find("E-") != std::string_view::npos))
          value = 0;
        else if (result.ec != std::errc())
          wrong("invalid double literal");
        node->literal = Value::real(is_negative ? -value : value);
        break;
      }
      case Tok::kString:
      case Tok::kBytes: {
        const bool is_bytes = token.kind == Tok::kBytes;
        auto text = unescape(is_bytes ? token.text.substr(1) : token.text, is_bytes);
        if (!text) wrong(text.error());
        node->literal = is_bytes ? Value::bytes(text.value_or("")) : Value::string(text.value_or(""));
        break;
      }
      default:
        return nullptr;
    }
    take();
    return node;
  }
  template <typename Wrong>
  void integer(Node& node, const Token& token, bool is_negative, const Wrong& wrong) {
    auto digits = token.kind == Tok::kUint ? token.text.substr(0, token.text.size() - 1) : token.text;
    int base = 10;
    if (digits.starts_with("0x")) {
      base = 16;
      digits.remove_prefix(2);
    }
    std::uint64_t value = 0;
    const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
    const bool fits = result.ec == std::errc();
    if (token.kind == Tok::kUint) {
      if (!fits) wrong("invalid uint literal");
      node.literal = Value::uinteger(value);
      return;
    }
    const std::uint64_t most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) + (is_negative ? 1 : 0);
    if (!fits || value > most) {
      wrong("invalid int literal");
      value = 0;
    }
    node.literal = Value::integer(static_cast<std::int64_t>(is_negative ? 0 - value : value));
  }

  std::vector<Token> tokens_;
  std::string_view source_;
  bool has_bind_;
  Issues& issues_;
  std::size_t at_ = 0;
  std::uint32_t depth_ = 0;
  int open_ = 0;  ///< Parentheses that wait for their end.
  bool has_failed_ = false, has_macro_errors_ = false;
};

}  // namespace

NodePtr parse_expression(std::string_view source, bool has_bind, Issues& issues) {
  if (const auto size = rune_count(source); size > kMostCodePoints) {
    issues.report_nowhere(fmt::format("expression code point size exceeds limit: size: {}, limit {}", size, kMostCodePoints));
    return nullptr;
  }
  auto tokens = tokenize(source, issues);
  auto root = Parser(std::move(tokens), source, has_bind, issues).run();
  return issues.empty() ? root : nullptr;
}

}  // namespace berth::cel
