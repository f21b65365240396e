// Permit: a pod that has its place may have to wait until plugins allow it to be bound; it keeps the place meanwhile.
//
//   reserved --> Permit --> bind (binding.cpp)
//                  |  ^ every plugin that made it wait allows it
//                  |  |
//                  +--> waits --> a plugin rejects it, its time is over, it is deleted or preempted: the place is given back, and the pod
//                                 waits as unschedulable for what could change the plugin's mind
#include <fmt/format.h>

#include "scheduler/scheduler_impl.h"

namespace berth::scheduler {

using client::ObjectRef;
using placement::Status;

class Scheduler::Impl::PermitRoom final : public placement::WaitingPods {
 public:
  explicit PermitRoom(Impl& scheduler) : scheduler_(scheduler) {}
  void for_each(const std::function<void(const placement::PodInfo& pod, std::string_view node_name)>& each) const override {
    for (const auto& [uid, wait] : scheduler_.waiting_on_permit) each(*wait.binding->info, wait.binding->node_name);
  }
  void allow(const std::string& uid, std::string_view plugin) override {
    scheduler_.loop.post([weak = scheduler_.weak_from_this(), uid, plugin = std::string(plugin)] {
      if (const auto self = weak.lock()) self->permit_allowed(uid, plugin);
    });
  }
  void reject(const std::string& uid, std::string_view plugin, const std::string& message) override {
    scheduler_.loop.post([weak = scheduler_.weak_from_this(), uid, plugin = std::string(plugin), message] {
      if (const auto self = weak.lock()) self->permit_rejected(uid, plugin, message);
    });
  }

 private:
  Impl& scheduler_;
};

void Scheduler::Impl::permit(const BindingPtr& binding) {
  if (!binding->framework->has_permit()) return announce(binding);
  const std::string uid = binding->entry.pod.uid;
  const TimePoint asked = loop.now();
  PermitRoom room(*this);
  std::vector<placement::Framework::PermitWait> waits;
  const Status status =
      binding->framework->run_permit(binding->reservation.state, *binding->info, *cluster.node(binding->node), room, waits);
  observe_point("Permit", binding->info->view().scheduler_name, seconds_since(asked),
                status.is_success()                     ? "Success"
                : status.code == placement::Code::kWait ? "Wait"
                : status.is_rejected()                  ? "Unschedulable"
                                                        : "Error");
  if (status.is_success()) return announce(binding);
  if (status.is_rejected()) return not_permitted(binding, status);
  if (status.is_error()) return binding_failed(binding, {}, status.message());
  PermitWait& wait = waiting_on_permit[uid];
  wait.binding = binding;
  pre_binding[uid] = binding;  // A preemptor calls it off.
  for (const auto& [plugin, timeout] : waits)
    wait.plugins[std::string(plugin)] =
        loop.schedule_after(timeout, [weak = weak_from_this(), uid, plugin = std::string(plugin), timeout = timeout] {
          if (const auto self = weak.lock())
            self->permit_rejected(
                uid, plugin, fmt::format("rejected due to timeout after waiting {} at plugin {}", format_go_duration(timeout), plugin));
        });
  give_slot(*binding);  // However long it waits, other pods go on.
}

std::optional<Scheduler::Impl::BindingPtr> Scheduler::Impl::leave_permit(const std::string& uid) {
  const auto found = waiting_on_permit.find(uid);
  if (found == waiting_on_permit.end()) return std::nullopt;
  for (const auto& [plugin, timer] : found->second.plugins) loop.cancel(timer);
  const BindingPtr binding = found->second.binding;
  waiting_on_permit.erase(found);
  pre_binding.erase(uid);
  return binding;
}

void Scheduler::Impl::permit_allowed(const std::string& uid, const std::string& plugin) {
  const auto found = waiting_on_permit.find(uid);
  if (found == waiting_on_permit.end()) return;
  const auto held_by = found->second.plugins.find(plugin);
  if (held_by == found->second.plugins.end()) return;
  loop.cancel(held_by->second);
  found->second.plugins.erase(held_by);
  if (!found->second.plugins.empty()) return;
  const BindingPtr binding = *leave_permit(uid);
  if (!is_leader) return binding_failed(binding, {}, "leadership was lost");
  take_slot(*binding);
  announce(binding);
}

void Scheduler::Impl::permit_rejected(const std::string& uid, const std::string& plugin, const std::string& message) {
  const auto binding = leave_permit(uid);
  if (!binding) return;
  const placement::Plugin* known = (*binding)->framework->find(plugin);
  Status status = Status::unschedulable(message);
  if (known != nullptr) status.plugin = known->name();
  not_permitted(*binding, status);
}

/// The pod's one node is as good as full, in the words of a node that did not fit (schedule_one.go, handleBindingCycleError).
void Scheduler::Impl::not_permitted(const BindingPtr& binding, const Status& status) {
  if (std::exchange(binding->is_over, true)) return;
  const std::string uid = binding->entry.pod.uid;
  give_slot(*binding);
  pre_binding.erase(uid);
  give_place_back(*binding);
  observe("unschedulable", binding->info, seconds_since(binding->started));
  const model::PodView& pod = binding->info->view();
  const ObjectRef now = informers.get(kPods).get(pod.meta.ns, pod.meta.name);
  post_turn();
  if (now == nullptr || now->uid() != uid || now->is_deleting()) return queue.done(uid);
  want_node(now, PodGlance(now->bytes()), nullptr);
  const auto found = waiting.find(uid);
  if (found == waiting.end()) return queue.done(uid);
  auto diagnosis = std::make_shared<placement::Diagnosis>();
  diagnosis->node_count = 1;
  diagnosis->reasons = {{status.message(), 1}};
  if (!status.plugin.empty()) diagnosis->plugins = {status.plugin};
  set_nominated(found->second, "");
  rejected({.entry = binding->entry,
            .info = found->second.info,
            .framework = binding->framework,
            .started = binding->started,
            .diagnosis = std::move(diagnosis)},
           "", "");
}

}  // namespace berth::scheduler
