// What a node's kernel has to know of Services: addresses and ports that lead somewhere, and where. Made of Service and EndpointSlice
// documents, by the rules of kube-proxy (pkg/proxy/topology.go CategorizeEndpoints, servicechangetracker.go). Pure.
#pragma once
#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/json.h"

namespace berth::node::services {

struct Endpoint {
  std::string address;
  std::uint16_t port = 0;
  bool is_local = false;  ///< On this node.
  friend auto operator<=>(const Endpoint&, const Endpoint&) = default;
};

/// One port of a Service in one address family.
struct ServicePort {
  std::string name;      ///< "NAMESPACE/NAME:PORTNAME"
  std::string protocol;  ///< tcp, udp, sctp
  std::string cluster_ip;
  std::uint16_t port = 0, node_port = 0;                ///< node_port 0: none.
  std::vector<std::string> external_ips;                ///< spec.externalIPs and the load balancer's addresses (ipMode VIP).
  bool external_local = false, internal_local = false;  ///< Traffic policies "Local".
  int affinity_seconds = 0;                             ///< sessionAffinity ClientIP; 0: none.
  std::vector<std::string> balancer_ips;                ///< Those of external_ips that source_ranges are for.
  std::vector<std::string> source_ranges;               ///< loadBalancerSourceRanges; none: everybody.
  std::vector<Endpoint> endpoints;                      ///< In order; for internal traffic with the policy Cluster.
  std::vector<Endpoint> local_endpoints;                ///< Those of them on this node.
  std::vector<Endpoint> serving;                        ///< UDP: all that serve, wherever traffic is led now.
  bool is_ipv6 = false;
  friend bool operator==(const ServicePort&, const ServicePort&) = default;
};

/// By name and family ("a/b:http", "a/b:http/6").
using ServiceTable = std::map<std::string, ServicePort>;

/// Endpoints of this node that are ready, by address.
int ready_endpoints_on(const std::vector<const json::Value*>& slices, const std::string& node);

/// The ports of one Service. `slices`: its EndpointSlices (label kubernetes.io/service-name), any order. Headless and ExternalName Services
/// have none, and those that another proxy serves (label service.kubernetes.io/service-proxy-name). Ready endpoints count; when there is
/// none, those that still serve while they end. `zone`: this node's; endpoints with hints for other zones are left out when every endpoint
/// has a hint and one is for this zone (topology aware routing), and so are those for other nodes (trafficDistribution PreferSameNode).
void add_service(const json::Value& service, const std::vector<const json::Value*>& slices, const std::string& node,
                 const std::string& zone, ServiceTable& into);

}  // namespace berth::node::services
