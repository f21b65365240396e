// MutatingAdmissionPolicies: apply configurations, JSON patches, conditions, parameters, a second look, failures.
#include "base/yaml.h"
#include "tests/apiserver/wrapped_cache.h"

namespace berth::apiserver::testing {
namespace {

using json::Value;

class MutatingPolicies : public ServerTest {
 protected:
  static constexpr const char* kRoot = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolic";

  /// `mutations`, and `more` of the spec, in YAML's flow style.
  Response policy(const std::string& name, const std::string& mutations, const std::string& more = "") {
    const auto document =
        json::read_first_yaml(fmt::format("{{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingAdmissionPolicy, metadata: {{name: "
                                          "{}}}, spec: {{reinvocationPolicy: Never, "
                                          "matchConstraints: {{resourceRules: [{{apiGroups: [''], apiVersions: [v1], operations: [CREATE, "
                                          "UPDATE], resources: [configmaps]}}]}}, "
                                          "mutations: [{}]{}}}}}",
                                          name, mutations, more.empty() ? "" : ", " + more));
    EXPECT_TRUE(document);
    return post(fmt::format("{}ies", kRoot), json::serialize(*document));
  }
  void bind(const std::string& name, const std::string& more = "") {
    const auto document = json::read_first_yaml(
        fmt::format("{{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingAdmissionPolicyBinding, metadata: {{name: {0}}}, spec: "
                    "{{policyName: {0}{1}}}}}",
                    name, more.empty() ? "" : ", " + more));
    create(fmt::format("{}ybindings", kRoot), json::serialize(*document));
  }
  void apply(const std::string& name, const std::string& expression, const std::string& more = "") {
    const auto made =
        policy(name, fmt::format("{{patchType: ApplyConfiguration, applyConfiguration: {{expression: \"{}\"}}}}", expression), more);
    ASSERT_EQ(made->status, 201) << made->body;
  }
  void patch_by(const std::string& name, const std::string& expression, const std::string& more = "") {
    const auto made = policy(name, fmt::format("{{patchType: JSONPatch, jsonPatch: {{expression: \"{}\"}}}}", expression), more);
    ASSERT_EQ(made->status, 201) << made->body;
  }
};

TEST_F(MutatingPolicies, MergeAnApplyConfiguration) {
  apply("label", "Object{metadata: Object.metadata{labels: {'team': 'blue'}}, data: {'size': string(object.data.size())}}");
  bind("label");
  const auto made = create(kMaps, config_map("a", R"({"own":"1"})"));
  EXPECT_EQ(text(made, {"metadata", "labels", "team"}), "blue");
  EXPECT_EQ(text(made, {"data", "own"}), "1");
  EXPECT_EQ(text(made, {"data", "size"}), "1");
}

TEST_F(MutatingPolicies, ApplyAJsonPatch) {
  patch_by("annotate",
           "[JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('example.com/by'), value: request.namespace}, "
           "JSONPatch{op: 'add', path: '/data/n', value: 'x'}]");
  bind("annotate");
  const auto made = create(kMaps, R"({"metadata":{"name":"a","labels":{"own":"1"}},"data":{"own":"1"}})");
  EXPECT_NE(json::find(made, {"metadata", "labels", "example.com/by"}), nullptr) << json::serialize(made);
  EXPECT_EQ(text(made, {"data", "n"}), "x");
}

TEST_F(MutatingPolicies, AFailedTestLeavesTheObjectAlone) {
  patch_by("careful", "[JSONPatch{op: 'test', path: '/data/a', value: '2'}, JSONPatch{op: 'replace', path: '/data/a', value: '3'}]");
  bind("careful");
  EXPECT_EQ(text(create(kMaps, config_map("a", R"({"a":"1"})")), {"data", "a"}), "1");
  EXPECT_EQ(text(create(kMaps, config_map("b", R"({"a":"2"})")), {"data", "a"}), "3");
}

TEST_F(MutatingPolicies, AskTheirConditionsAndParameters) {
  create(kMaps, config_map("settings", R"({"team":"green"})"));
  apply("team", "Object{data: {'team': params.data.team}}",
        "paramKind: {apiVersion: v1, kind: ConfigMap}, matchConditions: [{name: named, expression: "
        "\"object.metadata.name.startsWith('t')\"}]");
  bind("team", "paramRef: {name: settings, namespace: default, parameterNotFoundAction: Deny}");
  EXPECT_EQ(text(create(kMaps, config_map("t1")), {"data", "team"}), "green");
  EXPECT_EQ(json::find(create(kMaps, config_map("u1")), {"data", "team"}), nullptr);
  remove(fmt::format("{}/settings", kMaps));
  EXPECT_STATUS(post(kMaps, config_map("t2")), 403, "Forbidden");
}

TEST_F(MutatingPolicies, LookAgainWhenOthersChangedTheObject) {
  apply("a-count", "Object{data: {'count': string(object.data.size())}}");
  const auto counted =
      policy("b-again",
             "{patchType: ApplyConfiguration, applyConfiguration: {expression: \"Object{data: {'seen': has(object.data.late) "
             "? 'late' : 'early'}}\"}}");
  ASSERT_EQ(counted->status, 201) << counted->body;
  apply("c-late", "Object{data: {'late': 'yes'}}");
  for (const char* name : {"a-count", "b-again", "c-late"}) bind(name);
  EXPECT_EQ(text(create(kMaps, config_map("a", R"({"own":"1"})")), {"data", "seen"}), "early");
  auto again = read(fmt::format("{}ies/b-again", kRoot));
  json::set(again, {"spec", "reinvocationPolicy"}, Value("IfNeeded"));
  ASSERT_EQ(put(fmt::format("{}ies/b-again", kRoot), again)->status, 200);
  EXPECT_EQ(text(create(kMaps, config_map("b", R"({"own":"1"})")), {"data", "seen"}), "late");
}

TEST_F(MutatingPolicies, AreToldOfTheirMistakes) {
  const auto wrong_type = policy("x", "{patchType: ApplyConfiguration, applyConfiguration: {expression: \"{'a': 'b'}\"}}");
  EXPECT_STATUS(wrong_type, 422, "Invalid");
  EXPECT_NE(wrong_type->body.find("must evaluate to Object"), std::string::npos) << wrong_type->body;
  const auto none = policy("x", "");
  EXPECT_NE(none->body.find("mutations must contain at least one item"), std::string::npos) << none->body;
  const auto both = policy("x", "{patchType: JSONPatch, applyConfiguration: {expression: 'Object{}'}}");
  EXPECT_NE(both->body.find("must be specified when patchType is JSONPatch"), std::string::npos) << both->body;
  apply("misplaced", "Object{metadata: Object.spec{labels: {'a': 'b'}}}");
  bind("misplaced");
  const auto refused = post(kMaps, config_map("a"));
  EXPECT_EQ(refused->status, 403) << refused->body;
  EXPECT_EQ(text(refused->document(), {"message"}),
            "policy 'misplaced' with binding 'misplaced' denied request: type mismatch: unexpected type name \"Object.spec\", expected "
            "\"Object.metadata\", which matches field name path from root Object type");
}

/// Somebody else is faster, once.
class LosesOnce final : public WrappedCache {
 public:
  using WrappedCache::WrappedCache;
  void propose(Proposal proposal, std::function<void(ProposeResult)> result) override {
    if (proposal.value.find("contested") == std::string::npos || std::exchange(has_lost_, true))
      return below_->propose(std::move(proposal), std::move(result));
    result(std::unexpected(ProposeError::kRevisionMismatch));
  }

