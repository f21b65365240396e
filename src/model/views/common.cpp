#include "model/views/common.h"

#include <fmt/format.h>

#include <algorithm>

namespace berth::model {
namespace {

/// The API takes a quantity as a string or as a number.
std::optional<Quantity> quantity_of(const json::Value& value) {
  if (value.is_string()) return Quantity::parse(json::as_view(value));
  if (value.is_int64()) return Quantity::from_value(value.get_int64());
  if (value.is_uint64()) return Quantity::parse(fmt::format("{}", value.get_uint64()));
  if (value.is_double()) return Quantity::parse(fmt::format("{}", value.get_double()));
  return std::nullopt;
}

std::string string_at(const json::Value& value, json::Path path) { return std::string(json::get_string(value, path)); }

Result<Requirement> parse_node_requirement(const json::Value& item) {
  Requirement out;
  out.key = string_at(item, {"key"});
  out.values = parse_strings(json::get_array(item, {"values"}));
  const auto op = json::get_string(item, {"operator"});
  if (op == "In") {
    out.op = Requirement::Op::kIn;
  } else if (op == "NotIn") {
    out.op = Requirement::Op::kNotIn;
  } else if (op == "Exists") {
    out.op = Requirement::Op::kExists;
  } else if (op == "DoesNotExist") {
    out.op = Requirement::Op::kDoesNotExist;
  } else if (op == "Gt") {
    out.op = Requirement::Op::kGt;
  } else if (op == "Lt") {
    out.op = Requirement::Op::kLt;
  } else {
    return invalid(fmt::format("operator: Unsupported value: \"{}\"", op));
  }
  return out;
}

void parse_field(const json::Value& item, NodeSelectorTerm& out) {
  auto one = parse_node_requirement(item);
  if (!one) {
    out.error = one.error().message;
    return;
  }
  if (one->key != "metadata.name") {
    out.error = fmt::format("key: Unsupported value: \"{}\": supported values: \"metadata.name\"", one->key);
    return;
  }
  if (one->op != Requirement::Op::kIn && one->op != Requirement::Op::kNotIn) {
    out.error = "operator: Unsupported value: supported values: \"In\", \"NotIn\"";
  } else if (one->values.size() != 1) {
    out.error = "values: Required value: must have one element";
  }
  out.fields.push_back(std::move(*one));
}

}  // namespace

std::vector<std::string> parse_strings(const json::Array& items) {
  std::vector<std::string> out;
  out.reserve(items.size());
  for (const auto& item : items)
    if (item.is_string()) out.emplace_back(json::as_view(item));
  return out;
}

ResourceList parse_resource_list(const json::Value* value) {
  ResourceList out;
  if (value == nullptr || !value->is_object()) return out;
  out.reserve(value->get_object().size());
  for (const auto& [key, amount] : value->get_object())
    if (const auto quantity = quantity_of(amount)) out.emplace_back(std::string(key), *quantity);
  std::ranges::sort(out, {}, &ResourceList::value_type::first);
  return out;
}

const Quantity* find_resource(const ResourceList& list, std::string_view name) {
  for (const auto& [key, amount] : list)
    if (key == name) return &amount;
  return nullptr;
}

ObjectMeta ObjectMeta::parse(const json::Value& object) {
  ObjectMeta out;
  const json::Value* meta = json::find(object, "metadata");
  if (meta == nullptr || !meta->is_object()) return out;
  out.ns = string_at(*meta, {"namespace"});
  out.name = string_at(*meta, {"name"});
  out.uid = string_at(*meta, {"uid"});
  out.labels = Labels::from_json(json::find(*meta, "labels"));
  out.creation_timestamp = string_at(*meta, {"creationTimestamp"});
  out.is_deleting = !json::get_string(*meta, {"deletionTimestamp"}).empty();
  out.annotations = Labels::from_json(json::find(*meta, "annotations")).pairs();
  for (const auto& owner : json::get_array(*meta, {"ownerReferences"})) {
    out.owner_references.push_back({string_at(owner, {"apiVersion"}), string_at(owner, {"kind"}), string_at(owner, {"name"}),
                                    string_at(owner, {"uid"}), json::get_bool(owner, {"controller"})});
  }
  return out;
}

const std::string* ObjectMeta::annotation(std::string_view key) const {
  for (const auto& [name_of, value] : annotations)
    if (name_of == key) return &value;
  return nullptr;
}

const OwnerReference* ObjectMeta::controller() const {
  const auto at = std::ranges::find_if(owner_references, &OwnerReference::controller);
  return at == owner_references.end() ? nullptr : &*at;
}

bool Toleration::tolerates(const Taint& taint) const {
  if (!effect.empty() && effect != taint.effect) return false;
  if (!key.empty() && key != taint.key) return false;
  if (op.empty() || op == "Equal") return value == taint.value;
  return op == "Exists";
}

Taint parse_taint(const json::Value& item) { return {string_at(item, {"key"}), string_at(item, {"value"}), string_at(item, {"effect"})}; }

std::vector<Toleration> parse_tolerations(const json::Array& items) {
  std::vector<Toleration> out;
  out.reserve(items.size());
  for (const auto& item : items) {
    Toleration one{string_at(item, {"key"}), string_at(item, {"operator"}), string_at(item, {"value"}), string_at(item, {"effect"}), {}};
    if (json::find(item, "tolerationSeconds") != nullptr) one.toleration_seconds = json::get_int(item, {"tolerationSeconds"});
    out.push_back(std::move(one));
  }
  return out;
}

NodeSelectorTerm NodeSelectorTerm::parse(const json::Value& term) {
  NodeSelectorTerm out;
  for (const auto& item : json::get_array(term, {"matchExpressions"})) {
    auto one = parse_node_requirement(item);
    if (one) one = checked_requirement(std::move(*one));
    if (one) {
      out.expressions.push_back(std::move(*one));
    } else {
      out.error = one.error().message;
    }
  }
  for (const auto& item : json::get_array(term, {"matchFields"})) parse_field(item, out);
  return out;
}

bool NodeSelectorTerm::matches(const Labels& node_labels, std::string_view node_name) const {
  if (!error.empty() || is_empty()) return false;
  for (const auto& one : expressions)
    if (!one.matches(node_labels)) return false;
  for (const auto& one : fields)
    if ((one.values.front() == node_name) != (one.op == Requirement::Op::kIn)) return false;
  return true;
}

NodeSelector NodeSelector::parse(const json::Value& selector) {
  NodeSelector out;
  for (const auto& term : json::get_array(selector, {"nodeSelectorTerms"})) out.terms.push_back(NodeSelectorTerm::parse(term));
  return out;
}

bool NodeSelector::matches(const Labels& node_labels, std::string_view node_name) const {
  return std::ranges::any_of(terms, [&](const NodeSelectorTerm& term) { return term.matches(node_labels, node_name); });
}

NodeAffinity NodeAffinity::parse(const json::Value& affinity) {
  NodeAffinity out;
  if (const auto* required = json::find(affinity, "requiredDuringSchedulingIgnoredDuringExecution"))
    out.required = NodeSelector::parse(*required);
  for (const auto& item : json::get_array(affinity, {"preferredDuringSchedulingIgnoredDuringExecution"})) {
    const auto* preference = json::find(item, "preference");
    out.preferred.push_back(
        {json::get_int(item, {"weight"}), preference == nullptr ? NodeSelectorTerm{} : NodeSelectorTerm::parse(*preference)});
  }
  return out;
}

}  // namespace berth::model
