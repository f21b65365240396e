// The syntax tree between parser, checker and evaluator. Internal to the folder.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cel/cel.h"

namespace berth::cel {

struct Overload;

enum class NodeKind : std::uint8_t { kLiteral, kIdent, kSelect, kCall, kList, kMap, kStruct, kComprehension };

struct Node;
using NodePtr = std::shared_ptr<Node>;

/// One expression. The parser makes it, the checker fills the second half in place, afterwards it is immutable.
struct Node {
  NodeKind kind = NodeKind::kLiteral;
  std::uint32_t offset = 0;  ///< Bytes into the source: where messages point to.
  std::uint32_t depth = 1;
  std::string name;  ///< Identifier, field, function or message type.
  Value literal;     ///< kLiteral, and whatever was folded to a constant.
  std::vector<NodePtr>
      children;  ///< Call: target (when it has one) and arguments; list: elements; map: key, value, key, …; comprehension: see below.
  std::vector<bool> optionals;      ///< Lists and maps: per element or entry, marked with '?'.
  std::vector<std::string> fields;  ///< kStruct.
  bool has_target = false;          ///< kCall: children[0] is the receiver.
  bool is_test_only = false;        ///< kSelect: has().
  std::string iter_var, iter_var2, accu_var;

  Type type;
  std::vector<const Overload*> overloads;  ///< What the call may mean; one: known statically.
  bool is_constant = false;                ///< `literal` is the value.
  bool is_set_membership = false;          ///< x in [constants]: costs nothing but x.
  std::shared_ptr<const void> compiled;    ///< A regular expression known at compile time.

  // A comprehension's children.
  [[nodiscard]] const Node& range() const { return *children[0]; }
  [[nodiscard]] const Node& accu_init() const { return *children[1]; }
  [[nodiscard]] const Node& condition() const { return *children[2]; }
  [[nodiscard]] const Node& step() const { return *children[3]; }
  [[nodiscard]] const Node& result() const { return *children[4]; }
};

/// Collects issues and prints them as cel-go does.
class Issues {
 public:
  explicit Issues(std::string_view source) : source_(source) {}
  void report(std::size_t offset, std::string message);
  /// Without a place in the source (-1:0).
  void report_nowhere(std::string message);
  [[nodiscard]] bool empty() const { return issues_.empty(); }
  [[nodiscard]] CompileError finish();
  [[nodiscard]] std::string_view source() const { return source_; }

 private:
  std::string_view source_;
  std::vector<Issue> issues_;
};

/// Names of operators as functions.
namespace op {
inline constexpr std::string_view kAnd = "_&&_", kOr = "_||_", kNot = "!_", kConditional = "_?_:_", kNegate = "-_", kAdd = "_+_",
                                  kSubtract = "_-_", kMultiply = "_*_", kDivide = "_/_", kModulo = "_%_", kEquals = "_==_",
                                  kNotEquals = "_!=_", kLess = "_<_", kLessEquals = "_<=_", kGreater = "_>_", kGreaterEquals = "_>=_",
                                  kIn = "@in", kIndex = "_[_]", kOptIndex = "_[?_]", kOptSelect = "_?._",
                                  kNotStrictlyFalse = "@not_strictly_false";
}  // namespace op

/// The name of the accumulator that macros use; no user can write it.
inline constexpr std::string_view kAccumulator = "@result";

/// The tree, or null after reporting issues.
NodePtr parse_expression(std::string_view source, bool has_bind, Issues& issues);

/// A macro's expansion of a call, or nullopt when the call is none. A null node: the macro's arguments were reported as wrong.
std::optional<NodePtr> expand_macro(const NodePtr& call, bool has_bind, Issues& issues);

/// Types, references, constants. Reports issues; the tree is useful only without.
void check_expression(const NodePtr& root, const Environment& environment, Issues& issues);

CostEstimate estimate_cost(const Node& root, const Environment& environment);

}  // namespace berth::cel
