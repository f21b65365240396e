// A label selector in about as many bytes as its text, for watches that are there for hours: a compiled one takes twenty times that.
#pragma once
#include <string>

#include "apiserver/cache/object_cache.h"

namespace berth::apiserver {

/// Immutable; matches as model::Selector does.
class PackedLabels {
 public:
  explicit PackedLabels(const model::Selector& selector);
  [[nodiscard]] bool matches(const model::Labels& labels) const;
  [[nodiscard]] std::size_t bytes() const { return text_.size(); }

 private:
  bool is_nothing_;
  std::string text_;  ///< Of each requirement: its operator, the number of its values, key and values, each with its length before it.
};

/// Packs the filter's labels where they are many.
void pack_labels(WatchFilter& filter);

}  // namespace berth::apiserver
