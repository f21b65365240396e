// Who may use a node's endpoints: client certificates and bearer tokens, judged by the API server (kubelet server/auth.go, webhook modes).
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "client/client.h"
#include "net/http.h"

namespace berth::node::agent {

struct EndpointUser {
  std::string name, uid;
  std::vector<std::string> groups;
};

/// What a request is to the authorizer: a verb on nodes/SUBRESOURCE of this node.
struct EndpointAttributes {
  std::string verb;
  std::vector<std::string> subresources;  ///< Any of these permits: a fine one, then the coarse one.
};
[[nodiscard]] EndpointAttributes endpoint_attributes(const std::string& method, const std::string& path);

/// Asks TokenReview and SubjectAccessReview, and remembers the answers as long as a kubelet does. Thread-safe; may block for one call.
class EndpointAccess {
 public:
  EndpointAccess(client::Client& blocking, const Clock& clock, std::string node_name)
      : client_(blocking), clock_(clock), node_name_(std::move(node_name)) {}

  struct Refusal {
    int status = 403;
    std::string message;
  };
  /// Nullopt: the request may pass.
  std::optional<Refusal> check(const net::HttpRequest& request);

 private:
  struct Memory {
    TimePoint until{};
    std::optional<EndpointUser> user;  ///< Of a token.
    bool is_allowed = false;
  };
  std::optional<EndpointUser> authenticate(const net::HttpRequest& request);
  std::optional<bool> is_allowed(const EndpointUser& user, const std::string& verb, const std::string& subresource);
  Memory remembered(const std::string& key);
  void remember(const std::string& key, Memory memory);

  client::Client& client_;
  const Clock& clock_;
  const std::string node_name_;
  Mutex mutex_;
  std::map<std::string, Memory> memory_ BERTH_GUARDED_BY(mutex_);
};

}  // namespace berth::node::agent
