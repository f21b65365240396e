#include "tests/apiserver/server_fixture.h"

namespace berth::apiserver::testing {

class Admission : public ServerTest {
 protected:
  json::Value make_pod(const std::string& name, const std::string& extra = "") { return create(kPods, pod(name, extra)); }
  void start_with(const std::string& master_config, std::shared_ptr<Authorizer> authorizer = nullptr) {
    auto config = parse_master_config(master_config, "");
    ASSERT_TRUE(config) << config.error().message;
    ServerOptions options;
    options.admission = config->admission;
    options.authorizer = std::move(authorizer);
    start(std::move(options));
  }
  static std::string with_resources(const std::string& requests, const std::string& limits = "{}") {
    return fmt::format(
        R"({{"metadata":{{"generateName":"p-"}},"spec":{{"containers":[{{"name":"c","image":"i","resources":{{"requests":{},"limits":{}}}}}]}}}})",
        requests, limits);
  }
};

TEST_F(Admission, PriorityComesFromItsClass) {
  create("/apis/scheduling.k8s.io/v1/priorityclasses", R"({"metadata":{"name":"high"},"value":1000,"preemptionPolicy":"Never"})");
  const auto high = make_pod("a", R"("priorityClassName":"high")");
  EXPECT_EQ(json::get_int(high, {"spec", "priority"}), 1000);
  EXPECT_EQ(text(high, {"spec", "preemptionPolicy"}), "Never");
  EXPECT_EQ(json::get_int(make_pod("b"), {"spec", "priority"}, -1), 0);
  EXPECT_EQ(json::get_int(make_pod("c", R"("priorityClassName":"system-node-critical")"), {"spec", "priority"}), 2000001000);
  auto unknown = post(kPods, pod("d", R"("priorityClassName":"nope")"));
  EXPECT_STATUS(unknown, 403, "Forbidden");
  EXPECT_EQ(text(unknown->document(), {"message"}), "pods \"d\" is forbidden: no PriorityClass with name nope was found");
  EXPECT_STATUS(post(kPods, pod("e", R"("priority":7)")), 403, "Forbidden");
  create("/apis/scheduling.k8s.io/v1/priorityclasses", R"({"metadata":{"name":"std"},"value":5,"globalDefault":true})");
  const auto defaulted = make_pod("f");
  EXPECT_EQ(text(defaulted, {"spec", "priorityClassName"}), "std");
  EXPECT_EQ(json::get_int(defaulted, {"spec", "priority"}), 5);
  auto second = post("/apis/scheduling.k8s.io/v1/priorityclasses", R"({"metadata":{"name":"std2"},"value":6,"globalDefault":true})");
  EXPECT_STATUS(second, 403, "Forbidden");
  EXPECT_NE(second->body.find("PriorityClass std is already marked as default. Only one default can exist"), std::string::npos);
  const auto critical = create(
      "/api/v1/namespaces/kube-system/pods",
      R"({"metadata":{"name":"k","annotations":{"scheduler.alpha.kubernetes.io/critical-pod":""}},"spec":{"containers":[{"name":"c","image":"i"}]}})");
  EXPECT_EQ(text(critical, {"spec", "priorityClassName"}), "system-cluster-critical");
}

TEST_F(Admission, APodShowsTheRegionAndTheZoneOfItsNode) {
  create("/api/v1/nodes",
         R"({"metadata":{"name":"n","labels":{"topology.kubernetes.io/region":"r","topology.kubernetes.io/zone":"z","disk":"ssd"}}})");
  const auto zone_of = [](const json::Value& document) {
    return text(document, {"metadata", "labels", "topology.kubernetes.io/region"}) + "/" +
           text(document, {"metadata", "labels", "topology.kubernetes.io/zone"});
  };
  const auto placed = make_pod("placed", R"("nodeName":"n")");
  EXPECT_EQ(zone_of(placed), "r/z");
  EXPECT_EQ(json::find(placed, {"metadata", "labels", "disk"}), nullptr);
  EXPECT_EQ(zone_of(make_pod("elsewhere", R"("nodeName":"gone")")), "/");

  EXPECT_EQ(zone_of(make_pod("bound")), "/");
  create(std::string(kPods) + "/bound/binding", R"({"metadata":{"name":"bound"},"target":{"kind":"Node","name":"n"}})");
  EXPECT_EQ(zone_of(get(std::string(kPods) + "/bound")->document()), "r/z");
}

TEST_F(Admission, ANameIsMadeUpWhenTheObjectIsComplete) {
  const auto refused =
      post(kPods, R"({"metadata":{"generateName":"p-"},"spec":{"priorityClassName":"nope","containers":[{"name":"c","image":"i"}]}})");
  EXPECT_STATUS(refused, 403, "Forbidden");
  EXPECT_EQ(text(refused->document(), {"message"}), "pods \"p-\" is forbidden: no PriorityClass with name nope was found");
  const auto made = create(kPods, R"({"metadata":{"generateName":"p-"},"spec":{"containers":[{"name":"c","image":"i"}]}})");
  EXPECT_EQ(text(made, {"metadata", "name"}).size(), 7u);
  EXPECT_FALSE(text(made, {"metadata", "uid"}).empty());
  EXPECT_FALSE(text(made, {"metadata", "creationTimestamp"}).empty());
}

TEST_F(Admission, TolerationsOfEveryPod) {
  const auto tolerations = [](const json::Value& pod_document) {
    std::map<std::string, std::int64_t> out;
    for (const auto& t : json::get_array(pod_document, {"spec", "tolerations"}))
      out[text(t, {"key"}) + ":" + text(t, {"effect"})] = json::get_int(t, {"tolerationSeconds"}, -1);
    return out;
  };
  using Map = std::map<std::string, std::int64_t>;
  EXPECT_EQ(tolerations(make_pod("a")),
            (Map{{"node.kubernetes.io/not-ready:NoExecute", 300}, {"node.kubernetes.io/unreachable:NoExecute", 300}}));
  EXPECT_EQ(
      tolerations(make_pod(
          "b", R"("tolerations":[{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":7}])")),
      (Map{{"node.kubernetes.io/not-ready:NoExecute", 7}, {"node.kubernetes.io/unreachable:NoExecute", 300}}));
  EXPECT_EQ(tolerations(make_pod("c", R"("tolerations":[{"operator":"Exists"}])")), (Map{{":", -1}}));
  const auto burstable = create(kPods, with_resources(R"({"cpu":"1"})"));
  EXPECT_EQ(tolerations(burstable).count("node.kubernetes.io/memory-pressure:NoSchedule"), 1u) << "SPEC D5";
  start_with(
      "admissionConfig: {pluginConfig: {DefaultTolerationSeconds: {configuration: {kind: DefaultAdmissionConfig, apiVersion: v1, disable: "
      "true}}}}");
  EXPECT_EQ(tolerations(make_pod("d")), Map{});
}

