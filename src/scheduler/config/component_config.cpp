// KubeSchedulerConfiguration to profiles: defaults, per-point and multiPoint merging (pkg/scheduler/apis/config/v1/default_plugins.go,
// pkg/scheduler/framework/runtime/framework.go expandMultiPointPlugins), validation (apis/config/validation).
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "placement/framework.h"
#include "scheduler/config/plugin_args.h"
#include "scheduler/config/sections.h"

namespace berth::scheduler::config {
namespace {

using placement::Era;
using placement::PluginUse;
using placement::Points;
using placement::Profile;
using Uses = std::vector<PluginUse>;

struct Point {
  std::string_view name, type_name;
  Uses Profile::*list;
  bool Points::*takes_part;
};
constexpr Point kPoints[] = {
    {"preEnqueue", "PreEnqueuePlugin", &Profile::pre_enqueue, &Points::pre_enqueue},
    {"queueSort", "QueueSortPlugin", &Profile::queue_sort, &Points::queue_sort},
    {"preFilter", "PreFilterPlugin", &Profile::pre_filter, &Points::pre_filter},
    {"filter", "FilterPlugin", &Profile::filter, &Points::filter},
    {"postFilter", "PostFilterPlugin", &Profile::post_filter, &Points::post_filter},
    {"preScore", "PreScorePlugin", &Profile::pre_score, &Points::pre_score},
    {"score", "ScorePlugin", &Profile::score, &Points::score},
    {"reserve", "ReservePlugin", &Profile::reserve, &Points::reserve},
    {"permit", "PermitPlugin", &Profile::permit, &Points::permit},
    {"preBind", "PreBindPlugin", &Profile::pre_bind, &Points::pre_bind},
    {"bind", "BindPlugin", &Profile::bind, &Points::bind},
    {"postBind", "PostBindPlugin", &Profile::post_bind, &Points::post_bind},
};

/// Where a plugin takes part; nothing for one that does not exist.
Points points_of(std::string_view name, const Profile& profile) {
  const auto* registration = placement::find_plugin(name);
  if (registration == nullptr) return {};
  if (registration->build != nullptr) {  // What is wrong with its arguments was told where they stand.
    berth::config::Problems told("", [](const std::string&) { return 0; });
    const auto given = profile.args.own.find(name);
    const auto built = registration->build(Reader(given == profile.args.own.end() ? nullptr : &given->second, "", told), profile);
    return built != nullptr ? built->points() : Points{};
  }
  const auto plugin = placement::make_plugin(*registration, profile);
  return plugin ? (*plugin)->points() : Points{};
}

/// Plugins that left Kubernetes before the v1 configuration.
constexpr std::string_view kOldPlugins[] = {"NodeResourcesLeastAllocated",
                                            "NodeResourcesMostAllocated",
                                            "RequestedToCapacityRatio",
                                            "SelectorSpread",
                                            "NodePreferAvoidPods",
                                            "NodeLabel",
                                            "ServiceAffinity",
                                            "EBSLimits",
                                            "GCEPDLimits",
                                            "AzureDiskLimits",
                                            "CinderLimits"};
/// Those of them that v1 refuses by name wherever they stand.
constexpr std::string_view kInvalidInV1[] = {"AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"};

bool is_one_of(std::span<const std::string_view> list, std::string_view name) { return std::ranges::find(list, name) != list.end(); }

std::string plugin_suggestion(std::string_view name) {
  std::vector<std::string_view> names;
  for (const auto& one : placement::plugin_registry()) names.push_back(one.name);
  return suggestion(name, names);
}

/// The name that was meant; or how one comes by a plugin of one's own.
std::string where_from(std::string_view name) {
  const std::string meant = plugin_suggestion(name);
  return meant.empty() ? "; a plugin of your own is loaded first: berth --plugin FILE.so COMMAND" : meant;
}

bool contains(const Uses& uses, std::string_view name) {
  return std::ranges::any_of(uses, [&](const auto& one) { return one.name == name; });
}

/// `enabled` and `disabled` of one point.
struct PluginSet {
  Uses enabled;
  std::set<std::string, std::less<>> disabled;
};

/// A file may switch off what another release had; a slip of the pen would leave on what was meant.
void check_disabled(const Reader& item, const std::string& name) {
  if (name == "*" || placement::find_plugin(name) != nullptr || is_one_of(kOldPlugins, name)) return;
  const std::string meant = plugin_suggestion(name);
  if (meant.empty())
    item.note("name", fmt::format("there is no plugin \"{}\" here that could be disabled", name));
  else
    item.problem("name", fmt::format("plugin \"{}\" does not exist{}", name, meant), Refusal::kOfBerth);
}

PluginSet read_set(const Reader& at, bool has_old_plugins) {
  PluginSet out;
  if (!at.expect_object()) return out;
  at.only({"enabled", "disabled"});
  for (const auto& item : at.field("enabled").items()) {
    if (!item.expect_object()) continue;
    item.only({"name", "weight"});
    PluginUse use{item.string("name"), item.integer("weight", 0)};
    if (!has_old_plugins && is_one_of(kOldPlugins, use.name)) {
      item.problem("name", fmt::format("plugin \"{}\" does not exist in kubescheduler.config.k8s.io/v1", use.name));
      continue;
    }
    if (placement::find_plugin(use.name) == nullptr) {
      item.problem("name", use.name.empty() ? std::string("Required value: a plugin has a name")
                                            : fmt::format("plugin \"{}\" does not exist{}", use.name, where_from(use.name)));
      continue;
    }
    if (use.weight < 0) item.problem("weight", fmt::format("Invalid value: {}: a weight must be positive", use.weight));
    if (use.weight > INT64_MAX / 100 / 64)
      item.problem("weight", fmt::format("Invalid value: {}: total score of Score plugins could overflow", use.weight));
    if (contains(out.enabled, use.name)) item.problem("name", fmt::format("plugin \"{}\" already registered", use.name));
    out.enabled.push_back(std::move(use));
  }
  for (const auto& item : at.field("disabled").items()) {
    if (!item.expect_object()) continue;
    item.only({"name", "weight"});
    const std::string name = item.string("name");
    check_disabled(item, name);
    out.disabled.insert(name);
  }
  return out;
}

/// mergePluginSet: the custom entry replaces the default in its place (since 1.22) or is appended.
Uses merge(const Uses& defaults, const PluginSet& custom, bool replaces_in_place) {
  Uses out;
  std::set<std::string_view> replaced;
  if (!custom.disabled.contains("*")) {
    for (const auto& use : defaults) {
      if (custom.disabled.contains(use.name)) continue;
      const auto own = std::ranges::find(custom.enabled, use.name, &PluginUse::name);
      if (replaces_in_place && own != custom.enabled.end()) {
        out.push_back(*own);
        replaced.insert(own->name);
      } else {
        out.push_back(use);
      }
    }
  }
  for (const auto& use : custom.enabled)
    if (!replaced.contains(use.name)) out.push_back(use);
  return out;
}

/// One point's final list: what both name keeps the point's order and comes first, then multiPoint's, then the point's own.
Uses expand(const Uses& multi, const PluginSet& own, const Uses& enabled, bool Points::*takes_part, const Profile& profile) {
  if (own.disabled.contains("*")) return enabled;
  Uses from_multi;
  std::set<std::string_view> overrides;
  for (const auto& use : multi) {
    if (!(points_of(use.name, profile).*takes_part) || own.disabled.contains(use.name)) continue;
    if (contains(enabled, use.name)) {
      overrides.insert(use.name);
    } else {
      from_multi.push_back(use);
    }
  }
  Uses out;
  for (const auto& use : enabled)
    if (overrides.contains(use.name)) out.push_back(use);
  out.insert(out.end(), from_multi.begin(), from_multi.end());
  for (const auto& use : enabled)
    if (!overrides.contains(use.name)) out.push_back(use);
  return out;
}

enum class Version { kV1Alpha1, kV1Beta1, kV1Beta2, kV1Beta3, kV1 };

class ComponentReader {
 public:
  ComponentReader(const Reader& document, std::optional<Era> era) : document_(document), forced_era_(era) {}

