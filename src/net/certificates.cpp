#include "net/certificates.h"

#include <arpa/inet.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <map>
#include <memory>

#include "base/hex.h"
#include "security/openssl.h"

namespace berth::net {
namespace {

using CertRequest = std::unique_ptr<X509_REQ, security::FreeWith<X509_REQ_free>>;
using Extensions =
    std::unique_ptr<STACK_OF(X509_EXTENSION),
                    decltype([](STACK_OF(X509_EXTENSION) * list) { sk_X509_EXTENSION_pop_free(list, X509_EXTENSION_free); })>;
using Names = std::unique_ptr<GENERAL_NAMES, security::FreeWith<GENERAL_NAMES_free>>;

security::Bio pem_reader(std::string_view pem) { return security::Bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()))); }

std::string written(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return {data, static_cast<std::size_t>(std::max(size, 0L))};
}

std::string last_error() {
  std::string text;
  while (const auto code = ERR_get_error()) {
    const char* reason = ERR_reason_error_string(code);
    text = reason != nullptr ? reason : fmt::format("error {:x}", code);
  }
  return text.empty() ? "no detail" : text;
}

std::string text_of(const ASN1_STRING* value) {
  unsigned char* text = nullptr;
  const int size = ASN1_STRING_to_UTF8(&text, value);
  std::string out = size >= 0 ? std::string(reinterpret_cast<char*>(text), static_cast<std::size_t>(size)) : std::string();
  OPENSSL_free(text);
  return out;
}

void read_subject(X509_NAME* subject, std::string& common_name, std::vector<std::string>& organizations) {
  for (int i = 0; i < X509_NAME_entry_count(subject); ++i) {
    X509_NAME_ENTRY* entry = X509_NAME_get_entry(subject, i);
    const int nid = OBJ_obj2nid(X509_NAME_ENTRY_get_object(entry));
    if (nid == NID_commonName) common_name = text_of(X509_NAME_ENTRY_get_data(entry));  // Go: the last one counts.
    if (nid == NID_organizationName) organizations.push_back(text_of(X509_NAME_ENTRY_get_data(entry)));
  }
}

/// The kinds of names that Go's certificates have.
bool is_plain(int type) { return type == GEN_DNS || type == GEN_EMAIL || type == GEN_URI || type == GEN_IPADD; }

void read_names(const GENERAL_NAMES* names, CertificateRequestFacts& out) {
  for (int i = 0; names != nullptr && i < sk_GENERAL_NAME_num(names); ++i) {
    int type = 0;
    const auto* value = static_cast<const ASN1_STRING*>(GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(names, i), &type));
    const std::string raw = is_plain(type) ? std::string(reinterpret_cast<const char*>(ASN1_STRING_get0_data(value)),
                                                         static_cast<std::size_t>(ASN1_STRING_length(value)))
                                           : std::string();
    out.has_other_names |= !is_plain(type);
    if (type == GEN_DNS) out.dns_names.push_back(raw);
    if (type == GEN_EMAIL) out.emails.push_back(raw);
    if (type == GEN_URI) out.uris.push_back(raw);
    if (type != GEN_IPADD) continue;
    char text[INET6_ADDRSTRLEN] = {};
    if (raw.size() == 4 || raw.size() == 16) ::inet_ntop(raw.size() == 4 ? AF_INET : AF_INET6, raw.data(), text, sizeof text);
    out.ip_addresses.emplace_back(text);
  }
}

TimePoint point_of(const ASN1_TIME* time) {
  std::tm fields{};
  if (ASN1_TIME_to_tm(time, &fields) != 1) return TimePoint{};
  return TimePoint(std::chrono::duration_cast<Duration>(std::chrono::seconds(::timegm(&fields))));
}

time_t seconds_of(TimePoint t) { return static_cast<time_t>(std::chrono::floor<std::chrono::seconds>(t).time_since_epoch().count()); }

