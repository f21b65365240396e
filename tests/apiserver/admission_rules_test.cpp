// Rules of built-in admission, each found beside a real kube-apiserver 1.36.
#include "tests/apiserver/server_fixture.h"

namespace berth::apiserver::testing {

class AdmissionRules : public ServerTest {
 protected:
  static std::string message(const Response& response) { return text(response->document(), {"message"}); }
  static std::string with_containers(const std::string& name, const std::string& containers, const std::string& more = "") {
    return R"({"metadata":{"name":")" + name + R"("},"spec":{"containers":)" + containers + (more.empty() ? "" : "," + more) + "}}";
  }
  static std::string resources(const std::string& name, const std::string& requests, const std::string& more = "") {
    return with_containers(name, R"([{"name":"c","image":"i","resources":{"requests":)" + requests + "}}]", more);
  }
  Response resize(const std::string& name, const std::string& requests) {
    return patch(std::string(kPods) + "/" + name + "/resize",
                 R"({"spec":{"containers":[{"name":"c","resources":{"requests":)" + requests + "}}]}}", "strategic");
  }
  Response label_namespace(const std::string& level, const std::string& label = "enforce") {
    return patch("/api/v1/namespaces/default", R"({"metadata":{"labels":{"pod-security.kubernetes.io/)" + label + R"(":)" + level + "}}}");
  }
};

TEST_F(AdmissionRules, AResizeHasToFitItsNode) {
  create("/api/v1/nodes", R"({"metadata":{"name":"n"}})");
  patch("/api/v1/nodes/n/status", R"({"status":{"allocatable":{"cpu":"3500m","memory":"3Gi"}}})");
  create(kPods, resources("a", R"({"cpu":"1","memory":"1Gi"})", R"("nodeName":"n")"));
  EXPECT_EQ(resize("a", R"({"cpu":"3500m"})")->status, 200);
  auto refused = resize("a", R"({"cpu":"4","memory":"4Gi"})");
  EXPECT_STATUS(refused, 403, "Forbidden");
  EXPECT_EQ(message(refused),
            "pods \"a\" is forbidden: node didn't have enough allocatable resources: cpu, requested: 4000, allocatable: 3500; memory, "
            "requested: 4294967296, allocatable: 3221225472");
  EXPECT_NE(refused->body.find(R"("causes":[{"reason":"NodeCapacity"})"), std::string::npos) << refused->body;
  create(kPods, resources("lost", R"({"cpu":"1"})", R"("nodeName":"gone")"));
  EXPECT_EQ(message(resize("lost", R"({"cpu":"2"})")), "pods \"lost\" is forbidden: node \"gone\" not found");
  create(kPods, resources("waiting", R"({"cpu":"1"})"));
  EXPECT_EQ(resize("waiting", R"({"cpu":"9"})")->status, 200);
}

TEST_F(AdmissionRules, WhatANodeDoesNotDeclareIsNotAskedOfIt) {
  create("/api/v1/nodes", R"({"metadata":{"name":"n"}})");
  patch("/api/v1/nodes/n/status", R"({"status":{"allocatable":{"cpu":"4","memory":"4Gi"}}})");
  create(kPods,
         with_containers("whole", R"([{"name":"c","image":"i"}])", R"("nodeName":"n","resources":{"limits":{"cpu":"1","memory":"1Gi"}})"));
  create(kPods, resources("init", R"({"cpu":"1"})", R"("nodeName":"n","initContainers":[{"name":"i","image":"i"}])"));
  const auto resize_whole = [&] {
    return patch(std::string(kPods) + "/whole/resize", R"({"spec":{"resources":{"limits":{"cpu":"2"},"requests":{"cpu":"2"}}}})",
                 "strategic");
  };
  const auto resize_init = [&] {
    return patch(std::string(kPods) + "/init/resize", R"({"spec":{"initContainers":[{"name":"i","resources":{"requests":{"cpu":"2"}}}]}})",
                 "strategic");
  };
  EXPECT_EQ(
      message(resize_whole()),
      "pods \"whole\" is forbidden: pod update requires features InPlacePodLevelResourcesVerticalScaling which are not available on node "
      "\"n\"");
  EXPECT_EQ(
      message(resize_init()),
      "pods \"init\" is forbidden: pod update requires features InPlacePodVerticalScalingInitContainers which are not available on node "
      "\"n\"");
  patch("/api/v1/nodes/n/status",
        R"({"status":{"declaredFeatures":["InPlacePodLevelResourcesVerticalScaling","InPlacePodVerticalScalingInitContainers"]}})");
  EXPECT_EQ(resize_whole()->status, 200);
  EXPECT_EQ(text(read(std::string(kPods) + "/whole"), {"spec", "resources", "limits", "cpu"}), "2");
  EXPECT_EQ(resize_init()->status, 200);
}

TEST_F(AdmissionRules, LimitsAndQuotasSeeResizes) {
  create(kPods, resources("a", R"({"cpu":"1"})"));
  create("/api/v1/namespaces/default/resourcequotas", R"({"metadata":{"name":"q"},"spec":{"hard":{"requests.cpu":"2"}}})");
  patch("/api/v1/namespaces/default/resourcequotas/q/status",
        R"({"status":{"hard":{"requests.cpu":"2"},"used":{"requests.cpu":"1500m"}}})");
  EXPECT_EQ(message(resize("a", R"({"cpu":"1600m"})")),
            "pods \"a\" is forbidden: exceeded quota: q, requested: requests.cpu=600m, used: requests.cpu=1500m, limited: requests.cpu=2");
  EXPECT_EQ(resize("a", R"({"cpu":"1200m"})")->status, 200);
  EXPECT_EQ(text(read("/api/v1/namespaces/default/resourcequotas/q"), {"status", "used", "requests.cpu"}), "1700m");
  remove("/api/v1/namespaces/default/resourcequotas/q");
  create("/api/v1/namespaces/default/limitranges", R"({"metadata":{"name":"l"},"spec":{"limits":[{"type":"Pod","max":{"cpu":"1"}}]}})");
  EXPECT_EQ(message(resize("a", R"({"cpu":"1100m"})")), "pods \"a\" is forbidden: maximum cpu usage per Pod is 1.  No limit is specified");
}

TEST_F(AdmissionRules, WhatSeveralContainersBreakIsSaidOnce) {
  create("/api/v1/namespaces/default/limitranges",
         R"({"metadata":{"name":"l"},"spec":{"limits":[{"type":"Container","min":{"cpu":"100m"}}]}})");
  const std::string small = R"("resources":{"requests":{"cpu":"50m"}})";
  auto refused = post(kPods, with_containers("p", R"([{"name":"a","image":"i",)" + small + R"(},{"name":"b","image":"i",)" + small + "}]"));
  EXPECT_EQ(message(refused), "pods \"p\" is forbidden: minimum cpu usage per Container is 100m, but request is 50m");
}

TEST_F(AdmissionRules, APodThatSaysAsAWholeWhatItAsksForNeedsNoMore) {
  create("/api/v1/namespaces/default/resourcequotas", R"({"metadata":{"name":"q"},"spec":{"hard":{"cpu":"1"}}})");
  patch("/api/v1/namespaces/default/resourcequotas/q/status", R"({"status":{"hard":{"cpu":"1"},"used":{"cpu":"0"}}})");
  EXPECT_EQ(message(post(kPods, pod("p"))), "pods \"p\" is forbidden: failed quota: q: must specify cpu for: c");
  EXPECT_EQ(message(post(kPods, pod("p", R"("resources":{"requests":{"cpu":"2"}})"))),
            "pods \"p\" is forbidden: exceeded quota: q, requested: cpu=2, used: cpu=0, limited: cpu=1");
}

TEST_F(AdmissionRules, WhatIsEnforcedIsWarnedAboutInTemplates) {
  label_namespace(R"("baseline")");
  auto made = post("/apis/apps/v1/namespaces/default/deployments",
                   R"({"metadata":{"name":"d"},"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},
                       "spec":{"hostPID":true,"containers":[{"name":"c","image":"i"}]}}}})");
  EXPECT_EQ(made->status, 201);
  EXPECT_EQ(made->headers.get("Warning"), "299 - \"would violate PodSecurity \\\"baseline:latest\\\": host namespaces (hostPID=true)\"");
  // A level that is said for warnings alone counts instead.
  label_namespace("\"privileged\"", "warn");
  auto silent = patch("/apis/apps/v1/namespaces/default/deployments/d", R"({"spec":{"replicas":2}})");
  EXPECT_EQ(silent->headers.get("Warning"), "");
}

