// From specs to decisions: admission, environment, images and their credentials, static pods, node status, container configuration, own
// runtime.
#include <gtest/gtest.h>

#include "node/admission.h"
#include "node/agent/container_config.h"
#include "node/agent/endpoint_access.h"
#include "node/agent/environment.h"
#include "node/agent/images.h"
#include "node/agent/node_status.h"
#include "node/agent/own_runtime.h"
#include "node/agent/probes.h"
#include "node/agent/static_pods.h"
#include "node/cri/grpc_health.h"

namespace berth::node::agent {
namespace {

json::Value yaml(std::string_view text) { return json::parse_yaml(text).value(); }

json::Value pod(std::string_view spec) {
  return json::Object{
      {"metadata", json::Object{{"name", "p"}, {"namespace", "default"}, {"uid", "u"}, {"labels", json::Object{{"b", "2"}, {"a", "1"}}}}},
      {"spec", yaml(spec)}};
}

AdmissionNode node() {
  AdmissionNode out{"real", {}, {}, {}};
  for (const auto& [name, amount] : {std::pair("cpu", "2"), std::pair("memory", "1Gi"), std::pair("pods", "3")})
    out.allocatable[name] = *model::Quantity::parse(amount);
  out.labels = model::Labels(std::vector<std::pair<std::string, std::string>>{{"zone", "a"}});
  return out;
}

TEST(Admission, WhatDoesNotFitIsRefusedInTheKubeletsWords) {
  const std::vector<json::Value> active{pod("containers: [{name: c, resources: {requests: {cpu: 1500m}}}]")};
  const auto refusal = refuse_pod(node(), pod("containers: [{name: c, resources: {requests: {cpu: 600m}}}]"), active);
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->reason, "OutOfcpu");
  EXPECT_EQ(refusal->message, "Node didn't have enough resource: cpu, requested: 600, used: 1500, capacity: 2000");
  EXPECT_FALSE(refuse_pod(node(), pod("containers: [{name: c, resources: {requests: {cpu: 500m}}}]"), active)) << "to the last thousandth";
  const auto full = refuse_pod(node(), pod("containers: [{name: c}]"), {active[0], active[0], active[0]});
  ASSERT_TRUE(full);
  EXPECT_EQ(full->reason, "OutOfpods");
}

TEST(Admission, SelectorsAndPorts) {
  EXPECT_FALSE(refuse_pod(node(), pod("nodeSelector: {zone: a}\ncontainers: [{name: c}]"), {}));
  EXPECT_EQ(refuse_pod(node(), pod("nodeSelector: {zone: b}\ncontainers: [{name: c}]"), {})->message,
            "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector");
  const json::Value web = pod("containers: [{name: c, ports: [{containerPort: 1, hostPort: 80}]}]");
  EXPECT_EQ(refuse_pod(node(), web, {web})->reason, "NodePorts");
  EXPECT_FALSE(refuse_pod(node(), pod("containers: [{name: c, ports: [{containerPort: 1, hostPort: 80, protocol: UDP}]}]"), {web}));
}

class ContextTest : public ::testing::Test {
 protected:
  explicit ContextTest(std::string_view spec = "containers: [{name: c}]")
      : document(pod(spec)), spec_(read_pod_spec(document)), facts(eviction::read_pod_facts(document)) {
    objects.config_map = [](const std::string&, const std::string& name) -> Result<json::Value> {
      if (name != "settings") return fail(ErrorCode::kNotFound, "no");
      return json::Object{{"data", json::Object{{"color", "green"}}}};
    };
    objects.secret = [](const std::string&, const std::string&) -> Result<json::Value> {
      return json::Object{{"data", json::Object{{"word", encode_base64("hidden")}}}};
    };
  }
  void load(std::string_view spec) {
    document = pod(spec);
    spec_ = read_pod_spec(document);
    facts = eviction::read_pod_facts(document);
  }
  [[nodiscard]] PodContext context() const {
    PodContext out{document,
                   spec_,
                   facts,
                   {"10.0.0.5", "fd00::5"},
                   "192.0.2.1",
                   "real",
                   "/root/pods/u",
                   "/root/logs/p",
                   "/kubepods/podu",
                   1LL << 30,
                   {},
                   {},
                   {},
                   false,
                   {},
                   {}};
    out.allocatable["memory"] = *model::Quantity::parse("512Mi");
    out.names.hostname = "p";
    return out;
  }
  json::Value document;
  PodSpec spec_;
  eviction::PodFacts facts;
  ObjectSource objects;
};

TEST_F(ContextTest, LimitedSwapIsSharedByMemoryRequests) {
  load(R"(containers:
- {name: part, resources: {requests: {memory: 256Mi}}}
- {name: all, resources: {requests: {memory: 1Mi}, limits: {memory: 1Mi}}}
- {name: none}
)");
  PodContext with = context();
  with.swap = {true, 1LL << 30};
  const auto swap = [&](std::size_t i) {
    const json::Value resources = container_resources(with, container_spec(document, i));
    return std::string(json::get_string(resources, {"unified", "memory.swap.max"}));
  };
  EXPECT_EQ(swap(0), "") << "cgroup version 1 has no such thing";
  EXPECT_EQ(json::get_string(json::Value(container_resources(with, container_spec(document, 1))), {"memory_swap_limit_in_bytes"}),
            "1048576");
  with.cgroup_v2 = true;
  EXPECT_EQ(swap(0), std::to_string(256LL << 20)) << "a quarter of the memory, a quarter of the swap";
  EXPECT_EQ(swap(1), "0") << "it asks for all that it may use";
  EXPECT_EQ(swap(2), "0");
  with.swap.capacity_bytes = 0;
  EXPECT_EQ(swap(0), "0") << "NoSwap";
}

TEST_F(ContextTest, WhoHasProcessorsToItselfHasThemWhole) {
  load(R"(containers:
- {name: own, resources: {requests: {cpu: '2', memory: 1Mi}, limits: {cpu: '2', memory: 1Mi}}}
- {name: shared, resources: {requests: {cpu: 100m, memory: 1Mi}, limits: {cpu: 100m, memory: 1Mi}}}
)");
  PodContext with = context();
  const auto quota = [&](std::size_t i) {
    return std::string(json::get_string(json::Value(container_resources(with, container_spec(document, i))), {"cpu_quota"}));
  };
  EXPECT_EQ(quota(0), "200000");
  with.with_own_cpus = {"own"};
  EXPECT_EQ(quota(0), "-1");
  EXPECT_EQ(quota(1), "10000") << "who shares is slowed down as ever";
}

TEST_F(ContextTest, WhatAContainerDoesNotLimitItsPodDoes) {
  load(R"(resources: {limits: {cpu: 500m, memory: 64Mi}}
initContainers:
- {name: i}
containers:
- {name: own, resources: {requests: {cpu: 100m}, limits: {cpu: 200m, memory: 16Mi}}}
- {name: none}
- {name: asks, resources: {requests: {cpu: 100m}}}
ephemeralContainers:
- {name: look}
)");
  const auto of = [&](std::size_t i, std::string_view name) {
    return std::string(json::get_string(json::Value(container_resources(context(), container_spec(document, i))), {name}));
  };
  for (const std::size_t i : {0, 2, 3, 4}) {
    EXPECT_EQ(of(i, "memory_limit_in_bytes"), std::to_string(64 << 20)) << i;
    EXPECT_EQ(of(i, "cpu_quota"), "50000") << i;
  }
  EXPECT_EQ(of(1, "memory_limit_in_bytes"), std::to_string(16 << 20));
  EXPECT_EQ(of(1, "cpu_quota"), "20000");
  EXPECT_EQ(of(2, "cpu_shares"), "512") << "it asks for what it may use";
  EXPECT_EQ(of(3, "cpu_shares"), "102");
}

TEST_F(ContextTest, VariablesOfEverySource) {
  load(R"x(containers:
- name: c
  resources: {limits: {cpu: 1500m}}
  envFrom: [{configMapRef: {name: settings}, prefix: S_}, {configMapRef: {name: gone, optional: true}}]
  env:
  - {name: WORD, valueFrom: {secretKeyRef: {name: key, key: word}}}
  - {name: IP, valueFrom: {fieldRef: {fieldPath: status.podIPs}}}
  - {name: CPU, valueFrom: {resourceFieldRef: {resource: limits.cpu}}}
  - {name: MEMORY, valueFrom: {resourceFieldRef: {resource: limits.memory, divisor: 1Mi}}}
  - {name: GREETING, value: "$(WORD) $(S_color) $$(WORD) $(NOBODY) $(DB_SERVICE_HOST)"}
  - {name: DB_PORT, value: mine})x");
  objects.services = [](const std::string&, bool) {
    return std::vector{yaml("metadata: {name: db}\nspec: {clusterIP: 10.96.0.7, ports: [{name: sql, port: 5432, protocol: TCP}]}")};
  };
  const auto variables = container_environment(context(), container_spec(document, 0), objects);
  ASSERT_TRUE(variables) << variables.error().message;
  const std::map<std::string, std::string> known(variables->begin(), variables->end());
  EXPECT_EQ(known.at("S_color"), "green");
  EXPECT_EQ(known.at("WORD"), "hidden") << "secrets are decoded";
  EXPECT_EQ(known.at("IP"), "10.0.0.5,fd00::5");
  EXPECT_EQ(known.at("CPU"), "2") << "rounded up";
  EXPECT_EQ(known.at("MEMORY"), "512") << "no limit: what the node has for pods";
  EXPECT_EQ(known.at("GREETING"), "hidden green $(WORD) $(NOBODY) 10.96.0.7");
  EXPECT_EQ(known.at("DB_PORT"), "mine") << "the pod's own word goes before a service's";
  EXPECT_EQ(known.at("DB_SERVICE_PORT_SQL"), "5432");
  EXPECT_EQ(known.at("DB_PORT_5432_TCP_ADDR"), "10.96.0.7");
}

TEST_F(ContextTest, AMissingReferenceIsAnError) {
  load("containers: [{name: c, env: [{name: A, valueFrom: {configMapKeyRef: {name: settings, key: size}}}]}]");
  const auto variables = container_environment(context(), container_spec(document, 0), objects);
  ASSERT_FALSE(variables);
  EXPECT_EQ(variables.error().message, "couldn't find key size in ConfigMap default/settings");
}

TEST_F(ContextTest, LabelsAreListedInOrder) { EXPECT_EQ(downward_field(context(), "metadata.labels"), "a=\"1\"\nb=\"2\""); }

TEST_F(ContextTest, SecurityContexts) {
  load(R"(shareProcessNamespace: true
securityContext: {runAsUser: 7, fsGroup: 9, seccompProfile: {type: RuntimeDefault}}
containers:
- {name: c, securityContext: {runAsUser: 8, runAsGroup: 6, capabilities: {drop: [ALL]}, allowPrivilegeEscalation: false, readOnlyRootFilesystem: true}}
- {name: d, securityContext: {privileged: true, allowPrivilegeEscalation: false}})");
  const auto plan = container_config(context(), 0, 0, objects);
  ASSERT_TRUE(plan);
  const json::Value& security = *json::find(plan->config, {"linux", "security_context"});
  EXPECT_EQ(json::get_string(security, {"run_as_user", "value"}), "8");
  EXPECT_EQ(json::get_string(security, {"run_as_group", "value"}), "6");
  EXPECT_EQ(json::get_string(security, {"seccomp", "profile_type"}), "RuntimeDefault");
  EXPECT_EQ(json::get_string(security, {"namespace_options", "pid"}), "POD");
  EXPECT_TRUE(json::get_bool(security, {"no_new_privs"}));
  EXPECT_TRUE(json::get_bool(security, {"readonly_rootfs"}));
  EXPECT_EQ(json::serialize(*json::find(security, "supplemental_groups")), R"(["9"])");
  EXPECT_TRUE(json::get_bool(sandbox_config(context(), 0), {"linux", "security_context", "privileged"}))
      << "one privileged container makes its sandbox so";
}

TEST_F(ContextTest, RunAsNonRoot) {
  load(
      "securityContext: {runAsNonRoot: true}\ncontainers: [{name: c}, {name: d, securityContext: {runAsUser: 5}}, {name: e, "
      "securityContext: {runAsUser: 0}}]");
  const auto check = [&](std::size_t i, std::string_view image) {
    return check_run_as_non_root(context(), container_spec(document, i), yaml(image));
  };
  EXPECT_EQ(check(0, "image: {}"), "container has runAsNonRoot and image will run as root (pod: \"p_default(u)\", container: c)");
  EXPECT_FALSE(check(0, "image: {uid: {value: '1000'}}"));
  EXPECT_EQ(check(0, "image: {username: www}"),
            "container has runAsNonRoot and image has non-numeric user (www), cannot verify user is non-root (pod: \"p_default(u)\", "
            "container: c)");
  EXPECT_FALSE(check(1, "image: {}"));
  EXPECT_EQ(check(2, "image: {uid: {value: '1000'}}"),
            "container's runAsUser breaks non-root policy (pod: \"p_default(u)\", container: e)");
}

TEST(ImageReferences, AReferenceIsReadAsRegistriesDo) {
  for (const char* good :
       {"app", "app:1", "UPPER/app:1", "localhost:5000/a/b_c:V1.2", "docker.io/library/a--b@sha256:0123456789abcdef0123456789abcdef"})
    EXPECT_EQ(wrong_image_reference(good), std::nullopt) << good;
  EXPECT_EQ(wrong_image_reference("App"), "invalid reference format: repository name (library/App) must be lowercase");
  EXPECT_EQ(wrong_image_reference("ghcr.io/Me/app:1"), "invalid reference format: repository name (Me/app) must be lowercase");
  EXPECT_EQ(wrong_image_reference(std::string(64, 'a')),
            "invalid repository name (" + std::string(64, 'a') + "), cannot specify 64-byte hexadecimal strings");
  for (const char* bad : {"", "a b", "a//b", "a:", "a:-x", "-a", "a_", "a..b", "a@sha256:12", "a@"})
    EXPECT_EQ(wrong_image_reference(bad), "invalid reference format") << bad;
}

TEST(ImageNames, TagsPoliciesAndRepositories) {
  EXPECT_EQ(with_default_tag("localhost:5000/app"), "localhost:5000/app:latest");
  EXPECT_EQ(with_default_tag("app@sha256:ab"), "app@sha256:ab");
  EXPECT_EQ(pull_policy(yaml("image: app")), "Always");
  EXPECT_EQ(pull_policy(yaml("image: app:1")), "IfNotPresent");
  EXPECT_EQ(image_repository("app:1"), "docker.io/library/app");
  EXPECT_EQ(image_repository("team/app"), "docker.io/team/app");
  EXPECT_EQ(image_repository("localhost:5000/a/b@sha256:ab"), "localhost:5000/a/b");
  EXPECT_EQ(format_milliseconds(320), "320ms");
  EXPECT_EQ(format_milliseconds(1500), "1.5s");
  EXPECT_EQ(format_milliseconds(61'250), "1m1.25s");
}

TEST(ImageNames, TheMostSpecificCredentialComesFirst) {
  const auto secret = [](const std::string& text) {
    return json::Value(json::Object{{"data", json::Object{{".dockerconfigjson", encode_base64(text)}}}});
  };
  const std::vector<json::Value> secrets{secret(R"({"auths":{"https://index.docker.io/v1/":{"auth":")" + encode_base64("hub:pw") +
                                                R"("},"*.example.com":{"username":"star"},"r.example.com/team":{"username":"team"}}})")};
  const auto team = image_credentials("r.example.com/team/app", secrets);
  ASSERT_EQ(team.size(), 2u);
  EXPECT_EQ(json::get_string(json::Value(team[0]), {"username"}), "team");
  const auto hub = image_credentials("nginx", secrets);
  ASSERT_EQ(hub.size(), 1u);
  EXPECT_EQ(json::get_string(json::Value(hub[0]), {"password"}), "pw");
  EXPECT_TRUE(image_credentials("a.b.example.com/x", secrets).empty()) << "a star does not span dots";
}

TEST(StaticPods, AManifestBecomesAPodOfThisNode) {
  const char* manifest = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: c, image: app}]}\n";
  const auto pod = static_pod(manifest, "/m/web.yaml", "real", {});
  ASSERT_TRUE(pod) << pod.error().message;
  EXPECT_EQ(json::get_string(*pod, {"metadata", "name"}), "web-real");
  EXPECT_EQ(json::get_string(*pod, {"metadata", "namespace"}), "default");
  EXPECT_EQ(json::get_string(*pod, {"spec", "nodeName"}), "real");
  EXPECT_EQ(json::get_string(*pod, {"spec", "restartPolicy"}), "Always") << "defaulted";
  EXPECT_TRUE(is_static_pod(*pod));
  EXPECT_FALSE(is_mirror_pod(*pod));
  const std::string uid(json::get_string(*pod, {"metadata", "uid"}));
  EXPECT_EQ(uid.size(), 32u);
  EXPECT_EQ(json::get_string(*static_pod(manifest, "/m/web.yaml", "real", *parse_rfc3339("2026-01-01T00:00:00Z")), {"metadata", "uid"}),
            uid)
      << "the same content is the same pod";
  const json::Value mirror = mirror_pod(*pod, "real", "node-uid");
  EXPECT_TRUE(is_mirror_pod(mirror));
  EXPECT_EQ(json::get_string(mirror, {"metadata", "annotations", kConfigMirrorAnnotation}), uid);
  EXPECT_EQ(json::find(mirror, {"metadata", "uid"}), nullptr);
}

