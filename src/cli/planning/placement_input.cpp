#include "cli/planning/placement_input.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <set>

#include "cli/planning/dumps.h"
#include "cli/planning/live_objects.h"
#include "placement/cluster_kinds.h"

namespace berth::cli {
namespace {

bool is_of_groups(const json::Value& object) {
  return json::get_string(object, {"kind"}) == "PodGroup" || !json::get_string(object, {"spec", "schedulingGroup", "podGroupName"}).empty();
}

/// Sentences on what could not be read.
Result<std::vector<std::string>> read_live(const ConnectionFlags& flags, placement::Cluster& cluster, std::vector<json::Value>& grouped,
                                           std::optional<model::ApiStatus>* refused) {
  auto session = Session::open(flags);
  if (!session) return std::unexpected(session.error());
  std::vector<std::pair<std::string, std::string>> wanted;
  for (const placement::ClusterResource& one : placement::kClusterResources) wanted.emplace_back(one.group, one.plural);
  auto read = read_live_objects((*session)->client(), wanted, [&](const json::Value& item) {
    cluster.upsert(item);
    if (is_of_groups(item)) grouped.push_back(item);
  });
  if (!read) return std::unexpected(live_error(read.error(), refused));
  return std::move(read->unread);
}

}  // namespace

void PlacementFlags::add_to(CLI::App& app, bool has_scheduler_policy) {
  connection.add_to(app);
  app.add_option("--cluster", cluster_files,
                 "Dumps of a cluster instead of a live one: `kubectl get nodes,pods,… -A -o yaml` or json; \"-\" is standard input");
  app.add_option("--config", config_file,
                 "The scheduler's configuration: KubeSchedulerConfiguration or Policy (default: what the running scheduler has published)");
  if (has_scheduler_policy) app.add_option("--policy-config-file", policy_file, "The same, as the scheduler's flag for a Policy is called");
  compatibility.add_to(app, "The scheduler's plugins and formulas");
}

std::string PlacementInput::profile_for(std::string_view scheduler) const {
  const std::string wanted(scheduler.empty() ? std::string_view("default-scheduler") : scheduler);
  return profiles.contains(wanted) ? wanted : config.profiles[0].scheduler_name;
}

placement::Profiles PlacementInput::profiles_for_all() const {
  placement::Profiles out = profiles;
  out.set_otherwise(out.find(config.profiles[0].scheduler_name));
  return out;
}

const placement::FrameworkPtr& PlacementInput::framework_for(const placement::PodInfo& pod) const {
  const std::string name = profile_for(pod.view().scheduler_name);
  if (!pod.view().scheduler_name.empty() && name != pod.view().scheduler_name)
    std::fprintf(stderr, "warning: no configuration of the pod's scheduler \"%s\" is known; using that of \"%s\"\n",
                 pod.view().scheduler_name.c_str(), name.c_str());
  return profiles.find(name);
}

std::string configuration_words(const PlacementInput& input, std::string_view scheduler) {
  const std::string name = input.profile_for(scheduler);
  return fmt::format("{}: {}", name, input.sources.find(name)->second);
}

void tell_configuration(const PlacementInput& input, std::string_view scheduler) {
  std::fprintf(stderr, "note: by the configuration of %s\n", configuration_words(input, scheduler).c_str());
  tell_notes(input);
}

void tell_notes(const PlacementInput& input) {
  for (const std::string& note : input.notes) std::fprintf(stderr, "note: %s\n", note.c_str());
}

void warn_of_ignored(const PlacementInput& input) {
  constexpr std::size_t kMost = 20;
  for (std::size_t i = 0; i < std::min(kMost, input.ignored.size()); ++i)
    std::fprintf(stderr, "warning: ignored %s\n", input.ignored[i].c_str());
  if (input.ignored.size() > kMost) std::fprintf(stderr, "warning: ignored %zu more\n", input.ignored.size() - kMost);
}

Result<std::vector<json::Value>> read_objects(const std::vector<std::string>& files) {
  const auto dumps = Dumps::find(files);
  if (!dumps) return std::unexpected(dumps.error());
  std::vector<json::Value> out;
  auto read = dumps->for_each([&](json::Value object, const std::string&) { out.push_back(std::move(object)); });
  if (!read) return std::unexpected(read.error());
  return out;
}

Result<PlacementInput> read_placement_config(const PlacementFlags& flags, const KnownSchedulers& known, std::string_view scheduler) {
  const std::optional<placement::Era> era = flags.compatibility.era();
  auto config = scheduler::config::default_config(era.value_or(placement::Era::k136));
  PlacementInput out{{}, {}, {}, {}, {}, false, placement::Cluster(placement::Era::k136), {}, {}, {}};
  std::string source = era ? (*era == placement::Era::k120 ? "the defaults of 1.20" : "the defaults of 1.36")
                           : "the defaults, for no scheduler has published its own";
  if (!flags.config_file.empty() && !flags.policy_file.empty()) return invalid("--config and --policy-config-file: give one of them");
  if (const std::string& file = flags.config_file.empty() ? flags.policy_file : flags.config_file; !file.empty()) {
    auto loaded = scheduler::config::load(file, {.file = file, .era = era});
    if (!loaded) return std::unexpected(loaded.error());
    config = std::move(*loaded);
    source = file;
  } else if (!flags.has_configuration()) {
    out.notes = known.problems;
    auto of = known.schedulers.find(scheduler);
    if (of == known.schedulers.end()) of = known.schedulers.find("default-scheduler");
    if (of != known.schedulers.end()) {
      config = of->second.config;
      source = KnownSchedulers::source_of(of->first);
      out.budgets_are_hard = of->second.budgets_are_hard;
    }
  }
  out.config = std::move(config);
  out.cluster = placement::Cluster(out.config.era);
  const auto add = [&](const placement::Profile& profile, const std::string& from) -> Result<void> {
    auto framework = placement::Framework::create(profile);
    if (!framework) return std::unexpected(framework.error());
    if (out.profiles.add(std::move(*framework))) out.sources.emplace(profile.scheduler_name, from);
    return {};
  };
  for (const auto& profile : out.config.profiles)
    if (auto added = add(profile, source); !added) return std::unexpected(added.error());
  if (flags.has_configuration()) return out;
  // The other schedulers of the cluster. A cluster is looked at by one release's rules.
  for (const auto& [name, published] : known.schedulers) {
    if (out.profiles.contains(name)) continue;
    if (published.config.era != out.config.era) {
      out.notes.push_back(
          fmt::format("scheduler {} follows another Kubernetes release than {}; its pods are looked at by the latter's rules", name,
                      out.config.profiles[0].scheduler_name));
      continue;
    }
    if (auto added = add(*published.config.profile(name), KnownSchedulers::source_of(name)); !added) return std::unexpected(added.error());
  }
  return out;
}

namespace {

/// What a file says without effect; of published configurations the scheduler has said it.
void warn_of_configuration(const PlacementFlags& flags, const PlacementInput& input) {
  if (!flags.has_configuration()) return;
  for (const std::string& note : input.config.notes) std::fprintf(stderr, "warning: %s\n", note.c_str());
}

}  // namespace

Result<PlacementInput> read_placement_input(const PlacementFlags& flags, std::string_view scheduler,
                                            std::optional<model::ApiStatus>* refused) {
  if (flags.cluster_files.empty()) {
    KnownSchedulers known;
    if (!flags.has_configuration()) {
      auto session = Session::open(flags.connection);
      if (!session) return std::unexpected(session.error());
      known = read_known_schedulers((*session)->client());
    }
    auto input = read_placement_config(flags, known, scheduler);
    if (!input) return input;
    warn_of_configuration(flags, *input);
    auto unread = read_live(flags.connection, input->cluster, input->grouped, refused);
    if (!unread) return std::unexpected(unread.error());
    for (const std::string& sentence : *unread) std::fprintf(stderr, "warning: %s\n", sentence.c_str());
    input->unread = std::move(*unread);
    return input;
  }
  auto objects = read_objects(flags.cluster_files);
  if (!objects) return std::unexpected(objects.error());
  auto input = read_placement_config(flags, known_schedulers_of(*objects), scheduler);
  if (!input) return input;
  warn_of_configuration(flags, *input);
  PlacementInput& out = *input;
  std::set<std::string> seen;
  for (const auto& object : *objects) {
    const std::string kind(json::get_string(object, {"kind"}));
    const std::string name(json::get_string(object, {"metadata", "name"}));
    if (kind.empty()) {
      out.ignored.emplace_back("a document without kind");
      continue;
    }
    if (name.empty()) {
      out.ignored.push_back(fmt::format("a {} without a name", kind));
      continue;
    }
    const std::string ns(json::get_string(object, {"metadata", "namespace"}));
    const std::string what = ns.empty() ? fmt::format("{} {}", kind, name) : fmt::format("{} {}/{}", kind, ns, name);
    if (is_of_groups(object)) out.grouped.push_back(object);
    if (out.cluster.upsert(object) && !seen.insert(what).second) out.ignored.push_back(fmt::format("all but the last {}", what));
  }
  for (std::uint32_t i = 0; i < out.cluster.slot_count(); ++i) {
    const auto* node = out.cluster.node(placement::NodeIndex{i});
    if (node == nullptr || node->node != nullptr) continue;
    for (const auto& pod : node->pods) out.ignored.push_back(fmt::format("Pod {}: its node {} is not there", pod->key, node->name));
  }
  out.objects = std::move(*objects);
  return input;
}

}  // namespace berth::cli
