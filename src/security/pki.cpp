#include "security/pki.h"

#include <arpa/inet.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "security/file_owner.h"
#include "security/jwt.h"
#include "security/openssl.h"
#include "security/rotation.h"
#include "security/validity.h"

namespace berth::security {
namespace {

constexpr auto kDay = std::chrono::hours(24);
constexpr Duration kAuthorityLife = kDay * 3650;
constexpr Duration kLeafLife = kDay * 365;
constexpr Duration kClockSkew = std::chrono::minutes(5);  // Certificates start a little in the past: other machines' clocks differ.

std::string path_of(const std::string& directory, const std::string& name) { return (std::filesystem::path(directory) / name).string(); }

Result<std::optional<std::string>> read_file(const std::string& path) {
  std::error_code none;
  if (!std::filesystem::exists(path, none)) return std::optional<std::string>();
  std::ifstream in(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  if (!in) return fail(ErrorCode::kInvalid, fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
  return text;
}

bool is_address(const std::string& name) {
  unsigned char bytes[16];
  return ::inet_pton(AF_INET, name.c_str(), bytes) == 1 || ::inet_pton(AF_INET6, name.c_str(), bytes) == 1;
}

struct CertificateRequest {
  std::string common_name;
  std::vector<std::string> organizations;
  std::vector<std::string> names;  ///< DNS names and addresses.
  bool is_authority = false, for_server = false;
  Duration life{};
};

bool add_extension(X509* certificate, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  std::unique_ptr<X509_EXTENSION, FreeWith<X509_EXTENSION_free>> extension(X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str()));
  return extension != nullptr && X509_add_ext(certificate, extension.get(), -1) == 1;
}

bool add_name(X509_NAME* subject, const char* field, const std::string& value) {
  return X509_NAME_add_entry_by_txt(subject, field, MBSTRING_UTF8, reinterpret_cast<const unsigned char*>(value.data()),
                                    static_cast<int>(value.size()), -1, 0) == 1;
}

/// Names go in as ASN.1 values, not through OpenSSL's configuration syntax, so that no character of theirs can mean something else.
bool add_alternative_names(X509* certificate, const std::vector<std::string>& names) {
  std::unique_ptr<GENERAL_NAMES, FreeWith<GENERAL_NAMES_free>> list(GENERAL_NAMES_new());
  for (const std::string& name : names) {
    GENERAL_NAME* entry = GENERAL_NAME_new();
    if (is_address(name)) {
      ASN1_OCTET_STRING* address = a2i_IPADDRESS(name.c_str());
      GENERAL_NAME_set0_value(entry, GEN_IPADD, address);
    } else {
      ASN1_IA5STRING* text = ASN1_IA5STRING_new();
      ASN1_STRING_set(text, name.data(), static_cast<int>(name.size()));
      GENERAL_NAME_set0_value(entry, GEN_DNS, text);
    }
    sk_GENERAL_NAME_push(list.get(), entry);
  }
  return X509_add1_ext_i2d(certificate, NID_subject_alt_name, list.get(), 0, 0) == 1;
}

bool set_times(X509* certificate, TimePoint now, Duration life) {
  auto seconds = [](TimePoint t) { return static_cast<time_t>(std::chrono::floor<std::chrono::seconds>(t).time_since_epoch().count()); };
  return ASN1_TIME_set(X509_getm_notBefore(certificate), seconds(now - kClockSkew)) != nullptr &&
         ASN1_TIME_set(X509_getm_notAfter(certificate), seconds(now + life)) != nullptr;
}

/// `issuer` null: signed by its own key.
Result<KeyPair> make_certificate(const CertificateRequest& request, X509* issuer, EVP_PKEY* issuer_key, TimePoint now) {
  auto key = make_ec_key();
  if (!key) return std::unexpected(key.error());
  Certificate certificate(X509_new());
  X509* x = certificate.get();
  unsigned char serial[16];
  bool ok = x != nullptr && X509_set_version(x, 2) == 1 && RAND_bytes(serial, sizeof serial) == 1;
  serial[0] &= 0x7f;  // Serial numbers are positive.
  std::unique_ptr<BIGNUM, FreeWith<BN_free>> number(BN_bin2bn(serial, sizeof serial, nullptr));
  ok = ok && BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(x)) != nullptr && set_times(x, now, request.life);
  X509_NAME* subject = X509_get_subject_name(x);
  for (const std::string& organization : request.organizations) ok = ok && add_name(subject, "O", organization);
  ok = ok && add_name(subject, "CN", request.common_name);
  ok = ok && X509_set_issuer_name(x, issuer == nullptr ? subject : X509_get_subject_name(issuer)) == 1 &&
       X509_set_pubkey(x, key->get()) == 1;
  X509* signer = issuer == nullptr ? x : issuer;
  if (request.is_authority) {
    ok = ok && add_extension(x, signer, NID_basic_constraints, "critical,CA:TRUE") &&
         add_extension(x, signer, NID_key_usage, "critical,digitalSignature,keyCertSign,cRLSign");
  } else {
    ok = ok && add_extension(x, signer, NID_basic_constraints, "critical,CA:FALSE") &&
         add_extension(x, signer, NID_key_usage, "critical,digitalSignature") &&
         add_extension(x, signer, NID_ext_key_usage, request.for_server ? "serverAuth" : "clientAuth");
  }
  ok =
      ok && add_extension(x, signer, NID_subject_key_identifier, "hash") && add_extension(x, signer, NID_authority_key_identifier, "keyid");
  if (!request.names.empty()) ok = ok && add_alternative_names(x, request.names);
  ok = ok && X509_sign(x, issuer_key == nullptr ? key->get() : issuer_key, EVP_sha256()) > 0;
  if (!ok) return fail(ErrorCode::kInternal, fmt::format("cannot make the certificate of {}: {}", request.common_name, openssl_error()));
  return KeyPair{to_pem(x), to_pem(key->get())};
}

Result<KeyPair> make_signed_by(const KeyPair& authority, const CertificateRequest& request, TimePoint now) {
  auto issuer = read_certificate(authority.certificate_pem, "the authority's certificate");
  if (!issuer) return std::unexpected(issuer.error());
  auto key = read_private_key(authority.private_key_pem, "the authority's key");
  if (!key) return std::unexpected(key.error());
  return make_certificate(request, issuer->get(), key->get(), now);
}

/// The pair of files NAME.crt and NAME.key; nothing when neither is there.
Result<std::optional<KeyPair>> read_pair(const std::string& directory, const std::string& name) {
  auto certificate = read_file(path_of(directory, name + ".crt"));
  if (!certificate) return std::unexpected(certificate.error());
  auto key = read_file(path_of(directory, name + ".key"));
  if (!key) return std::unexpected(key.error());
  if (!*certificate && !*key) return std::optional<KeyPair>();
  if (!*certificate || !*key) {
    // The key is written first, so a key alone is what a crash in between leaves; a certificate alone has lost its key.
    if (!*certificate) return std::optional<KeyPair>();
    return fail(
        ErrorCode::kCorrupt,
        fmt::format("{}: {}.key is missing beside {}.crt. Put it back, or move both away to have new ones made.", directory, name, name));
  }
  auto read = read_certificate(**certificate, path_of(directory, name + ".crt"));
  if (!read) return std::unexpected(read.error());
  auto read_key = read_private_key(**key, path_of(directory, name + ".key"));
  if (!read_key) return std::unexpected(read_key.error());
  if (X509_check_private_key(read->get(), read_key->get()) != 1) {
    openssl_error();
    return fail(ErrorCode::kCorrupt,
                fmt::format("{}: {}.key does not belong to {}.crt. Put the right one back, or move both away to have new ones made.",
                            directory, name, name));
  }
  return KeyPair{**certificate, **key};
}

Result<void> write_pair(const std::string& directory, const std::string& name, const KeyPair& pair) {
  if (auto ok = write_file(path_of(directory, name + ".key"), pair.private_key_pem, 0600); !ok) return ok;
  return write_file(path_of(directory, name + ".crt"), pair.certificate_pem, 0644);
}

TimePoint time_of(const ASN1_TIME* time) {
  std::tm fields{};
  if (ASN1_TIME_to_tm(time, &fields) != 1) return TimePoint{};
  return TimePoint(std::chrono::duration_cast<Duration>(std::chrono::seconds(::timegm(&fields))));
}

std::vector<std::string> alternative_names(X509* certificate) {
  std::vector<std::string> names;
  std::unique_ptr<GENERAL_NAMES, FreeWith<GENERAL_NAMES_free>> list(
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; list != nullptr && i < sk_GENERAL_NAME_num(list.get()); ++i) {
    const GENERAL_NAME* entry = sk_GENERAL_NAME_value(list.get(), i);
    int type = 0;
    const auto* value = static_cast<const ASN1_STRING*>(GENERAL_NAME_get0_value(entry, &type));
    if (type == GEN_DNS)
      names.emplace_back(reinterpret_cast<const char*>(ASN1_STRING_get0_data(value)), static_cast<std::size_t>(ASN1_STRING_length(value)));
    if (type != GEN_IPADD) continue;
    char text[INET6_ADDRSTRLEN] = {};
    ::inet_ntop(ASN1_STRING_length(value) == 4 ? AF_INET : AF_INET6, ASN1_STRING_get0_data(value), text, sizeof text);
    names.emplace_back(text);
  }
  return names;
}

std::string subject_text(X509* certificate) {
  std::string text;
  X509_NAME* subject = X509_get_subject_name(certificate);
  for (int i = 0; i < X509_NAME_entry_count(subject); ++i) {
    X509_NAME_ENTRY* entry = X509_NAME_get_entry(subject, i);
    const ASN1_STRING* value = X509_NAME_ENTRY_get_data(entry);
    text += fmt::format(
        "{}={}\n", OBJ_nid2sn(OBJ_obj2nid(X509_NAME_ENTRY_get_object(entry))),
        std::string_view(reinterpret_cast<const char*>(ASN1_STRING_get0_data(value)), static_cast<std::size_t>(ASN1_STRING_length(value))));
  }
  return text;
}

/// Still signed by this authority, long enough to live, and saying what it should?
bool is_usable(const KeyPair& pair, const KeyPair& authority, const CertificateRequest& wanted, TimePoint now) {
  auto certificate = read_certificate(pair.certificate_pem, "");
  auto issuer = read_certificate(authority.certificate_pem, "");
  if (!certificate || !issuer) return false;
  X509* x = certificate->get();
  bool is_signed = X509_verify(x, X509_get0_pubkey(issuer->get())) == 1;
  openssl_error();
  if (!is_signed || time_of(X509_get0_notAfter(x)) - now < wanted.life / 5 || time_of(X509_get0_notBefore(x)) > now) return false;
  std::string subject;
  for (const std::string& organization : wanted.organizations) subject += "O=" + organization + "\n";
  subject += "CN=" + wanted.common_name + "\n";
  if (subject_text(x) != subject) return false;
  auto names = alternative_names(x);
  return std::all_of(wanted.names.begin(), wanted.names.end(),
                     [&](const auto& name) { return std::find(names.begin(), names.end(), name) != names.end(); });
}

Result<KeyPair> reuse_or_make(const std::string& directory, const std::string& file_name, const KeyPair& authority,
                              const CertificateRequest& wanted, TimePoint now) {
  auto known = read_pair(directory, file_name);
  if (!known) return std::unexpected(known.error());
  if (*known && is_usable(**known, authority, wanted, now)) return **known;
  auto made = make_signed_by(authority, wanted, now);
  if (!made) return made;
  if (auto ok = write_pair(directory, file_name, *made); !ok) return std::unexpected(ok.error());
  return made;
}

/// The names every server of this machine has, and those it was given.
void add_own_names(std::vector<std::string>& names, const std::vector<std::string>& given) {
  names.insert(names.end(), {"localhost", "127.0.0.1", "::1"});
  char host[256] = {};
  if (::gethostname(host, sizeof host - 1) == 0 && host[0] != '\0') names.emplace_back(host);
  for (const std::string& name : given)
    if (!name.empty() && name != "0.0.0.0" && name != "::") names.push_back(name);
}

Result<void> make_directory(const std::string& directory) {
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(directory).parent_path(), error);
  if (::mkdir(directory.c_str(), 0700) == 0) return {};
  if (errno != EEXIST) return fail(ErrorCode::kInvalid, fmt::format("{}: cannot be made: {}", directory, std::strerror(errno)));
  struct stat info {};
  if (::stat(directory.c_str(), &info) != 0 || !S_ISDIR(info.st_mode))
    return fail(ErrorCode::kInvalid, fmt::format("{}: is not a directory", directory));
  if ((info.st_mode & 0077) != 0 && ::chmod(directory.c_str(), 0700) != 0) {
    return fail(ErrorCode::kInvalid, fmt::format("{}: is open to others and cannot be closed: {}", directory, std::strerror(errno)));
  }
  return {};
}

Result<KeyPair> open_authority(const std::string& directory, const std::string& file_name, TimePoint now) {
  auto known = read_pair(directory, file_name);
  if (!known) return std::unexpected(known.error());
  if (*known) return **known;
  CertificateRequest request{.common_name = "berth-" + file_name, .is_authority = true, .life = kAuthorityLife};
  auto made = make_certificate(request, nullptr, nullptr, now);
  if (!made) return made;
  if (auto ok = write_pair(directory, file_name, *made); !ok) return std::unexpected(ok.error());
  return made;
}

Result<std::string> open_signing_key(const std::string& directory) {
  std::string path = path_of(directory, "service-account.key");
  auto known = read_file(path);
  if (!known) return std::unexpected(known.error());
  if (*known) {
    // Several keys: the first signs, the others only verify (the exchange of a key).
    if (auto keys = JwtKey::all_from_pem(**known); !keys) return fail(keys.error().code, fmt::format("{}: {}", path, keys.error().message));
    return **known;
  }
  auto key = make_ec_key();
  if (!key) return std::unexpected(key.error());
  std::string pem = to_pem(key->get());
  if (auto ok = write_file(path, pem, 0600); !ok) return std::unexpected(ok.error());
  return pem;
}

}  // namespace

