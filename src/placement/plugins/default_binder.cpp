// DefaultBinder: the pod's own binding subresource (pkg/scheduler/framework/plugins/defaultbinder).
#include <fmt/format.h>

#include "placement/plugins/factories.h"

namespace berth::placement {
namespace {

class DefaultBinder final : public PluginOf<DefaultBinder> {
 public:
  std::string_view name() const override { return "DefaultBinder"; }

  void sign(Signer& /*signer*/, const PodInfo& /*pod*/) const override {}

  std::optional<BindCall> bind(const CycleState&, const PodInfo& pod, std::string_view node_name) const override {
    const model::ObjectMeta& meta = pod.view().meta;
    // Names and uids need no escaping.
    return BindCall{
        "",
        "v1",
        "pods",
        meta.ns,
        meta.name,
        "binding",
        fmt::format(
            R"({{"apiVersion":"v1","kind":"Binding","metadata":{{"name":"{}","namespace":"{}","uid":"{}"}},"target":{{"apiVersion":"v1","kind":"Node","name":"{}"}}}})",
            meta.name, meta.ns, meta.uid, node_name)};
  }
};

}  // namespace

Result<PluginPtr> make_default_binder(const Profile&) { return std::make_unique<DefaultBinder>(); }

}  // namespace berth::placement
