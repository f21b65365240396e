// Type checks of request bodies, in the words of the API server's decoder.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "base/clock.h"
#include "model/empty_values.h"
#include "model/go_time.h"
#include "model/kind_hooks.h"
#include "model/quantity.h"
#include "model/schema.h"
#include "model/schema_text.h"
#include "model/unknown_fields.h"

namespace berth::model {
namespace {

using Kind = TypeRef::Kind;
constexpr std::string_view kQuantityError = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

/// One step of a path; linked on the stack, so that a path costs nothing until it is reported.
struct Step {
  const Step* parent = nullptr;
  std::string_view key;
  std::size_t index = 0;
  bool is_index = false;
  bool is_key = false;             ///< Of a map; like an index it has no place in Go's own words.
  std::string_view embedded = {};  ///< The Go struct inside its owner that the field belongs to.
};

/// The Go struct that carries a field inside its owner, unseen in JSON but not in the decoder's words; empty: the owner itself.
std::string_view embedded_struct(const TypeDef& owner, const FieldDef& field) {
  std::size_t end = 0;
  // A struct in a struct, as field numbers in messages of messages tell.
  for (std::size_t depth = 1; depth < field.proto.size() && end < owner.embeds.size(); ++depth)
    end = std::min(owner.embeds.find('.', end + 1), owner.embeds.size());
  return std::string_view(owner.embeds).substr(0, end);
}

std::string render(const Step* step, bool with_indices) {
  std::vector<const Step*> steps;
  for (; step != nullptr; step = step->parent) steps.push_back(step);
  std::string out;
  for (auto at = steps.rbegin(); at != steps.rend(); ++at) {
    const auto& one = **at;
    if (one.is_index) {
      if (with_indices) fmt::format_to(std::back_inserter(out), "[{}]", one.index);
      continue;
    }
    if (one.is_key && !with_indices) continue;
    if (!one.embedded.empty() && !with_indices) fmt::format_to(std::back_inserter(out), ".{}", one.embedded);
    if (!out.empty() || (!one.embedded.empty() && !with_indices)) out += '.';
    out += one.key;
  }
  return out;
}

std::string_view json_word(const json::Value& value) {
  switch (value.kind()) {
    case boost::json::kind::object:
      return "object";
    case boost::json::kind::array:
      return "array";
    case boost::json::kind::string:
      return "string";
    case boost::json::kind::bool_:
      return "bool";
    case boost::json::kind::null:
      return "null";
    default:
      return "number";
  }
}

bool is_zero(const json::Value& value) {
  switch (value.kind()) {
    case boost::json::kind::object:
      return value.get_object().empty();
    case boost::json::kind::array:
      return value.get_array().empty();
    case boost::json::kind::string:
      return value.get_string().empty();
    case boost::json::kind::bool_:
      return !value.get_bool();
    case boost::json::kind::int64:
      return value.get_int64() == 0;
    case boost::json::kind::double_:
      return value.get_double() == 0;
    default:
      return false;
  }
}

/// What Go calls the fields whose types have names of their own, by "TYPE.FIELD".
const std::map<std::string, std::string_view, std::less<>>& named_fields() {
  static const auto all = [] {
    std::map<std::string, std::string_view, std::less<>> out;
    for (const Fact& fact : read_facts(named_texts()))
      for (const auto word : fact.words) {
        const std::size_t equals = word.find('=');
        out.emplace(fmt::format("{}.{}", fact.of.front(), word.substr(0, equals)), word.substr(equals + 1));
      }
    return out;
  }();
  return all;
}

/// Go's name of what stands at the step: a field of the owner, or an element of one.
std::string go_name_at(const TypeRef& ref, const TypeDef* owner, const Step* step) {
  std::size_t depth = 0;
  for (; step != nullptr && (step->is_index || step->is_key); step = step->parent) ++depth;
  if (owner == nullptr || step == nullptr) return ref.go_name();
  const auto found = named_fields().find(fmt::format("{}.{}", owner->name, step->key));
  if (found == named_fields().end()) return ref.go_name();
  std::string_view name = found->second;
  for (; depth > 0; --depth) {
    const std::size_t bracket = name.find(']');
    if (bracket == std::string_view::npos) return ref.go_name();
    name.remove_prefix(bracket + 1);
  }
  return std::string(name);
}

/// Where Go's base64 decoder stops; npos: it does not.
std::size_t base64_mistake(std::string_view text) {
  const auto is_line_end = [](char c) { return c == '\n' || c == '\r'; };
  const auto is_letter = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '+' || c == '/'; };
  std::size_t in_group = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (is_line_end(c)) continue;
    if (is_letter(c)) {
      in_group = (in_group + 1) % 4;
      continue;
    }
    if (c != '=' || in_group < 2) return at;
    const auto next = [&] {
      do ++at;
      while (at < text.size() && is_line_end(text[at]));
    };
    const std::size_t first = at;
    next();
    if (in_group == 2) {
      if (at >= text.size()) return text.size();
      if (text[at] != '=') return first;
      next();
    }
    return at < text.size() ? at : std::string_view::npos;
  }
  return in_group == 0 ? std::string_view::npos : text.size() - in_group;
}

