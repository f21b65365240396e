// exec, attach, portforward and proxy are asked of admission before they are relayed: operation CONNECT, with the options as the object
// (apiserver/pkg/endpoints/handlers/rest.go ConnectResource).
#include "apiserver/subresources/subresources.h"
#include "base/split.h"
#include "model/subresources.h"

namespace berth::apiserver {
namespace {

json::Array texts_of(const std::vector<std::string>& texts) { return json::Array(texts.begin(), texts.end()); }

std::string joined_path(const std::vector<std::string>& parts) { return fmt::format("{}", fmt::join(parts, "/")); }

/// PodExecOptions, PodAttachOptions, PodPortForwardOptions, or the ProxyOptions of a pod, a service or a node. The error is a parameter
/// that is not what it should be.
model::ApiResult<json::Object> connect_options(const Request& request, const std::string& kind) {
  json::Object out{{"kind", kind}, {"apiVersion", "v1"}};
  const auto& query = request.query;
  if (request.info.subresource == "proxy") {
    if (!request.info.rest.empty()) out["path"] = joined_path(request.info.rest);
    return out;
  }
  if (request.info.subresource == "portforward") {
    json::Array ports;
    for (const std::string& text : query.all("ports"))
      for (const auto part : split(text, ',')) {
        std::int32_t port = 0;
        const auto [stop, error] = std::from_chars(part.data(), part.data() + part.size(), port);
        if (error != std::errc() || stop != part.data() + part.size())
          return std::unexpected(
              model::bad_request(fmt::format("strconv.ParseInt: parsing {}: invalid syntax", json::serialize(json::Value(part)))));
        ports.emplace_back(port);
      }
    if (!ports.empty()) out["ports"] = std::move(ports);
    return out;
  }
  for (const char* stream : {"stdin", "stdout", "stderr", "tty"})
    if (query.flag(stream)) out[stream] = true;
  if (const auto container = query.get("container"); !container.empty()) out["container"] = container;
  if (request.info.subresource != "exec") return out;
  const auto command = query.all("command");
  if (command.empty())
    out["command"] = nullptr;
  else
    out["command"] = texts_of(command);
  return out;
}

/// What admission made of the options, for whoever reads the request from here on.
std::optional<std::string> take_options(Request& request, const json::Value& options) {
  if (!options.is_object()) return "the options are no object any more";
  if (request.info.subresource == "proxy") {
    request.info.rest = words(json::get_string(options, {"path"}), '/').list<std::string>();
    return std::nullopt;
  }
  std::string query;
  for (const auto& field : options.get_object()) {
    if (field.key() == "kind" || field.key() == "apiVersion" || field.value().is_null()) continue;
    const auto add = [&](std::string_view text) {
      query += fmt::format("{}{}={}", query.empty() ? "" : "&", net::percent_encode(field.key()), net::percent_encode(text));
    };
    const auto& value = field.value();
    if (value.is_array()) {
      for (const auto& item : value.get_array()) add(item.is_string() ? std::string(json::as_view(item)) : json::serialize(item));
    } else if (value.is_object()) {
      return fmt::format("{} cannot be an object", std::string_view(field.key()));
    } else {
      add(value.is_string() ? std::string(json::as_view(value)) : json::serialize(value));
    }
  }
  request.query = Query(query);
  return std::nullopt;
}

}  // namespace

void begin_session(WritePipeline& writes, NodeProxy& nodes, const RequestPtr& request) {
  auto session = make_write(writes, request, WriteMode::kConnect);
  session->done = [&writes, &nodes, request](const model::ApiResult<WriteOutcome>& admitted) {
    if (!admitted) return writes.respond.status(*request, admitted.error());
    nodes.serve(request);
  };
  run_steps(writes, std::move(session));
}

namespace steps {

StepResult decode_connect(WritePipeline&, const WritePtr& operation) {
  const auto& request = *operation->request;
  operation->decoded.body = {"v1", model::subresource_of(*request.kind, request.info.subresource).kind};
  auto options = connect_options(request, operation->decoded.body->kind);
  if (!options) return std::unexpected(std::move(options.error()));
  operation->candidate.document = std::move(*options);
  return Flow::kNext;
}

StepResult connect(WritePipeline&, const WritePtr& operation) {
  const auto& admitted = operation->admission.object;
  if (!json::equal(operation->candidate.document, admitted))
    if (const auto trouble = take_options(*operation->request, admitted))
      return std::unexpected(model::internal_error("admission: " + *trouble));
  operation->done(WriteOutcome{});
  return Flow::kWaits;
}

}  // namespace steps
}  // namespace berth::apiserver
