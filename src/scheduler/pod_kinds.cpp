#include "scheduler/pod_kinds.h"

namespace berth::scheduler {

PodKindPtr PodKinds::of(const placement::Framework& framework, const placement::PodInfo& pod, const std::string& nominated) {
  // Without onlookers: it must hold whatever pods come and go while this one waits.
  std::weak_ptr<const PodKind>& known = kinds_[{pod.view().scheduler_name, framework.sign(pod), nominated, pod.view().preemption_never}];
  PodKindPtr kind = known.lock();
  if (kind != nullptr) return kind;
  kind = std::make_shared<const PodKind>(++last_id_);
  known = kind;
  if (kinds_.size() >= sweep_at_) {
    // As often as the table has doubled.
    std::erase_if(kinds_, [](const auto& entry) { return entry.second.expired(); });
    sweep_at_ = std::max<std::size_t>(1024, kinds_.size() * 2);
  }
  return kind;
}

}  // namespace berth::scheduler
