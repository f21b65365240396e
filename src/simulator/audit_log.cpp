#include "simulator/audit_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <set>

#include "apiserver/patch/json_patch.h"

namespace berth::simulator {
namespace {

using json::get_string;

/// One line that may say something, read.
struct AuditEvent {
  TimePoint at{};
  std::string verb, subresource, ns, name;
  const RecordedKind* kind = nullptr;
  json::Value request, response;
};

const RecordedKind* kind_of(const json::Value& event) {
  const std::string_view group = get_string(event, {"objectRef", "apiGroup"}), plural = get_string(event, {"objectRef", "resource"});
  for (const RecordedKind& kind : recorded_kinds())
    if (kind.group == group && kind.plural == plural) return &kind;
  return nullptr;
}

bool is_write(std::string_view verb) {
  return verb == "create" || verb == "update" || verb == "patch" || verb == "delete" || verb == "deletecollection";
}

json::Value take(json::Value& event, std::string_view field) {
  json::Value* found = json::find(event, field);
  return found != nullptr && found->is_object() ? std::move(*found) : json::Value();
}

/// What the objects were, as the log goes on, and what a recording would have of it.
class Teller {
 public:
  explicit Teller(TimePoint start, AuditDay& out) : start_(start), out_(out) {}

  void tell(AuditEvent event) {
    if (event.kind->plural == "pods" && event.subresource == "binding") return bind(event);
    if (event.subresource != "" && event.subresource != "status" && event.subresource != "resize") return;
    if (event.verb == "create") return create(event);
    if (event.verb == "update" || event.verb == "patch") return change(event);
    if (event.verb == "delete") return remove(event, std::move(event.response));
    // Of lists and deleted collections each item; of a get the object.
    if (json::find(event.response, "items") == nullptr) {
      if (event.verb == "get") see(event, std::move(event.response));
      return;
    }
    json::Array items = json::get_array(event.response, {"items"});
    for (json::Value& item : items) {
      if (event.verb == "deletecollection")
        remove(event, std::move(item));
      else
        see(event, std::move(item));
    }
  }
  [[nodiscard]] std::size_t unnamed() const { return unnamed_; }

 private:
  struct Known {
    json::Value object;
    bool is_there = false;
  };

  [[nodiscard]] std::int64_t ms(TimePoint at) const {
    return std::max<std::int64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(at - start_).count(), 0);
  }
  /// As a recording has it: with kind, apiVersion, a name and a uid. False: it is not the object (a Status, no name).
  bool complete(const AuditEvent& event, json::Value& object) {
    if (!object.is_object()) return false;
    const std::string_view kind = get_string(object, {"kind"});
    if (!kind.empty() && kind != event.kind->kind) return false;
    if (get_string(object, {"metadata", "name"}).empty()) {
      if (event.name.empty()) return false;
      json::set(object, {"metadata", "name"}, json::Value(event.name));
    }
    if (get_string(object, {"metadata", "namespace"}).empty() && !event.ns.empty())
      json::set(object, {"metadata", "namespace"}, json::Value(event.ns));
    object.get_object()["kind"] = event.kind->kind;
    object.get_object()["apiVersion"] = event.kind->api_version;
    return true;
  }
  Known& known(const AuditEvent& event, std::string_view name, std::string_view ns) {
    return known_[fmt::format("{}/{}/{}", event.kind->kind, ns, name)];
  }
  Known& known(const AuditEvent& event, const json::Value& object) {
    return known(event, get_string(object, {"metadata", "name"}), get_string(object, {"metadata", "namespace"}));
  }
  void emit(std::int64_t at_ms, RecordedEvent::Type type, const json::Value& object) { out_.events.push_back({at_ms, type, object}); }
  static std::int64_t revision(const json::Value& object) {
    std::int64_t out = 0;
    const std::string_view text = get_string(object, {"metadata", "resourceVersion"});
    std::from_chars(text.data(), text.data() + text.size(), out);
    return out;
  }