TEST_F(AdmissionRules, AStricterLevelNamesThePodsAndTheRulesTheyBreak) {
  create(kPods, pod("a", R"("hostPID":true)"));
  create(kPods, pod("b", R"("hostPID":true)"));
  auto changed = label_namespace(R"("baseline")");
  EXPECT_NE(changed->body.find("baseline"), std::string::npos);
  std::string warnings;
  for (const auto& [name, value] : changed->headers.fields())
    if (name == "Warning") warnings += value + "\n";
  EXPECT_EQ(warnings,
            "299 - \"existing pods in namespace \\\"default\\\" violate the new PodSecurity enforce level \\\"baseline:latest\\\"\"\n"
            "299 - \"a (and 1 other pod): host namespaces\"\n");
  // What runs may be labelled, but gets no other image.
  EXPECT_EQ(patch(std::string(kPods) + "/a", R"({"metadata":{"labels":{"x":"y"}}})")->status, 200);
  EXPECT_STATUS(patch(std::string(kPods) + "/a", R"({"spec":{"containers":[{"name":"c","image":"other"}]}})", "strategic"), 403,
                "Forbidden");
}

TEST_F(AdmissionRules, ClusterWideDefaultsAndExemptions) {
  auto config = parse_master_config(R"(admissionConfig: {pluginConfig: {PodSecurity: {configuration: {
      kind: PodSecurityConfiguration, defaults: {enforce: baseline}, exemptions: {runtimeClasses: [trusted], namespaces: [kube-system]}}}}})",
                                    "");
  ASSERT_TRUE(config) << config.error().message;
  ServerOptions options;
  options.admission = config->admission;
  start(std::move(options));
  create("/apis/node.k8s.io/v1/runtimeclasses", R"({"metadata":{"name":"trusted"},"handler":"h"})");
  EXPECT_STATUS(post(kPods, pod("a", R"("hostPID":true)")), 403, "Forbidden");
  EXPECT_EQ(post(kPods, pod("a", R"("hostPID":true,"runtimeClassName":"trusted")"))->status, 201);
  EXPECT_EQ(post("/api/v1/namespaces/kube-system/pods", pod("a", R"("hostPID":true)"))->status, 201);
}