Result<Pki> Pki::open(PkiOptions options, TimePoint now) {
  if (auto ok = make_directory(options.directory); !ok) return std::unexpected(ok.error());
  Pki pki;
  auto ca = open_authority(options.directory, "ca", now);
  if (!ca) return std::unexpected(ca.error());
  pki.ca_ = std::move(*ca);
  // Nothing that it signed would be taken: a clock that is years off must not have everything made anew either.
  if (auto good = check_dates(pki.ca_.certificate_pem, now); !good)
    return invalid(fmt::format("{}: {} (a new authority: `berth adm rotate ca --step prepare`, then switch, then finish)",
                               path_of(options.directory, "ca.crt"), good.error().message));

  CertificateRequest server{.common_name = "berth-apiserver", .for_server = true, .life = kLeafLife};
  server.names = {"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local", options.service_ip};
  add_own_names(server.names, options.names);
  auto made = reuse_or_make(options.directory, "server", pki.ca_, server, now);
  if (!made) return std::unexpected(made.error());
  pki.server_ = std::move(*made);

  auto signing_key = open_signing_key(options.directory);
  if (!signing_key) return std::unexpected(signing_key.error());
  pki.service_account_key_pem_ = std::move(*signing_key);
  pki.options_ = std::move(options);
  return pki;
}

