#include "pools/crds.h"

#include <fmt/format.h>

#include "base/check.h"
#include "base/json.h"

// Field names, patterns and bounds are Karpenter's (pkg/apis/v1, pkg/apis/crds); the sentences are ours.
namespace berth::pools {
namespace {

constexpr std::string_view kTaints = R"(
                type: array
                items:
                  type: object
                  required: [key, effect]
                  properties:
                    key: {type: string, minLength: 1, pattern: '^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*(\/))?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$'}
                    value: {type: string, maxLength: 63}
                    effect: {type: string, enum: [NoSchedule, PreferNoSchedule, NoExecute]}
                    timeAdded: {type: string, format: date-time}
)";

constexpr std::string_view kRequirements = R"(
                type: array
                maxItems: 100
                items:
                  type: object
                  required: [key, operator]
                  properties:
                    key:
                      type: string
                      maxLength: 316
                      description: "A label of nodes: node.kubernetes.io/instance-type, topology.kubernetes.io/zone, karpenter.sh/capacity-type, kubernetes.io/arch, or one of your own."
                      pattern: '^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*(\/))?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$'
                      x-kubernetes-validations:
                      - {rule: 'self != "kubernetes.io/hostname"', message: the label kubernetes.io/hostname is the node's own}
                    operator: {type: string, enum: [In, NotIn, Exists, DoesNotExist, Gt, Lt, Gte, Lte]}
                    values: {type: array, x-kubernetes-list-type: atomic, maxItems: 1000, items: {type: string, maxLength: 63}}
                    minValues: {type: integer, minimum: 1, maximum: 50, description: "At least so many values must be left to choose from."}
                x-kubernetes-validations:
                - {rule: 'self.all(x, x.operator != "In" || (has(x.values) && x.values.size() > 0))', message: operator In needs values}
                - {rule: 'self.all(x, !(x.operator in ["Gt", "Lt", "Gte", "Lte"]) || (has(x.values) && x.values.size() == 1 && x.values[0].matches("^[0-9]{1,15}$")))', message: 'operators Gt, Lt, Gte and Lte need one value, a whole number that is not negative'}
                - {rule: 'self.all(x, !(x.operator == "In" && has(x.minValues)) || (has(x.values) && x.values.size() >= x.minValues))', message: fewer values than minValues}
)";

constexpr std::string_view kNodeClassRef = R"(
                type: object
                required: [group, kind, name]
                properties:
                  group: {type: string, minLength: 1, pattern: '^[^/]*$', description: "Without the version: sim.berth.dev, berth.dev"}
                  kind: {type: string, minLength: 1, description: "SimulatedNodeClass, or MachineNodeClass for machines of MachineSets and of an external provider"}
                  name: {type: string, minLength: 1}
)";

constexpr std::string_view kConditions = R"(
              conditions:
                type: array
                items:
                  type: object
                  required: [type, status]
                  properties:
                    type: {type: string}
                    status: {type: string, enum: ["True", "False", Unknown]}
                    reason: {type: string}
                    message: {type: string}
                    lastTransitionTime: {type: string, format: date-time}
                    observedGeneration: {type: integer, format: int64}
)";

constexpr std::string_view kAmounts =
    R"({type: object, additionalProperties: {x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}], pattern: '^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$'}})";
constexpr std::string_view kDurationOrNever = R"('^(([0-9]+(s|m|h))+|Never)$')";

constexpr std::string_view kDisruption = R"(              disruption:
                type: object
                required: [consolidateAfter]
                default: {consolidateAfter: 0s}
                properties:
                  consolidationPolicy: {type: string, enum: [WhenEmpty, WhenEmptyOrUnderutilized], default: WhenEmptyOrUnderutilized}
                  consolidateAfter: {type: string, pattern: '^(([0-9]+(s|m|h))+|Never)$', description: "So long no pod came or went."}
                  budgets:
                    type: array
                    maxItems: 50
                    default: [{nodes: 10%}]
                    items:
                      type: object
                      required: [nodes]
                      properties:
                        nodes: {type: string, default: 10%, pattern: '^((100|[0-9]{1,2})%|[0-9]+)$'}
                        schedule: {type: string, pattern: '^(@(annually|yearly|monthly|weekly|daily|midnight|hourly))|((.+)\s(.+)\s(.+)\s(.+)\s(.+))$'}
                        duration: {type: string, pattern: '^((([0-9]+(h|m))|([0-9]+h[0-9]+m))(0s)?)$'}
                        reasons: {type: array, maxItems: 50, items: {type: string, enum: [Underutilized, Empty, Drifted]}}
                    x-kubernetes-validations:
                    - {rule: 'self.all(x, has(x.schedule) == has(x.duration))', message: schedule and duration go together}
)";

/// Deeper by so many columns.
std::string deeper(std::string_view block, std::size_t columns) {
  std::string out;
  for (const char c : block) {
    out += c;
    if (c == '\n') out.append(columns, ' ');
  }
  return out;
}

