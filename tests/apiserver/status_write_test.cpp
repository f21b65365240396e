// Writes of a status, most of which leave the object's spec and its owners as bytes (cache/object_part.h): whoever asks for the whole on
// the way, what is answered and stored is the same.
#include <regex>

#include "tests/apiserver/server_fixture.h"

namespace berth::apiserver::testing {
namespace {

struct Write {
  std::string_view method, path, type, body;
};

constexpr std::string_view kObjects[][2] = {
    {"/api/v1/namespaces/default/pods",
     R"({"metadata":{"name":"p","annotations":{"x":"\"spec\":{},\"managedFields\":[]"},"labels":{"app":"p"},"finalizers":["x.io/f"]},
         "spec":{"containers":[{"name":"c","image":"i","resources":{"limits":{"cpu":"1"}}}],"restartPolicy":"Never","automountServiceAccountToken":false}})"},
    {"/api/v1/nodes", R"({"metadata":{"name":"n"},"spec":{"podCIDR":"10.0.0.0/24","providerID":"a://1"}})"},
    {"/apis/apps/v1/namespaces/default/deployments",
     R"({"metadata":{"name":"d","labels":{"a":"b"}},"spec":{"replicas":2,"selector":{"matchLabels":{"a":"b"}},
         "template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}})"},
    {"/apis/apps/v1/namespaces/default/daemonsets",
     R"({"metadata":{"name":"d"},"spec":{"selector":{"matchLabels":{"a":"b"}},
         "template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}})"},
    {"/api/v1/namespaces/default/persistentvolumeclaims",
     R"({"metadata":{"name":"c"},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}})"},
    {"/apis/policy/v1/namespaces/default/poddisruptionbudgets",
     R"({"metadata":{"name":"b"},"spec":{"minAvailable":1,"selector":{"matchLabels":{"a":"b"}}}})"},
    {"/api/v1/namespaces/default/services", R"({"metadata":{"name":"s"},"spec":{"ports":[{"port":80}]}})"},
};

#define POD "/api/v1/namespaces/default/pods/p/status"
#define NODE "/api/v1/nodes/n/status"
#define DEPLOYMENT "/apis/apps/v1/namespaces/default/deployments/d/status"
#define DAEMONS "/apis/apps/v1/namespaces/default/daemonsets/d/status"
#define CLAIM "/api/v1/namespaces/default/persistentvolumeclaims/c/status"
#define BUDGET "/apis/policy/v1/namespaces/default/poddisruptionbudgets/b/status"
#define SERVICE "/api/v1/namespaces/default/services/s/status"

