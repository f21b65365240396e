#include "apiserver/cache/object_codec.h"

#include <unordered_map>

#include "base/dotted.h"
#include "base/json_quote.h"
#include "base/json_scan.h"
#include "base/json_size.h"
#include "model/kind_hooks.h"

namespace berth::apiserver {
namespace {

constexpr std::array<std::string_view, 4> kIdentity = {"name", "generateName", "namespace", "uid"};

void write_member(std::string& out, std::string_view key, const json::Value& value, bool& first) {
  if (!first) out += ',';
  first = false;
  json::quote_to(out, key);
  out += ':';
  json::serialize_to(out, value);
}

std::size_t write_metadata(std::string& out, const json::Object& metadata) {
  out += '{';
  bool first = true;
  for (const auto key : kIdentity)
    if (const auto* value = metadata.if_contains(key)) write_member(out, key, *value, first);
  out += first ? "\"resourceVersion\":\"" : ",\"resourceVersion\":\"";
  const std::size_t offset = out.size();
  out += '"';
  first = false;
  for (const auto& [key, value] : metadata) {
    const std::string_view name(key.data(), key.size());
    if (name == "resourceVersion" || std::find(kIdentity.begin(), kIdentity.end(), name) != kIdentity.end()) continue;
    write_member(out, name, value, first);
  }
  out += '}';
  return offset;
}

/// How the kind's field is read where it is not simply read at its path; null for most.
const model::SelectedField* special(const model::KindInfo& kind, std::string_view field) {
  const auto& all = *model::hooks_of(kind).selected;
  const auto found = std::ranges::find(all, field, &model::SelectedField::name);
  return found == all.end() ? nullptr : &*found;
}

/// The document path that a selectable field is read from.
std::string source_path(const model::KindInfo& kind, std::string_view field) {
  const auto* own = special(kind, field);
  return own == nullptr || own->path.empty() ? std::string(field) : own->path;
}

/// What is selected where nothing is there: Kubernetes shows some fields to selectors although the object leaves them out.
std::string_view when_absent(const model::KindInfo& kind, std::string_view field) {
  const auto* own = special(kind, field);
  return own == nullptr ? std::string_view() : own->absent;
}

/// Fields that another stands in for.
void complete_fields(const model::KindInfo& kind, ObjectMeta& meta) {
  const auto named = [&](std::string_view name) { return std::ranges::find(meta.fields, name, [](const auto& f) { return f.first; }); };
  for (const auto& field : *model::hooks_of(kind).selected) {
    if (field.instead.empty() || named(field.name) != meta.fields.end()) continue;
    if (const auto other = named(field.instead); other != meta.fields.end()) {
      std::string value(other->second);
      meta.fields.emplace_back(field.name, std::move(value));
    }
  }
}

std::string scalar_text(const json::Value& value) {
  if (value.is_string()) return std::string(json::as_view(value));
  return json::serialize(value);
}

struct ScanPlan {
  const model::KindInfo* kind = nullptr;
  std::vector<std::string> fields;  ///< Selectable fields, in the order of the scanner's paths after the fixed ones.
  std::unique_ptr<json::PathScanner> scanner;
};

enum : std::size_t { kName, kNamespace, kUid, kLabels, kCreated, kLast, kEventTime, kFixedPaths };

/// One scanner a stored kind, made once.
const ScanPlan& scan_plan(std::string_view group_and_plural) {
  static const std::map<std::string, ScanPlan, std::less<>> kPlans = [] {
    std::map<std::string, ScanPlan, std::less<>> plans;
    auto make = [&](const std::string& key, const model::KindInfo* kind) {
      auto& plan = plans[key];
      plan.kind = kind;
      std::vector<std::string> paths = {"metadata.name",   "metadata.namespace",         "metadata.uid",
                                        "metadata.labels", "metadata.creationTimestamp", "lastTimestamp",
                                        "eventTime"};
      if (kind != nullptr) {
        for (const auto& field : kind->field_selectors) {
          if (field.starts_with("metadata.")) continue;
          plan.fields.push_back(field);
          paths.push_back(source_path(*kind, field));
        }
      }
      plan.scanner = std::make_unique<json::PathScanner>(paths);
    };
    make("", nullptr);
    for (const auto& kind : model::all_kinds())
      if (kind.group == kind.storage_group && kind.version == kind.storage_version) make(kind.storage_group + "/" + kind.plural, &kind);
    return plans;
  }();
  const auto found = kPlans.find(group_and_plural);
  return found == kPlans.end() ? kPlans.at("") : found->second;
}

model::Labels read_labels(std::string_view text) {
  std::vector<std::pair<std::string, std::string>> pairs;
  json::for_each_member(text, [&](std::string_view k, std::string_view v) { pairs.emplace_back(json::unquote(k), json::unquote(v)); });
  return model::Labels(std::move(pairs));
}

/// Those of the last few texts are known: thousands of objects have the same. Long ones are nobody else's, and not kept.
model::Labels labels_of(std::string_view text) {
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view one) const { return std::hash<std::string_view>()(one); }
  };
  constexpr std::size_t kMostKnown = 16'384, kMostBytes = 512;
  if (text.size() > kMostBytes) return read_labels(text);
  thread_local std::unordered_map<std::string, model::Labels, Hash, std::equal_to<>> known;
  if (const auto found = known.find(text); found != known.end()) return found->second;
  if (known.size() == kMostKnown) known.clear();
  return known.emplace(text, read_labels(text)).first->second;
}

}  // namespace

