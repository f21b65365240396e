// EndpointSlices (pkg/apis/discovery/validation).
#include <fmt/format.h>

#include "base/split.h"
#include "model/validation/ip_range.h"
#include "model/validation/validation.h"

namespace berth::model::validation {
namespace {

using json::get_array;
using json::get_object;
using json::get_string;

constexpr std::size_t kMaxTopologyLabels = 16, kMaxAddresses = 100, kMaxPorts = 20000, kMaxEndpoints = 1000, kMaxHints = 8;

/// A name's last dot may be there; at least two labels are.
void full_domain_name(const Value& address, const Path& at, Errors& errors) {
  std::string_view name = address.is_string() ? json::as_view(address) : "";
  if (name.empty()) return errors.required(at);
  if (name.ends_with('.')) name.remove_suffix(1);
  if (const std::string why = check_dns1123_subdomain(name); !why.empty()) return errors.invalid(at, name, why);
  if (name.find('.') == std::string_view::npos)
    return errors.invalid(at, name, "should be a domain with at least two segments separated by dots");
  for (const auto label : split(name, '.'))
    if (const std::string why = check_dns1123_label(label); !why.empty()) return errors.invalid(at, label, why);
}

void address(const Value& value, std::string_view type, bool own, const Path& list_at, const Path& at, Errors& errors) {
  if (type == "FQDN") return full_domain_name(value, at, errors);
  if (type != "IPv4" && type != "IPv6") return;
  const auto ip = value.is_string() ? parse_ip(json::as_view(value)) : std::nullopt;
  if (!ip) return errors.invalid(at, value, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)");
  if (ip->is_v6 != (type == "IPv6")) errors.invalid(list_at, value, fmt::format("must be an {} address", type));
  if (own && is_loopback(*ip)) return;
  if (const std::string why = special_ip_problem(*ip, json::as_view(value)); !why.empty()) errors.invalid(at, value, why);
}

void hints(const Value& endpoint, std::string_view list, std::string (*check)(std::string_view), const Path& hints_at, Errors& errors) {
  const Path at = hints_at / list;
  const json::Array& all = get_array(endpoint, {"hints", list});
  if (all.size() > kMaxHints) return errors.too_many(at, all.size(), kMaxHints);
  std::set<std::string_view> seen;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Path one = at[i];
    const std::string_view name = get_string(all[i], {"name"});
    if (!seen.insert(name).second) errors.duplicate(one / "name", Value(name));
    if (const std::string why = check(name); !why.empty()) errors.invalid(one / "name", name, why);
  }
}

void endpoint(const Value& value, std::string_view type, bool own, const Path& at, Errors& errors) {
  const Path list = at / "addresses";
  const json::Array& addresses = get_array(value, {"addresses"});
  if (addresses.empty()) errors.required(list, "must contain at least 1 address");
  if (addresses.size() > kMaxAddresses) errors.too_many(list, addresses.size(), kMaxAddresses);
  for (std::size_t i = 0; i < addresses.size(); ++i) address(addresses[i], type, own, list, list[i], errors);
  if (json::find(value, "nodeName") != nullptr)
    if (const std::string why = check_dns1123_subdomain(get_string(value, {"nodeName"})); !why.empty())
      errors.invalid(at / "nodeName", get_string(value, {"nodeName"}), why);
  if (const Value* topology = json::find(value, "deprecatedTopology")) {
    const std::size_t count = get_object(value, {"deprecatedTopology"}).size();
    if (count > kMaxTopologyLabels) errors.too_many(at / "deprecatedTopology", count, kMaxTopologyLabels);
    labels(*topology, at / "deprecatedTopology", errors);
  }
  if (json::find(value, "hostname") != nullptr)
    if (const std::string why = check_dns1123_label(get_string(value, {"hostname"})); !why.empty())
      errors.invalid(at / "hostname", get_string(value, {"hostname"}), why);
  hints(value, "forZones", check_label_value, at / "hints", errors);
  hints(value, "forNodes", check_dns1123_subdomain, at / "hints", errors);
}

void ports(const Value& doc, Errors& errors) {
  const Path at("ports");
  const json::Array& all = get_array(doc, {"ports"});
  if (all.size() > kMaxPorts) return errors.too_many(at, all.size(), kMaxPorts);
  std::set<std::string_view> seen;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Path one = at[i];
    const std::string_view name = get_string(all[i], {"name"});
    if (!name.empty())
      if (const std::string why = check_dns1123_label(name); !why.empty()) errors.invalid(one / "name", name, why);
    if (!seen.insert(name).second) errors.duplicate(one / "name", Value(name));
    supported_value(all[i], "protocol", one, {"SCTP", "TCP", "UDP"}, errors, true);
    if (json::find(all[i], "appProtocol") != nullptr)
      if (const std::string why = check_qualified_name(get_string(all[i], {"appProtocol"})); !why.empty())
        errors.invalid(one / "appProtocol", get_string(all[i], {"appProtocol"}), why);
  }
}

}  // namespace

void endpoint_slice(const Value* old, const Value& doc, Errors& errors) {
  const std::string_view type = get_string(doc, {"addressType"});
  if (type.empty())
    errors.required(Path("addressType"));
  else
    supported_value(doc, "addressType", Path(""), {"FQDN", "IPv4", "IPv6"}, errors);
  ports(doc, errors);
  const Path at("endpoints");
  const json::Array& all = get_array(doc, {"endpoints"});
  // What was let in once may stay as it is.
  const bool is_kept = old != nullptr && json::equal(Value(all), Value(get_array(*old, {"endpoints"})));
  if (!is_kept && all.size() > kMaxEndpoints) errors.too_many(at, all.size(), kMaxEndpoints);
  if (!is_kept && all.size() <= kMaxEndpoints)
    for (std::size_t i = 0; i < all.size(); ++i) endpoint(all[i], type, is_of_this_server(doc), at[i], errors);
  if (old != nullptr) immutable(*old, doc, {"addressType"}, Path("addressType"), errors);
}

}  // namespace berth::model::validation
