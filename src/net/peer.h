// What a verified peer's certificate says, who vouches for it, and until when.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "net/http.h"
#include "net/server.h"
#include "security/openssl.h"

using SSL_CTX = struct ssl_ctx_st;
using SSL = struct ssl_st;

namespace berth::net {

std::vector<security::Certificate> read_certificates(const std::string& pem);

/// The authorities of clients are told from those of front proxies, where there are both. Who vouched for a client, and until when, goes
/// with the tickets that it resumes its session by: a session that is resumed has no chain.
void remember_peers(SSL_CTX* context, const TlsServerConfig& config);
/// The subject of the client's certificate; nullopt when it sent none.
std::optional<PeerCertificate> verified_peer(SSL* ssl);

}  // namespace berth::net