EncodedObject encode_object(const json::Value& document) {
  EncodedObject out;
  out.value.reserve(2048);
  const auto& object = document.get_object();
  out.value += '{';
  bool first = true;
  for (std::string_view key : {"apiVersion", "kind"})
    if (const auto* value = object.if_contains(key)) write_member(out.value, key, *value, first);
  out.value += first ? "\"metadata\":" : ",\"metadata\":";
  first = false;
  static const json::Object kEmpty;
  const auto* metadata = object.if_contains("metadata");
  out.revision_offset = write_metadata(out.value, metadata != nullptr && metadata->is_object() ? metadata->get_object() : kEmpty);
  for (const auto& [key, value] : object) {
    const std::string_view name(key.data(), key.size());
    if (name == "apiVersion" || name == "kind" || name == "metadata") continue;
    write_member(out.value, name, value, first);
  }
  out.value += '}';
  return out;
}

ObjectMeta extract_meta(const model::KindInfo& kind, const json::Value& document,
                        const std::function<const StoredObject*(std::string_view path)>& rest_at) {
  ObjectMeta meta;
  meta.ns = json::get_string(document, {"metadata", "namespace"});
  meta.name = json::get_string(document, {"metadata", "name"});
  meta.uid = json::get_string(document, {"metadata", "uid"});
  meta.labels = model::Labels::from_json(json::find(document, {"metadata", "labels"}));
  for (const auto& field : kind.field_selectors) {
    if (field.starts_with("metadata.")) continue;
    const auto path = source_path(kind, field);
    if (const auto* rest = rest_at ? rest_at(path) : nullptr; rest != nullptr) {
      if (const auto text = rest->meta.field(field); !text.empty()) meta.fields.emplace_back(field, text);
      continue;
    }
    const auto* value = json::find_dotted(document, path);
    std::string text =
        value != nullptr && !value->is_object() && !value->is_array() ? scalar_text(*value) : std::string(when_absent(kind, field));
    if (!text.empty()) meta.fields.emplace_back(field, std::move(text));
  }
  complete_fields(kind, meta);
  return meta;
}

