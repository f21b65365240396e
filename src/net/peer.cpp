#include "net/peer.h"

#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <cstring>
#include <ctime>
#include <ranges>

#include "base/hex.h"

namespace berth::net {
namespace {

/// What was found out in a full handshake. In a ticket as these bytes, which this server alone can write.
struct Vouched {
  bool for_client = false, for_front_proxy = false;
  std::int64_t not_before = TimePoint::min().time_since_epoch().count(), not_after = TimePoint::max().time_since_epoch().count();
};

struct Authorities {
  using Store = std::unique_ptr<X509_STORE, security::FreeWith<X509_STORE_free>>;
  struct Kind {
    std::vector<security::Certificate> certificates;
    Store store{X509_STORE_new()};
    void read(const std::string& pem) {
      certificates = read_certificates(pem);
      for (const auto& one : certificates) X509_STORE_add_cert(store.get(), one.get());
      // As where the connection is verified: what stands in a bundle is trusted by itself.
      X509_STORE_set_flags(store.get(), X509_V_FLAG_PARTIAL_CHAIN);
      ERR_clear_error();
    }
    [[nodiscard]] bool has(X509* certificate) const {
      return certificate != nullptr &&
             std::ranges::any_of(certificates, [&](const auto& one) { return X509_cmp(one.get(), certificate) == 0; });
    }
    [[nodiscard]] bool has_named(const X509_NAME* name) const {
      return std::ranges::any_of(certificates, [&](const auto& one) { return X509_NAME_cmp(X509_get_subject_name(one.get()), name) == 0; });
    }
  };
  Kind clients, proxies;
};

int authorities_index() {
  static const int index = SSL_CTX_get_ex_new_index(
      0, nullptr, nullptr, nullptr, [](void*, void* data, CRYPTO_EX_DATA*, int, long, void*) { delete static_cast<Authorities*>(data); });
  return index;
}

const Authorities* authorities_of(SSL* ssl) {
  return static_cast<const Authorities*>(SSL_CTX_get_ex_data(SSL_get_SSL_CTX(ssl), authorities_index()));
}

std::int64_t time_of(const ASN1_TIME* time, TimePoint otherwise) {
  std::tm fields{};
  if (ASN1_TIME_to_tm(time, &fields) != 1) return otherwise.time_since_epoch().count();
  return TimePoint(std::chrono::seconds(timegm(&fields))).time_since_epoch().count();
}

void narrow(Vouched& out, X509* certificate) {
  out.not_before = std::max(out.not_before, time_of(X509_get0_notBefore(certificate), TimePoint::max()));
  out.not_after = std::min(out.not_after, time_of(X509_get0_notAfter(certificate), TimePoint::min()));
}

void narrow(Vouched& out, STACK_OF(X509) * chain) {
  for (int i = 0; i < sk_X509_num(chain); ++i) narrow(out, sk_X509_value(chain, i));
}

/// Whether one of these authorities vouches for it; the time of the chain narrows what is known.
bool is_vouched_for(const Authorities::Kind& by, X509* certificate, STACK_OF(X509) * others, Vouched& out) {
  const std::unique_ptr<X509_STORE_CTX, security::FreeWith<X509_STORE_CTX_free>> check(X509_STORE_CTX_new());
  if (check == nullptr || X509_STORE_CTX_init(check.get(), by.store.get(), certificate, others) != 1) return false;
  X509_STORE_CTX_set_purpose(check.get(), X509_PURPOSE_SSL_CLIENT);
  const bool is_good = X509_verify_cert(check.get()) == 1;
  if (is_good) narrow(out, X509_STORE_CTX_get0_chain(check.get()));
  ERR_clear_error();
  return is_good;
}

/// Right after a full handshake: of a certificate that one of all the authorities vouches for.
Vouched look_closely(SSL* ssl, X509* certificate) {
  Vouched out;
  narrow(out, certificate);
  auto* chain = SSL_get0_verified_chain(ssl);
  narrow(out, chain);
  const auto* authorities = authorities_of(ssl);
  if (authorities == nullptr) {
    out.for_client = true;
    return out;
  }
  // The chain that was found ends in an authority of one kind. Another may lead to one of the other kind: by the leaf's issuer, or by what
  // the client sent beside its own (a server's view of it is without the leaf).
  X509* anchor = sk_X509_num(chain) > 0 ? sk_X509_value(chain, sk_X509_num(chain) - 1) : nullptr;
  auto* others = SSL_get_peer_cert_chain(ssl);
  const auto vouches = [&](const Authorities::Kind& kind) {
    if (kind.has(anchor)) return true;
    const bool may = sk_X509_num(others) > 0 || kind.has_named(X509_get_issuer_name(certificate));
    return may && is_vouched_for(kind, certificate, others, out);
  };
  out.for_client = vouches(authorities->clients);
  out.for_front_proxy = vouches(authorities->proxies);
  return out;
}

Vouched vouched(SSL* ssl, X509* certificate) {
  if (SSL_session_reused(ssl) == 0) return look_closely(ssl, certificate);
  Vouched out;
  void* data = nullptr;
  std::size_t size = 0;
  if (SSL_SESSION_get0_ticket_appdata(SSL_get_session(ssl), &data, &size) == 1 && size == sizeof out) std::memcpy(&out, data, size);
  return out;  // Of a session that tells nothing, nobody vouches for anybody.
}

int write_ticket(SSL* ssl, void*) {
  X509* certificate = SSL_get0_peer_certificate(ssl);
  // A session that goes on keeps what it was begun with.
  if (certificate == nullptr || SSL_session_reused(ssl) != 0) return 1;
  const Vouched found = look_closely(ssl, certificate);
  return SSL_SESSION_set1_ticket_appdata(SSL_get_session(ssl), &found, sizeof found);
}

void append_entry(X509_NAME_ENTRY* entry, std::vector<std::string>& out) {
  unsigned char* text = nullptr;
  const int size = ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(entry));
  if (size >= 0) out.emplace_back(reinterpret_cast<char*>(text), static_cast<std::size_t>(size));
  OPENSSL_free(text);
}

void read_subject(X509* certificate, PeerCertificate& out) {
  auto* subject = X509_get_subject_name(certificate);
  for (int i = 0; i < X509_NAME_entry_count(subject); ++i) {
    auto* entry = X509_NAME_get_entry(subject, i);
    const int nid = OBJ_obj2nid(X509_NAME_ENTRY_get_object(entry));
    if (nid == NID_organizationName) append_entry(entry, out.organizations);
    if (nid == NID_commonName) {
      std::vector<std::string> names;
      append_entry(entry, names);
      if (!names.empty()) out.common_name = std::move(names.front());
    }
  }
}

}  // namespace

