// What a YAML text says, event by event: libyaml's parser, of which the library of Kubernetes is a port.
#pragma once
#include <yaml.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "base/expected.h"
#include "base/yaml.h"

namespace berth::json {

struct YamlEvent {
  yaml_event_type_t type = YAML_NO_EVENT;
  std::string anchor;  ///< Of an alias: what it stands for.
  std::string tag;
  std::string text;       ///< A scalar's.
  bool is_plain = false;  ///< A scalar without quotes.
  YamlPlace place;
};

/// The events of one text. Once it failed or ended it must not be asked again.
class YamlEvents {
 public:
  /// `text` must stay where it is.
  explicit YamlEvents(std::string_view text);
  ~YamlEvents() { yaml_parser_delete(&parser_); }
  YamlEvents(const YamlEvents&) = delete;
  YamlEvents& operator=(const YamlEvents&) = delete;

  [[nodiscard]] Expected<YamlEvent, YamlFault> next();

 private:
  [[nodiscard]] YamlFault fault() const;

  yaml_parser_t parser_{};
};

}  // namespace berth::json
