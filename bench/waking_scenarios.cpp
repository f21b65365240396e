// What an event costs the scheduler while many pods wait: the whole shell, informers included, against a server made of two lists and two
// watches.
#include <fmt/format.h>

#include "bench/bench.h"
#include "client/informer.h"
#include "scheduler/scheduler.h"

namespace berth::bench {
namespace {

/// Nodes and pods; every write is answered with success and changes nothing.
class ListsAndWatches final : public client::Transport {
 public:
  void send(net::HttpRequest request, std::function<void(net::HttpResponse)> done) override {
    if (request.method != "GET") return done({.status = 201, .headers = {}, .body = "{}"});
    for (auto& [resource, list] : items)
      if (request.path == "/api/v1/" + resource)
        return done({200, {}, fmt::format(R"({{"metadata":{{"resourceVersion":"{}"}},"items":[{}]}})", revision, fmt::join(list, ","))});
    done({.status = 404, .headers = {}, .body = "{}"});
  }
  std::unique_ptr<net::StreamHandle> stream(net::HttpRequest request, net::StreamCallbacks callbacks) override {
    callbacks.on_header(200, {});
    watches[request.path.substr(std::string_view("/api/v1/").size())] = std::move(callbacks);
    return std::make_unique<net::StreamHandle>();
  }
  void upgrade(net::HttpRequest, std::function<void(std::unique_ptr<net::RawStream>, net::HttpResponse)>) override {}

  void tell(const std::string& resource, std::string_view type, std::string object) {
    std::erase(object, '\n');  // A watch has one event a line.
    watches.at(resource).on_data(fmt::format("{{\"type\":\"{}\",\"object\":{}}}\n", type, object));
  }

  std::map<std::string, std::vector<std::string>> items{{"nodes", {}}, {"pods", {}}};
  std::map<std::string, net::StreamCallbacks> watches;
  std::int64_t revision = 1;
};

std::string node_json(std::size_t i, std::int64_t revision, std::string_view mark = "") {
  return fmt::format(
      R"({{"kind":"Node","metadata":{{"name":"n{0}","uid":"n{0}","resourceVersion":"{1}","labels":{{"kubernetes.io/hostname":"n{0}","mark":"m{2}"}}}},
"spec":{{}},"status":{{"allocatable":{{"cpu":"4","memory":"32Gi","pods":"110"}},"capacity":{{"cpu":"4","memory":"32Gi","pods":"110"}}}}}})",
      i, revision, mark);
}

/// As an API server stores it: of one Deployment, with a token volume of its own.
std::string pod_json(const std::string& name, std::int64_t revision, std::string_view cpu, std::string_view node,
                     std::string_view mark = "") {
  return fmt::format(
      R"({{"kind":"Pod","metadata":{{"name":"{0}","namespace":"default","uid":"{0}","resourceVersion":"{1}","generation":1,
"labels":{{"app":"web","pod-template-hash":"5b7c","mark":"m{4}"}},"ownerReferences":[{{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web","uid":"w","controller":true}}]}},
"spec":{{"schedulerName":"default-scheduler","priority":0,{3}"containers":[{{"name":"c","image":"nginx","resources":{{"requests":{{"cpu":"{2}"}}}}}}],
"volumes":[{{"name":"kube-api-access-{0}","projected":{{"sources":[{{"serviceAccountToken":{{"path":"token"}}}}]}}}}],
"tolerations":[{{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":300}}]}},"status":{{"phase":"{5}"}}}})",
      name, revision, cpu, node.empty() ? "" : fmt::format(R"("nodeName":"{}",)", node), mark, node.empty() ? "Pending" : "Running");
}

/// 500 full nodes; `waiting` pods that fit nowhere; then events that cannot help any of them: labels of nodes and of running pods.
json::Object irrelevant_events(const Options& options, std::size_t waiting, std::size_t events) {
  constexpr std::size_t kNodes = 500;
  const auto server = std::make_shared<ListsAndWatches>();
  for (std::size_t i = 0; i < kNodes; ++i) {
    server->items["nodes"].push_back(node_json(i, ++server->revision));
    server->items["pods"].push_back(pod_json(fmt::format("running-{}", i), ++server->revision, "4", fmt::format("n{}", i)));
  }
  for (std::size_t i = 0; i < waiting; ++i)
    server->items["pods"].push_back(pod_json(fmt::format("waiting-{}", i), ++server->revision, "1", ""));
  VirtualLoop loop(TimePoint{} + std::chrono::hours(500'000));
  client::Client client(server, &loop, "scheduler");
  client::InformerFactory informers(client);
  auto scheduler = scheduler::Scheduler::create(client, informers, {});
  if (!scheduler) return {{"error", scheduler.error().message}};
  (*scheduler)->start();
  informers.start();
  (*scheduler)->lead(true);
  loop.run_for(std::chrono::seconds(1));
  for (int i = 0; i < 600 && (*scheduler)->queue_sizes().unschedulable < waiting; ++i) loop.run_for(std::chrono::milliseconds(100));
  const std::size_t held = (*scheduler)->queue_sizes().unschedulable;
  if (held != waiting) return {{"error", fmt::format("{} of {} pods wait", held, waiting)}};
  const auto count = static_cast<std::size_t>(static_cast<double>(events) * options.scale);
  const double start = now_seconds();
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t which = i / 2 % kNodes;
    const std::string mark = std::to_string(i);
    if (i % 2 == 0)
      server->tell("nodes", "MODIFIED", node_json(which, ++server->revision, mark));
    else
      server->tell("pods", "MODIFIED",
                   pod_json(fmt::format("running-{}", which), ++server->revision, "4", fmt::format("n{}", which), mark));
    loop.run_ready();
  }
  const double seconds = now_seconds() - start;
  return {{"waiting_pods", waiting},
          {"events", count},
          {"seconds", seconds},
          {"microseconds_per_event", std::round(seconds * 1e8 / static_cast<double>(count)) / 100},
          {"still_waiting", (*scheduler)->queue_sizes().unschedulable}};
}

const Register kNobodyWaits({"SchedulerEvents/0Waiting", "100,000 changes of labels, nobody waits: what informers and the cluster take",
                             [](const Options& options) { return irrelevant_events(options, 0, 100'000); }});
const Register kManyWait({"SchedulerEvents/50000Waiting", "the same while 50,000 pods wait that they cannot help",
                          [](const Options& options) { return irrelevant_events(options, 50'000, 100'000); }});

}  // namespace
}  // namespace berth::bench
