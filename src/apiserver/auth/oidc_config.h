// Tokens of other issuers: apiserver.config.k8s.io AuthenticationConfiguration, and the --oidc-… flags, which say the same of one issuer.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/auth/oidc_flags.h"
#include "base/error.h"
#include "cel/cel.h"

namespace berth::apiserver::auth {

/// A claim with a prefix, or an expression; neither: nothing is mapped.
struct ClaimMapping {
  std::string claim, prefix;
  std::optional<cel::Program> expression;
  std::string text;  ///< Of the expression.
  [[nodiscard]] bool is_there() const { return !claim.empty() || expression.has_value(); }
};
struct ClaimRule {
  std::string claim, required_value;
  std::optional<cel::Program> expression;
  std::string text, message;
};
struct ExtraMapping {
  std::string key;
  cel::Program expression;
  std::string text;
};

struct IssuerConfig {
  std::string url, discovery_url, ca_pem;
  std::vector<std::string> audiences;
  std::vector<std::string> algorithms = {"RS256", "RS384", "RS512", "ES256", "ES384", "ES512", "PS256", "PS384", "PS512"};
  std::vector<ClaimRule> claim_rules;
  ClaimMapping username, groups, uid;
  std::vector<ExtraMapping> extra;
  std::vector<ClaimRule> user_rules;  ///< Expressions over `user`.
};

struct AnonymousConfig {
  bool enabled = true;
  std::vector<std::string> paths;  ///< Of which alone; empty: everywhere.
};

struct AuthenticationConfig {
  std::vector<IssuerConfig> issuers;
  std::optional<AnonymousConfig> anonymous;
};

/// The error lists every problem with file, line, field path and what is allowed.
Result<AuthenticationConfig> parse_authentication_config(std::string_view text, const std::string& file);

/// The issuer that kube-apiserver's flags describe; the error names the flag.
Result<IssuerConfig> issuer_of_flags(const OidcFlags& flags);

}  // namespace berth::apiserver::auth