Result<KeyPair> Pki::client_certificate(const std::string& file_name, const std::string& common_name,
                                        const std::vector<std::string>& organizations, TimePoint now) {
  if (file_name.find('/') != std::string::npos || file_name.empty() || file_name == "ca" || file_name == "server" ||
      file_name.starts_with("front-proxy-")) {
    return fail(ErrorCode::kInvalid, fmt::format("\"{}\" cannot be the name of a certificate's file", file_name));
  }
  CertificateRequest request{.common_name = common_name, .organizations = organizations, .life = kLeafLife};
  return reuse_or_make(options_.directory, file_name, ca_, request, now);
}

Result<KeyPair> Pki::server_certificate(const std::string& file_name, const std::string& common_name,
                                        const std::vector<std::string>& organizations, const std::vector<std::string>& names,
                                        TimePoint now) {
  CertificateRequest request{.common_name = common_name, .organizations = organizations, .for_server = true, .life = kLeafLife};
  add_own_names(request.names, names);
  return reuse_or_make(options_.directory, file_name, ca_, request, now);
}

Result<Pki::FrontProxy> Pki::front_proxy(TimePoint now) const {
  auto authority = open_authority(options_.directory, "front-proxy-ca", now);
  if (!authority) return std::unexpected(authority.error());
  auto client =
      reuse_or_make(options_.directory, "front-proxy-client", *authority, {.common_name = "front-proxy-client", .life = kLeafLife}, now);
  if (!client) return std::unexpected(client.error());
  return FrontProxy{authority->certificate_pem, std::move(*client)};
}

