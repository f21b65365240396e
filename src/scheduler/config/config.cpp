#include "scheduler/config/config.h"

#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <sstream>

#include "placement/framework.h"
#include "scheduler/config/sections.h"

namespace berth::scheduler::config {
namespace {

Result<SchedulerConfig> read_document(const json::Value& document, const ParseOptions& options,
                                      std::function<int(const std::string&)> locate) {
  Problems problems(options.file, std::move(locate));
  const Reader root(&document, "", problems);
  if (!document.is_object()) return invalid(options.file + ": the document must be a map with kind KubeSchedulerConfiguration or Policy");
  const std::string kind = root.string("kind");
  SchedulerConfig out;
  if (kind == "Policy" || (kind.empty() && root.has("predicates"))) {
    out = read_policy(root);
    out.source = document;
  } else if (kind == "KubeSchedulerConfiguration") {
    out = read_component_config(root, options.era);
    out.source = document;
  } else {
    constexpr std::string_view kKinds[] = {"KubeSchedulerConfiguration", "Policy"};
    root.problem("kind", fmt::format("unknown kind \"{}\"{}; a scheduler reads KubeSchedulerConfiguration or Policy", kind,
                                     suggestion(kind, kKinds)));
  }
  // What an extender looks after alone is not counted by the engine.
  for (const auto& extender : out.extenders)
    for (const auto& resource : extender.managed_resources)
      if (resource.ignored_by_scheduler)
        for (auto& profile : out.profiles) profile.args.fit.ignored_resources.push_back(resource.name);
  if (problems.empty()) {
    for (const auto& profile : out.profiles)
      if (const auto framework = placement::Framework::create(profile); !framework)
        root.problem(fmt::format("profile \"{}\": {}", profile.scheduler_name, framework.error().message));
  }
  if (!problems.empty()) return invalid(problems.text());
  return out;
}

}  // namespace

const placement::Profile* SchedulerConfig::profile(std::string_view scheduler_name) const {
  // A pod that never met an API server's defaulting names no scheduler.
  const std::string_view wanted = scheduler_name.empty() ? std::string_view("default-scheduler") : scheduler_name;
  for (const auto& profile : profiles)
    if (profile.scheduler_name == wanted) return &profile;
  return nullptr;
}

SchedulerConfig default_config(placement::Era era) {
  SchedulerConfig out;
  out.era = era;
  out.profiles.push_back(placement::default_profile(era));
  return out;
}

Result<SchedulerConfig> parse(std::string_view text, const ParseOptions& options) {
  auto document = json::parse_yaml(text);
  std::string source(text);
  if (!document) {
    // A JSON syntax error reads better from the JSON parser; the documents' samples parse after repair.
    source = repair_document_policy(text);
    auto repaired = json::parse_yaml(source);
    if (!repaired || !repaired->is_object() || json::get_string(*repaired, {"kind"}) != "Policy")
      return invalid(fmt::format("{}: {}", options.file, document.error().message));
    document = std::move(repaired);
  }
  return read_document(*document, options, line_finder(std::move(source)));
}

Result<SchedulerConfig> from_json(const json::Value& document, const ParseOptions& options) { return read_document(document, options, {}); }

Result<SchedulerConfig> load(const std::string& path, ParseOptions options) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  if (!in || !(text << in.rdbuf())) return fail(ErrorCode::kNotFound, fmt::format("{}: cannot be read", path));
  options.file = path;
  return parse(text.str(), options);
}

}  // namespace berth::scheduler::config
