#include "cel/objects.h"

#include <fmt/format.h>

#include "cel/functions.h"

namespace berth::cel {
namespace {

void check_places(const Value& value, const std::string& path, std::string& out) {
  if (const auto* object = made_object(value)) {
    if (object->type() != path)
      out += fmt::format("{}unexpected type name \"{}\", expected \"{}\", which matches field name path from root Object type",
                         out.empty() ? "" : "\n", object->type(), path);
    object->each([&](const Value& key, const Value& member) {
      check_places(member, fmt::format("{}.{}", path, key.text()), out);
      return true;
    });
  } else if (value.kind() == Value::Kind::kList) {
    for (std::size_t i = 0; i < value.as_list().size(); ++i) check_places(value.as_list().at(i), path, out);
  } else if (value.kind() == Value::Kind::kMap) {
    value.as_map().each([&](const Value&, const Value& member) {
      check_places(member, path, out);
      return true;
    });
  }
}

}  // namespace

void declare_patch_types(Environment& environment) {
  environment.structs.push_back({"Object", {}});
  environment.structs.push_back(
      {"JSONPatch", {{"op", string_type()}, {"path", string_type()}, {"from", string_type()}, {"value", dyn_type()}}});
}

const Value* MadeObject::field(std::string_view name) const {
  for (const auto& [key, value] : fields_)
    if (key == name) return &value;
  return nullptr;
}

std::optional<Value> MadeObject::find(const Value& key) const {
  const auto* found = key.kind() == Value::Kind::kString ? field(key.text()) : nullptr;
  return found == nullptr ? std::nullopt : std::optional(*found);
}

void MadeObject::each(const std::function<bool(const Value&, const Value&)>& visit) const {
  for (const auto& [key, value] : fields_)
    if (!visit(Value::borrowed_string(key), value)) return;
}

const MadeObject* made_object(const Value& value) {
  return value.kind() == Value::Kind::kMap ? dynamic_cast<const MadeObject*>(&value.as_map()) : nullptr;
}

std::string misplaced_types(const Value& value, const std::string& path) {
  std::string out;
  check_places(value, path, out);
  return out;
}

void add_objects(Registry& r) {
  r.add("jsonpatch.escapeKey", "string_jsonpatch_escapeKey_string", "(string): string", [](const Args& a) {
    std::string out;
    for (const char c : a[0].text()) {
      if (c == '/')
        out += "~1";
      else if (c == '~')
        out += "~0";
      else
        out += c;
    }
    return Value::string(std::move(out));
  });
}

}  // namespace berth::cel
