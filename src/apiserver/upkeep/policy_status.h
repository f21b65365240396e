// The status of ValidatingAdmissionPolicies (pkg/controller/validatingadmissionpolicystatus): the generation that was looked at, and what
// its types gave reason to warn of.
#pragma once
#include <memory>

#include "apiserver/definitions/custom_resources.h"
#include "apiserver/ground/ground.h"
#include "base/lifeline.h"

namespace berth::apiserver {

/// Follows the policies from its construction to its destruction, when no worker runs any more; what is under way then is left. Both
/// outlive it.
class PolicyStatus {
 public:
  PolicyStatus(Ground& ground, const CustomResources& custom);

 private:
  void look_soon(const std::string& key) const;
  void look_at(const std::string& key) const;

  Ground& ground_;
  const CustomResources& custom_;
  Lifeline lifeline_;
  std::unique_ptr<Watch> watch_;
};

}  // namespace berth::apiserver
