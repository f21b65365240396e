#include <arpa/inet.h>
#include <fmt/format.h>

#include "base/split.h"
#include "model/internal_form.h"
#include "model/kind_hooks.h"
#include "model/quantity.h"
#include "model/schema.h"
#include "model/selector.h"
#include "model/validation/validation.h"

namespace berth::model::validation {
namespace {

bool is_lower_alnum(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }
bool is_alnum(char c) { return is_lower_alnum(c) || (c >= 'A' && c <= 'Z'); }

bool matches_label(std::string_view text, bool (*edge)(char), std::string_view middle) {
  if (text.empty() || !edge(text.front()) || !edge(text.back())) return false;
  return std::all_of(text.begin(), text.end(), [&](char c) { return edge(c) || middle.find(c) != std::string_view::npos; });
}

bool is_subdomain(std::string_view text) {
  for (const auto label : split(text, '.'))
    if (!matches_label(label, is_lower_alnum, "-")) return false;
  return true;
}

/// Of names that are also host names; texts of labels and their keys are counted in bytes.
std::string long_name_text(std::size_t limit) { return fmt::format("must be no more than {} characters", limit); }
std::string too_long_text(std::size_t limit) { return fmt::format("must be no more than {} bytes", limit); }

/// Adds a sentence to those there are.
void say(std::string& sentences, std::string_view sentence) { sentences += (sentences.empty() ? "" : "\n") + std::string(sentence); }

constexpr std::string_view kLabelText =
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric "
    "character (e.g. 'my-name',  or '123-abc', "
    "regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
constexpr std::string_view kSubdomainText =
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'example.com', "
    "regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
constexpr std::string_view kQualifiedText =
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. "
    "'MyName',  or 'my.name',  or '123-abc', "
    "regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
constexpr std::string_view kLabelValueText =
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', "
    "regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

}  // namespace

std::string Path::text() const {
  std::string before = parent_ == nullptr ? std::string() : parent_->text();
  if (is_index_) return before + fmt::format("[{}]", index_);
  if (is_key_) return before + fmt::format("[{}]", key_);
  return before.empty() ? std::string(key_) : before + "." + std::string(key_);
}

void Errors::add(FieldError::Type type, const Path& at, std::string value, std::string_view detail) {
  if (is_full()) return;
  list_.push_back({type, at.text(), std::move(value), std::string(detail)});
  const FieldError& last = list_.back();
  text_bytes_ += last.field.size() + last.value.size() + last.detail.size();
}
void Errors::required(const Path& at, std::string_view detail) { add(FieldError::Type::kRequired, at, "", detail); }
void Errors::invalid(const Path& at, const Value& value, std::string_view sentences) {
  if (is_full()) return;
  std::string shown = json::serialize(value);
  if (value.is_object() || value.is_array()) shown = escape_html(shown);
  for (const auto sentence : split(sentences, '\n')) add(FieldError::Type::kInvalid, at, shown, sentence);
}
void Errors::invalid(const Path& at, std::string_view value, std::string_view sentences) { invalid(at, Value(value), sentences); }
void Errors::duplicate(const Path& at, const Value& value, std::string_view detail) {
  if (is_full()) return;
  add(FieldError::Type::kDuplicate, at, json::serialize(value), detail);
}
void Errors::forbidden(const Path& at, std::string_view detail) { add(FieldError::Type::kForbidden, at, "", detail); }
void Errors::not_found(const Path& at, const Value& value, std::string_view detail) {
  if (is_full()) return;
  add(FieldError::Type::kNotFound, at, json::serialize(value), detail);
}
void Errors::internal(const Path& at, std::string_view problem) { add(FieldError::Type::kInternal, at, "", problem); }
void Errors::too_long(const Path& at, std::size_t limit) {
  add(FieldError::Type::kTooLong, at, "", fmt::format("may not be more than {} bytes", limit));
}
void Errors::too_many(const Path& at, std::size_t actual, std::size_t limit) {
  add(FieldError::Type::kTooMany, at, fmt::format("{}", actual), fmt::format("must have at most {} item{}", limit, limit == 1 ? "" : "s"));
}
void Errors::not_supported(const Path& at, std::string_view value, const std::vector<std::string_view>& supported) {
  not_supported_value(at, Value(value), supported);
}
void Errors::not_supported_value(const Path& at, const Value& value, const std::vector<std::string_view>& supported) {
  if (is_full()) return;
  std::vector<std::string> quoted;
  for (const std::string_view one : supported) quoted.push_back(fmt::format("\"{}\"", one));
  add(FieldError::Type::kNotSupported, at, json::serialize(value), fmt::format("supported values: {}", fmt::join(quoted, ", ")));
}

std::string check_dns1123_label(std::string_view text) {
  std::string out;
  if (text.size() > 63) say(out, long_name_text(63));
  if (!matches_label(text, is_lower_alnum, "-")) say(out, is_subdomain(text) ? "must not contain dots" : kLabelText);
  return out;
}

std::string check_dns1123_subdomain(std::string_view text) {
  std::string out;
  if (text.size() > 253) say(out, long_name_text(253));
  if (!is_subdomain(text)) say(out, kSubdomainText);
  return out;
}

std::string check_underscored_subdomain(std::string_view text) {
  std::string out, plain(text);
  if (text.size() > 253) say(out, long_name_text(253));
  // An underscore may lead a label and stand within it.
  for (std::size_t i = 0; i < plain.size(); ++i) {
    const bool leads = i == 0 || plain[i - 1] == '.';
    if (plain[i] == '_' && i + 1 < plain.size() && plain[i + 1] != '.' && !(leads && !is_lower_alnum(plain[i + 1]))) plain[i] = 'a';
  }
  if (!is_subdomain(plain))
    say(out,
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start and end with "
        "an "
        "alphanumeric character (e.g. 'example.com', regex used for validation is "
        "'_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*')");
  return out;
}

std::string check_dns1035_label(std::string_view text) {
  std::string out;
  if (text.size() > 63) say(out, long_name_text(63));
  if (matches_label(text, is_lower_alnum, "-") && text.front() >= 'a') return out;
  say(out,
      "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an "
      "alphanumeric character (e.g. 'my-name',  or 'abc-123', "
      "regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')");
  return out;
}

std::string check_qualified_name(std::string_view text) {
  std::string out;
  const std::size_t slash = text.find('/');
  std::string_view name = text;
  if (slash != std::string_view::npos) {
    const std::string_view prefix = text.substr(0, slash);
    name = text.substr(slash + 1);
    if (name.find('/') != std::string_view::npos)
      return "a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
             "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
             "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. "
             "'example.com/MyName')";
    if (prefix.empty())
      say(out, "prefix part must be non-empty");
    else if (prefix.size() > 253)
      say(out, "prefix part " + too_long_text(253));
    if (!prefix.empty() && !is_subdomain(prefix)) say(out, "prefix part " + std::string(kSubdomainText));
  }
  if (name.empty())
    say(out, "name part must be non-empty");
  else if (name.size() > 63)
    say(out, "name part " + too_long_text(63));
  if (!matches_label(name, is_alnum, "-_.")) say(out, kQualifiedText);
  return out;
}

std::string check_label_value(std::string_view text) {
  std::string out;
  if (text.size() > 63) say(out, too_long_text(63));
  if (!text.empty() && !matches_label(text, is_alnum, "-_.")) say(out, kLabelValueText);
  return out;
}

std::string check_config_map_key(std::string_view text) {
  if (text.size() > 253) return long_name_text(253);
  if (text.empty() || !std::all_of(text.begin(), text.end(), [](char c) { return is_alnum(c) || c == '-' || c == '_' || c == '.'; }))
    return "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', "
           "regex used for validation is '[-._a-zA-Z0-9]+')";
  if (text == ".") return "must not be '.'";
  if (text == "..") return "must not be '..'";
  if (text.starts_with("..")) return "must not start with '..'";
  return {};
}

std::string check_env_name(std::string_view text) {
  const bool printable = !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c < 0x7f && c != '='; });
  return printable ? std::string() : "a valid environment variable name must consist only of printable ASCII characters other than '='";
}