TEST_F(Admission, NewNodesAreNotReady) {
  const auto node = create("/api/v1/nodes", R"({"metadata":{"name":"n"}})");
  ASSERT_EQ(json::get_array(node, {"spec", "taints"}).size(), 1u);
  EXPECT_EQ(text(json::get_array(node, {"spec", "taints"})[0], {"key"}), "node.kubernetes.io/not-ready");
}

TEST_F(Admission, ServiceAccountTokenIsMounted) {
  const auto made = make_pod("a");
  EXPECT_EQ(text(made, {"spec", "serviceAccountName"}), "default");
  ASSERT_EQ(json::get_array(made, {"spec", "volumes"}).size(), 1u);
  EXPECT_TRUE(text(json::get_array(made, {"spec", "volumes"})[0], {"name"}).starts_with("kube-api-access-"));
  EXPECT_EQ(json::get_array(make_pod("b", R"("automountServiceAccountToken":false)"), {"spec", "volumes"}).size(), 0u);
  auto unknown = post(kPods, pod("c", R"("serviceAccountName":"nope")"));
  EXPECT_STATUS(unknown, 403, "Forbidden");
  EXPECT_EQ(text(unknown->document(), {"message"}),
            "pods \"c\" is forbidden: error looking up service account default/nope: serviceaccount \"nope\" not found");
}