TEST(StaticPods, WhatIsNoPodIsToldApart) {
  for (const char* text : {"", "a: [", "kind: Deployment\napiVersion: apps/v1",
                           "apiVersion: v1\nkind: Pod\nmetadata: {}\nspec: {containers: [{name: c, image: a}]}",
                           "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: []}",
                           "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: c, image: 5}]}"})
    EXPECT_FALSE(static_pod(text, "f", "real", {})) << text;
}

TEST(NodeStatus, ReasonsForNotBeingReady) {
  ConditionTimes times;
  NodeFacts facts;
  const TimePoint now = *parse_rfc3339("2026-01-01T00:00:00Z");
  (void)make_node_status(facts, times, now);
  const ConditionTimes before = times;
  facts.not_ready = {"container runtime is down"};
  const json::Value status = make_node_status(facts, times, now + std::chrono::seconds(5));
  const json::Array& conditions = json::get_array(status, {"conditions"});
  ASSERT_EQ(conditions.size(), 4u);
  EXPECT_EQ(json::get_string(conditions[3], {"reason"}), "KubeletNotReady");
  EXPECT_EQ(json::get_string(conditions[3], {"message"}), "container runtime is down");
  EXPECT_EQ(json::get_string(conditions[3], {"lastTransitionTime"}), "2026-01-01T00:00:05Z");
  EXPECT_EQ(json::get_string(conditions[0], {"lastTransitionTime"}), "2026-01-01T00:00:00Z");
  EXPECT_EQ(condition_events(before, times), std::vector<std::string>{"NodeNotReady"});
  EXPECT_EQ(condition_events({}, before),
            (std::vector<std::string>{"NodeHasSufficientMemory", "NodeHasNoDiskPressure", "NodeHasSufficientPID", "NodeReady"}));
}

