// Label and field selectors (apimachinery/pkg/labels, metav1.LabelSelector), compiled.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "base/shared_pool.h"

namespace berth::model {

/// Labels of one object, sorted by key; one for all objects that have the same.
class Labels {
 public:
  using Pairs = SharedList<std::pair<std::string, std::string>>;
  Labels() = default;
  explicit Labels(std::vector<std::pair<std::string, std::string>> pairs);
  /// From a metadata.labels object; non-string values are left out.
  static Labels from_json(const json::Value* labels);
  /// The value, or null when the key is absent.
  [[nodiscard]] const std::string* get(std::string_view key) const;
  [[nodiscard]] bool empty() const { return pairs_.empty(); }
  [[nodiscard]] const Pairs& pairs() const { return pairs_; }
  friend bool operator==(const Labels&, const Labels&) = default;
  friend auto operator<=>(const Labels& a, const Labels& b) { return *a.pairs_ <=> *b.pairs_; }
  [[nodiscard]] auto parts() const { return std::tie(pairs_); }

 private:
  Pairs pairs_;
};

struct Requirement {
  enum class Op { kIn, kNotIn, kExists, kDoesNotExist, kGt, kLt };
  std::string key;
  Op op = Op::kExists;
  std::vector<std::string> values;  ///< Sorted.
  /// As labels.Requirement.Matches: NotIn and DoesNotExist match a missing key; Gt and Lt compare int64, false when not integers.
  [[nodiscard]] bool matches(const Labels& labels) const;
  friend bool operator==(const Requirement&, const Requirement&) = default;
  friend auto operator<=>(const Requirement&, const Requirement&) = default;
  [[nodiscard]] auto parts() const { return std::tie(key, op, values); }
};

/// All that is wrong with a requirement, each finding led by `path` and its field; empty when nothing is.
std::vector<std::string> requirement_problems(const Requirement& requirement, std::string_view path);
/// Several errors as one: "a", or "[a, b]" without repetitions (apimachinery util/errors Aggregate).
std::string aggregate_words(const std::vector<std::string>& problems);

/// All requirements hold. No requirements match everything; nothing() matches nothing.
class Selector {
 public:
  static Selector everything() { return Selector(); }
  static Selector nothing();
  /// `a=b,c!=d,e in (f,g),!h`: the query parameter's syntax. The error has Kubernetes' words.
  static Result<Selector> parse(std::string_view text);
  /// A metav1.LabelSelector: null matches nothing, an empty one everything. The error names the bad operator or key.
  static Result<Selector> from_label_selector(const json::Value* selector);
  /// A plain map (Service.spec.selector, nodeSelector).
  static Selector from_map(const json::Value* map);
  explicit Selector(std::vector<Requirement> requirements);
  Selector() = default;

  [[nodiscard]] bool matches(const Labels& labels) const;
  [[nodiscard]] bool is_everything() const { return !nothing_ && requirements_.empty(); }
  [[nodiscard]] bool is_nothing() const { return nothing_; }
  [[nodiscard]] const std::vector<Requirement>& requirements() const { return requirements_; }
  [[nodiscard]] std::string to_string() const;
  friend bool operator==(const Selector&, const Selector&) = default;
  friend auto operator<=>(const Selector&, const Selector&) = default;
  [[nodiscard]] auto parts() const { return std::tie(nothing_, requirements_); }

 private:
  bool nothing_ = false;
  std::vector<Requirement> requirements_;  ///< Sorted by key.
};

/// `spec.nodeName=a,status.phase!=Failed` (apimachinery/pkg/fields).
struct FieldSelector {
  struct Term {
    std::string field;
    bool equals = true;
    std::string value;
  };
  std::vector<Term> terms;
  static Result<FieldSelector> parse(std::string_view text);
};

}  // namespace berth::model
