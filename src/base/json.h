// JSON documents: Boost.JSON's value plus what the project needs around it. The API's documents are these values.
#pragma once
#include <boost/json.hpp>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace berth::json {

using Value = boost::json::value;
using Object = boost::json::object;
using Array = boost::json::array;

struct ParseOptions {
  std::size_t max_depth = 500;
  /// When set, the path of every key that is repeated in its object is appended ("spec.containers[0].name"), once: up to 100 of them, or
  /// 256 KiB. The last value wins either way.
  std::vector<std::string>* duplicates = nullptr;
};

/// Parses one JSON text (UTF-8, nothing but white space after it). The error's message names the line, the column and what is wrong.
[[nodiscard]] Result<Value> parse(std::string_view text, const ParseOptions& options = {});
/// Compact JSON. Whole doubles print without fraction or exponent where they fit, others in shortest form (no "1E0").
[[nodiscard]] std::string serialize(const Value& value);
void serialize_to(std::string& out, const Value& value);
/// Two-space indented JSON with a newline at the end, as kubectl prints.
[[nodiscard]] std::string serialize_pretty(const Value& value);
/// Parses YAML 1.2's core schema as Kubernetes does (sigs.k8s.io/yaml: to JSON types) — a stream of documents; empty documents are left
/// out. The error's message names line and column.
[[nodiscard]] Result<std::vector<Value>> parse_yaml_stream(std::string_view text);
/// One YAML or JSON document; an error when there is none or more than one.
[[nodiscard]] Result<Value> parse_yaml(std::string_view text);
/// YAML as `kubectl -o yaml` prints it: keys sorted, sequences not indented.
[[nodiscard]] std::string to_yaml(const Value& value);

using Path = std::initializer_list<std::string_view>;

/// The value below `root` along object keys, or null when any step is missing or not an object. The literal JSON null counts as missing.
[[nodiscard]] const Value* find(const Value& root, Path path);
[[nodiscard]] Value* find(Value& root, Path path);
inline const Value* find(const Value& root, std::string_view key) { return find(root, {key}); }
inline Value* find(Value& root, std::string_view key) { return find(root, {key}); }
/// Typed reads: the fallback when missing or of another type.
[[nodiscard]] std::string_view get_string(const Value& root, Path path, std::string_view fallback = {});
[[nodiscard]] std::int64_t get_int(const Value& root, Path path, std::int64_t fallback = 0);
[[nodiscard]] bool get_bool(const Value& root, Path path, bool fallback = false);
/// Empty static array or object when missing or of another type: for range loops.
[[nodiscard]] const Array& get_array(const Value& root, Path path);
[[nodiscard]] const Object& get_object(const Value& root, Path path);
/// An Object would become a temporary Value, a deep copy that the result points into: pass the Value that holds it.
void find(const Object& root, Path path) = delete;
void find(const Object& root, std::string_view key) = delete;
void get_string(const Object& root, Path path, std::string_view fallback = {}) = delete;
void get_int(const Object& root, Path path, std::int64_t fallback = 0) = delete;
void get_bool(const Object& root, Path path, bool fallback = false) = delete;
void get_array(const Object& root, Path path) = delete;
void get_object(const Object& root, Path path) = delete;
/// The object below `root` along `path`, made (replacing non-objects) where missing.
Object& ensure_object(Value& root, Path path);
/// Sets a value, making the objects on the way.
void set(Value& root, Path path, Value value);
/// Removes the last key of the path; true when it was there.
bool erase(Value& root, Path path);
inline std::string_view as_view(const Value& v) { return {v.get_string().data(), v.get_string().size()}; }
/// Semantic equality: object keys in any order, 1 == 1.0.
[[nodiscard]] bool equal(const Value& a, const Value& b);

}  // namespace berth::json
