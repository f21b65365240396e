#include "custom/validate.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <cmath>
#include <unordered_set>

#include "base/utf8.h"
#include "custom/formats.h"
#include "custom/metadata.h"
#include "model/go_words.h"

namespace berth::custom {
namespace {

using json::Value;
using Type = model::FieldError::Type;

constexpr std::size_t kMostBytes = 256 * 1024;
/// Findings that are made at all, those of alternatives that did not fit included: an enum of a kilobyte, a million times missed.
constexpr std::size_t kMostMadeBytes = 8 * 1024 * 1024;

std::size_t bytes_of(const model::FieldError& error) { return error.field.size() + error.value.size() + error.detail.size(); }

/// Findings of one validation, and how many checks were passed: anyOf and oneOf show those of the alternative that fits best.
struct Result {
  model::FieldErrors errors;
  std::size_t matches = 0;
  std::size_t bytes = 0;
  bool is_wrong = false;  ///< Also where nothing more is told.

  void add(model::FieldError error) {
    is_wrong = true;
    if (bytes > kMostBytes) return;
    if (!known_.insert(fmt::format("{}\n{}\n{}", static_cast<int>(error.type), error.field, error.detail)).second) return;
    bytes += bytes_of(error);
    errors.push_back(std::move(error));
  }
  void merge(Result&& other) {
    is_wrong = is_wrong || other.is_wrong;
    const auto passed = matches + other.matches;
    if (errors.empty()) {
      other.is_wrong = is_wrong;
      *this = std::move(other);
    } else {
      for (auto& error : other.errors) add(std::move(error));
    }
    matches = passed;
  }
  [[nodiscard]] bool is_valid() const { return !is_wrong; }
  void forgive() {
    errors.clear();
    known_.clear();
    bytes = 0;
    is_wrong = false;
  }

 private:
  std::unordered_set<std::string> known_;
};

/// A path as kube-openapi writes it; made only where something is wrong.
struct Where {
  const Where* parent = nullptr;
  std::string_view name;
  std::size_t index = 0;
  enum class Kind { kRoot, kProperty, kAdditional, kIndex } kind = Kind::kRoot;

  [[nodiscard]] std::string text() const {
    if (kind == Kind::kRoot) return {};
    auto before = parent->text();
    if (kind == Kind::kIndex) return fmt::format("{}[{}]", before, index);
    // A property of the root stands alone, another member of it behind a dot.
    return before.empty() && kind == Kind::kProperty ? std::string(name) : fmt::format("{}.{}", before, name);
  }
};

std::string number_text(double value) { return json::serialize(Value(value)); }

bool is_whole(double value) { return std::isfinite(value) && std::abs(value) <= 9.2e18 && std::trunc(value) == value; }

class Checker {
 public:
  Checker(std::string prefix, bool of_default) : prefix_(std::move(prefix)), of_default_(of_default) {}

  Result check(const Value& value, const Schema& schema, const Where& at, Correlated* correlated) {
    auto result = check_here(value, schema, at, correlated);
    if (!result.is_valid() && correlated != nullptr && correlated->is_same()) result.forgive();
    return result;
  }

  /// Of an object in which more is wrong than can be told.
  void tell_something(Result& result) const {
    if (result.is_wrong && result.errors.empty()) result.add({Type::kInvalid, nowhere(), "\"\"", "more is wrong than can be told"});
  }

  /// Without forgiving what stands here itself: alternatives of one place.
  Result check_here(const Value& value, const Schema& schema, const Where& at, Correlated* correlated) {
    Result result;
    if (value.is_null()) {
      check_null(schema, at, result);
      check_enum(value, schema, at, result);
      return result;
    }
    // A default may be anything where an integer or a text is asked for: the extension says no type to who checks defaults.
    if (has_type(schema) && !(of_default_ && schema.is_int_or_string)) check_type(value, schema, at, result);
    check_alternatives(value, schema, at, correlated, result);
    if (value.is_string()) check_string(json::as_view(value), value, schema, at, result);
    if (value.is_number()) check_number(value, schema, at, result);
    if (const auto* list = value.if_array()) check_list(*list, schema, at, correlated, result);
    check_enum(value, schema, at, result);
    ++result.matches;
    if (const auto* object = value.if_object()) check_object(*object, schema, at, correlated, result);
    ++result.matches;
    return result;
  }

