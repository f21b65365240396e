// The external gRPC protocol: what a provider says is read and checked, what it does not say changes nothing; calls over real gRPC.
#include "autoscaler/external/external_provider.h"

#include <atomic>
#include <condition_variable>
#include <fstream>
#include <future>
#include <mutex>

#include "autoscaler/external/expander_client.h"
#include "autoscaler/external/protocol.h"
#include "autoscaler/external/provider_state.h"
#include "autoscaler/external/service.h"
#include "base/base64.h"
#include "cluster_builder.h"
#include "model/protobuf/protobuf.h"

namespace berth::autoscaler::testing {
namespace {

using external::KnownNode;

/// A text that begins with a brace would be read as JSON.
json::Value flow(const std::string& text) { return yaml("# YAML\n" + text); }

/// A node's message as an old provider sends it, or a new one.
std::string node_bytes(const std::string& text) {
  std::string out;
  EXPECT_TRUE(model::encode_message(*model::protobuf_type("v1", "Node"), json::serialize(flow(text)), out));
  return base64_encode(out);
}

/// Answers by method, then by the group asked for; what has no answer is not implemented.
struct Script {
  std::map<std::string, std::string> answers;
  std::map<std::string, Error> failures;
  std::vector<std::string> asked;

  Result<json::Value> operator()(std::string_view method, const json::Value& request) {
    std::string key(method);
    if (const auto id = json::get_string(request, {"id"}); !id.empty()) key += " " + std::string(id);
    if (const auto node = json::get_string(request, {"node", "name"}); !node.empty()) key += " " + std::string(node);
    asked.push_back(key);
    if (const auto found = failures.find(key); found != failures.end()) return std::unexpected(found->second);
    const auto found = answers.find(key);
    if (found == answers.end()) return fail(ErrorCode::kNotFound, "unimplemented");
    return flow(found->second);
  }
};

struct Provided {
  Script script;
  std::vector<KnownNode> nodes;
  external::Memory memory;
  Options options;