TEST_F(Admission, LimitRangesDefaultAndBound) {
  create(
      "/api/v1/namespaces/default/limitranges",
      R"({"metadata":{"name":"l"},"spec":{"limits":[{"type":"Container","default":{"cpu":"500m"},"defaultRequest":{"cpu":"250m","memory":"64Mi"},"max":{"cpu":"1"},"min":{"cpu":"100m"}}]}})");
  const auto made = make_pod("a");
  EXPECT_TRUE(json::equal(*json::find(json::get_array(made, {"spec", "containers"})[0], "resources"),
                          *json::parse(R"({"limits":{"cpu":"500m"},"requests":{"cpu":"250m","memory":"64Mi"}})")))
      << json::serialize(made);
  EXPECT_EQ(text(made, {"status", "qosClass"}), "Burstable");
  auto big = post(kPods, with_resources(R"({"cpu":"2"})", R"({"cpu":"2"})"));
  EXPECT_STATUS(big, 403, "Forbidden");
  EXPECT_NE(big->body.find("maximum cpu usage per Container is 1, but limit is 2"), std::string::npos) << big->body;
  auto small = post(kPods, with_resources(R"({"cpu":"50m"})"));
  EXPECT_NE(small->body.find("minimum cpu usage per Container is 100m, but request is 50m"), std::string::npos) << small->body;
}

TEST_F(Admission, QuotaCountsStrictly) {
  const std::string quota = "/api/v1/namespaces/default/resourcequotas";
  create(quota, R"({"metadata":{"name":"q"},"spec":{"hard":{"pods":"2","requests.cpu":"1"}}})");
  EXPECT_EQ(post(std::string(kPods) + "?dryRun=All", with_resources(R"({"cpu":"3"})"))->status, 201) << "not taken up yet";
  EXPECT_EQ(patch(quota + "/q/status", R"({"status":{"hard":{"pods":"2","requests.cpu":"1"}}})")->status, 200);
  auto unknown = post(kPods, with_resources(R"({"cpu":"100m"})"));
  EXPECT_STATUS(unknown, 403, "Forbidden");
  EXPECT_NE(unknown->body.find("status unknown for quota: q, resources: pods,requests.cpu"), std::string::npos) << unknown->body;
  EXPECT_EQ(
      patch(quota + "/q/status", R"({"status":{"hard":{"pods":"2","requests.cpu":"1"},"used":{"pods":"0","requests.cpu":"0"}}})")->status,
      200);
  EXPECT_EQ(post(kPods, with_resources(R"({"cpu":"300m"})"))->status, 201);
  auto too_much = post(kPods, with_resources(R"({"cpu":"800m"})"));
  EXPECT_NE(too_much->body.find("exceeded quota: q, requested: requests.cpu=800m, used: requests.cpu=300m, limited: requests.cpu=1"),
            std::string::npos)
      << too_much->body;
  EXPECT_EQ(post(kPods, with_resources(R"({"cpu":"400m"})"))->status, 201);
  auto third = post(kPods, with_resources(R"({"cpu":"100m"})"));
  EXPECT_NE(third->body.find("exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2"), std::string::npos) << third->body;
  EXPECT_NE(post(kPods, pod("nocpu"))->body.find("failed quota: q: must specify requests.cpu for: c"), std::string::npos);
  EXPECT_EQ(text(read(quota + "/q"), {"status", "used", "requests.cpu"}), "700m");
}

