// DefaultPreemption: room for a pod that fits nowhere, by evicting pods of lower priority (pkg/scheduler/framework/plugins/
// defaultpreemption). What it decides stands in placement/preemption.h.
#include <fmt/format.h>

#include "placement/plugins/factories.h"
#include "placement/preemption.h"

namespace berth::placement {
namespace {

class DefaultPreemption final : public PluginOf<DefaultPreemption> {
 public:
  explicit DefaultPreemption(Era era) : era_(era) {}
  std::string_view name() const override { return "DefaultPreemption"; }
  void sign(Signer& signer, const PodInfo& pod) const override { signer.add(static_cast<std::int64_t>(pod.view().preemption_never)); }
  /// The release's holds back pods whose victims are being asked to go; here the scheduler knows of them itself.
  Status pre_enqueue(const model::PodView&) const override { return Status::success(); }
  Status post_filter(const PostFilterCall& call, PostFilterResult& out) const override {
    Status status = call.quick ? call.quick(out) : preempt(call, out);
    if (!status.is_success() && !status.is_error()) status.reasons = {post_filter_refusal(status.message())};
    return status;
  }
  /// 1.20 says nothing of preemption.
  [[nodiscard]] std::string post_filter_refusal(std::string_view why) const override {
    return era_ == Era::k120 ? std::string() : fmt::format("preemption: {}", why);
  }

 private:
  Era era_;
};

}  // namespace

Result<PluginPtr> make_default_preemption(const Profile& profile) { return std::make_unique<DefaultPreemption>(profile.era); }

}  // namespace berth::placement
