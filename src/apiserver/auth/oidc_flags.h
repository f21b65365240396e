// What kube-apiserver's --oidc-… flags say of one issuer of tokens.
#pragma once
#include <string>
#include <vector>

namespace berth::apiserver::auth {

struct OidcFlags {
  std::string issuer_url, client_id, ca_file, username_claim = "sub", username_prefix, groups_claim, groups_prefix;
  std::vector<std::string> required_claims, signing_algs;
  [[nodiscard]] bool any() const { return !issuer_url.empty() || !client_id.empty(); }
};

}  // namespace berth::apiserver::auth
