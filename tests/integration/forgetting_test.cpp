// What is deleted is forgotten, by everybody: round after round of objects under new names leaves a server, controllers, scheduler and
// nodes that hold what they held before. A map that keeps an entry for each name that ever was is what this finds, in whatever component.
#include <map>

#include "tests/integration/world.h"
#include "tests/support/usage.h"

namespace berth::integration {
namespace {

constexpr const char* kPodSpec = R"({containers: [{name: c, image: i, resources: {requests: {cpu: 10m}}}]})";

struct Story {
  const char* name;
  std::string yaml;  ///< NAME stands for a name that never was, SPEC for a pod's spec. Several documents: deleted in the opposite order.
};

const std::vector<Story>& stories() {
  static const std::vector<Story> all = {
      {"ConfigMap", "{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME}, data: {a: b}}"},
      {"Secret", "{apiVersion: v1, kind: Secret, metadata: {name: NAME}, data: {a: YQ==}}"},
      {"Pod", "{apiVersion: v1, kind: Pod, metadata: {name: NAME, labels: {app: NAME}}, spec: SPEC}"},
      {"PodThatFitsNowhere",
       "{apiVersion: v1, kind: Pod, metadata: {name: NAME}, spec: {nodeSelector: {a: NAME}, containers: [{name: c, image: i}]}}"},
      {"PodOfAnotherScheduler",
       "{apiVersion: v1, kind: Pod, metadata: {name: NAME}, spec: {schedulerName: NAME, containers: [{name: c, image: i}]}}"},
      {"Deployment",
       "{apiVersion: apps/v1, kind: Deployment, metadata: {name: NAME}, spec: {replicas: 1, selector: {matchLabels: {app: NAME}}, "
       "template: "
       "{metadata: {labels: {app: NAME}}, spec: SPEC}}}"},
      {"DeploymentThatFails",
       "{apiVersion: apps/v1, kind: Deployment, metadata: {name: NAME}, spec: {replicas: 1, selector: {matchLabels: {app: NAME}}, "
       "template: "
       "{metadata: {labels: {app: NAME}}, spec: {serviceAccountName: NAME, priorityClassName: NAME, containers: [{name: c, image: i}]}}}}"},
      {"StatefulSet",
       "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: NAME}, spec: {serviceName: NAME, replicas: 1, selector: {matchLabels: "
       "{app: "
       "NAME}}, template: {metadata: {labels: {app: NAME}}, spec: SPEC}}}"},
      {"DaemonSet",
       "{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: NAME}, spec: {selector: {matchLabels: {app: NAME}}, template: {metadata: "
       "{labels: {app: NAME}, annotations: {sim.berth.dev/exit-code: '1', sim.berth.dev/run-for: 1s}}, spec: SPEC}}}"},
      {"Job",
       "{apiVersion: batch/v1, kind: Job, metadata: {name: NAME}, spec: {backoffLimit: 2, template: {metadata: {annotations: "
       "{sim.berth.dev/exit-code: '1', sim.berth.dev/run-for: 1s}}, spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}"},
      {"CronJob",
       "{apiVersion: batch/v1, kind: CronJob, metadata: {name: NAME}, spec: {schedule: '* * * * *', timeZone: Europe/Berlin, jobTemplate: "
       "{spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}}}"},
      {"Service",
       "{apiVersion: v1, kind: Service, metadata: {name: NAME}, spec: {selector: {app: NAME}, ports: [{port: 80}]}}\n---\n"
       "{apiVersion: v1, kind: Pod, metadata: {name: NAME, labels: {app: NAME}}, spec: SPEC}"},
      {"PodDisruptionBudget",
       "{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: NAME}, spec: {minAvailable: 1, selector: {matchLabels: {app: "
       "NAME}}}}\n---\n{apiVersion: v1, kind: Pod, metadata: {name: NAME, labels: {app: NAME}}, spec: SPEC}"},
      {"HorizontalPodAutoscaler",
       "{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: NAME}, spec: {maxReplicas: 2, scaleTargetRef: "
       "{apiVersion: "
       "apps/v1, kind: Deployment, name: NAME}, metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, "
       "averageUtilization: 50}}}]}}"},
      {"PersistentVolumeClaim",
       "{apiVersion: v1, kind: PersistentVolume, metadata: {name: NAME}, spec: {storageClassName: NAME, capacity: {storage: 1Gi}, "
       "accessModes: "
       "[ReadWriteOnce], hostPath: {path: /tmp}}}\n---\n"
       "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: NAME}, spec: {storageClassName: NAME, accessModes: [ReadWriteOnce], "
       "resources: {requests: {storage: 1Gi}}}}\n---\n"
       "{apiVersion: v1, kind: Pod, metadata: {name: NAME}, spec: {volumes: [{name: v, persistentVolumeClaim: {claimName: NAME}}], "
       "containers: "
       "[{name: c, image: i}]}}"},
      {"ResourceQuota", "{apiVersion: v1, kind: ResourceQuota, metadata: {name: NAME}, spec: {hard: {pods: '10000'}}}"},
      {"LimitRange", "{apiVersion: v1, kind: LimitRange, metadata: {name: NAME}, spec: {limits: [{type: Container, max: {cpu: '4'}}]}}"},
      {"Namespace", "{apiVersion: v1, kind: Namespace, metadata: {name: NAME}}"},
      {"ServiceAccount", "{apiVersion: v1, kind: ServiceAccount, metadata: {name: NAME}}"},
      {"Node",
       "{apiVersion: v1, kind: Node, metadata: {name: NAME, labels: {topology.kubernetes.io/zone: NAME}}, spec: {taints: [{key: NAME, "
       "effect: "
       "NoExecute}]}}"},
      {"PriorityClass", "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: NAME}, value: 7}"},
      {"StorageClass", "{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: NAME}, provisioner: example.com/NAME}"},
      {"Role",
       "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: NAME}, rules: [{apiGroups: [''], resources: [pods], "
       "resourceNames: [NAME], verbs: [get]}]}\n---\n"
       "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: NAME}, roleRef: {apiGroup: "
       "rbac.authorization.k8s.io, "
       "kind: Role, name: NAME}, subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: NAME}]}"},
      {"CustomResourceDefinition",
       "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: NAMEs.example.com}, spec: {group: "
       "example.com, "
       "scope: Namespaced, names: {plural: NAMEs, singular: NAME, kind: KNAME}, versions: [{name: v1, served: true, storage: true, schema: "
       "{openAPIV3Schema: {type: object}}}]}}"},
      {"ValidatingAdmissionPolicy",
       "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {name: NAME}, spec: {matchConstraints: "
       "{resourceRules: [{apiGroups: [example.com], apiVersions: ['*'], resources: ['*'], operations: ['*']}]}, validations: [{expression: "
       "'true'}]}}\n---\n"
       "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, metadata: {name: NAME}, spec: {policyName: "
       "NAME, "
       "validationActions: [Deny]}}"},
      {"FlowSchema",
       "{apiVersion: flowcontrol.apiserver.k8s.io/v1, kind: PriorityLevelConfiguration, metadata: {name: NAME}, spec: {type: Limited, "
       "limited: "
       "{limitResponse: {type: Reject}}}}\n---\n"
       "{apiVersion: flowcontrol.apiserver.k8s.io/v1, kind: FlowSchema, metadata: {name: NAME}, spec: {priorityLevelConfiguration: {name: "
       "NAME}, rules: [{subjects: [{kind: User, user: {name: NAME}}], resourceRules: [{verbs: ['*'], apiGroups: ['*'], resources: ['*'], "
       "namespaces: ['*']}]}]}}"},
      {"Lease", "{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: NAME}, spec: {holderIdentity: NAME}}"},
      {"ResourceClaim",
       "{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: NAME}, spec: {devices: {requests: [{name: r, exactly: "
       "{deviceClassName: NAME}}]}}}\n---\n"
       "{apiVersion: v1, kind: Pod, metadata: {name: NAME}, spec: {resourceClaims: [{name: r, resourceClaimName: NAME}], containers: "
       "[{name: c, "
       "image: i, resources: {claims: [{name: r}]}}]}}"},
      {"Event",
       "{apiVersion: v1, kind: Event, metadata: {name: NAME}, involvedObject: {kind: Pod, namespace: default, name: NAME}, reason: R, "
       "message: "
       "NAME, type: Normal}"}};
  return all;
}

std::string replaced(std::string text, std::string_view what, std::string_view with) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size()) text.replace(at, what.size(), with);
  return text;
}