  SchedulerConfig read() {
    document_.only({"kind",
                    "apiVersion",
                    "parallelism",
                    "leaderElection",
                    "clientConnection",
                    "percentageOfNodesToScore",
                    "podInitialBackoffSeconds",
                    "podMaxBackoffSeconds",
                    "profiles",
                    "extenders",
                    "enableProfiling",
                    "enableContentionProfiling",
                    "healthzBindAddress",
                    "metricsBindAddress",
                    "delayCacheUntilActive",
                    "disablePreemption",
                    "schedulerName",
                    "hardPodAffinitySymmetricWeight",
                    "algorithmSource",
                    "bindTimeoutSeconds",
                    "metadata"});
    read_version();
    read_process_settings();
    out_.extenders = read_extenders(document_.field("extenders"));
    read_profiles();
    return std::move(out_);
  }

 private:
  /// Arguments may say what they are; then it must be what the plugin takes.
  static void check_args_type(const std::string& plugin, const Reader& args) {
    if (!args.is_object()) return;
    constexpr std::string_view kGroup = "kubescheduler.config.k8s.io/";
    const std::string kind = args.string("kind"), version = args.string("apiVersion"), wanted = plugin + "Args";
    const bool has_kind = kind.empty() || kind == wanted, has_version = version.empty() || version.starts_with(kGroup);
    if (has_kind && has_version) return;
    args.problem(has_kind ? "apiVersion" : "kind",
                 fmt::format("decoding args for plugin {}: no kind \"{}\" is registered for version \"{}\"", plugin,
                             kind.empty() ? wanted : kind, version.empty() ? "kubescheduler.config.k8s.io/v1" : version));
  }

