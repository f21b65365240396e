// A pod's names and name service: hostname, /etc/hosts, resolv.conf (kubelet_pods.go GeneratePodHostNameAndDomain, network/dns).
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"

namespace berth::node::agent {

struct PodNames {
  std::string hostname;  ///< Within 63 characters; within 64 when it is the full name.
  std::string domain;    ///< HOSTNAME.DOMAIN is the full name; empty without spec.subdomain.
  [[nodiscard]] std::string full() const { return domain.empty() ? hostname : hostname + "." + domain; }
};

/// The names by spec.hostname, subdomain and setHostnameAsFQDN. An error when the full name that is wanted as hostname is too long.
[[nodiscard]] Result<PodNames> pod_names(const json::Value& pod, const std::string& cluster_domain);

/// The content of the pod's /etc/hosts. `host_file`: the machine's own, for pods in its network.
[[nodiscard]] std::string hosts_file(const json::Value& pod, const PodNames& names, const std::vector<std::string>& pod_ips,
                                     std::string_view host_file);

struct DnsConfig {
  std::vector<std::string> servers, searches, options;
};

/// What a resolv.conf says.
[[nodiscard]] DnsConfig parse_resolv_conf(std::string_view text);

/// By spec.dnsPolicy and dnsConfig. `cluster_servers` empty: ClusterFirst falls back to the machine's configuration, and `fell_back` is
/// set.
[[nodiscard]] DnsConfig pod_dns(const json::Value& pod, const DnsConfig& host, const std::vector<std::string>& cluster_servers,
                                const std::string& cluster_domain, bool& fell_back);

}  // namespace berth::node::agent