TEST_F(Admission, ClaimsGetTheDefaultClassAndProtection) {
  create("/apis/storage.k8s.io/v1/storageclasses",
         R"({"metadata":{"name":"fast","annotations":{"storageclass.kubernetes.io/is-default-class":"true"}},"provisioner":"x"})");
  const auto claim =
      create("/api/v1/namespaces/default/persistentvolumeclaims",
             R"({"metadata":{"name":"c"},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}})");
  EXPECT_EQ(text(claim, {"spec", "storageClassName"}), "fast");
  EXPECT_EQ(json::serialize(*json::find(claim, {"metadata", "finalizers"})), R"(["kubernetes.io/pvc-protection"])");
}

TEST_F(Admission, NodesChangeOnlyThemselves) {
  create("/api/v1/nodes", R"({"metadata":{"name":"n1"}})");
  create("/api/v1/nodes", R"({"metadata":{"name":"n2"}})");
  create(kPods, pod("mine", R"("nodeName":"n1")"));
  create(kPods, pod("other", R"("nodeName":"n2")"));
  peer_ = net::PeerCertificate{"system:node:n1", {"system:nodes"}};
  EXPECT_EQ(patch("/api/v1/nodes/n1/status", R"({"status":{"phase":"x"}})")->status, 200);
  EXPECT_STATUS(patch("/api/v1/nodes/n2/status", R"({"status":{}})"), 403, "Forbidden");
  EXPECT_STATUS(patch("/api/v1/nodes/n1", R"({"spec":{"taints":null}})"), 403, "Forbidden");
  EXPECT_STATUS(patch("/api/v1/nodes/n1", R"({"metadata":{"labels":{"node-restriction.kubernetes.io/x":"y"}}})"), 403, "Forbidden");
  EXPECT_EQ(patch(std::string(kPods) + "/mine/status", R"({"status":{"phase":"Running"}})")->status, 200);
  EXPECT_STATUS(patch(std::string(kPods) + "/other/status", R"({"status":{"phase":"Running"}})"), 403, "Forbidden");
  EXPECT_STATUS(remove(std::string(kPods) + "/other"), 403, "Forbidden");
  EXPECT_STATUS(post(kPods, pod("fresh", R"("nodeName":"n1")")), 403, "Forbidden");
}

