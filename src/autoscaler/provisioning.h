// What becomes of ProvisioningRequests from pass to pass: who waits, who has room booked, whose time is over.
//
//   created -> Accepted -> Provisioned=True --10m--> BookingExpired            Failed, Provisioned: deleted after a week
//                 |   ^         '--- its room is gone for a minute --> CapacityRevoked
//                 v   | 1m, 2m, 4m, 8m, 10m …
//           Provisioned=False --7 days, or ValidUntilSeconds--> Failed
#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "autoscaler/options.h"
#include "autoscaler/provisioning_request.h"
#include "placement/trial.h"

namespace berth::autoscaler {

/// What the cluster has of room for a check-capacity request.
struct CapacityAnswer {
  bool is_booked = false;  ///< The trial has its pods now.
  std::string why;         ///< There is none, or not all: in the scheduler's words.
};
/// Of all sets or, where its parameter asks for that, of which (provisioningrequest/checkcapacity).
CapacityAnswer find_capacity(placement::Trial& soon, RequestUpdate& update, TimePoint now);

/// Deterministic in its calls. Times of conditions are the server's; how long something lasts is counted by the caller's clock.
class Provisioning {
 public:
  /// Begins a pass: conditions that time brings. What makes no sense is added to `problems`.
  void begin(const std::vector<RequestPtr>& requests, const Options& options, TimePoint now, std::vector<std::string>& problems);

  /// Requests whose turn it is to be looked at, the oldest first: of check-capacity at most ten, of best-effort-atomic-scale-up one.
  [[nodiscard]] std::vector<RequestPtr> due() const { return due_; }
  /// Pods whose room is booked, of one request after the other: without those that their consumers have by now.
  struct Booking {
    RequestPtr request;
    std::vector<PodPtr> pods;
  };
  [[nodiscard]] std::vector<Booking> bookings(const PodMap& consumers) const;
  /// Some of a booking's pods fit nowhere now; an empty booking fits.
  void homeless(const RequestPtr& request, std::size_t pods, TimePoint now);

  /// The update of a request in this pass.
  RequestUpdate& update(const RequestPtr& request);
  void accept(const RequestPtr& request, TimePoint now);
  [[nodiscard]] std::vector<RequestUpdate> take_updates();
  void shift_times(Duration jump);

 private:
  [[nodiscard]] bool is_due(const ProvisioningRequest& request, TimePoint now) const;
  void end(const RequestPtr& request, TimePoint now);
  void look_at_templates(const RequestPtr& request, TimePoint now, std::set<std::string>& incomplete);

  std::map<std::string, Duration> pause_;            ///< By uid: before the next attempt.
  std::map<std::string, TimePoint> homeless_since_;  ///< By uid.
  std::set<std::string> incomplete_;                 ///< Uids of requests whose templates the last pass did not find.
  std::vector<RequestPtr> due_, booked_;
  std::map<std::string, RequestUpdate> updates_;  ///< By key.
};

}  // namespace berth::autoscaler