Result<security::Certificate> read_certificate_of(std::string_view pem) {
  const auto bio = pem_reader(pem);
  security::Certificate certificate(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
  if (!certificate) {
    last_error();
    return invalid("no certificate in PEM form");
  }
  return certificate;
}

std::string key_hash(X509* certificate) {
  unsigned char* der = nullptr;
  const int size = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(certificate), &der);
  if (size <= 0) return {};
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(der, static_cast<std::size_t>(size), digest);
  OPENSSL_free(der);
  return "sha256:" + hex(digest);
}

bool add_to(X509* certificate, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const std::unique_ptr<X509_EXTENSION, security::FreeWith<X509_EXTENSION_free>> extension(
      X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str()));
  return extension != nullptr && X509_add_ext(certificate, extension.get(), -1) == 1;
}

struct Usages {
  std::string key, extended;  ///< In OpenSSL's words, comma separated.
};

/// certificates.k8s.io's usages (pkg/controller/certificates/authority/policies.go).
Result<Usages> translate(const std::vector<std::string>& usages) {
  static const std::map<std::string_view, const char*> kKey = {{"signing", "digitalSignature"},
                                                               {"digital signature", "digitalSignature"},
                                                               {"content commitment", "nonRepudiation"},
                                                               {"key encipherment", "keyEncipherment"},
                                                               {"key agreement", "keyAgreement"},
                                                               {"data encipherment", "dataEncipherment"},
                                                               {"cert sign", "keyCertSign"},
                                                               {"crl sign", "cRLSign"},
                                                               {"encipher only", "encipherOnly"},
                                                               {"decipher only", "decipherOnly"}};
  static const std::map<std::string_view, const char*> kExtended = {{"any", "anyExtendedKeyUsage"},
                                                                    {"server auth", "serverAuth"},
                                                                    {"client auth", "clientAuth"},
                                                                    {"code signing", "codeSigning"},
                                                                    {"email protection", "emailProtection"},
                                                                    {"s/mime", "emailProtection"},
                                                                    {"ipsec end system", "1.3.6.1.5.5.7.3.5"},
                                                                    {"ipsec tunnel", "1.3.6.1.5.5.7.3.6"},
                                                                    {"ipsec user", "1.3.6.1.5.5.7.3.7"},
                                                                    {"timestamping", "timeStamping"},
                                                                    {"ocsp signing", "OCSPSigning"},
                                                                    {"microsoft sgc", "msSGC"},
                                                                    {"netscape sgc", "nsSGC"}};
  Usages out;
  std::vector<std::string> unknown;
  const auto add = [](std::string& list, const std::string& word) {
    if ((list + ",").find("," + word + ",") == std::string::npos) list += "," + word;
  };
  for (const std::string& usage : usages) {
    if (const auto key = kKey.find(usage); key != kKey.end()) {
      // A leaf signs no certificates, whatever is asked: the usage alone would only mislead.
      if (usage != "cert sign" && usage != "crl sign") add(out.key, key->second);
    } else if (const auto extended = kExtended.find(usage); extended != kExtended.end()) {
      add(out.extended, extended->second);
    } else {
      unknown.push_back(usage);
    }
  }
  if (!unknown.empty()) return invalid(fmt::format("unrecognized usage values: {}", fmt::join(unknown, ", ")));
  return out;
}

bool set_serial(X509* certificate) {
  unsigned char serial[16];
  if (RAND_bytes(serial, sizeof serial) != 1) return false;
  serial[0] &= 0x7f;  // Serial numbers are positive.
  const std::unique_ptr<BIGNUM, security::FreeWith<BN_free>> number(BN_bin2bn(serial, sizeof serial, nullptr));
  return BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) != nullptr;
}

Names request_names(X509_REQ* request) {
  const Extensions extensions(X509_REQ_get_extensions(request));
  if (!extensions) return nullptr;
  return Names(static_cast<GENERAL_NAMES*>(X509V3_get_d2i(extensions.get(), NID_subject_alt_name, nullptr, nullptr)));
}

/// Takes out what is of another kind: nobody looked at it. How many are left.
int keep_plain(GENERAL_NAMES* names) {
  for (int i = sk_GENERAL_NAME_num(names) - 1; i >= 0; --i)
    if (!is_plain(sk_GENERAL_NAME_value(names, i)->type)) GENERAL_NAME_free(sk_GENERAL_NAME_delete(names, i));
  return sk_GENERAL_NAME_num(names);
}

