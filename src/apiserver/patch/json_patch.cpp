#include "apiserver/patch/json_patch.h"

#include "base/split.h"
#include "model/go_words.h"

namespace berth::apiserver::patch {
namespace {

using Op = JsonPatchOperation::Op;

/// The tokens of a pointer. What stands before the first slash does not count, as in the library that Kubernetes uses; without any slash
/// (the whole document, too) a pointer leads nowhere.
std::optional<std::vector<std::string>> parse_pointer(std::string_view text) {
  const auto start = text.find('/');
  if (start == std::string_view::npos) return std::nullopt;
  std::vector<std::string> tokens;
  for (const auto part : split(text.substr(start + 1), '/')) {
    auto& token = tokens.emplace_back();
    for (std::size_t i = 0; i < part.size(); ++i) {
      const bool is_escape = part[i] == '~' && i + 1 < part.size() && (part[i + 1] == '0' || part[i + 1] == '1');
      token += !is_escape ? part[i] : part[++i] == '0' ? '~' : '/';
    }
  }
  return tokens;
}

std::string render_pointer(const std::vector<std::string>& path) {
  std::string out;
  for (const auto& token : path) {
    out += '/';
    for (char c : token) {
      if (c == '~') {
        out += "~0";
      } else if (c == '/') {
        out += "~1";
      } else {
        out += c;
      }
    }
  }
  return out;
}

/// An index into a list; `limit` is the first value that is out of range, and what negative ones count back from.
Result<std::size_t> parse_index(const std::string& token, std::size_t limit) {
  std::int64_t index = 0;
  const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), index);
  if (error != std::errc() || end != token.data() + token.size()) return invalid(fmt::format("invalid array index \"{}\"", token));
  const auto size = static_cast<std::int64_t>(limit);
  if (index < 0) index += size;
  if (index < 0 || index >= size) return invalid(fmt::format("array index {} is out of bounds", token));
  return static_cast<std::size_t>(index);
}

/// The value at `path` without its last `drop` tokens, or null.
json::Value* walk(json::Value& root, const std::vector<std::string>& path, std::size_t drop) {
  json::Value* at = &root;
  for (std::size_t i = 0; i + drop < path.size(); ++i) {
    if (auto* object = at->if_object()) {
      at = object->if_contains(path[i]);
    } else if (auto* array = at->if_array()) {
      const auto index = parse_index(path[i], array->size());
      if (!index) return nullptr;
      at = &(*array)[*index];
    } else {
      return nullptr;
    }
    if (at == nullptr) return nullptr;
  }
  return at;
}

std::unexpected<Error> missing(std::string_view op, const std::vector<std::string>& path) {
  return invalid(fmt::format("{} operation does not apply: doc is missing path: {}", op, render_pointer(path)));
}

/// How long the value's JSON text is, escapes not counted, up to a little more than `enough`.
std::size_t text_bytes(const json::Value& value, std::size_t enough) {
  if (const auto* text = value.if_string()) return text->size() + 2;
  std::size_t bytes = 2;
  if (const auto* object = value.if_object()) {
    for (auto at = object->begin(); at != object->end() && bytes <= enough; ++at)
      bytes += at->key().size() + 4 + text_bytes(at->value(), enough - bytes);
  } else if (const auto* array = value.if_array()) {
    for (auto at = array->begin(); at != array->end() && bytes <= enough; ++at) bytes += 1 + text_bytes(*at, enough - bytes);
  } else {
    bytes = value.is_null() || value.is_bool() ? 4 : 8;
  }
  return bytes;
}

std::size_t depth_of(const json::Value& value) {
  std::size_t depth = 0;
  if (const auto* object = value.if_object())
    for (const auto& member : *object) depth = std::max(depth, depth_of(member.value()) + 1);
  if (const auto* array = value.if_array())
    for (const auto& element : *array) depth = std::max(depth, depth_of(element) + 1);
  return depth;
}

/// Recursion over documents is safe far beyond this.
constexpr std::size_t kSafeDepth = 5'000;

class Application {
 public:
  Application(json::Value& target, const JsonPatchLimits& limits) : target_(target), limits_(limits), depth_(depth_of(target)) {}

