#include "cel/functions.h"
#include "cel/opaque.h"

namespace berth::cel {
namespace {

/// Reads signatures: types by name, capital letters as type parameters.
class SignatureReader {
 public:
  explicit SignatureReader(std::string_view text) : text_(text) {}
  void run(Overload& out) {
    skip();
    if (text_[at_] != '(') {
      out.is_member = true;
      out.params.push_back(type(out));
      ++at_;  // '.'
    }
    ++at_;  // '('
    for (skip(); text_[at_] != ')'; skip()) {
      out.params.push_back(type(out));
      skip();
      if (text_[at_] == ',') ++at_;
    }
    at_ += 2;  // "):"
    out.result = type(out);
  }

 private:
  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  Type type(Overload& out) {
    skip();
    const auto start = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 || text_[at_] == '_')) ++at_;
    const auto name = text_.substr(start, at_ - start);
    std::vector<Type> params;
    if (at_ < text_.size() && text_[at_] == '(') {
      ++at_;
      for (skip(); text_[at_] != ')'; skip()) {
        params.push_back(type(out));
        skip();
        if (text_[at_] == ',') ++at_;
      }
      ++at_;
    }
    if (name.size() == 1) {
      const std::string param(name);
      if (std::find(out.type_params.begin(), out.type_params.end(), param) == out.type_params.end()) out.type_params.push_back(param);
      return type_param(param);
    }
    if (name == "list") return list_type(params[0]);
    if (name == "map") return map_type(params[0], params[1]);
    if (name == "optional") return optional_type(params[0]);
    if (name == "type") return type_type(params[0]);
    static const std::map<std::string_view, Type> kNames = {{"bool", bool_type()},
                                                            {"int", int_type()},
                                                            {"uint", uint_type()},
                                                            {"double", double_type()},
                                                            {"string", string_type()},
                                                            {"bytes", bytes_type()},
                                                            {"dyn", dyn_type()},
                                                            {"duration", duration_type()},
                                                            {"timestamp", timestamp_type()},
                                                            {"Quantity", quantity_type()},
                                                            {"Semver", semver_type()},
                                                            {"URL", opaque_type("kubernetes.URL")},
                                                            {"IP", opaque_type("net.IP")},
                                                            {"CIDR", opaque_type("net.CIDR")},
                                                            {"Format", opaque_type("kubernetes.NamedFormat")},
                                                            {"Authorizer", authorizer_type()},
                                                            {"PathCheck", opaque_type("kubernetes.authorization.PathCheck")},
                                                            {"GroupCheck", opaque_type("kubernetes.authorization.GroupCheck")},
                                                            {"ResourceCheck", opaque_type("kubernetes.authorization.ResourceCheck")},
                                                            {"Decision", opaque_type("kubernetes.authorization.Decision")}};
    return kNames.at(name);
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

Value::Kind runtime_kind(TypeKind kind) {
  switch (kind) {
    case TypeKind::kNull:
      return Value::Kind::kNull;
    case TypeKind::kBool:
      return Value::Kind::kBool;
    case TypeKind::kInt:
      return Value::Kind::kInt;
    case TypeKind::kUint:
      return Value::Kind::kUint;
    case TypeKind::kDouble:
      return Value::Kind::kDouble;
    case TypeKind::kString:
      return Value::Kind::kString;
    case TypeKind::kBytes:
      return Value::Kind::kBytes;
    case TypeKind::kDuration:
      return Value::Kind::kDuration;
    case TypeKind::kTimestamp:
      return Value::Kind::kTimestamp;
    case TypeKind::kList:
      return Value::Kind::kList;
    case TypeKind::kMap:
    case TypeKind::kStruct:
      return Value::Kind::kMap;
    case TypeKind::kType:
      return Value::Kind::kType;
    case TypeKind::kOpaque:
      return Value::Kind::kOpaque;
    default:
      return Value::Kind::kError;
  }
}

}  // namespace

void Registry::add(std::string_view function, std::string_view id, std::string_view signature, Code code) {
  auto overload = std::make_unique<Overload>();
  overload->id = id;
  overload->function = function;
  overload->code = code;
  SignatureReader(signature).run(*overload);
  auto& slot = functions_[std::string(function)];
  slot.name = function;
  slot.overloads.push_back(std::move(overload));
}

const Function* Registry::find(std::string_view name) const {
  const auto it = functions_.find(name);
  return it == functions_.end() ? nullptr : &it->second;
}

const Registry& registry() {
  static const Registry* made = [] {
    auto* out = new Registry;
    add_operators(*out);
    add_conversions(*out);
    add_time(*out);
    add_strings(*out);
    add_format(*out);
    add_lists(*out);
    add_optionals(*out);
    add_regex(*out);
    add_network(*out);
    add_url(*out);
    add_kubernetes(*out);
    add_authorizer(*out);
    add_objects(*out);
    return out;
  }();
  return *made;
}

Type named_type(std::string_view name) {
  static const std::map<std::string_view, Type> kTypes = {{"bool", bool_type()},
                                                          {"bytes", bytes_type()},
                                                          {"double", double_type()},
                                                          {"int", int_type()},
                                                          {"uint", uint_type()},
                                                          {"string", string_type()},
                                                          {"null_type", null_type()},
                                                          {"list", list_type(dyn_type())},
                                                          {"map", map_type(dyn_type(), dyn_type())},
                                                          {"type", type_type()},
                                                          {"dyn", dyn_type()},
                                                          {"google.protobuf.Duration", duration_type()},
                                                          {"google.protobuf.Timestamp", timestamp_type()},
                                                          {"optional_type", optional_type(dyn_type())},
                                                          {"net.IP", opaque_type("net.IP")},
                                                          {"net.CIDR", opaque_type("net.CIDR")}};
  const auto it = kTypes.find(name);
  return it == kTypes.end() ? nullptr : it->second;
}

bool fits(const Type& type, const Value& value) {
  switch (type->kind) {
    case TypeKind::kDyn:
    case TypeKind::kAny:
    case TypeKind::kTypeParam:
      return true;
    case TypeKind::kOpaque:
      if (type->name == "optional_type") return value.kind() == Value::Kind::kOptional;
      return value.kind() == Value::Kind::kOpaque && value.as_opaque().type_name() == type->name;
    case TypeKind::kList:
      return value.kind() == Value::Kind::kList && (value.as_list().size() == 0 || fits(type->params[0], value.as_list().at(0)));
    case TypeKind::kMap: {
      if (value.kind() != Value::Kind::kMap) return false;
      bool is_fit = true;
      if (type->params[0]->kind == TypeKind::kTypeParam && type->params[1]->kind == TypeKind::kTypeParam) return true;
      value.as_map().each([&](const Value& key, const Value& entry) {
        is_fit = fits(type->params[0], key) && fits(type->params[1], entry);
        return false;
      });
      return is_fit;
    }
    default:
      return value.kind() == runtime_kind(type->kind);
  }
}

Value no_such_overload() { return Value::no_overload("no such overload"); }

Value no_such_overload(std::string_view function, std::span<const Value> args) {
  std::string out = fmt::format("no such overload: {}(", function);
  for (std::size_t i = 0; i < args.size(); ++i) out += fmt::format("{}{}", i > 0 ? ", " : "", type_name(args[i]));
  return Value::no_overload(out + ")");
}

std::optional<Value> ValueMap::find(const Value& key) const {
  if (key.kind() == Value::Kind::kString) {
    const auto it = by_text.find(key.text());
    if (it == by_text.end()) return std::nullopt;
    return entries[it->second].second;
  }
  for (const auto& [name, value] : entries)
    if (name.kind() != Value::Kind::kString && equal(name, key)) return value;
  return std::nullopt;
}

void ValueMap::each(const std::function<bool(const Value&, const Value&)>& visit) const {
  for (const auto& [key, value] : entries)
    if (!visit(key, value)) return;
}

bool ValueMap::insert(const Value& key, const Value& value) const {
  if (find(key)) return false;
  if (key.kind() == Value::Kind::kString) by_text.emplace(key.text(), entries.size());
  entries.emplace_back(key, value);
  return true;
}

void ValueMap::set(const Value& key, const Value& value) {
  if (insert(key, value)) return;
  for (auto& [name, slot] : entries)
    if (equal(name, key)) slot = value;
}

void ValueMap::erase(const Value& key) {
  std::erase_if(entries, [&](const auto& entry) { return equal(entry.first, key); });
  by_text.clear();
  for (std::size_t i = 0; i < entries.size(); ++i)
    if (entries[i].first.kind() == Value::Kind::kString) by_text.emplace(entries[i].first.text(), i);
}

}  // namespace berth::cel
