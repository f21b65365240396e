// The API server's promises (issue 2 "Speed and size"): all over HTTPS, client and server on the same two cores.
#include <fmt/format.h>
#include <unistd.h>

#include "bench/api_load.h"

namespace berth::bench {
namespace {

json::Object failure(const std::string& message) { return {{"error", message}}; }

std::optional<std::string> make_namespace(Target& target, const std::string& ns) {
  const LoadResult made = run_load(target.transport(), 1, 1, [&](std::size_t) {
    return post_json("/api/v1/namespaces", fmt::format(R"({{"apiVersion":"v1","kind":"Namespace","metadata":{{"name":"{}"}}}})", ns));
  });
  if (made.failed != 0 && made.first_error.find("409") == std::string::npos) return made.first_error;
  // Where no controller makes it, no pod can be created without.
  const LoadResult account = run_load(target.transport(), 1, 1, [&](std::size_t) {
    return post_json(fmt::format("/api/v1/namespaces/{}/serviceaccounts", ns),
                     R"({"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"default"}})");
  });
  if (account.failed != 0 && account.first_error.find("409") == std::string::npos) return account.first_error;
  return std::nullopt;
}

LoadResult create_pods(Target& target, const std::string& ns, std::size_t count, std::size_t first = 0) {
  const std::string path = "/api/v1/namespaces/" + ns + "/pods";
  return run_load(target.transport(), count, 64,
                  [&](std::size_t i) { return post_json(path, pod_json(fmt::format("pod-{}", first + i), ns)); });
}

