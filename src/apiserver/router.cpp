#include "apiserver/router.h"

#include "apiserver/apply/managed_fields.h"
#include "apiserver/request/offer.h"
#include "apiserver/request/typing.h"
#include "apiserver/subresources/subresources.h"
#include "apiserver/upkeep/component_status.h"
#include "apiserver/verbs/review.h"
#include "apiserver/verbs/verbs.h"
#include "base/go/duration.h"
#include "model/go_words.h"
#include "model/kind_hooks.h"
#include "model/protobuf/protobuf.h"
#include "model/subresources.h"
#include "model/warnings.h"

namespace berth::apiserver {
namespace {

model::ApiStatus invalid_option(std::string_view options, model::FieldError::Type type, std::string field, std::string value,
                                std::string detail) {
  return model::invalid_object("meta.k8s.io", options, "", {{type, std::move(field), std::move(value), std::move(detail)}});
}

/// The parameters that all writes share.
std::optional<model::ApiStatus> read_write_options(Request& request) {
  using Type = model::FieldError::Type;
  const std::string_view options_kind = request.info.verb == "create"             ? "CreateOptions"
                                        : request.info.verb == "patch"            ? "PatchOptions"
                                        : request.info.verb.starts_with("delete") ? "DeleteOptions"
                                                                                  : "UpdateOptions";
  const auto dry_runs = request.query.all("dryRun");
  if (std::ranges::any_of(dry_runs, [](const auto& value) { return value != "All"; }))
    return invalid_option(options_kind, Type::kNotSupported, "dryRun", json::serialize(json::Array(dry_runs.begin(), dry_runs.end())),
                          "supported values: \"All\"");
  request.dry_run = !dry_runs.empty();
  if (const auto mode = request.query.get("fieldValidation"); !mode.empty()) {
    if (mode == "Ignore") {
      request.field_validation = FieldValidation::kIgnore;
    } else if (mode == "Strict") {
      request.field_validation = FieldValidation::kStrict;
    } else if (mode != "Warn") {
      return invalid_option(options_kind, Type::kNotSupported, "fieldValidation", fmt::format("\"{}\"", mode),
                            "supported values: \"\", \"Ignore\", \"Strict\", \"Warn\"");
    }
  }
  request.field_manager = request.query.get("fieldManager");
  request.field_manager_given = !request.field_manager.empty();
  if (request.field_manager.size() > 128)
    return invalid_option(options_kind, Type::kTooLong, "fieldManager", "", "may not be more than 128 bytes");
  const auto unprintable = std::ranges::find_if(request.field_manager, [](unsigned char c) { return c < 0x20 || c == 0x7f; });
  if (unprintable != request.field_manager.end())
    return invalid_option(options_kind, Type::kInvalid, "fieldManager", model::go_quote(request.field_manager),
                          fmt::format("invalid character U+{:04X} (at position {})", static_cast<unsigned char>(*unprintable),
                                      unprintable - request.field_manager.begin()));
  if (request.field_manager.empty()) request.field_manager = apply::manager_of_user_agent(request.http.headers.get("User-Agent"));
  request.force = request.query.flag("force");
  return std::nullopt;
}

/// The kind of write that a request is; nothing for what no route takes.
std::optional<WriteMode> write_mode(const Request& request) {
  const auto& [verb, sub] = std::tie(request.info.verb, request.info.subresource);
  if (sub == "binding") return WriteMode::kBind;
  if (sub == "eviction") return WriteMode::kEvict;
  if (sub == "token") return WriteMode::kToken;
  const bool is_apply = verb == "patch" && media_type(request.http.headers.get("Content-Type")) == "application/apply-patch+yaml";
  if (sub == "scale") return is_apply ? WriteMode::kScaleApply : WriteMode::kScale;
  if (verb == "update") return WriteMode::kReplace;
  if (verb == "patch") return is_apply ? WriteMode::kApply : WriteMode::kPatch;
  // status, finalize, ephemeralcontainers, resize are views of an object that is there.
  if (!sub.empty()) return std::nullopt;
  if (verb == "create") return WriteMode::kCreate;
  if (verb == "delete") return WriteMode::kDelete;
  return std::nullopt;
}

/// `timeout` of a request that is answered soon (WithRequestDeadline); sessions and watches have no such parameter.
std::optional<model::ApiStatus> check_timeout(const Request& request) {
  const auto& sub = request.info.subresource;
  if (request.info.verb == "watch" || sub == "proxy" || sub == "exec" || sub == "attach" || sub == "portforward" || sub == "log")
    return std::nullopt;
  const auto text = request.query.get("timeout");
  if (text.empty()) return std::nullopt;
  const auto parsed = parse_duration_ns(text);
  if (parsed) return std::nullopt;
  return model::bad_request(fmt::format("invalid timeout specified in the request URL - {}", parsed.error()));
}

/// In which form and media type the answer goes.
std::optional<model::ApiStatus> choose_form(Request& request, bool reads) {
  const auto& kind = *request.kind;
  const auto& info = request.info;
  const auto wanted = request.http.headers.get("Accept");
  // Every route has it, and programs ask for nothing else.
  if (wanted == "application/json") return std::nullopt;
  const auto type = Typing::of(request).go_type(kind);
  Offer offer;
  offer.is_routed = Typing::of(request).is_routed();
  offer.watch = info.verb == "watch";
  offer.list = reads && info.subresource.empty() && (offer.watch || info.verb == "list");
  // What is only answered (reviews) has no other form.
  offer.forms = (!kind.is_virtual || kind.has_verb("list")) &&
                (info.subresource.empty() || info.subresource == "status" || info.subresource == "scale");
  offer.protobuf = model::has_protobuf(kind);
  offer.kind = type;
  offer.checks_form = info.verb == "get" || info.verb == "list";
  auto accept = negotiate(wanted, offer);
  // Logs and streams choose their own media type.
  const bool is_stream = info.subresource == "log" || info.subresource == "exec" || info.subresource == "attach" ||
                         info.subresource == "portforward" || info.subresource == "proxy";
  if (!accept && !is_stream) return accept.error();
  if (accept) request.accept = *accept;
  if (const auto include = request.query.get("includeObject");
      request.accept.form == ObjectForm::kTable && !include.empty() && include != "None" && include != "Metadata" && include != "Object")
    return model::bad_request(
        fmt::format("Unable to convert to Table as requested: includeObject: Invalid value: \"{}\": must be 'Metadata', 'Object', "
                    "'None', or empty",
                    include));
  return std::nullopt;
}

/// Counts what a mounted handler answers, as it answers it.
class CountedWriter final : public net::ResponseWriter {
 public:
  CountedWriter(Responder& respond, RequestPtr request, std::shared_ptr<net::ResponseWriter> inner)
      : respond_(respond), request_(std::move(request)), inner_(std::move(inner)) {}
  CountedWriter(const CountedWriter&) = delete;
  CountedWriter& operator=(const CountedWriter&) = delete;
  ~CountedWriter() override { respond_.account(*request_, 500); }  // Nobody answered, if anybody did not.
  void respond(net::HttpResponse response) override {
    respond_.account(*request_, response.status);
    inner_->respond(std::move(response));
  }
  void respond_shared(int status, net::Headers headers, std::vector<Bytes> parts) override {
    respond_.account(*request_, status);
    inner_->respond_shared(status, std::move(headers), std::move(parts));
  }
  void start_stream(int status, net::Headers headers) override {
    respond_.account(*request_, status);
    inner_->start_stream(status, std::move(headers));
  }
  bool write(Bytes chunk) override { return inner_->write(std::move(chunk)); }
  [[nodiscard]] std::size_t queued_bytes() const override { return inner_->queued_bytes(); }
  void on_drain(std::function<void()> more) override { inner_->on_drain(std::move(more)); }
  void finish() override { inner_->finish(); }
  void on_close(std::function<void()> closed) override { inner_->on_close(std::move(closed)); }
  std::unique_ptr<net::RawStream> upgrade(net::Headers headers) override {
    respond_.account(*request_, 101);
    return inner_->upgrade(std::move(headers));
  }

