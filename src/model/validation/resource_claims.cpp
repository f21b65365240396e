// DeviceClass, ResourceClaim and its status, ResourceClaimTemplate (pkg/apis/resource/validation).
#include <fmt/format.h>

#include "base/split.h"
#include "model/validation/resource_parts.h"
#include "model/validation/workload_parts.h"

namespace berth::model::validation {
namespace devices {

using json::get_array;
using json::get_int;
using json::get_object;
using json::get_string;

constexpr std::string_view kRequestReference =
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'";

RequestNames request_names(const Value& claim_spec) {
  RequestNames out;
  for (const Value& request : get_array(claim_spec, {"devices", "requests"})) {
    auto& subs = out[get_string(request, {"name"})];
    for (const Value& sub : get_array(request, {"firstAvailable"})) subs.insert(get_string(sub, {"name"}));
  }
  return out;
}

void device_name(std::string_view name, const Path& at, Errors& errors) {
  if (const std::string why = check_dns1123_label(name); !why.empty()) errors.invalid(at, name, why);
}

void pool_name(std::string_view name, const Path& at, Errors& errors) {
  if (name.empty()) return errors.required(at);
  if (name.size() > 253) errors.too_long(at, 253);
  for (const auto part : split(name, '/'))
    if (const std::string why = check_dns1123_subdomain(part); !why.empty()) errors.invalid(at, part, why);
}

void class_name(std::string_view name, const Path& at, Errors& errors) {
  if (name.empty()) return errors.required(at);
  if (const std::string why = check_dns1123_subdomain(name); !why.empty()) errors.invalid(at, name, why);
}

namespace {

void c_identifier(std::string_view text, const Path& at, Errors& errors) {
  if (text.size() > 32) errors.too_long(at, 32);
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  const bool is_one =
      !text.empty() && is_letter(text[0]) && std::ranges::all_of(text, [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); });
  if (!is_one)
    errors.invalid(at, text,
                   "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters or "
                   "'_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is '[A-Za-z_][A-Za-z0-9_]*')");
}

}  // namespace

void qualified_name(std::string_view name, const Path& at, Errors& errors) {
  const auto slash = name.find('/');
  if (slash == std::string_view::npos) return c_identifier(name, at, errors);
  const std::string_view domain = name.substr(0, slash), id = name.substr(slash + 1);
  if (id.find('/') != std::string_view::npos) return;  // Nothing is said of more slashes.
  if (domain.empty())
    errors.invalid(at, "", "the domain must not be empty");
  else
    csi_driver_name(domain, at, errors);
  if (id.empty())
    errors.invalid(at, "", "the name must not be empty");
  else
    c_identifier(id, at, errors);
}

void label_name(std::string_view name, const Path& at, Errors& errors) {
  if (const std::string why = check_qualified_name(name); !why.empty()) errors.invalid(at, name, why);
}

void uid(std::string_view text, const Path& at, Errors& errors) {
  const auto is_hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  std::size_t hex = 0;
  for (std::size_t i = 0; i < text.size(); ++i)
    hex += i == 8 || i == 13 || i == 18 || i == 23 ? text[i] == '-' : is_hex(text[i]) || (text[i] >= 'A' && text[i] <= 'F');
  if (text.size() != 36)
    errors.invalid(at, text, fmt::format("error validating uid: invalid UUID length: {}", text.size()));
  else if (hex != 36)
    errors.invalid(at, text, "error validating uid: invalid UUID format");
  else if (!std::ranges::all_of(text, [&](char c) { return c == '-' || is_hex(c); }))
    errors.invalid(at, text,
                   "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase hexadecimal characters");
}

void raw_object(const Value* value, std::size_t limit, const Path& at, Errors& errors) {
  if (value == nullptr || value->is_null()) return errors.required(at);
  if (json::serialize(*value).size() > limit) return errors.too_long(at, limit);
  if (!value->is_object()) errors.invalid(at, "<value omitted>", "must be a valid JSON object");
}

void selectors(const Value& holder, const Path& at, Errors& errors) {
  const Path here = at / "selectors";
  const json::Array& list = get_array(holder, {"selectors"});
  if (list.size() > kSelectorsMax) return errors.too_many(here, list.size(), kSelectorsMax);
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Path one = here[i];
    const Path cel = one / "cel";
    if (json::find(list[i], "cel") == nullptr) {
      errors.required(cel);
      continue;
    }
    const Path expression = cel / "expression";
    if (get_string(list[i], {"cel", "expression"}).size() > kExpressionMax) errors.too_long(expression, kExpressionMax);
  }
}

