// Machines, their sets and autoscalers; requests for certificates; bootstrap tokens; pods that no scheduler takes.
#include "controllers/machines.h"

#include "base/base64.h"
#include "controllers/certificates.h"
#include "controllers/cluster.h"
#include "tests/controllers/lives/world.h"

namespace berth::controllers::lives {
namespace {

using json::get_array;
using json::get_int;
using json::get_string;
using std::chrono::minutes;
using std::chrono::seconds;

TEST(MachineLives, AreAsRecorded) {
  World world({.file = "tests/controllers/lives/machines.txt",
               .seed = 50,
               .edits = 1800,
               .has_memory = true,
               .readable = 22'000,
               .longest = seconds(10)});
  world.add([] { return make_machine_set_controller(); });
  world.add([] { return make_simulated_machine_controller(); });
  world.add([] { return make_machine_autoscaler_controller(); });
  const Kind set = kinds().machine_set, machine = kinds().machine, scaler = kinds().machine_autoscaler, node = kinds().node;
  constexpr const char* kSet =
      "{apiVersion: machine.openshift.io/v1beta1, kind: MachineSet, metadata: {}, spec: {replicas: 2, selector: {matchLabels: {set: w}}, "
      "template: {metadata: {labels: {set: w}}, spec: {providerSpec: {value: {instanceType: m5.xlarge, placement: {availabilityZone: z1, "
      "region: r1}}}}}}}";
  world.sorts = {{set, {"default/w", "default/w", "default/x"}, kSet},
                 {machine,
                  {"default/m"},
                  "{apiVersion: machine.openshift.io/v1beta1, kind: Machine, metadata: {labels: {set: w}}, spec: {providerSpec: {value: "
                  "{vmSize: x.large, zone: z9, location: eu}}}}"},
                 {scaler,
                  {"default/s", "default/t"},
                  "{apiVersion: autoscaling.openshift.io/v1beta1, kind: MachineAutoscaler, metadata: {}, spec: {minReplicas: 1, "
                  "maxReplicas: 5, scaleTargetRef: {apiVersion: machine.openshift.io/v1beta1, kind: MachineSet, name: w}}}"},
                 {node, {"m"}, "{apiVersion: v1, kind: Node, metadata: {}}"}};
  world.fields = {
      {set, "spec replicas", {"0", "1", "2", "3", "4", ""}},
      {set, "spec replicas", {"0", "1", "2", "3"}},
      {set, "spec deletePolicy", {"Oldest", "Newest", "Random", ""}},
      {set, "spec minReadySeconds", {"8", ""}},
      {set, "spec template metadata", {"{labels: {set: w}}", "{labels: {set: w, more: x}, annotations: {a: b}}"}},
      {set,
       "spec template spec",
       {"{providerSpec: {value: {machineType: c5.2xlarge, zone: z2, region: r2}}, taints: [{key: t, effect: NoSchedule}], metadata: "
        "{labels: {l: m}}}",
        "{providerSpec: {value: {instanceType: r5.large}}}", "{providerSpec: {value: {kind: LocalMachine}}}",
        "{providerSpec: {value: {instanceType: x1.65xlarge}}}", ""}},
      {set,
       "metadata annotations",
       {"{sim.berth.dev/boot-delay: 15s}", "{sim.berth.dev/boot-delay: never}",
        "{machine.openshift.io/vCPU: '8', machine.openshift.io/memoryMb: '100', machine.openshift.io/maxPods: '20', "
        "machine.openshift.io/GPU: '1'}",
        "{capacity.cluster-autoscaler.kubernetes.io/cpu: '3', capacity.cluster-autoscaler.kubernetes.io/memory: 5Gi, "
        "capacity.cluster-autoscaler.kubernetes.io/gpu-count: '2', capacity.cluster-autoscaler.kubernetes.io/gpu-type: amd.com/gpu, "
        "capacity.cluster-autoscaler.kubernetes.io/ephemeral-disk: 9Gi}",
        "{capacity.cluster-autoscaler.kubernetes.io/dra-driver: d, capacity.cluster-autoscaler.kubernetes.io/gpu-count: '2'}", ""}},
      {machine,
       "metadata annotations",
       {"{machine.openshift.io/delete-machine: 'yes'}", "{machine.openshift.io/cluster-api-delete-machine: 'yes'}",
        "{sim.berth.dev/boot-delay: 5s, sim.berth.dev/devices: x}", ""}},
      {machine, "metadata labels set", {"w", "other"}},
      {machine, "status phase", {"Failed", "Running", "Provisioned"}},
      {machine, "status errorReason", {"CreateError", ""}},
      {machine, "metadata creationTimestamp", {"'$t-100'", "'$t'"}},
      {scaler, "spec minReplicas", {"0", "1", "2"}},
      {scaler, "spec maxReplicas", {"5", "6"}},
      {scaler, "spec scaleTargetRef name", {"w", "x", "gone"}},
      {scaler, "spec scaleTargetRef kind", {"MachineSet", "MachineSet", "Thing"}},
      {node,
       "status",
       {"{conditions: [{type: Ready, status: 'True', lastTransitionTime: '$t'}], addresses: [{address: 1.2.3.4}]}",
        "{conditions: [{type: Ready, status: 'True', lastTransitionTime: '$t-20'}]}", "{conditions: [{type: Ready, status: 'False'}]}"}},
      {node, "metadata annotations machine.openshift.io/machine", {"default/m", ""}}};
  world.judge_rest = [&] {
    for (const std::string& key : world.keys(set)) {
      const json::Value& one = *world.find(set, key);
      if (!get_string(one, {"metadata", "deletionTimestamp"}).empty()) continue;
      std::int64_t have = 0;
      for (const std::string& machine_key : world.keys(machine))
        for (const json::Value& owner : get_array(*world.find(machine, machine_key), {"metadata", "ownerReferences"}))
          have += get_string(owner, {"uid"}) == get_string(one, {"metadata", "uid"}) &&
                  get_string(*world.find(machine, machine_key), {"metadata", "deletionTimestamp"}).empty();
      if (have != get_int(one, {"spec", "replicas"}, 1)) world.wrong(fmt::format("{} has {} machines", key, have));
    }
  };
  world.live();
}

TEST(CertificateLives, AreAsRecorded) {
  World world({.file = "tests/controllers/lives/certificates.txt",
               .seed = 51,
               .edits = 780,
               .has_memory = true,
               .is_restless = true,
               .readable = 13'000,
               .steps_an_edit = 20,
               .longest = minutes(30)});
  world.add([] {
    return make_certificate_signing_controller({.authority = [] { return Result<net::SigningAuthority>(invalid("no authority today")); }});
  });
  world.add([] { return make_certificate_approving_controller(true); });
  world.add([] { return make_certificate_cleaner_controller(); });
  const Kind request = kinds().certificate_signing_request, node = kinds().node, endpoints = kinds().endpoints;
  const auto text = [](std::string name, std::vector<std::string> groups, std::vector<std::string> names) {
    return base64_encode(net::make_certificate_request({std::move(name), std::move(groups), std::move(names)})->request_pem);
  };
  const std::string client = text("system:node:n1", {"system:nodes"}, {}),
                    serving = text("system:node:n1", {"system:nodes"}, {"n1", "10.0.0.1"}),
                    other = text("system:node:n1", {"system:masters"}, {}), user = text("me", {"system:nodes"}, {}),
                    taken = text("system:node:n1", {"system:nodes"}, {"10.0.0.2"});
  const auto spec = [](const std::string& body, const char* signer, const char* user_name, const char* usages) {
    return fmt::format("{{request: {}, signerName: kubernetes.io/{}, username: {}, groups: [g], usages: {}}}", body, signer, user_name,
                       usages);
  };
  const std::vector<std::string> specs = {
      spec(client, "kube-apiserver-client-kubelet", "system:node:n1", "[digital signature, client auth]"),
      spec(client, "kube-apiserver-client-kubelet", "boot", "[digital signature, key encipherment, client auth]"),
      spec(client, "kube-apiserver-client-kubelet", "boot", "[client auth]"),
      spec(other, "kube-apiserver-client-kubelet", "system:node:n1", "[digital signature, client auth]"),
      spec(serving, "kubelet-serving", "system:node:n1", "[digital signature, server auth]"),
      spec(serving, "kubelet-serving", "system:node:n2", "[digital signature, server auth]"),
      spec(taken, "kubelet-serving", "system:node:n1", "[digital signature, server auth]"),
      spec(client, "kubelet-serving", "system:node:n1", "[digital signature, server auth]"),
      spec(user, "kube-apiserver-client", "me", "[client auth, server auth]"),
      spec(user, "kube-apiserver-client", "me", "[digital signature]"),
      spec("eA==", "kube-apiserver-client", "me", "[client auth]"),
      spec(user, "other", "me", "[client auth]"),
      spec(user, "kube-apiserver-client", "me", "[client auth]")};
  world.sorts = {
      {request,
       {"a", "b", "c"},
       "{apiVersion: certificates.k8s.io/v1, kind: CertificateSigningRequest, metadata: {}, spec: " + specs[0] + "}"},
      {request,
       {"a", "b", "c"},
       "{apiVersion: certificates.k8s.io/v1, kind: CertificateSigningRequest, metadata: {}, spec: " + specs[4] + "}"},
      {node, {"n1", "n2"}, "{apiVersion: v1, kind: Node, metadata: {}, status: {addresses: [{address: n1}, {address: 10.0.0.1}]}}"},
      {endpoints, {"default/kubernetes"}, "{apiVersion: v1, kind: Endpoints, metadata: {}, subsets: [{addresses: [{ip: 10.0.0.9}]}]}"}};
  world.fields = {
      {request, "spec", specs},
      {request, "spec", specs},
      {request,
       "status conditions",
       {"[{type: Approved, status: 'True', lastUpdateTime: '$t'}]", "[{type: Denied, status: 'True', lastUpdateTime: '$t-3599'}]",
        "[{type: Failed, status: 'True', lastUpdateTime: '$t'}]", "[{type: Approved, status: 'False', lastUpdateTime: '$t'}]",
        "[{type: Approved, status: 'True', lastUpdateTime: '$t'}, {type: Denied, status: 'True'}]", ""}},
      {request, "status certificate", {"eA==", ""}},
      {request, "metadata creationTimestamp", {"'$t-86399'", "'$t-86400'", "'$t'"}},
      {node, "status addresses", {"[{address: n1}, {address: 10.0.0.1}]", "[{address: 10.0.0.2}]", "[{address: n1}]"}},
      {endpoints, "subsets", {"[{addresses: [{ip: 10.0.0.1}]}]", "[{addresses: [{ip: 10.0.0.9}]}]"}}};
  world.answer = [&](const Write& write) -> json::Value {
    if (write.kind != kinds().subject_access_review) return {};
    return json::Object{{"status", json::Object{{"allowed", world.life.dice.chance(40)}}}};
  };
  world.live();
}

TEST(TokenLives, AreAsRecorded) {
  World world(
      {.file = "tests/controllers/lives/bootstrap_tokens.txt", .seed = 52, .edits = 780, .readable = 13'000, .longest = seconds(40)});
  world.add([] { return make_token_cleaner_controller(); });
  world.add([] { return make_bootstrap_signer_controller(); });
  const Kind secret = kinds().secret, map = kinds().config_map;
  const auto coded = [](std::string_view text) { return base64_encode(text); };
  const auto token = [&](std::string_view id, std::string_view expires, const char* signs) {
    return fmt::format("{{token-id: {}, token-secret: {}, usage-bootstrap-signing: {}, usage-bootstrap-authentication: {}{}}}", coded(id),
                       coded("0123456789abcdef"), coded(signs), coded("true"),
                       expires.empty() ? "" : fmt::format(", expiration: {}", coded(expires)));
  };
  world.sorts = {
      {secret,
       {"kube-system/bootstrap-token-abcdef", "kube-system/bootstrap-token-zzzzzz", "default/bootstrap-token-abcdef"},
       "{apiVersion: v1, kind: Secret, metadata: {}, type: bootstrap.kubernetes.io/token, data: " + token("abcdef", "", "true") + "}"},
      {map,
       {"kube-public/cluster-info", "default/cluster-info"},
       "{apiVersion: v1, kind: ConfigMap, metadata: {}, data: {kubeconfig: text}}"}};
  world.fields = {
      {secret,
       "data",
       {token("abcdef", "", "true"), token("zzzzzz", "", "true"), token("abcdef", "", "false"),
        token("abcdef", "2026-01-05T10:30:00Z", "true"), token("zzzzzz", "2026-01-05T11:00:00Z", "true"),
        token("abcdef", "2026-01-05T09:00:00Z", "true"), token("abcdef", "x", "true"), "{}"}},
      {secret, "data", {token("abcdef", "", "true"), token("zzzzzz", "", "true"), token("abcdef", "2026-01-05T12:00:00Z", "true")}},
      {secret, "type", {"bootstrap.kubernetes.io/token", "Opaque"}},
      {secret, "metadata finalizers", {"[x]", ""}},
      {map, "data", {"{kubeconfig: text}", "{kubeconfig: other}", "{}", "{kubeconfig: text, jws-kubeconfig-zzzzzz: old, more: x}"}}};
  world.live();
}

TEST(UnclaimedLives, AreAsRecorded) {
  World world({.file = "tests/controllers/lives/unclaimed.txt",
               .seed = 53,
               .edits = 900,
               .has_memory = true,
               .readable = 11'000,
               .longest = seconds(50)});
  world.add([] { return make_unclaimed_pod_controller(); });
  const Kind pod = kinds().pod;
  const std::vector<std::string> pods = {"default/p", "default/q", "default/r"};
  world.sorts = {{pod, pods, "{apiVersion: v1, kind: Pod, metadata: {}, spec: {schedulerName: mine}}"},
                 {pod, pods, "{apiVersion: v1, kind: Pod, metadata: {}, spec: {}}"},
                 {pod, pods, "{apiVersion: v1, kind: Pod, metadata: {}, spec: {schedulerName: default-schedular}}"}};
  world.fields = {{pod, "spec nodeName", {"n1", ""}},
                  {pod, "status conditions", {"[{type: PodScheduled, status: 'False'}]", "[{type: PodScheduled, status: 'True'}]", ""}},
                  {pod, "status phase", {"Pending", "Failed"}},
                  {pod, "spec schedulerName", {"mine", "''", "\"a\\\\b\""}},
                  {pod, "metadata finalizers", {"[x]", ""}}};
  world.live();
}

}  // namespace
}  // namespace berth::controllers::lives
