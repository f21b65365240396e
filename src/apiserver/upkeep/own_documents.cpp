#include "apiserver/upkeep/own_documents.h"

namespace berth::apiserver {
namespace {

json::Object port_of(std::uint16_t port) { return {{"name", "https"}, {"port", static_cast<int>(port)}, {"protocol", "TCP"}}; }

json::Object metadata_of(const char* label, const char* value) {
  return {{"name", "kubernetes"}, {"namespace", "default"}, {"labels", json::Object{{label, value}}}};
}

}  // namespace

json::Value own_endpoints(const std::set<std::string>& addresses, std::uint16_t port) {
  json::Array list, subsets;
  for (const std::string& address : addresses) list.push_back(json::Object{{"ip", address}});
  if (!addresses.empty()) subsets.push_back(json::Object{{"addresses", std::move(list)}, {"ports", json::Array{port_of(port)}}});
  return json::Object{{"apiVersion", "v1"},
                      {"kind", "Endpoints"},
                      {"metadata", metadata_of("endpointslice.kubernetes.io/skip-mirror", "true")},
                      {"subsets", std::move(subsets)}};
}

json::Value own_slice(const std::set<std::string>& addresses, std::uint16_t port) {
  json::Array endpoints;
  for (const std::string& address : addresses)
    endpoints.push_back(json::Object{{"addresses", json::Array{json::Value(address)}}, {"conditions", json::Object{{"ready", true}}}});
  const bool is_v6 = !addresses.empty() && addresses.begin()->find(':') != std::string::npos;
  return json::Object{{"apiVersion", "discovery.k8s.io/v1"},
                      {"kind", "EndpointSlice"},
                      {"metadata", metadata_of("kubernetes.io/service-name", "kubernetes")},
                      {"addressType", is_v6 ? "IPv6" : "IPv4"},
                      {"endpoints", std::move(endpoints)},
                      {"ports", json::Array{port_of(port)}}};
}

}  // namespace berth::apiserver
