// The language against what cel-go and Kubernetes 1.36's libraries answer.
#include <gtest/gtest.h>

#include "cel/authorizer.h"
#include "cel/cel.h"

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

struct Case {
  const char *expression, *answer;
};

class Answers : public testing::TestWithParam<Case> {};
TEST_P(Answers, AreThoseOfTheRealLanguage) { EXPECT_EQ(answer(GetParam().expression), GetParam().answer) << GetParam().expression; }

INSTANTIATE_TEST_SUITE_P(Operators, Answers,
                         testing::Values(Case{"1 + 2 * 3", "7"}, Case{"7 / 0", "division by zero"}, Case{"7 % 0", "modulus by zero"},
                                         Case{"-7 / 2", "-3"}, Case{"9223372036854775807 + 1", "integer overflow"},
                                         Case{"1u - 2u", "unsigned integer overflow"}, Case{"dyn(1) == 1.0", "true"},
                                         Case{"2u > 1", "true"}, Case{"'a' + 'b'", "\"ab\""},
                                         Case{"false || (1/0 > 0)", "division by zero"}, Case{"(1/0 > 0) || true", "true"},
                                         Case{"(1/0 > 0) && false", "false"}, Case{"object.n ? 1 : 2", "no such overload"},
                                         Case{"'app' in object.metadata.labels", "true"}, Case{"object.spec.replicas in [1, 5]", "true"},
                                         Case{"[1, 2] + [3] == [1, 2, 3]", "true"}, Case{"{'a': 1} == {'a': dyn(1.0)}", "true"},
                                         Case{"type(1) == int", "true"}, Case{"object.spec.replicas + 'a'", "no such overload"}));
INSTANTIATE_TEST_SUITE_P(Fields, Answers,
                         testing::Values(Case{"object.metadata.name", "\"web\""}, Case{"object.metadata.nope", "no such key: nope"},
                                         Case{"object.spec.list[7]", "index out of bounds: 7"},
                                         Case{"has(object.nope.deeper)", "no such key: nope"}, Case{"has(object.spec.nope)", "false"},
                                         Case{"object.?nope.deeper.orValue(3)", "3"}, Case{"object.spec[?'replicas'].orValue(2)", "5"},
                                         Case{"optional.none().value()", "optional.none() dereference"},
                                         Case{"object.?spec.?replicas.optMap(r, r * 2).orValue(0)", "10"}));
INSTANTIATE_TEST_SUITE_P(
    Macros, Answers,
    testing::Values(Case{"object.spec.containers.all(c, c.image.startsWith('nginx'))", "false"},
                    Case{"object.spec.containers.map(c, c.name == 'b', c.image)", "[\"evil/busybox\"]"},
                    Case{"object.spec.list.filter(x, x > 1)", "[2,3]"}, Case{"[1, 2, 2].exists_one(x, x == 1)", "true"},
                    Case{"[1, 2].transformList(i, v, i + v)", "[1,3]"}, Case{"{'a': 1}.transformMap(k, v, v + 1)", "{\"a\":2}"},
                    Case{"[1, 2, 3].exists(x, x / 0 > 1)", "division by zero"}, Case{"[3, 1, 2].sortBy(x, -x)", "[3,2,1]"}));
INSTANTIATE_TEST_SUITE_P(Libraries, Answers,
                         testing::Values(Case{"quantity('1Gi').isGreaterThan(quantity('500Mi'))", "true"},
                                         Case{"quantity('1000m') == quantity('1')", "true"},
                                         Case{"string(ip('2001:db8:0:0:1:0:0:1'))", "\"2001:db8::1:0:0:1\""},
                                         Case{"cidr('10.0.0.0/8').containsIP('10.1.2.3')", "true"},
                                         Case{"url('https://example.com:80/a?x=1&x=3').getQuery()", "{\"x\":[\"1\",\"3\"]}"},
                                         Case{"semver('1.2.3-alpha').compareTo(semver('1.2.3'))", "-1"},
                                         Case{"isSemver('v1', true)", "true"}, Case{"'abc 123'.find('[0-9]+')", "\"123\""},
                                         Case{"'a,b,c'.split(',', 2)", "[\"a\",\"b,c\"]"}, Case{"duration('1h30m').getMinutes()", "90"},
                                         Case{"timestamp('2023-01-02T03:04:05Z').getHours('+02:00')", "5"},
                                         Case{"sets.intersects([1, 2], [2, 3])", "true"}));

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
