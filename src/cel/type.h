// The types of the Common Expression Language as its checker sees them (cel-spec "Gradual type checking").
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace berth::cel {

enum class TypeKind : std::uint8_t {
  kDyn,
  kAny,
  kError,
  kNull,
  kBool,
  kInt,
  kUint,
  kDouble,
  kString,
  kBytes,
  kDuration,
  kTimestamp,
  kList,       ///< One parameter.
  kMap,        ///< Two parameters: key, value.
  kStruct,     ///< An object by name; its fields stand in the Environment.
  kOpaque,     ///< A library's own: kubernetes.Quantity, optional_type(T), …
  kType,       ///< The type of types.
  kTypeParam,  ///< A variable of a signature, or one that the checker made.
};

struct TypeNode;
using Type = std::shared_ptr<const TypeNode>;

/// Immutable, shared freely between threads.
struct TypeNode {
  TypeKind kind = TypeKind::kDyn;
  std::string name;  ///< As the language prints it: "int", "list", "kubernetes.Quantity", "T".
  std::vector<Type> params;
  /// For the cost estimate only: most characters or elements that a value of this type has. No part of the type's identity.
  std::optional<std::uint64_t> max_size;
};

Type dyn_type();
Type any_type();
Type error_type();
Type null_type();
Type bool_type();
Type int_type();
Type uint_type();
Type double_type();
Type string_type();
Type bytes_type();
Type duration_type();
Type timestamp_type();
Type list_type(Type element);
Type map_type(Type key, Type value);
Type struct_type(std::string name);
Type opaque_type(std::string name, std::vector<Type> params = {});
Type optional_type(Type value);
Type type_type(Type of = nullptr);
Type type_param(std::string name);
/// The same type with a known bound of its size.
Type bounded(const Type& type, std::uint64_t max_size);
/// kubernetes.Quantity and kubernetes.Semver, for variables of these types.
Type quantity_type();
Type semver_type();
Type authorizer_type();

/// The same type by name and parameters.
bool same_type(const Type& a, const Type& b);
/// The type's own name: "google.protobuf.Duration", "list(dyn)".
std::string declared_name(const Type& type);
/// "list(int)", "map(string, dyn)", "duration": as the checker's messages show it.
std::string to_string(const Type& type);

}  // namespace berth::cel