  /// An object's state, from whoever shows it: before it is known it has been there since the log's beginning or since it was made.
  /// `is_made`: what is known, changed by what the log tells: newer, though its revision is not known.
  void see(const AuditEvent& event, json::Value object, bool is_made = false) {
    if (!complete(event, object)) return;
    Known& entry = known(event, object);
    const std::string_view uid = get_string(object, {"metadata", "uid"}), before = get_string(entry.object, {"metadata", "uid"});
    if (entry.is_there && !is_made && uid == before && revision(object) != 0 && revision(object) <= revision(entry.object)) return;
    if (entry.is_there && !uid.empty() && uid != before) {
      emit(ms(event.at), RecordedEvent::Type::kDeleted, entry.object);
      entry.is_there = false;
    }
    // Gone already, and shown by a list that began before.
    if (!entry.is_there && !uid.empty() && gone_.contains(std::string(uid))) return;
    if (uid.empty())
      json::set(object, {"metadata", "uid"}, before.empty() ? json::Value(fmt::format("audit-{}", ++uids_)) : json::Value(before));
    if (entry.is_there) {
      emit(ms(event.at), RecordedEvent::Type::kModified, object);
    } else {
      const auto made = parse_rfc3339(get_string(object, {"metadata", "creationTimestamp"}));
      const bool is_new = event.verb == "create" && event.subresource.empty();
      // Not later than what it is seen by: time stamps of objects have whole seconds, and another's clock may be ahead.
      emit(is_new ? ms(event.at) : made ? std::min(ms(*made), ms(event.at)) : 0, RecordedEvent::Type::kAdded, object);
    }
    entry = {std::move(object), true};
  }

  void create(AuditEvent& event) {
    if (event.response.is_object() && get_string(event.response, {"kind"}) == event.kind->kind)
      return see(event, std::move(event.response));
    if (!event.request.is_object()) return;
    if (get_string(event.request, {"metadata", "name"}).empty() && event.name.empty()) {
      ++unnamed_;
      return;
    }
    see(event, std::move(event.request));
  }

  void change(AuditEvent& event) {
    if (event.response.is_object() && get_string(event.response, {"kind"}) == event.kind->kind)
      return see(event, std::move(event.response));
    Known& entry = known(event, event.name, event.ns);
    if (!event.request.is_object()) return;
    if (event.verb == "update") return see(event, std::move(event.request), true);
    if (!entry.is_there) return;
    json::Value merged = entry.object;
    // Lists are replaced: near enough to a strategic merge for what a replay reads (phases, times, labels).
    apiserver::patch::apply_merge_patch(merged, event.request);
    see(event, std::move(merged), true);
  }

  void bind(AuditEvent& event) {
    Known& entry = known(event, event.name, event.ns);
    const std::string node(get_string(event.request, {"target", "name"}));
    if (!entry.is_there || node.empty()) return;
    json::Value bound = entry.object;
    json::set(bound, {"spec", "nodeName"}, json::Value(node));
    see(event, std::move(bound), true);
  }

  void remove(const AuditEvent& event, json::Value object) {
    const bool has_object = get_string(object, {"kind"}) != "Status" && complete(event, object);
    Known& entry = has_object ? known(event, object) : known(event, event.name, event.ns);
    // A grace is given: it goes when its node says so. Finalizers keep it likewise.
    const bool stays = has_object && json::find(object, {"metadata", "deletionTimestamp"}) != nullptr &&
                       (json::get_int(object, {"metadata", "deletionGracePeriodSeconds"}) > 0 ||
                        !json::get_array(object, {"metadata", "finalizers"}).empty());
    if (stays) return see(event, std::move(object));
    if (has_object && !entry.is_there) see(event, std::move(object));
    if (!entry.is_there) return;
    emit(ms(event.at), RecordedEvent::Type::kDeleted, entry.object);
    gone_.emplace(get_string(entry.object, {"metadata", "uid"}));
    entry.is_there = false;
  }

  TimePoint start_;
  AuditDay& out_;
  std::map<std::string, Known> known_;
  std::set<std::string> gone_;  ///< uids
  std::size_t unnamed_ = 0, uids_ = 0;
};

struct Reader {
  std::vector<AuditEvent> events;
  std::size_t bare_writes = 0;  ///< Of recorded kinds, without what was written.
  std::optional<TimePoint> first;

