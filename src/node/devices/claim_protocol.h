// What DRA drivers and a node say to each other: the messages of Kubernetes' kubelet/pkg/apis/dra (v1 and v1beta1, which are alike) and
// dra-health (v1alpha1), names and numbers as there.
#pragma once
#include <string>
#include <string_view>

namespace berth::node::devices {

/// As drivers name what they speak when they register, the one that is taken first in front.
inline constexpr std::string_view kClaimServices[] = {"v1.DRAPlugin", "v1beta1.DRAPlugin"};

/// The package of a service's messages: "k8s.io.kubelet.pkg.apis.dra.v1" of "v1.DRAPlugin".
[[nodiscard]] inline std::string claim_package(std::string_view service) {
  return "k8s.io.kubelet.pkg.apis.dra." + std::string(service.substr(0, service.find('.')));
}

/// Behind `package NAME;`.
inline constexpr std::string_view kClaimProtocol = R"(
service DRAPlugin {
  rpc NodePrepareResources(NodePrepareResourcesRequest) returns (NodePrepareResourcesResponse);
  rpc NodeUnprepareResources(NodeUnprepareResourcesRequest) returns (NodeUnprepareResourcesResponse);
}
message Claim { string namespace = 1; string uid = 2; string name = 3; }
message Device {
  repeated string request_names = 1;
  string pool_name = 2;
  string device_name = 3;
  repeated string cdi_device_ids = 4;
  string share_id = 5;
}
message NodePrepareResourcesRequest { repeated Claim claims = 1; }
message NodePrepareResourceResponse { repeated Device devices = 1; string error = 2; }
message NodePrepareResourcesResponse { map<string, NodePrepareResourceResponse> claims = 1; }
message NodeUnprepareResourcesRequest { repeated Claim claims = 1; }
message NodeUnprepareResourceResponse { string error = 1; }
message NodeUnprepareResourcesResponse { map<string, NodeUnprepareResourceResponse> claims = 1; }
)";

inline constexpr std::string_view kHealthMethod = "v1alpha1.DRAResourceHealth/NodeWatchResources";
inline constexpr std::string_view kHealthProtocol = R"(
package v1alpha1;
service DRAResourceHealth {
  rpc NodeWatchResources(NodeWatchResourcesRequest) returns (stream NodeWatchResourcesResponse);
}
message NodeWatchResourcesRequest {}
message DeviceIdentifier { string pool_name = 1; string device_name = 2; }
message DeviceHealth {
  enum HealthStatus { UNKNOWN = 0; HEALTHY = 1; UNHEALTHY = 2; }
  DeviceIdentifier device = 1;
  HealthStatus health = 2;
  int64 last_updated_time = 3;
  int64 health_check_timeout_seconds = 4;
  string message = 5;
}
message NodeWatchResourcesResponse { repeated DeviceHealth devices = 1; }
)";

}  // namespace berth::node::devices
