// PodTopologyLabels: a pod shows the region and the zone of its node as labels (plugin/pkg/admission/podtopologylabels, on since 1.35). A
// pod that is bound gets them from its Binding, one made for a node at its creation.
#include "apiserver/admission/plugins.h"

namespace berth::apiserver {
namespace {

constexpr std::array<std::string_view, 2> kTopologyLabels = {"topology.kubernetes.io/region", "topology.kubernetes.io/zone"};

class PodTopologyLabels final : public AdmissionPlugin {
 public:
  explicit PodTopologyLabels(const AdmissionContext& context) : cache_(context.cache) {}
  [[nodiscard]] std::string_view name() const override { return "PodTopologyLabels"; }

  bool add_circumstances(const AdmissionRequest& request, Circumstances&) override {
    return request.operation != Operation::kCreate || !request.is("", "pods") ||
           json::get_string(request.object, {"spec", "nodeName"}).empty();
  }

  Admitted mutate(AdmissionRequest& request) override {
    if (request.operation != Operation::kCreate || request.kind->group != "" || request.kind->plural != "pods") return {};
    std::string_view node;
    if (request.subresource.empty())
      node = json::get_string(request.object, {"spec", "nodeName"});
    else if (request.subresource == "binding" && json::get_string(request.object, {"target", "kind"}) == "Node")
      node = json::get_string(request.object, {"target", "name"});
    if (node.empty()) return {};
    // A node that is not there (yet) is no reason to refuse.
    const auto object = cache_.get(make_key("", "nodes", "", node));
    if (object == nullptr) return {};
    for (const std::string_view label : kTopologyLabels)
      if (const std::string* value = object->meta.labels().get(label))
        json::ensure_object(request.object, {"metadata", "labels"})[label] = *value;
    return {};
  }

 private:
  ObjectCache& cache_;
};

}  // namespace

PluginResult make_pod_topology_labels(const AdmissionContext& context) { return std::make_unique<PodTopologyLabels>(context); }

}  // namespace berth::apiserver
