#include "apiserver/apply/managed_fields.h"

#include "apiserver/apply/typed_merge.h"
#include "base/json_quote.h"
#include "base/json_scan.h"
#include "model/kind_hooks.h"

namespace berth::apiserver::apply {
namespace {

constexpr std::size_t kMaxUpdateManagers = 10;
constexpr std::size_t kMaxConflictBytes = 1024 * 1024;  ///< Of conflicts that are told.
constexpr std::string_view kAncientManager = "ancient-changes";
constexpr std::string_view kBeforeFirstApply = "before-first-apply";

struct Entry {
  std::string manager, operation, api_version, subresource, time;
  FieldSet fields;
  json::Value raw = nullptr;   ///< fieldsV1 as it stands in the document, where nobody looked into it: `fields` is empty then.
  std::string_view text = {};  ///< The same where it stands in bytes.

  [[nodiscard]] bool is_closed() const { return !raw.is_null() || !text.empty(); }
  [[nodiscard]] bool is_empty() const { return !is_closed() && fields.empty(); }
  /// Reads what stands in the document.
  void open() {
    if (!text.empty()) {
      const auto read = json::parse(std::exchange(text, {}));
      fields = read ? FieldSet::from_json(*read) : FieldSet();
    }
    if (raw.is_null()) return;
    fields = FieldSet::from_json(raw);
    raw = nullptr;
  }
  /// Whether the two have a first step of their paths in common. The entries of a pod that its kubelet's status has nothing to do with, a
  /// hundred paths of its spec, are neither read nor written again.
  [[nodiscard]] bool may_meet(const FieldSet& set) const {
    bool meets = false;
    const auto is_in = [&](std::string_view element) { return set.find(element) != nullptr; };
    if (!text.empty())
      return !json::for_each_member(text, [&](std::string_view key, std::string_view) { meets = meets || is_in(json::unquote(key)); }) ||
             meets;
    const auto* object = raw.if_object();
    if (object == nullptr) return true;
    return std::ranges::any_of(*object, [&](const auto& member) { return is_in(member.key()); });
  }
};

std::vector<Entry> read_entries(const json::Value& document) {
  std::vector<Entry> entries;
  for (const auto& entry : json::get_array(document, {"metadata", "managedFields"})) {
    const auto* fields = json::find(entry, "fieldsV1");
    if (fields == nullptr) continue;
    entries.push_back({std::string(json::get_string(entry, {"manager"})), std::string(json::get_string(entry, {"operation"})),
                       std::string(json::get_string(entry, {"apiVersion"})), std::string(json::get_string(entry, {"subresource"})),
                       std::string(json::get_string(entry, {"time"})), FieldSet(), *fields});
    // An empty set is none, however it is written.
    if (!fields->is_object() || fields->get_object().empty()) entries.back().open();
  }
  return entries;
}

/// Of a list in bytes, which the entries are views of.
std::vector<Entry> read_entries(std::string_view list) {
  enum : std::size_t { kManager, kOperation, kVersion, kSubresource, kTime, kFields, kPaths };
  static const json::PathScanner scanner({"manager", "operation", "apiVersion", "subresource", "time", "fieldsV1"});
  std::vector<Entry> entries;
  json::for_each_element(list, [&](std::string_view element) {
    std::array<std::string_view, kPaths> at;
    if (!scanner.scan(element, at) || at[kFields].empty() || at[kFields] == "null") return;
    entries.push_back({json::unquote(at[kManager]), json::unquote(at[kOperation]), json::unquote(at[kVersion]),
                       json::unquote(at[kSubresource]), json::unquote(at[kTime]), FieldSet(), nullptr, at[kFields]});
    if (at[kFields].front() != '{' || at[kFields].size() < 3) entries.back().open();
  });
  return entries;
}

/// Of updates to the object itself only the latest managers keep their names; the older ones become one.
void merge_oldest(std::vector<Entry>& entries) {
  std::vector<std::size_t> updates;
  for (std::size_t i = 0; i < entries.size(); ++i)
    if (entries[i].operation == "Update" && entries[i].subresource.empty()) updates.push_back(i);
  if (updates.size() <= kMaxUpdateManagers) return;
  std::stable_sort(updates.begin(), updates.end(), [&](std::size_t a, std::size_t b) { return entries[a].time < entries[b].time; });
  updates.resize(updates.size() - kMaxUpdateManagers + 1);
  const auto ancient = std::ranges::find_if(updates, [&](std::size_t i) { return entries[i].manager == kAncientManager; });
  auto& into = entries[ancient == updates.end() ? updates.front() : *ancient];
  std::vector<const FieldSet*> sets;
  for (const auto i : updates) {
    entries[i].open();
    sets.push_back(&entries[i].fields);
  }
  auto all = FieldSet::union_of(sets);
  const auto latest = entries[updates.back()].time;
  for (const auto i : updates) entries[i].fields = {};
  into.manager = kAncientManager;
  into.time = latest;
  into.fields = std::move(all);
  std::erase_if(entries, [](const Entry& entry) { return entry.is_empty(); });
}

/// As they are written down: those that own something, in order.
void put_in_order(std::vector<Entry>& entries) {
  std::erase_if(entries, [](const Entry& entry) { return entry.is_empty(); });
  merge_oldest(entries);
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.operation, a.time, a.manager) < std::tie(b.operation, b.time, b.manager);  // "Apply" < "Update"
  });
}

