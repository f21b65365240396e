// The types that rules see of a schema (apiserver/pkg/cel/common/schemas.go), and names as identifiers (apiserver/pkg/cel/escaping.go).
#include <set>

#include "custom/rules.h"

namespace berth::custom {
namespace {

const std::set<std::string_view>& reserved() {
  static const std::set<std::string_view> kWords = {"true",     "false",   "null",      "in",       "as",  "break",  "const",
                                                    "continue", "else",    "for",       "function", "if",  "import", "let",
                                                    "loop",     "package", "namespace", "return",   "var", "void",   "while"};
  return kWords;
}

constexpr std::int64_t kMaxRequestBytes = 3 * 1024 * 1024;
constexpr std::int64_t kMaxDurationBytes = 32, kMaxDateTimeBytes = 32, kDateBytes = 12, kMinDateTimeBytes = 21, kMinDurationBytes = 3;

std::int64_t positive(std::int64_t value) { return std::max<std::int64_t>(value, 0); }

Declared leaf(const cel::Type& type, std::int64_t max_size, std::int64_t min_size) {
  Declared out;
  out.type = cel::bounded(type, static_cast<std::uint64_t>(max_size));
  out.min_size = min_size;
  return out;
}

class Declarer {
 public:
  explicit Declarer(Declarations& out) : out_(out) {}

  std::optional<Declared> declare(const Schema& schema, bool is_resource, const std::string& name) {
    if (schema.is_int_or_string)
      return leaf(cel::dyn_type(), schema.max_length ? positive(*schema.max_length) * 4 : kMaxRequestBytes - 2, 1);
    if (schema.type == "object") return object(schema, is_resource, name);
    if (schema.type == "array") return list(schema, name);
    if (schema.type == "string") return text(schema);
    if (schema.type == "boolean") return scalar(cel::bool_type(), 4);
    if (schema.type == "number") return scalar(cel::double_type(), 1);
    if (schema.type == "integer") return scalar(cel::int_type(), 1);
    return std::nullopt;
  }

 private:
  static Declared scalar(const cel::Type& type, std::int64_t min_size) {
    Declared out;
    out.type = type;
    out.min_size = min_size;
    return out;
  }

  static Declared text(const Schema& schema) {
    const auto length = schema.max_length ? std::optional(positive(*schema.max_length)) : std::nullopt;
    if (schema.format == "byte") return leaf(cel::bytes_type(), length.value_or(kMaxRequestBytes - 2), 2);
    if (schema.format == "duration") return leaf(cel::duration_type(), kMaxDurationBytes, kMinDurationBytes);
    if (schema.format == "date") return leaf(cel::timestamp_type(), kDateBytes, kDateBytes);
    if (schema.format == "date-time") return leaf(cel::timestamp_type(), kMaxDateTimeBytes, kMinDateTimeBytes);
    if (length) return leaf(cel::string_type(), *length * 4, 2);
    if (schema.enums.empty()) return leaf(cel::string_type(), kMaxRequestBytes - 2, 2);
    std::size_t longest = 0;
    for (const auto& one : schema.enums)
      if (one.is_string()) longest = std::max(longest, one.get_string().size());
    return leaf(cel::string_type(), static_cast<std::int64_t>(longest), 2);
  }

  std::optional<Declared> list(const Schema& schema, const std::string& name) {
    if (schema.items == nullptr) return std::nullopt;
    auto element = declare(*schema.items, schema.items->is_embedded, name + ".@idx");
    if (!element) return std::nullopt;
    const auto most = schema.max_items ? positive(*schema.max_items) : (kMaxRequestBytes - 2) / (element->min_size + 1);
    auto out = leaf(cel::list_type(element->type), most, 2);
    out.element = std::make_unique<Declared>(std::move(*element));
    return out;
  }

