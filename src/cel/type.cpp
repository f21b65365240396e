#include "cel/type.h"

namespace berth::cel {
namespace {

Type simple(TypeKind kind, const char* name) { return std::make_shared<const TypeNode>(TypeNode{kind, name, {}, std::nullopt}); }

}  // namespace

#define BERTH_CEL_SIMPLE_TYPE(function, kind, name)        \
  Type function() {                                        \
    static const Type type = simple(TypeKind::kind, name); \
    return type;                                           \
  }
BERTH_CEL_SIMPLE_TYPE(dyn_type, kDyn, "dyn")
BERTH_CEL_SIMPLE_TYPE(any_type, kAny, "google.protobuf.Any")
BERTH_CEL_SIMPLE_TYPE(error_type, kError, "*error*")
BERTH_CEL_SIMPLE_TYPE(null_type, kNull, "null_type")
BERTH_CEL_SIMPLE_TYPE(bool_type, kBool, "bool")
BERTH_CEL_SIMPLE_TYPE(int_type, kInt, "int")
BERTH_CEL_SIMPLE_TYPE(uint_type, kUint, "uint")
BERTH_CEL_SIMPLE_TYPE(double_type, kDouble, "double")
BERTH_CEL_SIMPLE_TYPE(string_type, kString, "string")
BERTH_CEL_SIMPLE_TYPE(bytes_type, kBytes, "bytes")
BERTH_CEL_SIMPLE_TYPE(duration_type, kDuration, "google.protobuf.Duration")
BERTH_CEL_SIMPLE_TYPE(timestamp_type, kTimestamp, "google.protobuf.Timestamp")
BERTH_CEL_SIMPLE_TYPE(quantity_type, kOpaque, "kubernetes.Quantity")
BERTH_CEL_SIMPLE_TYPE(semver_type, kOpaque, "kubernetes.Semver")
BERTH_CEL_SIMPLE_TYPE(authorizer_type, kOpaque, "kubernetes.authorization.Authorizer")
#undef BERTH_CEL_SIMPLE_TYPE

Type list_type(Type element) {
  return std::make_shared<const TypeNode>(TypeNode{TypeKind::kList, "list", {std::move(element)}, std::nullopt});
}
Type map_type(Type key, Type value) {
  return std::make_shared<const TypeNode>(TypeNode{TypeKind::kMap, "map", {std::move(key), std::move(value)}, std::nullopt});
}
Type struct_type(std::string name) {
  return std::make_shared<const TypeNode>(TypeNode{TypeKind::kStruct, std::move(name), {}, std::nullopt});
}
Type opaque_type(std::string name, std::vector<Type> params) {
  return std::make_shared<const TypeNode>(TypeNode{TypeKind::kOpaque, std::move(name), std::move(params), std::nullopt});
}
Type optional_type(Type value) { return opaque_type("optional_type", {std::move(value)}); }
Type type_type(Type of) {
  return std::make_shared<const TypeNode>(
      TypeNode{TypeKind::kType, "type", of ? std::vector<Type>{std::move(of)} : std::vector<Type>{}, std::nullopt});
}
Type type_param(std::string name) {
  return std::make_shared<const TypeNode>(TypeNode{TypeKind::kTypeParam, std::move(name), {}, std::nullopt});
}
Type bounded(const Type& type, std::uint64_t max_size) {
  auto node = *type;
  node.max_size = max_size;
  return std::make_shared<const TypeNode>(std::move(node));
}

bool same_type(const Type& a, const Type& b) {
  if (a == b) return true;
  if (a->kind != b->kind || a->name != b->name || a->params.size() != b->params.size()) return false;
  for (std::size_t i = 0; i < a->params.size(); ++i)
    if (!same_type(a->params[i], b->params[i])) return false;
  return true;
}

namespace {

std::string with_params(const Type& type, std::string (*name)(const Type&)) {
  if (type->params.empty()) return type->name;
  std::string out = type->name + "(";
  for (std::size_t i = 0; i < type->params.size(); ++i) out += (i > 0 ? ", " : "") + name(type->params[i]);
  return out + ")";
}

}  // namespace

std::string declared_name(const Type& type) { return with_params(type, declared_name); }

std::string to_string(const Type& type) {
  switch (type->kind) {
    case TypeKind::kAny:
      return "any";
    case TypeKind::kDuration:
      return "duration";
    case TypeKind::kTimestamp:
      return "timestamp";
    case TypeKind::kNull:
      return "null";
    case TypeKind::kError:
      return "!error!";
    default:
      break;
  }
  return with_params(type, to_string);
}

}  // namespace berth::cel