void write_entries(json::Value& document, std::vector<Entry> entries) {
  put_in_order(entries);
  auto& metadata = json::ensure_object(document, {"metadata"});
  if (entries.empty()) {
    metadata.erase("managedFields");
    return;
  }
  json::Array list;
  for (auto& entry : entries) {
    json::Object object{{"manager", entry.manager}, {"operation", entry.operation}, {"apiVersion", entry.api_version}};
    if (!entry.time.empty()) object["time"] = entry.time;
    object["fieldsType"] = "FieldsV1";
    object["fieldsV1"] = entry.raw.is_null() ? entry.fields.to_json() : std::move(entry.raw);
    if (!entry.subresource.empty()) object["subresource"] = entry.subresource;
    list.push_back(std::move(object));
  }
  metadata["managedFields"] = std::move(list);
}

std::string text_of(std::vector<Entry> entries) {
  put_in_order(entries);
  std::string out;
  for (const auto& entry : entries) {
    const auto add = [&](std::string_view key, std::string_view value) {
      out.append(key);
      json::quote_to(out, value);
    };
    out += out.empty() ? '[' : ',';
    add(R"({"manager":)", entry.manager);
    add(R"(,"operation":)", entry.operation);
    add(R"(,"apiVersion":)", entry.api_version);
    if (!entry.time.empty()) add(R"(,"time":)", entry.time);
    out += R"(,"fieldsType":"FieldsV1","fieldsV1":)";
    if (entry.text.empty())
      json::serialize_to(out, entry.fields.to_json());
    else
      out += entry.text;
    if (!entry.subresource.empty()) add(R"(,"subresource":)", entry.subresource);
    out += '}';
  }
  if (!out.empty()) out += ']';
  return out;
}

/// Takes out what nobody owns: the object's identity and what the server itself keeps.
void strip_system_fields(FieldSet& set) {
  set.erase("f:apiVersion");
  set.erase("f:kind");
  if (set.find("f:metadata") == nullptr) return;
  auto& metadata = set.child("f:metadata");
  metadata.set_member(false);
  for (std::string_view field : {"f:name", "f:namespace", "f:creationTimestamp", "f:selfLink", "f:uid", "f:clusterName", "f:generation",
                                 "f:managedFields", "f:resourceVersion"})
    metadata.erase(field);
  if (metadata.empty()) set.erase("f:metadata");
}

