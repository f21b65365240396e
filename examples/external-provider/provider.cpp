// A reference provider for the external gRPC protocol: machines are Node objects of this cluster, which berth's fleets bring to life.
#include <fmt/format.h>

#include <cstdio>
#include <map>
#include <set>

#include "autoscaler/external/protocol.h"
#include "autoscaler/external/service.h"
#include "base/base64.h"
#include "base/config_reader.h"
#include "client/client.h"
#include "client/kubeconfig.h"
#include "model/protobuf/protobuf.h"
#include "model/quantity.h"

namespace {

using namespace berth;
using json::get_string;

const model::Gvr kNodes{"", "v1", "nodes"};

struct Group {
  std::int64_t min = 0, max = 0;
  std::string cpu, memory, zone;
  json::Object labels;                          ///< Of its nodes, beyond what all have.
  double price = 0, utilization_threshold = 0;  ///< 0: not said.
  std::int64_t next = 1;
  std::set<std::string> machines;  ///< Names of nodes; "example://NAME" to the autoscaler.
};

class Provider {
 public:
  Provider(const json::Value& config, client::Client& client) : client_(client) {
    for (const json::Value& one : json::get_array(config, {"groups"})) {
      Group group{.min = json::get_int(one, {"min"}), .max = json::get_int(one, {"max"})};
      group.cpu = get_string(one, {"cpu"});
      group.memory = get_string(one, {"memory"});
      group.zone = get_string(one, {"zone"});
      group.labels = json::get_object(one, {"labels"});
      if (const json::Value* price = json::find(one, "price"); price != nullptr && price->is_number())
        group.price = price->to_number<double>();
      if (const json::Value* share = json::find(one, "utilizationThreshold"); share != nullptr && share->is_number())
        group.utilization_threshold = share->to_number<double>();
      groups_.emplace(get_string(one, {"id"}), std::move(group));
    }
  }

  Result<json::Value> answer(std::string_view method, const json::Value& request) {
    if (method == "Refresh" || method == "Cleanup") return json::Object{};
    if (method == "NodeGroups") return list();
    if (method == "NodeGroupForNode") return group_of(std::string(get_string(request, {"node", "providerID"})));
    if (method == "GPULabel") return json::Object{{"label", "cluster-api/accelerator"}};
    if (method == "GetAvailableGPUTypes") return json::Object{{"gpuTypes", json::Object{}}};
    if (method == "PricingNodePrice") return price_of(std::string(get_string(request, {"node", "labels", "example/group"})));
    if (method == "PricingPodPrice") return price_of_pod(get_string(request, {"podBytes"}));
    const std::string id(get_string(request, {"id"}));
    const auto found = groups_.find(id);
    if (found == groups_.end())
      return method.starts_with("NodeGroup") ? fail(ErrorCode::kInternal, "there is no group " + id)
                                             : fail(ErrorCode::kNotFound, "not here");
    Group& group = found->second;
    if (method == "NodeGroupTargetSize") return json::Object{{"targetSize", std::ssize(group.machines)}};
    if (method == "NodeGroupNodes") return machines_of(group);
    if (method == "NodeGroupGetOptions") return options_of(group, request);
    if (method == "NodeGroupTemplateNodeInfo") return template_of(id, group);
    if (method == "NodeGroupIncreaseSize") return grow(id, group, json::get_int(request, {"delta"}));
    if (method == "NodeGroupDecreaseTargetSize") return fail(ErrorCode::kInternal, "every machine that was asked for is there");
    if (method == "NodeGroupDeleteNodes") return remove(group, request);
    return fail(ErrorCode::kNotFound, "this provider does not have it");
  }

 private:
  static std::string provider_id(const std::string& machine) { return "example://" + machine; }

  json::Value list() const {
    json::Array out;
    for (const auto& [id, group] : groups_)
      out.push_back(json::Object{
          {"id", id}, {"minSize", group.min}, {"maxSize", group.max}, {"debug", fmt::format("{} CPUs, {}", group.cpu, group.memory)}});
    return json::Object{{"nodeGroups", std::move(out)}};
  }
  json::Value group_of(const std::string& machine) const {
    for (const auto& [id, group] : groups_)
      for (const std::string& one : group.machines)
        if (provider_id(one) == machine)
          return json::Object{{"nodeGroup", json::Object{{"id", id}, {"minSize", group.min}, {"maxSize", group.max}}}};
    return json::Object{{"nodeGroup", json::Object{{"id", ""}}}};
  }
  Result<json::Value> price_of(const std::string& id) const {
    const auto found = groups_.find(id);
    if (found == groups_.end()) return fail(ErrorCode::kInternal, "no price is known of this node");
    return json::Object{{"price", found->second.price}};
  }
  /// By what its containers ask for.
  static Result<json::Value> price_of_pod(std::string_view encoded) {
    const std::string bytes = base64_decode(encoded).value_or("");
    const auto pod = model::decode_protobuf(model::protobuf_head("v1", "Pod", bytes.size()) + bytes + std::string(model::protobuf_tail()));
    if (!pod) return fail(ErrorCode::kInternal, "this is no Pod");
    double price = 0;
    for (const json::Value& container : json::get_array(*pod, {"spec", "containers"}))
      for (const auto& [resource, rate] : {std::pair("cpu", 0.03), std::pair("memory", 0.004 / (1LL << 30))})
        if (const auto amount = model::Quantity::parse(get_string(container, {"resources", "requests", resource})))
          price += amount->as_double() * rate;
    return json::Object{{"price", price}};
  }
  /// What the autoscaler would do anyway, but for what the group's file says.
  static json::Value options_of(const Group& group, const json::Value& request) {
    json::Object options = json::get_object(request, {"defaults"});
    if (group.utilization_threshold > 0) options["scaleDownUtilizationThreshold"] = group.utilization_threshold;
    return json::Object{{"nodeGroupAutoscalingOptions", std::move(options)}};
  }
  static json::Value machines_of(const Group& group) {
    json::Array out;
    for (const std::string& one : group.machines)
      out.push_back(json::Object{{"id", provider_id(one)}, {"status", json::Object{{"instanceState", "instanceRunning"}}}});
    return json::Object{{"instances", std::move(out)}};
  }

