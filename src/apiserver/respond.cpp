// Every answer of the API server leaves through here.
#include "apiserver/representation/representation.h"
#include "apiserver/request/offer.h"
#include "apiserver/request/work_estimate.h"
#include "apiserver/writes/write.h"
#include "base/utf8.h"
#include "model/kind_hooks.h"
#include "model/schema.h"

namespace berth::apiserver {
namespace {

/// Quotes the text of a Warning header (RFC 7234): printable, quotes and backslashes escaped.
std::string warning_header(std::string_view text) {
  std::string out = "299 - \"";
  for (char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) continue;
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

/// The Warning headers of an answer: each sentence once. Too many for a header are cut to 256 characters each, until there are 4,096 of
/// them (apiserver endpoints/filters/warning.go).
void add_warnings(const std::vector<std::string>& sentences, net::Headers& headers) {
  constexpr std::size_t kAllRunes = 4096, kSentenceRunes = 256;
  std::unordered_set<std::string_view> seen;
  std::vector<std::string_view> fresh;
  std::size_t total = 0, exceeds_at = SIZE_MAX;
  for (const auto& sentence : sentences) {
    if (sentence.empty() || !seen.insert(sentence).second) continue;
    fresh.push_back(sentence);
    total += rune_count(sentence);
    if (total > kAllRunes && exceeds_at == SIZE_MAX) exceeds_at = fresh.size();
  }
  std::size_t written = 0;
  for (std::size_t i = 0; i < fresh.size(); ++i) {
    // All up to the one that was too much are shown, in short.
    if (i >= exceeds_at && written >= kAllRunes) return;
    const auto shown = exceeds_at == SIZE_MAX ? fresh[i] : first_runes(fresh[i], kSentenceRunes);
    written += rune_count(shown);
    headers.add("Warning", warning_header(shown));
  }
}

}  // namespace

net::Headers ApiServer::Impl::headers_for(const Request& request, std::string_view content_type) const {
  net::Headers headers;
  static NameSource audit_ids{std::random_device()()};
  const auto audit_id = request.http.headers.get("Audit-ID");
  headers.add("Audit-Id", audit_id.empty() ? audit_ids.uid() : std::string(audit_id));
  headers.add("Content-Type", std::string(content_type));
  headers.add("Cache-Control", "no-cache, private");
  if (request.where.schema != nullptr && options.priority_and_fairness) {
    headers.add("X-Kubernetes-Pf-Flowschema-Uid", request.where.schema->config.uid);
    headers.add("X-Kubernetes-Pf-Prioritylevel-Uid", request.where.place().config.uid);
  }
  if (!request.warnings.empty()) add_warnings(request.warnings, headers);
  return headers;
}

void ApiServer::Impl::account(Request& request, int code) {
  if (request.answered) return;
  request.answered = true;
  request.seats.reset();
  const bool mutating = request.info.verb != "get" && request.info.verb != "list" && request.info.verb != "watch";
  (mutating ? inflight_mutating : inflight_read)->add(-1);
  const bool is_resource = request.info.is_resource && request.kind != nullptr;
  std::string verb = request.info.verb;
  std::transform(verb.begin(), verb.end(), verb.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  if (verb == "CREATE") verb = "POST";
  if (verb == "UPDATE") verb = "PUT";
  if (verb == "PATCH" && media_type(request.http.headers.get("Content-Type")) == "application/apply-patch+yaml") verb = "APPLY";
  const std::string_view scope = !is_resource                 ? ""
                                 : !request.info.name.empty() ? "resource"
                                 : !request.info.ns.empty()   ? "namespace"
                                                              : "cluster";
  std::string key =
      fmt::format("{}|{}|{}|{}|{}|{}|{}|{}", verb, request.dry_run, is_resource ? request.kind->group : "",
                  is_resource ? request.kind->version : "", is_resource ? request.kind->plural : "", request.info.subresource, scope, code);
  RequestMetrics found;
  {
    const std::shared_lock lock(request_metrics_mutex);
    if (const auto at = request_metrics.find(key); at != request_metrics.end()) found = at->second;
  }
  if (found.total == nullptr) {
    metrics::Labels labels = {{"verb", verb},
                              {"group", is_resource ? request.kind->group : ""},
                              {"version", is_resource ? request.kind->version : ""},
                              {"resource", is_resource ? request.kind->plural : ""},
                              {"subresource", is_resource ? request.info.subresource : ""},
                              {"scope", std::string(scope)},
                              {"component", "apiserver"},
                              {"dry_run", request.dry_run ? "All" : ""}};
    static const std::vector<double> kBounds = {0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2,
                                                3,     4,     5,    6,   8,   10,  15,  20,  30,  45,   60};
    found.duration = &registry->histogram(
        "apiserver_request_duration_seconds",
        "Response latency distribution in seconds for each verb, group, version, resource, subresource, scope and component.", kBounds,
        labels);
    labels.emplace_back("code", std::to_string(code));
    found.total = &registry->counter(
        "apiserver_request_total",
        "Counter of apiserver requests broken out for each verb, group, version, resource, scope, component, and HTTP response code.",
        labels);
    const std::unique_lock lock(request_metrics_mutex);
    request_metrics.emplace(std::move(key), found);
  }
  found.total->add();
  if (request.info.verb != "watch")
    found.duration->observe(std::chrono::duration<double>(std::chrono::steady_clock::now() - request.started).count());
}

void ApiServer::Impl::respond_status(Request& request, const model::ApiStatus& status) {
  account(request, status.code);
  auto body = Representation(*this, request).as_is(status.to_json(), status_format(request.http.headers.get("Accept")));
  net::HttpResponse response;
  response.status = status.code;
  response.headers = headers_for(request, body.content_type);
  // Who may not even ask is answered before any resource is looked up.
  if (status.code == 403 && request.kind == nullptr) response.headers.add("X-Content-Type-Options", "nosniff");
  if (status.retry_after_seconds > 0) response.headers.add("Retry-After", std::to_string(status.retry_after_seconds));
  response.body = std::move(body.text);
  request.writer->respond(std::move(response));
}

void ApiServer::Impl::respond_busy(Request& request, int retry_after_seconds) {
  account(request, 429);
  net::HttpResponse response;
  response.status = 429;
  response.headers = headers_for(request, "text/plain; charset=utf-8");
  response.headers.add("X-Content-Type-Options", "nosniff");
  response.headers.add("Retry-After", std::to_string(retry_after_seconds));
  response.body = "Too many requests, please try again later.\n";
  request.writer->respond(std::move(response));
}

void ApiServer::Impl::respond_text(Request& request, int code, std::string content_type, std::string body) {
  account(request, code);
  net::HttpResponse response;
  response.status = code;
  response.headers = headers_for(request, content_type);
  response.headers.add("X-Content-Type-Options", "nosniff");
  response.body = std::move(body);
  request.writer->respond(std::move(response));
}

void ApiServer::Impl::respond_body(Request& request, int code, Body body) {
  account(request, code);
  net::HttpResponse response;
  response.status = code;
  response.headers = headers_for(request, body.content_type);
  response.body = std::move(body.text);
  request.writer->respond(std::move(response));
}

void ApiServer::Impl::respond_json(Request& request, int code, const json::Value& document) {
  respond_body(request, code, Representation(*this, request).as_is(document));
}

json::Value ApiServer::Impl::read_document(const Request& request, const StoredObject& object) const {
  auto document = decode_object(object);
  if (is_shown_as_stored(request, object)) return document;
  if (&storage_kind(*request.kind) != request.kind) {
    model::convert(storage_kind(*request.kind), *request.kind, document);
  } else {
    model::hooks_of(*request.kind).form->from_storage(document);
    document.get_object()["apiVersion"] = request.kind->api_version();  // Another version may have been stored then.
  }
  return document;
}

void ApiServer::Impl::respond_object(Request& request, int code, const ObjectPtr& object) {
  const Representation form(*this, request);
  if (!form.is_stored_text(*object)) return respond_body(request, code, form.of(*object));
  account(request, code);
  request.writer->respond_shared(code, headers_for(request, content_type_of(Format::kJson)), {object->value});
}

void ApiServer::Impl::respond_written(const RequestPtr& request, int code, WriteOutcome outcome) {
  const auto answer = [this, request, code](const WriteOutcome& written) {
    if (written.object != nullptr) return respond_object(*request, code, written.object);
    respond_body(*request, code, Representation(*this, *request).of(written.document));
  };
  if (asks_converter(*request) && outcome.object != nullptr)
    return offload([this, request, code, object = outcome.object] { show(request, code, object); });
  const bool is_costly = outcome.object == nullptr || is_costly_answer(*request, outcome.object->value->size());
  if (!is_costly) return answer(outcome);
  const auto written = std::make_shared<WriteOutcome>(std::move(outcome));
  if (flow_control == nullptr) return answer(*written);
  // In its turn among the work of others, like the request itself.
  request->seats.reset();
  flow::Work work;
  work.where = request->where;
  work.cost_us = estimate_work(*request, *cache, 1).cost_us;
  work.run = [this, answer, written, where = work.where] {
    const flow::Seats seats(*flow_control, where, 1);
    answer(*written);
  };
  flow_control->post(std::move(work));
}

void ApiServer::Impl::respond_success(Request& request, int code, std::string_view name, std::string_view uid) {
  json::Object details{{"name", name}, {"kind", request.kind->plural}};
  if (!request.kind->group.empty()) details["group"] = request.kind->group;
  if (!uid.empty()) details["uid"] = uid;
  respond_json(
      request, code,
      json::Object{
          {"kind", "Status"}, {"apiVersion", "v1"}, {"metadata", json::Object()}, {"status", "Success"}, {"details", std::move(details)}});
}

}  // namespace berth::apiserver