std::string check_path_segment(std::string_view text) {
  if (text == "." || text == "..") return fmt::format("may not be '{}'", text);
  std::string out;
  for (const char c : {'/', '%'})
    if (text.find(c) != std::string_view::npos) say(out, fmt::format("may not contain '{}'", c));
  return out;
}

std::string check_port_number(std::int64_t port) {
  return port >= 1 && port <= 65535 ? std::string() : "must be between 1 and 65535, inclusive";
}

std::string check_port_name(std::string_view text) {
  std::string out;
  if (text.size() > 15) say(out, long_name_text(15));
  if (text.empty() || !std::ranges::all_of(text, [](char c) { return is_lower_alnum(c) || c == '-'; }))
    say(out, "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)");
  if (std::none_of(text.begin(), text.end(), [](char c) { return c >= 'a' && c <= 'z'; }))
    say(out, "must contain at least one letter (a-z)");
  if (text.find("--") != std::string_view::npos) say(out, "must not contain consecutive hyphens");
  if (text.starts_with('-') || text.ends_with('-')) say(out, "must not begin or end with a hyphen");
  return out;
}

bool is_ip(std::string_view text) {
  if (text.find(':') != std::string_view::npos) {
    in6_addr address;
    return text.size() < INET6_ADDRSTRLEN && inet_pton(AF_INET6, std::string(text).c_str(), &address) == 1;
  }
  int parts = 0;
  for (const auto part : split(text, '.')) {
    ++parts;
    if (part.empty() || part.size() > 3 || (part.size() > 1 && part[0] == '0')) return false;
    int value = 0;
    for (const char c : part) {
      if (c < '0' || c > '9') return false;
      value = value * 10 + (c - '0');
    }
    if (value > 255) return false;
  }
  return parts == 4;
}

