// What structured-merge-diff says about a configuration that does not fit the schema (typed/validate.go).
#include "apiserver/apply/typed_merge.h"
#include "model/go_words.h"
#include "model/schema.h"

namespace berth::apiserver::apply {
namespace {

using model::FieldDef;
using model::TypeRef;
using Kind = TypeRef::Kind;

/// Go's %T of a decoded value.
std::string_view go_type(const json::Value& value) {
  if (value.is_object()) return "map[string]interface {}";
  if (value.is_array()) return "[]interface {}";
  if (value.is_string()) return "string";
  if (value.is_bool()) return "bool";
  return value.is_double() ? "float64" : "int64";
}

/// Go's %#v of a decoded value.
std::string go_literal(const json::Value& value) {
  if (value.is_string()) return model::go_quote(json::as_view(value));
  if (const auto* list = value.if_array()) {
    std::string out = "[]interface {}{";
    for (std::size_t i = 0; i < list->size(); ++i) out += (i > 0 ? ", " : "") + go_literal((*list)[i]);
    return out + "}";
  }
  if (const auto* object = value.if_object()) {
    std::map<std::string_view, const json::Value*> members;
    for (const auto& [key, member] : *object) members.emplace(std::string_view(key.data(), key.size()), &member);
    std::string out = "map[string]interface {}{";
    bool first = true;
    for (const auto& [key, member] : members) {
      out += fmt::format("{}{}:{}", std::exchange(first, false) ? "" : ", ", model::go_quote(key), go_literal(*member));
    }
    return out + "}";
  }
  return json::serialize(value);
}

/// Findings beyond this are not told: each shows its whole path.
constexpr std::size_t kMaxFindings = 1000;
constexpr std::size_t kMaxFindingBytes = 256 * 1024;

class Check {
 public:
  Check(const model::KindInfo& kind, bool takes_stored) : is_unstructured_(model::is_unstructured(kind)), takes_stored_(takes_stored) {}

  void at(const TypeRef& type, const FieldDef* field, const json::Value& value) {
    if (value.is_null()) return;
    switch (type.kind) {
      case Kind::kStruct:
        return structure(type, value);
      case Kind::kMap:
        return map(type, value);
      case Kind::kList:
        return list(type, field, value);
      case Kind::kInt32:
      case Kind::kInt64:
      case Kind::kDouble:
        if (!value.is_number()) say([&] { return fmt::format("expected numeric (int or float), got {}", go_type(value)); });
        return;
      case Kind::kString:
      case Kind::kBytes:
        if (!value.is_string())
          say([&] { return fmt::format("expected string, got &value.valueUnstructured{{Value:{}}}", go_literal(value)); });
        return;
      case Kind::kBool:
        if (!value.is_bool()) say([&] { return fmt::format("expected boolean, got &{{{}}}", model::go_value(value)); });
        return;
      default:  // Quantities, times, int-or-strings and the untyped take any scalar.
        return;
    }
  }
  std::vector<std::string> errors;

 private:
  /// At the place where the walk stands.
  template <typename What>
  void say(const What& what) {
    if (errors.size() >= kMaxFindings || (!errors.empty() && bytes_ + path_.size() > kMaxFindingBytes)) return;
    errors.push_back(fmt::format("{}: {}", path_, what()));
    bytes_ += errors.back().size();
  }
  template <typename Do>
  void below(std::string_view dot, std::string_view step, const Do& act) {
    const auto before = path_.size();
    path_.append(dot).append(step);
    act();
    path_.resize(before);
  }

  void structure(const TypeRef& type, const json::Value& value) {
    const auto* object = value.if_object();
    if (object == nullptr) return say([&] { return fmt::format("expected map, got &{{{}}}", model::go_value(value)); });
    for (const auto& [key, member] : *object) {
      const auto* field = type.type->field(key);
      if (field == nullptr && type.type->is_open) continue;
      if (field == nullptr) {
        // The first one that nobody declared ends the look at its object, as in structured-merge-diff.
        below(".", key, [&] { say([] { return "field not declared in schema"; }); });
        return;
      }
      below(".", key, [&] { at(field->ref, field, member); });
    }
  }

  void map(const TypeRef& type, const json::Value& value) {
    const auto* object = value.if_object();
    if (object == nullptr) return say([&] { return fmt::format("expected map, got &{{{}}}", model::go_value(value)); });
    for (const auto& [key, member] : *object) below(".", key, [&] { at(*type.element, nullptr, member); });
  }

