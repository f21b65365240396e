// The Common Expression Language as Kubernetes 1.36 offers it (SPEC A7; apiserver/pkg/cel/environment/base.go): compile once, evaluate
// often.
//
//     compile(text, environment) -> Program          Program::evaluate(variables, budget) -> Evaluation
//
// Pure: no clock, no threads, no random source. A Program is immutable and may be evaluated from several threads at once. No input
// crashes, and depth, cost and memory are bounded; what goes wrong is told in the words of cel-go and of Kubernetes.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"
#include "cel/type.h"
#include "cel/value.h"

namespace berth::cel {

struct Variable {
  std::string name;
  Type type;
};

/// The fields of an object type; a field that is not here cannot be selected.
struct StructType {
  std::string name;
  std::map<std::string, Type, std::less<>> fields;
};

/// What an expression may use besides the libraries that Kubernetes always has (strings, lists, sets, regex, url, quantity, ip, cidr,
/// format, semver, optionals, two-variable comprehensions, authorizer's functions).
struct Environment {
  std::vector<Variable> variables;
  std::vector<StructType> structs;
  /// Further ones by name, where there are many; may be null. Only borrowed.
  const std::map<std::string, StructType, std::less<>>* struct_table = nullptr;
  bool has_bind = false;  ///< cel.bind (device selectors have it, admission has not).
};

struct Issue {
  int line = 1;         ///< From 1.
  int column = 0;       ///< From 0, in code points.
  std::string message;  ///< "undeclared reference to 'foo' (in container '')"
};

/// Why an expression is not a program.
struct CompileError {
  std::vector<Issue> issues;
  /// All issues as cel-go prints them: "ERROR: <input>:1:1: undeclared reference to 'foo' (in container '')\n | foo\n | ^".
  std::string text;
  /// The expression is well typed, and a constant part of it fails ("type conversion error from 'string' to 'int'"): `text` is that
  /// failure.
  bool is_instantiation = false;
};

struct CostEstimate {
  std::uint64_t min = 0, max = 0;
};

/// Where a program finds its variables' values.
class Activation {
 public:
  virtual ~Activation() = default;
  /// nullopt: "no such attribute(s): NAME". Asked for declared variables only, maybe several times.
  [[nodiscard]] virtual std::optional<Value> find(std::string_view name) const = 0;
};

/// A fixed set of values.
class Bindings final : public Activation {
 public:
  Bindings() = default;
  Bindings(std::initializer_list<std::pair<std::string, Value>> values) : values_(values) {}
  void set(std::string name, Value value) { values_.emplace_back(std::move(name), std::move(value)); }
  [[nodiscard]] std::optional<Value> find(std::string_view name) const override;

 private:
  std::vector<std::pair<std::string, Value>> values_;
};

/// Kubernetes' PerCallLimit: about a tenth of a second.
inline constexpr std::uint64_t kPerCallCostLimit = 1'000'000;

struct EvalError {
  enum class Code { kFailed, kCostExceeded, kNoOverload };
  Code code = Code::kFailed;
  std::string message;  ///< "no such key: foo", "operation cancelled: actual cost limit exceeded", …
};

struct Evaluation {
  Expected<Value, EvalError> value;
  std::uint64_t cost = 0;  ///< What was spent, also after a failure; in cel-go's units.
};

/// A checked expression.
class Program {
 public:
  struct Impl;
  explicit Program(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  [[nodiscard]] const Type& output_type() const;
  /// The cheapest and the dearest evaluation, from the declared bounds of the variables' types (checker/cost.go); without bounds the
  /// maximum saturates.
  [[nodiscard]] CostEstimate estimated_cost() const;
  /// Whether the expression names the variable.
  [[nodiscard]] bool uses(std::string_view variable) const;
  /// `variables` and what its values borrow must outlive the returned value.
  [[nodiscard]] Evaluation evaluate(const Activation& variables, std::uint64_t cost_limit = kPerCallCostLimit) const;

 private:
  std::shared_ptr<const Impl> impl_;
};

/// Parses and checks. The environment is not needed afterwards.
Expected<Program, CompileError> compile(std::string_view expression, const Environment& environment);

}  // namespace berth::cel
