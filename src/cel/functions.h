// The functions of the language and of its libraries: signatures for the checker, code for the evaluator. Internal to the folder.
#pragma once
#include <map>
#include <span>

#include "cel/ast.h"
#include "cel/pattern.h"

namespace berth::cel {

/// The arguments of one call (the receiver first); none is an error.
struct Args {
  std::span<const Value> values;
  const void* compiled = nullptr;  ///< A re2::RE2 for the pattern, when it is known at compile time.
  const Value& operator[](std::size_t i) const { return values[i]; }
  [[nodiscard]] std::size_t size() const { return values.size(); }
};

using Code = Value (*)(const Args& args);

struct Overload {
  std::string id, function;
  bool is_member = false;
  std::vector<Type> params;
  Type result;
  std::vector<std::string> type_params;
  Code code = nullptr;
};

struct Function {
  std::string name;
  std::vector<std::unique_ptr<Overload>> overloads;
  /// Not null: one piece of code for all overloads, whatever the arguments are (operators).
  Code any = nullptr;
};

class Registry {
 public:
  /// `signature`: "string.(string, int): list(string)" for members, "(A, list(A)): bool" for functions.
  void add(std::string_view function, std::string_view id, std::string_view signature, Code code = nullptr);
  void add_any(std::string_view function, Code code) { functions_[std::string(function)].any = code; }
  [[nodiscard]] const Function* find(std::string_view name) const;

 private:
  std::map<std::string, Function, std::less<>> functions_;
};

/// Everything that Kubernetes 1.36 declares. Made once.
const Registry& registry();

void add_operators(Registry& registry);
void add_conversions(Registry& registry);
void add_time(Registry& registry);
void add_strings(Registry& registry);
void add_format(Registry& registry);
void add_lists(Registry& registry);
void add_optionals(Registry& registry);
void add_regex(Registry& registry);
void add_network(Registry& registry);
void add_url(Registry& registry);
void add_kubernetes(Registry& registry);
void add_authorizer(Registry& registry);
void add_objects(Registry& registry);

/// Type names in expressions ("int", "google.protobuf.Timestamp", "net.IP"), or null.
Type named_type(std::string_view name);
/// Whether a value at run time fits a declared parameter.
bool fits(const Type& type, const Value& value);

Value no_such_overload();
/// "no such overload: f(int, string)".
Value no_such_overload(std::string_view function, std::span<const Value> args);

/// Values of mixed types in the order of <; nullopt with an error: they have none.
Expected<int, Value> compare_values(const Value& a, const Value& b);
Value add_values(const Value& a, const Value& b);

/// A list that grows while a comprehension collects.
class GrowingList final : public List {
 public:
  [[nodiscard]] std::size_t size() const override { return values.size(); }
  [[nodiscard]] Value at(std::size_t index) const override { return values[index]; }
  mutable std::vector<Value> values;
};
/// A map with keys of any kind.
class ValueMap final : public Map {
 public:
  [[nodiscard]] std::size_t size() const override { return entries.size(); }
  [[nodiscard]] std::optional<Value> find(const Value& key) const override;
  void each(const std::function<bool(const Value&, const Value&)>& visit) const override;
  /// False when the key is there already.
  bool insert(const Value& key, const Value& value) const;
  void set(const Value& key, const Value& value);
  void erase(const Value& key);
  mutable std::vector<std::pair<Value, Value>> entries;
  mutable std::map<std::string, std::size_t, std::less<>> by_text;
};

/// What is known of one argument of string.format before the program runs.
struct FormatArgument {
  std::string type;
  bool is_unknown = false;
};
struct FormatIssue {
  std::size_t argument = SIZE_MAX;  ///< SIZE_MAX: the whole call.
  std::string message;
};
/// What is wrong with a format string whatever the values are.
std::optional<FormatIssue> check_format(std::string_view pattern, const std::vector<FormatArgument>& arguments);

}  // namespace berth::cel
