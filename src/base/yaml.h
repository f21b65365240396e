// YAML with what its values alone do not tell: where a field stands, what stands twice, and errors as Kubernetes words them.
#pragma once
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"
#include "base/json.h"

namespace berth::json {

/// Both count from 1.
struct YamlPlace {
  std::size_t line = 1, column = 1;
};

/// Why a text is no YAML.
struct YamlFault {
  YamlPlace place;
  std::string what;
  std::string go_words;  ///< What the API server of Kubernetes says: "yaml: line 1: ...". Its line numbers are its own.

  /// "invalid YAML at line 2, column 5: ...".
  [[nodiscard]] std::string message() const;
};

/// Where the fields of a document stand, by path: "spec.containers[0].name"; the document itself has the path "".
struct YamlPlaces {
  std::map<std::string, std::size_t, std::less<>> lines;  ///< Of keys and of entries, counted from 1. The last of two counts.
  std::vector<std::string> repeated;                      ///< Keys that their map has already.
};

/// As `parse_yaml_stream`. `places`, where given, gets those of each document that is not empty.
[[nodiscard]] Expected<std::vector<Value>, YamlFault> read_yaml(std::string_view text, std::vector<YamlPlaces>* places = nullptr);
/// The first document, null when it is empty or there is none; what comes behind it is not looked at, as in Kubernetes. `repeated`: is told
/// of keys that their map has already, in Kubernetes' words ("line 7: key "a" already set in map"), of a hundred at most.
[[nodiscard]] Expected<Value, YamlFault> read_first_yaml(std::string_view text, std::vector<std::string>* repeated = nullptr);

}  // namespace berth::json