  Provided() {
    script.answers = {{"Refresh", "{}"},
                      {"NodeGroups", "{nodeGroups: [{id: b, minSize: 0, maxSize: 3}, {id: a, minSize: 1, maxSize: 5}]}"},
                      {"NodeGroupTargetSize a", "{targetSize: 2}"},
                      {"NodeGroupTargetSize b", "{targetSize: 0}"},
                      {"NodeGroupNodes a",
                       "{instances: [{id: 'p://1', status: {instanceState: instanceRunning}}, {id: 'p://2', status: "
                       "{instanceState: instanceCreating}}]}"},
                      {"NodeGroupNodes b", "{instances: []}"},
                      {"NodeGroupForNode other", "{nodeGroup: {id: ''}}"},
                      {"NodeGroupForNode n1", "{nodeGroup: {id: ''}}"}};
    nodes = {{"n1", "p://1", {}, {}, true}, {"other", "q://9", {}, {}, true}};
  }
  ProviderState read() {
    const external::Ask ask = [this](std::string_view method, const json::Value& request) { return script(method, request); };
    return external::read_state(ask, nodes, options, *parse_rfc3339("2026-01-01T00:00:00Z"), memory);
  }
};

std::vector<std::string> ids(const ProviderState& state) {
  std::vector<std::string> out;
  for (const NodeGroup& group : state.groups) out.push_back(group.id);
  return out;
}
using Texts = std::vector<std::string>;

TEST(ExternalState, GroupsWithTheirMachinesAndTheNodesTheyBecame) {
  Provided provided;
  const ProviderState state = provided.read();
  EXPECT_TRUE(state.is_usable);
  EXPECT_EQ(state.problems, Texts{});
  ASSERT_EQ(ids(state), (Texts{"a", "b"}));
  const NodeGroup& group = state.groups[0];
  EXPECT_EQ(std::tuple(group.min, group.max, group.target), std::tuple(1, 5, 2));
  ASSERT_EQ(group.instances.size(), 2U);
  EXPECT_EQ(std::pair(group.instances[0].id, group.instances[0].node), std::pair(std::string("p://1"), std::string("n1")));
  EXPECT_EQ(group.instances[1].node, "");
}

TEST(ExternalState, TemplatesAndOptionsOfOldAndNewProviders) {
  Provided provided;
  const std::string node =
      "{metadata: {name: t, labels: {pool: x}}, status: {capacity: {cpu: '8', memory: 32Gi, pods: '110', nvidia.com/gpu: '2'}}}";
  provided.script.answers["NodeGroupTemplateNodeInfo a"] = "{nodeBytes: '" + node_bytes(node) + "', oldNode: ''}";
  provided.script.answers["NodeGroupTemplateNodeInfo b"] = "{nodeBytes: '', oldNode: '" + node_bytes(node) + "'}";
  provided.script.answers["NodeGroupGetOptions a"] =
      "{nodeGroupAutoscalingOptions: {scaleDownUtilizationThreshold: 0.7, scaleDownGpuUtilizationThreshold: 0, scaleDownUnneededDuration: "
      "{seconds: '90', nanos: 0}}}";
  provided.script.answers["NodeGroupGetOptions b"] =
      "{nodeGroupAutoscalingOptions: {scaleDownUtilizationThreshold: 0, oldUnneeded: {nanoseconds: '60000000000'}}}";
  const ProviderState state = provided.read();
  ASSERT_EQ(state.groups.size(), 2U);
  for (const NodeGroup& group : state.groups) {
    ASSERT_NE(group.template_node, nullptr) << group.id;
    EXPECT_EQ(*group.template_node->labels().get("pool"), "x");
    EXPECT_EQ(model::find_resource(group.template_node->allocatable, "nvidia.com/gpu")->value(), 2);
  }
  EXPECT_EQ(state.groups[0].overrides.utilization_threshold, 0.7);
  EXPECT_EQ(state.groups[0].overrides.gpu_utilization_threshold, std::nullopt);
  EXPECT_EQ(state.groups[0].overrides.unneeded_time, Duration(90s));
  EXPECT_EQ(state.groups[1].overrides.unneeded_time, Duration(60s));
}

TEST(ExternalState, ATemplateThatChangesHoldsFromTheNextReadingOnAndOneThatIsSilentStays) {
  Provided provided;
  provided.script.answers["NodeGroupTemplateNodeInfo b"] = "{nodeBytes: '', oldNode: ''}";
  const auto cores = [&](const std::string& cpu) -> std::int64_t {
    const std::string node = "{metadata: {name: t}, status: {capacity: {cpu: '" + cpu + "', memory: 32Gi, pods: '110'}}}";
    provided.script.answers["NodeGroupTemplateNodeInfo a"] = "{nodeBytes: '" + node_bytes(node) + "', oldNode: ''}";
    const ProviderState state = provided.read();
    if (state.groups.size() != 2 || state.groups[0].template_node == nullptr) return -1;
    return model::find_resource(state.groups[0].template_node->allocatable, "cpu")->value();
  };
  EXPECT_EQ(cores("8"), 8);
  EXPECT_EQ(cores("4"), 4);
  provided.script.failures["NodeGroupTemplateNodeInfo a"] = {ErrorCode::kInternal, "not now"};
  EXPECT_EQ(cores("2"), 4);
}

TEST(ExternalState, WhatGpusAreLabelledWithIsAskedOnceAndAnewOfWhoWasSilent) {
  Provided provided;
  provided.script.answers["GPULabel"] = "{label: cloud.example/accelerator}";
  provided.script.answers["GetAvailableGPUTypes"] = "{gpuTypes: {fast: '', slow: ''}}";
  const ProviderState state = provided.read();
  EXPECT_EQ(state.gpu_label, "cloud.example/accelerator");
  EXPECT_EQ(state.gpu_types, (std::set<std::string>{"fast", "slow"}));
  provided.script.answers["GPULabel"] = "{label: other}";
  EXPECT_EQ(provided.read().gpu_label, "cloud.example/accelerator");
  provided.script.failures["NodeGroupNodes b"] = {ErrorCode::kUnavailable, "Deadline Exceeded"};
  (void)provided.read();
  EXPECT_EQ(provided.read().gpu_label, "other");
  Provided silent;
  EXPECT_EQ(silent.read().gpu_label, std::nullopt);
}

TEST(ExternalState, PodsArePricedWhereTheExpanderGoesByPrices) {
  Provided provided;
  provided.script.answers["PricingPodPrice"] = "{price: 0.25}";
  const std::vector<external::KnownPod> pods = {{"1000m 1", flow("{metadata: {name: p}, spec: {containers: []}}")}};
  const external::Ask ask = [&](std::string_view method, const json::Value& request) { return provided.script(method, request); };
  const auto read = [&] { return external::read_state(ask, provided.nodes, provided.options, TimePoint{}, provided.memory, pods); };
  EXPECT_TRUE(read().pod_prices.empty());
  provided.options.expanders = {Expander::kPrice};
  EXPECT_EQ(read().pod_prices, (std::map<std::string, double>{{"1000m 1", 0.25}}));
  provided.script.answers["PricingPodPrice"] = "{price: 0}";
  EXPECT_TRUE(read().pod_prices.empty()) << "who knows no price says zero";
}

TEST(ExternalState, WhatIsNotAnsweredLeavesItsGroupAlone) {
  Provided provided;
  provided.script.failures["NodeGroupNodes a"] = {ErrorCode::kUnavailable, "Deadline Exceeded"};
  const ProviderState state = provided.read();
  EXPECT_TRUE(state.is_usable);
  EXPECT_EQ(ids(state), Texts{"b"});
  ASSERT_FALSE(state.problems.empty());
  EXPECT_EQ(state.problems[0], "provider: a: NodeGroupNodes: Deadline Exceeded");
}

TEST(ExternalState, AProviderThatIsSilentMakesNothingHappen) {
  Provided provided;
  provided.script.failures["Refresh"] = {ErrorCode::kUnavailable, "Deadline Exceeded"};
  EXPECT_FALSE(provided.read().is_usable);
  provided.script.failures = {{"NodeGroupTargetSize a", {ErrorCode::kUnavailable, "x"}},
                              {"NodeGroupNodes a", {ErrorCode::kUnavailable, "x"}},
                              {"NodeGroupTargetSize b", {ErrorCode::kUnavailable, "x"}}};
  provided.script.asked.clear();
  const ProviderState state = provided.read();
  EXPECT_FALSE(state.is_usable);
  EXPECT_TRUE(state.groups.empty());
  EXPECT_EQ(provided.script.asked.back(), "NodeGroupNodes a") << "after three silences nothing is asked any more";
}

TEST(ExternalState, SizesThatCannotBeAreNotBelieved) {
  for (const auto& [answer, text, words] : std::vector<std::tuple<std::string, std::string, std::string>>{
           {"NodeGroupTargetSize a", "{targetSize: -1}", "its size is -1"},
           {"NodeGroupTargetSize a", "{targetSize: 1}", "its size is 1, and it lists 2 machines"},
           {"NodeGroupTargetSize a", "{targetSize: 2000000000}", "its size is 2000000000, its maximum 5, and it lists 2 machines"},
           {"NodeGroups", "{nodeGroups: [{id: a, minSize: 4, maxSize: 1}]}", "sizes from 4 to 1 make no sense"},
           {"NodeGroups", "{nodeGroups: [{id: a, minSize: 0, maxSize: 5}, {id: a, minSize: 0, maxSize: 9}]}", "it is there twice"},
           {"NodeGroupNodes b", "{instances: [{id: 'p://1'}]}", "p://1 is listed in a as well"}}) {
    Provided provided;
    provided.script.answers[answer] = text;
    const ProviderState state = provided.read();
    EXPECT_EQ(std::ranges::count(ids(state), "a"), 0) << words;
    EXPECT_TRUE(std::ranges::any_of(state.problems, [&](const auto& one) { return one.find(words) != one.npos; })) << words;
  }
}

TEST(ExternalState, AForgottenNodeIsNotTakenForNone) {
  Provided provided;
  ASSERT_EQ(ids(provided.read()), (Texts{"a", "b"}));
  provided.script.answers["NodeGroupNodes a"] = "{instances: [{id: 'p://2'}]}";
  const ProviderState forgotten = provided.read();
  EXPECT_EQ(ids(forgotten), Texts{"b"});
  ASSERT_FALSE(forgotten.problems.empty());
  EXPECT_NE(forgotten.problems[0].find("n1 was one of its nodes, is ready, and is listed no more"), std::string::npos);
  // It says otherwise when it is asked of the node alone: the list is not whole.
  provided.script.answers["NodeGroupForNode n1"] = "{nodeGroup: {id: a}}";
  EXPECT_EQ(ids(provided.read()), Texts{"b"});
  // A node that is not ready any more may well have lost its machine.
  provided.script.answers["NodeGroupForNode n1"] = "{nodeGroup: {id: ''}}";
  provided.nodes[0].is_ready = false;
  EXPECT_EQ(ids(provided.read()), (Texts{"a", "b"}));
}

TEST(ExternalState, AMaximumThatWasLoweredIsNoLie) {
  Provided provided;
  provided.script.answers["NodeGroups"] = "{nodeGroups: [{id: a, minSize: 0, maxSize: 1}]}";
  EXPECT_EQ(ids(provided.read()), Texts{"a"});
}

TEST(ExternalState, ANodeWhoseMachineWasRemovedIsNotForgotten) {
  Provided provided;
  ASSERT_EQ(ids(provided.read()), (Texts{"a", "b"}));
  provided.memory.removed = {"p://1"};
  provided.script.answers["NodeGroupTargetSize a"] = "{targetSize: 1}";
  provided.script.answers["NodeGroupNodes a"] = "{instances: [{id: 'p://2'}]}";
  provided.script.answers["NodeGroupForNode n1"] = "{nodeGroup: {id: a}}";
  const ProviderState state = provided.read();
  EXPECT_EQ(ids(state), (Texts{"a", "b"})) << "its Node goes after it, and is ready until then";
  EXPECT_EQ(state.problems, Texts{});
  provided.nodes.erase(provided.nodes.begin());
  (void)provided.read();
  EXPECT_TRUE(provided.memory.removed.empty());
}

TEST(ExternalState, MachinesThatCannotBeMadeHaveFailedButNoneThatRunsOrIsANode) {
  Provided provided;
  provided.script.answers["NodeGroupTargetSize a"] = "{targetSize: 3}";
  provided.script.answers["NodeGroupNodes a"] =
      "{instances: [{id: 'p://1', status: {instanceState: instanceCreating, errorInfo: {errorCode: LIE}}}, {id: 'p://2', status: "
      "{instanceState: instanceRunning, errorInfo: {errorCode: SLOW}}}, {id: 'p://3', status: {instanceState: instanceCreating, errorInfo: "
      "{errorCode: QUOTA, errorMessage: no more, instanceErrorClass: 1}}}]}";
  const ProviderState state = provided.read();
  ASSERT_EQ(ids(state), (Texts{"a", "b"}));
  ASSERT_EQ(state.groups[0].instances.size(), 3U);
  EXPECT_EQ(state.groups[0].instances[0].failure, "");
  EXPECT_EQ(state.groups[0].instances[1].failure, "");
  EXPECT_EQ(state.groups[0].instances[2].failure, "p://3: QUOTA: no more");
}

TEST(ExternalState, DoubtfulGroupsAreStillThere) {
  Provided provided;
  provided.script.answers["NodeGroupTargetSize a"] = "{targetSize: -1}";
  EXPECT_EQ(provided.read().left_alone, std::set<std::string>{"a"});
}

/// A provider over real gRPC on the loopback, for as many calls as a test makes.
struct Served {
  std::mutex mutex;
  std::vector<std::string> asked;
  std::vector<json::Value> requests;
  std::unique_ptr<external::Service> service;

