// From the wire to the router: who asks, whether they may, and whether it runs at once, in its turn or not at all.
#pragma once
#include <memory>

#include "apiserver/router.h"

namespace berth::apiserver {

/// Thread-safe. What it refers to outlives it.
class RequestPipeline {
 public:
  /// `flow_control`: null when single-threaded.
  RequestPipeline(Ground& ground, const FrontOptions& options, Responder& respond, const CustomResources& custom, Router& router,
                  flow::Controller* flow_control);
  /// Answers every request once.
  void handle(net::HttpRequest http, std::shared_ptr<net::ResponseWriter> writer);

 private:
  using Waits = std::optional<std::string>;  ///< For whom.
  /// Each step goes on with the next one, on another thread where somebody else has to be waited for.
  void let_in(const RequestPtr& request);
  void let_act(const RequestPtr& request);
  void let_through(const RequestPtr& request);
  void dispatch(const RequestPtr& request);
  /// Runs it where waiting is allowed.
  void ask(const std::string& whom, const RequestPtr& request, Task task);
  /// False: the calling thread may wait itself.
  [[nodiscard]] bool must_not_wait() const { return ground_.askers != nullptr && !Askers::is_one(); }
  bool authenticate(Request& request);
  /// Whom he impersonates, and that it is not this server.
  bool act(Request& request);
  /// From here on the request is written down, where the policy wants that; `user` null: nobody was let in.
  void begin_audit(Request& request, const UserInfo* user);
  /// Whether he may; a refusal is answered. The error: who has to be waited for.
  Expected<bool, std::string> authorize(Request& request);
  [[nodiscard]] Expected<Authorizer::Decision, std::string> decide(const Request& request, const Attributes& attributes) const;
  /// Whether what the request reads must be as new as what any server acknowledged (only over a shared store can it be older).
  [[nodiscard]] bool needs_newest(const Request& request) const;
  /// Now, later, on another thread, or not at all (429).
  void schedule(const RequestPtr& request);

  Ground& ground_;
  const FrontOptions& options_;
  Responder& respond_;
  const CustomResources& custom_;
  Router& router_;
  flow::Controller* flow_control_;
};

}  // namespace berth::apiserver
