// YAML into JSON values, as sigs.k8s.io/yaml reads it: straight from the parser's events, so that a document is never held twice and a
// limit ends the work where it is passed.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <unordered_map>

#include "base/base64.h"
#include "base/json.h"
#include "base/utf8.h"
#include "base/yaml_events.h"
#include "base/yaml_scalar.h"

namespace berth::json {
namespace {

using std::string_view_literals::operator""sv;

constexpr std::size_t kMaxYamlDepth = 500;
/// An alias bomb ("billion laughs") grows without end: more nodes than this is refused.
constexpr std::size_t kMaxNodes = 500'000;
/// The same for text: few aliases of one long string are enough to fill the memory.
constexpr std::size_t kMaxTextBytes = 64 * 1024 * 1024;

YamlFault refusal(YamlPlace place, const std::string& what) { return {place, what, "yaml: " + what}; }

/// The text is YAML, and means nothing: said when all of the document turned out to be YAML.
struct NoValue {
  YamlFault fault;
};
[[noreturn]] void refuse_value(YamlPlace place, const std::string& what) { throw NoValue{refusal(place, what)}; }

constexpr std::string_view kTags = "tag:yaml.org,2002:";

/// The tag that a plain scalar has by what it says.
std::string_view tag_of(const Value& value, std::string_view text) {
  if (value.is_null()) return "null";
  if (value.is_bool()) return "bool";
  if (value.is_double()) return "float";
  if (!value.is_string()) return "int";
  return is_yaml_timestamp(text) ? "timestamp" : "str";
}

/// A scalar's value under its tag.
Value tagged_value(const YamlEvent& event, std::string_view tag) {
  if (tag == "binary") {
    const auto bytes = base64_decode(event.text);
    if (!bytes) refuse_value(event.place, "!!binary value contains invalid base64 data");
    return Value(to_utf8(*bytes));
  }
  Value value = yaml_value(event.text);
  const std::string_view own = tag_of(value, event.text);
  if (tag == "str" || std::ranges::count(std::array{"int"sv, "float"sv, "bool"sv, "null"sv, "timestamp"sv}, tag) == 0)
    return Value(event.text);
  if (own != tag && (tag != "float" || own != "int"))
    refuse_value(event.place, fmt::format("cannot decode !!{} `{}` as a !!{}", own, event.text, tag));
  return value;
}

Value value_of(const YamlEvent& event) {
  if (event.tag.starts_with(kTags)) return tagged_value(event, std::string_view(event.tag).substr(kTags.size()));
  if (!event.tag.empty() || !event.is_plain) return Value(event.text);
  if (const auto none = yaml_infinity(event.text); !none.empty())
    throw NoValue{{event.place, fmt::format("JSON has no {}", event.text), fmt::format("json: unsupported value: {}", none)}};
  return yaml_value(event.text);
}

/// What is counted of a value, so that an alias of it can be counted without a walk.
struct Size {
  std::size_t nodes = 0, text_bytes = 0, depth = 0;
};

struct Node {
  Value value;
  std::string text;  ///< Of a scalar, as it stands there.
  Size size;
  bool is_scalar = false, is_plain = false;
};

/// A map or list that has not ended.
struct Open {
  Value value;
  YamlPlace place;
  std::string anchor;
  Size size{1, 0, 0};
  std::optional<std::string> key;
  bool merges = false;  ///< The key is `<<`.
  std::string path;
  std::set<std::string> keys;  ///< Those that stand in the text, when places are wanted.
};

/// Makes the values of a stream's documents. Throws YamlFault and NoValue.
class Builder {
 public:
  Builder(std::vector<YamlPlaces>* places, std::vector<std::string>* repeated) : places_(places), repeated_(repeated) {}

  /// False at the end of the stream.
  bool take(YamlEvent event) {
    switch (event.type) {
      case YAML_STREAM_END_EVENT:
        return false;
      case YAML_DOCUMENT_START_EVENT:
        if (places_ != nullptr) places_->emplace_back();
        break;
      case YAML_DOCUMENT_END_EVENT:
        anchors_.clear();
        break;
      case YAML_ALIAS_EVENT:
        put_alias(event);
        break;
      case YAML_SCALAR_EVENT:
        put_scalar(std::move(event));
        break;
      case YAML_SEQUENCE_START_EVENT:
        open(std::move(event), Array());
        break;
      case YAML_MAPPING_START_EVENT:
        open(std::move(event), Object());
        break;
      case YAML_SEQUENCE_END_EVENT:
      case YAML_MAPPING_END_EVENT:
        close();
        break;
      default:
        break;
    }
    return true;
  }

