// What opens a session or is proxied is asked of admission first (issue 20, item 3).
#include "tests/apiserver/server_fixture.h"

namespace berth::apiserver::testing {
namespace {

constexpr const char* kPolicies = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
constexpr const char* kBindings = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings";

class Connects : public ServerTest {
 protected:
  void SetUp() override {
    ServerOptions options;
    options.node_backend = [this](const std::string& node, net::HttpRequest& request, std::shared_ptr<net::ResponseWriter>& writer) {
      reached.push_back(node + " " + request.path + (request.query.empty() ? "" : "?" + request.query));
      writer->respond({.status = 200, .headers = {}, .body = "done"});
      return true;
    };
    start(std::move(options));
    create(kPods, pod("web", R"("nodeName":"n1")"));
  }
  void policy(const std::string& resources, const std::string& expression) {
    const auto made = post(
        kPolicies,
        fmt::format(
            R"({{"metadata":{{"name":"p"}},"spec":{{"matchConstraints":{{"resourceRules":[{{"apiGroups":[""],"apiVersions":["v1"],"operations":["CONNECT"],"resources":[{}]}}]}},"validations":[{{"expression":"{}","message":"not that"}}]}}}})",
            resources, expression));
    ASSERT_EQ(made->status, 201) << made->body;
    ASSERT_EQ(post(kBindings, R"({"metadata":{"name":"b"},"spec":{"policyName":"p","validationActions":["Deny"]}})")->status, 201);
  }
  std::vector<std::string> reached;
};

TEST_F(Connects, APolicyReadsTheOptionsOfASession) {
  policy(R"("pods/exec","pods/attach")",
         "request.operation == 'CONNECT' && request.name == 'web' && request.kind.kind == object.kind && !(has(object.tty) && object.tty) "
         "&& (object.kind != 'PodExecOptions' || object.command[0] != 'rm')");
  EXPECT_EQ(post(std::string(kPods) + "/web/exec?command=ls&stdout=true", "")->status, 200);
  EXPECT_EQ(post(std::string(kPods) + "/web/attach?stdout=true", "")->status, 200);
  ASSERT_EQ(reached.size(), 2U);
  EXPECT_EQ(reached[0], "n1 /exec/default/web/c?output=1&command=ls");
  const auto refused = post(std::string(kPods) + "/web/exec?command=rm&command=-rf", "");
  EXPECT_EQ(refused->status, 422) << refused->body;
  EXPECT_EQ(text(refused->document(), {"message"}),
            "pods \"web\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: not that");
  EXPECT_EQ(get(std::string(kPods) + "/web/exec?command=ls&tty=true")->status, 422) << "a WebSocket's GET is a session, too";
  EXPECT_EQ(get(std::string(kPods) + "/web/attach?tty=1")->status, 422);
  EXPECT_EQ(post(std::string(kPods) + "/web/portforward?ports=80", "")->status, 200) << "another subresource";
  EXPECT_EQ(get(std::string(kPods) + "/web/log")->status, 200) << "a log is read";
  EXPECT_EQ(reached.size(), 4U);
}

TEST_F(Connects, PortsAndPathsAreSeen) {
  create("/api/v1/nodes", R"({"metadata":{"name":"n1"}})");
  policy(R"("pods/portforward","nodes/proxy")",
         "object.kind == 'NodeProxyOptions' ? object.path.startsWith('stats') : object.ports == [8080]");
  EXPECT_EQ(post(std::string(kPods) + "/web/portforward?ports=8080", "")->status, 200);
  EXPECT_EQ(post(std::string(kPods) + "/web/portforward?ports=22", "")->status, 422);
  EXPECT_EQ(post(std::string(kPods) + "/web/portforward?ports=x", "")->status, 400);
  EXPECT_EQ(get("/api/v1/nodes/n1/proxy/stats/summary")->status, 200);
  EXPECT_EQ(get("/api/v1/nodes/n1/proxy/run/a/b")->status, 422);
  EXPECT_EQ(remove("/api/v1/nodes/n1/proxy/run/a/b")->status, 422) << "whatever the method";
  EXPECT_EQ(reached, (std::vector<std::string>{"n1 /portForward/default/web?port=8080", "n1 /stats/summary"}));
}

/// Nobody else is asked: the plugins that judge pods would refuse what is no pod.
TEST_F(Connects, OtherPluginsAreNotAsked) {
  ASSERT_EQ(patch("/api/v1/namespaces/default", R"({"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"restricted"}}})")->status,
            200);
  create("/api/v1/namespaces/default/resourcequotas", R"({"metadata":{"name":"q"},"spec":{"hard":{"pods":"0"}}})");
  EXPECT_EQ(post(std::string(kPods) + "/web/exec?command=ls", "")->status, 200);
}

}  // namespace
}  // namespace berth::apiserver::testing
