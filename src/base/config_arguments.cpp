#include "base/config_arguments.h"

#include <fmt/format.h>

namespace berth::config {
namespace {

void add(const Reader& at, std::string_view name, std::vector<std::string> values, Arguments& out) {
  name.remove_prefix(std::min(name.find_first_not_of('-'), name.size()));
  if (name.empty()) return at.problem("must be NAME=VALUE");
  Argument& argument = out[std::string(name)];
  argument.place = at.place();
  argument.values.insert(argument.values.end(), values.begin(), values.end());
}

void add_assignment(const Reader& at, std::string_view text, Arguments& out) {
  const auto equals = text.find('=');
  if (equals == std::string_view::npos)
    return at.problem(fmt::format("\"{}\" is not NAME=VALUE, nor a map of names to lists of values", text));
  add(at, text.substr(0, equals), {std::string(text.substr(equals + 1))}, out);
}

}  // namespace

Arguments read_arguments(const Reader& at) {
  Arguments out;
  if (!at.is_present()) return out;
  if (at.value()->is_string()) {
    add_assignment(at, json::as_view(*at.value()), out);
  } else if (at.value()->is_array()) {
    for (const Reader& item : at.items())
      for (const std::string& text : item.texts()) add_assignment(item, text, out);
  } else {
    for (const auto& [name, value] : at.members()) add(value, name, value.texts(), out);
  }
  return out;
}

void refuse_near(const Reader& at, std::string_view name, std::span<const std::string_view> known, std::string_view what) {
  if (std::ranges::find(known, name) != known.end()) return;
  const std::string meant = suggestion(name, known);
  if (meant.empty())
    at.note(fmt::format("there is no {} \"{}\" here: it has no effect", what, name));
  else
    at.problem(fmt::format("there is no {} \"{}\"{}", what, name, meant));
}

std::vector<std::string> split_at_commas(const std::vector<std::string>& entries) {
  std::vector<std::string> out;
  for (const std::string& entry : entries)
    for (std::size_t start = 0; start < entry.size();) {
      const std::size_t end = std::min(entry.find(',', start), entry.size());
      out.push_back(entry.substr(start, end - start));
      start = end + 1;
    }
  return out;
}

}  // namespace berth::config