 private:
  Responder& respond_;
  RequestPtr request_;
  std::shared_ptr<net::ResponseWriter> inner_;
};

/// The request is the handler's from here on.
void hand_over(Responder& respond, const RequestPtr& request, net::Handler& handler) {
  auto writer = std::make_shared<CountedWriter>(respond, request, std::exchange(request->writer, nullptr));
  handler.handle(std::move(request->http), std::move(writer));
}

/// Whether a path is the mounted one, or below it.
bool is_at(std::string_view path, std::string_view mounted) {
  return path.starts_with(mounted) && (path.size() == mounted.size() || path[mounted.size()] == '/');
}

}  // namespace

void Router::mount(std::string prefix, std::shared_ptr<net::Handler> handler, bool anonymous) {
  mounts_.push_back({std::move(prefix), std::move(handler), anonymous});
}

void Router::mount_group_version(std::string group, std::string version, std::shared_ptr<net::Handler> handler) {
  mounted_groups_[{std::move(group), std::move(version)}] = std::move(handler);
}

bool Router::serve_mounted(const RequestPtr& request, bool anonymous) {
  for (const auto& mount : mounts_) {
    if (mount.anonymous != anonymous || !is_at(request->http.path, mount.prefix)) continue;
    hand_over(respond_, request, *mount.handler);
    return true;
  }
  return false;
}

void Router::dispatch(const RequestPtr& request) {
  if (const auto wrong = check_timeout(*request)) return respond_.status(*request, *wrong);
  if (serve_mounted(request, false)) return;
  if (aggregator_.serve(request)) return;
  if (!request->info.is_resource) return pages_.serve(request);
  if (const auto mounted = mounted_groups_.find({request->info.group, request->info.version}); mounted != mounted_groups_.end())
    return hand_over(respond_, request, *mounted->second);
  route_resource(request);
}

void Router::route_resource(const RequestPtr& request) {
  auto& info = request->info;
  request->kind = request->kinds->find_resource(info.group, info.version, info.resource);
  if (request->kind != nullptr) request->custom = request->kinds->custom(*request->kind);
  // Below a group that is served everything that is not found has a Status (there a web service of its own answers).
  const bool has_own_kinds =
      info.group.empty() || std::ranges::any_of(model::all_kinds(), [&](const auto& one) { return one.group == info.group; });
  const auto refuse = [&](const std::optional<model::ApiStatus>& status) {
    if (status) return respond_.status(*request, *status);
    respond_.text(*request, 404, "text/plain; charset=utf-8", "404 page not found\n");
  };
  if (request->kind == nullptr) return refuse(has_own_kinds ? std::optional(model::unknown_path()) : std::nullopt);
  const auto& kind = *request->kind;
  const auto& typing = Typing::of(*request);
  if (const auto warning = model::kind_warning(kind);
      !warning.empty() && (info.subresource.empty() || kind.has_subresource(info.subresource)))
    request->warnings.emplace_back(warning);
  const bool is_namespaces = model::hooks_of(kind).life->is_namespace;
  if (!kind.namespaced && !info.ns.empty() && !is_namespaces) return refuse(typing.no_route());

  const bool reads = info.verb == "get" || info.verb == "list" || info.verb == "watch";
  if (const auto wrong = choose_form(*request, reads)) return respond_.status(*request, *wrong);
  if (!reads) {
    if (auto wrong = read_write_options(*request)) return respond_.status(*request, *wrong);
  }
  // No resource has a route for HEAD, but what is behind a proxy may.
  if (request->http.method == "HEAD" && info.subresource != "proxy") return respond_.status(*request, model::method_not_allowed());
  if (!info.subresource.empty()) return route_subresource(request);

  if (kind.is_virtual && kind.has_verb("list"))
    return answer_component_status(reads_, request);  // Groups of others that are so are mounted.
  if (kind.is_virtual) {
    if (!info.name.empty()) return respond_.status(*request, model::unknown_path());
    if (info.verb != "create") return respond_.status(*request, model::method_not_allowed());
    if (kind.plural == "bindings") return begin_write(writes_, request, WriteMode::kBind);
    return answer_review(ground_, respond_, request);
  }
  const bool needs_name = info.verb == "get" || info.verb == "update" || info.verb == "patch" || info.verb == "delete";
  // Kubernetes has no route from a namespaced resource straight to a name.
  if (kind.namespaced && info.ns.empty() && needs_name && !info.name.empty()) return refuse(typing.no_route());
  // A collection across namespaces can be read, and only read.
  const bool across = kind.namespaced && info.ns.empty() && (needs_name || info.verb == "create" || info.verb == "deletecollection");
  const bool posts_to_name = info.verb == "create" && !info.name.empty();
  const bool writes_collection = (info.verb == "update" || info.verb == "patch") && info.name.empty();
  if (!typing.takes_verb(*request) || across || posts_to_name || writes_collection) return refuse(typing.refuse_verb(*request));
  if (info.verb == "get") return reads_.get(request);
  if (info.verb == "list") return reads_.list(request);
  if (info.verb == "watch") return reads_.watch(request);
  if (info.verb == "deletecollection") return remove_collection(writes_, reads_, request);
  if (const auto mode = write_mode(*request)) return begin_write(writes_, request, *mode);
  respond_.status(*request, model::method_not_allowed());
}

void Router::route_subresource(const RequestPtr& request) {
  const auto& kind = *request->kind;
  const auto& info = request->info;
  if (!kind.has_subresource(info.subresource)) return respond_.status(*request, Typing::of(*request).no_subresource(*request));
  if (kind.namespaced && info.ns.empty()) return respond_.status(*request, model::unknown_path());
  const auto& sub = info.subresource;
  if (!info.rest.empty() && sub != "proxy") return respond_.status(*request, model::unknown_path());
  // Which verbs each of them takes was asked before (takes()).
  if (sub == "log") return nodes_.serve(request);
  const bool is_session = sub == "exec" || sub == "attach" || sub == "portforward" || sub == "proxy";
  if (info.verb == "get" && !is_session) return sub == "scale" ? get_scale(reads_, request) : reads_.get(request);
  if (is_session) return begin_session(writes_, nodes_, request);
  if (const auto mode = write_mode(*request)) return begin_write(writes_, request, *mode);
  respond_.status(*request, model::method_not_allowed());
}

}  // namespace berth::apiserver