/// Takes out what a write to this (sub)resource cannot change.
void reset_fields(const model::KindInfo& kind, std::string_view subresource, FieldSet& set) {
  if (subresource.empty()) {
    if (kind.has_subresource("status")) set.erase("f:status");
  } else if (subresource == "status") {
    set.erase("f:spec");
    if (model::is_unstructured(kind)) set.erase("f:metadata");
    if (set.find("f:metadata") != nullptr) {
      auto& metadata = set.child("f:metadata");
      metadata.erase("f:deletionTimestamp");
      metadata.erase("f:ownerReferences");
      for (const auto key : model::hooks_of(kind).strategy->kept_in_status_update) metadata.erase(fmt::format("f:{}", key));
      if (metadata.empty()) set.erase("f:metadata");
    }
  }
}

/// Compares two documents of a kind; managedFields and the root itself stay out of it.
Comparison compare_documents(const model::KindInfo& kind, const json::Value* before, const json::Value& after,
                             std::string_view subresource) {
  // What reset_fields would take away whole is not compared: most of an object, where its status is written.
  const std::string_view left_out = subresource == "status"                                 ? "spec"
                                    : subresource.empty() && kind.has_subresource("status") ? "status"
                                                                                            : "";
  auto comparison = compare(Shape::of(kind), before, after, left_out);
  for (auto* set : {&comparison.changed, &comparison.removed}) {
    strip_system_fields(*set);
    reset_fields(kind, subresource, *set);
  }
  return comparison;
}

/// As who applies a Scale or an object is told of it.
std::string describe_manager(const Entry& entry, const Writer& told) {
  std::string out = json::serialize(json::Value(entry.manager));
  if (!entry.subresource.empty()) out += fmt::format(" with subresource {}", json::serialize(json::Value(entry.subresource)));
  if (entry.operation == "Update") out += fmt::format(" using {}", told.subresource == "scale" ? "autoscaling/v1" : entry.api_version);
  return out;
}

model::ApiStatus conflict_status(const std::vector<std::pair<std::string, std::string>>& conflicts) {
  model::ApiStatus status;
  status.code = 409;
  status.reason = "Conflict";
  for (const auto& [manager, path] : conflicts) status.causes.push_back({"FieldManagerConflict", "conflict with " + manager, path});
  if (conflicts.size() == 1) {
    status.message = fmt::format("Apply failed with 1 conflict: conflict with {}: {}", conflicts[0].first, conflicts[0].second);
    return status;
  }
  std::map<std::string, std::vector<std::string>> by_manager;
  for (const auto& [manager, path] : conflicts) by_manager[manager].push_back(path);
  std::string text;
  for (const auto& [manager, paths] : by_manager) {
    text += fmt::format("{}conflicts with {}:", text.empty() ? "" : "\n", manager);
    for (const auto& path : paths) text += "\n- " + path;
  }
  status.message = fmt::format("Apply failed with {} conflicts: {}", conflicts.size(), text);
  return status;
}

/// What the entries come to when the writer has changed the document so.
void give_changed(std::vector<Entry>& entries, const model::KindInfo& kind, Comparison comparison, const Writer& writer) {
  const auto api_version = kind.api_version();
  Entry* own = nullptr;
  for (auto& entry : entries) {
    const bool is_own = entry.manager == writer.manager && entry.operation == "Update" && entry.api_version == api_version &&
                        entry.subresource == writer.subresource;
    if (is_own) own = &entry;
    const bool is_touched =
        (is_own && !comparison.changed.empty()) || entry.may_meet(comparison.changed) || entry.may_meet(comparison.removed);
    if (!is_touched) continue;
    entry.open();
    if (!is_own) entry.fields.subtract(comparison.changed);
    entry.fields.subtract(comparison.removed);
  }
  // A custom kind's replicas are nobody's once they were scaled: what moves them cannot be told in the version of a Scale.
  const bool is_lost = writer.subresource == "scale" && model::is_unstructured(kind);
  if (comparison.changed.empty() || is_lost) return;
  if (own == nullptr) own = &entries.emplace_back(Entry{writer.manager, "Update", api_version, writer.subresource, "", {}, nullptr});
  if (own->fields.empty()) {
    own->fields = std::move(comparison.changed);
  } else {
    own->fields.unite(comparison.changed);
  }
  own->time = format_rfc3339(writer.time);
}

}  // namespace

