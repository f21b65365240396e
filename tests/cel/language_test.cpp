// The language against what cel-go and Kubernetes 1.36's libraries answer.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "base/yaml.h"
#include "cel/authorizer.h"
#include "cel/cel.h"
#include "tests/support/source_dir.h"

namespace berth::cel {
namespace {

Environment environment() {
  Environment out;
  out.variables = {{"object", dyn_type()},
                   {"i", int_type()},
                   {"s", string_type()},
                   {"request", struct_type("Request")},
                   {"authorizer", authorizer_type()}};
  out.structs = {{"Request", {{"name", string_type()}, {"dryRun", bool_type()}}}};
  return out;
}

const json::Value& object() {
  static const json::Value document = *json::parse(R"({"metadata":{"name":"web","labels":{"app":"web","tier":"front"}},
    "spec":{"replicas":5,"list":[1,2,3],"containers":[{"name":"a","image":"nginx:1.2"},{"name":"b","image":"evil/busybox"}]},"n":null})");
  return document;
}

Evaluation run(std::string_view expression, std::uint64_t limit = kPerCallCostLimit) {
  const auto program = compile(expression, environment());
  if (!program) return {std::unexpected(EvalError{EvalError::Code::kFailed, "compile: " + program.error().text}), 0};
  static const Authorize authorize = [](const AuthorizationCheck& check) {
    return AuthorizationAnswer{check.verb == "get" && check.resource == "pods" && check.ns == "default", "because", ""};
  };
  static const Bindings bindings{{"object", Value::borrowed_json(object())},
                                 {"i", Value::integer(42)},
                                 {"s", Value::string("wörld")},
                                 {"request", Value::map({{"name", Value::string("x")}})},
                                 {"authorizer", make_authorizer(authorize)}};
  return program->evaluate(bindings, limit);
}

/// The value as JSON text, or the error's words.
std::string answer(std::string_view expression) {
  const auto out = run(expression);
  if (!out.value) return out.value.error().message;
  const auto document = to_json(*out.value);
  return document ? json::serialize(*document) : document.error().message;
}

std::string compile_error(std::string_view expression) {
  const auto program = compile(expression, environment());
  return program ? "compiles" : program.error().text;
}

TEST(Answers, AreThoseOfTheRealLanguage) {
  std::ifstream file(berth::testing::source_dir() + "/tests/cel/cases/answers.yaml");
  std::stringstream text;
  text << file.rdbuf();
  const auto groups = json::parse_yaml(text.str());
  ASSERT_TRUE(groups.has_value()) << groups.error().message;
  std::size_t count = 0;
  for (const auto& [group, cases] : groups->get_object())
    for (const auto& one : cases.get_array()) {
      const auto& pair = one.get_array();
      EXPECT_EQ(answer(json::as_view(pair.at(0))), json::as_view(pair.at(1)))
          << std::string_view(group) << ": " << json::as_view(pair.at(0));
      ++count;
    }
  EXPECT_GT(count, 100U);
}

TEST(Evaluation, SaysWhetherAnOperatorIsForOtherValues) {
  const auto code = [](std::string_view expression) { return run(expression).value.error().code; };
  EXPECT_EQ(code("object.spec.replicas + 'a'"), EvalError::Code::kNoOverload);
  EXPECT_EQ(code("object.n ? 1 : 2"), EvalError::Code::kNoOverload);
  EXPECT_EQ(code("7 / 0"), EvalError::Code::kFailed);
}

TEST(CompileErrors, AreToldInTheRealWordsAtTheirPlaces) {
  EXPECT_EQ(compile_error("foo"), "ERROR: <input>:1:1: undeclared reference to 'foo' (in container '')\n | foo\n | ^");
  EXPECT_EQ(compile_error("i == 'a'"),
            "ERROR: <input>:1:3: found no matching overload for '_==_' applied to '(int, string)'\n | i == 'a'\n | ..^");
  EXPECT_EQ(compile_error("request.nope"), "ERROR: <input>:1:8: undefined field 'nope'\n | request.nope\n | .......^");
  EXPECT_EQ(compile_error("i.foo"), "ERROR: <input>:1:2: type 'int' does not support field selection\n | i.foo\n | .^");
  EXPECT_EQ(compile_error("[1, 'a']"), "ERROR: <input>:1:5: expected type 'int' but found 'string'\n | [1, 'a']\n | ....^");
  EXPECT_EQ(compile_error("'a'.matches('[')"), "ERROR: <input>:1:13: invalid matches argument\n | 'a'.matches('[')\n | ............^");
  EXPECT_EQ(compile_error("duration('x')"), "ERROR: <input>:1:10: invalid duration argument\n | duration('x')\n | .........^");
  EXPECT_EQ(compile_error("a b"), "ERROR: <input>:1:3: Syntax error: extraneous input 'b' expecting <EOF>\n | a b\n | ..^");
  EXPECT_EQ(compile_error("(1"), "ERROR: <input>:1:3: Syntax error: missing ')' at '<EOF>'\n | (1\n | ..^");
  EXPECT_EQ(compile_error("if"), "ERROR: <input>:1:1: reserved identifier: if\n | if\n | ^");
  EXPECT_EQ(compile_error("true\n && nope"), "ERROR: <input>:2:5: undeclared reference to 'nope' (in container '')\n |  && nope\n | ....^");
}

TEST(CompileErrors, DepthAndSizeAreBounded) {
  EXPECT_EQ(compile_error(std::string(300, '(') + "1" + std::string(300, ')')),
            "ERROR: <input>:-1:0: expression recursion limit exceeded: 250");
  std::string chain = "1";
  for (int i = 0; i < 300; ++i) chain += "+1";
  EXPECT_EQ(compile_error(chain), "ERROR: <input>:-1:0: max recursion depth exceeded");
  EXPECT_EQ(compile_error(fmt::format("{:100001}1", "")),
            "ERROR: <input>:-1:0: expression code point size exceeds limit: size: 100002, limit 100000");
}

TEST(Cost, IsCountedAsTheRealEvaluatorCountsIt) {
  const std::pair<const char*, std::uint64_t> cases[] = {
      {"object.metadata.name", 3},           {"has(object.metadata.name)", 2}, {"[1, 2, 3]", 0},
      {"object.spec.replicas in [1, 5]", 3}, {"object.spec.replicas <= 5", 4}, {"1 + 2", 1}};
  for (const auto& [expression, cost] : cases) EXPECT_EQ(run(expression).cost, cost) << expression;
}

TEST(Cost, StopsWhatRunsAway) {
  const auto out = run("lists.range(300).all(x, lists.range(300).all(y, lists.range(300).all(z, z >= 0)))");
  ASSERT_FALSE(out.value);
  EXPECT_EQ(out.value.error().code, EvalError::Code::kCostExceeded);
  EXPECT_EQ(out.value.error().message, "operation cancelled: actual cost limit exceeded");
  EXPECT_FALSE(run("object.metadata.name", 2).value);
}

TEST(Authorizer, IsAskedWithWhatTheExpressionBuilt) {
  EXPECT_EQ(answer("authorizer.group('').resource('pods').namespace('default').check('get').allowed()"), "true");
  EXPECT_EQ(answer("authorizer.group('').resource('pods').namespace('other').check('get').allowed()"), "false");
  EXPECT_EQ(answer("authorizer.path(' ').check('get').allowed()"), "path must not be empty");
}

}  // namespace
}  // namespace berth::cel