namespace {

void device_tolerations(const Value& holder, const Path& at, Errors& errors) {
  const Path here = at / "tolerations";
  const json::Array& list = get_array(holder, {"tolerations"});
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Path one = here[i];
    const std::string_view key = get_string(list[i], {"key"}), op = get_string(list[i], {"operator"}),
                           value = get_string(list[i], {"value"}), effect = get_string(list[i], {"effect"});
    if (const std::string why = check_qualified_name(key); !key.empty() && !why.empty()) errors.invalid(one / "key", key, why);
    if (op == "Exists") {
      if (!value.empty()) errors.invalid(one / "value", value, "must be empty for operator `Exists`");
    } else if (op == "Equal") {
      if (const std::string why = check_label_value(value); !why.empty()) errors.invalid(one / "value", value, why);
    } else if (op.empty()) {
      errors.required(one / "operator");
    } else {
      errors.not_supported(one / "operator", op, {"Equal", "Exists"});
    }
    if (!effect.empty() && effect != "NoSchedule" && effect != "NoExecute" && effect != "None")
      errors.not_supported(one / "effect", effect, {"NoExecute", "NoSchedule", "None"});
  }
}

/// What an exact request and an alternative have in common.
void request_body(const Value& request, const Path& at, Errors& errors) {
  class_name(get_string(request, {"deviceClassName"}), at / "deviceClassName", errors);
  selectors(request, at, errors);
  const std::string_view mode = get_string(request, {"allocationMode"});
  const std::int64_t count = get_int(request, {"count"});
  if (mode == "All") {
    if (count != 0) errors.invalid(at / "count", Value(count), "must not be specified when allocationMode is 'All'");
  } else if (mode == "ExactCount") {
    if (count <= 0) errors.invalid(at / "count", Value(count), "must be greater than zero");
  } else {
    errors.not_supported(at / "allocationMode", mode, {"All", "ExactCount"});
  }
  device_tolerations(request, at, errors);
}

void request(const Value& one, const Path& at, Errors& errors) {
  device_name(get_string(one, {"name"}), at / "name", errors);
  const json::Array& first = get_array(one, {"firstAvailable"});
  const Value* exactly = json::find(one, "exactly");
  if (first.empty() && exactly == nullptr) {
    errors.required(at, "exactly one of `exactly` or `firstAvailable` is required");
  } else if (!first.empty() && exactly != nullptr) {
    errors.invalid(at, Value(nullptr), "exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set");
  } else if (exactly != nullptr) {
    request_body(*exactly, at / "exactly", errors);
  } else {
    const Path here = at / "firstAvailable";
    if (first.size() > kFirstAvailableMax) return errors.too_many(here, first.size(), kFirstAvailableMax);
    std::set<std::string_view> seen;
    for (std::size_t i = 0; i < first.size(); ++i) {
      const Path sub = here[i];
      device_name(get_string(first[i], {"name"}), sub / "name", errors);
      request_body(first[i], sub, errors);
    }
    for (std::size_t i = 0; i < first.size(); ++i)
      if (!seen.insert(get_string(first[i], {"name"})).second) errors.duplicate(here[i], Value(get_string(first[i], {"name"})));
  }
}

void request_reference(std::string_view name, const RequestNames& known, const Path& at, Errors& errors) {
  const auto slash = name.find('/');
  const std::string_view first = name.substr(0, slash);
  const std::string_view second = slash == std::string_view::npos ? std::string_view() : name.substr(slash + 1);
  if (second.find('/') != std::string_view::npos) return errors.invalid(at, name, kRequestReference);
  device_name(first, at, errors);
  if (slash != std::string_view::npos) device_name(second, at, errors);
  const auto found = known.find(first);
  if (found == known.end() || (slash != std::string_view::npos && !found->second.contains(second)))
    errors.invalid(at, name, kRequestReference);
}

/// `requests` of a constraint or a configuration.
void request_references(const Value& holder, const RequestNames& known, const Path& at, Errors& errors) {
  const Path here = at / "requests";
  const json::Array& list = get_array(holder, {"requests"});
  if (list.size() > kRequestsMax) return errors.too_many(here, list.size(), kRequestsMax);
  std::set<std::string_view> seen;
  const auto text = [](const Value& value) { return value.is_string() ? json::as_view(value) : std::string_view(); };
  for (std::size_t i = 0; i < list.size(); ++i) request_reference(text(list[i]), known, here[i], errors);
  for (std::size_t i = 0; i < list.size(); ++i)
    if (!seen.insert(text(list[i])).second) errors.duplicate(here[i], list[i]);
}