 private:
  [[nodiscard]] std::string field(const std::string& name) const {
    const auto bare = name.starts_with('.') ? name.substr(1) : name;
    if (prefix_.empty()) return bare.empty() ? "<nil>" : bare;
    return bare.empty() ? prefix_ : prefix_ + "." + bare;
  }
  [[nodiscard]] std::string nowhere() const { return prefix_.empty() ? "<nil>" : prefix_; }
  /// Makes a finding, as long as there is room for any.
  template <typename Make>
  void tell(Result& result, const Make& make) {
    result.is_wrong = true;
    if (is_full()) return;
    model::FieldError error = make();
    made_bytes_ += bytes_of(error);
    result.add(std::move(error));
  }
  [[nodiscard]] bool is_full() const { return made_bytes_ > kMostMadeBytes; }
  template <typename Text, typename Words>
  void say(Result& result, Type type, const Where& at, const Text& value, const Words& words) {
    tell(result, [&]() -> model::FieldError {
      const auto name = at.text();
      return {type, field(name), value(), fmt::format("{} in body {}", name, words())};
    });
  }
  /// The value as a finding shows it.
  static auto as_shown(const Value& value) {
    return [&value] { return shown(value); };
  }
  /// What go-openapi says of no field.
  template <typename Words>
  void say_whole(Result& result, const Words& words) {
    tell(result, [&]() -> model::FieldError { return {Type::kInvalid, nowhere(), "\"\"", words()}; });
  }

  static bool has_type(const Schema& schema) { return !schema.type.empty() || schema.is_int_or_string || !schema.checked_format.empty(); }
  static bool takes(const Schema& schema, std::string_view type) {
    return schema.is_int_or_string ? type == "integer" || type == "string" : schema.type == type;
  }
  static std::string_view types(const Schema& schema) { return schema.is_int_or_string ? "integer,string" : std::string_view(schema.type); }

  void wrong_type(Result& result, const Where& at, std::string_view wanted, std::string_view actual) {
    say(
        result, Type::kTypeInvalid, at, [&] { return fmt::format("\"{}\"", actual); },
        [&] { return fmt::format("must be of type {}: \"{}\"", wanted, actual); });
  }

  void check_null(const Schema& schema, const Where& at, Result& result) {
    if (!types(schema).empty() && !takes(schema, "null") && !schema.nullable) {
      wrong_type(result, at, types(schema), "null");
    } else {
      ++result.matches;
    }
  }

  void check_type(const Value& value, const Schema& schema, const Where& at, Result& result) {
    ++result.matches;
    const bool is_integer = value.is_int64(), is_number = value.is_double() || value.is_uint64();
    const std::string_view type = value.is_bool()     ? "boolean"
                                  : value.is_string() ? "string"
                                  : value.is_array()  ? "array"
                                  : value.is_object() ? "object"
                                  : is_integer        ? "integer"
                                                      : "number";
    const std::string_view implied = is_integer ? "int64" : is_number ? "float64" : "";
    const auto& format = schema.checked_format;
    const bool is_text = value.is_string() || value.is_array();
    const bool fits = takes(schema, type) || (is_number && takes(schema, "integer") && is_whole(value.to_number<double>())) ||
                      (is_integer && takes(schema, "number"));
    if (!is_text && !format.empty() && !fits && implied != format) return wrong_type(result, at, schema.format, implied);
    if (!takes(schema, "number") && !takes(schema, "integer") && !format.empty() && is_text) {
      ++result.matches;
      return;
    }
    if (!fits) return wrong_type(result, at, types(schema), type);
    ++result.matches;
  }

