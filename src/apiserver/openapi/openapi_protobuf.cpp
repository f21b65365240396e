#include "apiserver/openapi/openapi_protobuf.h"

#include "base/wire.h"

namespace berth::apiserver {
namespace {

/// Protocol buffers' wire format, as far as these messages need it.
class Message {
 public:
  void text(int field, std::string_view value) {
    if (!value.empty()) bytes(field, value);
  }
  void bytes(int field, std::string_view value) { wire::append_field(out_, field, value); }
  void flag(int field, bool value) {
    if (value) wire::append_number(out_, field, 1);
  }
  void message(int field, const Message& value) { bytes(field, value.out_); }
  [[nodiscard]] std::string& take() { return out_; }

 private:
  std::string out_;
};

/// A value of any shape travels as YAML text; JSON is YAML.
Message any(const json::Value& value) {
  Message out;
  out.bytes(2, json::serialize(value));
  return out;
}

Message named(std::string_view name, const Message& value) {
  Message out;
  out.bytes(1, name);
  out.message(2, value);
  return out;
}

void extensions(Message& out, int field, const json::Value& object) {
  for (const auto& [key, value] : object.get_object())
    if (std::string_view(key).starts_with("x-")) out.message(field, named(key, any(value)));
}

void texts(Message& out, int field, const json::Value& object, std::string_view key) {
  for (const auto& item : json::get_array(object, {key}))
    if (item.is_string()) out.bytes(field, json::as_view(item));
}

Message schema(const json::Value& value) {
  Message out;
  if (!value.is_object()) return out;
  out.text(1, json::get_string(value, {"$ref"}));
  out.text(2, json::get_string(value, {"format"}));
  out.text(3, json::get_string(value, {"title"}));
  out.text(4, json::get_string(value, {"description"}));
  if (const auto* fallback = json::find(value, "default")) out.message(5, any(*fallback));
  out.text(13, json::get_string(value, {"pattern"}));
  texts(out, 19, value, "required");
  for (const auto& item : json::get_array(value, {"enum"})) out.message(20, any(item));
  if (const auto* additional = json::find(value, "additionalProperties")) {
    Message item;
    if (additional->is_bool()) {
      item.flag(2, additional->get_bool());
    } else {
      item.message(1, schema(*additional));
    }
    out.message(21, item);
  }
  if (const auto* type = json::find(value, "type")) {
    Message item;
    if (type->is_string()) item.bytes(1, json::as_view(*type));
    texts(item, 1, value, "type");
    out.message(22, item);
  }
  if (const auto* items = json::find(value, "items")) {
    Message item;
    item.message(1, schema(*items));
    out.message(23, item);
  }
  for (const auto& part : json::get_array(value, {"allOf"})) out.message(24, schema(part));
  if (const auto* properties = json::find(value, "properties"); properties != nullptr && properties->is_object()) {
    Message all;
    for (const auto& [name, property] : properties->get_object()) all.message(1, named(name, schema(property)));
    out.message(25, all);
  }
  extensions(out, 31, value);
  return out;
}

/// Query, path and body parameters have messages of their own, nested three deep.
Message parameter(const json::Value& value) {
  const auto in = json::get_string(value, {"in"});
  Message wrapped;
  if (in == "body") {
    Message body;
    body.text(1, json::get_string(value, {"description"}));
    body.text(2, json::get_string(value, {"name"}));
    body.text(3, in);
    body.flag(4, json::get_bool(value, {"required"}));
    if (const auto* its_schema = json::find(value, "schema")) body.message(5, schema(*its_schema));
    wrapped.message(1, body);
  } else {
    const bool is_path = in == "path";
    Message simple;
    simple.flag(1, json::get_bool(value, {"required"}));
    simple.text(2, in);
    simple.text(3, json::get_string(value, {"description"}));
    simple.text(4, json::get_string(value, {"name"}));
    simple.text(is_path ? 5 : 6, json::get_string(value, {"type"}));
    simple.flag(is_path ? 19 : 20, json::get_bool(value, {"uniqueItems"}));
    Message non_body;
    non_body.message(is_path ? 4 : 3, simple);
    wrapped.message(2, non_body);
  }
  Message item;
  item.message(1, wrapped);
  return item;
}

Message responses(const json::Value& value) {
  Message out;
  for (const auto& [code, response] : value.get_object()) {
    if (!response.is_object()) continue;
    Message body;
    body.text(1, json::get_string(response, {"description"}));
    if (const auto* its_schema = json::find(response, "schema")) {
      Message item;
      item.message(1, schema(*its_schema));
      body.message(2, item);
    }
    Message choice;
    choice.message(1, body);
    out.message(1, named(code, choice));
  }
  return out;
}

Message operation(const json::Value& value) {
  Message out;
  texts(out, 1, value, "tags");
  out.text(3, json::get_string(value, {"description"}));
  out.text(5, json::get_string(value, {"operationId"}));
  texts(out, 6, value, "produces");
  texts(out, 7, value, "consumes");
  for (const auto& item : json::get_array(value, {"parameters"})) out.message(8, parameter(item));
  if (const auto* all = json::find(value, "responses"); all != nullptr && all->is_object()) out.message(9, responses(*all));
  extensions(out, 13, value);
  return out;
}

Message path_item(const json::Value& value) {
  Message out;
  constexpr std::array<std::pair<std::string_view, int>, 7> kMethods = {
      {{"get", 2}, {"put", 3}, {"post", 4}, {"delete", 5}, {"options", 6}, {"head", 7}, {"patch", 8}}};
  for (const auto& [method, field] : kMethods)
    if (const auto* found = json::find(value, method); found != nullptr && found->is_object()) out.message(field, operation(*found));
  for (const auto& item : json::get_array(value, {"parameters"})) out.message(9, parameter(item));
  return out;
}

}  // namespace

std::string encode_openapi_protobuf(const json::Value& document) {
  Message out;
  out.text(1, json::get_string(document, {"swagger"}));
  Message info;
  info.text(1, json::get_string(document, {"info", "title"}));
  info.text(2, json::get_string(document, {"info", "version"}));
  out.message(2, info);
  Message paths;
  for (const auto& [path, item] : json::get_object(document, {"paths"}))
    if (item.is_object()) paths.message(2, named(path, path_item(item)));
  out.message(8, paths);
  Message definitions;
  for (const auto& [name, definition] : json::get_object(document, {"definitions"}))
    definitions.message(1, named(name, schema(definition)));
  out.message(9, definitions);
  return std::move(out.take());
}

}  // namespace berth::apiserver