TEST_F(Admission, AMirrorPodRefersToNothingThatItsNodeCouldReadThroughIt) {
  const json::Value node = create("/api/v1/nodes", R"({"metadata":{"name":"n1"}})");
  const std::string owner =
      R"({"apiVersion":"v1","kind":"Node","name":"n1","controller":true,"uid":")" + text(node, {"metadata", "uid"}) + R"("})";
  const auto mirror = [&](const std::string& name, const std::string& more, const std::string& owners) {
    return R"({"metadata":{"name":")" + name + R"(","annotations":{"kubernetes.io/config.mirror":"x"},"ownerReferences":[)" + owners +
           R"(]},"spec":{"nodeName":"n1","containers":[{"name":"c","image":"i"}])" + more + "}}";
  };
  const auto volume = [](const std::string& source) { return R"(,"volumes":[{"name":"v",)" + source + "}]"; };
  const auto projected = [&](const std::string& source) { return volume(R"("projected":{"sources":[)" + source + "]}"); };
  const std::pair<std::string, std::string> kRefers[] = {
      {volume(R"("secret":{"secretName":"s"})"), "may not reference secrets"},
      {volume(R"("configMap":{"name":"m"})"), "can not create pods that reference configmaps"},
      {volume(R"("persistentVolumeClaim":{"claimName":"c"})"), "can not create pods that reference persistentvolumeclaims"},
      {volume(R"("iscsi":{"targetPortal":"1.2.3.4:3260","iqn":"iqn.2001-04.com.example:t","lun":0,"secretRef":{"name":"s"}})"),
       "can not create pods that reference secrets"},
      {projected(R"({"secret":{"name":"s"}})"), "can not create pods that reference secrets"},
      {projected(R"({"configMap":{"name":"m"}})"), "can not create pods that reference configmaps"},
      {projected(R"({"configMap":{"name":"m"}},{"secret":{"name":"s"}})"), "can not create pods that reference secrets"},
      {projected(R"({"serviceAccountToken":{"path":"t"}})"), "may not use ServiceAccountToken volume projections"},
      {R"(,"serviceAccountName":"default")", "may not reference service accounts"},
      {R"(,"imagePullSecrets":[{"name":"s"}])", "can not create pods that reference secrets"},
      {R"(,"initContainers":[{"name":"i","image":"i","env":[{"name":"E","valueFrom":{"secretKeyRef":{"name":"s","key":"k"}}}]}])",
       "can not create pods that reference secrets"},
      {R"(,"initContainers":[{"name":"i","image":"i","env":[{"name":"E","valueFrom":{"configMapKeyRef":{"name":"m","key":"k"}}}]}])",
       "can not create pods that reference configmaps"},
      {R"(,"initContainers":[{"name":"i","image":"i","envFrom":[{"secretRef":{"name":"s"}}]}])",
       "can not create pods that reference secrets"},
      {R"(,"initContainers":[{"name":"i","image":"i","envFrom":[{"configMapRef":{"name":"m"}}]}])",
       "can not create pods that reference configmaps"},
  };
  peer_ = net::PeerCertificate{"system:node:n1", {"system:nodes"}};
  for (const auto& [more, words] : kRefers) {
    const auto answer = post(kPods, mirror("m", more, owner));
    EXPECT_EQ(answer->status, 403) << more;
    EXPECT_TRUE(answer->body.find(words + "\"") != std::string::npos) << more << answer->body;
  }
  EXPECT_STATUS(post(kPods, mirror("m", "", "")), 403, "Forbidden");
  EXPECT_STATUS(post(kPods, mirror("m", "", owner + R"(,{"apiVersion":"v1","kind":"ConfigMap","name":"m","uid":"u"})")), 403, "Forbidden");
  const auto edited = [&](const std::string& old, const std::string& fresh) {
    std::string other = owner;
    return other.replace(other.find(old), old.size(), fresh);
  };
  EXPECT_STATUS(post(kPods, mirror("m", "", edited("true", "false"))), 403, "Forbidden");
  EXPECT_STATUS(post(kPods, mirror("m", "", edited("true", R"(true,"blockOwnerDeletion":true)"))), 403, "Forbidden");
  EXPECT_STATUS(post(kPods, mirror("m", "", edited(R"("uid":")", R"("uid":"other-)"))), 403, "Forbidden");
  EXPECT_EQ(post(kPods, mirror("m", "", owner))->status, 201);
}

TEST_F(Admission, NodesWriteTheirPartOfTheNameServiceAlone) {
  const std::string services = "/api/v1/namespaces/kube-system/services",
                    slices = "/apis/discovery.k8s.io/v1/namespaces/kube-system/endpointslices";
  const auto service = [](const std::string& name, const std::string& more) {
    return R"({"metadata":{"name":")" + name + R"("},"spec":{"ports":[{"port":53,"protocol":"UDP"}])" + more + "}}";
  };
  const auto slice = [](const std::string& node, const std::string& of) {
    return R"({"metadata":{"name":"kube-dns-n1","labels":{"kubernetes.io/service-name":")" + of +
           R"("}},"addressType":"IPv4","ports":[],"endpoints":[{"addresses":["10.1.1.1"],"nodeName":")" + node + R"("}]})";
  };
  peer_ = net::PeerCertificate{"system:node:n1", {"system:nodes"}};
  EXPECT_STATUS(post(services, service("other", R"(,"internalTrafficPolicy":"Local")")), 403, "Forbidden");
  EXPECT_STATUS(post(services, service("kube-dns", "")), 403, "Forbidden");
  EXPECT_STATUS(post(services, service("kube-dns", R"(,"internalTrafficPolicy":"Local","selector":{"a":"b"})")), 403, "Forbidden");
  EXPECT_EQ(post(services, service("kube-dns", R"(,"internalTrafficPolicy":"Local")"))->status, 201);
  EXPECT_STATUS(post(slices, slice("n2", "kube-dns")), 403, "Forbidden");
  EXPECT_STATUS(post(slices, slice("n1", "web")), 403, "Forbidden");
  EXPECT_EQ(post(slices, slice("n1", "kube-dns"))->status, 201);
  EXPECT_STATUS(patch(slices + "/kube-dns-n1", R"({"endpoints":[{"addresses":["10.1.1.1"],"nodeName":"n2"}]})"), 403, "Forbidden");
  EXPECT_EQ(remove(slices + "/kube-dns-n1")->status, 200);
}