  void check_alternatives(const Value& value, const Schema& schema, const Where& at, Correlated* correlated, Result& result) {
    ++result.matches;
    if (!schema.any_of.empty()) check_any(value, schema, at, correlated, result);
    if (!schema.one_of.empty()) check_one(value, schema, at, correlated, result);
    if (!schema.all_of.empty()) check_all(value, schema, at, correlated, result);
    if (schema.negated != nullptr && check_here(value, *schema.negated, at, correlated).is_valid())
      say_whole(result, [&] { return fmt::format("{} must not validate the schema (not)", model::go_quote(at.text())); });
    ++result.matches;
  }

  void check_any(const Value& value, const Schema& schema, const Where& at, Correlated* correlated, Result& result) {
    std::optional<Result> best;
    for (const auto& one : schema.any_of) {
      auto tried = check_here(value, one, at, correlated);
      if (tried.is_valid()) return result.merge(std::move(tried));
      if (!best || tried.matches > best->matches) best = std::move(tried);
    }
    say_whole(result, [&] { return fmt::format("{} must validate at least one schema (anyOf)", model::go_quote(at.text())); });
    result.merge(std::move(*best));
  }

  void check_one(const Value& value, const Schema& schema, const Where& at, Correlated* correlated, Result& result) {
    std::optional<Result> best, first;
    int valid = 0;
    for (const auto& one : schema.one_of) {
      auto tried = check_here(value, one, at, correlated);
      if (tried.is_valid()) {
        ++valid;
        best.reset();
        if (!first) first = std::move(tried);
      } else if (valid == 0 && (!best || tried.matches > best->matches)) {
        best = std::move(tried);
      }
    }
    if (valid == 1) return result.merge(std::move(*first));
    say_whole(result, [&] {
      const auto found = valid == 0 ? std::string("Found none valid") : fmt::format("Found {} valid alternatives", valid);
      return fmt::format("{} must validate one and only one schema (oneOf). {}", model::go_quote(at.text()), found);
    });
    if (best) result.merge(std::move(*best));
  }

  void check_all(const Value& value, const Schema& schema, const Where& at, Correlated* correlated, Result& result) {
    std::size_t valid = 0;
    for (const auto& one : schema.all_of) {
      auto tried = check_here(value, one, at, correlated);
      if (tried.is_valid()) ++valid;
      result.merge(std::move(tried));
    }
    if (valid != schema.all_of.size())
      say_whole(result, [&] {
        return fmt::format("{} must validate all the schemas (allOf){}", model::go_quote(at.text()), valid == 0 ? ". None validated" : "");
      });
  }

  void check_string(std::string_view text, const Value& value, const Schema& schema, const Where& at, Result& result) {
    ++result.matches;
    if (const auto words = string_fault(text, schema); words) {
      if (*words == kTooLong) {
        tell(result, [&]() -> model::FieldError {
          const auto bytes = fmt::format("may not be more than {} byte{}", *schema.max_length, *schema.max_length == 1 ? "" : "s");
          return {Type::kTooLong, field(at.text()), "", bytes};
        });
      } else {
        say(result, Type::kInvalid, at, as_shown(value), [&] { return *words; });
      }
    }
    const auto& format = schema.checked_format;
    if (format.empty() || (!schema.type.empty() && schema.type != "string")) return;
    ++result.matches;
    if (!has_format(format, text))
      say(result, Type::kTypeInvalid, at, as_shown(value),
          [&] { return fmt::format("must be of type {}: {}", schema.format, model::go_quote(text)); });
  }
  static constexpr std::string_view kTooLong = "too long";
  static std::optional<std::string> string_fault(std::string_view text, const Schema& schema) {
    const auto runes = static_cast<std::int64_t>(schema.max_length || schema.min_length ? rune_count(text) : 0);
    if (schema.max_length && runes > *schema.max_length) return std::string(kTooLong);
    if (schema.min_length && runes < *schema.min_length) return fmt::format("should be at least {} chars long", *schema.min_length);
    if (schema.pattern.empty()) return std::nullopt;
    if (schema.expression == nullptr)
      return fmt::format("should match '{}, but pattern is invalid: {}'", schema.pattern, schema.pattern_error);
    if (!re2::RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), *schema.expression))
      return fmt::format("should match '{}'", schema.pattern);
    return std::nullopt;
  }