Result<KeyPair> Pki::issue_client(const std::string& common_name, const std::vector<std::string>& organizations, TimePoint now,
                                  Duration life) const {
  return make_signed_by(ca_, {.common_name = common_name, .organizations = organizations, .life = life}, now);
}

Result<KeyPair> Pki::self_signed_server(const std::string& common_name, const std::vector<std::string>& names, TimePoint now) {
  CertificateRequest request{.common_name = common_name, .for_server = true, .life = kLeafLife};
  add_own_names(request.names, names);
  return make_certificate(request, nullptr, nullptr, now);
}

namespace {

/// The PEM blocks of a text, each with its end of line.
std::vector<std::string> pem_blocks(const std::string& text) {
  std::vector<std::string> out;
  for (std::size_t start = text.find("-----BEGIN "); start != std::string::npos; start = text.find("-----BEGIN ", start + 1)) {
    std::size_t end = text.find("-----END ", start);
    if (end == std::string::npos) break;
    end = std::min(text.find('\n', end), text.size() - 1);
    out.push_back(text.substr(start, end + 1 - start));
  }
  return out;
}

Result<std::vector<std::string>> blocks_of_file(const std::string& path) {
  const auto text = read_file(path);
  if (!text) return std::unexpected(text.error());
  if (!*text) return fail(ErrorCode::kNotFound, fmt::format("{}: is not there; was a server ever started with this data directory?", path));
  auto blocks = pem_blocks(**text);
  if (blocks.empty()) return fail(ErrorCode::kCorrupt, fmt::format("{}: has nothing in PEM form", path));
  return blocks;
}

/// Whether a file of `count` entries is where a step begins; which step is to come first otherwise.
Result<void> check_step(RotationStep step, std::size_t count, bool is_switched) {
  if (step == RotationStep::kPrepare && count > 1)
    return fail(ErrorCode::kConflict, fmt::format("an exchange is under way: the next step is {}", is_switched ? "finish" : "switch"));
  if (step == RotationStep::kSwitch && count < 2) return fail(ErrorCode::kConflict, "nothing is prepared: the first step is prepare");
  if (step == RotationStep::kSwitch && is_switched) return fail(ErrorCode::kConflict, "that was done already: the next step is finish");
  if (step == RotationStep::kFinish && (count < 2 || !is_switched))
    return fail(ErrorCode::kConflict, count < 2 ? "nothing is to be finished" : "the old one still signs: the next step is switch");
  return {};
}

}  // namespace