bool fits_int32(const json::Value& value) { return value.is_int64() && value.get_int64() >= INT32_MIN && value.get_int64() <= INT32_MAX; }

json::Value zero_of(const TypeRef& ref);

void fill(const TypeDef& type, json::Object& object) {
  for (const FieldDef* field : type.always_written)
    if (!object.contains(field->name)) object[field->name] = field->is_pointer ? json::Value(nullptr) : zero_of(field->ref);
}

/// As encoding/json writes what Go has not set.
json::Value zero_of(const TypeRef& ref) {
  switch (ref.kind) {
    case Kind::kString:
    case Kind::kBytes:
      return json::Value("");
    case Kind::kBool:
      return json::Value(false);
    case Kind::kInt32:
    case Kind::kInt64:
    case Kind::kDouble:
    case Kind::kIntOrString:
      return json::Value(0);
    case Kind::kQuantity:
      return json::Value("0");
    case Kind::kStruct: {
      json::Object object;
      fill(*ref.type, object);
      return json::Value(std::move(object));
    }
    default:
      return json::Value(nullptr);
  }
}

/// What a null in a list or map is: Go leaves the element as it was made. Null where that is nothing that could be written.
json::Value zero_for_null(const TypeRef& ref) {
  switch (ref.kind) {
    case Kind::kStruct:
      return json::Object();
    case Kind::kTime:
    case Kind::kMicroTime:
    case Kind::kIntOrString:
      return nullptr;
    default:
      return zero_of(ref);
  }
}

void forget_deep(const TypeRef& ref, json::Value& value) {
  if (ref.kind == Kind::kStruct && value.is_object()) {
    for (auto& member : value.get_object()) {
      const FieldDef* field = ref.type->field({member.key().data(), member.key().size()});
      if (field == nullptr) continue;
      const bool is_collection = field->ref.kind == Kind::kList || field->ref.kind == Kind::kMap;
      if (field->is_always_written && is_collection && is_zero(member.value()))
        member.value() = nullptr;
      else
        forget_deep(field->ref, member.value());
    }
  } else if (ref.kind == Kind::kList && value.is_array()) {
    for (json::Value& item : value.get_array()) forget_deep(*ref.element, item);
  } else if (ref.kind == Kind::kMap && value.is_object()) {
    for (auto& member : value.get_object()) forget_deep(*ref.element, member.value());
  }
}

void fill_deep(const TypeRef& ref, json::Value& value) {
  if (ref.kind == Kind::kStruct && value.is_object()) {
    for (auto& member : value.get_object())
      if (const FieldDef* field = ref.type->field({member.key().data(), member.key().size()})) fill_deep(field->ref, member.value());
    fill(*ref.type, value.get_object());
  } else if (ref.kind == Kind::kList && value.is_array()) {
    for (json::Value& item : value.get_array()) fill_deep(*ref.element, item);
  } else if (ref.kind == Kind::kMap && value.is_object()) {
    for (auto& member : value.get_object()) fill_deep(*ref.element, member.value());
  }
}

class Decoder {
 public:
  Decoder(const KindInfo& kind, DecodeReport& report, bool fills, EmptyValues* empty = nullptr)
      : kind_(kind), report_(report), fills_(fills), empty_(empty) {}