  void read_version() {
    const std::string text = document_.string("apiVersion");
    constexpr std::pair<std::string_view, Version> kVersions[] = {{"kubescheduler.config.k8s.io/v1", Version::kV1},
                                                                  {"kubescheduler.config.k8s.io/v1beta3", Version::kV1Beta3},
                                                                  {"kubescheduler.config.k8s.io/v1beta2", Version::kV1Beta2},
                                                                  {"kubescheduler.config.k8s.io/v1beta1", Version::kV1Beta1},
                                                                  {"kubescheduler.config.k8s.io/v1alpha1", Version::kV1Alpha1},
                                                                  {"componentconfig/v1alpha1", Version::kV1Alpha1}};
    const auto at = std::ranges::find(kVersions, std::string_view(text), &std::pair<std::string_view, Version>::first);
    if (at == std::end(kVersions)) {
      std::vector<std::string_view> names;
      for (const auto& one : kVersions) names.push_back(one.first);
      document_.problem("apiVersion", fmt::format("no kind \"KubeSchedulerConfiguration\" is registered for version \"{}\"{}", text,
                                                  suggestion(text, names)));
    } else {
      version_ = at->second;
    }
    const bool is_old = version_ == Version::kV1Beta1 || version_ == Version::kV1Alpha1;
    out_.era = forced_era_.value_or(is_old ? Era::k120 : Era::k136);
  }

