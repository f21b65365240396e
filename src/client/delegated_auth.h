// Who may use a component's own port: the question is handed on to the API server, as Kubernetes' components do
// (apiserver/pkg/server/options authentication.go and authorization.go: TokenReview, SubjectAccessReview).
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/clock.h"
#include "client/client.h"
#include "net/http.h"

namespace berth::client {

/// Thread-safe. Answers are kept for ten seconds. Questions under way when it goes are answered with a refusal.
class DelegatedAuth {
 public:
  /// `clock` outlives it. Without a transport only holders of a verified certificate in system:masters pass.
  DelegatedAuth(std::shared_ptr<Transport> transport, const Clock& clock);
  ~DelegatedAuth();

  /// Why not: 401 without usable credentials, 403 without permission; 500 when the API server cannot be asked.
  struct Refusal {
    int code = 403;
    std::string message;
  };
  /// Asks whether the request's client certificate or bearer token allows this verb on this non-resource path; without either it is
  /// system:anonymous. `done` runs at once or later, on the transport's thread; nullopt means yes.
  void check(const net::HttpRequest& request, const std::string& verb, std::function<void(std::optional<Refusal>)> done);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace berth::client
