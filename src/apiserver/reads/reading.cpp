#include "apiserver/reads/reading.h"

#include "apiserver/cache/object_codec.h"
#include "apiserver/representation/versions.h"
#include "apiserver/request/typing.h"
#include "model/kind_hooks.h"
#include "model/schema.h"

namespace berth::apiserver {
namespace {

/// A field that the definition of a custom kind lets be selected by.
bool is_selectable(const Request& request, std::string_view field) {
  return request.custom != nullptr &&
         std::ranges::any_of(request.custom->kind->selectable, [&](const auto& one) { return one.first == field; });
}

/// Reads the fields of each object, in the version asked for: they are not kept beside it, as definitions may change.
std::function<bool(const StoredObject&)> select_by(const Request& request, std::vector<model::FieldSelector::Term> terms) {
  return [served = *request.custom, terms = std::move(terms)](const StoredObject& object) {
    auto document = decode_object(object);
    const auto& kind = served.kind->info;
    if (&kind.storage() != &kind) {
      model::convert(kind.storage(), kind, document);
    } else if (object.revision < served.valid_since) {
      kind.hooks->form->from_storage(document);
    }
    return std::ranges::all_of(terms, [&](const auto& term) {
      for (const auto& [name, path] : served.kind->selectable) {
        if (name != term.field) continue;
        const auto found = path.find(document);
        const auto text = found.empty() || found.front()->is_null() ? std::string()
                          : found.front()->is_string()              ? std::string(json::as_view(*found.front()))
                                                                    : json::serialize(*found.front());
        return (text == term.value) == term.equals;
      }
      return false;
    });
  };
}

}  // namespace

model::ApiResult<Selection> read_selection(const Request& request) {
  const auto& kind = *request.kind;
  Selection out;
  WatchFilter& filter = out.filter;
  filter.prefix = make_prefix(kind.storage_group, kind.plural, request.info.ns);
  if (model::hooks_of(kind).life->is_namespace) filter.prefix = make_prefix(kind.storage_group, kind.plural);
  if (request.query.has("labelSelector")) {
    auto labels = model::Selector::parse(request.query.get("labelSelector"));
    if (!labels) return std::unexpected(model::bad_request(labels.error().message));
    filter.labels = std::move(*labels);
  }
  if (request.info.legacy_watch && !request.info.name.empty()) filter.name = request.info.name;
  if (!request.query.has("fieldSelector")) return out;
  auto fields = model::FieldSelector::parse(request.query.get("fieldSelector"));
  if (!fields) return std::unexpected(model::bad_request(fields.error().message));
  std::vector<model::FieldSelector::Term> custom_terms;
  for (auto& term : fields->terms) {
    if (is_selectable(request, term.field)) {
      custom_terms.push_back(std::move(term));
      continue;
    }
    auto stored = stored_field(kind, term.field);
    // Kinds without fields of their own know both, of the cluster as well: no object has one there.
    if (stored.empty() && kind.field_selectors.empty() && term.field == "metadata.namespace") stored = term.field;
    if (stored.empty()) return std::unexpected(Typing::of(request).refuse_selector(kind, term.field));
    if (stored == "metadata.name" && term.equals) {
      if (filter.name && *filter.name != term.value) filter.labels = model::Selector::nothing();
      filter.name = term.value;
      continue;
    }
    // One namespace is a shorter walk than a comparison of each object's.
    if (stored == "metadata.namespace" && term.equals && request.info.ns.empty() && kind.namespaced)
      filter.prefix = make_prefix(kind.storage_group, kind.plural, term.value);
    term.field = std::move(stored);
    filter.fields.terms.push_back(std::move(term));
  }
  if (!custom_terms.empty()) (asks_converter(request) ? out.of_converted : filter.also) = select_by(request, std::move(custom_terms));
  return out;
}

model::ApiResult<std::optional<Revision>> read_revision(std::string_view text) {
  if (text.empty()) return std::optional<Revision>();
  Revision revision = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), revision);
  if (error == std::errc() && end == text.data() + text.size() && revision >= 0) return std::optional<Revision>(revision);
  model::ApiStatus status;
  status.code = 500;
  status.message = fmt::format("resourceVersion: Invalid value: \"{0}\": strconv.ParseUint: parsing \"{0}\": invalid syntax", text);
  return std::unexpected(std::move(status));
}

std::optional<model::ApiStatus> check_list_options(const Request& request, bool is_watch) {
  const auto& query = request.query;
  const auto match = query.get("resourceVersionMatch");
  const auto revision = query.get("resourceVersion");
  const auto continue_token = query.get("continue");
  const bool initial_events = query.has("sendInitialEvents");
  model::FieldErrors errors;
  const auto forbid = [&](std::string field, std::string detail) {
    errors.push_back({model::FieldError::Type::kForbidden, std::move(field), "", std::move(detail)});
  };
  // A watch from the present state is one with initial events, which is asked for by a match.
  const bool is_implied = is_watch && !initial_events && match.empty() && (revision.empty() || revision == "0");
  if (is_implied && !continue_token.empty()) forbid("resourceVersionMatch", "resourceVersionMatch is forbidden when continue is provided");
  if (initial_events && is_watch && match != "NotOlderThan")
    forbid("resourceVersionMatch", "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
  if (!match.empty()) {
    if (is_watch && !initial_events)
      forbid("resourceVersionMatch", "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided");
    if (!is_watch && revision.empty())
      forbid("resourceVersionMatch", "resourceVersionMatch is forbidden unless resourceVersion is provided");
    if (!continue_token.empty()) forbid("resourceVersionMatch", "resourceVersionMatch is forbidden when continue is provided");
    if (match != "NotOlderThan" && (is_watch || match != "Exact")) {
      errors.push_back({model::FieldError::Type::kNotSupported, "resourceVersionMatch", fmt::format("\"{}\"", match),
                        is_watch ? "supported values: \"NotOlderThan\"" : "supported values: \"Exact\", \"NotOlderThan\", \"\""});
    }
    if (match == "Exact" && revision == "0")
      forbid("resourceVersionMatch", "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"");
  }
  if (initial_events && !is_watch) forbid("sendInitialEvents", "sendInitialEvents is forbidden for list");
  if (!errors.empty()) return model::invalid_object("meta.k8s.io", "ListOptions", "", errors);
  if (const auto seconds = query.get("timeoutSeconds"); !seconds.empty()) {
    std::int64_t parsed = 0;
    const auto [end, error] = std::from_chars(seconds.data(), seconds.data() + seconds.size(), parsed);
    if (error != std::errc() || end != seconds.data() + seconds.size())
      return model::bad_request(fmt::format("strconv.ParseInt: parsing \"{}\": invalid syntax", seconds));
  }
  return std::nullopt;
}

model::ApiStatus too_large_revision(Revision wanted, Revision current) {
  model::ApiStatus status;
  status.code = 504;
  status.reason = "Timeout";
  status.message = fmt::format("Timeout: Too large resource version: {}, current: {}", wanted, current);
  status.causes.push_back({"ResourceVersionTooLarge", "Too large resource version", ""});
  status.retry_after_seconds = 1;
  return status;
}

}  // namespace berth::apiserver
