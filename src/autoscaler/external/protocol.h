// The autoscaler project's external protocols, as text of our own: names and numbers are theirs (cloudprovider/externalgrpc,
// expander/grpcplugin), and whoever speaks either speaks to these. Kubernetes' own messages (Node, Pod, metav1.Time, Any) are bytes here,
// which is the same on the wire. Where a later version moved something to another number both are there: an old provider reads and writes
// the one, a new one the other.
#pragma once
#include <string_view>

namespace berth::autoscaler::external {

inline constexpr std::string_view kProvider = "clusterautoscaler.cloudprovider.v1.externalgrpc.CloudProvider";
inline constexpr std::string_view kProviderProto = R"(
syntax = "proto3";
package clusterautoscaler.cloudprovider.v1.externalgrpc;

service CloudProvider {
  rpc NodeGroups(Nothing) returns (NodeGroupsResponse);
  rpc NodeGroupForNode(OfNode) returns (NodeGroupForNodeResponse);
  rpc PricingNodePrice(PricingNodePriceRequest) returns (Price);
  rpc PricingPodPrice(PricingPodPriceRequest) returns (Price);
  rpc GPULabel(Nothing) returns (GPULabelResponse);
  rpc GetAvailableGPUTypes(Nothing) returns (GetAvailableGPUTypesResponse);
  rpc Cleanup(Nothing) returns (Nothing);
  rpc Refresh(Nothing) returns (Nothing);
  rpc NodeGroupTargetSize(OfGroup) returns (NodeGroupTargetSizeResponse);
  rpc NodeGroupIncreaseSize(ChangeOfSize) returns (Nothing);
  rpc NodeGroupDeleteNodes(NodeGroupDeleteNodesRequest) returns (Nothing);
  rpc NodeGroupDecreaseTargetSize(ChangeOfSize) returns (Nothing);
  rpc NodeGroupNodes(OfGroup) returns (NodeGroupNodesResponse);
  rpc NodeGroupTemplateNodeInfo(OfGroup) returns (NodeGroupTemplateNodeInfoResponse);
  rpc NodeGroupGetOptions(NodeGroupAutoscalingOptionsRequest) returns (NodeGroupAutoscalingOptionsResponse);
}

message Nothing {}
message NodeGroup { string id = 1; int32 minSize = 2; int32 maxSize = 3; string debug = 4; }
message ExternalGrpcNode { string providerID = 1; string name = 2; map<string, string> labels = 3; map<string, string> annotations = 4; }
message Moment { int64 seconds = 1; int32 nanos = 2; }
message Length { int64 seconds = 1; int32 nanos = 2; }
message OldLength { int64 nanoseconds = 1; }

message NodeGroupsResponse { repeated NodeGroup nodeGroups = 1; }
message OfNode { ExternalGrpcNode node = 1; }
message OfGroup { string id = 1; }
message NodeGroupForNodeResponse { NodeGroup nodeGroup = 1; }
message PricingNodePriceRequest {
  ExternalGrpcNode node = 1;
  Moment oldStart = 2;
  Moment oldEnd = 3;
  Moment startTimestamp = 4;
  Moment endTimestamp = 5;
}
message PricingPodPriceRequest {
  bytes oldPod = 1;
  Moment oldStart = 2;
  Moment oldEnd = 3;
  bytes podBytes = 4;
  Moment startTimestamp = 5;
  Moment endTimestamp = 6;
}
message Price { double price = 1; }
message GPULabelResponse { string label = 1; }
message GetAvailableGPUTypesResponse { map<string, bytes> gpuTypes = 1; }
message NodeGroupTargetSizeResponse { int32 targetSize = 1; }
message ChangeOfSize { int32 delta = 1; string id = 2; }
message NodeGroupDeleteNodesRequest { repeated ExternalGrpcNode nodes = 1; string id = 2; }
message NodeGroupNodesResponse { repeated Instance instances = 1; }
message Instance { string id = 1; InstanceStatus status = 2; }
message InstanceStatus {
  enum InstanceState { unspecified = 0; instanceRunning = 1; instanceCreating = 2; instanceDeleting = 3; }
  InstanceState instanceState = 1;
  InstanceErrorInfo errorInfo = 2;
}
message InstanceErrorInfo { string errorCode = 1; string errorMessage = 2; int32 instanceErrorClass = 3; }
message NodeGroupTemplateNodeInfoResponse { bytes oldNode = 1; bytes nodeBytes = 2; repeated bytes resourceSliceBytes = 3; }
message NodeGroupAutoscalingOptions {
  double scaleDownUtilizationThreshold = 1;
  double scaleDownGpuUtilizationThreshold = 2;
  OldLength oldUnneeded = 3;
  OldLength oldUnready = 4;
  OldLength oldProvision = 5;
  bool zeroOrMaxNodeScaling = 6;
  bool ignoreDaemonSetsUtilization = 7;
  Length scaleDownUnneededDuration = 8;
  Length scaleDownUnreadyDuration = 9;
  Length MaxNodeProvisionDuration = 10;
  Length maxNodeStartupDuration = 11;
  bool allowNonAtomicScaleUpToMax = 12;
}
message NodeGroupAutoscalingOptionsRequest { string id = 1; NodeGroupAutoscalingOptions defaults = 2; }
message NodeGroupAutoscalingOptionsResponse { NodeGroupAutoscalingOptions nodeGroupAutoscalingOptions = 1; }
)";

inline constexpr std::string_view kExpander = "grpcplugin.Expander";
inline constexpr std::string_view kExpanderProto = R"(
syntax = "proto3";
package grpcplugin;

service Expander { rpc BestOptions(BestOptionsRequest) returns (BestOptionsResponse); }

message BestOptionsRequest { repeated Option options = 1; map<string, bytes> nodeMap = 2; map<string, bytes> nodeBytesMap = 3; }
message BestOptionsResponse { repeated Option options = 1; }
message Option { string nodeGroupId = 1; int32 nodeCount = 2; string debug = 3; repeated bytes pod = 4; repeated bytes podBytes = 5; }
)";

}  // namespace berth::autoscaler::external
