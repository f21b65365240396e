// What a node says to CSI drivers: the messages of the Container Storage Interface 1.x, as far as a node speaks it (container-storage-
// interface/spec, csi.proto), names and numbers as there. Of a oneof one field is set.
#pragma once
#include <string_view>

namespace berth::node::csi {

inline constexpr std::string_view kCsiProtocol = R"(
package csi.v1;
service Identity {
  rpc GetPluginInfo(GetPluginInfoRequest) returns (GetPluginInfoResponse);
  rpc Probe(ProbeRequest) returns (ProbeResponse);
}
service Node {
  rpc NodeStageVolume(NodeStageVolumeRequest) returns (NodeStageVolumeResponse);
  rpc NodeUnstageVolume(NodeUnstageVolumeRequest) returns (NodeUnstageVolumeResponse);
  rpc NodePublishVolume(NodePublishVolumeRequest) returns (NodePublishVolumeResponse);
  rpc NodeUnpublishVolume(NodeUnpublishVolumeRequest) returns (NodeUnpublishVolumeResponse);
  rpc NodeGetVolumeStats(NodeGetVolumeStatsRequest) returns (NodeGetVolumeStatsResponse);
  rpc NodeExpandVolume(NodeExpandVolumeRequest) returns (NodeExpandVolumeResponse);
  rpc NodeGetCapabilities(NodeGetCapabilitiesRequest) returns (NodeGetCapabilitiesResponse);
  rpc NodeGetInfo(NodeGetInfoRequest) returns (NodeGetInfoResponse);
}
message GetPluginInfoRequest {}
message GetPluginInfoResponse { string name = 1; string vendor_version = 2; map<string, string> manifest = 3; }
message ProbeRequest {}
message ProbeResponse {}
message BlockVolume {}
message MountVolume { string fs_type = 1; repeated string mount_flags = 2; string volume_mount_group = 3; }
message AccessMode {
  enum Mode {
    UNKNOWN = 0;
    SINGLE_NODE_WRITER = 1;
    SINGLE_NODE_READER_ONLY = 2;
    MULTI_NODE_READER_ONLY = 3;
    MULTI_NODE_SINGLE_WRITER = 4;
    MULTI_NODE_MULTI_WRITER = 5;
    SINGLE_NODE_SINGLE_WRITER = 6;
    SINGLE_NODE_MULTI_WRITER = 7;
  }
  Mode mode = 1;
}
message VolumeCapability { BlockVolume block = 1; MountVolume mount = 2; AccessMode access_mode = 3; }
message CapacityRange { int64 required_bytes = 1; int64 limit_bytes = 2; }
message NodeStageVolumeRequest {
  string volume_id = 1;
  map<string, string> publish_context = 2;
  string staging_target_path = 3;
  VolumeCapability volume_capability = 4;
  map<string, string> secrets = 5;
  map<string, string> volume_context = 6;
}
message NodeStageVolumeResponse {}
message NodeUnstageVolumeRequest { string volume_id = 1; string staging_target_path = 2; }
message NodeUnstageVolumeResponse {}
message NodePublishVolumeRequest {
  string volume_id = 1;
  map<string, string> publish_context = 2;
  string staging_target_path = 3;
  string target_path = 4;
  VolumeCapability volume_capability = 5;
  bool readonly = 6;
  map<string, string> secrets = 7;
  map<string, string> volume_context = 8;
}
message NodePublishVolumeResponse {}
message NodeUnpublishVolumeRequest { string volume_id = 1; string target_path = 2; }
message NodeUnpublishVolumeResponse {}
message NodeGetVolumeStatsRequest { string volume_id = 1; string volume_path = 2; string staging_target_path = 3; }
message VolumeUsage {
  enum Unit {
    UNKNOWN = 0;
    BYTES = 1;
    INODES = 2;
  }
  int64 available = 1;
  int64 total = 2;
  int64 used = 3;
  Unit unit = 4;
}
message VolumeCondition { bool abnormal = 1; string message = 2; }
message NodeGetVolumeStatsResponse { repeated VolumeUsage usage = 1; VolumeCondition volume_condition = 2; }
message NodeExpandVolumeRequest {
  string volume_id = 1;
  string volume_path = 2;
  CapacityRange capacity_range = 3;
  string staging_target_path = 4;
  VolumeCapability volume_capability = 5;
  map<string, string> secrets = 6;
}
message NodeExpandVolumeResponse { int64 capacity_bytes = 1; }
message NodeGetCapabilitiesRequest {}
message NodeRpc {
  enum Type {
    UNKNOWN = 0;
    STAGE_UNSTAGE_VOLUME = 1;
    GET_VOLUME_STATS = 2;
    EXPAND_VOLUME = 3;
    VOLUME_CONDITION = 4;
    SINGLE_NODE_MULTI_WRITER = 5;
    VOLUME_MOUNT_GROUP = 6;
  }
  Type type = 1;
}
message NodeServiceCapability { NodeRpc rpc = 1; }
message NodeGetCapabilitiesResponse { repeated NodeServiceCapability capabilities = 1; }
message NodeGetInfoRequest {}
message Topology { map<string, string> segments = 1; }
message NodeGetInfoResponse { string node_id = 1; int64 max_volumes_per_node = 2; Topology accessible_topology = 3; }
)";

}  // namespace berth::node::csi