  Result<void> apply(const JsonPatchOperation& operation) {
    switch (operation.op) {
      case Op::kUnknown:
        return invalid("Unexpected kind of operation");
      case Op::kAdd:
        return add(operation.path, operation.value, depth_of(operation.value));
      case Op::kRemove: {
        auto taken = take(operation.path, "remove");
        if (!taken) return std::unexpected(taken.error());
        return {};
      }
      case Op::kReplace: {
        auto* found = operation.path.empty() ? nullptr : walk(target_, operation.path, 0);
        // A member that is missing counts as null in the library that Kubernetes uses: it is set.
        if (found == nullptr && !operation.path.empty())
          if (auto* parent = walk(target_, operation.path, 1); parent != nullptr && parent->is_object())
            found = &parent->get_object()[operation.path.back()];
        if (found == nullptr) return missing("replace", operation.path);
        *found = operation.value;
        return deepen(operation.path.size() + depth_of(operation.value));
      }
      case Op::kMove: {
        if (operation.path.size() > operation.from.size() &&
            std::equal(operation.from.begin(), operation.from.end(), operation.path.begin()))
          return invalid("move operation does not apply: a value cannot be moved into itself");
        auto taken = take(operation.from, "move");
        if (!taken) return std::unexpected(taken.error());
        // What is taken is no deeper than the document below its old place.
        return add(operation.path, std::move(*taken), depth_ - std::min(depth_, operation.from.size()));
      }
      case Op::kCopy:
        return copy(operation);
      case Op::kTest: {
        if (operation.path.empty() || walk(target_, operation.path, 1) == nullptr) return missing("test", operation.path);
        const auto* found = walk(target_, operation.path, 0);
        // A missing member equals null, as in the library that Kubernetes uses.
        if (found == nullptr ? operation.value.is_null() : json::equal(*found, operation.value)) return {};
        return fail(ErrorCode::kConflict, fmt::format("testing value {} failed: test failed", render_pointer(operation.path)));
      }
    }
    return {};
  }
  /// After the last one.
  Result<void> finish() {
    if (depth_ > limits_.depth) depth_ = depth_of(target_);
    if (depth_ > limits_.depth) return too_deep();
    return {};
  }

 private:
  [[nodiscard]] std::unexpected<Error> too_deep() const {
    return invalid(fmt::format("the patched document is nested more than {} levels deep", limits_.depth));
  }
  /// `depth_` is what the document has at most: found out anew only where it could matter.
  Result<void> deepen(std::size_t depth) {
    depth_ = std::max(depth_, depth);
    if (depth_ <= kSafeDepth) return {};
    depth_ = depth_of(target_);
    if (depth_ > limits_.depth) return too_deep();
    return {};
  }
  /// `behind`: the elements of a list that change their place.
  Result<void> count_moved(std::size_t behind) {
    if ((moved_ += behind) <= limits_.moved_elements) return {};
    return invalid(fmt::format("the patch moves list elements more than {} times: send the list as a whole", limits_.moved_elements));
  }

  Result<void> add(const std::vector<std::string>& path, json::Value value, std::size_t depth) {
    auto* parent = path.empty() ? nullptr : walk(target_, path, 1);
    if (parent == nullptr) return missing("add", path);
    if (auto* object = parent->if_object()) {
      (*object)[path.back()] = std::move(value);
      return deepen(path.size() + depth);
    }
    auto* array = parent->if_array();
    if (array == nullptr) return missing("add", path);
    if (path.back() == "-") {
      array->push_back(std::move(value));
      return deepen(path.size() + depth);
    }
    const auto index = parse_index(path.back(), array->size() + 1);
    if (!index) return std::unexpected(index.error());
    if (auto counted = count_moved(array->size() - *index); !counted) return counted;
    array->insert(array->begin() + static_cast<std::ptrdiff_t>(*index), std::move(value));
    return deepen(path.size() + depth);
  }

  Result<json::Value> take(const std::vector<std::string>& path, std::string_view op) {
    auto* found = walk(target_, path, 0);
    if (found == nullptr || path.empty()) return missing(op, path);
    json::Value value = std::move(*found);
    auto* parent = walk(target_, path, 1);
    if (auto* object = parent->if_object()) {
      object->erase(path.back());
    } else {
      auto& array = parent->get_array();
      const auto index = *parse_index(path.back(), array.size());
      if (auto counted = count_moved(array.size() - index); !counted) return std::unexpected(counted.error());
      array.erase(array.begin() + static_cast<std::ptrdiff_t>(index));
    }
    return value;
  }