LoadResult create_nodes(Target& target, std::size_t count) {
  LoadResult made = run_load(target.transport(), count, 64, [&](std::size_t i) { return post_json("/api/v1/nodes", node_json(i)); });
  if (made.failed != 0) return made;
  // A new node is tainted not-ready until a controller has seen it ready; no controller runs here.
  return run_load(target.transport(), count, 64, [&](std::size_t i) {
    net::HttpRequest request = post_json(fmt::format("/api/v1/nodes/node-{}", i), R"({"spec":{"taints":null}})");
    request.method = "PATCH";
    request.headers.set("Content-Type", "application/merge-patch+json");
    return request;
  });
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
  // Several clients may load the servers of one cluster at a time.
  const std::string ns = (*target)->server() != nullptr ? "bench" : fmt::format("bench-{}", getpid());
  if (auto error = make_namespace(**target, ns)) return failure(*error);
  const auto count = static_cast<std::size_t>(100'000 * options.scale);
  const double empty_mb = (*target)->server() != nullptr ? (*target)->server()->rss_mb() : 0;
  json::Object out;
  add_load(out, create_pods(**target, ns, count));
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

/// The watchers of one round: some on one node's pods each, as kubelets have them, some on all pods of the namespace.
class Watchers {
 public:
  Watchers(Target& target, int per_node, int full, WatchForm form) {
    const std::string from_now = "sendInitialEvents=false&resourceVersionMatch=NotOlderThan";
    for (int i = 0; i < per_node; ++i)
      all_.push_back(std::make_unique<WatchCounter>(target.transport(), "/api/v1/pods",
                                                    fmt::format("{}&fieldSelector=spec.nodeName%3Dnode-{}", from_now, i), form));
    for (int i = 0; i < full; ++i) {
      all_.push_back(std::make_unique<WatchCounter>(target.transport(), "/api/v1/namespaces/bench/pods", from_now, form));
      full_.push_back(all_.back().get());
    }
  }
  bool wait_started() {
    return wait_until([&] { return std::all_of(all_.begin(), all_.end(), [](auto& watcher) { return watcher->started.load(); }); }, 60);
  }
  /// Every event came to every full watcher once and in order, and none to the others.
  bool wait_for(std::size_t count) {
    const bool arrived =
        wait_until([&] { return std::all_of(full_.begin(), full_.end(), [&](auto* watcher) { return watcher->added >= count; }); }, 60);
    return arrived && std::all_of(all_.begin(), all_.end(), [&](auto& watcher) {
             const bool is_full = std::find(full_.begin(), full_.end(), watcher.get()) != full_.end();
             return watcher->disordered == 0 && !watcher->ended && watcher->added == (is_full ? count : 0);
           });
  }

 private:
  std::vector<std::unique_ptr<WatchCounter>> all_;
  std::vector<WatchCounter*> full_;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

/// Rounds without and with watchers in turn, so that both see the same machine. The processor time of server and load generator together
/// says what watchers cost also where others use the machine.
json::Object api_watch(const Options& options) {
  auto target = Target::open(options);
  if (!target) return failure(target.error().message);
  if (auto error = make_namespace(**target, "bench")) return failure(*error);
  const auto count = static_cast<std::size_t>(10'000 * options.scale);
  constexpr int kPairs = 5;
  struct Round {
    const char* name;
    int per_node, full;
    WatchForm form;
  };
  constexpr std::array<Round, 4> kKinds = {{{"without", 0, 0, WatchForm::kJson},
                                            {"1000_node_watchers", 1000, 0, WatchForm::kProtobuf},
                                            {"and_20_full_watchers", 1000, 20, WatchForm::kProtobuf},
                                            {"and_20_full_json_watchers", 1000, 20, WatchForm::kJson}}};
  std::array<std::vector<double>, kKinds.size()> rates, cpu_us;
  std::size_t made = 0;
  const auto cpu = [&] { return own_cpu_seconds() + ((*target)->server() != nullptr ? (*target)->server()->cpu_seconds() : 0); };
  create_pods(**target, "bench", count / 2, 1'000'000);  // Connections, caches, allocators.
  const double begin = now_seconds();
  for (int pair = 0; pair < kPairs; ++pair) {
    for (std::size_t kind = 0; kind < kKinds.size(); ++kind) {
      usleep(300'000);  // The end of the last round's thousand connections is not this one's cost.
      Watchers watchers(**target, kKinds[kind].per_node, kKinds[kind].full, kKinds[kind].form);
      if (!watchers.wait_started()) return failure("not every watch started");
      const double cpu_before = cpu(), start = now_seconds();
      const LoadResult load = create_pods(**target, "bench", count, made);
      made += count;
      if (load.failed != 0) return failure(load.first_error);
      // Up to the last event: what watchers still have to get is part of the cost.
      if (!watchers.wait_for(count)) return failure("a watcher missed an event, or got one twice or out of order");
      rates[kind].push_back(static_cast<double>(count) / (now_seconds() - start));
      cpu_us[kind].push_back((cpu() - cpu_before) / static_cast<double>(count) * 1e6);
    }
  }
  const auto percent = [](double share) { return std::round(share * 1000) / 10; };
  json::Object out{{"seconds", now_seconds() - begin}, {"pods", made}};
  for (std::size_t kind = 0; kind < kKinds.size(); ++kind) {
    out[fmt::format("per_s_{}", kKinds[kind].name)] = std::round(median(rates[kind]));
    out[fmt::format("cpu_us_{}", kKinds[kind].name)] = std::round(median(cpu_us[kind]) * 10) / 10;
  }
  out["loss_percent_node_watchers"] = percent(1 - median(rates[1]) / median(rates[0]));
  out["loss_percent"] = percent(1 - median(rates[2]) / median(rates[0]));
  out["loss_percent_by_cpu"] = percent(1 - median(cpu_us[0]) / median(cpu_us[2]));
  out["loss_percent_json"] = percent(1 - median(rates[3]) / median(rates[0]));
  out["loss_percent_json_by_cpu"] = percent(1 - median(cpu_us[0]) / median(cpu_us[3]));
  add_server(out, **target);
  return out;
}

/// What the events of 20 watchers of everything cost, at each end: encryption, the kernel's copies, and the watchers' looking for every
/// event's revision included.
json::Object watch_fan_out(const Options& options) {
  auto target = Target::open(options);
  if (!target) return failure(target.error().message);
  if (auto error = make_namespace(**target, "bench")) return failure(*error);
  const auto count = static_cast<std::size_t>(10'000 * options.scale);
  constexpr int kPairs = 5;
  struct Round {
    const char* name;
    int watchers;
    WatchForm form;
  };
  constexpr std::array<Round, 4> kRounds = {{{"0_watchers", 0, WatchForm::kJson},
                                             {"1_watcher", 1, WatchForm::kProtobuf},
                                             {"20_watchers", 20, WatchForm::kProtobuf},
                                             {"20_json_watchers", 20, WatchForm::kJson}}};
  std::array<std::vector<double>, kRounds.size()> rates, client_us, server_us;
  std::size_t made = 0;
  const auto server_cpu = [&] { return (*target)->server() != nullptr ? (*target)->server()->cpu_seconds() : 0; };
  create_pods(**target, "bench", count / 2, 1'000'000);  // Connections, caches, allocators.
  const double begin = now_seconds();
  for (int pair = 0; pair < kPairs; ++pair) {
    for (std::size_t kind = 0; kind < kRounds.size(); ++kind) {
      Watchers watchers(**target, 0, kRounds[kind].watchers, kRounds[kind].form);
      if (!watchers.wait_started()) return failure("not every watch started");
      const double client = own_cpu_seconds(), server = server_cpu(), start = now_seconds();
      const LoadResult load = create_pods(**target, "bench", count, made);
      made += count;
      if (load.failed != 0) return failure(load.first_error);
      if (!watchers.wait_for(count)) return failure("a watcher missed an event, or got one twice or out of order");
      const double creates = static_cast<double>(count);
      rates[kind].push_back(creates / (now_seconds() - start));
      client_us[kind].push_back((own_cpu_seconds() - client) / creates * 1e6);
      server_us[kind].push_back((server_cpu() - server) / creates * 1e6);
    }
  }
  json::Object out{{"seconds", now_seconds() - begin}, {"pods", made}};
  for (std::size_t kind = 0; kind < kRounds.size(); ++kind) {
    const std::string suffix = kRounds[kind].name;
    out["per_s_" + suffix] = std::round(median(rates[kind]));
    out["client_cpu_us_" + suffix] = std::round(median(client_us[kind]) * 10) / 10;
    out["server_cpu_us_" + suffix] = std::round(median(server_us[kind]) * 10) / 10;
  }
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
    scheduler = std::make_unique<Child>(
        std::vector<std::string>{"scheduler", "--kubeconfig", (*target)->kubeconfig(), "--leader-elect=false", "--secure-port=0"},
        "/tmp/berth-bench-scheduler.log");
  WatchCounter watcher((*target)->transport(), "/api/v1/namespaces/bench/pods", "");
  wait_until([&] { return watcher.started.load(); }, 30);
  if (!(*target)->server()) usleep(500'000);
  const double start = now_seconds();
  const LoadResult created = create_pods(**target, "bench", pods);
  if (created.failed != 0) return failure(created.first_error);
  const bool complete = wait_until([&] { return watcher.bound >= pods || watcher.ended || (scheduler && !scheduler->alive()); }, 600) &&
                        watcher.bound >= pods;
  if (watcher.disordered != 0) return failure("the watcher got an event twice or out of order");
  json::Object out{{"seconds", now_seconds() - start},
                   {"pods", pods},
                   {"nodes", nodes},
                   {"bound", watcher.bound.load()},
                   {"create_seconds", created.seconds}};
  add_server(out, **target);
  if (scheduler) {
    out["scheduler_cpu_seconds"] = scheduler->cpu_seconds();
    out["scheduler_peak_rss_mb"] = std::round(scheduler->peak_rss_mb());
  }
  if (!complete) out["error"] = watcher.ended ? "the watch ended" : "not all pods were seen bound";
  return out;
}

const Register kCreate({"ApiCreate", "durable pod creations over HTTPS, 64 in flight, full sync; server memory per pod", api_create});
const Register kList({"ApiList100k", "one list of 100,000 pods over HTTPS to its last byte; server memory growth", api_list});
const Register kWatch({"ApiWatch",
                       "creations over HTTPS without watchers, with 1,000 per-node watchers, and with 20 on all pods besides, in turn",
                       api_watch});
const Register kWatchFanOut({"WatchFanOut", "creations without and with 20 watchers of everything, in turn; processor time of both ends",
                             watch_fan_out});
const Register kSchedule5000({"ApiScheduling/5000Nodes",
                              "50,000 pods created, bound by a scheduler process and seen by a watcher, all over HTTPS in one run",
                              [](const Options& o) { return api_schedule(o, 5000, static_cast<std::size_t>(50'000 * o.scale)); }});
const Register kSchedule500({"ApiScheduling/500Nodes", "5,000 pods on 500 nodes: created, bound and seen, over HTTPS",
                             [](const Options& o) { return api_schedule(o, 500, static_cast<std::size_t>(5'000 * o.scale)); }});

}  // namespace
}  // namespace berth::bench
