#include "apiserver/writes/text_cutter.h"

#include <algorithm>

#include "apiserver/writes/alike.h"
#include "base/json_skip.h"
#include "base/split.h"

namespace berth::apiserver {

struct TextCutter::Cut {
  const TextCutter& cutter;
  std::vector<Found>& found;
  std::string* rest;
  const char* from;  ///< What is not in the rest yet.

  void add(TextClass is, char form, std::string_view text, std::size_t place = 0) {
    found.push_back({is, text, place});
    if (rest == nullptr) return;
    add_part(*rest, {from, text.data()});
    *rest += static_cast<char>(is);
    *rest += form;
    from = text.data() + text.size();
  }
};

TextCutter::TextCutter(const FreeUpdateTexts& texts) : places_(texts.places) {
  for (const auto& place : places_) step_at(place.path).place = &place;
  for (const auto& [field, is] : texts.keys)
    keys_.push_back(field.empty() ? Key{R"("v:\")", R"(\"")", is} : Key{fmt::format(R"("k:{{\"{}\":\")", field), R"(\"})", is});
  if (!keys_.empty()) step_at("metadata.managedFields.*.fieldsV1").has_owners = true;
}

TextCutter::Step& TextCutter::step_at(std::string_view path) {
  Step* step = &root_;
  for (const auto key : split(path, '.')) {
    auto next = std::ranges::find(step->below, key, &Step::key);
    if (next == step->below.end()) next = step->below.insert(next, Step{.key = std::string(key)});
    step = &*next;
  }
  return *step;
}

bool TextCutter::cut(std::string_view json, std::vector<Found>& found, std::string* rest) const {
  Cut out{*this, found, rest, json.data()};
  const char* at = json.data();
  const char* end = at + json.size();
  json::detail::skip_space(at, end);
  if (!walk(at, end, root_, out)) return false;
  json::detail::skip_space(at, end);
  if (at != end) return false;
  if (rest != nullptr) add_part(*rest, {out.from, end});
  return true;
}

const TextCutter::Step* TextCutter::step_to(const Step& from, std::string_view key) {
  for (const auto& step : from.below)
    if (step.key == key || step.key == "*") return &step;
  return nullptr;
}

bool TextCutter::walk(const char*& at, const char* end, const Step& step, Cut& out) {
  if (at >= end) return false;
  if (!step.below.empty() && *at == '{')
    return json::detail::walk_object(at, end, [&](std::string_view raw_key, const char*& value_at) {
      const auto key = raw_key.substr(1, raw_key.size() - 2);
      if (key.find('\\') != std::string_view::npos) return false;  // Whatever it is called.
      const auto* next = step_to(step, key);
      return next != nullptr ? walk(value_at, end, *next, out) : json::detail::skip_value(value_at, end);
    });
  if (const auto* each = *at == '[' ? step_to(step, "*") : nullptr; each != nullptr && each->key == "*")
    return json::detail::walk_list(at, end, ']', [&](const char*& element) { return walk(element, end, *each, out); });
  const char* start = at;
  if (!json::detail::skip_value(at, end) || at > end) return false;
  return take(json::detail::slice(start, at), step, out);
}

bool TextCutter::take(std::string_view raw, const Step& step, Cut& out) {
  if (step.has_owners) return take_keys(raw, out);
  if (step.place == nullptr) return true;
  const auto& [_, is, fits] = *step.place;
  const auto place = static_cast<std::size_t>(step.place - out.cutter.places_.data());
  if (is == TextClass::kKept) {
    out.add(is, 'x', raw, place);
    return true;
  }
  const bool is_count = is == TextClass::kCount || is == TextClass::kGeneration;
  if (is_count ? raw == "0" || (raw.front() != '-' && (raw.front() < '0' || raw.front() > '9'))
               : raw.size() < 2 || raw.front() != '"' || raw.back() != '"')
    return true;
  const auto text = is_count ? raw : raw.substr(1, raw.size() - 2);
  const char form = form_of(is, text);
  const bool is_one = form != '\0' && (fits == nullptr || fits(text));
  if (is_one) out.add(is, form, text, place);
  // How it stands to those that are in order cannot be told.
  return is_one || !is_ordered(is);
}

bool TextCutter::take_keys(std::string_view fields, Cut& out) {
  for (std::size_t at = fields.find('"'); at != std::string_view::npos; at = fields.find('"', at + 1)) {
    const auto rest = fields.substr(at);
    const auto key = std::ranges::find_if(out.cutter.keys_, [&](const Key& one) { return rest.starts_with(one.begin); });
    if (key == out.cutter.keys_.end()) continue;
    const auto from = key->begin.size(), to = std::min(rest.find('\\', from), rest.size());
    const auto text = rest.substr(from, to - from);
    const char form = form_of(key->is, text);
    // Of values that are none of these, finalizers for example, the list is another.
    if (form == '\0' && key->is == TextClass::kRange && !text.empty() && (text.front() < '0' || text.front() > '9') &&
        text.find(':') == std::string_view::npos)
      continue;
    if (form == '\0' || !rest.substr(to).starts_with(key->end)) return false;
    out.add(key->is, form, text);
  }
  return true;
}

}  // namespace berth::apiserver
