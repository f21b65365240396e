// What the statuses of several kinds may say. Kubernetes: pkg/apis/{core,apps,batch,policy}/validation, Validate*StatusUpdate.
#include "model/validation/validation.h"
#include "model/validation/workload_parts.h"

namespace berth::model::validation {

using json::get_array;
using json::get_int;
using json::get_string;

void status_counters(const StatusCounters& known, const Value& old, const Value& doc, Errors& errors) {
  const Path at("status");
  const auto count = [&](std::string_view key) { return get_int(doc, {"status", key}); };
  for (const auto key : known.counters)
    if (count(key) < 0) errors.invalid(at / key, Value(count(key)), kNegative);
  for (const auto key : known.within_replicas)
    if (count(key) > count("replicas")) errors.invalid(at / key, Value(count(key)), "cannot be greater than status.replicas");
  if (!known.more_available_than_ready.empty() && count("availableReplicas") > count("readyReplicas"))
    errors.invalid(at / "availableReplicas", Value(count("availableReplicas")), known.more_available_than_ready);
  const bool had_collisions = json::find(old, {"status", "collisionCount"}) != nullptr;
  if (had_collisions && count("collisionCount") < get_int(old, {"status", "collisionCount"}))
    errors.invalid(at / "collisionCount", Value(count("collisionCount")), "cannot be decremented");
}

void conditions(const json::Array& list, const Path& at, Errors& errors) {
  constexpr std::size_t kLongestReason = 1024, kLongestMessage = 32 * 1024;
  std::set<std::string_view> types;
  std::size_t i = 0;
  for (const Value& condition : list) {
    const Path one = at[i++];
    const std::string_view type = get_string(condition, {"type"}), state = get_string(condition, {"status"}),
                           reason = get_string(condition, {"reason"});
    if (!types.insert(type).second) errors.duplicate(one / "type", Value(type));
    if (const std::string why = check_qualified_name(type); !why.empty()) errors.invalid(one / "type", type, why);
    if (state != "True" && state != "False" && state != "Unknown")
      errors.not_supported(one / "status", state, {"False", "True", "Unknown"});
    if (const std::int64_t seen = get_int(condition, {"observedGeneration"}); seen < 0)
      errors.invalid(one / "observedGeneration", Value(seen), "must be greater than or equal to zero");
    if (get_string(condition, {"lastTransitionTime"}).empty()) errors.required(one / "lastTransitionTime");
    if (reason.empty()) {
      errors.required(one / "reason");
    } else {
      const auto in_reason = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == ',' || c == ':'; };
      const bool is_word = std::isalpha(static_cast<unsigned char>(reason.front())) != 0 && std::ranges::all_of(reason, in_reason) &&
                           reason.back() != ',' && reason.back() != ':';
      if (!is_word)
        errors.invalid(one / "reason", reason,
                       "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric "
                       "characters or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  or "
                       "'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is "
                       "'[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')");
      if (reason.size() > kLongestReason) errors.too_long(one / "reason", kLongestReason);
    }
    if (get_string(condition, {"message"}).size() > kLongestMessage) errors.too_long(one / "message", kLongestMessage);
  }
}

void load_balancer_status(const Value& old, const Value& doc, bool is_service, Errors& errors) {
  const Path status("status");
  const Path balancer = status / "loadBalancer";
  const Path at = balancer / "ingress";
  const json::Array &before = get_array(old, {"status", "loadBalancer", "ingress"}),
                    &now = get_array(doc, {"status", "loadBalancer", "ingress"});
  if (is_service && get_string(doc, {"spec", "type"}) != "LoadBalancer" && !now.empty())
    return errors.forbidden(at, "may only be used when `spec.type` is 'LoadBalancer'");
  std::set<std::string_view> known;
  for (const Value& ingress : before) known.insert(get_string(ingress, {"ip"}));
  std::size_t i = 0;
  for (const Value& ingress : now) {
    const Path one = at[i++];
    const std::string_view ip = get_string(ingress, {"ip"}), host = get_string(ingress, {"hostname"});
    if (!ip.empty() && !is_ip(ip) && !known.contains(ip))
      errors.invalid(one / "ip", ip, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)");
    if (const Value* mode = json::find(ingress, "ipMode"); is_service && mode == nullptr) {
      if (!ip.empty()) errors.required(one / "ipMode", "must be specified when `ip` is set");
    } else if (is_service && ip.empty()) {
      errors.forbidden(one / "ipMode", "may not be specified when `ip` is not set");
    } else if (is_service) {
      supported_value(ingress, "ipMode", one, {"Proxy", "VIP"}, errors, true);
    }
    if (host.empty()) continue;
    if (const std::string why = check_dns1123_subdomain(host); !why.empty()) errors.invalid(one / "hostname", host, why);
    if (is_ip(host)) errors.invalid(one / "hostname", host, "must be a DNS name, not an IP address");
  }
}

}  // namespace berth::model::validation
