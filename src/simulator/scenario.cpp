#include "simulator/scenario.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "apiserver/patch/json_patch.h"
#include "autoscaler/options.h"
#include "model/quantity.h"
#include "node/simulated/devices.h"
#include "pools/catalogue.h"
#include "pools/documents.h"
#include "pools/node_pool.h"
#include "simulator/recording.h"
#include "simulator/scenario_parts.h"

namespace berth::simulator {
namespace {

constexpr std::array<std::string_view, 26> kFields = {
    "title",    "duration", "seed",      "start",       "from",       "replay",      "nodes",     "groups",       "workloads",
    "faults",   "changes",  "scheduler", "controllers", "autoscaler", "descheduler", "kubelet",   "behaviour",    "prices",
    "currency", "record",   "assert",    "compare",     "seeds",      "gangs",       "nodePools", "instanceTypes"};
/// Thursday, for want of a better day.
constexpr std::string_view kDefaultStart = "2026-01-01T00:00:00Z";

void read_components(const config::Reader& root, Scenario& out, const PartContext& context) {
  if (root.has("scheduler")) {
    if (auto config = read_scheduler(root.field("scheduler"), context)) out.scheduler = std::move(*config);
  } else {
    out.scheduler = scheduler::config::default_config(placement::Era::k136);
  }
  if (const auto at = root.field("controllers"); at.is_present() && at.expect_object()) {
    at.only({"flags"});
    std::vector<std::string> notes;
    auto options = controllers::parse_manager_flags(at.strings("flags"), {}, notes);
    if (!options)
      at.problem("flags", options.error().message);
    else
      out.controllers = std::move(*options);
  }
  if (const auto at = root.field("autoscaler"); at.is_present() && !(at.value()->is_bool() && !at.value()->get_bool())) {
    AutoscalerSetting setting;
    json::Object spec;
    if (at.is_object()) {
      at.only({"scanInterval", "spec"});
      setting.scan_interval = read_span(at.field("scanInterval")).value_or(setting.scan_interval);
      if (setting.scan_interval < std::chrono::seconds(1)) at.problem("scanInterval", "must be at least 1s");
      if (at.has("spec") && at.field("spec").expect_object()) spec = at.field("spec").value()->get_object();
    } else if (!at.value()->is_bool()) {
      at.problem("true, or a map with scanInterval and spec (a ClusterAutoscaler's)");
    }
    if (!spec.contains("scaleDown")) spec["scaleDown"] = json::Object{{"enabled", true}};
    setting.object = json::Object{{"apiVersion", "autoscaling.openshift.io/v1"},
                                  {"kind", "ClusterAutoscaler"},
                                  {"metadata", json::Object{{"name", "default"}}},
                                  {"spec", std::move(spec)}};
    if (const auto options = autoscaler::Options::parse(setting.object); !options) at.problem("spec", options.error().message);
    at.field("spec").skip();
    out.autoscaler = std::move(setting);
  }
  if (const auto at = root.field("descheduler"); at.is_present() && at.expect_object()) {
    at.only({"policy", "every"});
    DeschedulerSetting setting;
    setting.every = read_span(at.field("every")).value_or(setting.every);
    if (setting.every < std::chrono::seconds(1)) at.problem("every", "must be at least 1s");
    setting.policy = read_descheduler_policy(at.field("policy"), context);
    if (setting.policy) out.descheduler = std::move(setting);
  }
}

/// A class that a pool names and nobody gives boots as groups do.
void add_classes(const config::Reader& at, std::vector<json::Value>& objects) {
  std::set<std::string> known, wanted;
  for (const json::Value& object : objects)
    if (json::get_string(object, {"kind"}) == pools::kNodeClassKind) known.emplace(json::get_string(object, {"metadata", "name"}));
  for (const json::Value& object : objects)
    if (json::get_string(object, {"spec", "template", "spec", "nodeClassRef", "kind"}) == pools::kNodeClassKind)
      wanted.emplace(json::get_string(object, {"spec", "template", "spec", "nodeClassRef", "name"}));
  for (const std::string& name : wanted) {
    if (known.contains(name)) continue;
    at.note("nodePools", fmt::format("there is no {} \"{}\" among them: its machines boot in 60s", pools::kNodeClassKind, name));
    objects.push_back(json::Object{{"apiVersion", fmt::format("{}/v1alpha1", pools::kNodeClassGroup)},
                                   {"kind", pools::kNodeClassKind},
                                   {"metadata", json::Object{{"name", name}}},
                                   {"spec", json::Object{{"bootDelay", "60s"}}}});
  }
}

/// Where they stand in the scenario itself, each finding has its own line.
void check_pools(const config::Reader& root, const std::vector<json::Value>& objects) {
  const json::Value& given = *root.field("nodePools").value();
  const bool stand_here =
      given.is_array() && std::ranges::all_of(given.get_array(), [](const json::Value& one) { return one.is_object(); });
  for (std::size_t i = 0; i < objects.size(); ++i) {
    json::Value completed = objects[i];
    for (const pools::Finding& one : pools::complete(completed))
      stand_here ? root.problem(fmt::format("nodePools[{}].{}", i, one.path), one.what)
                 : root.problem("nodePools", fmt::format("{} {}: {}: {}", json::get_string(objects[i], {"kind"}),
                                                         json::get_string(objects[i], {"metadata", "name"}), one.path, one.what));
  }
}

void read_pools(const config::Reader& root, Scenario& out, const PartContext& context) {
  const auto types = root.field("instanceTypes");
  if (!root.has("nodePools")) {
    if (types.is_present()) root.problem("instanceTypes", "nobody buys of them: nodePools are missing");
    return types.skip();
  }
  PoolsSetting setting;
  setting.objects = read_objects(root.field("nodePools"), context.directory);
  check_pools(root, setting.objects);
  if (!types.is_present())
    return root.problem("instanceTypes", "required with nodePools: the file of what can be bought (docs/node-pools.md)");
  auto catalogue = types.value()->is_string()
                       ? pools::Catalogue::load(resolve(context.directory, std::string(json::as_view(*types.value()))))
                       : pools::Catalogue::parse(json::to_yaml(*types.value()), types.place());
  types.skip();
  if (!catalogue) return root.problem("instanceTypes", "\n" + catalogue.error().message);
  add_classes(root, setting.objects);
  setting.instance_types = std::make_shared<const pools::Catalogue>(std::move(*catalogue));
  out.pools = std::move(setting);
}

/// The nodes' behaviour in the words of `berth nodes --scenario`: rules for pods, fields of a KubeletConfiguration.
void read_behaviour(const config::Reader& root, Scenario& out) {
  json::Object document;
  if (root.has("kubelet")) document["kubelet"] = *root.field("kubelet").value();
  if (root.has("behaviour")) document["pods"] = *root.field("behaviour").value();
  root.field("kubelet").skip();
  if (document.empty()) return;
  std::vector<std::string> notes;
  auto parsed = node::simulated::Scenario::parse(json::serialize(document), out.file, &notes);
  if (!parsed) return root.problem(root.has("behaviour") ? "behaviour" : "kubelet", parsed.error().message);
  if (parsed->kubelet()) {
    out.fleet.kubelet = *parsed->kubelet();
    out.fleet.reserves_resources = true;
  }
  out.fleet.scenario = std::move(*parsed);
}

void check_names(const config::Reader& root, const Scenario& scenario) {
  std::set<std::string> names;
  for (const NodeSet& set : scenario.nodes)
    if (!names.insert(set.name).second) root.problem("nodes", fmt::format("two sets are named {}", set.name));
  names.clear();
  for (const NodeGroup& group : scenario.groups)
    if (!names.insert(group.nodes.name).second) root.problem("groups", fmt::format("two groups are named {}", group.nodes.name));
  names.clear();
  for (const Workload& workload : scenario.workloads)
    if (!names.insert(workload.ns + "/" + workload.name).second)
      root.problem("workloads", fmt::format("two are named {} in namespace {}", workload.name, workload.ns));
  if (scenario.nodes.empty() && scenario.groups.empty() && !scenario.pools && scenario.initial.empty() && scenario.replay.empty() &&
      !root.has("from"))
    root.problem("nodes", "required, unless a dump (from) or a recording (replay) has some");
  if (!scenario.groups.empty() && !scenario.autoscaler)
    root.note("groups", "there is no autoscaler: groups keep their size (autoscaler: true)");
}

void read_prices(const config::Reader& root, Scenario& out) {
  if (!root.has("prices")) return;
  for (const auto& [type, value] : root.field("prices").members())
    if (const auto price = read_rate(value)) out.prices[type] = *price;
}

template <typename T, typename Read>
void read_all(const config::Reader& at, std::vector<T>& into, const PartContext& context, Read read) {
  for (const config::Reader& item : at.items()) into.push_back(read(item, context));
}

Scenario read_scenario(const config::Reader& root, const std::string& file, const std::string& directory, std::vector<std::string>* notes) {
  Scenario out;
  out.file = file;
  if (!root.expect_object()) return root.problem("a scenario is a map"), out;
  root.only(kFields);
  out.title = root.string("title", std::filesystem::path(file).stem().string());
  const auto duration = read_span(root.field("duration"));
  if (!root.has("duration")) root.problem("duration", "required: how long the simulation lasts, such as 24h");
  if (duration && *duration <= Duration(0)) root.problem("duration", "must be more than 0s");
  out.duration = duration.value_or(std::chrono::hours(1));
  const PartContext context{directory, out.duration, notes};
  out.seed = static_cast<std::uint64_t>(read_count(root, "seed", 1));
  const std::string start = root.string("start", kDefaultStart);
  if (const auto time = parse_rfc3339(start))
    out.start = *time;
  else
    root.problem("start", fmt::format("\"{}\" is not a time such as 2026-01-01T00:00:00Z", start));
  read_all(root.field("nodes"), out.nodes, context, read_node_set);
  read_all(root.field("groups"), out.groups, context, read_node_group);
  read_components(root, out, context);
  read_pools(root, out, context);
  read_behaviour(root, out);
  read_prices(root, out);
  constexpr std::array<std::string_view, 3> kPolicies = {"berth", "kubernetes", "none"};
  const std::string policy = root.one_of("gangs", kPolicies, "berth");
  out.gangs = policy == "none" ? GangPolicy::kNone : policy == "kubernetes" ? GangPolicy::kKubernetes : GangPolicy::kBerth;
  out.currency = root.string("currency", out.pools ? out.pools->instance_types->currency : "");
  read_all(root.field("workloads"), out.workloads, context, read_workload);
  read_all(root.field("faults"), out.faults, context, read_fault);
  read_all(root.field("changes"), out.changes, context, read_change);
  read_all(root.field("assert"), out.checks, context, read_check);
  if (root.has("from")) {
    out.initial = read_objects(root.field("from"), directory);
    check_dump(root.field("from"), out.initial);
  }
  if (const auto at = root.field("replay"); at.is_present()) {
    if (at.is_object()) {
      at.only({"file", "as"});
      constexpr std::array<std::string_view, 2> kWays = {"pods", "workloads"};
      out.replay = resolve(directory, at.string("file"));
      out.replays_workloads = at.one_of("as", kWays, "pods") == "workloads";
    } else {
      out.replay = resolve(directory, root.string("replay"));
    }
  }
  if (const auto at = root.field("record"); at.is_present() && at.expect_object()) {
    at.only({"every", "events"});
    out.record.every = read_span(at.field("every")).value_or(Duration(0));
    if (at.has("every") && out.record.every < std::chrono::seconds(1)) at.problem("every", "must be at least 1s");
    out.record.events = at.boolean("events", true);
  }
  check_names(root, out);
  return out;
}

/// Each variant is the scenario with some fields said anew. Its problems are told under its name.
void read_variants(const config::Reader& root, const std::string& file, const std::string& directory, const std::string& text,
                   Comparison& out) {
  const config::Reader compare = root.field("compare");
  std::vector<config::Reader> items = compare.items();
  if (items.size() == 1) compare.problem("one variant is no comparison");
  for (const config::Reader& item : items) {
    if (!item.expect_object()) continue;
    item.only({"name", "set"});
    const std::string name = item.string("name");
    if (name.empty()) item.problem("name", "required");
    if (std::ranges::any_of(out.variants, [&](const Variant& other) { return other.name == name; })) item.problem("name", "twice");
    json::Value document = *root.value();
    document.as_object().erase("compare");
    if (item.has("set") && item.field("set").expect_object()) {
      apiserver::patch::apply_merge_patch(document, *item.field("set").value());
      item.field("set").skip();
    }
    config::Problems problems(fmt::format("{} (variant {})", file, name), config::line_finder(text));
    Scenario scenario = read_scenario(config::Reader(&document, "", problems), file, directory, nullptr);
    if (!problems.empty()) item.problem("set", "\n" + problems.text());
    out.variants.push_back({name, std::move(scenario)});
  }
}

}  // namespace

NodeSet read_node_set(const config::Reader& at, const PartContext&) {
  NodeSet out;
  if (!at.expect_object()) return out;
  at.only({"name", "count", "zones", "region", "capacity", "labels", "annotations", "taints", "instanceType", "price", "devices", "cpu",
           "memory", "pods"});
  out.name = at.string("name", "node");
  out.count = read_count(at, "count", 1);
  if (out.count > node::simulated::kMostNodes) at.problem("count", fmt::format("at most {} nodes", node::simulated::kMostNodes));
  out.zones = at.string_or_strings("zones");
  if (out.zones.empty()) out.zones = {"zone-a", "zone-b", "zone-c"};
  out.region = at.string("region", out.region);
  out.capacity = {{"cpu", "32"}, {"memory", "256Gi"}, {"pods", "110"}, {"ephemeral-storage", "200Gi"}};
  for (const auto& [name, text] : read_amounts(at.field("capacity"))) out.capacity[name] = text;
  for (const char* name : {"cpu", "memory", "pods"}) read_amount_into(out.capacity, at.field(name), name);
  out.labels = read_texts(at.field("labels"));
  out.annotations = read_texts(at.field("annotations"));
  if (at.has("devices")) {
    const std::string text = at.string("devices");
    if (const auto groups = node::simulated::parse_devices(text); !groups) at.problem("devices", groups.error().message);
    out.annotations[std::string(node::simulated::kDevicesAnnotation)] = text;
  }
  if (at.has("taints") && at.field("taints").value()->is_array()) out.taints = at.field("taints").value()->get_array();
  out.instance_type = at.string("instanceType", fmt::format("{}-{}", out.capacity["cpu"], out.capacity["memory"]));
  out.price_per_hour = read_rate(at.field("price")).value_or(0);
  return out;
}

NodeGroup read_node_group(const config::Reader& at, const PartContext& context) {
  NodeGroup out;
  if (!at.expect_object()) return out;
  at.only({"name", "min", "max", "size", "zone", "region", "capacity", "labels", "annotations", "taints", "instanceType", "price",
           "bootDelay", "cpu", "memory", "pods"});
  json::Value as_set = *at.value();
  for (const char* name : {"min", "max", "size", "zone", "bootDelay"}) as_set.as_object().erase(name);
  out.nodes = read_node_set(config::Reader(&as_set, at.path(), at.problems()), context);
  out.nodes.name = at.string("name");
  if (out.nodes.name.empty()) at.problem("name", "required");
  out.nodes.zones = {at.string("zone", "zone-a")};
  out.min = read_count(at, "min", 0);
  out.max = read_count(at, "max", std::max<std::int64_t>(out.min, 10));
  out.nodes.count = read_count(at, "size", out.min);
  if (out.max < out.min) at.problem("max", "is less than min");
  if (out.nodes.count > out.max) at.problem("size", "is more than max");
  out.boot_delay = read_span(at.field("bootDelay")).value_or(std::chrono::seconds(60));
  return out;
}

std::optional<scheduler::config::SchedulerConfig> read_scheduler(const config::Reader& at, const PartContext& context) {
  const bool is_file = at.value()->is_string();
  const std::string file = is_file ? resolve(context.directory, std::string(json::as_view(*at.value()))) : at.place();
  auto config = is_file ? scheduler::config::load(file, {file, {}}) : scheduler::config::parse(json::to_yaml(*at.value()), {file, {}});
  at.skip();
  if (!config) {
    at.problem("\n" + config.error().message);
    return std::nullopt;
  }
  if (!config->extenders.empty()) {
    at.problem("extenders cannot be asked in a simulation");
    return std::nullopt;
  }
  return std::move(*config);
}

std::shared_ptr<const descheduler::Policy> read_descheduler_policy(const config::Reader& at, const PartContext& context) {
  if (!at.is_present()) {
    at.problem("required: a DeschedulerPolicy, or its file's name");
    return nullptr;
  }
  auto policy = at.value()->is_string() ? descheduler::load_policy(resolve(context.directory, std::string(json::as_view(*at.value()))))
                                        : descheduler::parse_policy(json::to_yaml(*at.value()), at.place());
  at.skip();
  if (!policy) {
    at.problem("\n" + policy.error().message);
    return nullptr;
  }
  return std::make_shared<const descheduler::Policy>(std::move(*policy));
}

namespace {

/// A recorded day as a scenario: run again as it was, as long as it went on.
Result<Comparison> scenario_of_recording(const std::string& file) {
  const auto span = span_of_recording(file);
  if (!span) return std::unexpected(span.error());
  Scenario scenario;
  scenario.file = file;
  scenario.title = std::filesystem::path(file).stem().string();
  scenario.start = span->start;
  // Whole minutes, and one more to see how the last thing ends.
  scenario.duration = std::chrono::ceil<std::chrono::minutes>(span->length) + std::chrono::minutes(1);
  scenario.scheduler = scheduler::config::default_config(placement::Era::k136);
  scenario.replay = file;
  return Comparison{{{"", std::move(scenario)}}, 1, {}};
}

}  // namespace

Result<Comparison> parse_scenario(std::string_view text, const std::string& file, const std::string& directory) {
  Comparison out;
  if (is_recording(text)) return invalid(file + " is a recording: give the file's name instead");
  const auto read = config::read_text(text, {.file = file, .notes = &out.notes}, [&](const config::Reader& root) {
    out.variants.clear();
    Scenario base = read_scenario(root, file, directory, &out.notes);
    out.seeds = read_count(root, "seeds", 1);
    if (out.seeds == 0) root.problem("seeds", "must be at least 1");
    if (root.has("compare"))
      read_variants(root, file, directory, std::string(text), out);
    else
      out.variants.push_back({"", std::move(base)});
  });
  if (!read) return std::unexpected(read.error());
  return out;
}

Result<Comparison> load_scenario(const std::string& path) {
  if (std::ifstream in(path); in) {
    std::string line;
    std::getline(in, line);
    if (is_recording(line)) return scenario_of_recording(path);
  }
  const auto text = config::read_whole_file(path);
  if (!text) return std::unexpected(text.error());
  return parse_scenario(*text, path, std::filesystem::path(path).parent_path().string());
}

}  // namespace berth::simulator
