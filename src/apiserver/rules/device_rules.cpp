#include "apiserver/rules/device_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace berth::apiserver {
namespace {

using json::get_array;
using json::get_bool;
using json::get_string;
using json::Value;
using model::FieldErrors;

constexpr std::string_view kAdminLabel = "resource.kubernetes.io/admin-access";

FieldErrors admin_access(const std::string& field, const RuledWrite& write) {
  const auto space = write.cache.get(make_key("", "namespaces", "", write.ns));
  const std::string* label = space == nullptr ? nullptr : space->meta.labels().get(kAdminLabel);
  if (label != nullptr && *label == "true") return {};
  return {{model::FieldError::Type::kForbidden, field, "",
           fmt::format("admin access to devices requires the `{}: true` label on the containing namespace", kAdminLabel)}};
}

/// Where the first request of administrator's access stands; empty for none.
std::string wanted_by_spec(const Value& claim_spec) {
  const auto& requests = get_array(claim_spec, {"devices", "requests"});
  for (std::size_t i = 0; i < requests.size(); ++i)
    if (get_bool(requests[i], {"exactly", "adminAccess"})) return fmt::format("spec.devices.requests[{}].adminAccess", i);
  return {};
}

std::string granted_by_status(const Value& claim) {
  const auto& results = get_array(claim, {"status", "allocation", "devices", "results"});
  for (std::size_t i = 0; i < results.size(); ++i)
    if (get_bool(results[i], {"adminAccess"})) return fmt::format("status.allocation.devices.results[{}].adminAccess", i);
  return {};
}

bool same(const Value& a, const Value& b, json::Path path) {
  const Value *left = json::find(a, path), *right = json::find(b, path);
  const auto is_nothing = [](const Value* value) {
    return value == nullptr || value->is_null() || (value->is_array() && value->get_array().empty());
  };
  if (is_nothing(left) || is_nothing(right)) return is_nothing(left) && is_nothing(right);
  return json::equal(*left, *right);
}

std::string refusal(const RuledWrite& write, const Attributes& asked, const Authorizer::Decision& decision) {
  std::string text = fmt::format("User \"{}\" cannot {} resource \"{}/{}\" in API group \"{}\"", write.user.name, asked.verb,
                                 asked.resource, asked.subresource, asked.group);
  text += asked.ns.empty() ? " at the cluster scope" : fmt::format(" in the namespace \"{}\"", asked.ns);
  if (!decision.reason.empty()) text += ": " + decision.reason;
  return model::forbidden(asked.group, asked.resource, asked.name, text).message;
}

Attributes asked_for(const RuledWrite& write, std::string verb, std::string subresource, std::string ns, std::string name) {
  Attributes out;
  out.verb = std::move(verb);
  out.group = write.kind.group;
  out.version = write.kind.version;
  out.resource = write.kind.plural;
  out.subresource = std::move(subresource);
  out.ns = std::move(ns);
  out.name = std::move(name);
  return out;
}

/// Drivers whose entries in status.devices were added, changed or removed.
std::set<std::string> changed_drivers(const Value& old, const Value& updated) {
  const auto key = [](const Value& device) {
    return fmt::format("{}/{}/{}/{}", get_string(device, {"driver"}), get_string(device, {"pool"}), get_string(device, {"device"}),
                       get_string(device, {"shareID"}));
  };
  std::map<std::string, const Value*> before;
  for (const Value& device : get_array(old, {"status", "devices"})) before[key(device)] = &device;
  std::set<std::string> out;
  for (const Value& device : get_array(updated, {"status", "devices"})) {
    const auto found = before.find(key(device));
    if (found == before.end() || !json::equal(*found->second, device)) out.emplace(get_string(device, {"driver"}));
    if (found != before.end()) before.erase(found);
  }
  for (const auto& [name, device] : before) out.emplace(get_string(*device, {"driver"}));
  return out;
}

/// The one node that the allocation is bound to; empty where it is none or not one.
std::string allocated_node(const Value& claim) {
  const auto& terms = get_array(claim, {"status", "allocation", "nodeSelector", "nodeSelectorTerms"});
  if (terms.size() != 1 || !get_array(terms[0], {"matchExpressions"}).empty()) return {};
  const auto& fields = get_array(terms[0], {"matchFields"});
  if (fields.size() != 1 || get_string(fields[0], {"key"}) != "metadata.name" || get_string(fields[0], {"operator"}) != "In") return {};
  const auto& values = get_array(fields[0], {"values"});
  return values.size() == 1 && values[0].is_string() ? std::string(json::as_view(values[0])) : std::string();
}

bool runs_on(const UserInfo& user, const std::string& node) {
  if (node.empty() || !user.name.starts_with("system:serviceaccount:")) return false;
  const auto found = user.extra.find("authentication.kubernetes.io/node-name");
  return found != user.extra.end() && found->second.size() == 1 && found->second.front() == node;
}

void check_drivers(const RuledWrite& write, const Value& old, const Value& updated, FieldErrors& out) {
  const auto drivers = changed_drivers(old, updated);
  if (drivers.empty()) return;
  std::vector<std::string> verbs;
  if (runs_on(write.user, allocated_node(updated))) verbs.push_back("associated-node:" + write.verb);
  verbs.push_back("arbitrary-node:" + write.verb);
  for (const std::string& driver : drivers) {
    std::string first;
    const bool allowed = std::ranges::any_of(verbs, [&](const std::string& verb) {
      const auto asked = asked_for(write, verb, "driver", write.ns, driver);
      const auto decision = write.authorizer.authorize(write.user, asked);
      if (!decision.allowed && first.empty()) first = refusal(write, asked, decision);
      return decision.allowed;
    });
    if (!allowed)
      out.push_back({model::FieldError::Type::kForbidden, "status.devices", "",
                     fmt::format("changing status.devices requires resource=\"resourceclaims/driver\", verb=\"[{}]\" permission: {}",
                                 fmt::join(verbs, " "), first)});
  }
}

}  // namespace

FieldErrors check_admin_access(const RuledWrite& write, const Value* claim_spec) {
  const auto field = claim_spec == nullptr ? std::string() : wanted_by_spec(*claim_spec);
  return field.empty() ? FieldErrors() : admin_access(field, write);
}

FieldErrors check_claim_status(const RuledWrite& write, const Value& old, const Value& updated) {
  FieldErrors out;
  if (const auto field = granted_by_status(updated); !field.empty() && granted_by_status(old).empty()) out = admin_access(field, write);
  if (!same(old, updated, {"status", "allocation"}) || !same(old, updated, {"status", "reservedFor"})) {
    const auto asked = asked_for(write, write.verb, "binding", "", "");
    const auto decision = write.authorizer.authorize(write.user, asked);
    if (!decision.allowed)
      out.push_back({model::FieldError::Type::kForbidden, "status.allocation", "",
                     fmt::format("changing status.allocation or status.reservedFor requires resource=\"resourceclaims/binding\", "
                                 "verb=\"{}\" permission: {}",
                                 write.verb, refusal(write, asked, decision))});
  }
  if (json::find(updated, {"status", "allocation"}) != nullptr) check_drivers(write, old, updated, out);
  return out;
}

}  // namespace berth::apiserver