  std::vector<Value> documents;

 private:
  void put_alias(const YamlEvent& event) {
    const auto found = anchors_.find(event.anchor);
    if (found == anchors_.end()) {
      const bool is_inside = std::ranges::any_of(stack_, [&](const Open& one) { return one.anchor == event.anchor; });
      throw refusal(event.place, is_inside ? fmt::format("anchor '{}' value contains itself", event.anchor)
                                           : fmt::format("unknown anchor '{}' referenced", event.anchor));
    }
    has_alias_ = true;
    count(event.place, found->second.size);  // Before the copy is made.
    Node copy = found->second;
    uncount(copy.size);
    put(event.place, {}, std::move(copy));
  }

  void put_scalar(YamlEvent event) {
    Node node;
    node.is_scalar = true;
    node.is_plain = event.is_plain && event.tag.empty();
    node.size = {1, event.text.size(), 0};
    node.value = value_of(event);
    node.text = std::move(event.text);
    put(event.place, event.anchor, std::move(node));
  }

  void count(YamlPlace place, const Size& size) {
    nodes_ += size.nodes;
    text_bytes_ += size.text_bytes;
    if (nodes_ <= kMaxNodes && text_bytes_ <= kMaxTextBytes) return;
    if (has_alias_) throw refusal(place, "it grows too large when its aliases are expanded");
    throw refusal(place, nodes_ > kMaxNodes ? fmt::format("it has more than {} values", kMaxNodes)
                                            : fmt::format("it has more than {} MiB of text", kMaxTextBytes >> 20));
  }
  void uncount(const Size& size) {
    nodes_ -= size.nodes;
    text_bytes_ -= size.text_bytes;
  }
  static void check_depth(YamlPlace place, std::size_t depth) {
    if (depth > kMaxYamlDepth) throw refusal(place, fmt::format("nested more than {} levels deep", kMaxYamlDepth));
  }
  [[noreturn]] static void refuse_key(YamlPlace place) { refuse_value(place, "a mapping key must be a string"); }

  void open(YamlEvent event, Value value) {
    if (!stack_.empty() && stack_.back().value.is_object() && !stack_.back().key) refuse_key(event.place);
    check_depth(event.place, stack_.size() + 1);
    count(event.place, {1, 0, 0});
    std::string path = note_place(event.place);
    stack_.push_back({std::move(value), event.place, std::move(event.anchor), {1, 0, 0}, std::nullopt, false, std::move(path), {}});
  }

  void close() {
    Open done = std::move(stack_.back());
    stack_.pop_back();
    uncount(done.size);
    put(done.place, done.anchor, {std::move(done.value), {}, done.size, false, false});
  }

  /// The path of a value that comes now. Entries are noted here, keys where they stand.
  std::string note_place(YamlPlace place) {
    if (places_ == nullptr) return {};
    if (stack_.empty()) {
      places_->back().lines.emplace("", place.line);
      return {};
    }
    const Open& parent = stack_.back();
    if (parent.key) return path_of(parent, *parent.key);
    if (!parent.value.is_array()) return {};
    std::string path = fmt::format("{}[{}]", parent.path, parent.value.get_array().size());
    places_->back().lines.emplace(path, place.line);
    return path;
  }
  static std::string path_of(const Open& parent, std::string_view key) {
    return parent.path.empty() ? std::string(key) : fmt::format("{}.{}", parent.path, key);
  }

  /// Into what is open: an element, a key, or a key's value.
  void put(YamlPlace place, const std::string& anchor, Node node) {
    count(place, node.size);
    check_depth(place, stack_.size() + node.size.depth);
    if (!anchor.empty()) {
      count(place, node.size);  // Kept a second time.
      anchors_.insert_or_assign(anchor, node);
    }
    if (node.is_scalar) static_cast<void>(note_place(place));
    if (stack_.empty()) {
      if (!node.value.is_null())
        documents.push_back(std::move(node.value));
      else if (places_ != nullptr)
        places_->pop_back();
      return;
    }
    Open& parent = stack_.back();
    if (auto* list = parent.value.if_array()) {
      grow(parent, node.size);
      list->push_back(std::move(node.value));
    } else if (!parent.key) {
      put_key(place, parent, node);
    } else {
      grow(parent, node.size);
      put_member(place, parent, std::move(node));
    }
  }
  static void grow(Open& parent, const Size& size) {
    parent.size.nodes += size.nodes;
    parent.size.text_bytes += size.text_bytes;
    parent.size.depth = std::max(parent.size.depth, size.depth + 1);
  }

