// What the kinds' defaulting is built from (Kubernetes: pkg/apis/*/v1/defaults.go); each kind's own stands in its record.
#include "model/defaults.h"

#include "model/kind_hooks.h"
#include "model/schema.h"

namespace berth::model {
namespace defaults {

void put(Object& object, std::string_view key, Value value) {
  const auto found = object.find(key);
  if (found == object.end() || found->value().is_null()) object[key] = std::move(value);
}

void put_string(Object& object, std::string_view key, std::string_view value) {
  const auto found = object.find(key);
  if (found == object.end() || !found->value().is_string() || found->value().get_string().empty()) object[key] = value;
}

Object* child(Object& object, std::string_view key) {
  const auto found = object.find(key);
  return found == object.end() ? nullptr : found->value().if_object();
}

Array* list(Object& object, std::string_view key) {
  const auto found = object.find(key);
  return found == object.end() ? nullptr : found->value().if_array();
}

Object& make_child(Object& object, std::string_view key) {
  Value& value = object[key];
  if (!value.is_object()) value.emplace_object();
  return value.get_object();
}

std::string_view string_at(Object& object, std::string_view key) {
  const auto found = object.find(key);
  return found != object.end() && found->value().is_string() ? json::as_view(found->value()) : std::string_view();
}

void pod_template(Object& owner) {
  if (Object* pod_template = child(owner, "template"))
    if (Object* spec = child(*pod_template, "spec")) pod_spec(*spec);
}

void labels_from_template(Object& doc, bool with_selector) {
  Object* spec = child(doc, "spec");
  Object* pod_template = spec == nullptr ? nullptr : child(*spec, "template");
  Object* meta = pod_template == nullptr ? nullptr : child(*pod_template, "metadata");
  Object* labels = meta == nullptr ? nullptr : child(*meta, "labels");
  if (labels == nullptr || labels->empty()) return;
  if (with_selector && (child(*spec, "selector") == nullptr || child(*spec, "selector")->empty())) (*spec)["selector"] = Object(*labels);
  Object& own = make_child(doc, "metadata");
  if (child(own, "labels") == nullptr || child(own, "labels")->empty()) own["labels"] = Object(*labels);
}

void persistent_volume_claim(Object& doc) {
  Object& spec = make_child(doc, "spec");
  put(spec, "volumeMode", "Filesystem");
  put_string(make_child(doc, "status"), "phase", "Pending");
}

}  // namespace defaults

void apply_defaults(const KindInfo& kind, json::Value& doc) {
  if (const auto& own = hooks_of(kind).form->defaults; own && doc.is_object()) own(doc.get_object());
}

}  // namespace berth::model
