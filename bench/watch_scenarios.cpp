// What watches cost the server when its clients hold ten each: over one HTTP/2 connection a client, and over an HTTP/1.1 connection a
// watch. Two kinds of clients: all of whose watches see everything, and such as kubelets are, who are told of their own pods.
#include <sys/resource.h>

#include "bench/api_load.h"
#include "bench/watch_clients.h"
#include "client/kubeconfig.h"

namespace berth::bench {
namespace {

constexpr int kEvents = 20;
constexpr double kIdleSeconds = 60;  ///< In which each watch that wants bookmarks has one.
constexpr const char* kMarker = "MARKER";

json::Object failure(std::string why) { return {{"error", std::move(why)}}; }
double tenths(double value) { return std::round(value * 10) / 10; }

net::HttpRequest config_map(std::size_t i, const std::string& marker) {
  return post_json("/api/v1/namespaces/default/configmaps",
                   fmt::format(R"({{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"event-{}"}},"data":{{"text":"{}{}"}}}})", i,
                               marker, std::string(800, 'x')));
}

net::HttpRequest service(std::size_t i) {
  return post_json("/api/v1/namespaces/default/services",
                   fmt::format(R"({{"apiVersion":"v1","kind":"Service","metadata":{{"name":"s-{}","annotations":{{"note":"{}"}}}},)"
                               R"("spec":{{"ports":[{{"port":80}}],"selector":{{"app":"a"}}}}}})",
                               i, kMarker));
}

/// On a node of its own.
net::HttpRequest pod(std::size_t i) {
  return post_json("/api/v1/namespaces/default/pods",
                   fmt::format(R"({{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"p-{0}","annotations":{{"note":"{1}"}}}},)"
                               R"("spec":{{"nodeName":"node-{0}","containers":[{{"name":"c","image":"i"}}]}}}})",
                               i, kMarker));
}

/// What a kubelet watches: its node, its pods, what these name, and three kinds that all nodes need.
std::string kubelets_watch(int client, int watch) {
  const auto named = [](std::string_view where, std::string_view name) {
    return fmt::format("/api/v1/namespaces/{}?watch=true&allowWatchBookmarks=true&fieldSelector=metadata.name%3D{}", where, name);
  };
  switch (watch) {
    case 0:
      return fmt::format("/api/v1/pods?watch=true&allowWatchBookmarks=true&fieldSelector=spec.nodeName%3Dnode-{}", client);
    case 1:
      return fmt::format("/api/v1/nodes?watch=true&allowWatchBookmarks=true&fieldSelector=metadata.name%3Dnode-{}", client);
    case 2:
      return "/api/v1/services?watch=true&allowWatchBookmarks=true";
    case 3:
      return "/apis/storage.k8s.io/v1/csidrivers?watch=true&allowWatchBookmarks=true";
    case 4:
      return "/apis/node.k8s.io/v1/runtimeclasses?watch=true&allowWatchBookmarks=true";
    case 5:
      return named("default/configmaps", "kube-root-ca.crt");
    case 6:
      return named("kube-system/configmaps", "kube-root-ca.crt");
    default:
      return named("default/secrets", fmt::format("s-{}", (client + watch) % 100));
  }
}

/// A server of our own with clients that hold their watches, and what opening them cost it.
struct Held {
  std::unique_ptr<Target> target;
  std::unique_ptr<WatchClients> clients;
  json::Object measured;
  double watches = 0;
};

Result<Held> open_watches(const Options& options, bool http2, std::function<std::string(int, int)> path) {
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  auto target = Target::open(options, {"--max-connections", "100000"});
  if (!target) return std::unexpected(target.error());
  auto* server = (*target)->server();
  if (server == nullptr) return invalid("this one measures a server of its own");
  const auto config = client::load_kubeconfig((*target)->kubeconfig(), "");
  if (!config) return std::unexpected(config.error());

  WatchClientsOptions wanted;
  wanted.port = static_cast<std::uint16_t>(std::stoi(config->http.url.substr(config->http.url.rfind(':') + 1)));
  wanted.certificate_pem = config->http.certificate_pem;
  wanted.private_key_pem = config->http.private_key_pem;
  wanted.path = std::move(path);
  wanted.marker = kMarker;
  wanted.clients = static_cast<int>(1000 * options.scale);
  wanted.http2 = http2;
  if (const auto sockets = static_cast<rlim_t>(wanted.clients * (http2 ? 1 : wanted.watches)) + 1000; files.rlim_max < sockets)
    return invalid(
        fmt::format("{} open files are needed, and {} allowed: prlimit --nofile={} berth-bench …", sockets, files.rlim_max, sockets));
  run_load((*target)->transport(), 5, 5, [](std::size_t i) { return config_map(1'000'000 + i, "warm"); });
  const double idle_mb = server->rss_mb(), idle_cpu = server->cpu_seconds(), start = now_seconds();
  Held out;
  out.clients = std::make_unique<WatchClients>(wanted);
  if (auto problem = out.clients->open(); !problem.empty()) return invalid(problem);
  out.watches = static_cast<double>(wanted.clients) * wanted.watches;
  const double open_mb = server->rss_mb() - idle_mb;
  out.measured = {{"clients", wanted.clients},
                  {"connections", out.clients->connections()},
                  {"watches", out.watches},
                  {"open_seconds", now_seconds() - start},
                  {"open_cpu_us_per_watch", tenths((server->cpu_seconds() - idle_cpu) / out.watches * 1e6)},
                  {"server_kb_per_watch", tenths(open_mb * 1024 / out.watches)},
                  {"server_mb_for_watches", std::round(open_mb)}};
  out.target = std::move(*target);
  return out;
}

/// Writes, and waits until every watch that sees them has; the server's processor time in microseconds for each event. The error: what
/// was refused or not seen.
Result<double> write_and_see(Held& held, std::size_t writes, std::size_t in_flight, std::size_t watches_each,
                             const std::function<net::HttpRequest(std::size_t)>& request) {
  auto* server = held.target->server();
  const double before = server->cpu_seconds();
  const LoadResult made = run_load(held.target->transport(), writes, in_flight, request);
  if (made.failed != 0) return invalid(made.first_error);
  const std::size_t all = writes * watches_each;
  if (const auto seen = held.clients->read(all); seen != all) return invalid(fmt::format("{} events of {} were seen", seen, all));
  return std::round((server->cpu_seconds() - before) / static_cast<double>(all) * 1e8) / 100;
}

json::Object held_watches(const Options& options, bool http2) {
  auto held = open_watches(options, http2, [](int, int) {
    return std::string("/api/v1/namespaces/default/configmaps?watch=true&fieldSelector=metadata.name%21%3Dkube-root-ca.crt");
  });
  if (!held) return failure(held.error().message);
  const auto cost =
      write_and_see(*held, kEvents, 1, static_cast<std::size_t>(held->watches), [](std::size_t i) { return config_map(i, kMarker); });
  if (!cost) return failure(cost.error().message);
  auto out = std::move(held->measured);
  out["events"] = held->watches * kEvents;
  out["event_cpu_us_per_watch"] = *cost;
  out["server_peak_rss_mb"] = std::round(held->target->server()->peak_rss_mb());
  return out;
}

json::Object kubelet_watches(const Options& options, bool http2) {
  auto held = open_watches(options, http2, kubelets_watch);
  if (!held) return failure(held.error().message);
  auto* server = held->target->server();
  auto out = std::move(held->measured);
  const auto clients = static_cast<std::size_t>(held->watches / 10);
  double before = server->cpu_seconds();
  held->clients->idle(kIdleSeconds);
  out["idle_cpu_percent"] = std::round((server->cpu_seconds() - before) / kIdleSeconds * 1e4) / 100;
  out["idle_rss_mb"] = std::round(server->rss_mb());
  // No controller makes it here, and no pod can be created without.
  run_load(held->target->transport(), 1, 1, [](std::size_t) {
    return post_json("/api/v1/namespaces/default/serviceaccounts",
                     R"({"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"default"}})");
  });
  before = server->cpu_seconds();
  const double start = now_seconds();
  const auto own = write_and_see(*held, clients, 16, 1, pod);
  if (!own) return failure(own.error().message);
  out["pods_seconds"] = now_seconds() - start;
  out["pod_cpu_us"] = *own;
  const auto everybodys = write_and_see(*held, kEvents, 1, clients, service);
  if (!everybodys) return failure(everybodys.error().message);
  out["service_cpu_us_per_client"] = *everybodys;
  out["busy_rss_mb"] = std::round(server->rss_mb());
  out["server_peak_rss_mb"] = std::round(server->peak_rss_mb());
  return out;
}

const Register kHttp1({"HeldWatches/Http1", "1,000 clients of ten watches, a connection a watch: the server's memory and processor time",
                       [](const Options& o) { return held_watches(o, false); }});
const Register kHttp2({"HeldWatches/Http2", "1,000 clients of ten watches, a connection a client: the server's memory and processor time",
                       [](const Options& o) { return held_watches(o, true); }});
const Register kKubelets1(
    {"KubeletWatches/Http1",
     "1,000 clients with a kubelet's ten watches, a connection a watch: idle for a minute, a pod for each, 20 Services",
     [](const Options& o) { return kubelet_watches(o, false); }});
const Register kKubelets2(
    {"KubeletWatches/Http2",
     "1,000 clients with a kubelet's ten watches, a connection a client: idle for a minute, a pod for each, 20 Services",
     [](const Options& o) { return kubelet_watches(o, true); }});

}  // namespace
}  // namespace berth::bench
