// What watches cost the server when its clients hold ten each: over one HTTP/2 connection a client, and over an HTTP/1.1 connection a
// watch.
#include "bench/api_load.h"
#include "bench/watch_clients.h"
#include "client/kubeconfig.h"

namespace berth::bench {
namespace {

constexpr int kEvents = 20;

net::HttpRequest config_map(std::size_t i, const std::string& marker) {
  return post_json("/api/v1/namespaces/default/configmaps",
                   fmt::format(R"({{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"event-{}"}},"data":{{"text":"{}{}"}}}})", i,
                               marker, std::string(800, 'x')));
}

json::Object held_watches(const Options& options, bool http2) {
  const auto failure = [](std::string why) { return json::Object{{"error", std::move(why)}}; };
  auto target = Target::open(options);
  if (!target) return failure(target.error().message);
  auto* server = (*target)->server();
  if (server == nullptr) return failure("this one measures a server of its own");
  const auto config = client::load_kubeconfig((*target)->kubeconfig(), "");
  if (!config) return failure(config.error().message);

  WatchClientsOptions wanted;
  wanted.port = static_cast<std::uint16_t>(std::stoi(config->http.url.substr(config->http.url.rfind(':') + 1)));
  wanted.certificate_pem = config->http.certificate_pem;
  wanted.private_key_pem = config->http.private_key_pem;
  wanted.path = "/api/v1/namespaces/default/configmaps?watch=true&fieldSelector=metadata.name%21%3Dkube-root-ca.crt";
  wanted.marker = "MARKER";
  wanted.clients = static_cast<int>(1000 * options.scale);
  wanted.http2 = http2;
  run_load((*target)->transport(), 5, 5, [](std::size_t i) { return config_map(1'000'000 + i, "warm"); });
  const double idle_mb = server->rss_mb(), idle_cpu = server->cpu_seconds(), start = now_seconds();
  WatchClients clients(wanted);
  if (auto problem = clients.open(); !problem.empty()) return failure(problem);
  const auto watches = static_cast<double>(wanted.clients) * wanted.watches;
  const double opened = now_seconds() - start, open_cpu = server->cpu_seconds() - idle_cpu, open_mb = server->rss_mb() - idle_mb;

  const double cpu = server->cpu_seconds();
  const auto all = static_cast<std::size_t>(watches) * kEvents;
  const LoadResult made = run_load((*target)->transport(), kEvents, 1, [](std::size_t i) { return config_map(i, "MARKER"); });
  if (made.failed != 0) return failure(made.first_error);
  if (const auto seen = clients.read(all); seen != all) return failure(fmt::format("{} events of {} were seen", seen, all));
  const double events_cpu = server->cpu_seconds() - cpu;
  return {{"seconds", now_seconds() - start},
          {"clients", wanted.clients},
          {"connections", clients.connections()},
          {"watches", watches},
          {"open_seconds", opened},
          {"open_cpu_us_per_watch", std::round(open_cpu / watches * 1e7) / 10},
          {"server_kb_per_watch", std::round(open_mb * 1024 / watches * 10) / 10},
          {"server_mb_for_watches", std::round(open_mb)},
          {"events", all},
          {"event_cpu_us_per_watch", std::round(events_cpu / static_cast<double>(all) * 1e8) / 100},
          {"server_peak_rss_mb", std::round(server->peak_rss_mb())}};
}

const Register kHttp1({"HeldWatches/Http1", "1,000 clients of ten watches, a connection a watch: the server's memory and processor time",
                       [](const Options& o) { return held_watches(o, false); }});
const Register kHttp2({"HeldWatches/Http2", "1,000 clients of ten watches, a connection a client: the server's memory and processor time",
                       [](const Options& o) { return held_watches(o, true); }});

}  // namespace
}  // namespace berth::bench