  static json::Object node_of(const std::string& id, const Group& group, const std::string& name) {
    const json::Object capacity = {{"cpu", group.cpu}, {"memory", group.memory}, {"pods", "110"}};
    json::Object labels = group.labels;
    labels["kubernetes.io/hostname"] = name;
    labels["kubernetes.io/os"] = "linux";
    labels["example/group"] = id;
    labels["topology.kubernetes.io/zone"] = group.zone;
    return {
        {"apiVersion", "v1"},
        {"kind", "Node"},
        {"metadata",
         json::Object{{"name", name},
                      {"labels", std::move(labels)},
                      {"annotations", json::Object{{"sim.berth.dev/fleet", "default"},
                                                   {"sim.berth.dev/capacity", fmt::format("cpu={},memory={}", group.cpu, group.memory)}}}}},
        {"spec", json::Object{{"providerID", provider_id(name)}}},
        {"status", json::Object{{"capacity", capacity}, {"allocatable", capacity}}}};
  }
  static Result<json::Value> template_of(const std::string& id, const Group& group) {
    std::string bytes;
    const json::Value node = node_of(id, group, "template-" + id);
    if (!model::encode_message(*model::protobuf_type("v1", "Node"), json::serialize(node), bytes))
      return fail(ErrorCode::kInternal, "no template");
    // Old autoscalers read the one, new ones the other.
    return json::Object{{"oldNode", base64_encode(bytes)}, {"nodeBytes", base64_encode(bytes)}};
  }

  Result<json::Value> grow(const std::string& id, Group& group, std::int64_t delta) {
    if (delta <= 0 || std::ssize(group.machines) + delta > group.max)
      return fail(ErrorCode::kInternal, fmt::format("{} more is beyond {}", delta, group.max));
    for (; delta > 0; --delta) {
      const std::string name = fmt::format("{}-{}", id, group.next++);
      if (const auto made = client_.create_and_wait(kNodes, "", node_of(id, group, name)); !made)
        return fail(ErrorCode::kInternal, made.error().message);
      group.machines.insert(name);
      fmt::print("{} is switched on\n", name);
    }
    std::fflush(stdout);
    return json::Object{};
  }
  Result<json::Value> remove(Group& group, const json::Value& request) {
    for (const json::Value& node : json::get_array(request, {"nodes"})) {
      const std::string id(get_string(node, {"providerID"})), name = id.substr(std::min(id.size(), provider_id("").size()));
      if (group.machines.erase(name) == 0) return fail(ErrorCode::kInternal, id + " is none of this group");
      client::Call call{.verb = "delete", .gvr = kNodes, .name = name};
      if (const auto gone = client_.call_and_wait(std::move(call)); !gone && gone.error().code != 404)
        return fail(ErrorCode::kInternal, gone.error().message);
      fmt::print("{} is switched off\n", name);
    }
    std::fflush(stdout);
    return json::Object{};
  }

  client::Client& client_;
  std::map<std::string, Group> groups_;
};

/// The rest of the command line: certificate, key and, for who must show a certificate, the authority of clients.
Result<autoscaler::external::ServiceOptions> options_of(int argc, char** argv) {
  autoscaler::external::ServiceOptions out{.address = argv[1], .certificate_pem = {}, .key_pem = {}, .client_ca_pem = {}};
  std::string* const targets[] = {&out.certificate_pem, &out.key_pem, &out.client_ca_pem};
  for (int i = 4; i < argc; ++i) {
    auto text = config::read_whole_file(argv[i]);
    if (!text) return std::unexpected(text.error());
    *targets[i - 4] = std::move(*text);
  }
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4 && argc != 6 && argc != 7) {
    fmt::print(stderr, "usage: {} HOST:PORT GROUPS.yaml KUBECONFIG [CERTIFICATE KEY [CLIENTS' AUTHORITY]]\n", argv[0]);
    return 2;
  }
  const auto text = config::read_whole_file(argv[2]);
  const auto groups = text ? json::parse_yaml(*text) : Result<json::Value>(std::unexpected(text.error()));
  auto transport = client::transport_from_kubeconfig(argv[3], "");
  if (!groups || !transport) {
    fmt::print(stderr, "{}\n", !groups ? groups.error().message : transport.error().message);
    return 1;
  }
  client::Client client(*transport, nullptr, "example-provider");
  Provider provider(*groups, client);
  const auto options = options_of(argc, argv);
  if (!options) {
    fmt::print(stderr, "{}\n", options.error().message);
    return 1;
  }
  auto service = autoscaler::external::Service::start(
      *options, autoscaler::external::kProviderProto,
      [&](std::string_view method, const json::Value& request) { return provider.answer(method, request); });
  if (!service) {
    fmt::print(stderr, "{}\n", service.error().message);
    return 1;
  }
  fmt::print("listening on port {}; end of input ends it\n", (*service)->port());
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
  return 0;
}
