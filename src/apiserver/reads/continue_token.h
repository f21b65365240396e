// The `continue` parameter: where the next page of a list starts, and of which snapshot (apiserver/pkg/storage/continue.go).
#pragma once
#include <string>
#include <string_view>

#include "apiserver/cache/object_cache.h"
#include "base/error.h"

namespace berth::apiserver {

struct ContinueToken {
  Revision revision = 0;  ///< Of the snapshot; -1: whatever is there now (after the snapshot expired).
  std::string after;      ///< The last key of the page before, relative to the list's prefix.

  [[nodiscard]] std::string render() const;
  static Result<ContinueToken> parse(std::string_view text);
};

}  // namespace berth::apiserver
