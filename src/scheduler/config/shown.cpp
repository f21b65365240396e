#include "scheduler/config/shown.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "scheduler/config/sections.h"

namespace berth::scheduler::config {
namespace {

using placement::PluginUse;
using placement::Profile;

constexpr const char* kVersion = "kubescheduler.config.k8s.io/v1";
constexpr std::pair<const char*, std::vector<PluginUse> Profile::*> kShownPoints[] = {{"preEnqueue", &Profile::pre_enqueue},
                                                                                      {"queueSort", &Profile::queue_sort},
                                                                                      {"preFilter", &Profile::pre_filter},
                                                                                      {"filter", &Profile::filter},
                                                                                      {"postFilter", &Profile::post_filter},
                                                                                      {"preScore", &Profile::pre_score},
                                                                                      {"score", &Profile::score},
                                                                                      {"reserve", &Profile::reserve},
                                                                                      {"permit", &Profile::permit},
                                                                                      {"preBind", &Profile::pre_bind},
                                                                                      {"bind", &Profile::bind},
                                                                                      {"postBind", &Profile::post_bind}};

/// Go's time.Duration text: "10m0s", "1h0m0s", "1.5s", "100ms".
std::string duration_text(std::int64_t ms) {
  if (ms == 0) return "0s";
  if (ms < 1000) return fmt::format("{}ms", ms);
  const std::int64_t hours = ms / 3'600'000, minutes = ms / 60'000 % 60;
  const std::string seconds = fmt::format("{}s", static_cast<double>(ms % 60'000) / 1000);
  if (hours > 0) return fmt::format("{}h{}m{}", hours, minutes, seconds);
  return minutes > 0 ? fmt::format("{}m{}", minutes, seconds) : seconds;
}

json::Object plugin(std::string_view name, std::int64_t weight) { return {{"name", name}, {"weight", weight}}; }

/// One point of the file merged over the defaults (mergePluginSet).
json::Object merged_set(const std::vector<PluginUse>& defaults, const json::Value* custom) {
  static const json::Value kNothing = json::Object();
  const json::Value& own = custom != nullptr ? *custom : kNothing;
  std::set<std::string, std::less<>> disabled, replaced;
  json::Array shown_disabled, enabled;
  for (const json::Value& one : json::get_array(own, {"disabled"})) {
    const std::string name(json::get_string(one, {"name"}));
    disabled.insert(name);
    shown_disabled.push_back(plugin(name, 0));
  }
  std::map<std::string, std::int64_t, std::less<>> customs;
  for (const json::Value& one : json::get_array(own, {"enabled"}))
    customs.insert_or_assign(std::string(json::get_string(one, {"name"})), json::get_int(one, {"weight"}));
  if (!disabled.contains("*"))
    for (const PluginUse& use : defaults) {
      if (disabled.contains(use.name)) continue;
      const auto custom_use = customs.find(use.name);
      if (custom_use != customs.end()) replaced.insert(use.name);
      enabled.push_back(plugin(use.name, custom_use != customs.end() ? custom_use->second : use.weight));
    }
  for (const json::Value& one : json::get_array(own, {"enabled"}))
    if (!replaced.contains(json::get_string(one, {"name"})))
      enabled.push_back(plugin(json::get_string(one, {"name"}), json::get_int(one, {"weight"})));
  json::Object out;
  if (!enabled.empty()) out["enabled"] = std::move(enabled);
  if (!shown_disabled.empty()) out["disabled"] = std::move(shown_disabled);
  return out;
}

void set_default(json::Object& object, std::string_view field, json::Value value) {
  const json::Value* at = object.if_contains(field);
  if (at == nullptr || at->is_null()) object[field] = std::move(value);
}

json::Array default_resources() { return {plugin("cpu", 1), plugin("memory", 1)}; }

void default_weights(json::Object& holder) {
  const json::Value* at = holder.if_contains("resources");
  if (at == nullptr || !at->is_array() || at->get_array().empty()) holder["resources"] = default_resources();
  for (json::Value& one : holder["resources"].get_array())
    if (one.is_object() && json::get_int(one, {"weight"}) == 0) one.get_object()["weight"] = 1;
}

/// The plugins that take arguments, and how each one's are defaulted.
using Defaulting = void (*)(json::Object& args);
const std::map<std::string_view, Defaulting>& defaultings() {
  static const std::map<std::string_view, Defaulting> table = {
      {"DefaultPreemption",
       [](json::Object& args) {
         set_default(args, "minCandidateNodesPercentage", 10);
         set_default(args, "minCandidateNodesAbsolute", 100);
       }},
      {"DynamicResources",
       [](json::Object& args) {
         set_default(args, "filterTimeout", "10s");
         set_default(args, "bindingTimeout", "10m0s");
       }},
      {"InterPodAffinity",
       [](json::Object& args) {
         set_default(args, "hardPodAffinityWeight", 1);
         set_default(args, "ignorePreferredTermsOfExistingPods", false);
       }},
      {"NodeAffinity", [](json::Object&) {}},
      {"NodeResourcesBalancedAllocation", [](json::Object& args) { default_weights(args); }},
      {"NodeResourcesFit",
       [](json::Object& args) {
         set_default(args, "scoringStrategy", json::Object{{"type", "LeastAllocated"}});
         if (json::Value& strategy = args["scoringStrategy"]; strategy.is_object()) default_weights(strategy.get_object());
       }},
      {"PodTopologySpread", [](json::Object& args) { set_default(args, "defaultingType", "System"); }},
      {"VolumeBinding", [](json::Object& args) { set_default(args, "bindTimeoutSeconds", 600); }},
  };
  return table;
}

json::Array shown_args(const json::Value& profile, const json::Object& plugins, const SchedulerConfig& config) {
  std::map<std::string, json::Object> by_name;
  for (const json::Value& one : json::get_array(profile, {"pluginConfig"})) {
    const json::Value* args = json::find(one, {"args"});
    by_name.emplace(std::string(json::get_string(one, {"name"})),
                    args != nullptr && args->is_object() ? args->get_object() : json::Object());
  }
  for (const auto& [point, set] : plugins)
    for (const json::Value& one : json::get_array(set, {"enabled"}))
      if (const auto name = json::get_string(one, {"name"}); defaultings().contains(name)) by_name.try_emplace(std::string(name));
  json::Array out;
  for (auto& [name, args] : by_name) {
    if (const auto found = defaultings().find(name); found != defaultings().end()) {
      found->second(args);
      args["kind"] = name + "Args";
      args["apiVersion"] = kVersion;
    }
    if (name == "NodeResourcesFit")
      for (const Extender& extender : config.extenders)
        for (const auto& resource : extender.managed_resources)
          if (resource.ignored_by_scheduler) {
            set_default(args, "ignoredResources", json::Array());
            args["ignoredResources"].get_array().push_back(json::Value(resource.name));
          }
    out.push_back(json::Object{{"name", name}, {"args", std::move(args)}});
  }
  return out;
}

/// A profile of a file that has a v1 form.
json::Object shown_profile(const json::Value& profile, const SchedulerConfig& config, const std::string& scheduler_name) {
  json::Object plugins;
  for (const auto& [point, list] : kShownPoints) plugins[point] = merged_set({}, json::find(profile, {"plugins", point}));
  plugins["multiPoint"] = merged_set(default_multi_point(), json::find(profile, {"plugins", "multiPoint"}));
  plugins["placementGenerate"] = json::Object();
  plugins["placementScore"] = json::Object();
  json::Object out = {{"schedulerName", scheduler_name}};
  if (const json::Value* percentage = json::find(profile, {"percentageOfNodesToScore"})) out["percentageOfNodesToScore"] = *percentage;
  out["pluginConfig"] = shown_args(profile, plugins, config);
  out["plugins"] = std::move(plugins);
  return out;
}

/// Any profile by what it ended up as.
json::Object final_profile(const Profile& profile) {
  json::Object plugins;
  for (const auto& [point, list] : kShownPoints) {
    json::Array enabled;
    for (const PluginUse& use : profile.*list) enabled.push_back(plugin(use.name, use.weight));
    plugins[point] = enabled.empty() ? json::Object() : json::Object{{"enabled", std::move(enabled)}};
  }
  return {{"schedulerName", profile.scheduler_name}, {"plugins", std::move(plugins)}};
}

json::Array shown_extenders(const std::vector<Extender>& extenders) {
  json::Array out;
  for (const Extender& one : extenders) {
    json::Object shown = {{"urlPrefix", one.url_prefix}, {"httpTimeout", duration_text(one.http_timeout_ms)}};
    const auto text = [](json::Object& into, const char* field, const std::string& value) {
      if (!value.empty()) into[field] = value;
    };
    text(shown, "filterVerb", one.filter_verb);
    text(shown, "preemptVerb", one.preempt_verb);
    text(shown, "prioritizeVerb", one.prioritize_verb);
    text(shown, "bindVerb", one.bind_verb);
    if (one.weight != 0) shown["weight"] = one.weight;
    if (one.enable_https) shown["enableHTTPS"] = true;
    if (one.node_cache_capable) shown["nodeCacheCapable"] = true;
    if (one.ignorable) shown["ignorable"] = true;
    json::Object tls;
    if (one.insecure_skip_verify) tls["insecure"] = true;
    text(tls, "serverName", one.server_name);
    text(tls, "certFile", one.cert_file);
    text(tls, "keyFile", one.key_file);
    text(tls, "caFile", one.ca_file);
    if (!tls.empty()) shown["tlsConfig"] = std::move(tls);
    json::Array managed;
    for (const auto& resource : one.managed_resources) {
      json::Object item = {{"name", resource.name}};
      if (resource.ignored_by_scheduler) item["ignoredByScheduler"] = true;
      managed.push_back(std::move(item));
    }
    if (!managed.empty()) shown["managedResources"] = std::move(managed);
    out.push_back(std::move(shown));
  }
  return out;
}

}  // namespace

json::Value shown(const SchedulerConfig& config) {
  const auto& election = config.leader_election;
  json::Array profiles;
  const json::Array& given = json::get_array(config.source, {"profiles"});
  const bool has_v1_form = config.era == placement::Era::k136 && !config.is_policy;
  for (std::size_t i = 0; i < config.profiles.size(); ++i) {
    const Profile& profile = config.profiles[i];
    if (has_v1_form)
      profiles.push_back(shown_profile(i < given.size() ? given[i] : json::Value(json::Object()), config, profile.scheduler_name));
    else
      profiles.push_back(final_profile(profile));
  }
  const auto connection = [&](const char* field, json::Value fallback) {
    const json::Value* found = json::find(config.source, {"clientConnection", field});
    return found != nullptr && !found->is_null() ? *found : std::move(fallback);
  };
  json::Object out = {{"kind", "KubeSchedulerConfiguration"},
                      {"apiVersion", kVersion},
                      {"parallelism", config.parallelism},
                      {"leaderElection", json::Object{{"leaderElect", election.leader_elect},
                                                      {"leaseDuration", format_go_duration(election.times.lease_duration)},
                                                      {"renewDeadline", format_go_duration(election.times.renew_deadline)},
                                                      {"retryPeriod", format_go_duration(election.times.retry_period)},
                                                      {"resourceLock", election.resource_lock},
                                                      {"resourceName", lease_name(config)},
                                                      {"resourceNamespace", election.resource_namespace}}},
                      {"clientConnection", json::Object{{"kubeconfig", config.kubeconfig},
                                                        {"acceptContentTypes", connection("acceptContentTypes", "")},
                                                        {"contentType", connection("contentType", "application/vnd.kubernetes.protobuf")},
                                                        {"qps", connection("qps", 50)},
                                                        {"burst", connection("burst", 100)}}},
                      {"enableProfiling", config.enable_profiling},
                      {"enableContentionProfiling", config.enable_contention_profiling},
                      {"percentageOfNodesToScore", config.percentage_of_nodes_to_score},
                      {"podInitialBackoffSeconds", config.pod_initial_backoff_seconds},
                      {"podMaxBackoffSeconds", config.pod_max_backoff_seconds},
                      {"profiles", std::move(profiles)}};
  if (config.delay_cache_until_active) out["delayCacheUntilActive"] = true;
  if (!config.extenders.empty()) out["extenders"] = shown_extenders(config.extenders);
  return out;
}

}  // namespace berth::scheduler::config