Names names_of(const std::vector<std::string>& names) {
  Names list(GENERAL_NAMES_new());
  for (const std::string& name : names) {
    GENERAL_NAME* entry = GENERAL_NAME_new();
    if (ASN1_OCTET_STRING* address = a2i_IPADDRESS(name.c_str())) {
      GENERAL_NAME_set0_value(entry, GEN_IPADD, address);
    } else {
      ERR_clear_error();
      ASN1_IA5STRING* text = ASN1_IA5STRING_new();
      ASN1_STRING_set(text, name.data(), static_cast<int>(name.size()));
      GENERAL_NAME_set0_value(entry, GEN_DNS, text);
    }
    sk_GENERAL_NAME_push(list.get(), entry);
  }
  return list;
}

}  // namespace

namespace {

/// What Go's encoding/asn1 finds wrong with the outermost element, which is a sequence and all there is; empty: nothing.
std::string sequence_mistake(std::string_view der) {
  if (der.empty()) return "asn1: syntax error: sequence truncated";
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(der[at]); };
  if (der.size() < 2) return "asn1: syntax error: truncated tag or length";
  std::size_t length = byte(1), start = 2;
  if ((length & 0x80U) != 0) {
    const std::size_t count = length & 0x7fU;
    if (count == 0) return "asn1: syntax error: indefinite length found (not DER)";
    if (start + count > der.size()) return "asn1: syntax error: truncated tag or length";
    if (count > 4) return "asn1: structure error: length too large";
    for (length = 0; start < 2 + count; ++start) {
      length = length << 8U | byte(start);
      if (length == 0) return "asn1: structure error: superfluous leading zeros in length";
    }
    if (length < 0x80) return "asn1: structure error: non-minimal length";
  }
  if (byte(0) != 0x30)
    return fmt::format(
        "asn1: structure error: tags don't match (16 vs {{class:{} tag:{} length:{} isCompound:{}}}) {{optional:false explicit:false "
        "application:false private:false defaultValue:<nil> tag:<nil> stringType:0 timeType:0 set:false omitEmpty:false}} "
        "certificateRequest @{}",
        byte(0) >> 6U, byte(0) & 0x1fU, length, (byte(0) & 0x20U) != 0, start);
  if (length > der.size() - start) return "asn1: syntax error: data truncated";
  return length < der.size() - start ? "asn1: syntax error: trailing data" : "";
}

}  // namespace

Result<CertificateRequestFacts> read_certificate_request(std::string_view pem) {
  const auto bio = pem_reader(pem);
  char* name = nullptr;
  char* header = nullptr;
  unsigned char* data = nullptr;
  long size = 0;
  if (PEM_read_bio(bio.get(), &name, &header, &data, &size) != 1) {
    last_error();
    return invalid("PEM block type must be CERTIFICATE REQUEST");
  }
  const std::string type = name;
  CertificateRequestFacts out;
  out.der.assign(reinterpret_cast<char*>(data), static_cast<std::size_t>(size));
  OPENSSL_free(name);
  OPENSSL_free(header);
  OPENSSL_free(data);
  if (type != "CERTIFICATE REQUEST") return invalid("PEM block type must be CERTIFICATE REQUEST");
  if (auto why = sequence_mistake(out.der); !why.empty()) return invalid(std::move(why));
  const unsigned char* at = reinterpret_cast<const unsigned char*>(out.der.data());
  const CertRequest request(d2i_X509_REQ(nullptr, &at, static_cast<long>(out.der.size())));
  if (!request) return invalid("x509: malformed certificate request: " + last_error());
  EVP_PKEY* key = X509_REQ_get0_pubkey(request.get());
  if (key == nullptr || X509_REQ_verify(request.get(), key) != 1) {
    last_error();
    return invalid("x509: the request's signature is not its key's");
  }
  read_subject(X509_REQ_get_subject_name(request.get()), out.common_name, out.organizations);
  const auto names = request_names(request.get());
  read_names(names.get(), out);
  ERR_clear_error();
  return out;
}