namespace {

/// How objects of a kind may be named.
std::string check_name(const KindInfo& kind, std::string_view name) {
  const auto& own = hooks_of(kind).rules->name;
  return own ? own(name) : check_dns1123_subdomain(name);
}

}  // namespace

void labels(const Value& map, const Path& at, Errors& errors) {
  const json::Object* object = map.if_object();
  if (object == nullptr) return;
  for (const auto& [key, value] : *object) {
    const std::string_view name(key.data(), key.size());
    if (const std::string why = check_qualified_name(name); !why.empty()) errors.invalid(at, name, why);
    if (value.is_string())
      if (const std::string why = check_label_value(json::as_view(value)); !why.empty()) errors.invalid(at, value, why);
  }
}

void annotations(const Value& map, const Path& at, Errors& errors) {
  const json::Object* object = map.if_object();
  if (object == nullptr) return;
  std::size_t bytes = 0;
  for (const auto& [key, value] : *object) {
    std::string lower(key);
    for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (const std::string why = check_qualified_name(lower); !why.empty())
      errors.invalid(at, std::string_view(key.data(), key.size()), why);
    bytes += key.size() + (value.is_string() ? value.get_string().size() : 0);
  }
  if (bytes > 256 * 1024) errors.too_long(at, 256 * 1024);
}

void finalizer_name(std::string_view name, const Path& at, const Path& unknown_at, Errors& errors) {
  if (const std::string why = check_qualified_name(name); !why.empty()) errors.invalid(at, name, why);
  if (name.find('/') == std::string_view::npos && name != "kubernetes" && name != "orphan" && name != "foregroundDeletion")
    errors.invalid(unknown_at, name, "name is neither a standard finalizer name nor is it fully qualified");
}

namespace {

void owner_references(const Value& doc, const Path& one, Errors& errors) {
  std::string controller;
  // Kubernetes names the list, not the entry.
  for (const Value& owner : json::get_array(doc, {"metadata", "ownerReferences"})) {
    if (errors.is_full()) return;  // A finding can show the whole list.
    if (json::get_string(owner, {"apiVersion"}).empty()) errors.invalid(one / "apiVersion", "", "version must not be empty");
    if (json::get_string(owner, {"kind"}).empty()) errors.invalid(one / "kind", "", "must not be empty");
    if (json::get_string(owner, {"name"}).empty()) errors.invalid(one / "name", "", "must not be empty");
    if (json::get_string(owner, {"uid"}).empty()) errors.invalid(one / "uid", "", "must not be empty");
    if (json::get_string(owner, {"apiVersion"}) == "v1" && json::get_string(owner, {"kind"}) == "Event")
      errors.invalid(one, owner, "/v1, Kind=Event is disallowed from being an owner");
    if (!json::get_bool(owner, {"controller"})) continue;
    const std::string name_of_this = fmt::format("{}/{}", json::get_string(owner, {"kind"}), json::get_string(owner, {"name"}));
    if (controller.empty())
      controller = name_of_this;
    else
      errors.invalid(one, Value(json::get_array(doc, {"metadata", "ownerReferences"})),
                     fmt::format("Only one reference can have Controller set to true. Found \"true\" in references for {} and {}",
                                 controller, name_of_this));
  }
}

/// What creation and update look at alike.
void tags_and_owners(const Value& doc, const Path& at, Errors& errors) {
  if (const Value* map = json::find(doc, {"metadata", "labels"})) labels(*map, at / "labels", errors);
  if (const Value* map = json::find(doc, {"metadata", "annotations"})) annotations(*map, at / "annotations", errors);
  owner_references(doc, at / "ownerReferences", errors);
}

}  // namespace

