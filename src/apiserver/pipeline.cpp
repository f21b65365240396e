#include "apiserver/pipeline.h"

#include "apiserver/auth/impersonation.h"
#include "apiserver/auth/reviews.h"
#include "apiserver/request/typing.h"
#include "apiserver/request/work_estimate.h"
#include "base/go/duration.h"
#include "model/subresources.h"
#include "model/watch_options.h"

namespace berth::apiserver {
namespace {

constexpr std::string_view kKubeletClients = "berth:kubelet-clients";  // security/pki.h

bool is_long_path(const std::string& path) { return path.size() > 8 * 1024; }

flow::Description description_of(const Request& request) {
  const auto& info = request.info;
  return {request.user.name, info.verb,       info.path,
          info.ns,           info.name,       info.group.empty() ? info.version : info.group + "/" + info.version,
          info.resource,     info.subresource};
}

/// Whether a subresource takes what is asked of it. What it does not take is refused before anybody asks for the right to it: a right to
/// watch or delete must not become one to what the path leads to.
bool takes(const model::Subresource& sub, const Request& request) {
  const auto& method = request.http.method;
  const bool is_proxied = request.info.subresource == "proxy";
  // What is behind a proxy may know OPTIONS; it has no verb, so that only a right to every verb is one to it.
  if (method == "OPTIONS") return is_proxied;
  return std::ranges::find(sub.verbs, request.info.verb) != sub.verbs.end() && (method != "HEAD" || is_proxied);
}

}  // namespace

RequestPipeline::RequestPipeline(Ground& ground, const FrontOptions& options, Responder& respond, const CustomResources& custom,
                                 Router& router, flow::Controller* flow_control)
    : ground_(ground), options_(options), respond_(respond), custom_(custom), router_(router), flow_control_(flow_control) {}

void RequestPipeline::handle(net::HttpRequest http, std::shared_ptr<net::ResponseWriter> writer) {
  auto request = std::make_shared<Request>();
  request->http = std::move(http);
  request->writer = std::move(writer);
  request->query = Query(request->http.query);
  request->info = parse_request_info(request->http.method, request->http.path, request->query);
  request->kinds = custom_.table();
  request->received = ground_.loop.now();
  request->started = std::chrono::steady_clock::now();
  respond_.begin(*request);
  if (request->http.body.size() > options_.max_body_bytes) {
    model::ApiStatus status;
    status.code = 413;
    status.reason = "RequestEntityTooLarge";
    status.message = fmt::format("Request entity too large: limit is {}", options_.max_body_bytes);
    return respond_.status(*request, status);
  }
  if (is_long_path(request->http.path) || request->http.path.find('\0') != std::string::npos)
    return respond_.status(*request, model::bad_request("the request path is malformed"));
  if (router_.serve_mounted(request, true)) return;
  let_in(request);
}

void RequestPipeline::ask(const std::string& whom, const RequestPtr& request, Task task) {
  // Before anybody is known his address stands for him.
  std::string who = request->user.name;
  if (who.empty()) who = request->http.remote_address.substr(0, request->http.remote_address.rfind(':'));
  if (!ground_.askers->post({whom, std::move(who), std::move(task), [this, request] { respond_.busy(*request); }})) respond_.busy(*request);
}

void RequestPipeline::let_in(const RequestPtr& request) {
  if (must_not_wait())
    if (const Waits whom = ground_.options.authenticator->waits_for(request->http))
      return ask(*whom, request, [this, request] {
        if (authenticate(*request)) let_act(request);
      });
  if (authenticate(*request)) let_act(request);
}

void RequestPipeline::let_act(const RequestPtr& request) {
  const auto& http = request->http;
  if (must_not_wait() && auth::is_impersonating(http.headers))
    if (const Waits whom = auth::impersonation_waits_for(http, request->user, *ground_.options.authorizer))
      return ask(*whom, request, [this, request] {
        if (act(*request)) let_through(request);
      });
  if (act(*request)) let_through(request);
}

void RequestPipeline::let_through(const RequestPtr& request) {
  const auto may = authorize(*request);
  if (!may) return ask(may.error(), request, [this, request] { let_through(request); });
  if (!*may) return;
  if (!needs_newest(*request)) return schedule(request);
  ground_.cache->catch_up([this, request](bool reached) {
    // Not on the store's thread, on which all writes of all servers arrive.
    if (reached) return ground_.offload([this, request] { schedule(request); });
    respond_.status(*request, model::internal_error(ground_.cache->storage_failure()));
  });
}

bool RequestPipeline::needs_newest(const Request& request) const {
  if (!ground_.cache->is_shared() || !request.info.is_resource) return false;
  const auto& verb = request.info.verb;
  if (verb == "watch" && request.query.flag(model::kTellWhenCurrent)) return true;
  if (verb == "get" || verb == "list" || verb == "watch") return request.query.get("resourceVersion").empty();
  // A creation's own condition is the store's to check; the namespace may be another server's news.
  if (verb != "create" || !request.info.subresource.empty()) return true;
  return !request.info.ns.empty() && ground_.cache->get(make_key("", "namespaces", "", request.info.ns)) == nullptr;
}

void RequestPipeline::schedule(const RequestPtr& request) {
  if (flow_control_ == nullptr) return dispatch(request);
  request->where = flow_control_->classify(request->user, attributes_of(*request));
  auto estimate = estimate_work(*request, *ground_.cache, flow::Controller::most_seats(request->where));
  // Limits of reads and writes alone never counted watches.
  if (!flow_control_->is_fair() && request->info.verb == "watch") estimate.seats = 0;
  if (flow_control_->runs_here(request->where, estimate.cost_us, estimate.seats)) {
    const auto from = std::chrono::steady_clock::now();
    if (estimate.seats > 0) request->seats = flow::Seats(*flow_control_, request->where, estimate.seats);
    dispatch(request);
    return flow::Controller::spent(from);
  }
  flow::Work work;
  work.where = request->where;
  work.cost_us = estimate.cost_us;
  work.seats = estimate.seats;
  work.bytes = request->http.body.size();
  // Who waits less long for an answer waits less long for his turn.
  if (const auto patience = parse_duration_ns(request->query.get("timeout")); patience && *patience > 0)
    work.longest_wait = std::max(std::chrono::milliseconds(1), std::chrono::milliseconds(*patience / 4'000'000));
  work.run = [this, request, seats = estimate.seats] {
    if (seats > 0) request->seats = flow::Seats(*flow_control_, request->where, seats);
    dispatch(request);
  };
  work.reject = [this, request](std::string_view, int retry_after) { respond_.busy(*request, retry_after); };
  work.shrink = [request] { std::string().swap(request->http.body); };
  work.describe = [request] { return description_of(*request); };
  flow_control_->submit(std::move(work));
}

void RequestPipeline::dispatch(const RequestPtr& request) {
  const auto& verb = request->info.verb;
  // What a write asks on its way (admission, escalation, whether he may also read) waits for the same service.
  const bool asks_more = request->info.is_resource && verb != "get" && verb != "list" && verb != "watch";
  if (asks_more && must_not_wait())
    if (const Waits whom = ground_.options.authorizer->may_ask(request->user))
      return ask(*whom, request, [this, request] { router_.dispatch(request); });
  router_.dispatch(request);
}

bool RequestPipeline::authenticate(Request& request) {
  auto user = ground_.options.authenticator->authenticate(request.http);
  begin_audit(request, user ? &*user : nullptr);
  if (!user) {
    respond_.status(request, user.error());
    return false;
  }
  request.user = std::move(*user);
  return true;
}

bool RequestPipeline::act(Request& request) {
  if (auth::is_impersonating(request.http.headers)) {
    auto acting = auth::apply_impersonation(request.http, request.user, *ground_.options.authorizer);
    if (!acting) {
      respond_.status(request, acting.error());
      return false;
    }
    request.user = std::move(*acting);
    if (request.audit != nullptr) request.audit->set_impersonated(request.user);
  }
  // This server's own towards nodes: who comes by it was led here by a node that gave this server's address as its own, by whatever detour.
  if (request.http.peer && request.user.in_group(kKubeletClients)) {
    model::ApiStatus status;
    status.code = 403;
    status.reason = "Forbidden";
    status.message = fmt::format("{} is what the API server is to nodes: it asks nothing of itself", request.user.name);
    respond_.status(request, status);
    return false;
  }
  return true;
}

void RequestPipeline::begin_audit(Request& request, const UserInfo* user) {
  if (options_.audit == nullptr) return;
  static constexpr std::string_view kSessions[] = {"attach", "exec", "log", "portforward", "proxy"};
  const auto attributes = attributes_of(request);
  const bool is_long = request.info.verb == "watch" || std::ranges::find(kSessions, request.info.subresource) != std::end(kSessions);
  request.audit = audit::Trail::begin(*options_.audit, ground_.loop, {request.http, user, attributes, request.received, is_long});
  request.writer = audit::Trail::watch_answer(request.audit, std::move(request.writer));
}

Expected<Authorizer::Decision, std::string> RequestPipeline::decide(const Request& request, const Attributes& attributes) const {
  auto& authorizer = *ground_.options.authorizer;
  if (must_not_wait()) return authorizer.decide_at_once(request.user, attributes);
  return authorizer.authorize(request.user, attributes);
}

Expected<bool, std::string> RequestPipeline::authorize(Request& request) {
  auto attributes = attributes_of(request);
  std::optional<model::Subresource> sub;
  const model::KindInfo* kind = nullptr;
  if (!request.info.subresource.empty()) {
    kind = request.kinds->find_resource(request.info.group, request.info.version, request.info.resource);
    if (kind != nullptr && kind->has_subresource(request.info.subresource)) sub = model::subresource_of(*kind, request.info.subresource);
  }
  if (sub && !takes(*sub, request)) {
    request.kind = kind;
    request.custom = request.kinds->custom(*kind);
    respond_.status(request, Typing::of(request).refuse_verb(request).value_or(model::method_not_allowed()));
    return false;
  }
  auto decision = decide(request, attributes);
  if (decision && decision->allowed && sub && sub->get_needs_create && attributes.verb == "get") {
    attributes.verb = "create";
    decision = decide(request, attributes);
  }
  if (!decision) return std::unexpected(decision.error());
  if (request.audit != nullptr) {
    request.audit->annotate("authorization.k8s.io/decision", decision->allowed ? "allow" : "forbid");
    request.audit->annotate("authorization.k8s.io/reason", decision->reason);
  }
  if (decision->allowed) return true;
  respond_.status(request, auth::forbidden_status(request.user, attributes, decision->reason));
  return false;
}

}  // namespace berth::apiserver
