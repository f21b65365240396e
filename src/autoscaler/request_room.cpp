#include "autoscaler/request_room.h"

#include <fmt/format.h>

#include "autoscaler/growing.h"

namespace berth::autoscaler {

using placement::Trial;

namespace {

void note_request(Pass& pass, const RequestPtr& request, std::string reason, std::string message) {
  pass.out.notes.push_back({{}, {}, false, std::move(reason), std::move(message), request});
}

}  // namespace

std::vector<Provisioning::Booking> RequestRoom::book_here(Pass& pass) {
  std::vector<Provisioning::Booking> out;
  for (Provisioning::Booking& booking : provisioning_.bookings(pass.snapshot.pod_sets->consumers)) {
    if (!booking.pods.empty()) {
      Kinds kinds(pass.thought.here(), booking.pods);
      place_waiting(pass.thought.here(), booking.pods, kinds,
                    [&](const PodPtr& pod, placement::NodeIndex) { pass.thought.imagined().emplace(pod->key(), pod); });
    }
    if (booking.pods.empty())
      provisioning_.homeless(booking.request, 0, pass.now);
    else
      out.push_back(std::move(booking));
  }
  return out;
}

void RequestRoom::book(const Pass& pass, Trial& soon, std::vector<Provisioning::Booking>& bookings) {
  for (Provisioning::Booking& booking : bookings) {
    Kinds kinds(soon, booking.pods);
    place_waiting(soon, booking.pods, kinds, nobody_asks);
    provisioning_.homeless(booking.request, booking.pods.size(), pass.now);
  }
}

bool RequestRoom::answer(Pass& pass, Trial& soon, bool pods_wait, const Growing& growing, const ClusterLimits& limits) {
  RequestPtr atomic;
  for (const RequestPtr& request : provisioning_.due()) {
    if (pass.limit.is_over()) break;
    if (request->class_name == kCheckCapacity)
      check_capacity(pass, soon, request);
    else
      atomic = request;
  }
  if (atomic == nullptr) return false;
  if (pods_wait) is_turn_of_requests_ = !is_turn_of_requests_;
  if (pods_wait && is_turn_of_requests_) return false;  // Pods were first; the request is the next time.
  provision(pass, soon, atomic, growing, limits);
  return !pass.out.grow.empty();
}

void RequestRoom::check_capacity(Pass& pass, Trial& soon, const RequestPtr& request) {
  provisioning_.accept(request, pass.now);
  const CapacityAnswer answer = find_capacity(soon, provisioning_.update(request), pass.now);
  pass.has_promised |= answer.is_booked;
  if (!answer.why.empty()) note_request(pass, request, "NotTriggerScaleUp", "the cluster has no room for it: " + answer.why);
}

// The room of all its pods at once: what there is, and one group's (or similar groups') growth for the rest
// (provisioningrequest/besteffortatomic).
void RequestRoom::provision(Pass& pass, Trial& soon, const RequestPtr& request, const Growing& growing, const ClusterLimits& limits) {
  provisioning_.accept(request, pass.now);
  RequestUpdate& update = provisioning_.update(request);
  Trial trial = soon.fork();
  std::vector<PodPtr> left = request->pods();
  Kinds kinds(trial, left);
  place_waiting(trial, left, kinds, nobody_asks);
  if (left.empty()) {
    update.set("Provisioned", true, kCapacityIsFound, kCapacityIsFoundMessage, pass.now);
    soon = std::move(trial);
    pass.has_promised = true;
    return;
  }
  ScaleUpInput input = growing.input_for(pass, trial, std::move(left), kinds, limits);
  input.all_or_nothing = true;
  const ScaleUpPlan plan = plan_scale_up(input, pass.options);
  if (plan.result != ScaleUpPlan::Result::kSuccessful) {
    update.set_not_found(pass.now);
    std::string why = "no group can grow for all of its pods at once";
    if (!plan.not_helped.empty()) why = why_not_helped(plan, *plan.not_helped.front().why);
    return note_request(pass, request, "NotTriggerScaleUp", "it didn't trigger scale-up: " + why);
  }
  for (const Resize& resize : plan.resizes) {
    record_growth(pass, resize);
    update.awaited_groups.push_back(resize.group);
  }
  update.set("Provisioned", true, kCapacityIsProvisioned, kCapacityIsFoundMessage, pass.now);
  note_request(pass, request, "TriggeredScaleUp", "it triggered scale-up: " + to_string(plan.resizes));
}

}  // namespace berth::autoscaler
