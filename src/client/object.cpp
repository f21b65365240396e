// client::Object: metadata read out of the bytes in one pass.
#include "client/object.h"

#include "base/json_scan.h"

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
  auto form = text->form();
  // Not in one allocation: the text would hold the room of an object that nobody keeps any more.
  if (form == nullptr) form = text->offer_form(ObjectRef(new Object(text)));
  return std::static_pointer_cast<const Object>(form);
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
