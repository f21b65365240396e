#include "base/object_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/config_repair.h"
#include "base/in_order.h"
#include "base/json_scan.h"
#include "base/yaml.h"
#include "base/yaml_plain.h"

namespace berth::config {
namespace {

/// Below this a text is read as a whole, with everything that people's own texts may hold.
constexpr std::size_t kSmall = 1 << 20;
/// Up to this a text that does not read item by item (an alias of another item's anchor) is tried as a whole.
constexpr std::size_t kMostAtOnce = 64 << 20;

/// The items of a typed list leave out what the list says.
void complete(json::Value& item, std::string_view list_kind, std::string_view api_version) {
  if (json::find(item, "kind") != nullptr || list_kind == "List") return;
  item.get_object()["kind"] = list_kind.substr(0, list_kind.size() - 4);
  item.get_object()["apiVersion"] = api_version;
}

void take_apart(json::Value document, const ObjectVisitor& each) {
  const std::string kind(json::get_string(document, {"kind"}));
  auto* items = kind.ends_with("List") ? json::find(document, "items") : nullptr;
  if (items == nullptr) {
    if (document.is_object()) each(std::move(document));
    return;
  }
  const std::string api_version(json::get_string(document, {"apiVersion"}));
  if (!items->is_array()) return;
  for (json::Value& item : items->get_array()) {
    if (!item.is_object()) continue;
    complete(item, kind, api_version);
    each(std::move(item));
  }
}

/// Parses the items on all processors and hands them over in order, up to the first error.
Result<void> parse_in_order(std::size_t count, const std::function<Result<json::Value>(std::size_t)>& parse, const ObjectVisitor& use) {
  // Of a dump's objects: much more work than handing them over, and few enough for a processor's cache.
  constexpr std::size_t kPortion = 8;
  std::vector<std::vector<Result<json::Value>>> made((count + kPortion - 1) / kPortion);
  Result<void> out;
  const InOrder work{.count = count,
                     .portion = kPortion,
                     .make =
                         [&](std::size_t first, std::size_t last) {
                           auto& to = made[first / kPortion];
                           to.reserve(last - first);
                           for (std::size_t at = first; at < last; ++at)
                             if (!to.emplace_back(parse(at))) break;
                         },
                     .take =
                         [&](std::size_t first, std::size_t) {
                           for (Result<json::Value>& one : std::exchange(made[first / kPortion], {})) {
                             if (!one) {
                               out = std::unexpected(one.error());
                               return false;
                             }
                             use(std::move(*one));
                           }
                           return true;
                         }};
  work.run(std::thread::hardware_concurrency());
  return out;
}

std::size_t lines_in(std::string_view text) { return static_cast<std::size_t>(std::ranges::count(text, '\n')); }

// JSON

/// Nullopt: the text is no list that can be read item by item; nothing was handed over.
std::optional<Result<void>> read_json_list(std::string_view text, const ObjectVisitor& each, std::string_view word) {
  static const json::PathScanner kScanner({"kind", "items"});
  std::array<std::string_view, 2> found;
  if (!kScanner.scan(text, found) || found[1].empty() || found[1].front() != '[') return std::nullopt;
  const auto before = static_cast<std::size_t>(found[1].data() - text.data());
  // The scanner skips more than it checks: what stands around the items is read in full.
  const auto frame = json::parse(std::string(text.substr(0, before)) + "[]" + std::string(text.substr(before + found[1].size())));
  if (!frame || !json::get_string(*frame, {"kind"}).ends_with("List")) return std::nullopt;
  const std::string kind(json::get_string(*frame, {"kind"})), api_version(json::get_string(*frame, {"apiVersion"}));
  std::vector<std::string_view> items;
  const bool is_whole = json::for_each_element(found[1], [&](std::string_view raw) { items.push_back(raw); });
  const auto parse = [&](std::size_t at) -> Result<json::Value> {
    if (!word.empty() && !items[at].contains(word)) return json::Value();
    auto item = json::parse(items[at]);
    if (item) return std::move(*item);
    const std::string_view before_it = text.substr(0, static_cast<std::size_t>(items[at].data() - text.data()));
    return invalid(fmt::format("item {} of the list, at line {}: {}", at + 1, lines_in(before_it) + 1, item.error().message));
  };
  const auto use = [&](json::Value item) {
    if (!item.is_object()) return;
    complete(item, kind, api_version);
    each(std::move(item));
  };
  Result<void> out = parse_in_order(items.size(), parse, use);
  if (out && !is_whole) out = invalid(fmt::format("the list breaks off behind item {}", items.size()));
  return out;
}

Result<void> read_json(std::string_view text, const ObjectVisitor& each, std::string_view word, Notes& notes) {
  if (text.size() >= kSmall)
    if (auto done = read_json_list(text, each, word)) return std::move(*done);
  auto document = json::parse(text);
  if (document) {
    take_apart(std::move(*document), each);
    return {};
  }
  // Perhaps JSON as the documents print it.
  auto documents = text.size() < kSmall ? parse_stream(text, notes) : std::unexpected(document.error());
  if (!documents) return std::unexpected(document.error());
  for (json::Value& one : *documents) take_apart(std::move(one), each);
  return {};
}

// YAML

struct Slice {
  std::string_view text;
  std::size_t line = 0;  ///< How many stand before it.
};

/// A document of a stream, with the items of its list found by their indentation: what belongs to an item stands deeper than its dash.
struct Document {
  Slice whole;
  std::string frame;  ///< All but the items.
  std::vector<Slice> items;
};

bool is_word(std::string_view line, std::string_view word) {
  if (!line.starts_with(word)) return false;
  return line.find_first_not_of(" \t\r", word.size()) == std::string_view::npos;
}

class Splitter {
 public:
  explicit Splitter(std::string_view text) : text_(text) {}