  Expected<void, DecodeError> run(json::Value& doc) {
    if (!doc.is_object()) return std::unexpected(mismatched(doc, TypeRef{Kind::kStruct, type_of(kind_)}, nullptr, nullptr));
    walk_struct(*type_of(kind_), doc.get_object(), nullptr);
    if (aborted_) return std::unexpected(std::move(*aborted_));
    if (saved_) return std::unexpected(std::move(*saved_));
    return {};
  }

 private:
  using Is = DecodeError::Is;
  /// As encoding/json has it: the first mismatch is told at the end, unless a type's own decoder refuses something on the way.
  void save(DecodeError error, const Step* step) {
    if (saved_) return;
    saved_ = std::move(error);
    saved_->place = render(step, true);
  }
  void abort(DecodeError error, const Step* step) {
    if (aborted_) return;
    aborted_ = std::move(error);
    aborted_->place = render(step, true);
  }
  [[nodiscard]] static DecodeError mismatched(const json::Value& value, const TypeRef& ref, const TypeDef* owner, const Step* step) {
    DecodeError out{.is = Is::kType, .found = std::string(json_word(value)), .wanted = go_name_at(ref, owner, step)};
    if (out.found == "number" && (ref.kind == Kind::kInt32 || ref.kind == Kind::kInt64)) out.found += " " + json::serialize(value);
    if (owner != nullptr) out.owner = owner->name.substr(owner->name.rfind('.') + 1);
    out.path = render(step, false);
    return out;
  }
  void mismatch(const json::Value& value, const TypeRef& ref, const TypeDef* owner, const Step* step) {
    if (!saved_) save(mismatched(value, ref, owner, step), step);
  }

  void report_unknown(const Step& step) {
    if (inside_own_decoder_ > 0) return;
    if (report_.unknown_fields.size() >= kMaxStrictFindings) return;
    std::size_t bytes = 0;
    for (const Step* at = &step; at != nullptr; at = at->parent) bytes += at->key.size() + 1;
    if (told_bytes_ + bytes > kMaxStrictFindingBytes && told_bytes_ > 0) return;
    told_bytes_ += bytes;
    report_.unknown_fields.push_back(render(&step, true));
  }

  void walk_struct(const TypeDef& type, json::Object& object, const Step* parent) {
    for (auto it = object.begin(); it != object.end();) {
      const std::string_view key(it->key().data(), it->key().size());
      const FieldDef* field = type.field(key);
      const Step step{parent, key, 0, false, false, field == nullptr ? std::string_view() : embedded_struct(type, *field)};
      if (field == nullptr) {
        report_unknown(step);
        ++it;
        continue;
      }
      if (it->value().is_null()) {
        it = object.erase(it);
        continue;
      }
      walk(field->ref, it->value(), &type, &step);
      if (aborted_) return;
      if (it->value().is_null()) {
        it = object.erase(it);
        continue;
      }
      const bool is_empty = (it->value().is_array() || it->value().is_object()) && is_zero(it->value());
      if (field->omits_zero && is_zero(it->value())) {
        if (is_empty && empty_ != nullptr) leave_out(step, it->value());
        it = object.erase(it);
        continue;
      }
      if (is_empty && field->is_always_written) take_empty(*field, it->value());
      ++it;
    }
    if (fills_ && !type.always_written.empty()) fill(type, object);
  }

  void leave_out(const Step& step, const json::Value& value) {
    if (empty_->left_out.size() >= kMaxStrictFindings) return;
    EmptyValues::LeftOut one{{}, value};
    for (const Step* at = &step; at != nullptr; at = at->parent)
      one.path.push_back(at->is_index ? std::to_string(at->index) : std::string(at->key));
    std::ranges::reverse(one.path);
    empty_->left_out.push_back(std::move(one));
  }

  /// An empty list or map where something is always written.
  void take_empty(const FieldDef& field, json::Value& value) {
    const bool is_collection = field.ref.kind == Kind::kList || field.ref.kind == Kind::kMap;
    if (fills_ && empty_ != nullptr && is_collection)
      empty_->has_written = true;
    else if (value.is_array() || (fills_ && is_collection))
      value = nullptr;
  }