TEST(NodeStatus, ImagesAreListedLargestFirst) {
  const json::Array images = node_images(
      yaml("images: [{size: '5', repo_tags: [a:1]}, {size: '50', repo_tags: [b:1], repo_digests: ['b@sha256:1']}, {size: '70'}]"));
  ASSERT_EQ(images.size(), 2u) << "one without a name is not shown";
  EXPECT_EQ(json::serialize(*json::find(images[0], "names")), R"(["b@sha256:1","b:1"])");
  EXPECT_EQ(os_image_name("NAME=x\nPRETTY_NAME=\"Debian 12\"\n"), "Debian 12");
}

TEST(EndpointAccess, PathsAreSubresourcesOfTheNode) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(endpoint_attributes("GET", "/stats/summary").subresources, Names{"stats"});
  EXPECT_EQ(endpoint_attributes("GET", "/metrics/resource").subresources, Names{"metrics"});
  EXPECT_EQ(endpoint_attributes("GET", "/pods").subresources, (Names{"pods", "proxy"})) << "the fine one first";
  EXPECT_EQ(endpoint_attributes("GET", "/configz").subresources, (Names{"configz", "proxy"}));
  EXPECT_EQ(endpoint_attributes("POST", "/checkpoint/a/b/c").subresources, Names{"checkpoint"});
  EXPECT_EQ(endpoint_attributes("POST", "/exec/a/b/c").verb, "create");
  EXPECT_EQ(endpoint_attributes("GET", "/statsx").subresources, Names{"proxy"});
}