Result<CertificateFacts> read_certificate_facts(std::string_view pem) {
  const auto certificate = read_certificate_of(pem);
  if (!certificate) return std::unexpected(certificate.error());
  X509* x = certificate->get();
  CertificateFacts out;
  read_subject(X509_get_subject_name(x), out.common_name, out.organizations);
  CertificateRequestFacts names;
  const Names list(static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(x, NID_subject_alt_name, nullptr, nullptr)));
  read_names(list.get(), names);
  out.names = std::move(names.dns_names);
  out.names.insert(out.names.end(), names.ip_addresses.begin(), names.ip_addresses.end());
  const std::unique_ptr<BIGNUM, security::FreeWith<BN_free>> number(ASN1_INTEGER_to_BN(X509_get_serialNumber(x), nullptr));
  char* digits = BN_bn2hex(number.get());
  for (const char* at = digits; at != nullptr && *at != '\0'; ++at)
    if (*at != '0' || !out.serial.empty()) out.serial += static_cast<char>(std::tolower(static_cast<unsigned char>(*at)));
  OPENSSL_free(digits);
  out.not_before = point_of(X509_get0_notBefore(x));
  out.not_after = point_of(X509_get0_notAfter(x));
  return out;
}

Result<void> check_certificate_chain(std::string_view pem) {
  const auto bio = pem_reader(pem);
  int blocks = 0;
  char* name = nullptr;
  char* header = nullptr;
  unsigned char* data = nullptr;
  long size = 0;
  while (PEM_read_bio(bio.get(), &name, &header, &data, &size) == 1) {
    const std::string type = name, headers = header;
    const unsigned char* at = data;
    const security::Certificate certificate(d2i_X509(nullptr, &at, size));
    OPENSSL_free(name);
    OPENSSL_free(header);
    OPENSSL_free(data);
    if (type != "CERTIFICATE") return invalid(fmt::format("only CERTIFICATE PEM blocks are allowed, found \"{}\"", type));
    if (!headers.empty()) return invalid("no PEM block headers are permitted");
    if (!certificate) return invalid("x509: malformed certificate: " + last_error());
    ++blocks;
  }
  ERR_clear_error();
  if (blocks == 0) return invalid("must contain at least one CERTIFICATE PEM block");
  return {};
}

Result<std::string> public_key_hash(std::string_view certificate_pem) {
  const auto certificate = read_certificate_of(certificate_pem);
  if (!certificate) return std::unexpected(certificate.error());
  return key_hash(certificate->get());
}

std::vector<std::string> public_key_hashes(std::string_view bundle_pem) {
  std::vector<std::string> out;
  const auto bio = pem_reader(bundle_pem);
  while (const security::Certificate certificate{PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)})
    out.push_back(key_hash(certificate.get()));
  ERR_clear_error();
  return out;
}

