// What somebody who knows Kubernetes tries on the first day, each rule found with kubectl beside a real kube-apiserver 1.36.2.
#include "tests/apiserver/server_fixture.h"

namespace berth::apiserver::testing {

class FirstDay : public ServerTest {
 protected:
  static std::string message(const Response& response) { return text(response->document(), {"message"}); }
  std::size_t count(const std::string& path) { return json::get_array(read(path), {"items"}).size(); }
};

TEST_F(FirstDay, FieldsThatKindsAreSelectedBy) {
  create(kPods, pod("p"));
  EXPECT_EQ(count("/api/v1/pods?fieldSelector=status.podIPs=1.1.1.1"), 0u);
  EXPECT_EQ(message(get("/api/v1/namespaces?fieldSelector=name=default")), "field label not supported: name");
  EXPECT_NE(
      message(get("/apis/apps/v1/replicasets?fieldSelector=status.replicas=0")).find("\"status.replicas\" is not a known field selector"),
      std::string::npos);
  const std::string events = "/api/v1/namespaces/default/events";
  create(events, R"({"metadata":{"name":"e"},"involvedObject":{"kind":"Pod","name":"p","namespace":"default"},"reason":"R",
    "reportingComponent":"scheduler","eventTime":"2024-01-01T00:00:00.000000Z","action":"A","reportingInstance":"i","type":"Normal"})");
  EXPECT_EQ(count(events + "?fieldSelector=source=scheduler"), 1u);
  EXPECT_EQ(count(events + "?fieldSelector=source=kubelet"), 0u);
  const std::string newer = "/apis/events.k8s.io/v1/namespaces/default/events";
  EXPECT_EQ(count(newer + "?fieldSelector=regarding.name=p"), 1u);
  EXPECT_EQ(get(newer + "?fieldSelector=involvedObject.name=p")->status, 400);
  EXPECT_EQ(get(newer + "?fieldSelector=source=scheduler")->status, 400);
}

TEST_F(FirstDay, PathsThatThereAreNot) {
  // Below a served group the answer is a Status, elsewhere plain text.
  EXPECT_EQ(message(get("/apis/storage.k8s.io/v1alpha9/storageclasses")), "the server could not find the requested resource");
  EXPECT_EQ(message(get("/api/v9/pods")), "the server could not find the requested resource");
  EXPECT_EQ(get("/apis/nope.io/v1/things")->body, "404 page not found\n");
  EXPECT_EQ(post("/nope", "{}")->status, 404);
  EXPECT_EQ(post("/version", "{}")->status, 405);
}

TEST_F(FirstDay, IndentedAnswers) {
  EXPECT_EQ(get("/version")->body.substr(0, 17), "{\n  \"major\": \"1\",");
  const auto one = get("/api/v1/namespaces/default?pretty=1")->body;
  EXPECT_NE(one.find("\n  \"metadata\": {\n    \"name\": \"default\","), std::string::npos) << one;
  EXPECT_EQ(one.back(), '}');
  EXPECT_EQ(get("/api/v1/namespaces/default")->body.find("\n  "), std::string::npos);
}

/// The storage refuses another uid before anybody looks at the revision.
TEST_F(FirstDay, AnotherUidIsToldFirst) {
  const auto made = create(kPods, pod("p"));
  const std::string path = std::string(kPods) + "/p";
  const auto words = [&](const char* what, const std::string& asked, const std::string& present) {
    return fmt::format(
        "Operation cannot be fulfilled on pods \"p\": StorageError: invalid object, Code: 4, Key: /pods/default/p, "
        "ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: {0} in precondition: {1}, {0} in object meta: {2}",
        what, asked, present);
  };
  const auto uid = text(made, {"metadata", "uid"}), revision = text(made, {"metadata", "resourceVersion"});
  auto other = made;
  json::set(other, {"metadata", "uid"}, "abc");
  json::set(other, {"metadata", "resourceVersion"}, "1");
  EXPECT_EQ(message(put(path, other)), words("UID", "abc", uid));
  EXPECT_EQ(message(post(path + "/binding", R"({"metadata":{"name":"p","uid":"abc"},"target":{"kind":"Node","name":"n"}})")),
            words("UID", "abc", uid));
  EXPECT_EQ(message(post(path + "/binding", R"({"metadata":{"name":"p","resourceVersion":"1"},"target":{"kind":"Node","name":"n"}})")),
            words("ResourceVersion", "1", revision));
}

TEST_F(FirstDay, PortsOfNodesLeaveTheFirstOnesToThoseWhoNameThem) {
  const std::string path = "/api/v1/namespaces/default/services";
  std::set<std::int64_t> ports;
  for (int i = 0; i < 20; ++i) {
    const auto made =
        create(path, fmt::format(R"({{"metadata":{{"name":"s{}"}},"spec":{{"type":"NodePort","ports":[{{"port":80}}]}}}})", i));
    ports.insert(json::get_int(json::get_array(made, {"spec", "ports"})[0], {"nodePort"}));
  }
  EXPECT_EQ(ports.size(), 20u);
  EXPECT_GE(*ports.begin(), 30086);
  EXPECT_GT(*ports.rbegin() - *ports.begin(), 100) << "one after the other: a deleted Service's port would soon be another's";
}

