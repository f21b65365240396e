#include "model/unknown_fields.h"

#include "model/kind_hooks.h"

namespace berth::model {
namespace {

using Kind = TypeRef::Kind;

const json::Value* member_of(const json::Value* value, std::string_view key) {
  const auto* object = value == nullptr ? nullptr : value->if_object();
  return object == nullptr ? nullptr : object->if_contains(key);
}

/// Walks what the schema knows of `doc`, beside the same places of `kept`; `unknown(path)` is asked about the others and says whether they
/// go. `into_own`: into values whose Go types decode themselves, which tell of nothing unknown.
template <typename Unknown>
class Walk {
 public:
  Walk(bool into_own, Unknown unknown) : into_own_(into_own), unknown_(std::move(unknown)) {}

  void at(const TypeRef& ref, json::Value& value, const json::Value* kept) {
    const bool is_struct = ref.kind == Kind::kStruct || (into_own_ && ref.either != TypeRef::Either::kNothing);
    if (is_struct && value.is_object()) {
      structure(*ref.type, value.get_object(), kept);
    } else if (ref.kind == Kind::kMap && value.is_object()) {
      for (auto& [key, member] : value.get_object()) below(key, [&] { at(*ref.element, member, member_of(kept, key)); });
    } else if (ref.kind == Kind::kList && value.is_array()) {
      auto& list = value.get_array();
      const auto* other = kept == nullptr ? nullptr : kept->if_array();
      for (std::size_t i = 0; i < list.size(); ++i) {
        const auto before = path_.size();
        fmt::format_to(std::back_inserter(path_), "[{}]", i);
        at(*ref.element, list[i], other != nullptr && i < other->size() ? &(*other)[i] : nullptr);
        path_.resize(before);
      }
    }
  }

 private:
  template <typename Do>
  void below(std::string_view key, const Do& act) {
    const auto before = path_.size();
    if (!path_.empty()) path_ += '.';
    path_ += key;
    act();
    path_.resize(before);
  }
  void structure(const TypeDef& type, json::Object& object, const json::Value* kept) {
    std::vector<std::string> gone;
    for (auto& [key, member] : object) {
      const auto* field = type.field(key);
      below(key, [&] {
        if (field != nullptr) {
          at(field->ref, member, member_of(kept, key));
        } else if (member_of(kept, key) == nullptr && unknown_(path_)) {
          gone.emplace_back(key);
        }
      });
    }
    for (const auto& key : gone) object.erase(key);
  }

  bool into_own_;
  Unknown unknown_;
  std::string path_;
};

TypeRef root_of(const KindInfo& kind) { return {Kind::kStruct, type_of(kind), nullptr}; }

}  // namespace

std::vector<std::string> unknown_fields(const KindInfo& kind, const json::Value& doc, const json::Value* kept) {
  if (const auto& own = hooks_of(kind).form->unknown_fields) return own(doc, kept);
  std::vector<std::string> out;
  std::size_t bytes = 0;
  Walk walk(false, [&](const std::string& path) {
    if (out.size() >= kMaxStrictFindings || (bytes > 0 && bytes + path.size() > kMaxStrictFindingBytes)) return false;
    bytes += path.size();
    out.push_back(path);
    return false;
  });
  walk.at(root_of(kind), const_cast<json::Value&>(doc), kept);  // Nothing is said to go.
  return out;
}

void drop_unknown_fields(const KindInfo& kind, json::Value& doc, const json::Value* kept) {
  if (const auto& own = hooks_of(kind).form->drop_unknown_fields) return own(doc, kept);
  Walk walk(true, [](const std::string&) { return true; });
  walk.at(root_of(kind), doc, kept);
}

}  // namespace berth::model