  void walk(const TypeRef& ref, json::Value& value, const TypeDef* owner, const Step* step) {
    switch (ref.kind) {
      case Kind::kAny:
        if (ref.either != TypeRef::Either::kNothing) walk_either(ref, value, owner, step);
        return;
      case Kind::kString:
        if (!value.is_string()) mismatch(value, ref, owner, step);
        return;
      case Kind::kBool:
        if (!value.is_bool()) mismatch(value, ref, owner, step);
        return;
      case Kind::kInt32:
      case Kind::kInt64:
        return walk_integer(ref, value, owner, step);
      case Kind::kDouble:
        if (!value.is_number()) mismatch(value, ref, owner, step);
        return;
      case Kind::kQuantity:
        return walk_quantity(value, step);
      case Kind::kTime:
      case Kind::kMicroTime:
        return walk_time(ref, value, owner, step);
      case Kind::kBytes:
        return walk_bytes(ref, value, owner, step);
      case Kind::kIntOrString:
        if (!value.is_string() && !fits_int32(value)) abort(mismatched(value, TypeRef{Kind::kInt32}, owner, step), step);
        return;
      case Kind::kStruct:
        if (!value.is_object()) return mismatch(value, ref, owner, step);
        return walk_struct(*ref.type, value.get_object(), step);
      case Kind::kList: {
        if (!value.is_array()) return mismatch(value, ref, owner, step);
        std::size_t i = 0;
        for (json::Value& item : value.get_array()) {
          const Step item_step{step, {}, i++, true};
          if (item.is_null()) item = zero_for_null(*ref.element);
          walk(*ref.element, item, owner, &item_step);
          if (aborted_) return;
        }
        return;
      }
      case Kind::kMap: {
        if (!value.is_object()) return mismatch(value, ref, owner, step);
        for (auto& member : value.get_object()) {
          const Step item_step{step, {member.key().data(), member.key().size()}, 0, false, true};
          if (member.value().is_null()) member.value() = zero_for_null(*ref.element);
          walk(*ref.element, member.value(), owner, &item_step);
          if (aborted_) return;
        }
        return;
      }
    }
  }

  /// A schema, or what stands for one: its Go type decodes itself, so that its first finding ends everything, and what it does not know
  /// is not told.
  void walk_either(const TypeRef& ref, json::Value& value, const TypeDef* owner, const Step* step) {
    auto outer = std::exchange(saved_, {});
    ++inside_own_decoder_;
    if (value.is_object()) {
      walk_struct(*ref.type, value.get_object(), step);
    } else if (ref.either == TypeRef::Either::kList) {
      const TypeRef element{Kind::kStruct, ref.type};
      if (value.is_array() && !value.get_array().empty())
        walk(TypeRef{Kind::kList, nullptr, &element}, value, owner, step);
      else
        value = nullptr;
    } else if (!value.is_bool()) {
      abort({.said = "boolean or JSON schema expected"}, step);
    }
    --inside_own_decoder_;
    if (saved_ && !aborted_) aborted_ = std::move(saved_);
    saved_ = std::move(outer);
  }

  void walk_integer(const TypeRef& ref, json::Value& value, const TypeDef* owner, const Step* step) {
    if (ref.kind == Kind::kInt64 ? !value.is_int64() : !fits_int32(value)) mismatch(value, ref, owner, step);
  }

  void walk_quantity(json::Value& value, const Step* step) {
    std::string text;
    if (value.is_string())
      text = json::as_view(value);
    else if (value.is_number())
      text = json::serialize(value);
    const auto quantity = Quantity::parse(text);
    if (!quantity) return abort({.said = std::string(kQuantityError)}, step);
    const std::string canonical = quantity->to_string();
    if (!value.is_string() || canonical != text) value = canonical;
  }

  void walk_time(const TypeRef& ref, json::Value& value, const TypeDef* owner, const Step* step) {
    if (!value.is_string()) return abort(mismatched(value, TypeRef{Kind::kString}, owner, step), step);
    const std::string text(json::as_view(value));
    const auto time = parse_rfc3339(text);
    if (auto why = go_time_error(text, ref.kind == Kind::kMicroTime); !why.empty()) return abort({.said = std::move(why)}, step);
    if (!time) return abort({.said = fmt::format("parsing time \"{}\": extra text: \"{}\"", text, text)}, step);
    const std::string canonical = ref.kind == Kind::kTime ? format_rfc3339(*time) : format_rfc3339_micro(*time);
    if (canonical != text) value = canonical;
  }

