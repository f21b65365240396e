#include "node/agent/pod_network.h"

#include "base/split.h"

namespace berth::node::agent {
namespace {

constexpr std::size_t kMaxHostname = 63, kMaxFullName = 64;
constexpr std::size_t kMaxServers = 3, kMaxSearches = 32, kMaxSearchCharacters = 2048;

std::vector<std::string> strings(const json::Value& root, json::Path path) {
  std::vector<std::string> out;
  for (const json::Value& entry : json::get_array(root, path))
    if (entry.is_string()) out.emplace_back(json::as_view(entry));
  return out;
}

void add_unique(std::vector<std::string>& list, std::string text) {
  if (std::ranges::find(list, text) == list.end()) list.push_back(std::move(text));
}

std::string option_name(std::string_view option) { return std::string(option.substr(0, option.find(':'))); }

}  // namespace

Result<PodNames> pod_names(const json::Value& pod, const std::string& cluster_domain) {
  PodNames names;
  // KEP-4762: the name as it is, with no domain.
  if (const std::string_view name = json::get_string(pod, {"spec", "hostnameOverride"}); !name.empty()) {
    names.hostname = name;
    return names;
  }
  names.hostname = json::get_string(pod, {"spec", "hostname"});
  if (names.hostname.empty()) {
    names.hostname = std::string(json::get_string(pod, {"metadata", "name"})).substr(0, kMaxHostname);
    while (names.hostname.ends_with('-') || names.hostname.ends_with('.')) names.hostname.pop_back();
  }
  if (const std::string_view subdomain = json::get_string(pod, {"spec", "subdomain"}); !subdomain.empty())
    names.domain = fmt::format("{}.{}.svc.{}", subdomain, json::get_string(pod, {"metadata", "namespace"}), cluster_domain);
  if (json::get_bool(pod, {"spec", "setHostnameAsFQDN"}) && !names.domain.empty()) {
    const std::string full = names.full();
    if (full.size() > kMaxFullName)
      return invalid(
          fmt::format("failed to construct FQDN from pod hostname and cluster domain, FQDN {} is too long ({} characters is the max, {} "
                      "characters requested)",
                      full, kMaxFullName, full.size()));
    names.hostname = full;
    // The full name stands first in /etc/hosts either way.
    names.domain.clear();
  }
  return names;
}

std::string hosts_file(const json::Value& pod, const PodNames& names, const std::vector<std::string>& pod_ips, std::string_view host_file) {
  std::string out;
  if (json::get_bool(pod, {"spec", "hostNetwork"})) {
    out = "# Kubernetes-managed hosts file (host network).\n";
    out += host_file;
    if (!out.ends_with('\n')) out += '\n';
  } else {
    out =
        "# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost "
        "ip6-loopback\nfe00::\tip6-localnet\nfe00::\tip6-mcastprefix\nfe00::1\tip6-allnodes\nfe00::2\tip6-allrouters\n";
    for (const std::string& ip : pod_ips)
      out += names.domain.empty() ? fmt::format("{}\t{}\n", ip, names.hostname)
                                  : fmt::format("{}\t{}\t{}\n", ip, names.full(), names.hostname);
  }
  const json::Array& aliases = json::get_array(pod, {"spec", "hostAliases"});
  if (aliases.empty()) return out;
  out += "\n# Entries added by HostAliases.\n";
  for (const json::Value& alias : aliases)
    out += fmt::format("{}\t{}\n", json::get_string(alias, {"ip"}), fmt::join(strings(alias, {"hostnames"}), "\t"));
  return out;
}

DnsConfig parse_resolv_conf(std::string_view text) {
  DnsConfig out;
  for (const std::string_view line : split(text, '\n')) {
    std::vector<std::string> words;
    for (std::size_t at = 0; at < line.size();) {
      const std::size_t from = line.find_first_not_of(" \t\r", at);
      if (from == std::string_view::npos || line[from] == '#' || line[from] == ';') break;
      const std::size_t to = std::min(line.find_first_of(" \t\r", from), line.size());
      words.emplace_back(line.substr(from, to - from));
      at = to;
    }
    if (words.size() < 2) continue;
    if (words[0] == "nameserver") out.servers.push_back(words[1]);
    // The last search line counts.
    if (words[0] == "search" || words[0] == "domain") out.searches.assign(words.begin() + 1, words.end());
    if (words[0] == "options") out.options.assign(words.begin() + 1, words.end());
  }
  return out;
}

DnsConfig pod_dns(const json::Value& pod, const DnsConfig& host, const std::vector<std::string>& cluster_servers,
                  const std::string& cluster_domain, bool& fell_back) {
  std::string_view policy = json::get_string(pod, {"spec", "dnsPolicy"}, "ClusterFirst");
  const bool host_network = json::get_bool(pod, {"spec", "hostNetwork"});
  if (policy == "ClusterFirst" && host_network) policy = "Default";
  if (policy == "ClusterFirstWithHostNet") policy = "ClusterFirst";
  fell_back = policy == "ClusterFirst" && cluster_servers.empty();
  if (fell_back) policy = "Default";
  DnsConfig out;
  if (policy == "ClusterFirst") {
    const std::string_view ns = json::get_string(pod, {"metadata", "namespace"});
    out.servers = cluster_servers;
    out.searches = {fmt::format("{}.svc.{}", ns, cluster_domain), "svc." + cluster_domain, cluster_domain};
    for (const std::string& search : host.searches) add_unique(out.searches, search);
    out.options = {"ndots:5"};
  } else if (policy == "Default") {
    out = host;
  }
  for (std::string& server : strings(pod, {"spec", "dnsConfig", "nameservers"})) add_unique(out.servers, std::move(server));
  for (std::string& search : strings(pod, {"spec", "dnsConfig", "searches"})) add_unique(out.searches, std::move(search));
  for (const json::Value& option : json::get_array(pod, {"spec", "dnsConfig", "options"})) {
    const std::string name(json::get_string(option, {"name"}));
    std::erase_if(out.options, [&](const std::string& before) { return option_name(before) == name; });
    const json::Value* value = json::find(option, "value");
    out.options.push_back(value && value->is_string() ? fmt::format("{}:{}", name, json::as_view(*value)) : name);
  }
  if (out.servers.size() > kMaxServers) out.servers.resize(kMaxServers);
  if (out.searches.size() > kMaxSearches) out.searches.resize(kMaxSearches);
  while (out.searches.size() > 1 && fmt::format("{}", fmt::join(out.searches, " ")).size() > kMaxSearchCharacters) out.searches.pop_back();
  return out;
}

}  // namespace berth::node::agent
