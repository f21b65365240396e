#include "apiserver/answers/respond.h"

#include "apiserver/representation/representation.h"
#include "apiserver/request/offer.h"
#include "apiserver/request/work_estimate.h"
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

Responder::Responder(Ground& ground, Versions& versions, flow::Controller* flow_control)
    : ground_(ground), versions_(versions), flow_control_(flow_control), metrics_(*ground.registry) {
  if (ground.options.seed == 0) first_audit_id_ = std::uint64_t{std::random_device{}()} << 32;
}

std::string Responder::next_audit_id() const {
  // Counted, and the count scattered (splitmix64): no answer waits for another, and a seeded server gives the same ids again.
  const auto scattered = [](std::uint64_t bits) {
    bits *= 0x9e3779b97f4a7c15ULL;
    bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9ULL;
    bits = (bits ^ bits >> 27) * 0x94d049bb133111ebULL;
    return bits ^ bits >> 31;
  };
  const auto number = first_audit_id_ + answers_.fetch_add(1, std::memory_order_relaxed);
  return uuid_of(scattered(2 * number + 1), scattered(2 * number + 2));
}

net::Headers Responder::headers_for(const Request& request, std::string_view content_type) const {
  net::Headers headers;
  const auto audit_id = request.http.headers.get("Audit-ID");
  headers.add("Audit-Id", audit_id.empty() ? next_audit_id() : std::string(audit_id));
  headers.add("Content-Type", std::string(content_type));
  headers.add("Cache-Control", "no-cache, private");
  if (request.where.schema != nullptr && flow_control_->is_fair()) {
    headers.add("X-Kubernetes-Pf-Flowschema-Uid", request.where.schema->config.uid);
    headers.add("X-Kubernetes-Pf-Prioritylevel-Uid", request.where.place().config.uid);
  }
  if (!request.warnings.empty()) add_warnings(request.warnings, headers);
  return headers;
}

void Responder::account(Request& request, int code) {
  if (request.answered) return;
  request.answered = true;
  request.seats.reset();
  metrics_.ended(request, code);
}

void Responder::status(Request& request, const model::ApiStatus& status) {
  account(request, status.code);
  auto answer = Representation(ground_.loop, request).as_is(status.to_json(), status_format(request.http.headers.get("Accept")));
  net::HttpResponse response;
  response.status = status.code;
  response.headers = headers_for(request, answer.content_type);
  // Who may not even ask is answered before any resource is looked up.
  if (status.code == 403 && request.kind == nullptr) response.headers.add("X-Content-Type-Options", "nosniff");
  if (status.retry_after_seconds > 0) response.headers.add("Retry-After", std::to_string(status.retry_after_seconds));
  response.body = std::move(answer.text);
  request.writer->respond(std::move(response));
}

void Responder::busy(Request& request, int retry_after_seconds) {
  account(request, 429);
  net::HttpResponse response;
  response.status = 429;
  response.headers = headers_for(request, "text/plain; charset=utf-8");
  response.headers.add("X-Content-Type-Options", "nosniff");
  response.headers.add("Retry-After", std::to_string(retry_after_seconds));
  response.body = "Too many requests, please try again later.\n";
  request.writer->respond(std::move(response));
}

void Responder::text(Request& request, int code, std::string content_type, std::string body) {
  account(request, code);
  net::HttpResponse response;
  response.status = code;
  response.headers = headers_for(request, content_type);
  response.headers.add("X-Content-Type-Options", "nosniff");
  response.body = std::move(body);
  request.writer->respond(std::move(response));
}

void Responder::body(Request& request, int code, Body what) {
  account(request, code);
  net::HttpResponse response;
  response.status = code;
  response.headers = headers_for(request, what.content_type);
  response.body = std::move(what.text);
  request.writer->respond(std::move(response));
}

void Responder::document(Request& request, int code, const json::Value& what) {
  body(request, code, Representation(ground_.loop, request).as_is(what));
}

void Responder::object(Request& request, int code, const ObjectPtr& shown) {
  const Representation form(ground_.loop, request);
  if (!form.is_stored_text(*shown)) return body(request, code, form.of(*shown));
  account(request, code);
  request.writer->respond_shared(code, headers_for(request, content_type_of(Format::kJson)), {shown->text().shared()});
}

void Responder::converted(const RequestPtr& request, int code, const ObjectPtr& stored) {
  versions_.convert_ahead(request, {stored}, [this, request, code](const model::ApiResult<std::vector<ObjectPtr>>& shown) {
    if (!shown) return status(*request, shown.error());
    object(*request, code, shown->front());
  });
}

void Responder::written(const RequestPtr& request, int code, WriteOutcome outcome) {
  if (!outcome.shown.empty()) return body(*request, code, {std::move(outcome.shown), content_type_of(Format::kJson)});
  const auto answer = [this, request, code](const WriteOutcome& written) {
    if (written.object != nullptr) return object(*request, code, written.object);
    body(*request, code, Representation(ground_.loop, *request).of(written.document));
  };
  if (asks_converter(*request) && outcome.object != nullptr)
    return ground_.offload([this, request, code, object = outcome.object] { converted(request, code, object); });
  const bool is_costly = outcome.object == nullptr || is_costly_answer(*request, outcome.object->text_bytes());
  if (!is_costly) return answer(outcome);
  const auto written = std::make_shared<WriteOutcome>(std::move(outcome));
  if (flow_control_ == nullptr) return answer(*written);
  // In its turn among the work of others, like the request itself.
  request->seats.reset();
  flow::Work work;
  work.where = request->where;
  work.cost_us = estimate_work(*request, *ground_.cache, 1).cost_us;
  work.run = [this, answer, written, where = work.where] {
    const flow::Seats seats(*flow_control_, where, 1);
    answer(*written);
  };
  flow_control_->post(std::move(work));
}

void Responder::success(Request& request, int code, std::string_view name, std::string_view uid) {
  json::Object details{{"name", name}, {"kind", request.kind->plural}};
  if (!request.kind->group.empty()) details["group"] = request.kind->group;
  if (!uid.empty()) details["uid"] = uid;
  document(
      request, code,
      json::Object{
          {"kind", "Status"}, {"apiVersion", "v1"}, {"metadata", json::Object()}, {"status", "Success"}, {"details", std::move(details)}});
}

}  // namespace berth::apiserver
