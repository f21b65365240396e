// CertificateSigningRequests (pkg/apis/certificates/validation), all but the X.509 in them.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/split.h"
#include "model/go_words.h"
#include "model/validation/validation.h"

namespace berth::model::validation {
namespace {

constexpr std::size_t kLongestDomain = 253;
constexpr std::size_t kLongestSigner = kLongestDomain + 1 + 253 + 1 + 63;
constexpr std::int64_t kLeastSeconds = 600;

const std::vector<std::string_view>& certificate_usages() {
  static const std::vector<std::string_view> kUsages = {
      "any",           "cert sign",         "client auth",      "code signing",  "content commitment", "crl sign",     "data encipherment",
      "decipher only", "digital signature", "email protection", "encipher only", "ipsec end system",   "ipsec tunnel", "ipsec user",
      "key agreement", "key encipherment",  "microsoft sgc",    "netscape sgc",  "ocsp signing",       "s/mime",       "server auth",
      "signing",       "timestamping"};
  return kUsages;
}

bool is_known_usage(std::string_view usage) { return std::ranges::find(certificate_usages(), usage) != certificate_usages().end(); }

/// "example.com/signer-name" (pkg/apis/core/validation, ValidateSignerName).
void signer_name(std::string_view name, const Path& at, Errors& errors) {
  if (name.empty()) return errors.required(at);
  const auto segments = split(name, '/').list();
  if (segments.size() != 2)
    return errors.invalid(at, name, "must be a fully qualified domain and path of the form 'example.com/signer-name'");
  if (segments[0].size() > kLongestDomain) errors.too_long(at, kLongestDomain);
  const auto each = [&](std::string_view segment, std::string (*check)(std::string_view)) {
    for (const std::string_view label : split(segment, '.'))
      if (const std::string why = check(label); !why.empty())
        for (const std::string_view sentence : split(why, '\n'))
          errors.invalid(at, segment, fmt::format("validating label {}: {}", go_quote(label), sentence));
  };
  each(segments[0], check_dns1123_label);
  if (segments[0].find('.') == std::string_view::npos)
    errors.invalid(at, segments[0], "should be a domain with at least two segments separated by dots");
  each(segments[1], check_dns1123_subdomain);
  if (name.size() > kLongestSigner) errors.too_long(at, kLongestSigner);
}

bool has_duplicates(const json::Array& list, std::string_view key = {}) {
  std::set<std::string_view> seen;
  for (const Value& one : list)
    if (!seen.insert(key.empty() ? text_of(one) : json::get_string(one, {key})).second) return true;
  return false;
}

bool has_condition(const Value& doc, std::string_view type) {
  return std::ranges::any_of(json::get_array(doc, {"status", "conditions"}),
                             [&](const Value& one) { return json::get_string(one, {"type"}) == type; });
}

std::vector<const Value*> conditions_of_type(const Value& doc, std::string_view type) {
  std::vector<const Value*> out;
  for (const Value& one : json::get_array(doc, {"status", "conditions"}))
    if (json::get_string(one, {"type"}) == type) out.push_back(&one);
  return out;
}

/// What is wrong already in the stored object is not held against an update.
void usages(const Value* old, const Value& doc, const Path& spec, Errors& errors) {
  const Path at = spec / "usages";
  const json::Array& list = json::get_array(doc, {"spec", "usages"});
  if (list.empty()) errors.required(at);
  const json::Array none;
  const json::Array& before = old == nullptr ? none : json::get_array(*old, {"spec", "usages"});
  const bool may_be_unknown = std::ranges::any_of(before, [](const Value& one) { return !is_known_usage(text_of(one)); });
  std::size_t i = 0;
  for (const Value& usage : list) {
    const Path one = at[i++];
    if (!may_be_unknown && !is_known_usage(text_of(usage))) errors.not_supported(one, text_of(usage), certificate_usages());
  }
  if (has_duplicates(before)) return;
  std::set<std::string_view> seen;
  i = 0;
  for (const Value& usage : list) {
    const Path one = at[i++];
    if (!seen.insert(text_of(usage)).second) errors.duplicate(one, usage);
  }
}

void request_conditions(const Value* old, const Value& doc, Errors& errors) {
  const Path status("status");
  const Path at = status / "conditions";
  const bool may_be_both = old != nullptr && has_condition(*old, "Approved") && has_condition(*old, "Denied");
  const bool may_be_empty = old != nullptr && has_condition(*old, "");
  const bool may_repeat = old != nullptr && has_duplicates(json::get_array(*old, {"status", "conditions"}), "type");
  std::set<std::string_view> seen;
  bool approved = false, denied = false;
  std::size_t i = 0;
  for (const Value& condition : json::get_array(doc, {"status", "conditions"})) {
    const Path one = at[i++];
    const std::string_view type = json::get_string(condition, {"type"}), state = json::get_string(condition, {"status"});
    const bool only_true = type == "Approved" || type == "Denied" || type == "Failed";
    if (type.empty() && !may_be_empty) errors.required(one / "type");
    if (state.empty())
      errors.required(one / "status");
    else if (only_true && state != "True")
      errors.not_supported(one / "status", state, {"True"});
    else if (state != "True" && state != "False" && state != "Unknown")
      errors.not_supported(one / "status", state, {"False", "True", "Unknown"});
    approved = approved || type == "Approved";
    denied = denied || type == "Denied";
    if (!may_be_both && approved && denied && (type == "Approved" || type == "Denied"))
      errors.invalid(one / "type", type, "Approved and Denied conditions are mutually exclusive");
    if (!seen.insert(type).second && !may_repeat) errors.duplicate(one / "type", Value(type));
  }
}

void request_changes(const Value& old, const Value& doc, std::string_view subresource, Errors& errors) {
  const Path status("status");
  const Path at = status / "conditions";
  for (const char* type : {"Approved", "Denied", "Failed"})
    if (conditions_of_type(doc, type).size() < conditions_of_type(old, type).size())
      errors.forbidden(at, fmt::format("updates may not remove a condition of type \"{}\"", type));
  if (subresource != "approval") {
    for (const char* type : {"Approved", "Denied"}) {
      const auto before = conditions_of_type(old, type), now = conditions_of_type(doc, type);
      if (now.size() > before.size()) errors.forbidden(at, fmt::format("updates may not add a condition of type \"{}\"", type));
      if (now.size() == before.size() &&
          !std::ranges::equal(before, now, [](const Value* a, const Value* b) { return json::equal(*a, *b); }))
        errors.forbidden(at, fmt::format("updates may not modify a condition of type \"{}\"", type));
    }
  }
  const std::string_view before = json::get_string(old, {"status", "certificate"}), now = json::get_string(doc, {"status", "certificate"});
  if (before == now) return;
  if (subresource != "status")
    errors.forbidden(status / "certificate", "updates may not set certificate content");
  else if (!before.empty())
    errors.forbidden(status / "certificate", "updates may not modify existing certificate content");
}

}  // namespace

void certificate_request(const Value* old, const Value& doc, std::string_view subresource, Errors& errors) {
  constexpr std::string_view kLegacy = "kubernetes.io/legacy-unknown";
  const Path spec("spec");
  usages(old, doc, spec, errors);
  const std::string_view signer = json::get_string(doc, {"spec", "signerName"});
  if (signer == kLegacy && (old == nullptr || json::get_string(*old, {"spec", "signerName"}) != kLegacy))
    errors.invalid(spec / "signerName", signer, "the legacy signerName is not allowed via this API version");
  else
    signer_name(signer, spec / "signerName", errors);
  if (const Value* seconds = json::find(doc, {"spec", "expirationSeconds"}); seconds != nullptr && seconds->is_number())
    if (json::get_int(doc, {"spec", "expirationSeconds"}) < kLeastSeconds)
      errors.invalid(spec / "expirationSeconds", *seconds, "may not specify a duration less than 600 seconds (10 minutes)");
  request_conditions(old, doc, errors);
  if (old != nullptr) request_changes(*old, doc, subresource, errors);
}

}  // namespace berth::model::validation
