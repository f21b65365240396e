#include "base/config_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/go/duration.h"

namespace berth::config {
namespace {

std::string_view type_name(const json::Value& value) {
  switch (value.kind()) {
    case boost::json::kind::string:
      return "a string";
    case boost::json::kind::bool_:
      return "a boolean";
    case boost::json::kind::array:
      return "a list";
    case boost::json::kind::object:
      return "a map";
    case boost::json::kind::null:
      return "null";
    default:
      return "a number";
  }
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t above = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (lower(a[i - 1]) == lower(b[j - 1]) ? 0 : 1)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

}  // namespace

std::string Problems::place(const std::string& path) const {
  const int line = locate_ ? locate_(path) : 0;
  std::string out = line > 0 ? fmt::format("{}:{}", file_, line) : file_;
  if (!path.empty()) out += ": " + path;
  return out;
}

void Problems::keep(const std::string& path, std::string_view message, std::vector<std::string>& into) const {
  std::string out = fmt::format("{}: {}", place(path), message);
  if (std::ranges::find(into, out) == into.end()) into.push_back(std::move(out));
}

std::string Problems::text() const { return fmt::format("{}", fmt::join(lines_, "\n")); }

std::vector<std::string> Problems::notes() const {
  std::vector<std::string> out = notes_, unread;
  for (const std::string& path : declared_) {
    if (read_.contains(path)) continue;
    const int line = locate_ ? locate_(path) : 0;
    unread.push_back(line > 0 ? fmt::format("{} (line {})", path, line) : path);
  }
  if (!unread.empty()) out.push_back(fmt::format("{}: known, and without effect here: {}", file_, fmt::join(unread, ", ")));
  return out;
}

Reader Reader::field(std::string_view name) const {
  std::string path = path_of(name);
  if (!is_object()) return {nullptr, std::move(path), *problems_};
  problems_->read_.insert(path);
  return {value_->get_object().if_contains(name), std::move(path), *problems_};
}

std::vector<Reader> Reader::items() const {
  std::vector<Reader> out;
  if (!is_present()) return out;
  if (!value_->is_array()) {
    problem(fmt::format("must be a list, not {}", type_name(*value_)));
    return out;
  }
  const auto& array = value_->get_array();
  for (std::size_t i = 0; i < array.size(); ++i) out.emplace_back(&array[i], fmt::format("{}[{}]", path_, i), *problems_);
  return out;
}

std::vector<std::pair<std::string, Reader>> Reader::members() const {
  std::vector<std::pair<std::string, Reader>> out;
  if (!expect_object()) return out;
  for (const auto& member : value_->get_object()) out.emplace_back(std::string(member.key()), field(std::string_view(member.key())));
  return out;
}

std::string Reader::string(std::string_view name, std::string_view fallback) const {
  const Reader at = field(name);
  if (!at.is_present()) return std::string(fallback);
  if (at.value_->is_string()) return std::string(json::as_view(*at.value_));
  at.problem(fmt::format("must be a string, not {}", type_name(*at.value_)));
  return std::string(fallback);
}

std::string Reader::one_of(std::string_view name, std::span<const std::string_view> words, std::string_view fallback) const {
  std::string out = string(name, fallback);
  if (out.empty() || out == fallback || std::ranges::find(words, std::string_view(out)) != words.end()) return out;
  problem(name, fmt::format("\"{}\" is not one of {}{}", out, fmt::join(words, ", "), suggestion(out, words)));
  return std::string(fallback);
}

std::int64_t Reader::integer(std::string_view name, std::int64_t fallback) const {
  const Reader at = field(name);
  if (!at.is_present()) return fallback;
  if (at.value_->is_int64()) return at.value_->get_int64();
  if (at.value_->is_double() && std::floor(at.value_->get_double()) == at.value_->get_double() && std::abs(at.value_->get_double()) < 9e15)
    return static_cast<std::int64_t>(at.value_->get_double());
  at.problem(
      fmt::format("must be an integer, not {}", at.value_->is_number() ? json::serialize(*at.value_) : std::string(type_name(*at.value_))));
  return fallback;
}

double Reader::number(std::string_view name, double fallback) const {
  const Reader at = field(name);
  if (!at.is_present()) return fallback;
  if (at.value_->is_number()) return at.value_->to_number<double>();
  at.problem(fmt::format("must be a number, not {}", type_name(*at.value_)));
  return fallback;
}

bool Reader::boolean(std::string_view name, bool fallback) const {
  const Reader at = field(name);
  if (!at.is_present()) return fallback;
  if (at.value_->is_bool()) return at.value_->get_bool();
  at.problem(fmt::format("must be true or false, not {}", type_name(*at.value_)));
  return fallback;
}

std::int64_t Reader::duration_ms(std::string_view name, std::int64_t fallback) const {
  const Reader at = field(name);
  if (!at.is_present()) return fallback;
  // Policy files give an extender's timeout as a bare number of nanoseconds (time.Duration in JSON).
  if (at.value_->is_int64()) return at.value_->get_int64() / 1'000'000;
  if (at.value_->is_string())
    if (const auto ns = parse_duration_ns(json::as_view(*at.value_))) return *ns / 1'000'000;
  at.problem("must be a duration such as \"15s\" or \"1m30s\"");
  return fallback;
}

std::vector<std::string> Reader::strings(std::string_view name) const {
  std::vector<std::string> out;
  for (const auto& item : field(name).items()) {
    if (item.is_present() && item.value_->is_string()) {
      out.emplace_back(json::as_view(*item.value_));
    } else {
      item.problem("must be a string");
    }
  }
  return out;
}

std::vector<std::string> Reader::string_or_strings(std::string_view name) const {
  const Reader at = field(name);
  if (at.is_present() && at.value_->is_string()) return {std::string(json::as_view(*at.value_))};
  return strings(name);
}

std::vector<std::string> Reader::texts() const {
  std::vector<std::string> out;
  const auto add = [&](const Reader& item) {
    const json::Value* value = item.value_;
    if (value == nullptr || value->is_null() || value->is_object() || value->is_array())
      item.problem("must be a string");
    else
      out.push_back(value->is_string() ? std::string(json::as_view(*value)) : json::serialize(*value));
  };
  if (!is_present()) return out;
  if (!value_->is_array()) {
    if (value_->is_object())
      problem("must be a list of strings, not a map");
    else
      add(*this);
    return out;
  }
  for (const auto& item : items()) add(item);
  return out;
}

bool Reader::expect_object() const {
  if (is_object()) return true;
  if (is_present()) problem(fmt::format("must be a map, not {}", type_name(*value_)));
  return false;
}

void Reader::only(std::span<const std::string_view> known, Refusal refusal) const { only(known, {}, {}, refusal); }

void Reader::only(std::span<const std::string_view> known, std::string_view section, std::span<const std::string_view> fields,
                  Refusal refusal) const {
  if (!is_object()) return;
  for (const auto& member : value_->get_object()) {
    const std::string_view key(member.key());
    if (std::ranges::find(known, key) != known.end()) {
      if (!member.value().is_null() && key != "kind" && key != "apiVersion" && key != "metadata")
        problems_->declared_.push_back(path_of(key));
      continue;
    }
    const std::string here = suggestion(key, known);
    const std::string_view below = nearest(key, fields);
    if (here.empty() && !below.empty())
      problem(key,
              fmt::format("unknown field \"{}\" here; {}", key,
                          below == key ? fmt::format("it belongs below {}", section)
                                       : fmt::format("did you mean \"{}\" below {}?", below, section)),
              refusal);
    else
      problem(key, fmt::format("unknown field \"{}\"{}", key, here), refusal);
  }
}

void Reader::expect_kind(std::span<const std::string_view> kinds, std::span<const std::string_view> versions) const {
  for (const auto& [name, allowed] : {std::pair(std::string_view("kind"), kinds), std::pair(std::string_view("apiVersion"), versions)}) {
    const std::string given = string(name);
    if (!given.empty() && std::ranges::find(allowed, std::string_view(given)) == allowed.end())
      problem(name, fmt::format("must be {}, is \"{}\"", fmt::join(allowed, " or "), given));
  }
}

void Reader::without_effect(std::initializer_list<std::string_view> names, std::string_view why) const {
  for (const std::string_view name : names)
    if (has(name)) note(name, fmt::format("has no effect here: {}", why));
}

void Reader::skip() const {
  if (!is_object()) return;
  for (const auto& member : value_->get_object()) static_cast<void>(field(std::string_view(member.key())));
}

std::string_view nearest(std::string_view name, std::span<const std::string_view> candidates) {
  std::string_view best;
  std::size_t best_distance = std::max<std::size_t>(2, name.size() / 3) + 1;
  for (const auto candidate : candidates) {
    if (candidate.size() > name.size() + best_distance) continue;
    const std::size_t distance = edit_distance(name.substr(0, 256), candidate);
    // Of three letters two that differ are another word, unless they have only changed places.
    if (name.size() <= 3 && distance > 1 && !std::ranges::is_permutation(name, candidate)) continue;
    if (distance < best_distance) best = candidate, best_distance = distance;
  }
  return best;
}

std::string suggestion(std::string_view name, std::span<const std::string_view> candidates) {
  const auto found = nearest(name, candidates);
  return found.empty() ? std::string() : fmt::format("; did you mean \"{}\"?", found);
}

}  // namespace berth::config
