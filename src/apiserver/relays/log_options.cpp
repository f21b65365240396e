#include "apiserver/relays/log_options.h"

#include <fmt/format.h>

#include <charconv>

#include "base/clock.h"

namespace berth::apiserver {

std::optional<model::ApiStatus> check_log_options(const Query& query, std::string_view pod) {
  std::map<std::string_view, std::int64_t> numbers;
  for (const char* name : {"limitBytes", "sinceSeconds", "tailLines"}) {
    if (!query.has(name)) continue;
    const std::string text(query.get(name));
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (text.empty() || error != std::errc() || end != text.data() + text.size())
      return model::bad_request(fmt::format("strconv.ParseInt: parsing {}: invalid syntax", json::serialize(json::Value(text))));
    numbers[name] = number;
  }
  const std::string since(query.get("sinceTime"));
  if (!since.empty() && !parse_rfc3339(since))
    return model::bad_request(fmt::format(R"(parsing time "{0}" as "2006-01-02T15:04:05Z07:00": cannot parse "{0}" as "2006")", since));

  model::FieldErrors errors;
  using Type = model::FieldError::Type;
  const auto below = [&](const char* name, std::int64_t least, const char* words) {
    if (const auto found = numbers.find(name); found != numbers.end() && found->second < least)
      errors.push_back({Type::kInvalid, name, std::to_string(found->second), words});
  };
  below("tailLines", 0, "must be greater than or equal to 0");
  below("limitBytes", 1, "must be greater than 0");
  if (numbers.contains("sinceSeconds") && !since.empty())
    errors.push_back({Type::kForbidden, "[]", "", "at most one of `sinceTime` or `sinceSeconds` may be specified"});
  else
    below("sinceSeconds", 1, "must be greater than 0");
  if (query.has("stream")) errors.push_back({Type::kForbidden, "stream", "", "may not be specified"});
  if (errors.empty()) return std::nullopt;
  return model::invalid_object("", "PodLogOptions", pod, errors);
}

}  // namespace berth::apiserver