void fully_qualified_name(std::string_view name, const Path& at, Errors& errors) {
  qualified_name(name, at, errors);
  if (name.find('/') == std::string_view::npos)
    errors.invalid(at, name, "a fully qualified name must be a domain and a name separated by a slash");
}

void constraint(const Value& one, const RequestNames& known, const Path& at, Errors& errors) {
  request_references(one, known, at, errors);
  if (json::find(one, "matchAttribute") != nullptr)
    fully_qualified_name(get_string(one, {"matchAttribute"}), at / "matchAttribute", errors);
  else if (json::find(one, "distinctAttribute") != nullptr)
    fully_qualified_name(get_string(one, {"distinctAttribute"}), at / "distinctAttribute", errors);
  else
    errors.required(at, "exactly one of \"matchAttribute\" or \"distinctAttribute\" is required, but multiple fields are set");
}

}  // namespace

void configuration(const Value& entry, const Path& at, Errors& errors) {
  const Path opaque = at / "opaque";
  if (json::find(entry, "opaque") == nullptr) return errors.required(opaque);
  csi_driver_name(get_string(entry, {"opaque", "driver"}), opaque / "driver", errors);
  raw_object(json::find(entry, {"opaque", "parameters"}), kRawMax, opaque / "parameters", errors);
}

void binding_conditions(const Value& holder, const Path& at, Errors& errors) {
  const json::Array &conditions = get_array(holder, {"bindingConditions"}), &failures = get_array(holder, {"bindingFailureConditions"});
  const Path conditions_at = at / "bindingConditions", failures_at = at / "bindingFailureConditions";
  const auto text = [](const Value& value) { return value.is_string() ? json::as_view(value) : std::string_view(); };
  const auto names = [&](const json::Array& list, const Path& here) {
    if (list.size() > 4) return errors.too_many(here, list.size(), 4);
    for (std::size_t i = 0; i < list.size(); ++i) label_name(text(list[i]), here[i], errors);
  };
  names(conditions, conditions_at);
  names(failures, failures_at);
  std::set<std::string_view> good, bad;
  for (std::size_t i = 0; i < conditions.size(); ++i)
    if (!good.insert(text(conditions[i])).second) errors.duplicate(conditions_at[i], conditions[i]);
  for (std::size_t i = 0; i < failures.size(); ++i) {
    if (!bad.insert(text(failures[i])).second) errors.duplicate(failures_at[i], failures[i]);
    if (good.contains(text(failures[i])))
      errors.invalid(failures_at[i], failures[i], "bindingFailureConditions must not overlap with bindingConditions");
  }
  const auto shown = [](const json::Array& list, std::string_view key, const Value& of) {
    return json::find(of, key) == nullptr ? Value(nullptr) : Value(list);
  };
  if (conditions.empty() && !failures.empty())
    errors.invalid(conditions_at, shown(conditions, "bindingConditions", holder),
                   "bindingConditions are required to use bindingFailureConditions");
  if (failures.empty() && !conditions.empty())
    errors.invalid(failures_at, shown(failures, "bindingFailureConditions", holder),
                   "bindingFailureConditions are required to use bindingConditions");
}

void claim_spec(const Value& spec, const Path& at, Errors& errors) {
  const RequestNames known = request_names(spec);
  const Path here = at / "devices";
  const Path requests_at = here / "requests", constraints_at = here / "constraints", config_at = here / "config";
  const json::Array &requests = get_array(spec, {"devices", "requests"}), &constraints = get_array(spec, {"devices", "constraints"}),
                    &config = get_array(spec, {"devices", "config"});
  if (requests.size() > kRequestsMax) {
    errors.too_many(requests_at, requests.size(), kRequestsMax);
  } else {
    for (std::size_t i = 0; i < requests.size(); ++i) request(requests[i], requests_at[i], errors);
    std::set<std::string_view> seen;
    for (std::size_t i = 0; i < requests.size(); ++i)
      if (!seen.insert(get_string(requests[i], {"name"})).second)
        errors.duplicate(requests_at[i], Value(get_string(requests[i], {"name"})));
  }
  if (constraints.size() > kConstraintsMax) errors.too_many(constraints_at, constraints.size(), kConstraintsMax);
  for (std::size_t i = 0; constraints.size() <= kConstraintsMax && i < constraints.size(); ++i)
    constraint(constraints[i], known, constraints_at[i], errors);
  if (config.size() > kConfigMax) return errors.too_many(config_at, config.size(), kConfigMax);
  for (std::size_t i = 0; i < config.size(); ++i) {
    request_references(config[i], known, config_at[i], errors);
    configuration(config[i], config_at[i], errors);
  }
}

