// From the wire to the router: who asks, whether they may, and whether it runs at once, in its turn or not at all.
#pragma once
#include <atomic>
#include <memory>

#include "apiserver/router.h"

namespace berth::apiserver {

/// Thread-safe. What it refers to outlives it.
class RequestPipeline {
 public:
  /// `flow_control`: null when single-threaded.
  RequestPipeline(Ground& ground, Responder& respond, const CustomResources& custom, Router& router, flow::Controller* flow_control);
  /// Answers every request once.
  void handle(net::HttpRequest http, std::shared_ptr<net::ResponseWriter> writer);
  /// Nobody elsewhere is asked any more who somebody is. Idempotent.
  void stop();

 private:
  /// Authentication and authorisation, elsewhere where they wait for somebody.
  void let_in(const RequestPtr& request);
  void let_through(const RequestPtr& request, bool may_wait_here);
  void ask(const RequestPtr& request, Task task);
  bool authenticate(Request& request);
  /// From here on the request is written down, where the policy wants that; `user` null: nobody was let in.
  void begin_audit(Request& request, const UserInfo* user);
  bool authorize(Request& request);
  /// Whether what the request reads must be as new as what any server acknowledged (only over a shared store can it be older).
  [[nodiscard]] bool needs_newest(const Request& request) const;
  /// Now, later, on another thread, or not at all (429).
  void schedule(const RequestPtr& request);

  Ground& ground_;
  Responder& respond_;
  const CustomResources& custom_;
  Router& router_;
  flow::Controller* flow_control_;
  std::unique_ptr<WorkerPool> askers_;  ///< Null where nobody elsewhere is asked.
  std::atomic<int> asking_{0};          ///< Requests that wait for, or run on, those.
};

}  // namespace berth::apiserver