TEST_F(AdmissionRules, AnAccountMayConfineItsPodsToItsSecrets) {
  create("/api/v1/namespaces/default/serviceaccounts",
         R"({"metadata":{"name":"s","annotations":{"kubernetes.io/enforce-mountable-secrets":"true"}},"secrets":[{"name":"ok"}]})");
  const auto said = [&](const std::string& more) {
    return message(post(kPods + std::string("?dryRun=All"), pod("p", R"("serviceAccountName":"s",)" + more)));
  };
  EXPECT_EQ(said(R"("volumes":[{"name":"v","secret":{"secretName":"ok"}}])"), "");
  EXPECT_EQ(said(R"("volumes":[{"name":"v","secret":{"secretName":"bad"}}])"),
            "pods \"p\" is forbidden: volume with secret.secretName=\"bad\" is not allowed because service account s does not reference "
            "that secret");
  EXPECT_EQ(said(R"("imagePullSecrets":[{"name":"zz"}])"),
            "pods \"p\" is forbidden: imagePullSecrets[0].name=\"zz\" is not allowed because service account s does not reference that "
            "imagePullSecret");
}

TEST_F(AdmissionRules, OverheadComesFromTheClassAlone) {
  create("/apis/node.k8s.io/v1/runtimeclasses",
         R"({"metadata":{"name":"r"},"handler":"h","scheduling":{"tolerations":[{"key":"k","operator":"Exists","effect":"NoSchedule"}]}})");
  EXPECT_EQ(message(post(kPods, pod("p", R"("runtimeClassName":"r","overhead":{"cpu":"1"})"))),
            "pods \"p\" is forbidden: pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead");
  // The wider toleration that the pod has covers the class's.
  const auto made = create(kPods, pod("p", R"("runtimeClassName":"r","tolerations":[{"key":"k","operator":"Exists"}])"));
  EXPECT_EQ(json::get_array(made, {"spec", "tolerations"}).size(), 3U);
}