bool forgets_owners(const json::Value& sent) {
  const auto& list = json::get_array(sent, {"metadata", "managedFields"});
  // An empty list, too, when it is really there.
  if (list.empty()) {
    const auto* given = json::find(sent, {"metadata", "managedFields"});
    return given != nullptr && given->is_array();
  }
  return list.size() == 1 && list[0].is_object() && list[0].get_object().empty();
}

std::string track_status(const model::KindInfo& kind, const json::Value& live, const json::Value& updated, const Writer& writer,
                         std::string_view owners) {
  auto entries = read_entries(owners);
  // Whose fields nobody can tell belongs to nobody.
  if (entries.empty()) return {};
  give_changed(entries, kind, compare_documents(kind, &live, updated, writer.subresource), writer);
  return text_of(std::move(entries));
}

void track_update(const model::KindInfo& kind, const json::Value* live, json::Value& updated, const Writer& writer) {
  if (forgets_owners(updated)) {
    json::erase(updated, {"metadata", "managedFields"});
    if (live != nullptr) return;
  }
  // Whose fields nobody can tell belongs to nobody.
  if (model::is_unstructured(kind) && (!is_typed(kind, updated) || (live != nullptr && !is_typed(kind, *live)))) {
    json::erase(updated, {"metadata", "managedFields"});
    return;
  }
  std::vector<Entry> entries;
  if (live != nullptr) {
    if (writer.subresource.empty()) entries = read_entries(updated);
    for (auto& entry : entries) entry.open();  // A client wrote them: in whatever form.
    if (entries.empty()) entries = read_entries(*live);
    if (entries.empty()) {
      json::erase(updated, {"metadata", "managedFields"});
      return;
    }
  }
  give_changed(entries, kind, compare_documents(kind, live, updated, writer.subresource), writer);
  write_entries(updated, std::move(entries));
}

model::ApiResult<json::Value> apply(const model::KindInfo& kind, const json::Value& live, const json::Value& config,
                                    const json::Value& written, const Writer& writer, bool force) {
  const auto shape = Shape::of(kind);
  const auto api_version = kind.api_version();
  const bool exists = json::find(live, {"metadata", "uid"}) != nullptr;
  auto entries = read_entries(live);
  for (auto& entry : entries) entry.open();
  if (exists && entries.empty()) {
    Entry before{std::string(kBeforeFirstApply),
                 "Update",
                 api_version,
                 "",
                 format_rfc3339(writer.time),
                 compare_documents(kind, nullptr, live, "").changed,
                 nullptr};
    entries.push_back(std::move(before));
  }
  const auto named = set_of(shape, written);
  auto owned = named;
  strip_system_fields(owned);
  reset_fields(kind, writer.subresource, owned);

  std::optional<Entry> last;
  for (auto at = entries.begin(); at != entries.end(); ++at) {
    if (at->manager != writer.manager || at->operation != "Apply" || at->subresource != writer.subresource) continue;
    last = std::move(*at);
    entries.erase(at);
    break;
  }
  json::Value result = live;
  if (!result.is_object()) result = json::Object();
  merge(shape, result, config);
  json::erase(result, {"metadata", "managedFields"});
  if (last) {
    std::vector<const FieldSet*> owners{&named};
    for (const auto& entry : entries) owners.push_back(&entry.fields);
    prune(shape, result, last->fields, FieldSet::union_of(owners));
  }

  const auto comparison = compare_documents(kind, exists ? &live : nullptr, result, writer.subresource);
  std::vector<std::pair<std::string, std::string>> conflicts;
  std::size_t left = kMaxConflictBytes;
  for (auto& entry : entries) {
    auto contested = entry.fields.intersect(comparison.changed);
    if (!contested.empty()) {
      const auto manager = describe_manager(entry, writer);
      for (auto& path : contested.render_members(left)) {
        if (manager.size() + path.size() > left && !conflicts.empty()) break;
        left -= std::min(left, manager.size() + path.size());
        conflicts.emplace_back(manager, std::move(path));
      }
      entry.fields.subtract(contested);
    }
    entry.fields.subtract(comparison.removed);
  }
  if (!conflicts.empty() && !force) return std::unexpected(conflict_status(conflicts));
  Entry own{writer.manager, "Apply", api_version, writer.subresource, format_rfc3339(writer.time), std::move(owned), nullptr};
  // Who changes nothing has no time of a change: not yet, or still the old one.
  if (exists && comparison.changed.empty() && comparison.removed.empty()) own.time = last ? last->time : "";
  entries.push_back(std::move(own));
  write_entries(result, std::move(entries));
  return result;
}

