// Lists: what stands around the items, and how each is written, so that no list is ever held whole.
#include "apiserver/representation/representation.h"
#include "apiserver/representation/tables.h"
#include "apiserver/request/typing.h"
#include "base/json_indented.h"
#include "model/protobuf/protobuf.h"

namespace berth::apiserver {
namespace {

constexpr std::size_t kHeldBytes = 256 * 1024;

using Append = std::function<void(std::string& out, const ObjectPtr&)>;

std::string list_head(std::string_view list_kind, std::string_view api_version, const ListHead& head, bool is_whole = false) {
  std::string text =
      fmt::format(R"({{"kind":"{}","apiVersion":"{}","metadata":{{"resourceVersion":"{}")", list_kind, api_version, head.revision);
  if (!head.continue_token.empty() || is_whole) text += fmt::format(R"(,"continue":"{}")", head.continue_token);
  if (head.remaining) text += fmt::format(R"(,"remainingItemCount":{})", *head.remaining);
  return text + R"(},"items":[)";
}

/// Items do not say what they are, the list does, unless they are shown whole; stored objects begin with it.
Append append_stored(const model::KindInfo& kind, bool is_whole) {
  if (is_whole) return [](std::string& out, const ObjectPtr& object) { out += object->text().here(); };
  return [head_of_item = fmt::format(R"({{"apiVersion":"{}","kind":"{}",)", kind.api_version(), kind.kind)](std::string& out,
                                                                                                            const ObjectPtr& object) {
    const HeldText held = object->text();
    const std::string_view text = *held;
    if (!text.starts_with(head_of_item)) {
      out += text;
      return;
    }
    out += '{';
    out += text.substr(head_of_item.size());
  };
}

Append append_converted(const RequestPtr& request) {
  return [request](std::string& out, const ObjectPtr& object) {
    auto document = read_document(*request, *object);
    if (!Typing::of(*request).is_shown_whole()) {
      document.get_object().erase("apiVersion");
      document.get_object().erase("kind");
    }
    json::serialize_to(out, document);
  };
}

Append append_rows(const Clock& clock, const RequestPtr& request) {
  return [request, now = clock.now()](std::string& out, const ObjectPtr& object) {
    const auto document = read_document(*request, *object);
    json::serialize_to(out, make_table(*request->kind, {&document, 1}, {}, table_ask(*request), false, now).at("rows").get_array()[0]);
  };
}

/// The list without its items, as JSON, and the name of the member that holds them, which is the last.
struct Empty {
  std::string head;  ///< Up to the first item.
  std::string_view items;
};

Empty table_head(const Clock& clock, const Request& request, const ListHead& head) {
  json::Object metadata{{"resourceVersion", std::to_string(head.revision)}};
  if (!head.continue_token.empty()) metadata["continue"] = head.continue_token;
  if (head.remaining) metadata["remainingItemCount"] = *head.remaining;
  auto text = json::serialize(make_table(*request.kind, {}, std::move(metadata), table_ask(request), true, clock.now()));
  text.resize(text.size() - 2);  // "]}"
  return {std::move(text), "rows"};
}

/// YAML: what comes before the items by name stands before them.
ListFrame yaml_frame(const json::Value& empty, std::string_view items, Append append) {
  json::Object before, after;
  for (const auto& [key, value] : empty.get_object()) {
    if (key == items) continue;
    (std::string_view(key) < items ? before : after)[key] = value;
  }
  auto print = [append = std::move(append)](std::string& out, const ObjectPtr& object) {
    std::string text;
    append(text, object);
    const auto item = json::parse(text);
    out += json::to_yaml(json::Array{item ? *item : json::Value()});
  };
  return {json::to_yaml(before) + std::string(items) + ":\n", "", after.empty() ? "" : json::to_yaml(after), content_type_of(Format::kYaml),
          std::move(print)};
}

ListFrame indented_frame(const json::Value& empty, Append append) {
  auto head = json::serialize_indented(empty, 2);
  head.resize(head.rfind(']'));
  auto print = [append = std::move(append)](std::string& out, const ObjectPtr& object) {
    std::string text;
    append(text, object);
    const auto item = json::parse(text);
    // Strings have no line ends of their own in JSON.
    out += "\n    ";
    for (const char c : json::serialize_indented(item ? *item : json::Value(), 2)) {
      out += c;
      if (c == '\n') out += "    ";
    }
  };
  return {std::move(head), ",", "\n  ]\n}", content_type_of(Format::kJson), std::move(print)};
}

/// A list's body says how long it is before its first item, so the items of a long one are measured first and written afterwards: twice the
/// work, but no long list is ever held whole.
ListFrame protobuf_frame(const RequestPtr& request, const ListHead& head, const std::vector<ObjectPtr>& items) {
  const auto& kind = *request->kind;
  const bool is_partial = request->accept.form != ObjectForm::kFull;
  const bool as_stored = &kind.storage() == &kind;
  const auto& type = is_partial ? model::partial_metadata_type() : *model::type_of(kind);
  Append append = [request, &type, as_stored](std::string& out, const ObjectPtr& object) {
    std::string item;
    const bool good = as_stored ? model::encode_message(type, object->text().here(), item)
                                : model::encode_message(type, json::serialize(read_document(*request, *object)), item);
    wire::append_field(out, 2, good ? item : std::string_view());
  };
  std::string first;
  wire::append_field(first, 1, model::encode_list_meta(std::to_string(head.revision), head.continue_token, head.remaining));
  std::size_t size = first.size(), stored_bytes = 0;
  for (const auto& object : items) stored_bytes += object->text_bytes();
  if (stored_bytes > kHeldBytes) {
    std::string item;
    for (const auto& object : items) {
      item.clear();
      append(item, object);
      size += item.size();
    }
  } else {
    for (const auto& object : items) append(first, object);
    size = first.size();
    append = [](std::string&, const ObjectPtr&) {};  // They stand in the head.
  }
  const auto api_version = is_partial ? std::string(request->accept.meta_version) : kind.api_version();
  const auto list_kind = is_partial ? std::string_view("PartialObjectMetadataList") : std::string_view(kind.list_kind);
  return {model::protobuf_head(api_version, list_kind, size) + first, "", std::string(model::protobuf_tail()),
          content_type_of(Format::kProtobuf), std::move(append)};
}

}  // namespace

ListFrame frame_list(const Clock& clock, const RequestPtr& request, const ListHead& head, const std::vector<ObjectPtr>& items) {
  const Representation form(clock, *request);
  const auto& kind = *request->kind;
  if (form.is_protobuf() && !form.is_table()) return protobuf_frame(request, head, items);
  const bool as_stored = std::ranges::all_of(items, [&](const ObjectPtr& item) { return is_shown_as_stored(*request, *item); });
  Empty empty;
  Append append;
  if (form.is_table()) {
    empty = table_head(clock, *request, head);
    append = append_rows(clock, request);
  } else if (form.is_partial()) {
    empty = {list_head("PartialObjectMetadataList", request->accept.meta_version, head), "items"};
    append = [version = request->accept.meta_version](std::string& out, const ObjectPtr& object) {
      json::serialize_to(out, partial_metadata(decode_object(*object), version));
    };
  } else {
    const bool is_whole = Typing::of(*request).is_shown_whole();
    empty = {list_head(kind.list_kind, kind.api_version(), head, is_whole), "items"};
    append = as_stored ? append_stored(kind, is_whole) : append_converted(request);
  }
  // People get a table's JSON indented, as single objects are; lists only when they ask.
  const bool is_yaml = request->accept.format == Format::kYaml;
  const bool is_indented = form.is_table() ? form.is_pretty() : request->query.flag("pretty");
  if (!is_yaml && !is_indented) {
    const std::string_view tail = form.is_table() ? "]}\n" : "]}";
    return {std::move(empty.head), ",", std::string(tail), content_type_of(Format::kJson), std::move(append)};
  }
  const auto frame = json::parse(empty.head + "]}");
  if (frame && !items.empty())
    return is_yaml ? yaml_frame(*frame, empty.items, std::move(append)) : indented_frame(*frame, std::move(append));
  auto body = form.as_is(frame ? *frame : json::Value());
  return {std::move(body.text), "", "", body.content_type, std::move(append)};
}

}  // namespace berth::apiserver
