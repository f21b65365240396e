// Certificates and requests for them as values: what they say, and what an authority signs (RFC 2986, 5280). Texts in PEM form.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/error.h"

namespace berth::net {

/// A request (PKCS#10) whose signature is its own key's.
struct CertificateRequestFacts {
  std::string common_name;
  std::vector<std::string> organizations, dns_names, ip_addresses, emails, uris;
  bool has_other_names = false;  ///< Of other kinds: otherName, directoryName, registeredID, … They are not signed.
  std::string der;
};
/// The error is a sentence without a place.
Result<CertificateRequestFacts> read_certificate_request(std::string_view pem);

struct CertificateFacts {
  std::string common_name;
  std::vector<std::string> organizations, names;  ///< DNS names and addresses.
  std::string serial;                             ///< Lower-case hexadecimal digits, no leading zeros.
  TimePoint not_before, not_after;
};
/// Of the first certificate of the text.
Result<CertificateFacts> read_certificate_facts(std::string_view pem);

/// A text of one or more certificates and nothing else; the error is a sentence in the API server's words (status.certificate).
Result<void> check_certificate_chain(std::string_view pem);

/// "sha256:…" of the public key of the text's first certificate: kubeadm's --discovery-token-ca-cert-hash.
Result<std::string> public_key_hash(std::string_view certificate_pem);
/// The same of every certificate of a bundle.
std::vector<std::string> public_key_hashes(std::string_view bundle_pem);

struct SigningAuthority {
  std::string certificate_pem, private_key_pem;
};
struct SigningTerms {
  std::vector<std::string> usages;  ///< Kubernetes' words: "digital signature", "key encipherment", "client auth", "server auth", …
  TimePoint not_before, not_after;  ///< Cut at the authority's own end.
};
/// Signs what the request asks for: subject, alternative names and key. Never an authority. kInvalid: a usage is unknown.
Result<std::string> sign_certificate(const SigningAuthority& authority, const CertificateRequestFacts& request, const SigningTerms& terms);

/// Who asks for what, for a new P-256 key.
struct RequestSubject {
  std::string common_name;
  std::vector<std::string> organizations, names;  ///< DNS names and addresses.
};
struct NewRequest {
  std::string private_key_pem, request_pem;
};
Result<NewRequest> make_certificate_request(const RequestSubject& subject);

/// When a certificate is to be renewed: with between 70% and 90% of its life gone, as the kubelet does; `share` in [0, 1] chooses.
TimePoint renewal_time(TimePoint not_before, TimePoint not_after, double share);

}  // namespace berth::net
