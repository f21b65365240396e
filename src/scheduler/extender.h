// HTTP extenders (kube-scheduler's pkg/scheduler/extender.go): other processes that filter, score and bind. Asked after the engine's own
// filters, in the configuration's order; the pod waits for their answers. An extender that fails costs the pod its attempt, unless it is
// ignorable.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "placement/engine.h"
#include "placement/preemption.h"
#include "scheduler/config/config.h"

namespace berth::scheduler {

/// Owner: one scheduler. Immutable: may be asked from any thread. Calls block until the extender answers or its timeout is over.
class Extenders {
 public:
  /// Sends `body` to the extender's verb and returns the answer's body.
  using Post = std::function<Result<std::string>(std::size_t extender, const std::string& verb, const std::string& body)>;

  /// Over HTTP. The error names the extender whose address or files are wrong.
  static Result<std::unique_ptr<Extenders>> create(const std::vector<config::Extender>& configs);
  /// With another transport (tests).
  Extenders(std::vector<config::Extender> configs, Post post) : configs_(std::move(configs)), post_(std::move(post)) {}

  /// Whether any extender has a say about the pod (managedResources).
  [[nodiscard]] bool are_interested(const model::PodView& pod) const;
  /// Whether one of them binds the pod.
  [[nodiscard]] bool bind_for(const model::PodView& pod) const;

  /// Whether one of them has a say in preemption for the pod.
  [[nodiscard]] bool preempt_for(const model::PodView& pod) const;

  /// Narrows and scores what the engine found feasible. When nothing is left, `evaluation` tells afterwards what the extenders said of each
  /// node: FailedNodes as Unschedulable, FailedAndUnresolvableNodes as such. `node_document` gives a node's whole object for extenders
  /// without a cache of their own. Outcome kError when an extender that is not ignorable fails. Ties: the first of `feasible` by name.
  placement::Decision choose(const placement::Cluster& cluster, const placement::PodInfo& pod, const json::Value& pod_document,
                             placement::Evaluation& evaluation, const std::function<json::Value(const std::string&)>& node_document) const;
  /// The candidates that the extenders with a preempt verb leave, with the victims they want (ProcessPreemption). Extenders without a cache
  /// get whole pods, others their uids. The error: an extender that is not ignorable failed or answered nonsense.
  struct Documents {
    std::function<json::Value(const placement::PodInfo&)> pod;
    std::function<json::Value(const std::string&)> node;
  };
  Result<std::vector<placement::Candidate>> process_preemption(const placement::Cluster& cluster, const placement::PodInfo& pod,
                                                               const json::Value& pod_document,
                                                               std::vector<placement::Candidate> candidates,
                                                               const Documents& documents) const;
  /// Binds through the extender that does. False: none did, the scheduler must (an ignorable one that failed).
  Result<bool> bind(const model::PodView& pod, const std::string& node) const;

 private:
  struct Narrowing;
  [[nodiscard]] bool is_interested(const config::Extender& extender, const model::PodView& pod) const;
  Result<void> filter(std::size_t extender, const json::Value& pod, const std::function<json::Value(const std::string&)>& node_document,
                      Narrowing& out) const;
  Result<json::Value> ask(std::size_t extender, const std::string& verb, const json::Value& body) const;
  Result<std::vector<placement::Candidate>> ask_preemption(std::size_t extender, const placement::Cluster& cluster,
                                                           const json::Value& pod_document,
                                                           const std::vector<placement::Candidate>& candidates,
                                                           const Documents& documents) const;
  Result<void> prioritize(std::size_t extender, const json::Value& pod, const std::function<json::Value(const std::string&)>& node_document,
                          Narrowing& out) const;

  std::vector<config::Extender> configs_;
  Post post_;
};

}  // namespace berth::scheduler