std::vector<security::Certificate> read_certificates(const std::string& pem) {
  std::vector<security::Certificate> out;
  const security::Bio bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  const auto no_passphrase = [](char*, int, int, void*) { return 0; };  // Nobody is asked on the terminal.
  while (X509* certificate = PEM_read_bio_X509(bio.get(), nullptr, no_passphrase, nullptr)) out.emplace_back(certificate);
  ERR_clear_error();
  return out;
}

void remember_peers(SSL_CTX* context, const TlsServerConfig& config) {
  SSL_CTX_set_session_ticket_cb(context, write_ticket, nullptr, nullptr);
  if (config.front_proxy_ca_pem.empty()) return;
  auto authorities = std::make_unique<Authorities>();
  authorities->clients.read(config.client_ca_pem);
  authorities->proxies.read(config.front_proxy_ca_pem);
  SSL_CTX_set_ex_data(context, authorities_index(), authorities.release());
}

std::optional<PeerCertificate> verified_peer(SSL* ssl) {
  X509* certificate = SSL_get0_peer_certificate(ssl);
  if (certificate == nullptr || SSL_get_verify_result(ssl) != X509_V_OK) return std::nullopt;
  PeerCertificate out;
  read_subject(certificate, out);
  const std::unique_ptr<BIGNUM, security::FreeWith<BN_free>> number(ASN1_INTEGER_to_BN(X509_get_serialNumber(certificate), nullptr));
  char* digits = BN_bn2hex(number.get());
  for (const char* at = digits; at != nullptr && *at != '\0'; ++at)
    if (*at != '0' || !out.serial.empty()) out.serial += static_cast<char>(std::tolower(static_cast<unsigned char>(*at)));
  OPENSSL_free(digits);
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  if (X509_digest(certificate, EVP_sha256(), digest.data(), &size) == 1) out.fingerprint = hex({digest.data(), size});
  const Vouched found = vouched(ssl, certificate);
  out.is_client = found.for_client;
  out.is_front_proxy = found.for_front_proxy;
  out.not_before = TimePoint(Duration(found.not_before));
  out.not_after = TimePoint(Duration(found.not_after));
  return out;
}

}  // namespace berth::net