Result<std::string> rotate_authority(const std::string& directory, RotationStep step, TimePoint now) {
  const std::string bundle = path_of(directory, "ca.crt"), key = path_of(directory, "ca.key"), next = path_of(directory, "ca-next.key");
  const auto blocks = blocks_of_file(bundle);
  if (!blocks) return std::unexpected(blocks.error());
  const auto waiting = read_file(next);
  if (!waiting) return std::unexpected(waiting.error());
  if (auto ok = check_step(step, blocks->size(), !*waiting); !ok) return std::unexpected(ok.error());
  if (step == RotationStep::kPrepare) {
    CertificateRequest request{.common_name = "berth-ca", .is_authority = true, .life = kAuthorityLife};
    const auto made = make_certificate(request, nullptr, nullptr, now);
    if (!made) return std::unexpected(made.error());
    if (auto ok = write_file(next, made->private_key_pem, 0600); !ok) return std::unexpected(ok.error());
    if (auto ok = write_file(bundle, blocks->front() + made->certificate_pem, 0644); !ok) return std::unexpected(ok.error());
    return std::string(
        "A new authority is trusted beside the old one. Within a minute a running server and its kubeconfigs have both. Give machines and "
        "people the new bundle (ca.crt; nodes: `berth node join` again), then: --step switch");
  }
  if (step == RotationStep::kSwitch) {
    // The key first: a crash in between leaves a pair that does not belong together, which a start refuses by name.
    if (auto ok = write_file(key, **waiting, 0600); !ok) return std::unexpected(ok.error());
    if (auto ok = write_file(bundle, (*blocks)[1] + (*blocks)[0], 0644); !ok) return std::unexpected(ok.error());
    ::unlink(next.c_str());
    return std::string(
        "The new authority signs. The server's certificate and the kubeconfigs of the data directory are made anew within a minute; nodes "
        "renew theirs in their own time, or at once with `berth node join`. When everybody has one of the new authority: --step finish");
  }
  if (auto ok = write_file(bundle, blocks->front(), 0644); !ok) return std::unexpected(ok.error());
  return std::string("The old authority is no longer trusted: what it signed is refused from now on.");
}