  void put_key(YamlPlace place, Open& parent, const Node& node) {
    if (!node.is_scalar) refuse_key(place);
    nodes_ -= node.size.nodes;  // Keys are counted with their values.
    parent.size.text_bytes += node.size.text_bytes;
    parent.merges = node.is_plain && node.text == "<<";
    auto key = yaml_key(node.value);
    if (!key) refuse_key(place);
    if (places_ != nullptr && !parent.merges) {
      const std::string path = path_of(parent, *key);
      places_->back().lines.insert_or_assign(path, place.line);
      if (!parent.keys.insert(*key).second) places_->back().repeated.push_back(path);
    }
    parent.key = std::move(*key);
  }

  /// What a merge brings takes the place of what stands above it, as in Kubernetes' library; of several maps the first counts.
  void put_member(YamlPlace place, Open& parent, Node node) {
    Object& object = parent.value.get_object();
    if (!parent.merges) {
      if (repeated_ != nullptr && repeated_->size() < kMaxRepeated && object.contains(*parent.key))
        repeated_->push_back(fmt::format("line {}: key {} already set in map", place.line, json::serialize(Value(*parent.key))));
      object.insert_or_assign(*parent.key, std::move(node.value));
    } else {
      const auto merge = [&](const Value& from) {
        if (!from.is_object()) refuse_value(place, "map merge requires map or sequence of maps as the value");
        for (const auto& [key, value] : from.get_object()) object.insert_or_assign(key, value);
      };
      if (const Array* several = node.value.if_array())
        for (auto one = several->rbegin(); one != several->rend(); ++one) merge(*one);
      else
        merge(node.value);
    }
    parent.key.reset();
  }

  static constexpr std::size_t kMaxRepeated = 100;
  std::vector<YamlPlaces>* places_;
  std::vector<std::string>* repeated_;
  std::vector<Open> stack_;
  std::unordered_map<std::string, Node> anchors_;
  std::size_t nodes_ = 0, text_bytes_ = 0;
  bool has_alias_ = false;  ///< Any so far.
};

/// Once a value was refused: what is no YAML is told first, as by a reader that parses a document before it makes values.
YamlFault first_fault(YamlEvents& events, YamlFault refused) {
  for (;;) {
    auto event = events.next();
    if (!event) return std::move(event.error());
    if (event->type == YAML_DOCUMENT_END_EVENT || event->type == YAML_STREAM_END_EVENT) return refused;
  }
}

Expected<std::vector<Value>, YamlFault> read(std::string_view text, std::vector<YamlPlaces>* places, bool is_one_enough,
                                             std::vector<std::string>* repeated = nullptr) {
  const bool has_utf16_mark = text.starts_with("\xfe\xff") || text.starts_with("\xff\xfe");
  if (!has_utf16_mark && !is_utf8(text)) return std::unexpected(refusal({}, "it is not valid UTF-8"));
  YamlEvents events(text);
  Builder builder(places, repeated);
  try {
    for (;;) {
      auto event = events.next();
      if (!event) return std::unexpected(std::move(event.error()));
      const bool is_end = event->type == YAML_DOCUMENT_END_EVENT && is_one_enough;
      if (!builder.take(std::move(*event)) || is_end) return std::move(builder.documents);
    }
  } catch (YamlFault& fault) {
    return std::unexpected(std::move(fault));
  } catch (NoValue& refused) {
    return std::unexpected(first_fault(events, std::move(refused.fault)));
  }
}

}  // namespace

Expected<std::vector<Value>, YamlFault> read_yaml(std::string_view text, std::vector<YamlPlaces>* places) {
  return read(text, places, false);
}

Expected<Value, YamlFault> read_first_yaml(std::string_view text, std::vector<std::string>* repeated) {
  auto documents = read(text, nullptr, true, repeated);
  if (!documents) return std::unexpected(std::move(documents.error()));
  return documents->empty() ? Value() : std::move(documents->front());
}

Result<std::vector<Value>> parse_yaml_stream(std::string_view text) {
  auto documents = read_yaml(text);
  if (!documents) return invalid(documents.error().message());
  return std::move(*documents);
}

Result<Value> parse_yaml(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && text[first] == '{') return parse(text);
  auto documents = parse_yaml_stream(text);
  if (!documents) return std::unexpected(documents.error());
  if (documents->size() != 1) return invalid(fmt::format("expected one YAML document, found {}", documents->size()));
  return std::move((*documents)[0]);
}

}  // namespace berth::json