  std::vector<Document> split() {
    begin_document(0, 0);
    std::size_t line = 0;
    for (std::size_t at = 0; at < text_.size(); ++line) {
      const std::size_t end = std::min(text_.find('\n', at), text_.size() - 1) + 1;
      take(text_.substr(at, end - at), at, line);
      at = end;
    }
    end_document(text_.size());
    return std::move(documents_);
  }

 private:
  void begin_document(std::size_t at, std::size_t line) {
    documents_.push_back({{text_.substr(at, 0), line}, {}, {}});
    begin_ = at;
    frame_from_ = at;
    in_items_ = false;
  }
  void end_document(std::size_t at) {
    end_items(at);
    Document& out = documents_.back();
    out.whole.text = text_.substr(begin_, at - begin_);
    if (!out.items.empty()) out.frame += text_.substr(frame_from_, at - frame_from_);
  }
  void end_items(std::size_t at) {
    end_item(at);
    if (in_items_ && !documents_.back().items.empty()) frame_from_ = at;
    in_items_ = false;
  }
  void end_item(std::size_t at) {
    if (!in_items_ || documents_.back().items.empty()) return;
    Slice& item = documents_.back().items.back();
    const auto from = static_cast<std::size_t>(item.text.data() - text_.data());
    item.text = text_.substr(from, at - from);
  }

  void take(std::string_view line, std::size_t at, std::size_t number) {
    const std::size_t indent = line.find_first_not_of(' ');
    const char first = indent == std::string_view::npos ? '\n' : line[indent];
    if (first == '\n' || first == '\r' || first == '#' || first == '\t') return;
    const bool is_mark =
        (line.starts_with("---") || line.starts_with("...")) && (line.size() == 3 || std::string_view(" \t\r\n").contains(line[3]));
    if (indent == 0 && is_mark) {
      end_document(at);
      const bool ends = line.starts_with('.');  // The next one begins behind it.
      begin_document(ends ? at + line.size() : at, ends ? number + 1 : number);
      return;
    }
    Document& document = documents_.back();
    if (in_items_) {
      const bool is_dash = first == '-' && (indent + 1 == line.size() || std::string_view(" \r\n").contains(line[indent + 1]));
      const bool is_first = document.items.empty();
      if (is_dash && (is_first || indent == indent_)) {
        if (is_first) document.frame += text_.substr(frame_from_, at - frame_from_);
        end_item(at);
        indent_ = indent;
        document.items.push_back({text_.substr(at, 0), number});
        return;
      }
      if (!is_first && indent > indent_) return;
      end_items(at);
    }
    if (indent == 0 && is_word(line.substr(0, line.size() - (line.ends_with('\n') ? 1 : 0)), "items:") && document.items.empty())
      in_items_ = true;
  }

