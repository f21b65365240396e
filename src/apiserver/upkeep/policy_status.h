// The status of ValidatingAdmissionPolicies (pkg/controller/validatingadmissionpolicystatus): the generation that was looked at, and what
// its types gave reason to warn of.
#pragma once
#include <memory>

#include "apiserver/cache/object_cache.h"
#include "apiserver/server.h"

namespace berth::apiserver {

/// Follows the policies from its construction to its destruction; what is under way then is left. `server` outlives it.
class PolicyStatus {
 public:
  explicit PolicyStatus(ApiServer::Impl& server);
  ~PolicyStatus();
  PolicyStatus(const PolicyStatus&) = delete;
  PolicyStatus& operator=(const PolicyStatus&) = delete;

 private:
  struct Follower;
  std::shared_ptr<Follower> follower_;
  std::unique_ptr<Watch> watch_;
};

}  // namespace berth::apiserver
