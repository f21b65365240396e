#include "apiserver/rules/certificate_rules.h"

#include "base/base64.h"
#include "net/certificates.h"

namespace berth::apiserver {

void set_requestor(const UserInfo& user, json::Value& request) {
  json::Object& spec = json::ensure_object(request, {"spec"});
  for (const char* field : {"username", "uid", "groups", "extra"}) spec.erase(field);
  if (!user.name.empty()) spec["username"] = user.name;
  if (!user.uid.empty()) spec["uid"] = user.uid;
  if (!user.groups.empty()) spec["groups"] = json::Array(user.groups.begin(), user.groups.end());
  if (user.extra.empty()) return;
  json::Object extra;
  for (const auto& [key, values] : user.extra) extra[key] = json::Array(values.begin(), values.end());
  spec["extra"] = std::move(extra);
}

model::FieldErrors check_certificate_request(const json::Value* old, const json::Value& request) {
  using Type = model::FieldError::Type;
  model::FieldErrors errors;
  if (old == nullptr) {
    const auto given = json::get_string(request, {"spec", "request"});
    const auto read = net::read_certificate_request(base64_decode(given).value_or(""));
    if (!read)
      errors.push_back(
          {Type::kInvalid, "spec.request", given.empty() ? "null" : json::serialize(json::Value(given)), read.error().message});
  }
  const auto certificate = json::get_string(request, {"status", "certificate"});
  const bool is_new = old == nullptr || certificate != json::get_string(*old, {"status", "certificate"});
  if (!certificate.empty() && is_new)
    if (const auto read = net::check_certificate_chain(base64_decode(certificate).value_or("")); !read)
      errors.push_back({Type::kInvalid, "status.certificate", "\"<certificate data>\"", read.error().message});
  return errors;
}

}  // namespace berth::apiserver