ObjectMeta extract_meta(std::string_view key, const std::string& value, Duration event_ttl) {
  // "/GROUP/PLURAL/NAMESPACE/NAME"
  const auto plural_start = key.find('/', 1);
  const auto plural_end = plural_start == std::string_view::npos ? plural_start : key.find('/', plural_start + 1);
  const auto& plan = scan_plan(plural_end == std::string_view::npos ? std::string_view{} : key.substr(1, plural_end - 1));
  ObjectMeta meta;
  std::vector<std::string_view> values(kFixedPaths + plan.fields.size());
  if (!plan.scanner->scan(value, values)) return meta;
  meta.name = json::unquote(values[kName]);
  meta.ns = json::unquote(values[kNamespace]);
  meta.uid = json::unquote(values[kUid]);
  if (!values[kLabels].empty()) meta.labels = labels_of(values[kLabels]);
  for (std::size_t i = 0; i < plan.fields.size(); ++i) {
    const auto raw = values[kFixedPaths + i];
    std::string text = raw.empty()          ? std::string(when_absent(*plan.kind, plan.fields[i]))
                       : raw.front() == '"' ? json::unquote(raw)
                                            : std::string(raw);
    if (raw == "null" || (!raw.empty() && (raw.front() == '{' || raw.front() == '['))) text.clear();
    if (!text.empty()) meta.fields.emplace_back(plan.fields[i], std::move(text));
  }
  if (plan.kind == nullptr) return meta;
  complete_fields(*plan.kind, meta);
  if (model::hooks_of(*plan.kind).life->expires) {
    TimePoint latest{};
    for (auto index : {kCreated, kLast, kEventTime})
      if (const auto t = parse_rfc3339(json::unquote(values[index]))) latest = std::max(latest, *t);
    if (latest != TimePoint{}) meta.expires_at = latest + event_ttl;
  }
  return meta;
}

Proposal proposal_of(const model::KindInfo& stored, ObjectMeta meta, EncodedObject encoded) {
  Proposal proposal;
  proposal.key = object_key(stored, meta.ns, meta.name);
  proposal.meta = std::move(meta);
  proposal.value = std::move(encoded.value);
  proposal.revision_offset = encoded.revision_offset;
  return proposal;
}

Proposal proposal_of(const model::KindInfo& stored, const json::Value& document) {
  return proposal_of(stored, extract_meta(stored, document), encode_object(document));
}

ObjectMeta meta_like(const StoredObject& object, model::Labels labels) {
  return {std::string(object.meta.ns), std::string(object.meta.name), std::string(object.meta.uid), std::move(labels), {}, {}};
}

const model::KindInfo& storage_kind(const model::KindInfo& kind) { return kind.storage(); }

std::string object_key(const model::KindInfo& kind, std::string_view ns, std::string_view name) {
  return make_key(kind.storage_group, kind.plural, ns, name);
}

json::Value decode_object(const StoredObject& object) {
  auto parsed = json::parse(object.text().here());
  return parsed ? std::move(*parsed) : json::Value(json::Object());
}

std::string stored_field(const model::KindInfo& kind, std::string_view field) {
  if (field == "metadata.name" || (field == "metadata.namespace" && kind.namespaced)) return std::string(field);
  if (std::ranges::find(kind.field_selectors, field) == kind.field_selectors.end()) return {};
  const auto* own = special(kind, field);
  const std::string name = own != nullptr && own->stored_as ? *own->stored_as : std::string(field);
  const auto& stored = storage_kind(kind);
  for (const auto& supported : stored.field_selectors)
    if (supported == name) return name;
  return {};
}

model::ApiStatus too_large() {
  model::ApiStatus status;
  status.code = 413;
  status.reason = "RequestEntityTooLarge";
  status.message = fmt::format(
      "Request entity too large: limit is {}: the object, with its defaults, its managedFields and what admission "
      "made of it, would be larger",
      kMostObjectBytes);
  return status;
}

std::optional<model::ApiStatus> refuse_large(const json::Value& document) {
  if (json::text_size(document, kMostObjectBytes) <= kMostObjectBytes) return std::nullopt;
  return too_large();
}

}  // namespace berth::apiserver
