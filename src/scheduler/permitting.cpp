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
    for (const std::string& uid : scheduler_.at_permit) {
      const Held& held = *scheduler_.pods.at(uid).held();
      each(*held.info, held.node_name);
    }
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

void Scheduler::Impl::permit(const HeldPtr& held) {
  if (!held->framework->has_permit()) return announce(held);
  const std::string uid = held->entry.pod.uid;
  const TimePoint asked = loop.now();
  PermitRoom room(*this);
  std::vector<placement::Framework::PermitWait> waits;
  const Status status = held->framework->run_permit(held->reservation.state, *held->info, *cluster.node(held->node), room, waits);
  observe_point("Permit", held->info->view().scheduler_name, seconds_since(asked),
                status.is_success()                     ? "Success"
                : status.code == placement::Code::kWait ? "Wait"
                : status.is_rejected()                  ? "Unschedulable"
                                                        : "Error");
  if (status.is_success()) return announce(held);
  if (status.is_rejected()) return not_permitted(held, status);
  if (status.is_error()) return binding_failed(held, {}, status.message());
  AtPermit& wait = *pods.at(uid).as<AtPermit>();
  at_permit.insert(uid);
  for (const auto& [plugin, timeout] : waits)
    wait.plugins[std::string(plugin)] =
        loop.schedule_after(timeout, [weak = weak_from_this(), uid, plugin = std::string(plugin), timeout = timeout] {
          if (const auto self = weak.lock())
            self->permit_rejected(
                uid, plugin, fmt::format("rejected due to timeout after waiting {} at plugin {}", format_go_duration(timeout), plugin));
        });
  give_slot(*held);  // However long it waits, other pods go on.
}

HeldPtr Scheduler::Impl::leave_permit(const std::string& uid) {
  if (at_permit.erase(uid) == 0) return nullptr;
  AtPermit& wait = *pods.at(uid).as<AtPermit>();
  for (const auto& [plugin, timer] : wait.plugins) loop.cancel(timer);
  wait.plugins.clear();
  return wait.held;
}

void Scheduler::Impl::permit_allowed(const std::string& uid, const std::string& plugin) {
  if (!at_permit.contains(uid)) return;
  auto& plugins = pods.at(uid).as<AtPermit>()->plugins;
  const auto held_by = plugins.find(plugin);
  if (held_by == plugins.end()) return;
  loop.cancel(held_by->second);
  plugins.erase(held_by);
  if (!plugins.empty()) return;
  const HeldPtr held = leave_permit(uid);
  if (!is_leader) return binding_failed(held, {}, "leadership was lost");
  take_slot(*held);
  announce(held);
}

void Scheduler::Impl::permit_rejected(const std::string& uid, const std::string& plugin, const std::string& message) {
  const HeldPtr held = leave_permit(uid);
  if (held == nullptr) return;
  const placement::Plugin* known = held->framework->find(plugin);
  Status status = Status::unschedulable(message);
  if (known != nullptr) status.plugin = known->name();
  not_permitted(held, status);
}

/// The pod's one node is as good as full, in the words of a node that did not fit (schedule_one.go, handleBindingCycleError).
void Scheduler::Impl::not_permitted(const HeldPtr& held, const Status& status) {
  if (holder(held) == nullptr) return;
  const std::string uid = held->entry.pod.uid;
  give_slot(*held);
  give_place_back(held);
  observe("unschedulable", held->info, seconds_since(held->started));
  const model::PodView& pod = held->info->view();
  const ObjectRef now = informers.get(kPods).get(pod.meta.ns, pod.meta.name);
  post_turn();
  if (now == nullptr || now->uid() != uid || now->is_deleting()) return queue.done(uid);
  want_node(now, PodGlance(now->bytes()), nullptr);
  Tracked* again = wanting(uid);
  if (again == nullptr) return queue.done(uid);
  auto diagnosis = std::make_shared<placement::Diagnosis>();
  diagnosis->node_count = 1;
  diagnosis->reasons = {{status.message(), 1}};
  if (!status.plugin.empty()) diagnosis->plugins = {status.plugin};
  set_nominated(*again, "");
  rejected({.entry = held->entry,
            .info = again->info,
            .framework = held->framework,
            .started = held->started,
            .diagnosis = std::move(diagnosis)},
           "", "");
}

}  // namespace berth::scheduler
