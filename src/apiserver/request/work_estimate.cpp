#include "apiserver/request/work_estimate.h"

#include "apiserver/cache/object_codec.h"

namespace berth::apiserver {
namespace {

// Microseconds, on a machine of the year the project began; only the ratios matter much.
constexpr double kJsonByte = 0.03, kYamlByte = 1;                               // Of a body, from parsing to validation.
constexpr double kCopied = 0.5, kEncoded = 15, kRendered = 40, kPrinted = 300;  // Of a listed object: its bytes, protobuf, a table, YAML.
constexpr double kSeatBytes = 100'000, kMostListBytes = 1'000'000;              // list_work_estimator.go, of lists from memory.

enum class Form { kCopied, kEncoded, kRendered, kPrinted };

Form form_of(std::string_view accept, const Request& request) {
  if (accept.find("yaml") != std::string_view::npos || request.query.flag("pretty")) return Form::kPrinted;
  if (accept.find("as=Table") != std::string_view::npos || accept.find("as=PartialObject") != std::string_view::npos)
    return Form::kRendered;
  return accept.find("protobuf") != std::string_view::npos ? Form::kEncoded : Form::kCopied;
}

double cost_of(Form form) {
  switch (form) {
    case Form::kCopied:
      return kCopied;
    case Form::kEncoded:
      return kEncoded;
    case Form::kRendered:
      return kRendered;
    case Form::kPrinted:
      return kPrinted;
  }
  return kRendered;
}

double read_cost(const Request& request, const ObjectCache& cache, double& bytes) {
  const auto* kind = request.kinds->find_resource(request.info.group, request.info.version, request.info.resource);
  if (kind == nullptr || kind->is_virtual) return 0;
  const auto form = form_of(request.http.headers.get("Accept"), request);
  const bool as_stored = &storage_kind(*kind) == kind;
  double each = cost_of(form == Form::kCopied && !as_stored ? Form::kRendered : form);
  if (request.info.verb == "get") {
    if (form == Form::kCopied && as_stored) return 0;
    const auto object = cache.get(object_key(*kind, kind->namespaced ? request.info.ns : "", request.info.name));
    return object == nullptr ? 0 : each * std::max(1.0, static_cast<double>(object->text_bytes()) / 4096);
  }
  const auto page = cache.list({.prefix = make_prefix(kind->storage_group, kind->plural, kind->namespaced ? request.info.ns : "")}, "", 1);
  const double each_bytes = page.items.empty() ? 0 : static_cast<double>(page.items.front()->text_bytes());
  double count = static_cast<double>(page.items.size()) + static_cast<double>(page.remaining);
  const double looked_at = 0.2 * count;
  std::int64_t limit = 0;
  const auto text = request.query.get("limit");
  std::from_chars(text.data(), text.data() + text.size(), limit);
  if (limit > 0 && request.query.get("resourceVersion") != "0") count = std::min(count, static_cast<double>(limit));
  if (request.info.verb == "deletecollection") each = 100;
  bytes = request.info.name.empty() ? count * each_bytes : each_bytes;
  return looked_at + each * count;
}

bool is_long_running(const RequestInfo& info) {
  return info.subresource == "proxy" || info.subresource == "exec" || info.subresource == "attach" || info.subresource == "portforward" ||
         info.subresource == "log";
}

/// Whether it holds all the rules of somebody against others, or shows them.
bool weighs_rules(const RequestInfo& info) {
  return (info.group == "rbac.authorization.k8s.io" && info.verb != "delete") || info.resource == "selfsubjectrulesreviews";
}

double write_cost(const Request& request, const ObjectCache& cache) {
  const auto type = request.http.headers.get("Content-Type");
  const bool is_yaml = type.find("yaml") != std::string_view::npos;
  double cost = static_cast<double>(request.http.body.size()) * (is_yaml ? kYamlByte : kJsonByte);
  if (request.info.verb != "patch" && request.info.verb != "update") return cost;
  const auto* kind = request.kinds->find_resource(request.info.group, request.info.version, request.info.resource);
  if (kind == nullptr) return cost;
  if (const auto object = cache.get(object_key(*kind, kind->namespaced ? request.info.ns : "", request.info.name)))
    cost += 2 * kJsonByte * static_cast<double>(object->text_bytes());
  return cost;
}

}  // namespace

WorkEstimate estimate_work(const Request& request, const ObjectCache& cache, int most_seats) {
  WorkEstimate out;
  if (!request.info.is_resource) return out;
  const auto& verb = request.info.verb;
  double bytes = 0;
  const bool reads = verb == "get" || verb == "list" || verb == "watch" || verb == "deletecollection";
  const bool has_state = verb != "watch" || request.query.flag("sendInitialEvents") || request.query.get("resourceVersion").empty() ||
                         request.query.get("resourceVersion") == "0";
  if (reads && has_state && request.info.subresource.empty()) out.cost_us += read_cost(request, cache, bytes);
  if (!reads || verb == "deletecollection") out.cost_us += write_cost(request, cache);
  if (!reads && weighs_rules(request.info)) out.cost_us += flow::Controller::kHeavyUs;
  if (verb != "list" && verb != "watch") bytes = 0;
  out.seats = is_long_running(request.info)
                  ? 0
                  : std::clamp(static_cast<int>(std::ceil(std::min(bytes, kMostListBytes) / kSeatBytes)), 1, std::max(1, most_seats));
  return out;
}

bool is_costly_answer(const Request& request, std::size_t object_bytes) {
  constexpr std::size_t kSmall = 16 * 1024;
  if (object_bytes > 8 * kSmall) return true;  // It may be compressed.
  const auto form = form_of(request.http.headers.get("Accept"), request);
  if (request.kind != nullptr && &storage_kind(*request.kind) != request.kind) return true;
  return form == Form::kCopied ? false : form != Form::kEncoded || object_bytes > kSmall;
}

}  // namespace berth::apiserver
