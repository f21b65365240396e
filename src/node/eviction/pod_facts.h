// What eviction, admission and the OOM killer need to know of a pod (kubelet types/pod_update.go, qos/policy.go, core/v1/helper/qos).
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "model/quantity.h"
#include "node/eviction/go_text.h"

namespace berth::node::eviction {

/// A quantity that prints as the kubelet prints it: as it was written where Go keeps the text ("+5Gi", "9E6", "1.500G"), until something is
/// added to it or taken away.
class Amount : public model::Quantity {
 public:
  Amount() = default;
  Amount(const model::Quantity& quantity) : model::Quantity(quantity) {}
  Amount(const WrittenQuantity& written) : model::Quantity(written.value), written_(written.text) {}

  [[nodiscard]] std::string to_string() const { return written_.empty() ? model::Quantity::to_string() : written_; }
  Amount& operator+=(const model::Quantity& other) {
    written_.clear();
    model::Quantity::operator+=(other);
    return *this;
  }
  Amount& operator-=(const model::Quantity& other) {
    written_.clear();
    model::Quantity::operator-=(other);
    return *this;
  }

 private:
  std::string written_;
};

using ResourceList = std::map<std::string, Amount, std::less<>>;
/// Quantities that cannot be read are left out.
[[nodiscard]] ResourceList read_resources(const json::Object& list);

enum class QosClass { kGuaranteed, kBurstable, kBestEffort };
[[nodiscard]] std::string_view to_string(QosClass qos);

struct ContainerFacts {
  std::string name;
  bool is_init = false, is_sidecar = false;
  ResourceList requests, limits;
};

struct VolumeFacts {
  std::string name;
  bool is_empty_dir = false;
  bool is_local = false;  ///< Its bytes count as the pod's on the node's disk: emptyDir on disk, configMap, gitRepo, hostPath.
  std::optional<Amount> size_limit;
};

struct PodFacts {
  std::string ns, name, uid;
  std::int64_t generation = 0;
  std::int32_t priority = 0;
  QosClass qos = QosClass::kBestEffort;
  bool is_critical = false;       ///< Static, mirror, or priority of at least 2000000000: never evicted, always admitted.
  bool is_node_critical = false;  ///< Critical and of class system-node-critical.
  std::optional<std::int64_t> grace_period_seconds;
  std::vector<ContainerFacts> containers;  ///< Main containers first, then init containers.
  std::vector<VolumeFacts> volumes;
  bool has_pod_level_resources = false;  ///< A request or limit of the pod itself for cpu, memory or huge pages.
  bool has_resources_field = false;      ///< spec.resources is there, were it empty: the QoS class then comes from it alone.
  ResourceList pod_requests, pod_limits, overhead;
  bool tolerates_memory_pressure = false;

  [[nodiscard]] std::string key() const { return ns + "/" + name; }
};

[[nodiscard]] PodFacts read_pod_facts(const json::Value& pod);
/// The request of the whole pod for one resource, as the eviction manager counts it.
[[nodiscard]] model::Quantity pod_request(const PodFacts& pod, std::string_view resource);
/// The limit of the whole pod (sum of containers, init containers as they overlap, overhead), or nullopt when nothing sets one.
[[nodiscard]] std::optional<Amount> pod_limit(const PodFacts& pod, std::string_view resource);
/// Which scores Guaranteed and Burstable pods get. The document (SPEC F10, 000 §21.3) gives Guaranteed -998 and Burstable at least 2;
/// Kubernetes 1.36 gives -997 and at least 3.
enum class OomScores { kDocument, kKubernetes136 };
/// oom_score_adj of one container on a machine with this much memory. Needs memory_capacity_bytes > 0.
/// May pass 1000 for pods that the API would refuse (less asked for by the pod than by its containers).
[[nodiscard]] std::int64_t oom_score_adjust(const PodFacts& pod, const ContainerFacts& container, std::int64_t memory_capacity_bytes,
                                            OomScores scores = OomScores::kDocument);

}  // namespace berth::node::eviction