  Result<void> read_line(const std::string& line, const std::string& place) {
    auto document = json::parse(line);
    if (!document) return invalid(fmt::format("{}: {}", place, document.error().message));
    if (get_string(*document, {"kind"}) != "Event" || !get_string(*document, {"apiVersion"}).starts_with("audit.k8s.io/"))
      return invalid(fmt::format("{}: no event of audit.k8s.io (kind {}, apiVersion {})", place, get_string(*document, {"kind"}),
                                 get_string(*document, {"apiVersion"})));
    const auto at = parse_rfc3339(get_string(*document, {"stageTimestamp"}));
    if (!at) return invalid(fmt::format("{}: stageTimestamp \"{}\" is not a time", place, get_string(*document, {"stageTimestamp"})));
    first = first ? std::min(*first, *at) : *at;
    const RecordedKind* kind = kind_of(*document);
    const std::int64_t code = json::get_int(*document, {"responseStatus", "code"});
    if (kind == nullptr || get_string(*document, {"stage"}) != "ResponseComplete" || code < 200 || code > 299) return {};
    if (get_string(*document, {"requestURI"}).find("dryRun=") != std::string_view::npos) return {};
    AuditEvent event{*at,
                     std::string(get_string(*document, {"verb"})),
                     std::string(get_string(*document, {"objectRef", "subresource"})),
                     std::string(get_string(*document, {"objectRef", "namespace"})),
                     std::string(get_string(*document, {"objectRef", "name"})),
                     kind,
                     take(*document, "requestObject"),
                     take(*document, "responseObject")};
    const bool is_bare = event.request.is_null() && event.response.is_null();
    if (is_bare && event.verb != "delete") {
      bare_writes += is_write(event.verb);
      return {};
    }
    events.push_back(std::move(event));
    return {};
  }

  Result<void> read_file(const std::string& file) {
    std::ifstream in(file);
    if (!in) return fail(ErrorCode::kNotFound, fmt::format("{}: {}", file, std::strerror(errno)));
    std::string line;
    for (std::size_t number = 1; std::getline(in, line); ++number) {
      if (line.empty()) continue;
      const std::string place = fmt::format("{}:{}", file, number);
      auto read = read_line(line, place);
      if (!read && in.eof()) return invalid(fmt::format("{}: the log is cut off in the middle of a line", place));
      if (!read) return read;
    }
    return {};
  }
};

}  // namespace

bool is_audit_line(std::string_view line) {
  const auto document = json::parse(line);
  return document && get_string(*document, {"kind"}) == "Event" && get_string(*document, {"apiVersion"}).starts_with("audit.k8s.io/");
}

Result<AuditDay> read_audit_logs(const std::vector<std::string>& files) {
  Reader reader;
  for (const std::string& file : files)
    if (auto read = reader.read_file(file); !read) return std::unexpected(read.error());
  const std::string all = fmt::format("{}", fmt::join(files, ", "));
  if (!reader.first) return invalid(fmt::format("{}: the audit log is empty", all));
  AuditDay out;
  out.head = {*reader.first, fmt::format("audit log {}", all), {}};
  std::ranges::stable_sort(reader.events, {}, &AuditEvent::at);
  Teller teller(*reader.first, out);
  for (AuditEvent& event : reader.events) teller.tell(std::move(event));
  std::ranges::stable_sort(out.events, {}, &RecordedEvent::at_ms);
  if (out.events.empty())
    return invalid(fmt::format("{}: nothing to replay: {}", all,
                               reader.bare_writes > 0 ? fmt::format("{} writes of pods, nodes and the like were logged at level Metadata; "
                                                                    "the audit policy must log them at Request or RequestResponse",
                                                                    reader.bare_writes)
                                                      : "no write of a pod, a node or the like is in it"));
  if (reader.bare_writes > 0)
    out.notes.push_back(fmt::format("{} writes were logged at level Metadata, without what was written: left out", reader.bare_writes));
  if (teller.unnamed() > 0)
    out.notes.push_back(
        fmt::format("{} objects were created by generateName and logged at level Request, which does not say their names: "
                    "left out (level RequestResponse does)",
                    teller.unnamed()));
  return out;
}

}  // namespace berth::simulator
