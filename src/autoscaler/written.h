// What the autoscaler writes of itself and of requests, beside what the actuator does.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "autoscaler/own_writes.h"
#include "autoscaler/status_report.h"
#include "base/lifeline.h"
#include "client/client.h"
#include "client/event_recorder.h"

namespace berth::autoscaler {

/// The ConfigMap cluster-autoscaler-status. Lives on its client's loop, which must outlive it.
class StatusMap : public Guarded<StatusMap> {
 public:
  /// `written` is told what events without a pod or node are about, once the object is known.
  StatusMap(client::Client& client, std::string ns, std::function<void(const client::ObjectReference&)> written)
      : client_(client), ns_(std::move(ns)), written_(std::move(written)) {}
  void write(const Status& status, TimePoint now) { send(report_.write(status, now), now); }
  /// As it is named before anybody has read it.
  [[nodiscard]] client::ObjectReference reference(std::string uid = "") const;

 private:
  void send(const std::string& text, TimePoint now);

  client::Client& client_;
  const std::string ns_;
  std::function<void(const client::ObjectReference&)> written_;
  StatusReport report_;
  bool is_there_ = false;
};

/// The status of ProvisioningRequests. Lives on its client's loop; what it is given must outlive it.
class RequestStatuses : public Guarded<RequestStatuses> {
 public:
  RequestStatuses(client::Client& client, OwnWrites& own_writes) : client_(client), own_writes_(own_writes) {}
  /// Written when what it stands on was asked for. The next pass waits for it.
  void take(RequestUpdate update);
  /// The group's growth was asked for, or was not.
  void release(const std::string& group, bool is_grown);

 private:
  void write(const RequestUpdate& update);

  client::Client& client_;
  OwnWrites& own_writes_;
  std::vector<RequestUpdate> held_;  ///< Until the groups that they stand on have grown.
};

}  // namespace berth::autoscaler