Result<std::string> rotate_signing_key(const std::string& directory, RotationStep step) {
  const std::string path = path_of(directory, "service-account.key"), marker = path_of(directory, "service-account-next");
  const auto blocks = blocks_of_file(path);
  if (!blocks) return std::unexpected(blocks.error());
  const auto waiting = read_file(marker);
  if (!waiting) return std::unexpected(waiting.error());
  if (auto ok = check_step(step, blocks->size(), !*waiting); !ok) return std::unexpected(ok.error());
  if (step == RotationStep::kPrepare) {
    auto made = make_ec_key();
    if (!made) return std::unexpected(made.error());
    if (auto ok = write_file(marker, "the second key of service-account.key is to sign next\n", 0600); !ok)
      return std::unexpected(ok.error());
    if (auto ok = write_file(path, blocks->front() + to_pem(made->get()), 0600); !ok) return std::unexpected(ok.error());
    return std::string("A new key verifies service account tokens beside the old one, and stands in /openid/v1/jwks. Then: --step switch");
  }
  if (step == RotationStep::kSwitch) {
    if (auto ok = write_file(path, (*blocks)[1] + (*blocks)[0], 0600); !ok) return std::unexpected(ok.error());
    ::unlink(marker.c_str());
    return std::string(
        "The new key signs. Tokens in pods are exchanged within the hour; those in Secrets of type kubernetes.io/service-account-token "
        "only "
        "when they are made anew. Then: --step finish");
  }
  if (auto ok = write_file(path, blocks->front(), 0600); !ok) return std::unexpected(ok.error());
  return std::string("The old key is gone: the tokens that it signed are refused from now on.");
}

}  // namespace berth::security