std::string node_pools() {
  constexpr std::size_t kDeeper = 10;  // Than in a claim.
  return fmt::format(R"(apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: nodepools.karpenter.sh}}
spec:
  group: karpenter.sh
  scope: Cluster
  names: {{kind: NodePool, listKind: NodePoolList, plural: nodepools, singular: nodepool, categories: [karpenter]}}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {{status: {{}}}}
    additionalPrinterColumns:
    - {{name: NodeClass, type: string, jsonPath: .spec.template.spec.nodeClassRef.name}}
    - {{name: Nodes, type: string, jsonPath: .status.nodes}}
    - {{name: Ready, type: string, jsonPath: '.status.conditions[?(@.type=="Ready")].status'}}
    - {{name: Age, type: date, jsonPath: .metadata.creationTimestamp}}
    - {{name: Weight, type: integer, priority: 1, jsonPath: .spec.weight}}
    - {{name: CPU, type: string, priority: 1, jsonPath: .status.resources.cpu}}
    - {{name: Memory, type: string, priority: 1, jsonPath: .status.resources.memory}}
    schema:
      openAPIV3Schema:
        type: object
        required: [spec]
        properties:
          spec:
            type: object
            required: [template]
            properties:
              weight: {{type: integer, format: int32, minimum: 1, maximum: 100, description: "Pools of higher weight are asked first."}}
              limits: {amounts}
{disruption}              template:
                type: object
                required: [spec]
                properties:
                  metadata:
                    type: object
                    properties:
                      annotations: {{type: object, additionalProperties: {{type: string}}}}
                      labels:
                        type: object
                        maxProperties: 100
                        additionalProperties: {{type: string, maxLength: 63, pattern: '^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$'}}
                        x-kubernetes-validations:
                        - {{rule: '!("karpenter.sh/nodepool" in self) && !("kubernetes.io/hostname" in self)', message: karpenter.sh/nodepool and kubernetes.io/hostname are given to nodes by themselves}}
                  spec:
                    type: object
                    required: [nodeClassRef, requirements]
                    properties:
                      nodeClassRef: {class_ref}
                      requirements: {requirements}
                      taints: {taints}
                      startupTaints: {taints}
                      expireAfter: {{type: string, default: 720h, pattern: {duration}}}
                      terminationGracePeriod: {{type: string, pattern: '^([0-9]+(s|m|h))+$'}}
          status:
            type: object
            properties:
              nodes: {{type: integer, format: int64}}
              resources: {amounts}
              nodeClassObservedGeneration: {{type: integer, format: int64}}{conditions}
)",
                     fmt::arg("amounts", kAmounts), fmt::arg("duration", kDurationOrNever),
                     fmt::arg("class_ref", deeper(kNodeClassRef, kDeeper)), fmt::arg("requirements", deeper(kRequirements, kDeeper)),
                     fmt::arg("taints", deeper(kTaints, kDeeper)), fmt::arg("conditions", kConditions),
                     fmt::arg("disruption", kDisruption));
}

std::string node_claims() {
  return fmt::format(R"(apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: nodeclaims.karpenter.sh}}
spec:
  group: karpenter.sh
  scope: Cluster
  names: {{kind: NodeClaim, listKind: NodeClaimList, plural: nodeclaims, singular: nodeclaim, categories: [karpenter]}}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {{status: {{}}}}
    additionalPrinterColumns:
    - {{name: Type, type: string, jsonPath: '.metadata.labels.node\.kubernetes\.io/instance-type'}}
    - {{name: Capacity, type: string, jsonPath: '.metadata.labels.karpenter\.sh/capacity-type'}}
    - {{name: Zone, type: string, jsonPath: '.metadata.labels.topology\.kubernetes\.io/zone'}}
    - {{name: Node, type: string, jsonPath: .status.nodeName}}
    - {{name: Ready, type: string, jsonPath: '.status.conditions[?(@.type=="Ready")].status'}}
    - {{name: Age, type: date, jsonPath: .metadata.creationTimestamp}}
    - {{name: ID, type: string, priority: 1, jsonPath: .status.providerID}}
    - {{name: NodePool, type: string, priority: 1, jsonPath: '.metadata.labels.karpenter\.sh/nodepool'}}
    - {{name: NodeClass, type: string, priority: 1, jsonPath: .spec.nodeClassRef.name}}
    - {{name: Drifted, type: string, priority: 1, jsonPath: '.status.conditions[?(@.type=="Drifted")].status'}}
    schema:
      openAPIV3Schema:
        type: object
        required: [spec]
        properties:
          spec:
            type: object
            required: [nodeClassRef, requirements]
            properties:
              nodeClassRef: {class_ref}
              requirements: {requirements}
              taints: {taints}
              startupTaints: {taints}
              resources: {{type: object, properties: {{requests: {amounts}}}}}
              expireAfter: {{type: string, default: 720h, pattern: {duration}}}
              terminationGracePeriod: {{type: string, pattern: '^([0-9]+(s|m|h))+$'}}
            x-kubernetes-validations:
            - {{rule: self == oldSelf, message: a claim's spec does not change}}
          status:
            type: object
            properties:
              nodeName: {{type: string}}
              providerID: {{type: string}}
              imageID: {{type: string}}
              capacity: {amounts}
              allocatable: {amounts}
              lastPodEventTime: {{type: string, format: date-time}}{conditions}
)",
                     fmt::arg("amounts", kAmounts), fmt::arg("duration", kDurationOrNever), fmt::arg("class_ref", kNodeClassRef),
                     fmt::arg("requirements", kRequirements), fmt::arg("taints", kTaints), fmt::arg("conditions", kConditions));
}

/// Of both node classes.
constexpr std::string_view kRepairPolicies = R"(              repairPolicies:
                type: array
                description: "Nodes with such a condition for so long are replaced; Ready False or Unknown for 30m where nothing is said."
                items:
                  type: object
                  required: [conditionType, conditionStatus, tolerationDuration]
                  properties:
                    conditionType: {type: string, minLength: 1}
                    conditionStatus: {type: string, enum: ["True", "False", "Unknown"]}
                    tolerationDuration: {type: string, pattern: '^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$'}
)";

