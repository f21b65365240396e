#include "client/watch_decoder.h"

#include "base/json_scan.h"

namespace berth::client {
namespace {

bool read_type(std::string_view name, WatchEvent::Type& type) {
  if (name == "ADDED")
    type = WatchEvent::Type::kAdded;
  else if (name == "MODIFIED")
    type = WatchEvent::Type::kModified;
  else if (name == "DELETED")
    type = WatchEvent::Type::kDeleted;
  else if (name == "BOOKMARK")
    type = WatchEvent::Type::kBookmark;
  else if (name == "ERROR")
    type = WatchEvent::Type::kError;
  else
    return false;
  return true;
}

/// The code of a Status: an ERROR event has no HTTP status to tell it.
int code_of(std::string_view status) {
  static const json::PathScanner scanner({"code"});
  std::array<std::string_view, 1> raw;
  int code = 500;
  if (scanner.scan(status, raw)) std::from_chars(raw[0].data(), raw[0].data() + raw[0].size(), code);
  return code;
}

/// The usual form `{"type":"ADDED","object":{…}}` without looking into the object.
bool split_usual(std::string_view line, std::string_view& type, std::string_view& object) {
  static constexpr std::string_view kType = R"({"type":")", kObject = R"(","object":)";
  if (!line.starts_with(kType) || !line.ends_with('}')) return false;
  const auto end = line.find('"', kType.size());
  if (end == std::string_view::npos || !line.substr(end).starts_with(kObject)) return false;
  type = line.substr(kType.size(), end - kType.size());
  object = line.substr(end + kObject.size());
  object.remove_suffix(1);
  return object.starts_with('{') && object.ends_with('}');
}

}  // namespace

bool WatchDecoder::feed(std::string_view data, std::deque<WatchEvent>& out) {
  while (!data.empty()) {
    const auto end = data.find('\n');
    if (end == std::string_view::npos) {
      partial_.append(data);
      return partial_.size() <= kMaxLineBytes;
    }
    auto line = data.substr(0, end);
    data.remove_prefix(end + 1);
    if (!partial_.empty()) {
      partial_.append(line);
      const auto whole = std::exchange(partial_, {});
      if (!decode_line(whole, out)) return false;
    } else if (!decode_line(line, out)) {
      return false;
    }
  }
  return true;
}

bool WatchDecoder::take(std::string_view type, const KeptTextRef& object, std::deque<WatchEvent>& out) {
  WatchEvent event;
  if (!read_type(type, event.type)) return false;
  event.object = share_object(object);
  out.push_back(std::move(event));
  return true;
}

bool WatchDecoder::decode_line(std::string_view line, std::deque<WatchEvent>& out) {
  while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.remove_suffix(1);
  if (line.empty()) return true;
  std::string_view type, object;
  std::string unquoted;
  if (!split_usual(line, type, object)) {
    static const json::PathScanner scanner({"type", "object"});
    std::array<std::string_view, 2> raw;
    if (!scanner.scan(line, raw)) return false;
    unquoted = json::unquote(raw[0]);
    type = unquoted;
    object = raw[1];
  }
  WatchEvent event;
  if (!object.starts_with('{') || !read_type(type, event.type)) return false;
  if (event.type == WatchEvent::Type::kError)
    event.status = model::ApiStatus::from_json(code_of(object), object);
  else
    event.object = std::make_shared<const Object>(std::string(object));
  // Only bookmarks are about no object in particular.
  if (event.object && event.object->name().empty() && event.type != WatchEvent::Type::kBookmark) return false;
  out.push_back(std::move(event));
  return true;
}

Result<ObjectPage> decode_list(std::string_view body) {
  static const json::PathScanner scanner({"apiVersion", "kind", "metadata.resourceVersion", "metadata.continue", "items"});
  std::array<std::string_view, 5> raw;
  if (!scanner.scan(body, raw)) return invalid("the list is not a JSON object");
  ObjectPage page;
  page.resource_version = json::unquote(raw[2]);
  page.continue_token = json::unquote(raw[3]);
  auto kind = json::unquote(raw[1]);
  if (kind.ends_with("List")) kind.resize(kind.size() - 4);
  const auto type_fields = fmt::format(R"({{"kind":"{}","apiVersion":"{}")", kind, json::unquote(raw[0]));
  if (raw[4].empty() || raw[4] == "null") return page;
  const bool is_array = json::for_each_element(raw[4], [&](std::string_view item) {
    static const json::PathScanner kind_scanner({"kind"});
    std::array<std::string_view, 1> item_kind;
    if (!item.starts_with('{') || !kind_scanner.scan(item, item_kind)) return;
    if (!item_kind[0].empty()) {
      page.objects.push_back(std::make_shared<const Object>(std::string(item)));
      return;
    }
    std::string whole = type_fields;
    whole.reserve(type_fields.size() + item.size() + 1);
    const auto rest = item.substr(1);
    if (rest.find_first_not_of(" \t\r\n") != rest.find('}')) whole += ',';
    whole += rest;
    page.objects.push_back(std::make_shared<const Object>(std::move(whole)));
  });
  if (!is_array) return invalid("the list's items are not an array");
  return page;
}

}  // namespace berth::client