namespace {

/// Driver, pool, device and share: what one allocation is known by.
std::string device_key(const Value& device) {
  return fmt::format("{}/{}/{}/{}", get_string(device, {"driver"}), get_string(device, {"pool"}), get_string(device, {"device"}),
                     get_string(device, {"shareID"}));
}

void result(const Value& one, const RequestNames& known, const Path& at, Errors& errors) {
  request_reference(get_string(one, {"request"}), known, at / "request", errors);
  csi_driver_name(get_string(one, {"driver"}), at / "driver", errors);
  pool_name(get_string(one, {"pool"}), at / "pool", errors);
  device_name(get_string(one, {"device"}), at / "device", errors);
  binding_conditions(one, at, errors);
  if (json::find(one, "shareID") != nullptr) uid(get_string(one, {"shareID"}), at / "shareID", errors);
}

void allocation_result(const Value& allocation, const RequestNames& known, const Path& at, Errors& errors) {
  const Path devices_at = at / "devices";
  const Path results_at = devices_at / "results", config_at = devices_at / "config";
  const json::Array &results = get_array(allocation, {"devices", "results"}), &config = get_array(allocation, {"devices", "config"});
  if (results.size() > kResultsMax) errors.too_many(results_at, results.size(), kResultsMax);
  for (std::size_t i = 0; results.size() <= kResultsMax && i < results.size(); ++i) result(results[i], known, results_at[i], errors);
  if (config.size() > 2 * kConfigMax) errors.too_many(config_at, config.size(), 2 * kConfigMax);
  for (std::size_t i = 0; config.size() <= 2 * kConfigMax && i < config.size(); ++i) {
    const Path one = config_at[i];
    const std::string_view source = get_string(config[i], {"source"});
    if (source.empty())
      errors.required(one / "source");
    else if (source != "FromClass" && source != "FromClaim")
      errors.not_supported(one / "source", source, {"FromClaim", "FromClass"});
    request_references(config[i], known, one, errors);
    configuration(config[i], one, errors);
  }
  if (const Value* selector = json::find(allocation, "nodeSelector")) node_selector(*selector, at / "nodeSelector", errors);
}

void device_conditions(const Value& device, const Path& at, Errors& errors) {
  const json::Array& list = get_array(device, {"conditions"});
  const Path here = at / "conditions";
  if (list.size() > 8) errors.too_many(here, list.size(), 8);
  conditions(list, here, errors);
}

void device_status(const Value& device, const std::set<std::string>& allocated, const Path& at, Errors& errors) {
  csi_driver_name(get_string(device, {"driver"}), at / "driver", errors);
  pool_name(get_string(device, {"pool"}), at / "pool", errors);
  device_name(get_string(device, {"device"}), at / "device", errors);
  const std::string_view share = get_string(device, {"shareID"});
  if (json::find(device, "shareID") != nullptr) uid(share, at / "shareID", errors);
  if (!allocated.contains(device_key(device))) {
    json::Object shown{{"Driver", get_string(device, {"driver"})},
                       {"Pool", get_string(device, {"pool"})},
                       {"Device", get_string(device, {"device"})},
                       {"ShareID", share}};
    errors.invalid(at, Value(std::move(shown)), "must be an allocated device in the claim");
  }
  device_conditions(device, at, errors);
  if (const Value* data = json::find(device, "data"); data != nullptr && !data->is_null()) raw_object(data, kRawMax, at / "data", errors);
  const Path network = at / "networkData";
  if (get_string(device, {"networkData", "interfaceName"}).size() > 256) errors.too_long(network / "interfaceName", 256);
  if (get_string(device, {"networkData", "hardwareAddress"}).size() > 128) errors.too_long(network / "hardwareAddress", 128);
  const json::Array& ips = get_array(device, {"networkData", "ips"});
  const Path ips_at = network / "ips";
  if (ips.size() > 16) return errors.too_many(ips_at, ips.size(), 16);
  std::set<std::string_view> seen;
  for (std::size_t i = 0; i < ips.size(); ++i) {
    const std::string_view text = ips[i].is_string() ? json::as_view(ips[i]) : "";
    const auto slash = text.find('/');
    if (slash == std::string_view::npos || !is_ip(text.substr(0, slash)))
      errors.invalid(ips_at[i], text, "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)");
    if (!seen.insert(text).second) errors.duplicate(ips_at[i], ips[i]);
  }
}

}  // namespace
}  // namespace devices

