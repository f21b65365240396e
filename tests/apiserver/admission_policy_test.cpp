// ValidatingAdmissionPolicies through the API: what they refuse, in which words, with parameters and variables.
#include "tests/apiserver/server_fixture.h"

namespace berth::apiserver::testing {
namespace {

constexpr const char* kPolicies = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
constexpr const char* kBindings = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings";
constexpr const char* kMaps = "/api/v1/namespaces/default/configmaps";

class Policies : public ServerTest {
 protected:
  static std::string map(const std::string& name, const std::string& data = "{}") {
    return fmt::format(R"({{"metadata":{{"name":"{}"}},"data":{}}})", name, data);
  }
  /// A policy on ConfigMaps called "p"; `spec` continues the spec.
  void policy(const std::string& spec) {
    const auto made = post(
        kPolicies,
        R"({"metadata":{"name":"p"},"spec":{"matchConstraints":{"resourceRules":[{"apiGroups":[""],"apiVersions":["v1"],"operations":["CREATE","UPDATE"],"resources":["configmaps"]}]},)" +
            spec + "}}");
    ASSERT_EQ(made->status, 201) << made->body;
  }
  void bind(const std::string& spec = R"("validationActions":["Deny"])") {
    const auto made = post(kBindings, R"({"metadata":{"name":"b"},"spec":{"policyName":"p",)" + spec + "}}");
    ASSERT_EQ(made->status, 201) << made->body;
  }
  std::string refusal(const std::string& body) {
    const auto answer = post(kMaps, body);
    if (answer->status < 300) return "admitted";
    return fmt::format("{} {}: {}", answer->status, text(answer->document(), {"reason"}), text(answer->document(), {"message"}));
  }
};

TEST_F(Policies, RefuseWhatDoesNotHold) {
  policy(
      R"("validations":[{"expression":"!has(object.data) || object.data.size() <= 1"},{"expression":"object.metadata.name != 'bad'","message":"no bad names","reason":"Forbidden"}])");
  EXPECT_EQ(refusal(map("a", R"({"a":"1","b":"2"})")), "admitted");
  bind();
  EXPECT_EQ(refusal(map("one", R"({"a":"1"})")), "admitted");
  EXPECT_EQ(
      refusal(map("two", R"({"a":"1","b":"2"})")),
      "422 Invalid: configmaps \"two\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: failed expression: "
      "!has(object.data) || object.data.size() <= 1");
  EXPECT_EQ(refusal(map("bad")),
            "403 Forbidden: configmaps \"bad\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no bad names");
}

TEST_F(Policies, ParametersVariablesAndMessages) {
  ASSERT_EQ(post(kMaps, map("limits", R"({"most":"2"})"))->status, 201);
  policy(
      R"j("paramKind":{"apiVersion":"v1","kind":"ConfigMap"},"variables":[{"name":"count","expression":"has(object.data) ? object.data.size() : 0"},{"name":"most","expression":"int(params.data.most)"
}],"validations":[{"expression":"variables.count <= variables.most","messageExpression":"'at most ' + string(variables.most) + ' keys in ' + namespaceObject.metadata.name"}])j");
  bind(R"("paramRef":{"name":"limits","namespace":"default","parameterNotFoundAction":"Deny"},"validationActions":["Deny"])");
  EXPECT_EQ(refusal(map("fits", R"({"a":"1","b":"2"})")), "admitted");
  EXPECT_EQ(
      refusal(map("big", R"({"a":"1","b":"2","c":"3"})")),
      "422 Invalid: configmaps \"big\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: at most 2 keys in "
      "default");
}

TEST_F(Policies, MissingParametersAndFailures) {
  policy(R"("paramKind":{"apiVersion":"v1","kind":"ConfigMap"},"validations":[{"expression":"object.nope == 1"}])");
  bind(R"("paramRef":{"name":"none","namespace":"default","parameterNotFoundAction":"Deny"},"validationActions":["Deny"])");
  EXPECT_EQ(refusal(map("x")),
            "422 Invalid: configmaps \"x\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: failed to "
            "configure binding: no "
            "params found for policy binding with `Deny` parameterNotFoundAction");
  remove(std::string(kBindings) + "/b");
  bind();
  EXPECT_EQ(refusal(map("x")),
            "422 Invalid: configmaps \"x\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: expression "
            "'object.nope == 1' "
            "resulted in error: no such key: nope");
}

TEST_F(Policies, WarnAndConditions) {
  policy(
      R"j("matchConditions":[{"name":"guarded","expression":"object.metadata.name.startsWith('g')"}],"validations":[{"expression":"false","message":"never"}])j");
  bind(R"("validationActions":["Warn"])");
  const auto warned = post(kMaps, map("g1"));
  EXPECT_EQ(warned->status, 201);
  EXPECT_NE(std::string(warned->headers.get("Warning")).find("Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': never"),
            std::string::npos);
  EXPECT_TRUE(std::string(post(kMaps, map("x1"))->headers.get("Warning")).empty());
}

TEST_F(Policies, AreValidated) {
  const auto wrong = post(
      kPolicies,
      R"({"metadata":{"name":"w"},"spec":{"matchConstraints":{"resourceRules":[{"apiGroups":[""],"apiVersions":["v1"],"operations":["CREATE"],"resources":["pods"]}]},"validations":[{"expression":"object.spec.replicas"},{"expression":"variables.x > 1"}]}})");
  EXPECT_STATUS(wrong, 422, "Invalid");
  EXPECT_NE(
      wrong->body.find("spec.validations[0].expression: Invalid value: \\\"object.spec.replicas\\\": must evaluate to bool but got dyn"),
      std::string::npos)
      << wrong->body;
  EXPECT_NE(wrong->body.find("undeclared reference to 'variables' (in container '')"), std::string::npos) << wrong->body;
  const auto empty = post(kPolicies, R"({"metadata":{"name":"w"},"spec":{}})");
  EXPECT_STATUS(empty, 422, "Invalid");
  EXPECT_NE(empty->body.find("spec.matchConstraints: Required value"), std::string::npos) << empty->body;
  const auto both = post(kBindings, R"({"metadata":{"name":"w"},"spec":{"policyName":"p","validationActions":["Deny","Warn"]}})");
  EXPECT_STATUS(both, 422, "Invalid");
}

}  // namespace
}  // namespace berth::apiserver::testing
