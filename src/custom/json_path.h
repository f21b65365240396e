// kubectl's JSONPath, as far as definitions name fields by it: printer columns, scale, selectable fields
// (client-go/util/jsonpath). Pure.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"
#include "base/json.h"

namespace berth::custom {

/// A compiled path: ".spec.a['b-c'][0]", "[*]", "[1:3]", "[0,1]", "..name", "[?(@.type==\"Ready\")]", "\." for a dot in a name.
class JsonPath {
 public:
  static Expected<JsonPath, std::string> parse(std::string_view text);
  /// What it leads to, in order; empty where a step is missing.
  [[nodiscard]] std::vector<const json::Value*> find(const json::Value& root) const;

  struct Step;

 private:
  std::vector<std::shared_ptr<const Step>> steps_;
};

}  // namespace berth::custom
