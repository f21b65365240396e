// The status of ValidatingAdmissionPolicies (pkg/controller/validatingadmissionpolicystatus): the generation that was looked at, and what
// its types gave reason to warn of.
#pragma once
#include <memory>

#include "apiserver/definitions/custom_resources.h"
#include "apiserver/ground/ground.h"

namespace berth::apiserver {

/// Follows the policies from its construction to its destruction; what is under way then is left. Both outlive it.
class PolicyStatus {
 public:
  PolicyStatus(Ground& ground, const CustomResources& custom);
  ~PolicyStatus();
  PolicyStatus(const PolicyStatus&) = delete;
  PolicyStatus& operator=(const PolicyStatus&) = delete;

 private:
  struct Follower;
  std::shared_ptr<Follower> follower_;
  std::unique_ptr<Watch> watch_;
};

}  // namespace berth::apiserver