class Rounds {
 public:
  explicit Rounds(World& world) : world_(world) {}

  void create(const Story& story, const std::string& name) {
    auto documents = json::parse_yaml_stream(replaced(replaced(story.yaml, "SPEC", kPodSpec), "NAME", name));
    ASSERT_TRUE(documents) << story.name << ": " << documents.error().message;
    for (const json::Value& document : *documents) {
      const std::string_view version = json::get_string(document, {"apiVersion"});
      const auto slash = version.find('/');
      const bool is_core = slash == std::string_view::npos;
      const model::KindInfo* kind = model::find_kind(is_core ? "" : version.substr(0, slash), is_core ? version : version.substr(slash + 1),
                                                     json::get_string(document, {"kind"}));
      ASSERT_NE(kind, nullptr) << story.name;
      const std::string ns = kind->namespaced ? "default" : "";
      const auto created = world_.client().create_and_wait(kind->gvr(), ns, document);
      ASSERT_TRUE(created) << story.name << ": " << created.error().message;
      made_.push_back({kind, ns, std::string(json::get_string(document, {"metadata", "name"}))});
    }
  }
  /// The last first.
  void delete_all() {
    for (auto one = made_.rbegin(); one != made_.rend(); ++one) {
      client::Call call{.verb = "delete", .gvr = one->kind->gvr(), .ns = one->ns, .name = one->name};
      call.body = R"({"propagationPolicy":"Background"})";
      const auto gone = world_.client().call_and_wait(std::move(call));
      EXPECT_TRUE(gone) << one->name << ": " << gone.error().message;
    }
    made_.clear();
  }