  void read_process_settings() {
    const auto& d = document_;
    out_.parallelism = d.integer("parallelism", 16);
    if (out_.parallelism <= 0)
      d.problem("parallelism", fmt::format("Invalid value: {}: should be an integer value greater than zero", out_.parallelism));
    out_.percentage_of_nodes_to_score = d.integer("percentageOfNodesToScore", 0);
    check_percentage(d, out_.percentage_of_nodes_to_score);
    out_.pod_initial_backoff_seconds = d.integer("podInitialBackoffSeconds", 1);
    out_.pod_max_backoff_seconds = d.integer("podMaxBackoffSeconds", 10);
    if (out_.pod_initial_backoff_seconds <= 0)
      d.problem("podInitialBackoffSeconds", fmt::format("Invalid value: {}: must be greater than 0", out_.pod_initial_backoff_seconds));
    if (out_.pod_max_backoff_seconds < out_.pod_initial_backoff_seconds)
      d.problem("podMaxBackoffSeconds",
                fmt::format("Invalid value: {}: must be greater than or equal to PodInitialBackoffSeconds", out_.pod_max_backoff_seconds));
    out_.enable_profiling = d.boolean("enableProfiling", true);
    out_.enable_contention_profiling = d.boolean("enableContentionProfiling", true);
    out_.delay_cache_until_active = d.boolean("delayCacheUntilActive", false);
    for (const std::string_view name : {"healthzBindAddress", "metricsBindAddress"}) static_cast<void>(d.string(name));
    d.without_effect({"parallelism"}, "decisions are made one after the other");
    d.without_effect({"percentageOfNodesToScore"}, "every node is looked at");
    d.without_effect({"enableProfiling", "enableContentionProfiling"}, "the port serves no profiles");
    d.without_effect({"delayCacheUntilActive"}, "caches are filled while another scheduler leads");
    d.without_effect({"healthzBindAddress", "metricsBindAddress"}, "--bind-address and --secure-port say where both are served");
    d.without_effect({"bindTimeoutSeconds"}, "VolumeBinding's arguments have it");
    read_leader_election(d.field("leaderElection"));
    const Reader client = d.field("clientConnection");
    if (!client.expect_object()) return;
    client.only({"kubeconfig", "acceptContentTypes", "contentType", "qps", "burst"});
    out_.kubeconfig = client.string("kubeconfig");
    for (const std::string_view name : {"acceptContentTypes", "contentType"}) static_cast<void>(client.string(name));
    static_cast<void>(client.number("qps", 50));
    if (const std::int64_t burst = client.integer("burst", 100); burst < 0)
      client.problem("burst", fmt::format("Invalid value: {}: must be non-negative", burst));
    client.without_effect({"acceptContentTypes", "contentType", "qps", "burst"}, "requests are not throttled, and JSON");
  }

  void read_leader_election(const Reader& at) {
    if (!at.expect_object()) return;
    at.only({"leaderElect", "leaseDuration", "renewDeadline", "retryPeriod", "resourceLock", "resourceName", "resourceNamespace",
             "lockObjectName", "lockObjectNamespace"});
    auto& out = out_.leader_election;
    out.leader_elect = at.boolean("leaderElect", true);
    // Zero and empty mean the default, as in Kubernetes.
    using client::ElectionTimes;
    for (const auto& [name, which] :
         {std::pair("leaseDuration", &ElectionTimes::lease_duration), std::pair("renewDeadline", &ElectionTimes::renew_deadline),
          std::pair("retryPeriod", &ElectionTimes::retry_period)})
      if (const std::int64_t given = at.duration_ms(name, 0); given != 0) out.times.set(which, std::chrono::milliseconds(given));
    const auto text = [&](std::string_view name, const std::string& fallback) {
      const std::string given = at.string(name);
      return given.empty() ? fallback : given;
    };
    out.resource_lock = text("resourceLock", "leases");
    out.resource_name = text("resourceName", text("lockObjectName", ""));
    out.resource_namespace = text("resourceNamespace", text("lockObjectNamespace", "kube-system"));
    if (!out.leader_elect) return;
    if (out.times.lease_duration <= Duration::zero()) at.problem("leaseDuration", "Invalid value: must be greater than zero");
    if (out.times.renew_deadline <= Duration::zero()) at.problem("renewDeadline", "Invalid value: must be greater than zero");
    if (out.times.retry_period <= Duration::zero()) at.problem("retryPeriod", "Invalid value: must be greater than zero");
    if (out.times.lease_duration <= out.times.renew_deadline)
      at.problem("leaseDuration", "Invalid value: LeaseDuration must be greater than RenewDeadline");
    if (out.resource_lock != "leases" && version_ != Version::kV1) at.note("resourceLock", "has no effect here: it is a Lease");
    if (out.resource_lock != "leases" && version_ == Version::kV1)
      at.problem("resourceLock", fmt::format("Invalid value: \"{}\": resourceLock value must be \"leases\"", out.resource_lock));
  }

  static void check_percentage(const Reader& at, std::int64_t value) {
    if (value < 0 || value > 100)
      at.problem("percentageOfNodesToScore", fmt::format("Invalid value: {}: not in valid range [0-100]", value));
  }