  void check_number(const Value& value, const Schema& schema, const Where& at, Result& result) {
    ++result.matches;
    check_range(value, schema, at, result);
    const double real = value.to_number<double>();
    if (schema.multiple_of) {
      // Whole numbers are compared as such: a factor below 1 is then none.
      const bool whole = value.is_int64();
      const double factor = whole ? std::trunc(*schema.multiple_of) : *schema.multiple_of;
      if (factor <= 0) {
        tell(result, [&]() -> model::FieldError {
          return {Type::kInvalid, field(at.text()), number_text(factor),
                  fmt::format("factor MultipleOf declared for {} must be positive: {}", at.text(), number_text(factor))};
        });
      } else if (whole ? value.get_int64() % static_cast<std::int64_t>(factor) != 0
                       : !is_whole(factor < 1 ? 1 / factor * real : real / factor)) {
        say(result, Type::kInvalid, at, as_shown(value), [&] { return fmt::format("should be a multiple of {}", number_text(factor)); });
      }
    }
    if (schema.minimum) {
      const double limit = value.is_int64() ? std::trunc(*schema.minimum) : *schema.minimum;
      if (schema.exclusive_minimum ? real <= limit : real < limit)
        say(result, Type::kInvalid, at, as_shown(value),
            [&] { return fmt::format("should be greater than {}{}", schema.exclusive_minimum ? "" : "or equal to ", number_text(limit)); });
    }
    if (schema.maximum) {
      const double limit = value.is_int64() ? std::trunc(*schema.maximum) : *schema.maximum;
      if (schema.exclusive_maximum ? real >= limit : real > limit)
        say(result, Type::kInvalid, at, as_shown(value),
            [&] { return fmt::format("should be less than {}{}", schema.exclusive_maximum ? "" : "or equal to ", number_text(limit)); });
    }
    ++result.matches;
  }

  /// What the format promises to hold the number.
  void check_range(const Value& value, const Schema& schema, const Where& at, Result& result) {
    const auto& format = schema.checked_format;
    const double real = value.to_number<double>();
    bool fits = true;
    if (schema.type == "integer") {
      fits = format == "int32" ? real >= -2147483648.0 && real <= 2147483647.0
                               : real >= -9223372036854775808.0 && real < 9223372036854775808.0;
      fits = fits && std::trunc(real) == real;
    } else if (schema.type == "number" && format == "float") {
      fits = std::abs(real) <= static_cast<double>(std::numeric_limits<float>::max());
    }
    if (fits) return;
    say_whole(result, [&] {
      return format.empty() ? fmt::format("Checked value must be of type {} (default format) in {}", schema.type, at.text())
                            : fmt::format("Checked value must be of type {} with format {} in {}", schema.type, format, at.text());
    });
  }

  void check_list(const json::Array& list, const Schema& schema, const Where& at, Correlated* correlated, Result& result) {
    ++result.matches;
    const auto size = static_cast<std::int64_t>(list.size());
    if (schema.items != nullptr)
      for (std::size_t i = 0; i < list.size(); ++i) {
        const Where here{&at, {}, i, Where::Kind::kIndex};
        result.merge(check(list[i], *schema.items, here, correlated == nullptr ? nullptr : correlated->index(i)));
      }
    if (schema.min_items && size < *schema.min_items)
      say(
          result, Type::kInvalid, at, [&] { return std::to_string(size); },
          [&] { return fmt::format("should have at least {} items", *schema.min_items); });
    if (schema.max_items && size > *schema.max_items) too_many(result, at, size, *schema.max_items);
    ++result.matches;
  }

