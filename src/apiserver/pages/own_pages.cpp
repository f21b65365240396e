#include "apiserver/pages/own_pages.h"

#include <openssl/sha.h>

#include "apiserver/request/offer.h"
#include "base/base64.h"
#include "base/mutex.h"
#include "base/process_metrics.h"
#include "base/split.h"
#include "base/version.h"
#include "model/published/discovery.h"

namespace berth::apiserver {
namespace {

/// The aggregated form that an Accept header asks for first: "v2", "v2beta1", or empty.
std::string_view aggregated_version(std::string_view accept) {
  const auto at = accept.find("as=APIGroupDiscoveryList");
  if (at == std::string_view::npos) return {};
  const auto first = accept.substr(0, accept.find(','));
  const auto& look = first.find("as=APIGroupDiscoveryList") != std::string_view::npos ? first : accept;
  return look.find("v=v2beta1") != std::string_view::npos && look.find("v=v2;") == std::string_view::npos ? "v2beta1" : "v2";
}

/// What has been done before the first request is answered, by kube-apiserver's names of it: these checks fail only where nobody could ask.
constexpr std::string_view kStartHooks[] = {"poststarthook/start-apiserver-admission-initializer",
                                            "poststarthook/generic-apiserver-start-informers",
                                            "poststarthook/priority-and-fairness-config-consumer",
                                            "poststarthook/priority-and-fairness-filter",
                                            "poststarthook/storage-object-count-tracker-hook",
                                            "poststarthook/start-apiextensions-informers",
                                            "poststarthook/start-apiextensions-controllers",
                                            "poststarthook/crd-informer-synced",
                                            "poststarthook/start-system-namespaces-controller",
                                            "poststarthook/peer-endpoint-reconciler-controller",
                                            "poststarthook/start-cluster-authentication-info-controller",
                                            "poststarthook/start-kube-apiserver-identity-lease-controller",
                                            "poststarthook/start-kube-apiserver-identity-lease-garbage-collector",
                                            "poststarthook/storage-readiness",
                                            "poststarthook/start-legacy-token-tracking-controller",
                                            "poststarthook/start-service-ip-repair-controllers",
                                            "poststarthook/rbac/bootstrap-roles",
                                            "poststarthook/scheduling/bootstrap-system-priority-classes",
                                            "poststarthook/priority-and-fairness-config-producer",
                                            "poststarthook/bootstrap-controller",
                                            "poststarthook/start-kubernetes-service-cidr-controller",
                                            "poststarthook/start-kube-aggregator-informers",
                                            "poststarthook/apiservice-status-local-available-controller",
                                            "poststarthook/apiservice-status-remote-available-controller",
                                            "poststarthook/apiservice-registration-controller",
                                            "poststarthook/apiservice-wait-for-first-sync",
                                            "poststarthook/apiservice-discovery-controller",
                                            "poststarthook/kube-apiserver-autoregistration",
                                            "autoregister-completion",
                                            "poststarthook/apiservice-openapi-controller",
                                            "poststarthook/apiservice-openapiv3-controller"};

/// Says of every kind that is stored in which version, as migrators of storage read it: eight bytes of the hash of GROUP/VERSION/KIND.
void add_storage_hashes(const model::Kinds& kinds, std::string_view group, std::string_view version, std::optional<json::Value>& document) {
  json::Value* resources = document ? json::find(*document, "resources") : nullptr;
  if (resources == nullptr || !resources->is_array()) return;
  for (json::Value& one : resources->get_array()) {
    const auto name = json::get_string(one, {"name"});
    const auto found = std::ranges::find_if(kinds, [&](const model::KindInfo* kind) {
      return kind->group == group && kind->version == version && kind->plural == name && !kind->is_virtual;
    });
    if (found == std::ranges::end(kinds)) continue;
    const model::KindInfo& kind = **found;
    const auto text = fmt::format("{}/{}/{}", kind.storage_group, kind.storage_version, kind.kind);
    std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
    SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
    one.get_object()["storageVersionHash"] = base64_encode({reinterpret_cast<const char*>(digest.data()), 8});
  }
}

/// The name of a single check after "/livez/".
std::string_view check_named(std::string_view path) {
  const auto slash = path.find('/', 1);
  return slash == std::string_view::npos ? std::string_view() : path.substr(slash + 1);
}

}  // namespace

void OwnPages::serve_group_versions(const RequestPtr& request, bool core) {
  if (const auto version = aggregated_version(request->http.headers.get("Accept")); !version.empty()) {
    respond_.account(*request, 200);
    net::HttpResponse response;
    response.headers =
        respond_.headers_for(*request, fmt::format("application/json;g=apidiscovery.k8s.io;v={};as=APIGroupDiscoveryList", version));
    response.headers.add("Vary", "Accept");
    auto list = model::discovery_aggregated(request->kinds->kinds(), core, version);
    if (!core) aggregator_.add_aggregated(list);
    response.body = json::serialize(list);
    request->writer->respond(std::move(response));
    return;
  }
  auto list = core ? model::discovery_core_versions(fmt::format("{}:{}", ground_.options.advertise_address, ground_.options.advertise_port))
                   : model::discovery_groups(request->kinds->kinds());
  if (!core) aggregator_.add_groups(list);
  respond_.document(*request, 200, list);
}

bool OwnPages::serve_discovery(const RequestPtr& request) {
  const auto parts = words(request->http.path, '/').list();
  if (parts.empty() || (parts[0] != "api" && parts[0] != "apis")) return false;
  const auto accept = request->http.headers.get("Accept");
  const bool core = parts[0] == "api";
  request->accept.format = status_format(accept);
  if (parts.size() == 1) {
    serve_group_versions(request, core);
    return true;
  }
  const auto& kinds = request->kinds->kinds();
  std::optional<json::Value> document;
  if (core && parts.size() == 2) document = parts[1] == "v1" ? model::discovery_resources(kinds, "", "v1") : std::nullopt;
  if (!core && parts.size() == 2) {
    document = model::discovery_group(kinds, parts[1]);
    aggregator_.add_versions(parts[1], document);
  }
  if (!core && parts.size() == 3) document = model::discovery_resources(kinds, parts[1], parts[2]);
  if (core && parts.size() == 2) add_storage_hashes(kinds, "", parts[1], document);
  if (!core && parts.size() == 3) add_storage_hashes(kinds, parts[1], parts[2], document);
  // A group that nobody has heard of, or a version that definitions alone could serve.
  const auto is_own = [&](const auto& one) { return one.group == parts[1]; };
  if (!document && !core && (!model::discovery_group(kinds, parts[1]) || std::ranges::none_of(model::all_kinds(), is_own))) return false;
  if (document) {
    respond_.document(*request, 200, *document);
  } else {
    respond_.status(*request, model::unknown_path());
  }
  return true;
}

void OwnPages::serve_health(const RequestPtr& request, const std::string& path) {
  const auto parts = words(path, '/').list();
  const bool is_readiness = parts[0] == "readyz";
  std::vector<std::pair<std::string, bool>> checks = {{"ping", true}, {"log", true}};
  if (!is_readiness) checks.emplace_back("loopback-serving-certificate", true);
  checks.emplace_back("etcd", !ground_.cache->is_read_only());
  if (is_readiness) {
    checks.emplace_back("etcd-readiness", ground_.cache->is_writable());
    checks.emplace_back("informer-sync", true);
  }
  for (const std::string_view hook : kStartHooks) checks.emplace_back(hook, true);
  if (is_readiness) {
    const MutexLock lock(ready_mutex_);
    for (const auto& [name, check] : ready_checks_) checks.emplace_back(name, check());
    checks.emplace_back("shutdown", !shutting_down_);
  }
  const auto excluded = request->query.all("exclude");
  std::erase_if(checks, [&](const auto& check) { return std::find(excluded.begin(), excluded.end(), check.first) != excluded.end(); });
  if (parts.size() > 1) {
    std::erase_if(checks, [&](const auto& check) { return check.first != check_named(path); });
    if (checks.empty()) return respond_.text(*request, 404, "text/plain; charset=utf-8", "404 page not found\n");
  }
  bool ok = true;
  std::string text;
  for (const auto& [name, good] : checks) {
    ok = ok && good;
    note_indicator(parts[0], name, good);
    text += good ? fmt::format("[+]{} ok\n", name) : fmt::format("[-]{} failed: reason withheld\n", name);
  }
  if (!ok) return respond_.text(*request, 500, "text/plain; charset=utf-8", text + fmt::format("{} check failed\n", parts[0]));
  const bool verbose = request->query.has("verbose") && parts.size() == 1;
  respond_.text(*request, 200, "text/plain; charset=utf-8", verbose ? text + fmt::format("{} check passed\n", parts[0]) : "ok");
}

void OwnPages::note_indicator(std::string_view endpoint, const std::string& name, bool good) {
  const std::string type(endpoint);
  indicators_
      .gauge("kubernetes_healthcheck", "[STABLE] This metric records the result of a single healthcheck.", {{"name", name}, {"type", type}})
      .set(good ? 1 : 0);
  indicators_
      .counter("kubernetes_healthchecks_total", "[STABLE] This metric records the results of all healthcheck.",
               {{"name", name}, {"status", good ? "success" : "error"}, {"type", type}})
      .add();
}

void OwnPages::serve_metrics(const RequestPtr& request) {
  ground_.registry->gauge("berth_apiserver_events_expired_early", "Events that went before their time, for want of room, since the start.")
      .set(static_cast<double>(ground_.cache->expired_early()));
  for (const auto& [prefix, count] : ground_.cache->counts()) {
    const auto slash = prefix.rfind('/');
    const auto group = prefix.substr(1, slash == 0 ? 0 : slash - 1);
    const auto plural = prefix.substr(slash + 1);
    ground_.registry
        ->gauge("apiserver_storage_objects", "Number of stored objects at the time of last check split by kind.",
                {{"resource", group.empty() ? plural : plural + "." + group}})
        .set(static_cast<double>(count));
  }
  respond_.text(*request, 200, "text/plain; version=0.0.4; charset=utf-8", ground_.registry->expose() + metrics::expose_process());
}

bool OwnPages::serve_flow_dump(const RequestPtr& request) {
  constexpr std::string_view kPrefix = "/debug/api_priority_and_fairness/";
  std::string_view what = request->http.path;
  if (flow_control_ == nullptr || !what.starts_with(kPrefix)) return false;
  what.remove_prefix(kPrefix.size());
  std::string text;
  if (what == "dump_priority_levels")
    text = flow_control_->dump_priority_levels();
  else if (what == "dump_queues")
    text = flow_control_->dump_queues();
  else if (what == "dump_requests")
    text = flow_control_->dump_requests(!request->query.get("includeRequestDetails").empty());
  else
    return false;
  respond_.text(*request, 200, "text/plain; charset=utf-8", std::move(text));
  return true;
}

namespace {

/// The index pages of versions and the version know methods; everything else that is no resource answers whatever it is asked by.
bool is_routed_by_method(std::string_view path) {
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  if (path == "/api" || path == "/version" || path.starts_with("/api/")) return true;
  return path.starts_with("/apis/") && std::count(path.begin(), path.end(), '/') == 3;
}

}  // namespace

void OwnPages::serve(const RequestPtr& request) {
  const auto& path = request->http.path;
  if (request->http.method != "GET" && is_routed_by_method(path)) return respond_.status(*request, model::method_not_allowed());
  for (std::string_view health : {"/healthz", "/livez", "/readyz"})
    if (path == health || (path.starts_with(std::string(health) + "/") && path.size() > health.size() + 1))
      return serve_health(request, path);
  if (path == "/metrics") return serve_metrics(request);
  if (path == "/metrics/slis") return respond_.text(*request, 200, "text/plain; version=0.0.4; charset=utf-8", indicators_.expose());
  if (path.starts_with("/debug/") && serve_flow_dump(request)) return;
  if (path == "/version" || path == "/version/") return serve_version(request);
  if (serve_openapi(request) || serve_discovery(request)) return;
  if (path == "/") return serve_index(request);
  respond_.text(*request, 404, "text/plain; charset=utf-8", "404 page not found\n");
}

void OwnPages::serve_version(const RequestPtr& request) {
  request->accept.pretty = true;
  respond_.document(*request, 200,
                    json::Object{{"major", "1"},
                                 {"minor", kKubernetesMinor},
                                 {"emulationMajor", "1"},
                                 {"emulationMinor", kKubernetesMinor},
                                 {"minCompatibilityMajor", "1"},
                                 {"minCompatibilityMinor", kCompatibilityMinor},
                                 {"gitVersion", git_version_},
                                 {"gitCommit", "unknown"},
                                 {"gitTreeState", "clean"},
                                 {"buildDate", "1970-01-01T00:00:00Z"},
                                 {"goVersion", "none"},
                                 {"compiler", "gcc"},
                                 {"platform", "linux/amd64"}});
}

void OwnPages::serve_index(const RequestPtr& request) {
  std::set<std::string> known = {"/.well-known/openid-configuration",
                                 "/api",
                                 "/api/v1",
                                 "/apis",
                                 "/apis/",
                                 "/healthz",
                                 "/healthz/etcd",
                                 "/livez",
                                 "/livez/etcd",
                                 "/livez/ping",
                                 "/metrics",
                                 "/metrics/slis",
                                 "/openapi/v2",
                                 "/openapi/v3",
                                 "/readyz",
                                 "/readyz/etcd",
                                 "/readyz/ping",
                                 "/openid/v1/jwks",
                                 "/version"};
  for (const auto* kind : request->kinds->kinds()) {
    if (kind->group.empty()) continue;
    known.insert("/apis/" + kind->group);
    known.insert(fmt::format("/apis/{}/{}", kind->group, kind->version));
  }
  json::Array paths(known.begin(), known.end());
  request->accept.pretty = true;
  respond_.document(*request, 200, json::Object{{"paths", std::move(paths)}});
}

void OwnPages::add_ready_check(std::string name, std::function<bool()> check) {
  const MutexLock lock(ready_mutex_);
  ready_checks_.emplace_back(std::move(name), std::move(check));
}

}  // namespace berth::apiserver