  void walk_bytes(const TypeRef& ref, json::Value& value, const TypeDef* owner, const Step* step) {
    if (!value.is_string()) return mismatch(value, ref, owner, step);
    const std::string_view text = json::as_view(value);
    if (const auto at = base64_mistake(text); at != std::string_view::npos)
      save({.is = Is::kBase64, .said = fmt::format("illegal base64 data at input byte {}", at)}, step);
  }

  const KindInfo& kind_;
  DecodeReport& report_;
  bool fills_;
  EmptyValues* empty_;          ///< Null: nobody minds.
  std::size_t told_bytes_ = 0;  ///< Of report_.unknown_fields.
  int inside_own_decoder_ = 0;  ///< Depth of values whose Go types decode themselves.
  std::optional<DecodeError> saved_, aborted_;
};

}  // namespace

std::string DecodeError::sentence() const {
  if (is != Is::kType) return said;
  if (owner.empty()) return fmt::format("json: cannot unmarshal {} into Go value of type {}", found, wanted);
  return fmt::format("json: cannot unmarshal {} into Go struct field {}.{} of type {}", found, owner, path, wanted);
}

ApiStatus DecodeError::status(const KindInfo& kind) const { return unreadable(kind, sentence()); }

ApiStatus unreadable(const KindInfo& kind, std::string_view why) {
  return bad_request(fmt::format("{} in version \"{}\" cannot be handled as a {}: {}", kind.kind, kind.version, kind.kind, why));
}

Expected<void, DecodeError> decode(const KindInfo& kind, json::Value& doc, DecodeReport& report, bool fills) {
  if (const auto& own = hooks_of(kind).form->decode) return own(doc, report, fills);
  return Decoder(kind, report, fills).run(doc);
}

Expected<void, DecodeError> decode(const KindInfo& kind, json::Value& doc, DecodeReport& report, EmptyValues& empty) {
  if (const auto& own = hooks_of(kind).form->decode) return own(doc, report, true);
  return Decoder(kind, report, true, &empty).run(doc);
}

void forget_empty(const KindInfo& kind, json::Value& doc) {
  if (is_unstructured(kind) || hooks_of(kind).form->keeps_empty) return;
  forget_deep(TypeRef{Kind::kStruct, type_of(kind)}, doc);
}

namespace {

/// The object that holds, or held, what stood at the path; null where the document has changed too much.
json::Object* holder_of(json::Value& doc, const std::vector<std::string>& path) {
  json::Value* at = &doc;
  for (std::size_t i = 0; at != nullptr && i + 1 < path.size(); ++i) {
    if (auto* list = at->if_array()) {
      std::size_t index = list->size();
      std::from_chars(path[i].data(), path[i].data() + path[i].size(), index);
      at = index < list->size() ? &(*list)[index] : nullptr;
    } else {
      at = at->is_object() ? at->get_object().if_contains(path[i]) : nullptr;
    }
  }
  return at == nullptr ? nullptr : at->if_object();
}

}  // namespace

AsSent::AsSent(json::Value& doc, const EmptyValues& empty) : doc_(doc) {
  for (const auto& one : empty.left_out) {
    json::Object* holder = holder_of(doc, one.path);
    if (holder != nullptr && holder->emplace(one.path.back(), one.value).second) put_.push_back(&one.path);
  }
}

// The last that came is the last in its object: the order of the others stays.
AsSent::~AsSent() {
  for (auto path = put_.rbegin(); path != put_.rend(); ++path)
    if (json::Object* holder = holder_of(doc_, **path)) holder->erase((*path)->back());
}

void fill_always_written(const KindInfo& kind, json::Value& doc) {
  if (const auto& own = hooks_of(kind).form->fill_always_written) return own(doc);
  fill_deep(TypeRef{Kind::kStruct, type_of(kind)}, doc);
}

}  // namespace berth::model
