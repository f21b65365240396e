// Events, as the core group has them and as events.k8s.io has them: one store, two forms.
#include "model/kinds/record.h"

namespace berth::model::kinds {
namespace {

Array event_cells(const Value& o, TimePoint now) {
  const auto first_of = [&](std::initializer_list<json::Path> paths) -> std::string_view {
    for (const json::Path& path : paths)
      if (const std::string_view text = get_string(o, path); !text.empty()) return text;
    return {};
  };
  const std::string_view first_time = first_of({{"firstTimestamp"}, {"deprecatedFirstTimestamp"}, {"eventTime"}});
  std::string_view last_time = first_of({{"series", "lastObservedTime"}, {"lastTimestamp"}, {"deprecatedLastTimestamp"}, {"eventTime"}});
  std::int64_t count = get_int(o, {"series", "count"}, get_int(o, {"count"}, get_int(o, {"deprecatedCount"}, 1)));
  const Value* involved = json::find(o, "involvedObject") != nullptr ? json::find(o, "involvedObject") : json::find(o, "regarding");
  std::string object;
  if (involved != nullptr) {
    std::string kind(get_string(*involved, {"kind"}));
    for (char& c : kind) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    object = kind + "/" + std::string(get_string(*involved, {"name"}));
  }
  std::string source(get_string(o, {"source", "component"}));
  if (source.empty()) source = first_of({{"deprecatedSource", "component"}, {"reportingComponent"}, {"reportingController"}});
  const std::string_view host = first_of({{"source", "host"}, {"deprecatedSource", "host"}, {"reportingInstance"}});
  if (!host.empty()) source += fmt::format(", {}", host);
  std::string message(first_of({{"message"}, {"note"}}));
  while (!message.empty() && message.back() == '\n') message.pop_back();
  return {Value(human_age(last_time, now)),
          Value(get_string(o, {"type"})),
          Value(get_string(o, {"reason"})),
          object,
          involved == nullptr ? Value("") : Value(get_string(*involved, {"fieldPath"})),
          source,
          message,
          Value(human_age(first_time, now)),
          count,
          name_of(o)};
}

// core/v1 Event <-> events.k8s.io/v1 Event: the same facts under other names.
constexpr std::pair<std::string_view, std::string_view> kEventFields[] = {{"involvedObject", "regarding"},
                                                                          {"message", "note"},
                                                                          {"reportingComponent", "reportingController"},
                                                                          {"source", "deprecatedSource"},
                                                                          {"firstTimestamp", "deprecatedFirstTimestamp"},
                                                                          {"lastTimestamp", "deprecatedLastTimestamp"},
                                                                          {"count", "deprecatedCount"}};

void move_member(Object& object, std::string_view from, std::string_view to) {
  const auto found = object.find(from);
  if (found == object.end()) return;
  Value value = std::move(found->value());
  object.erase(from);
  object[to] = std::move(value);
}

void event_to_core(Object& event) {
  for (const auto& [core, events] : kEventFields) move_member(event, events, core);
}

void event_from_core(Object& event) {
  for (const auto& [core, events] : kEventFields) move_member(event, core, events);
}

Printer event_printer() {
  return {{{"Last Seen"},
           {"Type"},
           {"Reason"},
           {"Object"},
           {"Subobject", 1},
           {"Source", 1},
           {"Message"},
           {"First Seen", 1},
           {"Count", 1},
           {"Name", 1}},
          event_cells};
}

void check_core_event(const Value& doc, Errors& errors) { validation::event(false, doc, errors); }
void check_event(const Value& doc, Errors& errors) { validation::event(true, doc, errors); }
void check_new_event(const Value& doc, Errors& errors) {
  check_event(doc, errors);
  validation::event_create(doc, errors);
}

/// By the names that are stored; the source cannot be selected by here.
std::vector<SelectedField> selected_by_new_names() {
  std::vector<SelectedField> out;
  for (const char* part : {"kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"})
    out.push_back({.name = fmt::format("regarding.{}", part), .stored_as = fmt::format("involvedObject.{}", part)});
  out.push_back({.name = "reportingController", .stored_as = "reportingComponent"});
  return out;
}

bool is_subdomain(std::string_view text) { return validation::check_dns1123_subdomain(text).empty(); }
bool is_instance(std::string_view text) { return text.size() <= 128; }
/// A time as it is written down; the zero time is none.
bool is_second(std::string_view text) {
  const auto time = parse_rfc3339(text);
  return time && *time > TimePoint{} && format_rfc3339(*time) == text;
}
bool is_microsecond(std::string_view text) {
  const auto time = parse_rfc3339(text);
  return time && *time > TimePoint{} && format_rfc3339_micro(*time) == text;
}

/// Who reports, and of what: events of one reason differ in these.
std::vector<FreeText> free_texts(const char* object, const char* message) {
  std::vector<FreeText> out = {{.path = "metadata.name", .fits = is_subdomain},
                               {.path = "reportingInstance", .fits = is_instance},
                               {.path = message, .stored_at = "message"},
                               {.path = "eventTime", .fits = is_microsecond}};
  for (const char* part : {"name", "uid", "resourceVersion", "fieldPath"})
    out.push_back({.path = fmt::format("{}.{}", object, part), .stored_at = fmt::format("involvedObject.{}", part)});
  return out;
}

std::vector<FreeText> core_free_texts() {
  auto out = free_texts("involvedObject", "message");
  for (const char* path : {"firstTimestamp", "lastTimestamp"}) out.push_back({.path = path, .fits = is_second});
  out.push_back({.path = "source.host"});
  return out;
}

}  // namespace

KindInfo core_event() {
  return Record("", "v1", "Event", "events")
      .shorts({"ev"})
      .fields({"involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid", "involvedObject.apiVersion",
               "involvedObject.resourceVersion", "involvedObject.fieldPath", "reason", "reportingComponent", "source", "type"})
      .does({.form = Form{.free_texts = core_free_texts()},
             .strategy = kDefault,
             .rules = Rules{.name = validation::check_path_segment,
                            .has_foreign_finalizers = true,
                            .looks_at_metadata_last = true,
                            .metadata_looks = kLooksNoMore,
                            .create = check_core_event,
                            .update = in_turn(check_core_event)},
             .printer = event_printer(),
             // Without a source it is selected by who reports it (pkg/registry/core/event, ToSelectableFields).
             .selected = std::vector<SelectedField>{{.name = "source", .path = "source.component", .instead = "reportingComponent"}},
             .scale = kDefault,
             .life = Life{.is_created_by_update = true, .expires = true, .may_be_lost = true},
             .counted = kDefault});
}

KindInfo event() {
  return Record("events.k8s.io", "v1", "Event", "events")
      .shorts({"ev"})
      .fields({"regarding.kind", "regarding.namespace", "regarding.name", "regarding.uid", "regarding.apiVersion",
               "regarding.resourceVersion", "regarding.fieldPath", "reason", "reportingController", "type"})
      .stored_as("", "v1")
      .does({.form = Form{.to_storage = [](Value& doc) { event_to_core(doc.get_object()); },
                          .from_storage = [](Value& doc) { event_from_core(doc.get_object()); },
                          .free_texts = free_texts("regarding", "note")},
             .strategy = kDefault,
             .rules = Rules{.create = check_new_event, .update = in_turn(check_event, validation::event_update)},
             .printer = event_printer(),
             .selected = selected_by_new_names(),
             .scale = kDefault,
             .life = Life{.is_created_by_update = true},
             .counted = kDefault});
}

std::vector<KindInfo> events_group() { return {event()}; }

}  // namespace berth::model::kinds
