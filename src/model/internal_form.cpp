#include "model/internal_form.h"

#include <map>
#include <unordered_map>

#include "base/go/strings.h"
#include "model/schema.h"
#include "model/schema_text.h"

namespace berth::model {
namespace {

using json::Object;
using json::Value;
using Kind = TypeRef::Kind;

struct Member {
  std::string name;
  const FieldDef* field = nullptr;
  bool is_pointer = false, omits_empty = false, is_metadata = false;
};
using Shape = std::vector<Member>;

/// What the internal security context has, and the API's pod itself.
constexpr std::string_view kHostFields[] = {"hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "hostUsers"};

const FieldDef* field_of(const TypeDef& type, std::string_view name) {
  const std::string wanted = go::to_lower(name);
  for (const FieldDef& field : type.fields)
    if (go::to_lower(field.name) == wanted) return &field;
  return type.name == "core.v1.PodSecurityContext" ? field_of(*find_type("core.v1.PodSpec"), name) : nullptr;
}

const TypeDef* type_of_shape(std::string_view shape) {
  return find_type(shape == "core.v1.PersistentVolumeSource" ? "core.v1.PersistentVolumeSpec" : shape);
}

Member read_member(const TypeDef& type, std::string_view word) {
  Member member;
  if (word == "+metadata") {
    member.is_metadata = true;
    member.field = type.field("metadata");
    return member;
  }
  if (word.starts_with('*')) member.is_pointer = true, word.remove_prefix(1);
  if (word.ends_with('?')) member.omits_empty = true, word.remove_suffix(1);
  const std::size_t equals = std::min(word.find('='), word.size());
  member.name = word.substr(0, equals);
  member.field = field_of(type, equals < word.size() ? word.substr(equals + 1) : word);
  return member;
}

using Shapes = std::unordered_map<std::string_view, Shape>;

const Shapes& shapes() {
  static const Shapes all = [] {
    Shapes out;
    for (const Fact& fact : read_facts(shapes_texts())) {
      const TypeDef* type = type_of_shape(fact.of.front());
      Shape& shape = out[fact.of.front()];
      if (type == nullptr) continue;
      for (const auto word : fact.words)
        if (Member member = read_member(*type, word); member.field != nullptr) shape.push_back(std::move(member));
    }
    return out;
  }();
  return all;
}

Value render(const TypeRef& ref, const Value* value, bool is_pointer);

bool is_empty(const Value* value) {
  if (value == nullptr || value->is_null()) return true;
  if (const auto* text = value->if_string()) return text->empty();
  if (const auto* list = value->if_array()) return list->empty();
  if (const auto* object = value->if_object()) return object->empty();
  return *value == Value(0) || *value == Value(false);
}

void render_members(const Shape& shape, const Object& from, Object& out) {
  for (const Member& member : shape) {
    const Value* value = from.if_contains(member.field->name);
    if (member.is_metadata) {
      const auto inner = shapes().find("meta.v1.ObjectMeta");
      if (value != nullptr && value->is_object() && inner != shapes().end()) render_members(inner->second, value->get_object(), out);
    } else if (!member.omits_empty || !is_empty(value)) {
      out[member.name] = render(member.field->ref, value, member.is_pointer);
    }
  }
}

Value render_struct(std::string_view shape_name, const Object& from) {
  const auto shape = shapes().find(shape_name);
  if (shape == shapes().end()) return from;
  Object out;
  if (shape_name != "core.v1.PodSpec") {
    render_members(shape->second, from, out);
    return out;
  }
  Object moved = from;
  Value& context = moved["securityContext"];
  if (!context.is_object()) context.emplace_object();
  for (const std::string_view field : kHostFields)
    if (const Value* value = from.if_contains(field)) context.get_object()[field] = *value;
  render_members(shape->second, moved, out);
  return out;
}

Value zero(const TypeRef& ref) {
  switch (ref.kind) {
    case Kind::kString:
      return "";
    case Kind::kInt32:
    case Kind::kInt64:
    case Kind::kDouble:
    case Kind::kIntOrString:
      return 0;
    case Kind::kBool:
      return false;
    case Kind::kQuantity:
      return "0";
    case Kind::kStruct:
      return render_struct(ref.type->name, Object());
    default:
      return nullptr;
  }
}

/// JSONSchemaPropsOrBool, JSONSchemaPropsOrArray.
Value render_either(const TypeRef& ref, const Value& value) {
  const TypeRef one{Kind::kStruct, ref.type};
  const TypeRef list{Kind::kList, nullptr, &one};
  const Value schema = value.is_object() ? render(one, &value, true) : Value(nullptr);
  if (ref.either == TypeRef::Either::kBool) return Object{{"Allows", value.is_object() || value == Value(true)}, {"Schema", schema}};
  return Object{{"Schema", schema}, {"JSONSchemas", value.is_array() ? render(list, &value, true) : Value(nullptr)}};
}

Value render(const TypeRef& ref, const Value* value, bool is_pointer) {
  if (value == nullptr || value->is_null()) return is_pointer ? Value(nullptr) : zero(ref);
  if (ref.either != TypeRef::Either::kNothing) return render_either(ref, *value);
  if (ref.kind == Kind::kAny) return sorted_members(*value);
  if (ref.kind == Kind::kStruct && value->is_object()) return render_struct(ref.type->name, value->get_object());
  if (ref.kind == Kind::kList && value->is_array()) {
    json::Array out;
    for (const Value& item : value->get_array()) out.push_back(render(*ref.element, &item, false));
    return out;
  }
  if (ref.kind == Kind::kMap && value->is_object()) {
    std::map<std::string_view, const Value*> members;
    for (const auto& [key, member] : value->get_object()) members.emplace(std::string_view(key.data(), key.size()), &member);
    Object out;
    for (const auto& [key, member] : members) out[key] = render(*ref.element, member, false);
    return out;
  }
  return *value;
}

void print(std::string& out, const Value& value, const std::string& indent) {
  const auto* object = value.if_object();
  const auto* list = value.if_array();
  const std::size_t size = object != nullptr ? object->size() : list != nullptr ? list->size() : 0;
  if (size == 0) {
    out += escape_html(json::serialize(value));
    return;
  }
  const std::string deeper = indent + " ";
  out += object != nullptr ? '{' : '[';
  std::size_t done = 0;
  const auto item = [&](const Value& one, std::string_view key) {
    out += done++ == 0 ? "\n" : ",\n";
    out += deeper;
    if (object != nullptr) out += escape_html(json::serialize(Value(key))) + ": ";
    print(out, one, deeper);
  };
  if (object != nullptr)
    for (const auto& [key, member] : *object) item(member, {key.data(), key.size()});
  else
    for (const Value& one : *list) item(one, {});
  out += "\n" + indent + (object != nullptr ? "}" : "]");
}

}  // namespace

Value internal_form(std::string_view type, const Value* value, std::string_view shape) {
  if (value == nullptr || value->is_null()) return nullptr;
  if (!value->is_object()) return *value;
  return render_struct(shape.empty() ? type : shape, value->get_object());
}

Value sorted_map(const Value& map) {
  static const TypeRef kText{Kind::kString, nullptr, nullptr};
  return render(TypeRef{Kind::kMap, nullptr, &kText}, &map, true);
}

Value sorted_members(const Value& value) {
  if (const auto* list = value.if_array()) {
    json::Array out;
    for (const Value& element : *list) out.push_back(sorted_members(element));
    return out;
  }
  const auto* object = value.if_object();
  if (object == nullptr) return value;
  std::map<std::string_view, const Value*> members;
  for (const auto& [key, member] : *object) members.emplace(std::string_view(key.data(), key.size()), &member);
  Object out;
  for (const auto& [key, member] : members) out.emplace(key, sorted_members(*member));
  return out;
}

std::string go_pretty_json(const Value& value) {
  std::string out;
  print(out, value, "");
  return out;
}

std::string escape_html(std::string_view json) {
  std::string out;
  for (const char c : json) {
    if (c == '<')
      out += "\\u003c";
    else if (c == '>')
      out += "\\u003e";
    else if (c == '&')
      out += "\\u0026";
    else
      out += c;
  }
  return out;
}

}  // namespace berth::model