TEST_F(AdmissionRules, IngressesGetTheNewestDefaultClass) {
  create("/apis/networking.k8s.io/v1/ingressclasses",
         R"({"metadata":{"name":"c","annotations":{"ingressclass.kubernetes.io/is-default-class":"true"}},"spec":{"controller":"a.b/c"}})");
  const std::string path = "/apis/networking.k8s.io/v1/namespaces/default/ingresses";
  const std::string spec = R"("spec":{"defaultBackend":{"service":{"name":"s","port":{"number":1}}}}})";
  EXPECT_EQ(text(create(path, R"({"metadata":{"name":"i"},)" + spec), {"spec", "ingressClassName"}), "c");
  EXPECT_EQ(text(create(path, R"({"metadata":{"name":"j","annotations":{"kubernetes.io/ingress.class":"x"}},)" + spec),
                 {"spec", "ingressClassName"}),
            "");
}

TEST_F(AdmissionRules, LogOptionsAreCheckedBeforeThePod) {
  const auto said = [&](const std::string& query) { return message(get(std::string(kPods) + "/nope/log?" + query)); };
  EXPECT_EQ(said("tailLines=x"), "strconv.ParseInt: parsing \"x\": invalid syntax");
  EXPECT_EQ(said("tailLines=-1"), "PodLogOptions \"nope\" is invalid: tailLines: Invalid value: -1: must be greater than or equal to 0");
  EXPECT_EQ(said("sinceSeconds=1&sinceTime=2020-01-01T00:00:00Z"),
            "PodLogOptions \"nope\" is invalid: []: Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified");
  EXPECT_EQ(said("tailLines=1"), "pods \"nope\" not found");
}

TEST_F(AdmissionRules, LocalServicesAreListedAsAvailable) {
  const auto apps = read("/apis/apiregistration.k8s.io/v1/apiservices/v1.apps");
  EXPECT_EQ(json::get_int(apps, {"spec", "groupPriorityMinimum"}), 17800);
  EXPECT_EQ(text(json::get_array(apps, {"status", "conditions"}).at(0), {"reason"}), "Local");
  EXPECT_EQ(get("/apis/apiregistration.k8s.io/v1/apiservices/v1.")->status, 200);
}

TEST_F(AdmissionRules, ZerosThatGoAlwaysWritesHaveNoOwner) {
  const auto owners = [&](const json::Value& object) {
    std::string out;
    for (const auto& entry : json::get_array(object, {"metadata", "managedFields"})) out += json::serialize(entry.at("fieldsV1"));
    return out;
  };
  EXPECT_EQ(owners(create("/apis/coordination.k8s.io/v1/namespaces/default/leases", R"({"metadata":{"name":"l"},"spec":{}})")), "");
  EXPECT_EQ(owners(create("/apis/networking.k8s.io/v1/namespaces/default/networkpolicies",
                          R"({"metadata":{"name":"n"},"spec":{"podSelector":{}}})")),
            R"({"f:spec":{"f:policyTypes":{}}})");
  create("/api/v1/nodes", R"({"metadata":{"name":"n","labels":{"a":"b"}}})");
  const auto node =
      patch("/api/v1/nodes/n/status", R"({"status":{"conditions":[{"type":"Ready","status":"True"}]}})", "strategic")->document();
  EXPECT_NE(owners(node).find("f:lastHeartbeatTime"), std::string::npos) << owners(node);
}

TEST_F(AdmissionRules, EmptyListsAreNoneInStorage) {
  const auto made = create("/api/v1/namespaces/default/limitranges", R"({"metadata":{"name":"l"},"spec":{"limits":[]}})");
  EXPECT_TRUE(made.at("spec").at("limits").is_null());
}

TEST_F(AdmissionRules, MethodsOfPathsThatAreNoResources) {
  EXPECT_EQ(send("OPTIONS", "/apis")->status, 200);
  EXPECT_EQ(send("POST", "/healthz")->body, "ok");
  EXPECT_EQ(send("HEAD", "/version")->status, 405);
  EXPECT_EQ(send("HEAD", kMaps)->status, 405);
  EXPECT_EQ(send("POST", "/apis/apps/v1")->status, 405);
  EXPECT_EQ(get("/healthz/")->status, 404);
  EXPECT_STATUS(get("/api/v2/pods"), 404, "NotFound");
  EXPECT_EQ(send("get", "/api/v1/namespaces")->status, 405);
}

}  // namespace berth::apiserver::testing
