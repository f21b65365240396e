#include "scheduler/config/config.h"

#include <fmt/format.h>

#include <cctype>

#include "placement/framework.h"
#include "scheduler/config/sections.h"

namespace berth::scheduler::config {
namespace {

SchedulerConfig read_document(const Reader& root, const ParseOptions& options) {
  SchedulerConfig out;
  if (root.value() == nullptr || !root.value()->is_object()) {
    root.problem("the document must be a map with kind KubeSchedulerConfiguration or Policy");
    return out;
  }
  const std::string kind = root.string("kind");
  if (kind == "Policy" || (kind.empty() && root.has("predicates"))) {
    out = read_policy(root);
  } else if (kind == "KubeSchedulerConfiguration") {
    out = read_component_config(root, options.era);
    out.source = *root.value();
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
  if (root.problems().empty()) {
    for (const auto& profile : out.profiles)
      if (const auto framework = placement::Framework::create(profile); !framework)
        root.problem(fmt::format("profile \"{}\": {}", profile.scheduler_name, framework.error().message));
  }
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

std::string lease_name(const SchedulerConfig& config) {
  if (!config.leader_election.resource_name.empty()) return config.leader_election.resource_name;
  if (config.profile("") != nullptr) return "kube-scheduler";
  // A Lease's name is a DNS name; a scheduler's may be anything.
  std::string name = config.profiles.front().scheduler_name;
  for (char& c : name) {
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-' && c != '.') c = '-';
  }
  const auto first = name.find_first_not_of("-."), last = name.find_last_not_of("-.");
  return first == std::string::npos ? "scheduler" : name.substr(first, last - first + 1).substr(0, 253);
}

void disable_preemption(placement::Profile& profile) {
  std::erase_if(profile.post_filter, [](const auto& use) { return use.name == "DefaultPreemption"; });
}

SchedulerConfig default_config(placement::Era era) {
  SchedulerConfig out;
  out.era = era;
  out.profiles.push_back(placement::default_profile(era));
  return out;
}

Result<SchedulerConfig> parse(std::string_view text, const ParseOptions& options) {
  SchedulerConfig out;
  std::vector<std::string> notes;
  const auto read = berth::config::read_text(text, {.file = options.file, .notes = &notes},
                                             [&](const Reader& root) { out = read_document(root, options); });
  if (!read) return std::unexpected(read.error());
  out.notes = std::move(notes);
  return out;
}

Result<SchedulerConfig> from_json(const json::Value& document, const ParseOptions& options) {
  Problems problems(options.file, {}, true);
  SchedulerConfig out = read_document(Reader(&document, "", problems), options);
  if (!problems.empty()) return invalid(problems.text());
  return out;
}

Result<SchedulerConfig> load(const std::string& path, ParseOptions options) {
  const auto text = berth::config::read_whole_file(path);
  if (!text) return std::unexpected(text.error());
  options.file = path;
  return parse(*text, options);
}

}  // namespace berth::scheduler::config