TEST_F(Admission, PodNodeSelectorMergesAndRefuses) {
  start_with(R"(
admissionConfig:
  pluginConfig:
    PodNodeSelector:
      configuration:
        podNodeSelectorPluginConfig:
          clusterDefaultNodeSelector: "k3=v3"
          ns1: region=west,env=test,infra=fedora,os=fedora
)");
  create("/api/v1/namespaces",
         R"({"metadata":{"name":"ns1","annotations":{"scheduler.alpha.kubernetes.io/node-selector":"env=test,infra=fedora"}}})");
  const auto merged = create("/api/v1/namespaces/ns1/pods", pod("a", R"("nodeSelector":{"os":"fedora"})"));
  EXPECT_EQ(json::get_object(merged, {"spec", "nodeSelector"}).size(), 3u);
  auto conflicting = post("/api/v1/namespaces/ns1/pods", pod("b", R"("nodeSelector":{"env":"prod"})"));
  EXPECT_STATUS(conflicting, 403, "Forbidden");
  EXPECT_NE(conflicting->body.find("pod node label selector conflicts with its namespace node label selector"), std::string::npos);
  auto foreign = post("/api/v1/namespaces/ns1/pods", pod("c", R"("nodeSelector":{"color":"red"})"));
  EXPECT_NE(foreign->body.find("pod node label selector labels conflict with its namespace whitelist"), std::string::npos) << foreign->body;
  EXPECT_EQ(text(make_pod("d"), {"spec", "nodeSelector", "k3"}), "v3");

  // A selector that no pod can have is taken, as in Kubernetes, and told to whoever gives it: each time, and to nobody else.
  const std::string path = "/api/v1/namespaces/ns1";
  const auto give = [&](const std::string& selector) {
    return std::string(patch(path, R"({"metadata":{"annotations":{"scheduler.alpha.kubernetes.io/node-selector":")" + selector + R"("}}})")
                           ->headers.get("Warning"));
  };
  EXPECT_TRUE(give("env=prod").contains("env=prod conflicts with the namespace's whitelist (env=test,infra=fedora,os=fedora,region=west)"));
  EXPECT_EQ(patch(path, R"({"metadata":{"labels":{"a":"b"}}})")->headers.get("Warning"), "");
  EXPECT_EQ(give("env=test"), "");
  EXPECT_TRUE(give("env=prod").contains("the project's pods will be refused"));
  EXPECT_TRUE(give("env in (a)").contains("is not of the form key=value,key=value"));
  EXPECT_EQ(give("env=test"), "");
  EXPECT_TRUE(std::string(patch(path, R"({"metadata":{"annotations":{"openshift.io/node-selector":"env=other"}}})")->headers.get("Warning"))
                  .contains("env=test conflicts with openshift.io/node-selector (env=other)"));
}

TEST_F(Admission, ProjectsHaveANodeSelector) {
  create("/api/v1/namespaces", R"({"metadata":{"name":"p","annotations":{"openshift.io/node-selector":"type=user-node,region=east"}}})");
  EXPECT_EQ(json::get_object(create("/api/v1/namespaces/p/pods", pod("a")), {"spec", "nodeSelector"}).size(), 2u);
  auto conflicting = post("/api/v1/namespaces/p/pods", pod("b", R"("nodeSelector":{"region":"west"})"));
  EXPECT_STATUS(conflicting, 403, "Forbidden");
  EXPECT_NE(conflicting->body.find("pod node label selector conflicts with its project node label selector"), std::string::npos);
  start_with("projectConfig: {defaultNodeSelector: \"zone=a\"}");
  EXPECT_EQ(text(make_pod("c"), {"spec", "nodeSelector", "zone"}), "a");
}

