#include "node/devices/pod_resources.h"

#include <fmt/format.h>

#include <algorithm>

#include "net/grpc.h"
#include "net/proto/messages.h"
#include "node/cpus/cpu_manager.h"
#include "node/devices/claim_drivers.h"
#include "node/devices/claim_uses.h"
#include "node/devices/device_plugins.h"
#include "node/devices/plugin_files.h"
#include "node/numa/memory_manager.h"

namespace berth::node::devices {
namespace {

using json::get_array;
using json::get_string;
using net::proto::Messages;

/// Kubernetes' kubelet/pkg/apis/podresources/v1/api.proto.
constexpr std::string_view kListerProtocol = R"(
package v1;
service PodResourcesLister {
  rpc List(ListPodResourcesRequest) returns (ListPodResourcesResponse);
  rpc GetAllocatableResources(AllocatableResourcesRequest) returns (AllocatableResourcesResponse);
  rpc Get(GetPodResourcesRequest) returns (GetPodResourcesResponse);
}
message NUMANode { int64 ID = 1; }
message TopologyInfo { repeated NUMANode nodes = 1; }
message ContainerDevices { string resource_name = 1; repeated string device_ids = 2; TopologyInfo topology = 3; }
message CDIDevice { string name = 1; }
message ClaimResource {
  repeated CDIDevice cdi_devices = 1;
  string driver_name = 2;
  string pool_name = 3;
  string device_name = 4;
  string share_id = 5;
}
message DynamicResource { string claim_name = 2; string claim_namespace = 3; repeated ClaimResource claim_resources = 4; }
message ContainerMemory { string memory_type = 1; int64 size = 2; TopologyInfo topology = 3; }
message ContainerResources {
  string name = 1;
  repeated ContainerDevices devices = 2;
  repeated int64 cpu_ids = 3;
  repeated ContainerMemory memory = 4;
  repeated DynamicResource dynamic_resources = 5;
}
message PodResources { string name = 1; string namespace = 2; repeated ContainerResources containers = 3; }
message ListPodResourcesRequest {}
message ListPodResourcesResponse { repeated PodResources pod_resources = 1; }
message AllocatableResourcesRequest {}
message AllocatableResourcesResponse {
  repeated ContainerDevices devices = 1;
  repeated int64 cpu_ids = 2;
  repeated ContainerMemory memory = 3;
}
message GetPodResourcesRequest { string pod_name = 1; string pod_namespace = 2; }
message GetPodResourcesResponse { PodResources pod_resources = 1; }
)";
constexpr std::string_view kLister = "v1.PodResourcesLister/";

template <typename Numbers>
json::Object topology(const Numbers& nodes) {
  json::Array out;
  for (const std::int64_t node : nodes) out.push_back(json::Object{{"ID", node}});
  return json::Object{{"nodes", std::move(out)}};
}

/// One entry for the devices of each set of NUMA nodes, as the kubelet has them.
json::Array written(const std::string& resource, const DeviceLedger::Devices& devices) {
  std::map<std::set<std::int64_t>, json::Array> by_place;
  for (const auto& [id, device] : devices) by_place[device.numa_nodes].push_back(json::Value(id));
  json::Array out;
  for (auto& [places, ids] : by_place) {
    json::Object entry{{"resource_name", resource}, {"device_ids", std::move(ids)}};
    if (!places.empty()) entry["topology"] = topology(places);
    out.push_back(std::move(entry));
  }
  return out;
}

json::Array written(const std::vector<numa::MemoryBlock>& blocks) {
  json::Array out;
  for (const numa::MemoryBlock& block : blocks)
    out.push_back(json::Object{{"memory_type", block.type}, {"size", block.bytes}, {"topology", topology(numa::numbers_of(block.nodes))}});
  return out;
}

json::Array numbers(const cpus::CpuSet& cpus) {
  json::Array out;
  for (const int cpu : cpus) out.push_back(static_cast<std::int64_t>(cpu));
  return out;
}

void append(json::Array& out, json::Array more) {
  for (json::Value& one : more) out.push_back(std::move(one));
}

class Lister final : public PodResources {
 public:
  Lister(PodResourcesOptions options, std::unique_ptr<Messages> messages) : options_(std::move(options)), messages_(std::move(messages)) {}

  Result<void> listen() {
    auto folder = SocketFolder::take(options_.directory);
    if (!folder) return std::unexpected(folder.error());
    folder_.emplace(std::move(*folder));
    auto service = net::GrpcService::start({.address = "unix://" + folder_->socket()},
                                           [this](const std::string& method, const std::string& bytes) { return serve(method, bytes); });
    if (!service) return std::unexpected(service.error());
    service_ = std::move(*service);
    return {};
  }