 private:
  struct Made {
    const model::KindInfo* kind;
    std::string ns, name;
  };
  World& world_;
  std::vector<Made> made_;
};

class Forgetting : public ::testing::TestWithParam<std::size_t> {};

TEST_P(Forgetting, WhatIsDeletedLeavesNothing) {
  const Story& story = stories()[GetParam()];
  constexpr int kNames = 100, kFirst = 2, kLast = 5;  // Rounds: caches fill in the first, what grows with every name shows in the others.
  World world;
  Rounds rounds(world);
  std::size_t before = 0, after = 0;
  for (int round = 0; round <= kLast; ++round) {
    for (int i = 0; i < kNames; ++i) rounds.create(story, fmt::format("n{}x{}", round, i));
    world.run(std::chrono::minutes(2));
    rounds.delete_all();
    // Events last an hour.
    world.run(std::chrono::minutes(70));
    (round == kFirst ? before : after) = test::usage_now().heap_bytes;
  }
  const auto grown = static_cast<std::int64_t>(after) - static_cast<std::int64_t>(before);
  const auto per_name = grown / ((kLast - kFirst) * kNames);
  RecordProperty("bytes_per_name", fmt::format("{}", per_name));
  if (std::getenv("BERTH_FIGURES") != nullptr)
    std::printf("%-28s %6lld bytes a name, %zu KiB in all\n", story.name, static_cast<long long>(per_name), after / 1024);
  EXPECT_LT(per_name, 60) << story.name;
}

INSTANTIATE_TEST_SUITE_P(Of, Forgetting, ::testing::Range(std::size_t{0}, stories().size()),
                         [](const auto& info) { return std::string(stories()[info.param].name); });

}  // namespace
}  // namespace berth::integration
