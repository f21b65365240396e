// The objects of a file as its author means them.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json.h"

namespace berth::cli {

struct ManifestText {
  std::vector<json::Value> documents;
  std::string text;                  ///< What they were read of: the file's, or with changes in lines of their own numbers.
  std::vector<std::string> changes;  ///< "line 3: read without the callout \"1\""; to be told.
};

/// A text that parses is read as it is, with one exception: where a value stands that its kind can never take (`tolerationSeconds: 300
/// (1)`, `priorityClassName: high-priority 1`), and all is in order without the callouts behind such values, these are taken off. A text
/// that does not parse is tried as the documents mean it (config_repair.h), and is taken if all its objects have values of their kinds'
/// types; otherwise the error is that of the text as it was given.
Result<ManifestText> read_manifest_text(std::string_view text);

}  // namespace berth::cli
