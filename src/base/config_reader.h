// Reading a configuration document field by field: every problem is kept with its place, and unknown fields are found.
#pragma once
#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace berth::config {

/// Collects problems. `locate` tells a path's line in the source; 0 when unknown.
class Problems {
 public:
  Problems(std::string file, std::function<int(const std::string& path)> locate) : file_(std::move(file)), locate_(std::move(locate)) {}
  void add(const std::string& path, std::string_view message);
  [[nodiscard]] bool empty() const { return lines_.empty(); }
  /// All problems, a line each, in the order found.
  [[nodiscard]] std::string text() const;

 private:
  std::string file_;
  std::function<int(const std::string&)> locate_;
  std::vector<std::string> lines_;
};

/// A value with its path. Reads give the fallback when the field is absent or null, and a problem when it has another type.
class Reader {
 public:
  Reader(const json::Value* value, std::string path, Problems& problems) : value_(value), path_(std::move(path)), problems_(&problems) {}

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] const json::Value* value() const { return value_; }
  [[nodiscard]] bool is_present() const { return value_ != nullptr && !value_->is_null(); }
  [[nodiscard]] bool is_object() const { return is_present() && value_->is_object(); }
  /// The field; not present when this is no object.
  [[nodiscard]] Reader field(std::string_view name) const;
  [[nodiscard]] bool has(std::string_view name) const { return field(name).is_present(); }
  [[nodiscard]] std::vector<Reader> items() const;
  [[nodiscard]] std::string string(std::string_view name, std::string_view fallback = {}) const;
  [[nodiscard]] std::int64_t integer(std::string_view name, std::int64_t fallback) const;
  [[nodiscard]] double number(std::string_view name, double fallback) const;
  [[nodiscard]] bool boolean(std::string_view name, bool fallback) const;
  /// A metav1.Duration ("15s", "1m30s", "1.5h") in milliseconds.
  [[nodiscard]] std::int64_t duration_ms(std::string_view name, std::int64_t fallback) const;
  [[nodiscard]] std::vector<std::string> strings(std::string_view name) const;
  /// Every key must be one of `known`; a problem names the nearest.
  void only(std::initializer_list<std::string_view> known) const;
  /// Must be an object when present; false with a problem otherwise.
  bool expect_object() const;
  void problem(std::string_view message) const { problems_->add(path_, message); }
  void problem(std::string_view name, std::string_view message) const {
    problems_->add(path_.empty() ? std::string(name) : path_ + "." + std::string(name), message);
  }
  [[nodiscard]] Problems& problems() const { return *problems_; }

 private:
  const json::Value* value_;
  std::string path_;
  Problems* problems_;
};

/// The candidate with the smallest edit distance, when near enough to be meant; empty otherwise.
std::string_view nearest(std::string_view name, std::span<const std::string_view> candidates);
/// `; did you mean "X"?`, or empty.
std::string suggestion(std::string_view name, std::span<const std::string_view> candidates);

/// Finds the line of a path ("profiles[0].plugins.score") in YAML or JSON text; 0 when it is not there.
std::function<int(const std::string&)> line_finder(std::string text);

/// What people paste from the OpenShift documents: lines of "..." that stand for what was left out, callout numbers after a value, and
/// a `kind: "Policy"` head above bare JSON lists. Returns text that parses as the document means it; the input when nothing applies.
/// Line numbers stay as they are.
std::string repair_document_policy(std::string_view text);

}  // namespace berth::config
