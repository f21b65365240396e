#include "model/views/common.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/views/json_text.h"

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

std::optional<Requirement::Op> node_op(std::string_view text) {
  if (text == "In") return Requirement::Op::kIn;
  if (text == "NotIn") return Requirement::Op::kNotIn;
  if (text == "Exists") return Requirement::Op::kExists;
  if (text == "DoesNotExist") return Requirement::Op::kDoesNotExist;
  if (text == "Gt") return Requirement::Op::kGt;
  if (text == "Lt") return Requirement::Op::kLt;
  return std::nullopt;
}

std::string unsupported_op(std::string_view path, std::string_view op, std::string_view supported) {
  return fmt::format("{}operator: Unsupported value: \"{}\": supported values: {}", path, op, supported);
}

void parse_expression(const json::Value& item, const std::string& path, NodeSelectorTerm& out) {
  const auto text = json::get_string(item, {"operator"});
  const auto op = node_op(text);
  if (!op) {
    out.errors.push_back(unsupported_op(path, text, R"("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")"));
    return;
  }
  Requirement one{string_at(item, {"key"}), *op, parse_strings(json::get_array(item, {"values"}))};
  auto problems = requirement_problems(one, path);
  std::ranges::move(problems, std::back_inserter(out.errors));
  std::ranges::sort(one.values);
  out.expressions.push_back(std::move(one));
}

void parse_field(const json::Value& item, const std::string& path, NodeSelectorTerm& out) {
  Requirement one{string_at(item, {"key"}), Requirement::Op::kIn, parse_strings(json::get_array(item, {"values"}))};
  if (one.key != "metadata.name") {
    out.errors.push_back(fmt::format("{}key: Unsupported value: \"{}\": supported values: \"metadata.name\"", path, one.key));
    return;
  }
  const auto text = json::get_string(item, {"operator"});
  const auto op = node_op(text);
  if (op != Requirement::Op::kIn && op != Requirement::Op::kNotIn) {
    out.errors.push_back(unsupported_op(path, text, R"("In", "NotIn")"));
  } else if (one.values.size() != 1) {
    const std::string given = one.values.empty() ? "null" : fmt::format("[\"{}\"]", fmt::join(one.values, "\",\""));
    out.errors.push_back(fmt::format("{}values: Invalid value: {}: must have one element", path, given));
  }
  one.op = op.value_or(Requirement::Op::kExists);
  out.fields.push_back(std::move(one));
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
  std::vector<OwnerReference> owners;
  for (const auto& owner : json::get_array(*meta, {"ownerReferences"}))
    owners.push_back({string_at(owner, {"apiVersion"}), string_at(owner, {"kind"}), string_at(owner, {"name"}), string_at(owner, {"uid"}),
                      json::get_bool(owner, {"controller"})});
  out.owner_references = std::move(owners);
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

Taint parse_taint(const json::Value& item) {
  return {string_at(item, {"key"}), string_at(item, {"value"}), string_at(item, {"effect"}), string_at(item, {"timeAdded"})};
}

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
  std::size_t index = 0;
  for (const auto& item : json::get_array(term, {"matchExpressions"}))
    parse_expression(item, fmt::format("matchExpressions[{}].", index++), out);
  index = 0;
  for (const auto& item : json::get_array(term, {"matchFields"})) parse_field(item, fmt::format("matchFields[{}].", index++), out);
  return out;
}

bool NodeSelectorTerm::matches(const Labels& node_labels, std::string_view node_name) const {
  if (!errors.empty() || is_empty()) return false;
  for (const auto& one : expressions)
    if (!one.matches(node_labels)) return false;
  for (const auto& one : fields)
    if ((one.values.front() == node_name) != (one.op == Requirement::Op::kIn)) return false;
  return true;
}

NodeSelector NodeSelector::parse(const json::Value& selector) {
  std::vector<NodeSelectorTerm> terms;
  for (const auto& term : json::get_array(selector, {"nodeSelectorTerms"})) terms.push_back(NodeSelectorTerm::parse(term));
  return {std::move(terms)};
}

bool NodeSelector::matches(const Labels& node_labels, std::string_view node_name) const {
  return std::ranges::any_of(terms, [&](const NodeSelectorTerm& term) { return term.matches(node_labels, node_name); });
}

NodeAffinity NodeAffinity::parse(const json::Value& affinity) {
  NodeAffinity out;
  if (const auto* required = json::find(affinity, "requiredDuringSchedulingIgnoredDuringExecution"))
    out.required = NodeSelector::parse(*required);
  std::vector<PreferredSchedulingTerm> preferred;
  for (const auto& item : json::get_array(affinity, {"preferredDuringSchedulingIgnoredDuringExecution"})) {
    const auto* preference = json::find(item, "preference");
    preferred.push_back(
        {json::get_int(item, {"weight"}), preference == nullptr ? NodeSelectorTerm{} : NodeSelectorTerm::parse(*preference)});
  }
  out.preferred = std::move(preferred);
  return out;
}

}  // namespace berth::model