  void list(const TypeRef& type, const FieldDef* field, const json::Value& value) {
    const auto* array = value.if_array();
    if (array == nullptr) return say([&] { return fmt::format("expected list, got &{{{}}}", model::go_value(value)); });
    std::set<std::string> seen;
    for (std::size_t i = 0; i < array->size(); ++i) {
      const auto& element = (*array)[i];
      if (const auto why = why_nameless(field, element); !why.empty()) return say([&] { return fmt::format("element {}: {}", i, why); });
      const auto name = name_of(field, element, i);
      if (field != nullptr && field->list_type != FieldDef::ListType::kAtomic && !seen.insert(name).second && !takes_stored_)
        say([&] { return fmt::format("duplicate entries for key {}", name); });
      below("", name, [&] { at(*type.element, nullptr, element); });
    }
  }

  /// Why no path can name an element of a list that merges; empty: one can.
  [[nodiscard]] std::string why_nameless(const FieldDef* field, const json::Value& element) const {
    if (field == nullptr || field->list_type == FieldDef::ListType::kAtomic) return {};
    if (field->list_type == FieldDef::ListType::kSet) {
      if (element.is_array()) return "not supported: associative list with lists as elements";
      return element.is_object() ? "associative list without keys has an element that's a map type" : "";
    }
    if (element.is_null()) return "associative list with keys may not have a null element";
    if (!element.is_object()) return "associative list with keys may not have non-map elements";
    const auto is_known = [&](const std::string& key) {
      return json::find(element, key) != nullptr || key_default(*field, key) != nullptr;
    };
    // A type in Go has a zero for every key.
    if (!is_unstructured_ || std::ranges::any_of(field->list_keys, is_known)) return {};
    std::vector<std::string> keys;
    for (const auto& key : field->list_keys) keys.push_back(model::go_quote(key));
    return fmt::format(
        "associative list with keys has an element that omits all key fields [{}] (and doesn't have default values for any "
        "key fields)",
        fmt::join(keys, " "));
  }

  static const json::Value* key_default(const FieldDef& field, std::string_view key) {
    static const json::Value kProtocol("TCP");
    const auto found = field.list_key_defaults.find(key);
    if (found != field.list_key_defaults.end()) return &found->second;
    return key == "protocol" ? &kProtocol : nullptr;
  }

  /// `[name="c"]`, `[="x"]` of a set, `[3]` of a list that is taken whole.
  static std::string name_of(const FieldDef* field, const json::Value& element, std::size_t index) {
    if (field == nullptr || field->list_type == FieldDef::ListType::kAtomic) return fmt::format("[{}]", index);
    if (field->list_type == FieldDef::ListType::kSet) return fmt::format("[={}]", json::serialize(element));
    std::vector<std::string_view> keys(field->list_keys.begin(), field->list_keys.end());
    std::sort(keys.begin(), keys.end());
    std::string out;
    for (const auto key : keys) {
      const auto* value = json::find(element, key);
      if (value == nullptr) value = key_default(*field, key);
      if (value != nullptr) out += fmt::format("{}{}={}", out.empty() ? "" : ",", key, json::serialize(*value));
    }
    return "[" + out + "]";
  }

  const bool is_unstructured_;
  const bool takes_stored_;  ///< What may have been stored: doubles in lists that merge are no mistake.
  std::string path_;
  std::size_t bytes_ = 0;
};

}  // namespace

std::optional<std::string> check_typed(const model::KindInfo& kind, const json::Value& config) {
  Check check(kind, false);
  TypeRef root;
  root.kind = Kind::kStruct;
  root.type = model::type_of(kind);
  if (root.type == nullptr) return std::nullopt;
  check.at(root, nullptr, config);
  if (check.errors.empty()) return std::nullopt;
  if (check.errors.size() == 1) return check.errors.front();
  return fmt::format("errors:\n  {}", fmt::join(check.errors, "\n  "));
}

bool is_typed(const model::KindInfo& kind, const json::Value& object) {
  const auto* type = model::type_of(kind);
  if (type == nullptr || !object.is_object()) return type == nullptr;
  Check check(kind, true);
  for (const auto& [key, member] : object.get_object()) {
    const std::string_view name(key.data(), key.size());
    if (name == "metadata") continue;  // Decoding saw to it.
    if (const auto* field = type->field(name); field != nullptr) check.at(field->ref, field, member);
  }
  return check.errors.empty();
}

}  // namespace berth::apiserver::apply
