// What a server's start makes of the certificates' directory and of the files about who is let in; its renewals go on with it.
#pragma once
#include <memory>
#include <optional>

#include "apiserver/auth/auth.h"
#include "cli/roles/auth_setup.h"
#include "cli/roles/server_role.h"
#include "security/pki.h"

namespace berth::cli {

struct ServerRole::Credentials {
  security::PkiOptions pki_options;
  std::optional<security::Pki> pki;
  std::shared_ptr<apiserver::auth::ServiceAccountTokens> tokens;
  std::unique_ptr<AuthReload> reload;
};

}  // namespace berth::cli
