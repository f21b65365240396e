// The API server's promises (issue 2 "Speed and size"): all over HTTPS, client and server on the same two cores.
#include <fmt/format.h>

#include "bench/api_load.h"

namespace berth::bench {
namespace {

json::Object failure(const std::string& message) { return {{"error", message}}; }

std::optional<std::string> make_namespace(Target& target, const std::string& ns) {
  const LoadResult made = run_load(target.transport(), 1, 1, [&](std::size_t) {
    return post_json("/api/v1/namespaces", fmt::format(R"({{"apiVersion":"v1","kind":"Namespace","metadata":{{"name":"{}"}}}})", ns));
  });
  if (made.failed != 0 && made.first_error.find("409") == std::string::npos) return made.first_error;
  return std::nullopt;
}

LoadResult create_pods(Target& target, const std::string& ns, std::size_t count, std::size_t first = 0) {
  const std::string path = "/api/v1/namespaces/" + ns + "/pods";
  return run_load(target.transport(), count, 64, [&](std::size_t i) { return post_json(path, pod_json(fmt::format("pod-{}", first + i), ns)); });
}

LoadResult create_nodes(Target& target, std::size_t count) {
  return run_load(target.transport(), count, 64, [&](std::size_t i) { return post_json("/api/v1/nodes", node_json(i)); });
}

void add_load(json::Object& out, const LoadResult& load) {
  out["seconds"] = load.seconds;
  out["pods"] = load.done;
  out["p50_ms"] = load.p50_ms;
  out["p99_ms"] = load.p99_ms;
  if (load.failed != 0) out["error"] = fmt::format("{} requests failed, the first: {}", load.failed, load.first_error);
}

void add_server(json::Object& out, Target& target) {
  if (target.server() == nullptr) return;
  out["server_rss_mb"] = std::round(target.server()->rss_mb());
  out["server_peak_rss_mb"] = std::round(target.server()->peak_rss_mb());
  out["server_cpu_seconds"] = target.server()->cpu_seconds();
}

json::Object api_create(const Options& options) {
  auto target = Target::open(options);
  if (!target) return failure(target.error().message);
  if (auto error = make_namespace(**target, "bench")) return failure(*error);
  const auto count = static_cast<std::size_t>(100'000 * options.scale);
  const double empty_mb = (*target)->server() != nullptr ? (*target)->server()->rss_mb() : 0;
  json::Object out;
  add_load(out, create_pods(**target, "bench", count));
  add_server(out, **target);
  if ((*target)->server() != nullptr) {
    out["server_empty_mb"] = std::round(empty_mb);
    out["kib_per_pod"] = std::round(((*target)->server()->rss_mb() - empty_mb) * 1024 / static_cast<double>(count) * 100) / 100;
  }
  return out;
}

json::Object api_list(const Options& options) {
  auto target = Target::open(options);
  if (!target) return failure(target.error().message);
  if (auto error = make_namespace(**target, "bench")) return failure(*error);
  const auto count = static_cast<std::size_t>(100'000 * options.scale);
  const LoadResult created = create_pods(**target, "bench", count);
  if (created.failed != 0) return failure(created.first_error);
  const double before_mb = (*target)->server() != nullptr ? (*target)->server()->peak_rss_mb() : 0;
  std::atomic<std::size_t> bytes{0};
  std::atomic<bool> ended{false};
  net::HttpRequest request;
  request.method = "GET";
  request.path = "/api/v1/pods";
  request.headers.add("Accept", "application/json");
  net::StreamCallbacks callbacks;
  callbacks.on_data = [&](std::string_view data) { bytes += data.size(); };
  callbacks.on_end = [&](const std::string&) { ended = true; };
  const double start = now_seconds();
  auto stream = (*target)->transport().stream(std::move(request), std::move(callbacks));
  if (!wait_until([&] { return ended.load(); }, 120)) return failure("the list did not end within 120 s");
  json::Object out{{"seconds", now_seconds() - start}, {"pods", count}, {"mb", static_cast<double>(bytes) / (1 << 20)}};
  add_server(out, **target);
  if ((*target)->server() != nullptr) out["server_growth_mb"] = (*target)->server()->peak_rss_mb() - before_mb;
  return out;
}

json::Object api_watch(const Options& options) {
  auto target = Target::open(options);
  if (!target) return failure(target.error().message);
  if (auto error = make_namespace(**target, "bench")) return failure(*error);
  const auto count = static_cast<std::size_t>(20'000 * options.scale);
  const LoadResult without = create_pods(**target, "bench", count);
  if (without.failed != 0) return failure(without.first_error);
  std::vector<std::unique_ptr<WatchCounter>> per_node, all;
  for (int i = 0; i < 1000; ++i)
    per_node.push_back(std::make_unique<WatchCounter>((*target)->transport(), "/api/v1/pods", fmt::format("fieldSelector=spec.nodeName%3Dnode-{}", i)));
  wait_until([&] { return std::all_of(per_node.begin(), per_node.end(), [](auto& w) { return w->started.load(); }); }, 60);
  const LoadResult with_nodes = create_pods(**target, "bench", count, count);
  if (with_nodes.failed != 0) return failure(with_nodes.first_error);
  for (int i = 0; i < 20; ++i) all.push_back(std::make_unique<WatchCounter>((*target)->transport(), "/api/v1/namespaces/bench/pods", ""));
  wait_until([&] { return std::all_of(all.begin(), all.end(), [](auto& w) { return w->started.load(); }); }, 60);
  wait_until([&] { return std::all_of(all.begin(), all.end(), [&](auto& w) { return w->added == 2 * count; }); }, 60);
  const LoadResult with_all = create_pods(**target, "bench", count, 2 * count);
  if (with_all.failed != 0) return failure(with_all.first_error);
  const bool complete = wait_until([&] { return std::all_of(all.begin(), all.end(), [&](auto& w) { return w->added == 3 * count; }); }, 60);
  const auto rate = [&](const LoadResult& load) { return static_cast<double>(count) / load.seconds; };
  json::Object out{{"seconds", with_all.seconds}, {"pods", count}, {"per_s_without", std::round(rate(without))}, {"per_s_1000_node_watchers", std::round(rate(with_nodes))},
                   {"per_s_and_20_full_watchers", std::round(rate(with_all))}, {"loss_percent_node_watchers", std::round(100 * (1 - rate(with_nodes) / rate(without)))}};
  add_server(out, **target);
  if (!complete) out["error"] = "a watcher missed events";
  return out;
}

json::Object api_schedule(const Options& options, std::size_t nodes, std::size_t pods) {
  auto target = Target::open(options);
  if (!target) return failure(target.error().message);
  if (auto error = make_namespace(**target, "bench")) return failure(*error);
  const LoadResult made = create_nodes(**target, nodes);
  if (made.failed != 0) return failure(made.first_error);
  std::unique_ptr<Child> scheduler;
  if (options.kubeconfig.empty())
    scheduler = std::make_unique<Child>(std::vector<std::string>{"scheduler", "--kubeconfig", (*target)->kubeconfig(), "--leader-elect=false"}, "/tmp/berth-bench-scheduler.log");
  WatchCounter watcher((*target)->transport(), "/api/v1/namespaces/bench/pods", "");
  wait_until([&] { return watcher.started.load(); }, 30);
  if (!(*target)->server()) usleep(500'000);
  const double start = now_seconds();
  const LoadResult created = create_pods(**target, "bench", pods);
  if (created.failed != 0) return failure(created.first_error);
  const bool complete = wait_until([&] { return watcher.bound >= pods; }, 600);
  json::Object out{{"seconds", now_seconds() - start}, {"pods", pods}, {"nodes", nodes}, {"bound", watcher.bound.load()}, {"create_seconds", created.seconds}};
  add_server(out, **target);
  if (scheduler) {
    out["scheduler_cpu_seconds"] = scheduler->cpu_seconds();
    out["scheduler_peak_rss_mb"] = std::round(scheduler->peak_rss_mb());
  }
  if (!complete) out["error"] = "not all pods were bound within 600 s";
  return out;
}

const Register kCreate({"ApiCreate", "durable pod creations over HTTPS, 64 in flight, full sync; server memory per pod", api_create});
const Register kList({"ApiList100k", "one list of 100,000 pods over HTTPS to its last byte; server memory growth", api_list});
const Register kWatch({"ApiWatch", "creations over HTTPS without watchers, with 1,000 per-node watchers, and with 20 on all pods besides", api_watch});
const Register kSchedule5000({"ApiScheduling/5000Nodes", "50,000 pods created, bound by a scheduler process and seen by a watcher, all over HTTPS in one run",
                              [](const Options& o) { return api_schedule(o, 5000, static_cast<std::size_t>(50'000 * o.scale)); }});
const Register kSchedule500({"ApiScheduling/500Nodes", "5,000 pods on 500 nodes: created, bound and seen, over HTTPS",
                             [](const Options& o) { return api_schedule(o, 500, static_cast<std::size_t>(5'000 * o.scale)); }});

}  // namespace
}  // namespace berth::bench