const std::string kNodeClasses = std::string(R"(apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: simulatednodeclasses.sim.berth.dev}
spec:
  group: sim.berth.dev
  scope: Cluster
  names: {kind: SimulatedNodeClass, listKind: SimulatedNodeClassList, plural: simulatednodeclasses, singular: simulatednodeclass, shortNames: [simclass]}
  versions:
  - name: v1alpha1
    served: true
    storage: true
    subresources: {status: {}}
    additionalPrinterColumns:
    - {name: Boot, type: string, jsonPath: .spec.bootDelay}
    - {name: Age, type: date, jsonPath: .metadata.creationTimestamp}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              bootDelay: {type: string, pattern: '^(([0-9]+(\.[0-9]+)?(ms|s|m|h))+|never)$', description: "From the launch of a claim until its node is there; never: it does not come."}
              registrationTimeout: {type: string, pattern: '^([0-9]+(ms|s|m|h))+$', description: "A claim whose node has not come by then is given up; 15m where it is not said."}
              fleet: {type: string, description: "Whose simulated nodes they are (berth up, berth nodes); default where it is not said."}
              spotLasts: {type: string, pattern: '^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$', description: "Spot machines are interrupted after about so long (between half of it and one and a half)."}
              shortfall: {type: object, additionalProperties: {x-kubernetes-int-or-string: true}, description: "By resource: what nodes have less than their instance type says."}
)") + std::string(kRepairPolicies) +
                                 R"(              insufficientCapacity:
                type: array
                description: "What cannot be had: to see what happens then."
                items:
                  type: object
                  properties:
                    instanceType: {type: string}
                    zone: {type: string}
                    capacityType: {type: string}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
)";

const std::string kMachineClasses = std::string(R"(apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: machinenodeclasses.berth.dev}
spec:
  group: berth.dev
  scope: Cluster
  names: {kind: MachineNodeClass, listKind: MachineNodeClassList, plural: machinenodeclasses, singular: machinenodeclass, shortNames: [machineclass]}
  versions:
  - name: v1alpha1
    served: true
    storage: true
    subresources: {status: {}}
    additionalPrinterColumns:
    - {name: Age, type: date, jsonPath: .metadata.creationTimestamp}
    schema:
      openAPIV3Schema:
        type: object
        description: "Nodes are machines of groups: of MachineSets, or of the autoscaler's external provider, whose templates have the label berth.dev/machine-node-class with this name."
        properties:
          spec:
            type: object
            properties:
              registrationTimeout: {type: string, pattern: '^([0-9]+(ms|s|m|h))+$', description: "A claim whose node has not come by then is given up, with its machine; 15m where it is not said."}
)") + std::string(kRepairPolicies) + R"(          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
)";

}  // namespace

const std::vector<OwnKind>& own_kinds() {
  static const std::vector<OwnKind> all = {{"NodePool", {"karpenter.sh", "v1", "nodepools"}},
                                           {"NodeClaim", {"karpenter.sh", "v1", "nodeclaims"}},
                                           {"SimulatedNodeClass", {"sim.berth.dev", "v1alpha1", "simulatednodeclasses"}},
                                           {"MachineNodeClass", {"berth.dev", "v1alpha1", "machinenodeclasses"}}};
  return all;
}

const std::vector<json::Value>& definitions() {
  static const std::vector<json::Value> all = [] {
    std::vector<json::Value> out;
    for (const std::string& text : {node_pools(), node_claims(), kNodeClasses, kMachineClasses}) {
      auto read = json::parse_yaml(text);
      BERTH_CHECK(read.has_value(), "a definition of pools is no YAML: {}", read.error().message);
      out.push_back(std::move(*read));
    }
    return out;
  }();
  return all;
}

}  // namespace berth::pools