void object_meta(const KindInfo& kind, const Value& doc, Errors& errors) {
  const Path at("metadata");
  const std::string_view name = json::get_string(doc, {"metadata", "name"}), generate = json::get_string(doc, {"metadata", "generateName"});
  const std::string_view ns = json::get_string(doc, {"metadata", "namespace"});
  if (!generate.empty()) {
    std::string_view stem = generate;
    // A generated suffix follows: a trailing dash is fine.
    const std::string probe = std::string(stem) + "x";
    if (const std::string why = check_name(kind, probe); !why.empty()) errors.invalid(at / "generateName", generate, why);
  }
  if (name.empty()) {
    errors.required(at / "name", "name or generateName is required");
  } else if (const std::string why = check_name(kind, name); !why.empty()) {
    errors.invalid(at / "name", name, why);
  }
  if (kind.namespaced) {
    if (ns.empty())
      errors.required(at / "namespace");
    else if (const std::string why = check_dns1123_label(ns); !why.empty())
      errors.invalid(at / "namespace", ns, why);
  } else if (!ns.empty()) {
    errors.forbidden(at / "namespace", "not allowed on this type");
  }
  if (json::get_int(doc, {"metadata", "generation"}) < 0)
    errors.invalid(at / "generation", *json::find(doc, {"metadata", "generation"}), kNegative);
  tags_and_owners(doc, at, errors);
  const Path finalizers = at / "finalizers";
  const bool is_builtin = !hooks_of(kind).rules->has_foreign_finalizers;
  std::size_t index = 0;
  for (const Value& finalizer : json::get_array(doc, {"metadata", "finalizers"})) {
    if (errors.is_full()) return;
    const std::string_view text = finalizer.is_string() ? json::as_view(finalizer) : "";
    const Path one = finalizers[index++];
    if (is_builtin)
      finalizer_name(text, finalizers, one, errors);
    else if (const std::string why = check_qualified_name(text); !why.empty())
      errors.invalid(finalizers, text, why);
  }
}

void object_meta_update(const Value& old, const Value& doc, Errors& errors) {
  const Path at("metadata");
  for (const char* key : {"name", "namespace", "uid", "creationTimestamp"}) immutable(old, doc, {"metadata", key}, at / key, errors);
  if (json::find(old, {"metadata", "deletionTimestamp"}) != nullptr) {
    // Once an object is going, no finalizer may be added.
    std::set<std::string_view> before;
    for (const Value& finalizer : json::get_array(old, {"metadata", "finalizers"}))
      if (finalizer.is_string()) before.insert(json::as_view(finalizer));
    json::Array added;
    for (const Value& finalizer : json::get_array(doc, {"metadata", "finalizers"}))
      if (finalizer.is_string() && !before.contains(json::as_view(finalizer))) added.push_back(finalizer);
    if (!added.empty())
      errors.forbidden(
          at / "finalizers",
          fmt::format("no new finalizers can be added if the object is being deleted, found new finalizers {}", json::serialize(added)));
  }
}

