// ProvisioningRequests in a pass: room that is booked for them, looked for, or made.
#pragma once
#include <vector>

#include "autoscaler/pass.h"
#include "autoscaler/provisioning.h"

namespace berth::autoscaler {

class Growing;

/// Remembers between passes what became of requests, and whose turn it is.
class RequestRoom {
 public:
  void begin(Pass& pass) { provisioning_.begin(pass.snapshot.requests, pass.options, pass.now, pass.out.status.problems); }
  [[nodiscard]] bool has_due() const { return !provisioning_.due().empty(); }
  /// What of the booked room is on nodes that are there; the bookings that are not whole with that, with the pods that are left.
  std::vector<Provisioning::Booking> book_here(Pass& pass);
  /// What is left of them, with the nodes that are on their way.
  void book(const Pass& pass, placement::Trial& soon, std::vector<Provisioning::Booking>& bookings);
  /// True when a request grew something: then nobody else does in this pass.
  bool answer(Pass& pass, placement::Trial& soon, bool pods_wait, const Growing& growing, const ClusterLimits& limits);
  [[nodiscard]] std::vector<RequestUpdate> take_updates() { return provisioning_.take_updates(); }
  void shift_times(Duration jump) { provisioning_.shift_times(jump); }

 private:
  void check_capacity(Pass& pass, placement::Trial& soon, const RequestPtr& request);
  void provision(Pass& pass, placement::Trial& soon, const RequestPtr& request, const Growing& growing, const ClusterLimits& limits);

  Provisioning provisioning_;
  bool is_turn_of_requests_ = false;  ///< Of a request and of pods that both want nodes, one grows in a pass.
};

}  // namespace berth::autoscaler