  Result<json::Value> answer(std::string_view method, const json::Value& request) const override {
    if (method == "List") {
      json::Array pods;
      for (const json::Value& pod : options_.pods()) pods.push_back(of_pod(pod));
      return json::Object{{"pod_resources", std::move(pods)}};
    }
    if (method == "GetAllocatableResources") {
      json::Array devices;
      if (options_.plugins != nullptr)
        for (const auto& [resource, all] : options_.plugins->healthy_devices()) append(devices, written(resource, all));
      return json::Object{{"devices", std::move(devices)},
                          {"cpu_ids", options_.cpus == nullptr ? json::Array() : numbers(options_.cpus->allocatable())},
                          {"memory", options_.memory == nullptr ? json::Array() : written(options_.memory->allocatable())}};
    }
    if (method != "Get") return fail(ErrorCode::kNotFound, fmt::format("unknown method {}", method));
    const auto name = get_string(request, {"pod_name"}), ns = get_string(request, {"pod_namespace"});
    for (const json::Value& pod : options_.pods())
      if (get_string(pod, {"metadata", "name"}) == name && get_string(pod, {"metadata", "namespace"}) == ns)
        return json::Object{{"pod_resources", of_pod(pod)}};
    return fail(ErrorCode::kInvalid, fmt::format("pod {} in namespace {} not found", name, ns));
  }

 private:
  net::GrpcAnswer serve(const std::string& path, const std::string& bytes) const {
    const auto failed = [](net::GrpcCode code, const Error& why) {
      return std::unexpected(net::GrpcFailure{static_cast<int>(code), why.message});
    };
    const std::string method = path.substr(1);
    const auto request = messages_->decode(method, Messages::Side::kRequest, bytes);
    if (!request)
      return failed(request.error().code == ErrorCode::kNotFound ? net::GrpcCode::kUnimplemented : net::GrpcCode::kInvalidArgument,
                    request.error());
    const auto answered = answer(std::string_view(method).substr(kLister.size()), *request);
    if (!answered) return failed(net::GrpcCode::kUnknown, answered.error());
    auto out = messages_->encode(method, Messages::Side::kAnswer, *answered);
    if (!out) return failed(net::GrpcCode::kInternal, out.error());
    return std::move(*out);
  }

  /// Of init containers only sidecars still have what they were given once the pod runs.
  json::Value of_pod(const json::Value& pod) const {
    json::Array containers;
    for (const std::string_view list : {"initContainers", "containers"})
      for (const json::Value& container : get_array(pod, {"spec", list}))
        if (list == "containers" || get_string(container, {"restartPolicy"}) == "Always")
          containers.push_back(of_container(pod, container));
    return json::Object{{"name", get_string(pod, {"metadata", "name"})},
                        {"namespace", get_string(pod, {"metadata", "namespace"})},
                        {"containers", std::move(containers)}};
  }

  json::Value of_container(const json::Value& pod, const json::Value& container) const {
    json::Array devices, claims;
    const std::string name(get_string(container, {"name"})), uid(get_string(pod, {"metadata", "uid"}));
    if (options_.plugins != nullptr)
      for (const auto& [resource, held] : options_.plugins->held(uid, name)) append(devices, written(resource, held));
    if (options_.claims != nullptr) {
      std::set<std::string> told;
      for (const auto& use : container_claims(pod, container))
        if (const auto claim = told.insert(use.claim).second ? options_.claims->claim(use.ns, use.claim) : std::nullopt)
          claims.push_back(of_claim(*claim));
    }
    return json::Object{{"name", name},
                        {"devices", std::move(devices)},
                        {"cpu_ids", options_.cpus == nullptr ? json::Array() : numbers(options_.cpus->own(uid, name))},
                        {"memory", options_.memory == nullptr ? json::Array() : written(options_.memory->blocks(uid, name))},
                        {"dynamic_resources", std::move(claims)}};
  }

  static json::Value of_claim(const ClaimLedger::Claim& claim) {
    json::Array resources;
    for (const auto& [driver, devices] : claim.drivers)
      if (devices)
        for (const ClaimLedger::Device& device : *devices) {
          json::Array ids;
          for (const std::string& id : device.cdi_ids) ids.push_back(json::Object{{"name", id}});
          resources.push_back(json::Object{{"cdi_devices", std::move(ids)},
                                           {"driver_name", driver},
                                           {"pool_name", device.pool},
                                           {"device_name", device.name},
                                           {"share_id", device.share}});
        }
    return json::Object{{"claim_name", claim.id.name}, {"claim_namespace", claim.id.ns}, {"claim_resources", std::move(resources)}};
  }

  const PodResourcesOptions options_;
  const std::unique_ptr<Messages> messages_;
  std::optional<SocketFolder> folder_;
  std::unique_ptr<net::GrpcService> service_;
};

}  // namespace

Result<std::unique_ptr<PodResources>> PodResources::start(PodResourcesOptions options) {
  auto messages = Messages::of(kListerProtocol);
  if (!messages) return std::unexpected(messages.error());
  auto out = std::make_unique<Lister>(std::move(options), std::move(*messages));
  if (auto listening = out->listen(); !listening) return std::unexpected(listening.error());
  return out;
}

}  // namespace berth::node::devices