  Result<void> copy(const JsonPatchOperation& operation) {
    const auto* found = operation.from.empty() ? nullptr : walk(target_, operation.from, 0);
    if (found == nullptr) return missing("copy", operation.from);
    copied_bytes_ += text_bytes(*found, limits_.copied_bytes);
    if (copied_bytes_ > limits_.copied_bytes)
      return invalid(fmt::format("Unable to complete the copy, the accumulated size increase of copy is {}, exceeding the limit {}",
                                 copied_bytes_, limits_.copied_bytes));
    return add(operation.path, json::Value(*found), depth_of(*found));
  }

  json::Value& target_;
  const JsonPatchLimits& limits_;
  std::size_t depth_;
  std::size_t copied_bytes_ = 0, moved_ = 0;
};

}  // namespace

model::ApiResult<std::vector<JsonPatchOperation>> parse_json_patch(const json::Value& document, const JsonPatchLimits& limits) {
  const auto refuse = [](std::string_view why) {
    return std::unexpected(model::bad_request(fmt::format("error decoding patch: {}", why)));
  };
  const auto* list = document.if_array();
  if (list == nullptr)
    return refuse(fmt::format("json: cannot unmarshal {} into Go value of type []handlers.jsonPatchOp", model::go_json_kind(document)));
  if (list->size() > limits.operations) {
    model::ApiStatus status;
    status.code = 413;
    status.reason = "RequestEntityTooLarge";
    status.message = fmt::format("Request entity too large: The allowed maximum operations in a JSON patch is {}, got {}",
                                 limits.operations, list->size());
    return std::unexpected(std::move(status));
  }
  static const std::map<std::string_view, Op> kOps = {{"add", Op::kAdd},   {"remove", Op::kRemove}, {"replace", Op::kReplace},
                                                      {"move", Op::kMove}, {"copy", Op::kCopy},     {"test", Op::kTest}};
  std::vector<JsonPatchOperation> operations;
  operations.reserve(list->size());
  for (std::size_t i = 0; i < list->size(); ++i) {
    const auto& entry = (*list)[i];
    if (!entry.is_object())
      return refuse(fmt::format("json: cannot unmarshal {} into Go value of type handlers.jsonPatchOp", model::go_json_kind(entry)));
    for (const std::string_view field : {"op", "path", "from"}) {
      const auto* value = json::find(entry, {field});
      if (value != nullptr && !value->is_string() && !value->is_null())
        return refuse(fmt::format("json: cannot unmarshal {} into Go struct field jsonPatchOp.{} of type string",
                                  model::go_json_kind(*value), field));
    }
    JsonPatchOperation operation;
    const auto op = kOps.find(json::get_string(entry, {"op"}));
    operation.op = op == kOps.end() ? Op::kUnknown : op->second;
    operation.path = parse_pointer(json::get_string(entry, {"path"})).value_or(std::vector<std::string>());
    operation.from = parse_pointer(json::get_string(entry, {"from"})).value_or(std::vector<std::string>());
    if (const auto* value = entry.get_object().if_contains("value"); value != nullptr) operation.value = *value;
    operations.push_back(std::move(operation));
  }
  return operations;
}

Result<void> apply_json_patch(json::Value& target, const std::vector<JsonPatchOperation>& operations, const JsonPatchLimits& limits) {
  Application application(target, limits);
  for (const auto& operation : operations)
    if (auto applied = application.apply(operation); !applied) return applied;
  return application.finish();
}

void apply_merge_patch(json::Value& target, const json::Value& patch) {
  const auto* changes = patch.if_object();
  if (changes == nullptr) {
    target = patch;
    return;
  }
  if (!target.is_object()) target = json::Object();
  auto& object = target.get_object();
  for (const auto& [key, change] : *changes) {
    if (change.is_null()) {
      object.erase(key);
    } else {
      apply_merge_patch(object[key], change);
    }
  }
}

}  // namespace berth::apiserver::patch