std::string manager_of_user_agent(std::string_view user_agent) {
  std::string name(user_agent.substr(0, user_agent.find('/')));
  std::erase_if(name, [](unsigned char c) { return c < 0x20 || c > 0x7e; });
  if (name.size() > 128) name.resize(128);
  return name.empty() ? "unknown" : name;
}

namespace {

/// Whatever time they name.
bool is_same_entry(const json::Value& one, const json::Value& other) {
  if (!one.is_object() || !other.is_object()) return json::equal(one, other);
  const auto& mine = one.get_object();
  const auto& theirs = other.get_object();
  if (mine.size() - mine.count("time") != theirs.size() - theirs.count("time")) return false;
  return std::ranges::all_of(mine, [&](const auto& member) {
    if (member.key() == "time") return true;
    const auto* its = theirs.if_contains(member.key());
    return its != nullptr && json::equal(member.value(), *its);
  });
}

bool are_same_entries(const json::Value* mine, const json::Value* theirs) {
  static const json::Array kNone;
  const auto& first = mine != nullptr && mine->is_array() ? mine->get_array() : kNone;
  const auto& second = theirs != nullptr && theirs->is_array() ? theirs->get_array() : kNone;
  if (first.size() != second.size()) return false;
  for (std::size_t i = 0; i < first.size(); ++i) {
    if (!is_same_entry(first[i], second[i])) return false;
  }
  return true;
}

}  // namespace

bool are_same_owners(std::string_view before, std::string_view after) {
  if (before == after) return true;
  const auto one = json::parse(before.empty() ? "[]" : before), other = json::parse(after.empty() ? "[]" : after);
  return one && other && are_same_entries(&*one, &*other);
}

bool is_same_state(const json::Value& a, const json::Value& b) {
  const auto& left = a.get_object();
  const auto& right = b.get_object();
  if (left.size() != right.size()) return false;
  for (const auto& [key, value] : left) {
    const auto* other = right.if_contains(key);
    if (other == nullptr) return false;
    if (std::string_view(key) != "metadata" || !value.is_object() || !other->is_object()) {
      if (!json::equal(value, *other)) return false;
      continue;
    }
    const auto& mine = value.get_object();
    const auto& theirs = other->get_object();
    const auto counted = [](const json::Object& metadata) {
      return metadata.size() - metadata.count("resourceVersion") - metadata.count("managedFields");
    };
    if (counted(mine) != counted(theirs) || !are_same_entries(mine.if_contains("managedFields"), theirs.if_contains("managedFields")))
      return false;
    for (const auto& [field, member] : mine) {
      if (std::string_view(field) == "resourceVersion" || std::string_view(field) == "managedFields") continue;
      const auto* its = theirs.if_contains(field);
      if (its == nullptr || !json::equal(member, *its)) return false;
    }
  }
  return true;
}

}  // namespace berth::apiserver::apply
