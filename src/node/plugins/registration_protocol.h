// What a node and the plugins whose sockets it finds say to each other: the messages of Kubernetes' pluginregistration v1
// (kubelet/pkg/apis/pluginregistration/v1/api.proto), names and numbers as there.
#pragma once
#include <string_view>

namespace berth::node::plugins {

inline constexpr std::string_view kRegistrationProtocol = R"(
package pluginregistration;
service Registration {
  rpc GetInfo(InfoRequest) returns (PluginInfo);
  rpc NotifyRegistrationStatus(RegistrationStatus) returns (RegistrationStatusResponse);
}
message InfoRequest {}
message PluginInfo {
  string type = 1;
  string name = 2;
  string endpoint = 3;
  repeated string supported_versions = 4;
}
message RegistrationStatus { bool plugin_registered = 1; string error = 2; }
message RegistrationStatusResponse {}
)";

}  // namespace berth::node::plugins