  std::optional<Declared> object(const Schema& schema, bool is_resource, const std::string& name) {
    if (schema.additional != nullptr && !is_resource) {
      auto element = declare(*schema.additional, schema.additional->is_embedded, name + ".@elem");
      if (!element) return std::nullopt;
      const auto most = schema.max_properties ? positive(*schema.max_properties) : (kMaxRequestBytes - 2) / (element->min_size + 6);
      auto out = leaf(cel::map_type(cel::string_type(), element->type), most, 2);
      out.element = std::make_unique<Declared>(std::move(*element));
      return out;
    }
    Declared out;
    out.type = cel::struct_type(name);
    out.min_size = 2;
    auto& fields = out_.structs[name];
    fields.name = name;
    const std::set<std::string_view> required(schema.required.begin(), schema.required.end());
    const auto add = [&](std::string_view property, Declared declared) {
      if (auto escaped = escape_name(property)) out_.structs[name].fields.insert_or_assign(std::move(*escaped), declared.type);
      // Behind a dot a keyword is a name like others.
      if (reserved().contains(property)) out_.structs[name].fields.try_emplace(std::string(property), declared.type);
      out.properties.insert_or_assign(std::string(property), std::move(declared));
    };
    for (const auto& [property, below] : schema.properties) {
      auto declared = declare(below, below.is_embedded, name + "." + property);
      if (!declared) continue;
      if (required.contains(property) && !below.default_value)
        out.min_size += static_cast<std::int64_t>(property.size()) + declared->min_size + 4;
      add(property, std::move(*declared));
    }
    if (is_resource && !has_own_meta(schema)) add_meta(name, add);
    return out;
  }

  static bool has_own_meta(const Schema& schema) {
    const auto is_text = [](const Schema* one) { return one != nullptr && one->type == "string"; };
    const auto* metadata = schema.property("metadata");
    return is_text(schema.property("kind")) && is_text(schema.property("apiVersion")) && metadata != nullptr &&
           metadata->type == "object" && is_text(metadata->property("name")) && is_text(metadata->property("generateName"));
  }

  template <typename Add>
  void add_meta(const std::string& name, const Add& add) {
    add("kind", leaf(cel::string_type(), kMaxRequestBytes - 2, 2));
    add("apiVersion", leaf(cel::string_type(), kMaxRequestBytes - 2, 2));
    Declared metadata;
    const auto meta_name = name + ".metadata";
    metadata.type = cel::struct_type(meta_name);
    metadata.min_size = 2;
    cel::StructType fields{meta_name, {}};
    for (const char* field : {"name", "generateName"}) {
      metadata.properties.emplace(field, leaf(cel::string_type(), kMaxRequestBytes - 2, 2));
      fields.fields.emplace(field, leaf(cel::string_type(), kMaxRequestBytes - 2, 2).type);
    }
    out_.structs.insert_or_assign(meta_name, std::move(fields));
    add("metadata", std::move(metadata));
  }

  Declarations& out_;
};

constexpr std::pair<std::string_view, std::string_view> kEscapes[] = {
    {"__", "__underscores__"}, {".", "__dot__"}, {"-", "__dash__"}, {"/", "__slash__"}};

}  // namespace

Declarations declare(const Schema& schema, bool is_resource) {
  Declarations out;
  out.root = Declarer(out).declare(schema, is_resource, "selfType");
  return out;
}

std::optional<std::string> escape_name(std::string_view name) {
  if (name.empty() || (name.front() >= '0' && name.front() <= '9')) return std::nullopt;
  if (reserved().contains(name)) return fmt::format("__{}__", name);
  std::string out;
  for (std::size_t i = 0; i < name.size();) {
    const auto* escape = std::ranges::find_if(kEscapes, [&](const auto& one) { return name.substr(i).starts_with(one.first); });
    if (escape != std::end(kEscapes)) {
      out += escape->second;
      i += escape->first.size();
      continue;
    }
    const char c = name[i++];
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_') return std::nullopt;
    out += c;
  }
  return out;
}

std::optional<std::string> unescape_name(std::string_view name) {
  if (name.find("__") == std::string_view::npos) return std::string(name);
  if (name.size() > 4 && name.starts_with("__") && name.ends_with("__") && reserved().contains(name.substr(2, name.size() - 4)))
    return std::string(name.substr(2, name.size() - 4));
  std::string out;
  for (std::size_t i = 0; i < name.size();) {
    const auto* escape = std::ranges::find_if(kEscapes, [&](const auto& one) { return name.substr(i).starts_with(one.second); });
    if (escape != std::end(kEscapes)) {
      out += escape->first;
      i += escape->second.size();
    } else {
      out += name[i++];
    }
  }
  return out;
}

}  // namespace berth::custom
