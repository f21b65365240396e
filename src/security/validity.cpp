#include "security/validity.h"

#include <fmt/format.h>

#include "security/openssl.h"

namespace berth::security {
namespace {

std::string name_text(const X509_NAME* name) {
  const Bio out(BIO_new(BIO_s_mem()));
  X509_NAME_print_ex(out.get(), name, 0, XN_FLAG_RFC2253 & ~ASN1_STRFLGS_ESC_MSB);
  char* text = nullptr;
  const long size = BIO_get_mem_data(out.get(), &text);
  return {text, static_cast<std::size_t>(std::max(size, 0L))};
}

TimePoint moment_of(const ASN1_TIME* time) {
  std::tm fields{};
  if (ASN1_TIME_to_tm(time, &fields) != 1) return {};
  return TimePoint(std::chrono::duration_cast<Duration>(std::chrono::seconds(::timegm(&fields))));
}

std::vector<Certificate> all_of(const std::string& pem) {
  std::vector<Certificate> out;
  const Bio bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  while (X509* one = PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)) out.emplace_back(one);
  ERR_clear_error();
  return out;
}

std::string whose(X509* certificate) {
  const auto subject = name_text(X509_get_subject_name(certificate)), issuer = name_text(X509_get_issuer_name(certificate));
  return subject == issuer ? fmt::format("the certificate of \"{}\"", subject)
                           : fmt::format("the certificate of \"{}\", signed by \"{}\",", subject, issuer);
}

/// Empty: it is good.
std::string fault_of(X509* certificate, TimePoint now) {
  const auto begin = moment_of(X509_get0_notBefore(certificate)), end = moment_of(X509_get0_notAfter(certificate));
  if (end < now)
    return fmt::format("{} expired at {}: renew it where it was made, and give the new one", whose(certificate), format_rfc3339(end));
  if (begin > now)
    return fmt::format("{} is not valid before {}, and this machine's clock says {}: is it right?", whose(certificate),
                       format_rfc3339(begin), format_rfc3339(now));
  return {};
}

}  // namespace

std::string subject_of(const std::string& certificate_pem) {
  const auto chain = all_of(certificate_pem);
  return chain.empty() ? "nobody" : fmt::format("\"{}\"", name_text(X509_get_subject_name(chain.front().get())));
}

Result<void> check_dates(const std::string& certificate_pem, TimePoint now) {
  const auto chain = all_of(certificate_pem);
  if (chain.empty()) return {};
  if (auto fault = fault_of(chain.front().get(), now); !fault.empty()) return invalid(std::move(fault));
  return {};
}

Result<void> check_identity(const std::string& certificate_pem, const std::string& key_pem, TimePoint now) {
  const auto chain = all_of(certificate_pem);
  const Bio bio(BIO_new_mem_buf(key_pem.data(), static_cast<int>(key_pem.size())));
  const Key key(PEM_read_bio_PrivateKey(
      bio.get(), nullptr, [](char*, int, int, void*) { return 0; }, nullptr));
  const bool fits = chain.empty() || key == nullptr || X509_check_private_key(chain.front().get(), key.get()) == 1;
  ERR_clear_error();
  if (!fits)
    return invalid(fmt::format("the key is not the one of the certificate of \"{}\": give the two that were made together",
                               name_text(X509_get_subject_name(chain.front().get()))));
  return check_dates(certificate_pem, now);
}

Result<std::vector<std::string>> check_authorities(const std::string& bundle_pem, TimePoint now) {
  const auto bundle = all_of(bundle_pem);
  std::vector<std::string> faults;
  for (const auto& one : bundle)
    if (auto fault = fault_of(one.get(), now); !fault.empty()) faults.push_back(std::move(fault));
  if (faults.empty() || faults.size() < bundle.size()) return faults;
  return invalid(std::move(faults.front()));
}

}  // namespace berth::security
