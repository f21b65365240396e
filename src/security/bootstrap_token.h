// Bootstrap tokens: "abcdef.0123456789abcdef", kept as Secrets bootstrap-token-ID of type bootstrap.kubernetes.io/token in kube-system
// (k8s.io/cluster-bootstrap). The authenticator, the controllers and the command read them by this one.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/json.h"

namespace berth::security {

inline constexpr std::string_view kBootstrapTokenType = "bootstrap.kubernetes.io/token";
inline constexpr std::string_view kBootstrapTokenPrefix = "bootstrap-token-";
inline constexpr std::string_view kBootstrapTokenNamespace = "kube-system";
/// The group whose members kubeadm's bindings let join.
inline constexpr std::string_view kNodeTokenGroup = "system:bootstrappers:kubeadm:default-node-token";

struct TokenParts {
  std::string id, secret;
};
/// nullopt: not of a bootstrap token's form.
std::optional<TokenParts> split_bootstrap_token(std::string_view token);
/// "system:bootstrappers:" and what may follow.
bool is_bootstrap_group(std::string_view group);

struct BootstrapToken {
  std::string id, secret, description;
  std::optional<TimePoint> expiration;  ///< Never, without one.
  bool has_bad_expiration = false;      ///< Counts as expired.
  bool authenticates = false, signs = false;
  std::vector<std::string> extra_groups;
  std::string trouble;  ///< Why it is good for nothing, in words; empty: it is in order.

  [[nodiscard]] bool is_expired(TimePoint now) const { return has_bad_expiration || (expiration && *expiration <= now); }
};
/// nullopt: the Secret is no bootstrap token's.
std::optional<BootstrapToken> read_bootstrap_secret(const json::Value& secret);

/// A new token's Secret.
json::Value make_bootstrap_secret(const BootstrapToken& token);
/// From the machine's cryptographic random source.
TokenParts random_bootstrap_token();
/// The detached signature of `content` by a token (JWS, HS256): what cluster-info carries as jws-kubeconfig-ID.
std::string detached_signature(std::string_view content, const TokenParts& token);

}  // namespace berth::security
