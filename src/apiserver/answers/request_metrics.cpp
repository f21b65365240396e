#include "apiserver/answers/request_metrics.h"

#include "base/shared_mutex.h"

namespace berth::apiserver {
namespace {

metrics::Gauge& inflight_gauge(metrics::Registry& registry, std::string kind) {
  return registry.gauge("apiserver_current_inflight_requests",
                        "Maximal number of currently used inflight request limit of this apiserver per request kind in last second.",
                        {{"request_kind", std::move(kind)}});
}

/// The verb as it is counted: HTTP's word, or APPLY. Words that a client made up are one, or each would be a series for ever.
std::string counted_verb(const Request& request) {
  std::string verb = request.info.verb;
  std::transform(verb.begin(), verb.end(), verb.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  if (verb == "CREATE") return "POST";
  if (verb == "UPDATE") return "PUT";
  if (verb == "PATCH" && media_type(request.http.headers.get("Content-Type")) == "application/apply-patch+yaml") return "APPLY";
  static constexpr std::string_view kCounted[] = {"GET",    "LIST", "WATCH",   "POST",  "PUT",     "PATCH",
                                                  "DELETE", "HEAD", "CONNECT", "TRACE", "OPTIONS", "DELETECOLLECTION"};
  return std::ranges::find(kCounted, verb) != std::end(kCounted) ? verb : "other";
}

/// Of those that its kind has.
std::string_view counted_subresource(const Request& request) {
  const bool is_there = request.info.is_resource && request.kind != nullptr && request.kind->has_subresource(request.info.subresource);
  return is_there ? std::string_view(request.info.subresource) : std::string_view();
}

}  // namespace

RequestMetrics::RequestMetrics(metrics::Registry& registry)
    : registry_(registry), inflight_read_(inflight_gauge(registry, "readOnly")), inflight_mutating_(inflight_gauge(registry, "mutating")) {}

metrics::Gauge& RequestMetrics::inflight(const Request& request) const {
  const bool reads = request.info.verb == "get" || request.info.verb == "list" || request.info.verb == "watch";
  return reads ? inflight_read_ : inflight_mutating_;
}

RequestMetrics::Series RequestMetrics::series(const Request& request, int code) {
  const bool is_resource = request.info.is_resource && request.kind != nullptr;
  const std::string verb = counted_verb(request);
  const std::string_view scope = !is_resource                 ? ""
                                 : !request.info.name.empty() ? "resource"
                                 : !request.info.ns.empty()   ? "namespace"
                                                              : "cluster";
  std::string key = verb;
  key.reserve(96);
  const auto add = [&key](std::string_view part) { key.append(1, '|').append(part); };
  add(request.dry_run ? "1" : "");
  if (is_resource) {
    add(request.kind->group);
    add(request.kind->version);
    add(request.kind->plural);
  }
  add(counted_subresource(request));
  add(scope);
  key.append(1, '|').append(1, static_cast<char>(code >> 8)).append(1, static_cast<char>(code & 0xff));
  {
    const ReaderLock lock(mutex_);
    if (const auto at = known_.find(key); at != known_.end()) return at->second;
  }
  Series found;
  metrics::Labels labels = {{"verb", verb},
                            {"group", is_resource ? request.kind->group : ""},
                            {"version", is_resource ? request.kind->version : ""},
                            {"resource", is_resource ? request.kind->plural : ""},
                            {"subresource", std::string(counted_subresource(request))},
                            {"scope", std::string(scope)},
                            {"component", "apiserver"},
                            {"dry_run", request.dry_run ? "All" : ""}};
  static const std::vector<double> kBounds = {0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2,
                                              3,     4,     5,    6,   8,   10,  15,  20,  30,  45,   60};
  found.duration = &registry_.histogram(
      "apiserver_request_duration_seconds",
      "Response latency distribution in seconds for each verb, group, version, resource, subresource, scope and component.", kBounds,
      labels);
  labels.emplace_back("code", std::to_string(code));
  found.total = &registry_.counter(
      "apiserver_request_total",
      "Counter of apiserver requests broken out for each verb, group, version, resource, scope, component, and HTTP response code.",
      labels);
  const WriterLock lock(mutex_);
  known_.emplace(std::move(key), found);
  return found;
}

void RequestMetrics::ended(const Request& request, int code) {
  inflight(request).add(-1);
  const auto found = series(request, code);
  found.total->add();
  if (request.info.verb != "watch")
    found.duration->observe(std::chrono::duration<double>(std::chrono::steady_clock::now() - request.started).count());
}

}  // namespace berth::apiserver