void label_selector(const Value& selector, const Path& at, Errors& errors) {
  const Path match = at / "matchLabels";
  if (const Value* map = json::find(selector, "matchLabels")) labels(*map, match, errors);
  const Path expressions = at / "matchExpressions";
  std::size_t i = 0;
  for (const Value& expression : json::get_array(selector, {"matchExpressions"})) {
    const Path one = expressions[i++];
    const std::string_view op = json::get_string(expression, {"operator"}), key = json::get_string(expression, {"key"});
    const std::size_t values = json::get_array(expression, {"values"}).size();
    if (op == "In" || op == "NotIn") {
      if (values == 0) errors.required(one / "values", "must be specified when `operator` is 'In' or 'NotIn'");
    } else if (op == "Exists" || op == "DoesNotExist") {
      if (values > 0) errors.forbidden(one / "values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
    } else {
      errors.invalid(one / "operator", op, "not a valid selector operator");
    }
    if (const std::string why = check_qualified_name(key); !why.empty()) errors.invalid(one / "key", key, why);
    const Path values_at = one / "values";
    std::size_t k = 0;
    for (const Value& value : json::get_array(expression, {"values"})) {
      const Path value_at = values_at[k++];
      if (value.is_string())
        if (const std::string why = check_label_value(json::as_view(value)); !why.empty()) errors.invalid(value_at, value, why);
    }
  }
}

void non_negative(const Value& object, std::string_view key, const Path& at, Errors& errors) {
  const Value* value = json::find(object, key);
  if (value != nullptr && value->is_int64() && value->get_int64() < 0) errors.invalid(at / key, *value, kNegative);
}

void int_or_percent(const Value& value, const Path& at, Errors& errors) {
  if (value.is_int64()) {
    if (value.get_int64() < 0) errors.invalid(at, value, kNegative);
    return;
  }
  const std::string_view text = value.is_string() ? json::as_view(value) : "";
  const bool percent = text.size() >= 2 && text.back() == '%' && text.find_first_not_of("0123456789") == text.size() - 1;
  if (!percent)
    errors.invalid(at, value,
                   "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for "
                   "validation is '[0-9]+%')");
}

void supported_value(const Value& object, std::string_view key, const Path& at, const std::vector<std::string_view>& supported,
                     Errors& errors, bool even_empty) {
  const Value* value = json::find(object, key);
  if (value == nullptr || !value->is_string()) return;
  const std::string_view text = json::as_view(*value);
  if (text.empty() ? even_empty : std::ranges::find(supported, text) == supported.end()) errors.not_supported(at / key, text, supported);
}

void immutable(const Value& old, const Value& doc, json::Path where, const Path& at, Errors& errors, std::string_view type) {
  const Value* before = json::find(old, where);
  const Value* after = json::find(doc, where);
  const bool same = before == nullptr ? after == nullptr : after != nullptr && json::equal(*before, *after);
  if (!same) errors.invalid(at, internal_form(type, after), kImmutable);
}

Value shown_selector(const Value* selector) { return internal_form("meta.v1.LabelSelector", selector); }
Value shown_labels(const Value* labels) { return labels == nullptr ? Value(nullptr) : sorted_map(*labels); }

void resource_list(const Value& holder, const Path& at, Errors& errors) {
  const json::Object* object = holder.if_object();
  if (object == nullptr) return;
  for (const auto& [key, value] : *object) {
    const std::string_view name(key.data(), key.size());
    const Path one = Path::map_key(at, name);
    if (const std::string why = check_qualified_name(name); !why.empty())
      errors.invalid(one, name, why);
    else if (name.find('/') == std::string_view::npos) {
      static constexpr std::string_view kStandard[] = {"cpu", "memory", "ephemeral-storage", "storage", "pods", "attachable-volumes"};
      const bool known = std::find(std::begin(kStandard), std::end(kStandard), name) != std::end(kStandard) ||
                         name.starts_with("hugepages-") || name.starts_with("attachable-volumes-");
      if (!known) errors.invalid(one, name, "must be a standard resource type or fully qualified");
    }
    const auto quantity = value.is_string() ? Quantity::parse(json::as_view(value)) : std::nullopt;
    if (quantity && quantity->sign() < 0) errors.invalid(one, value, kNegative);
    if (quantity && name.find('/') != std::string_view::npos && quantity->milli_value() % 1000 != 0)
      errors.invalid(one, value, "must be an integer");
  }
}

}  // namespace berth::model::validation

namespace berth::model {

FieldErrors validate_create(const KindInfo& kind, const json::Value& doc) {
  const Rules& rules = *hooks_of(kind).rules;
  validation::Errors errors, last;
  validation::object_meta(kind, doc, rules.looks_at_metadata_last ? last : errors);
  if (rules.create) rules.create(doc, errors);
  FieldErrors found = errors.take();
  return found.empty() ? last.take() : found;
}

FieldErrors validate_update(const KindInfo& kind, const json::Value& old, const json::Value& doc, std::string_view subresource) {
  validation::Errors errors, whole, change;
  validation::object_meta(kind, doc, whole);
  validation::object_meta_update(old, doc, change);
  if (!whole.empty()) validation::tags_and_owners(doc, validation::Path("metadata"), change);
  const auto tell = [&](const FieldErrors& found, int times) {
    for (int i = 0; i < times; ++i)
      for (const FieldError& one : found) errors.add(one);
  };
  const Rules& own = *hooks_of(kind).rules;
  tell(whole.take(), own.metadata_looks.whole);
  tell(change.take(), own.metadata_looks.changes);
  if (subresource == "status" && own.status) own.status(old, doc, errors);
  if (subresource != "status" && subresource != "finalize" && own.update) own.update(old, doc, subresource, errors);
  return errors.take();
}

}  // namespace berth::model