TEST_F(FirstDay, WhatAPodsUpdateMayNotChangeIsShown) {
  create(kPods, pod("p"));
  auto changed = read(std::string(kPods) + "/p");
  json::set(changed, {"spec", "nodeSelector"}, json::Object{{"a", "b"}});
  const auto said = message(put(std::string(kPods) + "/p", changed));
  EXPECT_NE(said.find("\n@@ -"), std::string::npos) << said;
  EXPECT_NE(said.find("\n- \"NodeSelector\": null,\n+ \"NodeSelector\": {\n+  \"a\": \"b\"\n+ },\n"), std::string::npos) << said;
}

TEST_F(FirstDay, DefaultsAndTablesOfToday) {
  const auto made = create("/apis/networking.k8s.io/v1/ingressclasses",
                           R"({"metadata":{"name":"c"},"spec":{"controller":"x.y/z","parameters":{"kind":"P","name":"p"}}})");
  EXPECT_EQ(text(made, {"spec", "parameters", "scope"}), "Cluster");
  create("/api/v1/nodes", R"({"metadata":{"name":"n"}})");
  patch("/api/v1/nodes/n/status", R"({"status":{"nodeInfo":{"kernelVersion":"6.1","architecture":"arm64"}}})");
  const auto table = [&](const std::string& path) {
    return send("GET", path, "", "", {{"Accept", "application/json;as=Table;v=v1;g=meta.k8s.io"}})->document();
  };
  EXPECT_NE(json::serialize(table("/api/v1/nodes/n")).find("\"6.1 (arm64)\""), std::string::npos);
  EXPECT_EQ(json::get_array(table("/api/v1/namespaces/default/serviceaccounts"), {"columnDefinitions"}).size(), 2u);
}

TEST_F(FirstDay, ThePatchListsKeyIsMissedBeforeItsOrder) {
  create("/apis/apps/v1/namespaces/default/deployments", R"({"metadata":{"name":"d"},"spec":{"selector":{"matchLabels":{"a":"b"}},
    "template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}})");
  EXPECT_EQ(message(patch("/apis/apps/v1/namespaces/default/deployments/d",
                          R"({"spec":{"template":{"spec":{"$setElementOrder/containers":[{"name":"c"}],"containers":[{"image":"x"}]}}}})",
                          "strategic")),
            "map: map[image:x] does not contain declared merge key: name");
}

TEST_F(FirstDay, OptionsOfLogsAreLookedAtFirst) {
  const std::string log = std::string(kPods) + "/none/log?";
  EXPECT_EQ(message(get(log + "tailLines=abc")), "strconv.ParseInt: parsing \"abc\": invalid syntax");
  EXPECT_EQ(message(get(log + "sinceTime=x")), "parsing time \"x\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"x\" as \"2006\"");
  EXPECT_EQ(
      message(get(log + "tailLines=-1&limitBytes=0")),
      "PodLogOptions \"none\" is invalid: [tailLines: Invalid value: -1: must be greater than or equal to 0, limitBytes: Invalid value: "
      "0: must be greater than 0]");
  EXPECT_EQ(message(get(log + "sinceSeconds=1&sinceTime=2020-01-01T00:00:00Z")),
            "PodLogOptions \"none\" is invalid: []: Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified");
  EXPECT_EQ(message(get(log + "tailLines=5&follow=true")), "pods \"none\" not found");
}

/// Who enforces a standard is warned of it, too, and a namespace's warning names the rules alone.
TEST_F(FirstDay, WarningsOfPodSecurity) {
  create(kPods, pod("p"));
  const auto warned = patch("/api/v1/namespaces/default", R"({"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"restricted"}}})");
  EXPECT_NE(warned->headers.get("Warning").find("existing pods in namespace"), std::string::npos);
  std::string all;
  for (const auto& [name, value] : warned->headers.fields())
    if (name == "Warning") all += value + "\n";
  EXPECT_NE(all.find("\"p: allowPrivilegeEscalation != false, unrestricted capabilities, runAsNonRoot != true, seccompProfile\""),
            std::string::npos)
      << all;
  const auto made =
      post("/apis/apps/v1/namespaces/default/deployments", R"({"metadata":{"name":"d"},"spec":{"selector":{"matchLabels":{"a":"b"}},
    "template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}})");
  EXPECT_NE(made->headers.get("Warning").find("would violate PodSecurity"), std::string::npos);
}

}  // namespace berth::apiserver::testing
