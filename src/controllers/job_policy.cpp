#include "base/split.h"
#include "controllers/job_model.h"

namespace berth::controllers::job {

Indexes parse_indexes(std::string_view text, std::int64_t limit) {
  Indexes indexes;
  for (const std::string_view part : words(text, ',')) {
    std::int64_t first = 0, last = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), first);
    if (error != std::errc{}) continue;
    last = first;
    if (end != part.data() + part.size() && *end == '-' && std::from_chars(end + 1, part.data() + part.size(), last).ec != std::errc{})
      continue;
    last = std::min(last, limit - 1);
    for (std::int64_t i = first; i <= last && last - first <= 1'000'000; ++i) indexes.insert(i);
  }
  return indexes;
}

std::string format_indexes(const Indexes& indexes) {
  std::string text;
  for (auto it = indexes.begin(); it != indexes.end();) {
    const std::int64_t first = *it;
    std::int64_t last = first;
    while (++it != indexes.end() && *it == last + 1) ++last;
    if (!text.empty()) text += ',';
    text += std::to_string(first);
    // Two neighbours are written one by one, longer runs as a range.
    if (last == first + 1)
      text += fmt::format(",{}", last);
    else if (last > first)
      text += fmt::format("-{}", last);
  }
  return text;
}

namespace {

/// The name and exit code of a container that satisfies an onExitCodes rule.
std::optional<std::pair<std::string, std::int64_t>> matching_exit(const json::Value& rule, const json::Value& pod) {
  const std::string_view only = json::get_string(rule, {"containerName"});
  const bool in = json::get_string(rule, {"operator"}) == "In";
  const json::Array& values = json::get_array(rule, {"values"});
  for (const char* list : {"containerStatuses", "initContainerStatuses"}) {
    for (const json::Value& container : json::get_array(pod, {"status", list})) {
      const std::string_view name = json::get_string(container, {"name"});
      const std::int64_t code = json::get_int(container, {"state", "terminated", "exitCode"});
      if (code == 0 || (!only.empty() && only != name)) continue;
      const bool listed = std::any_of(values.begin(), values.end(),
                                      [&](const json::Value& v) { return v.is_number() && v.to_number<std::int64_t>() == code; });
      if (listed == in) return std::pair{std::string(name), code};
    }
  }
  return std::nullopt;
}

}  // namespace

Verdict judge_failure(const json::Value& job, const json::Value& pod) {
  const std::string pod_key =
      fmt::format("{}/{}", json::get_string(pod, {"metadata", "namespace"}), json::get_string(pod, {"metadata", "name"}));
  std::size_t index = 0;
  for (const json::Value& rule : json::get_array(job, {"spec", "podFailurePolicy", "rules"})) {
    const std::size_t at = index++;
    std::string message;
    if (const json::Value* codes = json::find(rule, "onExitCodes")) {
      const auto exit = matching_exit(*codes, pod);
      if (!exit) continue;
      message = fmt::format("Container {} for pod {} failed with exit code {} matching FailJob rule at index {}", exit->first, pod_key,
                            exit->second, at);
    } else {
      for (const json::Value& pattern : json::get_array(rule, {"onPodConditions"}))
        if (message.empty() && condition_status(pod, json::get_string(pattern, {"type"})) == json::get_string(pattern, {"status"}, "True"))
          message =
              fmt::format("Pod {} has condition {} matching FailJob rule at index {}", pod_key, json::get_string(pattern, {"type"}), at);
      if (message.empty()) continue;
    }
    const std::string_view action = json::get_string(rule, {"action"});
    if (action == "Ignore") return {Verdict::Action::kIgnore, {}};
    if (action == "FailIndex") return {Verdict::Action::kFailIndex, {}};
    if (action == "FailJob") return {Verdict::Action::kFailJob, std::move(message)};
    return {};
  }
  return {};
}

std::int64_t matched_success_rule(const json::Value& job, const Indexes& succeeded) {
  std::int64_t index = 0;
  for (const json::Value& rule : json::get_array(job, {"spec", "successPolicy", "rules"})) {
    Indexes wanted = succeeded;
    bool all = true;
    if (const std::string_view text = json::get_string(rule, {"succeededIndexes"}); !text.empty()) {
      wanted = parse_indexes(text);
      const std::size_t asked = wanted.size();
      std::erase_if(wanted, [&](std::int64_t i) { return !succeeded.contains(i); });
      all = wanted.size() == asked;
    }
    const json::Value* count = json::find(rule, "succeededCount");
    if (count == nullptr ? all : static_cast<std::int64_t>(wanted.size()) >= json::get_int(rule, {"succeededCount"})) return index;
    ++index;
  }
  return -1;
}

}  // namespace berth::controllers::job