  void read_profiles() {
    const auto items = document_.field("profiles").items();
    std::set<std::string> names;
    for (const auto& item : items) {
      if (!item.expect_object()) continue;
      Profile profile = read_profile(item, items.size() == 1);
      if (!names.insert(profile.scheduler_name).second)
        item.problem("schedulerName", fmt::format("Duplicate value: \"{}\"", profile.scheduler_name));
      if (!out_.profiles.empty() && profile.queue_sort != out_.profiles[0].queue_sort)
        item.problem("plugins.queueSort", "Invalid value: queueSort must be the same for all profiles");
      out_.profiles.push_back(std::move(profile));
    }
    if (out_.profiles.empty()) out_.profiles.push_back(plain_profile());
    if (document_.boolean("disablePreemption", false))
      for (auto& profile : out_.profiles) disable_preemption(profile);
  }

  /// A document without profiles; with v1alpha1's own fields.
  Profile plain_profile() const {
    const Reader source = document_.field("algorithmSource");
    source.expect_object();
    source.only({"provider", "policy"});
    const std::string provider = source.string("provider");
    Profile out = out_.era == Era::k120 && provider == "ClusterAutoscalerProvider" ? placement::cluster_autoscaler_profile()
                                                                                   : placement::default_profile(out_.era);
    if (!provider.empty() && provider != "DefaultProvider" && provider != "ClusterAutoscalerProvider")
      document_.problem("algorithmSource.provider",
                        fmt::format("algorithm provider \"{}\" is not registered; there are \"DefaultProvider\" and "
                                    "\"ClusterAutoscalerProvider\"",
                                    provider));
    out.scheduler_name = document_.string("schedulerName", "default-scheduler");
    out.args.inter_pod_affinity.hard_pod_affinity_weight = document_.integer("hardPodAffinitySymmetricWeight", 1);
    out.percentage_of_nodes_to_score = out_.percentage_of_nodes_to_score;
    return out;
  }

  Profile read_profile(const Reader& item, bool is_only_one) {
    item.only({"schedulerName", "percentageOfNodesToScore", "plugins", "pluginConfig", "disablePreemption"});
    Profile profile = placement::default_profile(out_.era);
    // Of several profiles each needs its own name.
    profile.scheduler_name = item.string("schedulerName", is_only_one ? "default-scheduler" : "");
    if (profile.scheduler_name.empty()) item.problem("schedulerName", "Required value: a profile's scheduler name");
    profile.percentage_of_nodes_to_score = item.integer("percentageOfNodesToScore", out_.percentage_of_nodes_to_score);
    check_percentage(item, profile.percentage_of_nodes_to_score);
    item.without_effect({"percentageOfNodesToScore"}, "every node is looked at");
    std::set<std::string> configured;
    for (const auto& config : item.field("pluginConfig").items()) {
      if (!config.expect_object()) continue;
      config.only({"name", "args"});
      const std::string name = config.string("name");
      if (!configured.insert(name).second) config.problem(fmt::format("Duplicate value: repeated config for plugin {}", name));
      const bool is_v1 = version_ == Version::kV1 && out_.era != Era::k120;
      if (is_v1 && is_one_of(kInvalidInV1, name))
        config.problem(fmt::format("Invalid value: \"{}\": was invalid in version \"kubescheduler.config.k8s.io/v1\"", name));
      // Kubernetes accepts what a plugin is told that is not there. One of another build is told; a slip of the pen is refused.
      if (const std::string meant = plugin_suggestion(name);
          placement::find_plugin(name) == nullptr && !is_one_of(kOldPlugins, name) && !meant.empty()) {
        config.problem("name", fmt::format("plugin \"{}\" does not exist{}", name, meant), Refusal::kOfBerth);
        continue;
      }
      if (placement::find_plugin(name) == nullptr || (is_v1 && is_one_of(kOldPlugins, name))) {
        config.note("name", fmt::format("there is no plugin \"{}\" in this version: its arguments have no effect", name));
        config.skip();
        continue;
      }
      check_args_type(name, config.field("args"));
      read_plugin_args(name, config.field("args"), out_.era, profile.args);
    }
    read_plugins(item.field("plugins"), profile);
    if (profile.has(profile.score, "RequestedToCapacityRatio") && profile.args.ratio.shape.empty())
      item.problem("pluginConfig", "Required value: plugin RequestedToCapacityRatio needs a shape of at least one point");
    if (item.boolean("disablePreemption", false)) disable_preemption(profile);
    return profile;
  }

