// YAML into JSON values, as sigs.k8s.io/yaml reads it: straight from the parser's events, so that a document is never held twice and a
// limit ends the work where it is passed.
#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <sstream>

#include "base/json.h"
#include "base/utf8.h"
#include "base/yaml_scalar.h"

namespace berth::json {
namespace {

constexpr std::size_t kMaxYamlDepth = 500;
/// An alias bomb ("billion laughs") grows without end: more nodes than this is refused.
constexpr std::size_t kMaxNodes = 500'000;
/// The same for text: few aliases of one long string are enough to fill the memory.
constexpr std::size_t kMaxTextBytes = 64 * 1024 * 1024;

struct TooDeep {};
struct TooBig {};

/// The text of a scalar. yaml-cpp gives the escapes `\N` and `\_` as single bytes, which are no UTF-8.
std::string text_of(std::string_view text) {
  if (is_utf8(text)) return std::string(text);
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t n = 1;
    while (n <= 4 && !is_utf8(text.substr(i, n))) ++n;
    if (n > 4 && (text[i] == '\x85' || text[i] == '\xa0')) out += '\xc2';
    if (n > 4) n = 1;
    out += text.substr(i, n);
    i += n;
  }
  return to_utf8(out);  // Halves of UTF-16 pairs are left.
}

/// What is counted of a value, so that an alias of it can be counted without a walk.
struct Size {
  std::size_t nodes = 0, text_bytes = 0, depth = 0;
};

/// Makes the values of a stream's documents.
class Builder final : public YAML::EventHandler {
 public:
  std::vector<Value> documents;

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override { anchors_.clear(); }
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override { put(mark, anchor, {nullptr, {}, {1, 0, 0}, false, false}); }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, const std::string& text) override {
    Node node;
    node.text = text_of(text);
    node.is_scalar = true;
    node.is_quoted = tag == "!";
    node.size = {1, text.size(), 0};
    node.value = node.is_quoted || tag == "tag:yaml.org,2002:str" ? Value(node.text) : yaml_value(node.text);
    put(mark, anchor, std::move(node));
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) throw TooDeep{};  // Of what it stands in: without end.
    count(found->second.size);
    Node copy = found->second;
    uncount(copy.size);
    put(mark, 0, std::move(copy));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor, YAML::EmitterStyle::value) override {
    open(mark, anchor, Array());
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor, YAML::EmitterStyle::value) override {
    open(mark, anchor, Object());
  }
  void OnMapEnd() override { close(); }

 private:
  struct Node {
    Value value;
    std::string text;  ///< Of a scalar, as a key has it.
    Size size;
    bool is_scalar = false, is_quoted = false;
  };
  struct Open {
    Value value;
    YAML::Mark mark;
    YAML::anchor_t anchor = 0;
    Size size{1, 0, 0};
    std::optional<std::string> key;
    bool merges = false;  ///< The key is `<<`.
  };

  void count(const Size& size) {
    nodes_ += size.nodes;
    text_bytes_ += size.text_bytes;
    if (nodes_ > kMaxNodes || text_bytes_ > kMaxTextBytes) throw TooBig{};
  }
  void uncount(const Size& size) {
    nodes_ -= size.nodes;
    text_bytes_ -= size.text_bytes;
  }
  void open(const YAML::Mark& mark, YAML::anchor_t anchor, Value value) {
    if (!stack_.empty() && stack_.back().value.is_object() && !stack_.back().key) refuse_key(mark);
    if (stack_.size() >= kMaxYamlDepth) throw TooDeep{};
    count({1, 0, 0});
    stack_.push_back({std::move(value), mark, anchor, {1, 0, 0}, std::nullopt, false});
  }
  void close() {
    auto done = std::move(stack_.back());
    stack_.pop_back();
    uncount(done.size);
    put(done.mark, done.anchor, {std::move(done.value), {}, done.size, false, false});
  }
  [[noreturn]] static void refuse_key(const YAML::Mark& mark) { throw YAML::ParserException(mark, "a mapping key must be a string"); }

  /// Into what is open: an element, a key, or a key's value.
  void put(const YAML::Mark& mark, YAML::anchor_t anchor, Node node) {
    count(node.size);
    if (stack_.size() + node.size.depth > kMaxYamlDepth) throw TooDeep{};
    if (anchor != 0) {
      count(node.size);  // Kept a second time.
      anchors_.insert_or_assign(anchor, node);
    }
    if (stack_.empty()) {
      if (!node.value.is_null()) documents.push_back(std::move(node.value));
      return;
    }
    auto& parent = stack_.back();
    const auto grow = [&] {
      parent.size.nodes += node.size.nodes;
      parent.size.text_bytes += node.size.text_bytes;
      parent.size.depth = std::max(parent.size.depth, node.size.depth + 1);
    };
    if (auto* list = parent.value.if_array()) {
      grow();
      list->push_back(std::move(node.value));
      return;
    }
    if (!parent.key) {
      if (!node.is_scalar) refuse_key(mark);
      nodes_ -= node.size.nodes;  // Keys are counted with their values.
      parent.size.text_bytes += node.size.text_bytes;
      parent.merges = node.text == "<<" && !node.is_quoted;
      parent.key = std::move(node.text);
      return;
    }
    grow();
    auto& object = parent.value.get_object();
    if (!parent.merges) {
      object.insert_or_assign(*parent.key, std::move(node.value));
    } else if (const auto* more = node.value.if_object()) {
      for (const auto& [key, value] : *more) object.emplace(key, value);  // Explicit keys win.
    }
    parent.key.reset();
  }

  std::vector<Open> stack_;
  std::unordered_map<YAML::anchor_t, Node> anchors_;
  std::size_t nodes_ = 0, text_bytes_ = 0;
};

std::size_t count_of(std::string_view text, std::string_view marker) {
  std::size_t count = 0;
  for (auto at = text.find(marker); at != std::string_view::npos; at = text.find(marker, at + marker.size())) ++count;
  return count;
}

}  // namespace

Result<std::vector<Value>> parse_yaml_stream(std::string_view text) {
  const bool has_utf16_mark = text.starts_with("\xfe\xff") || text.starts_with("\xff\xfe");
  if (!has_utf16_mark && !is_utf8(text)) return invalid("invalid YAML: it is not valid UTF-8");
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    Builder builder;
    // yaml-cpp answers some stray tokens ("a: 1}") with empty documents for ever. More documents than there are markers that could begin or
    // end one means that it is stuck.
    const std::size_t limit = 2 + count_of(text, "---") + count_of(text, "...");
    for (std::size_t documents = 0; parser.HandleNextDocument(builder); ++documents)
      if (documents > limit) throw YAML::ParserException(YAML::Mark::null_mark(), "unexpected token");
    return std::move(builder.documents);
  } catch (const YAML::Exception& error) {
    return invalid(fmt::format("invalid YAML at line {}, column {}: {}", error.mark.line + 1, error.mark.column + 1, error.msg));
  } catch (const TooDeep&) {
    return invalid(fmt::format("invalid YAML: nested more than {} levels deep", kMaxYamlDepth));
  } catch (const TooBig&) {
    return invalid("invalid YAML: it grows too large when its aliases are expanded");
  }
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