  void too_many(Result& result, const Where& at, std::int64_t size, std::int64_t limit) {
    tell(result, [&]() -> model::FieldError {
      return {Type::kTooMany, field(at.text()), std::to_string(size),
              fmt::format("must have at most {} item{}", limit, limit == 1 ? "" : "s")};
    });
  }

  void check_enum(const Value& value, const Schema& schema, const Where& at, Result& result) {
    if (schema.enums.empty()) return;
    if (!value.is_null() && std::ranges::any_of(schema.enums, [&](const Value& one) { return !one.is_null() && json::equal(one, value); }))
      return;
    tell(result, [&]() -> model::FieldError {
      std::vector<std::string> words;
      for (const auto& one : schema.enums)
        words.push_back(model::go_quote(one.is_string() ? std::string(json::as_view(one)) : json::serialize(one)));
      return {Type::kNotSupported, field(at.text()), shown(value), fmt::format("supported values: {}", fmt::join(words, ", "))};
    });
  }

  void check_object(const json::Object& object, const Schema& schema, const Where& at, Correlated* correlated, Result& result) {
    const auto size = static_cast<std::int64_t>(object.size());
    if (schema.min_properties && size < *schema.min_properties)
      say(
          result, Type::kInvalid, at, [&] { return std::to_string(size); },
          [&] { return fmt::format("should have at least {} properties", *schema.min_properties); });
    if (schema.max_properties && size > *schema.max_properties) too_many(result, at, size, *schema.max_properties);
    for (const auto& [key, member] : object) {
      const std::string_view name(key.data(), key.size());
      const auto* below = schema.property(name);
      const bool is_named = below != nullptr;
      if (!is_named) {
        if (schema.additional_allowed == false) {
          tell(result, [&]() -> model::FieldError {
            const auto here = at.text();
            return {Type::kInvalid, field(here), "\"\"", fmt::format("{}.{} in body is a forbidden property", here, name)};
          });
          continue;
        }
        below = schema.additional.get();
        if (below == nullptr) continue;
      }
      const Where here{&at, name, 0, is_named ? Where::Kind::kProperty : Where::Kind::kAdditional};
      // What an object is cannot change unseen: both versions were converted to one.
      const bool is_type = at.kind == Where::Kind::kRoot && prefix_.empty() && (name == "apiVersion" || name == "kind");
      result.merge(check(member, *below, here, correlated == nullptr || is_type ? nullptr : correlated->key(name)));
    }
    for (const auto& name : schema.required)
      if (!object.contains(name)) {
        const Where here{&at, name, 0, Where::Kind::kAdditional};
        tell(result, [&]() -> model::FieldError { return {Type::kRequired, field(here.text()), "", ""}; });
        if (is_full()) break;
      }
  }

  std::string prefix_;
  bool of_default_ = false;
  std::size_t made_bytes_ = 0;
};

}  // namespace

void check_schema(const Value& value, const Schema& schema, const std::string& path, Correlated* correlated, model::FieldErrors& errors,
                  bool of_default) {
  const Where root;
  Checker checker(path, of_default);
  auto result = checker.check(value, schema, root, correlated);
  checker.tell_something(result);
  std::ranges::move(result.errors, std::back_inserter(errors));
}

bool blocks_rules(const model::FieldErrors& errors) {
  return std::ranges::any_of(errors, [](const model::FieldError& error) {
    return error.type == Type::kNotSupported || error.type == Type::kRequired || error.type == Type::kTooLong ||
           error.type == Type::kTooMany || error.type == Type::kTypeInvalid;
  });
}

}  // namespace berth::custom
