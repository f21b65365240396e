// The flags about who is let in and who is asked whether he may: kube-apiserver's names.
#pragma once
#include <string>

#include "apiserver/auth/oidc_flags.h"

namespace CLI {
class App;
}

namespace berth::cli {

struct AuthFlags {
  std::string authentication_config, authorization_config, token_webhook_config, authorization_webhook_config;
  std::string token_webhook_ttl = "2m", authorized_ttl = "5m", unauthorized_ttl = "30s";
  std::string authorization_mode = "Node,RBAC";
  bool anonymous = true;
  apiserver::auth::OidcFlags oidc;
  void add_to(CLI::App& app);
};

}  // namespace berth::cli
