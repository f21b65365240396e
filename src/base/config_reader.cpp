#include "base/config_reader.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/go_duration.h"

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

void Problems::add(const std::string& path, std::string_view message) {
  const int line = locate_ ? locate_(path) : 0;
  std::string out = line > 0 ? fmt::format("{}:{}: ", file_, line) : file_ + ": ";
  if (!path.empty()) out += path + ": ";
  out += message;
  if (std::ranges::find(lines_, out) == lines_.end()) lines_.push_back(std::move(out));
}

std::string Problems::text() const { return fmt::format("{}", fmt::join(lines_, "\n")); }

Reader Reader::field(std::string_view name) const {
  std::string path = path_.empty() ? std::string(name) : fmt::format("{}.{}", path_, name);
  if (!is_object()) return {nullptr, std::move(path), *problems_};
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

std::string Reader::string(std::string_view name, std::string_view fallback) const {
  const Reader at = field(name);
  if (!at.is_present()) return std::string(fallback);
  if (at.value_->is_string()) return std::string(json::as_view(*at.value_));
  at.problem(fmt::format("must be a string, not {}", type_name(*at.value_)));
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

bool Reader::expect_object() const {
  if (is_object()) return true;
  if (is_present()) problem(fmt::format("must be a map, not {}", type_name(*value_)));
  return false;
}

void Reader::only(std::initializer_list<std::string_view> known) const {
  if (!is_object()) return;
  for (const auto& member : value_->get_object()) {
    const std::string_view key(member.key().data(), member.key().size());
    if (std::ranges::find(known, key) != known.end()) continue;
    problem(key, fmt::format("unknown field \"{}\"{}", key, suggestion(key, {known.begin(), known.size()})));
  }
}

std::string_view nearest(std::string_view name, std::span<const std::string_view> candidates) {
  std::string_view best;
  std::size_t best_distance = std::max<std::size_t>(2, name.size() / 3) + 1;
  for (const auto candidate : candidates) {
    if (candidate.size() > name.size() + best_distance) continue;
    const std::size_t distance = edit_distance(name.substr(0, 256), candidate);
    if (distance < best_distance) best = candidate, best_distance = distance;
  }
  return best;
}

std::string suggestion(std::string_view name, std::span<const std::string_view> candidates) {
  const auto found = nearest(name, candidates);
  return found.empty() ? std::string() : fmt::format("; did you mean \"{}\"?", found);
}

std::function<int(const std::string&)> line_finder(std::string text) {
  std::shared_ptr<YAML::Node> root;
  try {
    root = std::make_shared<YAML::Node>(YAML::Load(text));
  } catch (const YAML::Exception&) {
    return [](const std::string&) { return 0; };
  }
  return [root](const std::string& path) {
    try {
      YAML::Node at;
      at.reset(*root);
      int line = at.Mark().line;
      std::size_t pos = 0;
      while (pos < path.size()) {
        if (path[pos] == '.') ++pos;
        YAML::Node next;
        if (path[pos] == '[') {
          const std::size_t close = path.find(']', pos);
          const auto index = static_cast<std::size_t>(std::stoul(path.substr(pos + 1, close - pos - 1)));
          if (!at.IsSequence() || index >= at.size()) break;
          next.reset(at[index]);
          line = next.Mark().line;
          pos = close + 1;
        } else {
          const std::size_t end = std::min(path.find_first_of(".[", pos), path.size());
          const std::string key = path.substr(pos, end - pos);
          bool found = false;
          if (at.IsMap()) {
            for (const auto& member : at) {
              if (!member.first.IsScalar() || member.first.Scalar() != key) continue;
              line = member.first.Mark().line;
              next.reset(member.second);
              found = true;
            }
          }
          if (!found) break;
          pos = end;
        }
        at.reset(next);
      }
      return line + 1;
    } catch (const std::exception&) {
      return 0;
    }
  };
}

}  // namespace berth::config