TEST(GrpcHealth, MessagesByHand) {
  EXPECT_EQ(cri::health_request(""), "");
  EXPECT_EQ(cri::health_request("db"),
            "\x0a\x02"
            "db");
  EXPECT_EQ(cri::health_request(std::string(200, 'x')).substr(0, 3), std::string("\x0a\xc8\x01", 3));
  EXPECT_EQ(cri::health_status(std::string("\x08\x01", 2)), 1);
  EXPECT_EQ(cri::health_status(""), 0);
  EXPECT_EQ(cri::health_status("\xff"), -1);
}

TEST(Probes, ThresholdsAreCounted) {
  ProbeCounter counter;
  const json::Value probe = yaml("{\"failureThreshold\": 2, \"successThreshold\": 2}");
  EXPECT_FALSE(counter.take(probe, false));
  EXPECT_TRUE(counter.take(probe, false));
  EXPECT_EQ(counter.verdict(), false);
  EXPECT_FALSE(counter.take(probe, true));
  EXPECT_FALSE(counter.take(probe, false)) << "a failure between starts the count anew, and changes nothing";
  EXPECT_FALSE(counter.take(probe, true));
  EXPECT_TRUE(counter.take(probe, true));
}

TEST(OwnRuntime, ThePauseImageIsAWholeArchive) {
  const std::string tar = pause_image_tar();
  if (tar.empty()) GTEST_SKIP() << "no pause program for this processor";
  EXPECT_EQ(tar.size() % 512, 0u);
  EXPECT_EQ(tar.substr(257, 5), "ustar");
  for (const char* part : {"oci-layout", "index.json", "blobs/sha256/",
                           "\x7f"
                           "ELF"})
    EXPECT_NE(tar.find(part), std::string::npos) << part;
}

TEST(OwnRuntime, TheConfigurationFollowsTheMachine) {
  RuntimeAbilities abilities{.can_lower_oom_scores = false, .has_iptables = true, .snapshotter = "native"};
  const OwnRuntimeOptions options{.directory = "/d", .pod_subnet = "10.1.2.0/24", .bridge = "br"};
  const std::string config = containerd_config(options, abilities);
  EXPECT_NE(config.find("restrict_oom_score_adj = true"), std::string::npos);
  EXPECT_NE(config.find("snapshotter = \"native\""), std::string::npos);
  EXPECT_NE(config.find("config_path = \"/d/certs.d:/etc/containerd/certs.d\""), std::string::npos) << "mirrors";
  const auto cni = json::parse(cni_config(options, abilities));
  ASSERT_TRUE(cni);
  EXPECT_EQ(json::get_array(*cni, {"plugins"}).size(), 2u) << "bridge and portmap";
  abilities.has_iptables = false;
  EXPECT_EQ(json::get_array(json::parse(cni_config(options, abilities)).value(), {"plugins"}).size(), 1u);
}

}  // namespace
}  // namespace berth::node::agent