constexpr Write kWrites[] = {
    {"PATCH", POD, "strategic", R"({"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}],"podIP":"10.1.2.3"}})"},
    {"PATCH", POD, "strategic", R"({"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}],"podIP":"10.1.2.3"}})"},
    {"PATCH", POD "?fieldManager=other", "strategic", R"({"status":{"conditions":[{"type":"Ready","status":"False","reason":"R"}]}})"},
    {"PATCH", POD, "merge", R"({"metadata":{"labels":{"app":null,"new":"x"},"annotations":{"y":"1"}},"status":{"message":"m"}})"},
    {"PATCH", POD, "merge", R"({"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"X","name":"x","uid":"u"}]}})"},
    {"PATCH", POD, "strategic", R"({"spec":{"nodeName":"elsewhere"},"status":{"reason":"because"}})"},
    {"PATCH", POD, "merge", R"({"metadata":{"managedFields":[{}]},"status":{"reason":"other"}})"},
    {"PATCH", POD, "merge", R"({"metadata":{"name":"q"}})"},
    {"PATCH", POD, "merge", R"({"metadata":null,"status":{"reason":"none"}})"},
    {"PATCH", POD, "merge", R"({"status":{"phase":7}})"},
    {"PATCH", POD, "strategic", R"({"status":{"phase":7}})"},
    {"PATCH", POD "?fieldValidation=Strict", "merge", R"({"status":{"unheardOf":7}})"},
    {"PATCH", POD "?fieldValidation=Warn", "merge", R"({"status":{"unheardOf":7}})"},
    {"PATCH", POD, "json",
     R"([{"op":"test","path":"/spec/restartPolicy","value":"Never"},{"op":"add","path":"/status/reason","value":"j"}])"},
    {"PATCH", POD "?dryRun=All", "merge", R"({"status":{"reason":"dry"}})"},
    {"PATCH", POD, "merge", R"({"status":{"qosClass":"Guaranteed"}})"},
    {"PATCH", POD, "merge", R"({"status":{"qosClass":null}})"},
    {"PATCH", POD, "merge", R"({"status":{"nominatedNodeName":"not a name"}})"},
    {"PATCH", POD, "merge", R"({"status":{"resourceClaimStatuses":[{"name":"none"}]}})"},
    {"PATCH", POD, "merge",
     R"({"status":{"containerStatuses":[{"name":"c","state":{"terminated":{"exitCode":1}},"user":{"linux":{"uid":-1,"gid":0}}}]}})"},
    {"PATCH", POD, "merge", R"({"status":{"containerStatuses":[{"name":"c","state":{"terminated":{"exitCode":1}}}]}})"},
    {"PATCH", POD, "merge", R"({"status":{"containerStatuses":[{"name":"c","state":{"running":{}}}]}})"},
    {"PATCH", POD, "merge", R"({"metadata":{"resourceVersion":"1"},"status":{"reason":"late"}})"},
    {"PATCH", POD "?fieldManager=m", "apply", R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"status":{"message":"applied"}})"},
    {"PATCH", POD "?fieldManager=later", "merge", R"({"status":{"message":"mine"}})"},
    {"PUT", POD, "", R"({"metadata":{"name":"p"},"spec":{"containers":[{"name":"z","image":"z"}]},"status":{"phase":"Failed"}})"},
    {"PUT", POD, "", R"({"metadata":{"name":"p","managedFields":[]},"spec":{},"status":{"phase":"Succeeded"}})"},
    {"PUT", POD, "", R"({"metadata":{"name":"p"},"status":{"phase":"Succeeded"}})"},
    {"PUT", POD, "", R"({"metadata":{"name":"p","uid":"other"},"status":{}})"},
    {"DELETE", "/api/v1/namespaces/default/pods/p", "", ""},
    {"PATCH", POD, "merge", R"({"status":{"reason":"going"}})"},
    {"PATCH", POD, "merge", R"({"metadata":{"finalizers":["x.io/f","x.io/more"]}})"},
    {"PATCH", POD, "merge", R"({"metadata":{"finalizers":null},"status":{"reason":"gone"}})"},
    {"PATCH", NODE, "strategic", R"({"status":{"capacity":{"cpu":"4"},"conditions":[{"type":"Ready","status":"True"}]}})"},
    {"PUT", NODE, "",
     R"({"metadata":{"name":"n"},"spec":{"taints":[{"key":"!"}],"providerID":"b://2"},"status":{"capacity":{"cpu":"8"}}})"},
    {"PATCH", NODE, "merge", R"({"status":{"capacity":{"cpu":"-8"}}})"},
    {"PATCH", DEPLOYMENT, "merge", R"({"metadata":{"labels":{"a":"kept"},"annotations":{"r":"1"}},"status":{"replicas":2}})"},
    {"PATCH", DEPLOYMENT, "merge", R"({"status":{"replicas":-2}})"},
    {"PUT", DEPLOYMENT, "", R"({"metadata":{"name":"d"},"spec":{"replicas":9},"status":{"replicas":1,"observedGeneration":1}})"},
    {"PATCH", DAEMONS, "merge", R"({"metadata":{"annotations":null},"status":{"numberReady":1}})"},
    {"PATCH", CLAIM, "merge", R"({"status":{"phase":"Bound","capacity":{"storage":"1Gi"}}})"},
    {"PATCH", BUDGET, "merge", R"({"status":{"disruptionsAllowed":1,"expectedPods":1}})"},
    {"PATCH", SERVICE, "merge", R"({"status":{"loadBalancer":{"ingress":[{"ip":"10.0.0.1"}]}}})"},
};

/// An answer but for what is made up anew in each server.
json::Value masked(const std::string& body) {
  static const std::regex kMadeUp(R"([0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z|10(\.[0-9]+){3})");
  static const std::regex kRevision(R"((resourceVersion[\\]*":[\\]*")[0-9]+)");
  const auto document = json::parse(std::regex_replace(std::regex_replace(body, kMadeUp, "made up"), kRevision, "$1N"));
  return document ? *document : json::Value(body);
}

}  // namespace