TEST_F(Admission, PodNodeConstraintsAskForTheRightToBind) {
  const std::string config = R"(
admissionConfig:
  pluginConfig:
    PodNodeConstraints:
      configuration:
        apiversion: v1
        kind: PodNodeConstraintsConfig
        nodeSelectorLabelBlacklist:
          - kubernetes.io/hostname
          - region
)";
  start_with(config, std::make_shared<PickyAuthorizer>([](const UserInfo&, const Attributes& a) { return a.subresource != "binding"; }));
  auto by_name = post(kPods, pod("a", R"("nodeName":"n")"));
  EXPECT_STATUS(by_name, 403, "Forbidden");
  EXPECT_NE(by_name->body.find("node selection by nodeName is prohibited by policy for your role"), std::string::npos);
  auto by_label = post(kPods, pod("b", R"("nodeSelector":{"region":"us-east"})"));
  EXPECT_NE(by_label->body.find("node selection by label(s) [region] is prohibited by policy for your role"), std::string::npos)
      << by_label->body;
  EXPECT_EQ(post(kPods, pod("c", R"("nodeSelector":{"superregion":"us"})"))->status, 201);
  auto in_template = post(
      "/apis/apps/v1/namespaces/default/deployments",
      R"({"metadata":{"name":"d"},"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"nodeSelector":{"region":"x"},"containers":[{"name":"c","image":"i"}]}}}})");
  EXPECT_STATUS(in_template, 403, "Forbidden");
  start_with(config);
  EXPECT_EQ(post(kPods, pod("a", R"("nodeName":"n")"))->status, 201) << "who may bind may choose";
}

TEST_F(Admission, RuntimeClassBringsItsOverhead) {
  create("/apis/node.k8s.io/v1/runtimeclasses",
         R"({"metadata":{"name":"vm"},"handler":"vm","overhead":{"podFixed":{"cpu":"250m"}},"scheduling":{"nodeSelector":{"vm":"yes"}}})");
  const auto made = make_pod("a", R"("runtimeClassName":"vm")");
  EXPECT_EQ(text(made, {"spec", "overhead", "cpu"}), "250m");
  EXPECT_EQ(text(made, {"spec", "nodeSelector", "vm"}), "yes");
  EXPECT_STATUS(post(kPods, pod("b", R"("runtimeClassName":"nope")")), 403, "Forbidden");
}

TEST(AdmissionConfigFile, SectionsOfTheDocuments) {
  auto master = parse_master_config(R"(
kubernetesMasterConfig:
  schedulerConfigFile: /etc/origin/master/scheduler.json
  schedulerArgs:
    policy-config-file: [a.json]
  controllerArguments:
    feature-gates:
    - TaintBasedEvictions=true
admissionConfig:
  pluginConfig:
    DefaultTolerationSeconds:
      configuration:
        kind: DefaultAdmissionConfig
        apiVersion: v1
        disable: false
)",
                                    "");
  ASSERT_TRUE(master) << master.error().message;
  EXPECT_EQ(master->scheduler_config_file, "/etc/origin/master/scheduler.json");
  EXPECT_EQ(master->controller_arguments.at("feature-gates").values.at(0), "TaintBasedEvictions=true");
  EXPECT_EQ(master->scheduler_arguments.at("policy-config-file").values.at(0), "a.json");
  auto wrong = parse_master_config("admissionConfig: {pluginConfig: []}", "");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().message, "master-config.yaml:1: admissionConfig.pluginConfig: must be a map, not a list");
  AdmissionConfig config;
  const auto parsed = parse_admission_configuration(R"(
apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: PodNodeSelector
  configuration: {podNodeSelectorPluginConfig: {clusterDefaultNodeSelector: a=b}}
)",
                                                    "", config);
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_TRUE(config.plugin_config.contains("PodNodeSelector"));
  EXPECT_FALSE(parse_admission_configuration("kind: Other", "", config));
}

}  // namespace berth::apiserver::testing