  explicit Served(external::Service::Answer answer, std::string_view proto = external::kProviderProto) {
    auto started = external::Service::start({}, proto, [this, answer](std::string_view method, const json::Value& request) {
      const std::lock_guard lock(mutex);
      asked.emplace_back(method);
      requests.push_back(request);
      return answer(method, request);
    });
    if (started) service = std::move(*started);
  }
  [[nodiscard]] std::string address() const { return fmt::format("127.0.0.1:{}", service->port()); }
};

TEST(ExternalGrpc, CallsAndErrorsCross) {
  Served served([](std::string_view method, const json::Value& request) -> Result<json::Value> {
    if (method == "NodeGroupTargetSize") return flow("{targetSize: 7}");
    if (method == "GPULabel") return fail(ErrorCode::kNotFound, "not here");
    if (method == "NodeGroupForNode")
      return flow("{nodeGroup: {id: " + std::string(json::get_string(request, {"node", "labels", "pool"})) + "}}");
    return fail(ErrorCode::kInternal, "it broke");
  });
  if (served.service == nullptr) GTEST_SKIP() << "built without gRPC";
  auto channel =
      external::Channel::open({.address = served.address(), .certificate_pem = {}, .key_pem = {}, .ca_pem = {}}, external::kProviderProto);
  ASSERT_TRUE(channel) << channel.error().message;
  const auto call = [&](std::string_view method, const std::string& request) {
    return (*channel)->call(fmt::format("{}/{}", external::kProvider, method), flow(request), 5000);
  };
  const auto size = call("NodeGroupTargetSize", "{id: a}");
  ASSERT_TRUE(size) << size.error().message;
  EXPECT_EQ(json::get_int(*size, {"targetSize"}), 7);
  const auto group = call("NodeGroupForNode", "{node: {name: node-1, providerID: 'p://1', labels: {pool: blue}}}");
  ASSERT_TRUE(group) << group.error().message;
  EXPECT_EQ(json::get_string(*group, {"nodeGroup", "id"}), "blue");
  EXPECT_EQ(call("GPULabel", "{}").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(call("Cleanup", "{}").error().message, "it broke");
}

TEST(ExternalGrpc, AnAddressWhereNobodyListensIsUnavailable) {
  auto channel =
      external::Channel::open({.address = "127.0.0.1:1", .certificate_pem = {}, .key_pem = {}, .ca_pem = {}}, external::kProviderProto);
  if (!channel) GTEST_SKIP() << channel.error().message;
  const auto answer = (*channel)->call(fmt::format("{}/Refresh", external::kProvider), json::Object{}, 2000);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kUnavailable);
}

TEST(ExternalGrpc, GrowthAndRemovalAreAskedOfTheProvider) {
  Served served([](std::string_view method, const json::Value&) -> Result<json::Value> {
    if (method == "NodeGroupDecreaseTargetSize") return fail(ErrorCode::kInternal, "too low");
    return json::Object{};
  });
  if (served.service == nullptr) GTEST_SKIP() << "built without gRPC";
  ClusterCache cache;
  cache.upsert(flow("{kind: Node, metadata: {name: n1, labels: {pool: blue}}, spec: {providerID: 'p://1'}}"));
  ThreadLoop loop("test");
  ExternalProviderConfig config;
  config.address.address = served.address();
  auto provider = connect_external_provider(config, loop, cache);
  ASSERT_TRUE(provider) << provider.error().message;
  std::promise<std::string> grown, lowered, removed;
  (*provider)->grow({"a", 2, 5, 9}, [&](const std::string& error) { grown.set_value(error); });
  EXPECT_EQ(grown.get_future().get(), "");
  (*provider)->give_up({"a", 5, 3, 9}, [&](const std::string& error) { lowered.set_value(error); });
  EXPECT_EQ(lowered.get_future().get(), "too low");
  (*provider)->remove("a", "p://1", "n1", [&](const std::string& error) { removed.set_value(error); });
  EXPECT_EQ(removed.get_future().get(), "");
  provider->reset();
  const std::lock_guard lock(served.mutex);
  EXPECT_EQ(served.asked, (Texts{"NodeGroupIncreaseSize", "NodeGroupDecreaseTargetSize", "NodeGroupDeleteNodes", "Cleanup"}));
  EXPECT_EQ(json::get_int(served.requests[0], {"delta"}), 3);
  EXPECT_EQ(json::get_int(served.requests[1], {"delta"}), -2);
  const auto nodes = json::get_array(served.requests[2], {"nodes"});
  ASSERT_EQ(nodes.size(), 1U);
  EXPECT_EQ(json::get_string(nodes[0], {"providerID"}), "p://1");
  EXPECT_EQ(json::get_string(nodes[0], {"labels", "pool"}), "blue");
}

TEST(ExternalGrpc, TheExpanderIsAskedWithPodsAndNodes) {
  Served served(
      [](std::string_view, const json::Value&) -> Result<json::Value> { return flow("{options: [{nodeGroupId: MachineSet/m/b}]}"); },
      external::kExpanderProto);
  if (served.service == nullptr) GTEST_SKIP() << "built without gRPC";
  TestCluster cluster;
  cluster.set("a", {});
  cluster.set("b", {});
  cluster.pod("p", {});
  auto ask = external::connect_expander(served.address(), "");
  ASSERT_TRUE(ask);
  cluster.core->set_expander(*ask);
  cluster.options.expanders = {Expander::kGrpc};
  const Actions actions = cluster.step();
  ASSERT_EQ(actions.grow.size(), 1U);
  EXPECT_EQ(actions.grow[0].group, "MachineSet/m/b");
  const std::lock_guard lock(served.mutex);
  ASSERT_EQ(served.requests.size(), 1U);
  const auto options = json::get_array(served.requests[0], {"options"});
  ASSERT_EQ(options.size(), 2U);
  const auto pods = json::get_array(options[0], {"podBytes"});
  ASSERT_EQ(pods.size(), 1U);
  EXPECT_FALSE(json::as_view(pods[0]).empty());
}

TEST(Expanders, PriceGoesByTheTableByTypeAndByResources) {
  TestCluster cluster;
  cluster.set("large", {.cpu = "16", .memory = "64Gi"});
  cluster.set("small", {.cpu = "4", .memory = "16Gi"});
  cluster.pod("p", {});
  cluster.options.expanders = {Expander::kPrice};
  Actions actions = cluster.step();
  ASSERT_EQ(actions.grow.size(), 1U);
  EXPECT_EQ(actions.grow[0].group, "MachineSet/m/small");
  TestCluster priced;
  priced.set("large", {.cpu = "16", .memory = "64Gi"});
  priced.set("small", {.cpu = "4", .memory = "16Gi"});
  priced.pod("p", {});
  priced.options.expanders = {Expander::kPrice};
  priced.put(
      "kind: ConfigMap\nmetadata: {namespace: kube-system, name: cluster-autoscaler-price-expander}\ndata: {prices: '{MachineSet/m/large: "
      "0.01, MachineSet/m/small: oops}'}");
  actions = priced.step();
  ASSERT_EQ(actions.grow.size(), 1U);
  EXPECT_EQ(actions.grow[0].group, "MachineSet/m/large");
  EXPECT_TRUE(std::ranges::any_of(actions.notes, [](const Note& note) { return note.reason == "PriceConfigMapInvalid"; }));
}

TEST(ExternalConfig, FilesWithMistakesAreRefusedWithTheirPlace) {
  const auto load = [](const std::string& text) {
    const std::string path = ::testing::TempDir() + "external-config.yaml";
    std::ofstream(path) << text;
    const auto out = ExternalProviderConfig::load(path);
    return out ? "" : out.error().message;
  };
  EXPECT_EQ(load("address: localhost:8086\ngrpc_timeout: 2s\n"), "");
  EXPECT_NE(load("address: localhost\n").find("\"localhost\" is not host:port"), std::string::npos);
  EXPECT_NE(load("address: a:1\ncert: /x\n").find("cert and key go together"), std::string::npos);
  EXPECT_NE(load("adress: a:1\n").find("adress"), std::string::npos);
  EXPECT_NE(load("address: a:1\ncacert: /does/not/exist\n").find("/does/not/exist"), std::string::npos);
}

}  // namespace
}  // namespace berth::autoscaler::testing
