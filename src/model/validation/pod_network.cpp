// What a pod says of names and networks: DNS settings, host aliases; and the small lists beside them.
#include <fmt/format.h>

#include "model/validation/validation.h"

namespace berth::model::validation {
namespace {

using json::get_array;
using json::get_string;

constexpr std::size_t kMaxNameservers = 3, kMaxSearches = 32, kMaxSearchCharacters = 2048;

void dns(const Value& spec, const Path& spec_at, Errors& errors) {
  const Path at = spec_at / "dnsConfig";
  const Value* config = json::find(spec, "dnsConfig");
  if (get_string(spec, {"dnsPolicy"}) == "None") {
    if (config == nullptr) return errors.required(at, "must provide `dnsConfig` when `dnsPolicy` is None");
    if (get_array(*config, {"nameservers"}).empty())
      return errors.required(at / "nameservers", "must provide at least one DNS nameserver when `dnsPolicy` is None");
  }
  if (config == nullptr) return;
  const json::Array& servers = get_array(*config, {"nameservers"});
  const Path servers_at = at / "nameservers";
  if (servers.size() > kMaxNameservers)
    errors.invalid(servers_at, Value(servers), fmt::format("must not have more than {} nameservers", kMaxNameservers));
  for (std::size_t i = 0; i < servers.size(); ++i)
    if (!is_ip(text_of(servers[i]))) errors.invalid(servers_at[i], servers[i], kIpText);
  const json::Array& searches = get_array(*config, {"searches"});
  const Path searches_at = at / "searches";
  if (searches.size() > kMaxSearches)
    errors.invalid(searches_at, Value(searches), fmt::format("must not have more than {} search paths", kMaxSearches));
  std::size_t characters = searches.empty() ? 0 : searches.size() - 1;
  for (std::size_t i = 0; i < searches.size(); ++i) {
    std::string_view search = text_of(searches[i]);
    characters += search.size();
    if (search == ".") continue;
    if (search.ends_with('.')) search.remove_suffix(1);
    if (const std::string why = check_underscored_subdomain(search); !why.empty()) errors.invalid(searches_at[i], search, why);
  }
  if (characters > kMaxSearchCharacters)
    errors.invalid(searches_at, Value(searches),
                   fmt::format("must not have more than {} characters (including spaces) in the search list", kMaxSearchCharacters));
  const Path options = at / "options";
  std::size_t i = 0;
  for (const Value& option : get_array(*config, {"options"})) {
    const Path one = options[i++];
    if (get_string(option, {"name"}).empty()) errors.required(one, "must not be empty");
  }
}

}  // namespace

void pod_network(const Value& spec, const Path& at, Errors& errors) {
  dns(spec, at, errors);
  const Path aliases = at / "hostAliases";
  std::size_t i = 0;
  for (const Value& alias : get_array(spec, {"hostAliases"})) {
    const Path one = aliases[i++];
    if (!is_ip(get_string(alias, {"ip"}))) errors.invalid(one / "ip", get_string(alias, {"ip"}), kIpText);
    const Path names = one / "hostnames";
    std::size_t k = 0;
    for (const Value& name : get_array(alias, {"hostnames"})) {
      const Path name_at = names[k++];
      if (const std::string why = check_dns1123_subdomain(text_of(name)); !why.empty()) errors.invalid(name_at, name, why);
    }
  }
  const Path gates = at / "readinessGates";
  i = 0;
  for (const Value& gate : get_array(spec, {"readinessGates"})) {
    const Path one = gates[i++];
    const std::string_view type = get_string(gate, {"conditionType"});
    if (const std::string why = check_qualified_name(type); !why.empty()) errors.invalid(one / "conditionType", type, why);
  }
}

}  // namespace berth::model::validation
