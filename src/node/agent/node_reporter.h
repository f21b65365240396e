// A node's own object in the API: registration, status, lease (kubelet_node_status.go, nodelease).
#pragma once
#include <map>
#include <memory>
#include <string>

#include "base/lifeline.h"
#include "client/client.h"
#include "node/agent/node_status.h"
#include "node/eviction/kubelet_config.h"

namespace berth::node::agent {

struct NodeReporterOptions {
  std::string node_name;
  std::map<std::string, std::string> labels;
  json::Array taints;  ///< Of a node that is new.
  Duration status_period = std::chrono::seconds(10);
  Duration full_report_period = std::chrono::minutes(5);
  std::int64_t lease_duration_seconds = 40;
  /// How often it reports, and how long its Lease lasts.
  void take(const eviction::KubeletSettings& settings);
};

/// Lives on its client's loop: every call, and the destructor.
class NodeReporter {
 public:
  /// `facts` is asked on the loop whenever a status is made; `registered` is called when the node's object is there; `event` when a
  /// condition changed.
  NodeReporter(client::Client& client, const Clock& clock, NodeReporterOptions options, std::function<NodeFacts()> facts,
               std::function<void()> registered,
               std::function<void(const std::string& type, const std::string& reason, const std::string& message)> event);
  ~NodeReporter();
  NodeReporter(const NodeReporter&) = delete;
  NodeReporter& operator=(const NodeReporter&) = delete;

  void start();
  /// A condition changed: reports at once.
  void report_now() { report_status(true); }
  /// The node's uid once it is registered; events about it name it.
  [[nodiscard]] const std::string& uid() const { return uid_; }

 private:
  void register_node();
  void report_status(bool now);
  /// `extended`: resources beside the machine's own, by what is allocatable of them; null: no more.
  void send_status(bool now, const json::Object& extended);
  static json::Object extended_resources(const json::Value& node);
  void renew_lease();
  void later(Duration after, TimerId& timer, std::function<void()> task);

  client::Client& client_;
  EventLoop& loop_;
  const Clock& clock_;
  const NodeReporterOptions options_;
  const std::function<NodeFacts()> facts_;
  const std::function<void()> registered_;
  const std::function<void(const std::string& type, const std::string& reason, const std::string& message)> event_;
  std::string uid_;
  bool is_registered_ = false;
  ConditionTimes condition_times_;
  json::Value reported_status_;
  TimePoint status_reported_{};
  TimerId register_timer_ = TimerId::kNone, lease_timer_ = TimerId::kNone, status_timer_ = TimerId::kNone;
  Lifeline lifeline_;
};

}  // namespace berth::node::agent