void device_class(const Value& doc, Errors& errors) {
  const Path at("spec");
  if (const Value* spec = json::find(doc, "spec")) devices::selectors(*spec, at, errors);
  const json::Array& config = json::get_array(doc, {"spec", "config"});
  const Path config_at = at / "config";
  if (config.size() > devices::kConfigMax) errors.too_many(config_at, config.size(), devices::kConfigMax);
  for (std::size_t i = 0; config.size() <= devices::kConfigMax && i < config.size(); ++i)
    devices::configuration(config[i], config_at[i], errors);
  if (const Value* name = json::find(doc, {"spec", "extendedResourceName"});
      name != nullptr && !is_extended_resource(json::get_string(doc, {"spec", "extendedResourceName"})))
    errors.invalid(at / "extendedResourceName", *name, "must be a valid extended resource name");
}

void resource_claim(const Value& doc, Errors& errors) {
  if (const Value* spec = json::find(doc, "spec")) devices::claim_spec(*spec, Path("spec"), errors);
}

void resource_claim_template(const Value& doc, Errors& errors) {
  const Path at("spec");
  const Path meta = at / "metadata";
  if (const Value* map = json::find(doc, {"spec", "metadata", "labels"})) labels(*map, meta / "labels", errors);
  if (const Value* map = json::find(doc, {"spec", "metadata", "annotations"})) annotations(*map, meta / "annotations", errors);
  // A claim takes labels and annotations from its template, and nothing else.
  for (const char* key : {"name", "generateName", "uid", "selfLink", "resourceVersion", "generation", "creationTimestamp",
                          "deletionTimestamp", "deletionGracePeriodSeconds", "ownerReferences", "finalizers", "managedFields"})
    if (const Value* given = json::find(doc, {"spec", "metadata", key}); given != nullptr && !given->is_null())
      errors.forbidden(meta / key, "cannot be set");
  if (const Value* spec = json::find(doc, {"spec", "spec"})) devices::claim_spec(*spec, at / "spec", errors);
}

void resource_claim_status(const Value& old, const Value& doc, Errors& errors) {
  using namespace devices;
  const Path at("status");
  const Path reserved_at = at / "reservedFor", devices_at = at / "devices";
  const json::Array& reserved = get_array(doc, {"status", "reservedFor"});
  if (reserved.size() > kReservedForMax) {
    errors.too_many(reserved_at, reserved.size(), kReservedForMax);
  } else {
    std::set<std::string_view> seen;
    for (std::size_t i = 0; i < reserved.size(); ++i)
      for (const char* key : {"resource", "name", "uid"})
        if (get_string(reserved[i], {key}).empty()) errors.required(reserved_at[i] / key);
    for (std::size_t i = 0; i < reserved.size(); ++i)
      if (!seen.insert(get_string(reserved[i], {"uid"})).second) errors.duplicate(reserved_at[i], Value(get_string(reserved[i], {"uid"})));
  }
  std::set<std::string> allocated;
  for (const Value& one : get_array(doc, {"status", "allocation", "devices", "results"})) allocated.insert(device_key(one));
  const json::Array& list = get_array(doc, {"status", "devices"});
  for (std::size_t i = 0; i < list.size(); ++i) device_status(list[i], allocated, devices_at[i], errors);
  const Value *before = json::find(old, {"status", "allocation"}), *after = json::find(doc, {"status", "allocation"});
  if (!reserved.empty()) {
    const json::Array& known = get_array(old, {"status", "reservedFor"});
    const bool has_new = std::ranges::any_of(
        reserved, [&](const Value& one) { return std::ranges::none_of(known, [&](const Value& was) { return json::equal(was, one); }); });
    if (after == nullptr)
      errors.forbidden(reserved_at, "may not be specified when `allocated` is not set");
    else if (json::find(doc, {"metadata", "deletionTimestamp"}) != nullptr && has_new)
      errors.forbidden(reserved_at, "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set");
  }
  if (before != nullptr && after != nullptr) {
    if (!json::equal(*before, *after)) errors.invalid(at / "allocation", *after, kImmutable);
  } else if (after != nullptr) {
    const Value* spec = json::find(doc, "spec");
    const Value none = json::Object();
    allocation_result(*after, request_names(spec != nullptr ? *spec : none), at / "allocation", errors);
  }
}

}  // namespace berth::model::validation
