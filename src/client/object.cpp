// client::Object: metadata read out of the bytes in one pass.
#include "client/object.h"

#include "base/json_scan.h"
#include "base/mutex.h"

namespace berth::client {
namespace {

enum Field : std::size_t { kName, kNamespace, kUid, kRevision, kLabels, kOwners, kDeletion, kFieldCount };

const json::PathScanner& metadata_scanner() {
  static const json::PathScanner scanner({"metadata.name", "metadata.namespace", "metadata.uid", "metadata.resourceVersion",
                                          "metadata.labels", "metadata.ownerReferences", "metadata.deletionTimestamp"});
  return scanner;
}

/// They are a good part of a pod, and nobody reads them.
json::Value parse_without_field_owners(const std::string& text) {
  static const json::PathScanner scanner({"metadata.managedFields"});
  std::string_view owners;
  const bool has_owners = scanner.scan(text, {&owners, 1}) && !owners.empty();
  const std::size_t at = has_owners ? static_cast<std::size_t>(owners.data() - text.data()) : 0;
  auto parsed = json::parse(has_owners ? text.substr(0, at).append("null").append(text, at + owners.size()) : text);
  if (!parsed) return nullptr;
  if (has_owners) json::erase(*parsed, {"metadata", "managedFields"});
  return std::move(*parsed);
}

bool is_present(std::string_view raw) { return !raw.empty() && raw != "null"; }

}  // namespace

Object::Object(KeptTextRef text) : kept_(std::move(text)) {
  const HeldText held = kept_->read();
  std::array<std::string_view, kFieldCount> raw;
  if (!metadata_scanner().scan(*held, raw)) return;
  Alike alike;
  name_ = json::unquote(raw[kName]);
  alike.ns = json::unquote(raw[kNamespace]);
  uid_ = json::unquote(raw[kUid]);
  const auto revision = json::unquote(raw[kRevision]);
  std::from_chars(revision.data(), revision.data() + revision.size(), revision_);
  is_deleting_ = is_present(raw[kDeletion]);
  if (is_present(raw[kLabels])) {
    std::vector<std::pair<std::string, std::string>> labels;
    json::for_each_member(raw[kLabels], [&](std::string_view key, std::string_view value) {
      if (value.starts_with('"')) labels.emplace_back(json::unquote(key), json::unquote(value));
    });
    alike.labels = model::Labels(std::move(labels));
  }
  if (is_present(raw[kOwners])) {
    owners_digest_ = std::hash<std::string_view>()(raw[kOwners]);
    json::for_each_element(raw[kOwners], [&](std::string_view owner) {
      static const json::PathScanner scanner({"controller", "uid", "kind", "name"});
      std::array<std::string_view, 4> fields;
      if (!scanner.scan(owner, fields) || fields[0] != "true") return;
      alike.controller_uid = json::unquote(fields[1]);
      alike.controller_kind = json::unquote(fields[2]);
      alike.controller_name = json::unquote(fields[3]);
    });
  }
  alike_ = std::move(alike);
}

Object::Object(const json::Value& document) : Object(json::serialize(document)) {}

ObjectRef share_object(const KeptTextRef& text) {
  /// Watches are told in groups: what comes next to one has come to another some thousand objects ago at most.
  struct Shelf {
    Mutex mutex;
    std::array<std::weak_ptr<const Object>, 4> objects BERTH_GUARDED_BY(mutex);
    std::size_t next BERTH_GUARDED_BY(mutex) = 0;
  };
  static std::array<Shelf, 1024> young;
  Shelf& shelf = young[(std::hash<const KeptText*>()(text.get()) >> 4) % young.size()];
  const MutexLock lock(shelf.mutex);
  for (const auto& known : shelf.objects)
    if (ObjectRef object = known.lock(); object && object->kept() == text) return object;
  auto made = std::make_shared<const Object>(text);
  shelf.objects[shelf.next++ % shelf.objects.size()] = made;
  return made;
}

std::shared_ptr<const json::Value> Object::parsed() const {
  static thread_local std::array<std::shared_ptr<const json::Value>, 8> recent;
  static thread_local std::size_t next = 0;
  if (auto known = parsed_.load().lock()) return known;
  auto fresh = std::make_shared<const json::Value>(parse_without_field_owners(kept_->read().here()));
  parsed_.store(fresh);
  recent[next++ % recent.size()] = fresh;
  return fresh;
}

json::Value Object::document() const {
  auto parsed = json::parse(kept_->read().here());
  return parsed ? std::move(*parsed) : json::Value(nullptr);
}

}  // namespace berth::client
