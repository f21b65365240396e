// CertificateSigningRequests.
#include "model/kinds/record.h"

namespace berth::model::kinds {
namespace {

/// The conditions of a type, in their order.
std::vector<Value*> conditions_of(Value& request, std::string_view type) {
  std::vector<Value*> out;
  Value* list = json::find(request, {"status", "conditions"});
  if (list == nullptr || !list->is_array()) return out;
  for (Value& condition : list->get_array())
    if (json::get_string(condition, {"type"}) == type) out.push_back(&condition);
  return out;
}

/// Times that a condition came without (populateConditionTimestamps).
void stamp_conditions(const Value& old, std::string_view now, Value& request) {
  Value* list = json::find(request, {"status", "conditions"});
  if (list == nullptr || !list->is_array() || now.empty()) return;
  for (Value& condition : list->get_array()) {
    if (!condition.is_object()) continue;
    if (json::get_string(condition, {"lastUpdateTime"}).empty()) json::set(condition, {"lastUpdateTime"}, Value(now));
    if (!json::get_string(condition, {"lastTransitionTime"}).empty()) continue;
    std::string since(now);
    for (const Value& before : json::get_array(old, {"status", "conditions"}))
      if (json::get_string(before, {"type"}) == json::get_string(condition, {"type"}) &&
          json::get_string(before, {"status"}) == json::get_string(condition, {"status"}) &&
          !json::get_string(before, {"lastTransitionTime"}).empty()) {
        since = json::get_string(before, {"lastTransitionTime"});
        break;
      }
    json::set(condition, {"lastTransitionTime"}, Value(since));
  }
}

/// Requests for certificates never change but by their subresources; who signs does not approve (pkg/registry/certificates).
void merge_request(const Value& old, Value& doc, std::string_view subresource, std::string_view now) {
  strategy::copy_member(old, doc, "spec");
  if (subresource.empty()) return strategy::copy_member(old, doc, "status");
  if (subresource == "status") {
    Value before = old;
    for (const char* type : {"Approved", "Denied"}) {
      const auto was = conditions_of(before, type), is = conditions_of(doc, type);
      // Where some were added or removed validation says so.
      if (was.size() == is.size())
        for (std::size_t i = 0; i < was.size(); ++i) *is[i] = *was[i];
    }
  }
  stamp_conditions(old, now, doc);
  if (subresource != "approval") return;
  const Value* conditions = json::find(doc, {"status", "conditions"});
  Value kept = conditions == nullptr ? Value() : *conditions;
  strategy::copy_member(old, doc, "status");
  if (kept.is_array())
    json::set(doc, {"status", "conditions"}, std::move(kept));
  else
    json::erase(doc, {"status", "conditions"});
}

Array certificate_request_cells(const Value& o, TimePoint now) {
  bool approved = false, denied = false, failed = false;
  for (const Value& condition : get_array(o, {"status", "conditions"})) {
    const std::string_view type = get_string(condition, {"type"});
    approved = approved || type == "Approved";
    denied = denied || type == "Denied";
    failed = failed || type == "Failed";
  }
  std::string state = denied ? "Denied" : approved ? "Approved" : "Pending";
  if (failed) state += ",Failed";
  if (!get_string(o, {"status", "certificate"}).empty()) state += ",Issued";
  const Value* seconds = json::find(o, {"spec", "expirationSeconds"});
  const std::string duration =
      seconds == nullptr || seconds->is_null() ? "<none>" : human_duration(std::chrono::seconds(get_int(o, {"spec", "expirationSeconds"})));
  return {name_of(o), age_of(o, now), Value(get_string(o, {"spec", "signerName"})), Value(get_string(o, {"spec", "username"})),
          duration,   state};
}

}  // namespace

std::vector<KindInfo> certificates_group() {
  return {Record("certificates.k8s.io", "v1", "CertificateSigningRequest", "certificatesigningrequests")
              .shorts({"csr"})
              .cluster()
              .subs({"approval", "status"})
              .fields({"spec.signerName"})
              .does({.form = kDefault,
                     .strategy = Strategy{.merge_update =
                                              [](const Value& old, Value& doc, std::string_view subresource, std::string_view now) {
                                                merge_request(old, doc, subresource, now);
                                                return true;
                                              }},
                     .rules = Rules{
                         .name = validation::check_path_segment,
                         .metadata_looks = kLooksAtBothAgain,
                         .create = [](const Value& doc, Errors& errors) { validation::certificate_request(nullptr, doc, "", errors); },
                         .update = [](const Value& old, const Value& doc, std::string_view subresource,
                                      Errors& errors) { validation::certificate_request(&old, doc, subresource, errors); },
                         .status = [](const Value& old, const Value& doc,
                                      Errors& errors) { validation::certificate_request(&old, doc, "status", errors); }},
                     .printer = Printer{{{"Name"}, {"Age"}, {"SignerName"}, {"Requestor"}, {"RequestedDuration"}, {"Condition"}},
                                        certificate_request_cells},
                     .selected = kDefault,
                     .scale = kDefault,
                     .life = kDefault,
                     .counted = kDefault})};
}

}  // namespace berth::model::kinds