  void read_plugins(const Reader& plugins, Profile& profile) {
    if (!plugins.expect_object()) return;
    const bool has_multi_point = (version_ == Version::kV1 || version_ == Version::kV1Beta3) && out_.era != Era::k120;
    if (has_multi_point) {
      plugins.only({"multiPoint", "preEnqueue", "queueSort", "preFilter", "filter", "postFilter", "preScore", "score", "reserve", "permit",
                    "preBind", "bind", "postBind"});
    } else {
      plugins.only(
          {"queueSort", "preFilter", "filter", "postFilter", "preScore", "score", "reserve", "permit", "preBind", "bind", "postBind"});
    }
    const bool has_old_plugins = version_ != Version::kV1 || out_.era == Era::k120;
    const PluginSet custom_multi = read_set(plugins.field("multiPoint"), has_old_plugins);
    const Uses multi = merge(default_multi_point(), custom_multi, true);
    for (const auto& point : kPoints) {
      const Reader at = plugins.field(point.name);
      const PluginSet own = read_set(at, has_old_plugins);
      for (const auto& use : own.enabled) {
        if (!(points_of(use.name, profile).*point.takes_part))
          at.problem("enabled", fmt::format("plugin \"{}\" does not extend {} plugin", use.name, point.type_name));
      }
      Uses& list = profile.*point.list;
      list =
          has_multi_point ? expand(multi, own, merge({}, own, true), point.takes_part, profile) : merge(list, own, out_.era != Era::k120);
      if (point.name == "score") {
        // A weight of zero is not permitted: a plugin that scores is switched off by disabling it.
        for (auto& use : list) use.weight = std::max<std::int64_t>(use.weight, 1);
      } else {
        for (auto& use : list) use.weight = 0;
      }
      for (std::size_t i = 0; i < list.size(); ++i)
        for (std::size_t j = 0; j < i; ++j)
          if (list[i].name == list[j].name)
            at.problem("enabled", fmt::format("plugin \"{}\" already registered as \"{}\"", list[i].name, list[i].name));
    }
    if (profile.queue_sort.size() != 1)
      plugins.problem("queueSort", fmt::format("only one queue sort plugin can be enabled, got {}", profile.queue_sort.size()));
    if (profile.bind.empty())
      plugins.problem("bind", "at least one bind plugin is needed for profile with scheduler name \"" + profile.scheduler_name + "\"");
  }

  const Reader& document_;
  std::optional<Era> forced_era_;
  Version version_ = Version::kV1;
  SchedulerConfig out_;
};

}  // namespace

const std::vector<placement::PluginUse>& default_multi_point() {
  static const std::vector<placement::PluginUse> kPlugins = {
      {"SchedulingGates", 0},
      {"PrioritySort", 0},
      {"NodeUnschedulable", 0},
      {"NodeName", 0},
      {"TaintToleration", 3},
      {"NodeAffinity", 2},
      {"NodePorts", 0},
      {"NodeResourcesFit", 1},
      {"VolumeRestrictions", 0},
      {"NodeVolumeLimits", 0},
      {"VolumeBinding", 0},
      {"VolumeZone", 0},
      {"PodTopologySpread", 2},
      {"InterPodAffinity", 2},
      {"DynamicResources", 2},
      {"DefaultPreemption", 0},
      {"NodeResourcesBalancedAllocation", 1},
      {"ImageLocality", 1},
      {"DefaultBinder", 0},
      {"NodeDeclaredFeatures", 0},
  };
  return kPlugins;
}

SchedulerConfig read_component_config(const Reader& document, std::optional<Era> era) { return ComponentReader(document, era).read(); }

}  // namespace berth::scheduler::config