  std::string_view text_;
  std::vector<Document> documents_;
  std::size_t begin_ = 0, frame_from_ = 0, indent_ = 0;
  bool in_items_ = false;
};

/// With the line of the whole text in what it says.
Result<std::vector<json::Value>> parse_slice(const Slice& slice) {
  if (auto plain = json::parse_plain_yaml(slice.text)) {
    std::vector<json::Value> out;
    out.push_back(std::move(*plain));
    return out;
  }
  auto out = json::read_yaml(slice.text);
  if (out) return std::move(*out);
  out.error().place.line += slice.line;
  return invalid(out.error().message());
}

Result<void> read_document(const Document& document, const ObjectVisitor& each, std::string_view word) {
  std::string kind, api_version;
  if (!document.items.empty()) {
    auto frame = parse_slice({document.frame, document.whole.line});
    if (!frame) return std::unexpected(frame.error());
    if (frame->size() == 1) {
      kind = json::get_string((*frame)[0], {"kind"});
      api_version = json::get_string((*frame)[0], {"apiVersion"});
    }
  }
  if (kind.empty() && !document.items.empty() && document.whole.text.size() > kMostAtOnce)
    return invalid(fmt::format("a list of {} items that does not say its kind: the file seems to be cut off", document.items.size()));
  if (!kind.ends_with("List")) {
    if (!word.empty() && !document.whole.text.contains(word)) return {};
    auto documents = parse_slice(document.whole);
    if (!documents) return std::unexpected(documents.error());
    for (json::Value& one : *documents) take_apart(std::move(one), each);
    return {};
  }
  const auto parse = [&](std::size_t at) -> Result<json::Value> {
    const Slice& slice = document.items[at];
    if (!word.empty() && !slice.text.contains(word)) return json::Value(json::Array());
    auto item = parse_slice(slice);
    if (!item) return std::unexpected(item.error());
    if (item->size() != 1 || !(*item)[0].is_array()) return invalid(fmt::format("invalid YAML at line {}", slice.line + 1));
    return std::move((*item)[0]);
  };
  const auto use = [&](json::Value items) {
    for (json::Value& one : items.get_array()) {
      if (!one.is_object()) continue;
      complete(one, kind, api_version);
      each(std::move(one));
    }
  };
  return parse_in_order(document.items.size(), parse, use);
}

Result<void> read_yaml_whole(std::string_view text, const ObjectVisitor& each, Notes& notes) {
  auto documents = parse_stream(text, notes);
  if (!documents) return std::unexpected(documents.error());
  for (json::Value& one : *documents) take_apart(std::move(one), each);
  return {};
}

Result<void> read_yaml(std::string_view text, const ObjectVisitor& each, std::string_view word, Notes& notes) {
  if (text.size() < kSmall) return read_yaml_whole(text, each, notes);
  const bool may_be_tried_again = text.size() <= kMostAtOnce;
  std::vector<json::Value> kept;
  const ObjectVisitor keep = [&](json::Value object) { kept.push_back(std::move(object)); };
  for (const Document& document : Splitter(text).split()) {
    auto read = read_document(document, may_be_tried_again ? keep : each, word);
    if (read) continue;
    return may_be_tried_again && read_yaml_whole(text, each, notes) ? Result<void>() : read;
  }
  for (json::Value& object : kept) each(std::move(object));
  return {};
}

}  // namespace

Result<void> for_each_object(std::string_view text, const ObjectVisitor& each, Notes& notes, std::string_view word) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  const bool is_json = first != std::string_view::npos && text[first] == '{';
  auto done = is_json ? read_json(text, each, word, notes) : read_yaml(text, each, word, notes);
  if (!done) return fail(done.error().code, told_of_cut(text, done.error().message));
  return done;
}

std::string told_of_cut(std::string_view text, std::string message) {
  if (message.contains("cut off") || message.contains("not valid UTF-8")) return message;
  bool is_at_end = message.contains("unexpected end");
  if (const std::size_t at = message.find(" at line "); !is_at_end && at != std::string::npos) {
    std::size_t line = 0;
    std::from_chars(message.data() + at + 9, message.data() + message.size(), line);
    while (text.ends_with('\n')) text.remove_suffix(1);
    is_at_end = line > 1 && line >= lines_in(text) + 1;
  }
  return is_at_end ? message + ": the file seems to be cut off" : message;
}

}  // namespace berth::config
