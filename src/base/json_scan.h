// Reading a few values out of a JSON text without building a document: for metadata of stored objects, millions at start.
//
// For texts that this program serialised or has parsed before. A malformed text gives false, never an overrun; but not every malformed
// text is noticed, so this is no validator.
#pragma once
#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace berth::json {

/// The values at fixed object paths. Immutable after construction, so one static scanner serves all threads.
class PathScanner {
 public:
  /// Object keys with dots between, e.g. "metadata.name" (keys with a dot of their own cannot be asked for). A path may lie below another.
  explicit PathScanner(const std::vector<std::string>& paths);

  /// Sets values[i] to the slice of `text` that is the value at path i (a string with its quotes), or to an empty view when it is absent.
  /// Of a duplicate key the last value counts. `values` has one place a path. False: malformed, values are then unspecified.
  bool scan(std::string_view text, std::span<std::string_view> values) const;

 private:
  struct Step {
    std::string key;
    int path = -1;            ///< Index of the path that ends here.
    std::vector<Step> below;  ///< Further keys of longer paths.
  };
  static bool scan_object(const char*& at, const char* end, const std::vector<Step>& steps, std::span<std::string_view> values, int depth);
  std::vector<Step> root_;
  std::size_t count_ = 0;
};

/// The text of a scanned string; empty when `raw` is not a string.
std::string unquote(std::string_view raw);
/// The text of a scanned string without escapes, as a view; `ok` is false when it has escapes or is not a string.
std::string_view unquote_plain(std::string_view raw, bool& ok);
/// Calls `each` for the members of a scanned object, in order. False: not an object, or malformed.
bool for_each_member(std::string_view raw, const std::function<void(std::string_view raw_key, std::string_view raw_value)>& each);
/// Calls `each` for the elements of a scanned array, in order. False: not an array, or malformed.
bool for_each_element(std::string_view raw, const std::function<void(std::string_view raw_value)>& each);

}  // namespace berth::json