class StatusWrite : public ServerTest {
 protected:
  struct Answer {
    std::string asked;
    int status = 0;
    json::Value said;
  };
  /// What every write is answered, and what there is in the end, on a server of its own where `first` is made before anything else.
  std::vector<Answer> told(const std::vector<std::pair<std::string, std::string>>& first) {
    start({});
    for (const auto& [path, body] : first) create(path, body);
    for (const auto& [path, body] : kObjects) create(std::string(path), std::string(body));
    std::vector<Answer> answers;
    for (const auto& write : kWrites) {
      loop_.run_for(std::chrono::seconds(1));
      const std::string path(write.path), body(write.body);
      const auto answer =
          write.method == "PATCH" ? patch(path, body, std::string(write.type)) : send(std::string(write.method), path, body);
      answers.push_back({fmt::format("{} {} {}", write.method, path, body), answer->status, masked(answer->body)});
    }
    for (const auto& object : kObjects) {
      const auto answer = get(std::string(object[0]));
      answers.push_back({std::string(object[0]), answer->status, masked(answer->body)});
    }
    return answers;
  }
  void expect_the_same_with(const std::vector<std::pair<std::string, std::string>>& first) {
    const auto plain = told({});
    const auto whole = told(first);
    ASSERT_EQ(plain.size(), whole.size());
    for (std::size_t i = 0; i < plain.size(); ++i) {
      EXPECT_EQ(plain[i].status, whole[i].status) << plain[i].asked;
      EXPECT_TRUE(json::equal(plain[i].said, whole[i].said)) << plain[i].asked << "\n"
                                                             << json::serialize(plain[i].said) << "\n"
                                                             << json::serialize(whole[i].said);
    }
  }
  static std::string policy(std::string_view kind, std::string_view rule) {
    return fmt::format(
        R"({{"apiVersion":"admissionregistration.k8s.io/v1","kind":"{}","metadata":{{"name":"x"}},"spec":{{{},"matchConstraints":
           {{"resourceRules":[{{"apiGroups":[""],"apiVersions":["v1"],"operations":["CREATE"],"resources":["configmaps"]}}]}}}}}})",
        kind, rule);
  }
  static std::string binding(std::string_view kind, std::string_view more) {
    return fmt::format(
        R"({{"apiVersion":"admissionregistration.k8s.io/v1","kind":"{}","metadata":{{"name":"x"}},"spec":{{"policyName":"x"{}}}}})", kind,
        more);
  }
  static constexpr const char* kPolicyRoot = "/apis/admissionregistration.k8s.io/v1/";
};

TEST_F(StatusWrite, IsTheSameWhereSomebodyJudgesTheWhole) {
  expect_the_same_with({{std::string(kPolicyRoot) + "validatingadmissionpolicies",
                         policy("ValidatingAdmissionPolicy", R"("validations":[{"expression":"true"}])")},
                        {std::string(kPolicyRoot) + "validatingadmissionpolicybindings",
                         binding("ValidatingAdmissionPolicyBinding", R"(,"validationActions":["Deny"])")}});
}

TEST_F(StatusWrite, IsTheSameWhereSomebodyMayChangeTheWhole) {
  expect_the_same_with(
      {{std::string(kPolicyRoot) + "mutatingadmissionpolicies",
        policy(
            "MutatingAdmissionPolicy",
            R"("reinvocationPolicy":"Never","mutations":[{"patchType":"JSONPatch","jsonPatch":{"expression":"[JSONPatch{op: 'add', path: '/data/n', value: 'x'}]"}}])")},
       {std::string(kPolicyRoot) + "mutatingadmissionpolicybindings", binding("MutatingAdmissionPolicyBinding", "")}});
}

TEST_F(StatusWrite, StoresNothingWhereNothingChanges) {
  create(kPods, pod("p"));
  const std::string body = R"({"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}})";
  const auto path = std::string(kPods) + "/p/status";
  const auto revision = text(patch(path, body, "strategic")->document(), {"metadata", "resourceVersion"});
  loop_.run_for(std::chrono::seconds(5));
  EXPECT_EQ(text(patch(path, body, "strategic")->document(), {"metadata", "resourceVersion"}), revision);
}

// The bytes are put together of the old ones: in their order, with the spec as it stood.
TEST_F(StatusWrite, LeavesTheRestInItsPlace) {
  create(kPods, R"({"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i","args":["}{\"]","\u00e4\\"]}]}})");
  const auto before = get(std::string(kPods) + "/p")->body;
  const auto after = patch(std::string(kPods) + "/p/status", R"({"status":{"phase":"Running"}})", "merge")->body;
  const auto spec_of = [](const std::string& body) {
    const auto at = body.find("\"spec\":{"), end = body.find(",\"status\":{", at);
    return at == std::string::npos || end == std::string::npos ? std::string() : body.substr(at, end - at);
  };
  EXPECT_FALSE(spec_of(before).empty()) << before;
  EXPECT_EQ(spec_of(before), spec_of(after)) << after;
  const auto owners = read(std::string(kPods) + "/p");
  EXPECT_EQ(json::get_array(owners, {"metadata", "managedFields"}).size(), 2U) << after;
}

}  // namespace berth::apiserver::testing