Result<std::string> sign_certificate(const SigningAuthority& authority, const CertificateRequestFacts& facts, const SigningTerms& terms) {
  const auto usages = translate(terms.usages);
  if (!usages) return std::unexpected(usages.error());
  const auto issuer = read_certificate_of(authority.certificate_pem);
  if (!issuer) return fail(ErrorCode::kCorrupt, "the signing authority's certificate: " + issuer.error().message);
  const auto key_bio = pem_reader(authority.private_key_pem);
  const security::Key issuer_key(PEM_read_bio_PrivateKey(
      key_bio.get(), nullptr, [](char*, int, int, void*) { return 0; }, nullptr));
  if (!issuer_key || X509_check_private_key(issuer->get(), issuer_key.get()) != 1) {
    last_error();
    return fail(ErrorCode::kCorrupt, "the signing authority's key is not its certificate's");
  }
  const unsigned char* at = reinterpret_cast<const unsigned char*>(facts.der.data());
  const CertRequest request(d2i_X509_REQ(nullptr, &at, static_cast<long>(facts.der.size())));
  const security::Certificate certificate(X509_new());
  X509* x = certificate.get();
  const TimePoint authority_end = point_of(X509_get0_notAfter(issuer->get()));
  bool ok = request && x != nullptr && X509_set_version(x, 2) == 1 && set_serial(x) &&
            ASN1_TIME_set(X509_getm_notBefore(x), seconds_of(terms.not_before)) != nullptr &&
            ASN1_TIME_set(X509_getm_notAfter(x), seconds_of(std::min(terms.not_after, authority_end))) != nullptr &&
            X509_set_subject_name(x, X509_REQ_get_subject_name(request.get())) == 1 &&
            X509_set_issuer_name(x, X509_get_subject_name(issuer->get())) == 1 &&
            X509_set_pubkey(x, X509_REQ_get0_pubkey(request.get())) == 1;
  ok = ok && add_to(x, issuer->get(), NID_basic_constraints, "critical,CA:FALSE");
  if (!usages->key.empty()) ok = ok && add_to(x, issuer->get(), NID_key_usage, "critical" + usages->key);
  if (!usages->extended.empty()) ok = ok && add_to(x, issuer->get(), NID_ext_key_usage, usages->extended.substr(1));
  ok =
      ok && add_to(x, issuer->get(), NID_subject_key_identifier, "hash") && add_to(x, issuer->get(), NID_authority_key_identifier, "keyid");
  if (ok)
    if (const auto names = request_names(request.get()); names != nullptr && keep_plain(names.get()) > 0)
      ok = X509_add1_ext_i2d(x, NID_subject_alt_name, names.get(), 0, 0) == 1;
  const int type = EVP_PKEY_get_base_id(issuer_key.get());
  ok = ok && X509_sign(x, issuer_key.get(), type == EVP_PKEY_ED25519 ? nullptr : EVP_sha256()) > 0;
  if (!ok) return fail(ErrorCode::kInternal, "cannot sign: " + last_error());
  const security::Bio out(BIO_new(BIO_s_mem()));
  PEM_write_bio_X509(out.get(), x);
  return written(out.get());
}

Result<NewRequest> make_certificate_request(const RequestSubject& subject) {
  const security::Key key(EVP_EC_gen("P-256"));
  const CertRequest request(X509_REQ_new());
  bool ok = key && request && X509_REQ_set_version(request.get(), 0) == 1 && X509_REQ_set_pubkey(request.get(), key.get()) == 1;
  X509_NAME* name = ok ? X509_REQ_get_subject_name(request.get()) : nullptr;
  const auto add = [&](const char* field, const std::string& value) {
    ok = ok && X509_NAME_add_entry_by_txt(name, field, MBSTRING_UTF8, reinterpret_cast<const unsigned char*>(value.data()),
                                          static_cast<int>(value.size()), -1, 0) == 1;
  };
  for (const std::string& organization : subject.organizations) add("O", organization);
  add("CN", subject.common_name);
  if (ok && !subject.names.empty()) {
    STACK_OF(X509_EXTENSION)* list = nullptr;
    const auto names = names_of(subject.names);
    ok = X509V3_add1_i2d(&list, NID_subject_alt_name, names.get(), 0, 0) == 1 && X509_REQ_add_extensions(request.get(), list) == 1;
    sk_X509_EXTENSION_pop_free(list, X509_EXTENSION_free);
  }
  ok = ok && X509_REQ_sign(request.get(), key.get(), EVP_sha256()) > 0;
  if (!ok) return fail(ErrorCode::kInternal, "cannot make a certificate request: " + last_error());
  const security::Bio key_out(BIO_new(BIO_s_mem())), request_out(BIO_new(BIO_s_mem()));
  PEM_write_bio_PrivateKey(key_out.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  PEM_write_bio_X509_REQ(request_out.get(), request.get());
  return NewRequest{written(key_out.get()), written(request_out.get())};
}

TimePoint renewal_time(TimePoint not_before, TimePoint not_after, double share) {
  const auto life = std::chrono::duration<double>(not_after - not_before);
  return not_before + std::chrono::duration_cast<Duration>(life * (0.7 + 0.2 * std::clamp(share, 0.0, 1.0)));
}

}  // namespace berth::net