 private:
  bool has_lost_ = false;
};

TEST_F(MutatingPolicies, ChangeTheNextAttemptAsWell) {
  wrap_cache_ = [](std::unique_ptr<ObjectCache> cache) { return std::make_unique<LosesOnce>(std::move(cache)); };
  start({});
  create(kMaps, config_map("a", R"({"own":"1"})"));
  apply("label", "Object{metadata: Object.metadata{labels: {'team': 'blue'}}}");
  bind("label");
  const auto changed = patch(std::string(kMaps) + "/a", R"({"data":{"own":"contested"}})");
  EXPECT_EQ(changed->status, 200) << changed->body;
  EXPECT_EQ(text(changed->document(), {"metadata", "labels", "team"}), "blue");
}

TEST_F(MutatingPolicies, DoNotReplaceWhatIsOwnedWhole) {
  const auto made = policy("atomic",
                           "{patchType: ApplyConfiguration, applyConfiguration: {expression: \"Object{spec: Object.spec{containers: "
                           "[Object.spec.containers{name: 'c', args: ['x']}]}}\"}}",
                           "failurePolicy: Fail");
  ASSERT_EQ(made->status, 201) << made->body;
  auto document = made->document();
  json::set(document, {"spec", "matchConstraints", "resourceRules"},
            json::Array{*json::parse(R"({"apiGroups":[""],"apiVersions":["v1"],"operations":["CREATE"],"resources":["pods"]})")});
  ASSERT_EQ(put(fmt::format("{}ies/atomic", kRoot), document)->status, 200);
  bind("atomic");
  const auto refused = post(kPods, pod("p"));
  EXPECT_EQ(refused->status, 403) << refused->body;
  EXPECT_NE(refused->body.find("may not mutate atomic arrays, maps or structs: .spec.containers[0].args"), std::string::npos)
      << refused->body;
}

}  // namespace
}  // namespace berth::apiserver::testing
