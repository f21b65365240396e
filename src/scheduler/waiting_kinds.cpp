#include "scheduler/waiting_kinds.h"

namespace berth::scheduler {

PodKindPtr WaitingKinds::of(const placement::Framework& framework, const placement::PodInfo& pod, const std::string& nominated) {
  // Without onlookers: it must hold whatever pods come and go while this one waits.
  const auto at = kinds_->try_emplace({pod.view().scheduler_name, framework.sign(pod), nominated, pod.view().preemption_never}).first;
  if (PodKindPtr known = at->second.lock()) return known;
  PodKindPtr made(new PodKind(++last_id_), [kinds = kinds_, at](const PodKind* gone) {
    delete gone;
    kinds->erase(at);
  });
  at->second = made;
  return made;
}

}  // namespace berth::scheduler
