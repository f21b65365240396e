#include "base/yaml_events.h"

#include <fmt/format.h>

namespace berth::json {
namespace {

std::string text_of(const yaml_char_t* text) { return text == nullptr ? std::string() : std::string(reinterpret_cast<const char*>(text)); }

YamlPlace place_of(const yaml_mark_t& mark) { return {mark.line + 1, mark.column + 1}; }

}  // namespace

YamlEvents::YamlEvents(std::string_view text) {
  if (yaml_parser_initialize(&parser_) == 0) throw std::bad_alloc();
  yaml_parser_set_input_string(&parser_, reinterpret_cast<const unsigned char*>(text.data()), text.size());
}

Expected<YamlEvent, YamlFault> YamlEvents::next() {
  yaml_event_t event;
  if (yaml_parser_parse(&parser_, &event) == 0) return std::unexpected(fault());
  YamlEvent out;
  out.type = event.type;
  out.place = place_of(event.start_mark);
  switch (event.type) {
    case YAML_ALIAS_EVENT:
      out.anchor = text_of(event.data.alias.anchor);
      break;
    case YAML_SCALAR_EVENT:
      out.anchor = text_of(event.data.scalar.anchor);
      out.tag = text_of(event.data.scalar.tag);
      out.text.assign(reinterpret_cast<const char*>(event.data.scalar.value), event.data.scalar.length);
      out.is_plain = event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
      break;
    case YAML_SEQUENCE_START_EVENT:
      out.anchor = text_of(event.data.sequence_start.anchor);
      break;
    case YAML_MAPPING_START_EVENT:
      out.anchor = text_of(event.data.mapping_start.anchor);
      break;
    default:
      break;
  }
  yaml_event_delete(&event);
  return out;
}

YamlFault YamlEvents::fault() const {
  YamlFault out;
  out.what = parser_.problem != nullptr ? parser_.problem : "unknown problem parsing YAML content";
  out.place = place_of(parser_.problem_mark);
  // Kubernetes' library adds one to the lines of its scanner alone and is silent about the line 0.
  std::size_t line = parser_.problem_mark.line;
  if (line != 0 && parser_.error == YAML_SCANNER_ERROR)
    ++line;
  else if (line == 0)
    line = parser_.context_mark.line;
  out.go_words = line == 0 ? fmt::format("yaml: {}", out.what) : fmt::format("yaml: line {}: {}", line, out.what);
  return out;
}

std::string YamlFault::message() const { return fmt::format("invalid YAML at line {}, column {}: {}", place.line, place.column, what); }

}  // namespace berth::json
