// Events of both groups (pkg/apis/core/validation/events.go).
#include <fmt/format.h>

#include "model/validation/validation.h"

namespace berth::model::validation {
namespace {

using json::get_int;
using json::get_string;

}  // namespace

/// legacyValidateEvent, on either group's form of an Event: events.k8s.io names the same facts anew.
void event(bool is_new, const Value& doc, Errors& errors) {
  const char* object = is_new ? "regarding" : "involvedObject";
  const std::string_view involved = get_string(doc, {object, "namespace"}), ns = get_string(doc, {"metadata", "namespace"});
  const bool has_time = !get_string(doc, {"eventTime"}).empty();
  const auto mismatch = [&] { errors.invalid(Path("involvedObject") / "namespace", involved, "does not match event.namespace"); };
  if (!has_time) {
    if (involved.empty() ? !ns.empty() && ns != "default" : involved != ns) mismatch();
  } else {
    if (involved.empty() && ns != "default" && ns != "kube-system") mismatch();
    const char* controller = is_new ? "reportingController" : "reportingComponent";
    const std::string_view reporter = get_string(doc, {controller});
    if (reporter.empty()) errors.required(Path(controller));
    if (const std::string why = check_qualified_name(reporter); !why.empty()) errors.invalid(Path(controller), reporter, why);
    const auto bounded = [&](const char* field, const char* shown, std::size_t limit, bool is_needed) {
      const std::string_view text = get_string(doc, {field});
      if (is_needed && text.empty()) errors.required(Path(shown));
      if (text.size() > limit) errors.invalid(Path(shown), "", fmt::format("can have at most {} characters", limit));
    };
    bounded("reportingInstance", "reportingInstance", 128, true);
    bounded("action", "action", 128, true);
    bounded("reason", "reason", 128, true);
    bounded(is_new ? "note" : "message", "message", 1024, false);
  }
  if (const std::string why = check_dns1123_subdomain(ns); !why.empty()) errors.invalid(Path("namespace"), ns, why);
}

namespace {

void series(const Value& doc, Errors& errors) {
  if (json::find(doc, {"series"}) == nullptr) return;
  if (get_int(doc, {"series", "count"}) < 2) errors.invalid(Path("series") / "count", "", "should be at least 2");
  if (get_string(doc, {"series", "lastObservedTime"}).empty()) errors.required(Path("series") / "lastObservedTime");
}

/// An object's reference with its fields' Go names.
Value shown_reference(const Value* reference) {
  if (reference == nullptr || !reference->is_object()) return nullptr;
  const auto text = [&](const char* key) { return get_string(*reference, {key}); };
  return json::Object{{"Kind", text("kind")},
                      {"Namespace", text("namespace")},
                      {"Name", text("name")},
                      {"UID", text("uid")},
                      {"APIVersion", text("apiVersion")},
                      {"ResourceVersion", text("resourceVersion")},
                      {"FieldPath", text("fieldPath")}};
}

}  // namespace

void event_create(const Value& doc, Errors& errors) {
  series(doc, errors);
  if (get_string(doc, {"eventTime"}).empty()) errors.required(Path("eventTime"));
  const std::string_view type = get_string(doc, {"type"});
  if (type != "Normal" && type != "Warning") errors.invalid(Path("type"), "", fmt::format("has invalid value: {}", type));
  for (const auto& [field, shown] :
       {std::pair("deprecatedFirstTimestamp", "firstTimestamp"), std::pair("deprecatedLastTimestamp", "lastTimestamp")})
    if (!get_string(doc, {field}).empty()) errors.invalid(Path(shown), "", "needs to be unset");
  if (get_int(doc, {"deprecatedCount"}) != 0) errors.invalid(Path("count"), "", "needs to be unset");
  if (!get_string(doc, {"deprecatedSource", "component"}).empty() || !get_string(doc, {"deprecatedSource", "host"}).empty())
    errors.invalid(Path("source"), "", "needs to be unset");
}

void event_update(const Value& old, const Value& doc, Errors& errors) {
  const Value *before = json::find(old, "series"), *after = json::find(doc, "series");
  if (after != nullptr && (before == nullptr || !json::equal(*before, *after))) series(doc, errors);
  const auto reference = [&](const char* key, const char* shown) {
    const Value was = shown_reference(json::find(old, key)), is = shown_reference(json::find(doc, key));
    if (was != is) errors.invalid(Path(shown), is, kImmutable);
  };
  const auto text = [&](const char* key, const char* shown, bool is_time = false) {
    const std::string_view was = get_string(old, {key}), is = get_string(doc, {key});
    if (was != is) errors.invalid(Path(shown), is.empty() && is_time ? Value(nullptr) : Value(is), kImmutable);
  };
  reference("regarding", "involvedObject");
  for (int n = 0; n < 2; ++n) text("reason", "reason");  // Told twice, as Kubernetes does.
  text("note", "message");
  const auto source = [](const Value& event) {
    return Value(json::Object{{"Component", get_string(event, {"deprecatedSource", "component"})},
                              {"Host", get_string(event, {"deprecatedSource", "host"})}});
  };
  if (source(old) != source(doc)) errors.invalid(Path("source"), source(doc), kImmutable);
  text("deprecatedFirstTimestamp", "firstTimestamp", true);
  text("deprecatedLastTimestamp", "lastTimestamp", true);
  if (get_int(old, {"deprecatedCount"}) != get_int(doc, {"deprecatedCount"}))
    errors.invalid(Path("count"), Value(get_int(doc, {"deprecatedCount"})), kImmutable);
  text("type", "type");
  text("eventTime", "eventTime", true);
  text("action", "action");
  reference("related", "related");
  text("reportingController", "reportingController");
  text("reportingInstance", "reportingInstance");
}

}  // namespace berth::model::validation
