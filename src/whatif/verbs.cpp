#include "whatif/verbs.h"

#include <fmt/format.h>

#include <algorithm>

#include "whatif/components.h"
#include "whatif/purchases.h"
#include "whatif/steps.h"

namespace berth::whatif {
namespace {

using Nodes = std::vector<std::string>;
using V = const json::Value&;

/// A text, a list of them, or whatever else names something.
std::string names_in(V value) {
  if (value.is_string()) return std::string(json::as_view(value));
  if (!value.is_array()) return value.is_object() ? "nodes like that" : json::serialize(value);
  std::string out;
  for (V one : value.get_array()) out += (out.empty() ? "" : ", ") + names_in(one);
  return out;
}

const json::Value& field_of(V change, std::string_view name) {
  static const json::Value kNone;
  const json::Value* out = json::find(change, name);
  return out == nullptr ? kNone : *out;
}

std::string added_words(V change, V what) {
  const std::int64_t count = json::get_int(change, {"count"}, 1);
  if (!what.is_string()) return count == 1 ? "1 node is added" : fmt::format("{} nodes are added", count);
  return fmt::format("{} × {} {} added", count, json::as_view(what), count == 1 ? "is" : "are");
}

std::string applied_words(V, V object) {
  const auto ns = json::get_string(object, {"metadata", "namespace"}), name = json::get_string(object, {"metadata", "name"});
  return fmt::format("{} {}{}{} is applied", json::get_string(object, {"kind"}), ns, ns.empty() ? "" : "/", name);
}

Result<void> run_scale(World& world, V change, V what) {
  const json::Value* replicas = json::find(change, "replicas");
  if (!what.is_string()) return invalid("NAMESPACE/NAME is wanted");
  if (replicas == nullptr || !replicas->is_number() || replicas->is_double()) return invalid("\"replicas\": a whole number is wanted");
  return scale(world, names_in(what), std::string(json::get_string(change, {"kind"})), json::get_int(change, {"replicas"}));
}

Result<void> named(World& world, V what, Result<void> (*run)(World& world, const std::string& name)) {
  return run(world, what.is_string() ? names_in(what) : std::string());
}

/// For those of nodes that cannot fail.
template <auto kRun, auto... kMore>
Result<void> always(World& world, const Nodes& nodes, V) {
  kRun(world, nodes, kMore...);
  return {};
}

}  // namespace

const std::vector<Verb>& verbs() {
  static const std::vector<Verb> table = {
      {.name = "drain", .participle = "drained", .on_nodes = always<drain>},
      {.name = "fail", .participle = "lost", .on_nodes = always<fail_nodes>},
      {.name = "remove", .participle = "removed", .on_nodes = always<remove_nodes>},
      {.name = "cordon", .participle = "cordoned", .on_nodes = always<cordon, true>},
      {.name = "uncordon", .participle = "uncordoned", .on_nodes = always<cordon, false>},
      {.name = "add",
       .fields = {"count", "zone"},
       .run = [](World& w, V change, V) { return add_nodes(w, change); },
       .words = added_words,
       .reason = "nodes are added"},
      {.name = "label",
       .fields = {"labels"},
       .participle = "labelled",
       .on_nodes = [](World& w, const Nodes& nodes, V change) { return label_nodes(w, nodes, field_of(change, "labels")); }},
      {.name = "taint",
       .fields = {"taints"},
       .participle = "tainted",
       .on_nodes = [](World& w, const Nodes& nodes, V change) { return taint_nodes(w, nodes, field_of(change, "taints")); }},
      {.name = "allocatable",
       .fields = {"resources"},
       .participle = "resized",
       .on_nodes = [](World& w, const Nodes& nodes, V change) { return set_allocatable(w, nodes, field_of(change, "resources")); }},
      {.name = "apply", .run = [](World& w, V, V what) { return apply(w, what); }, .words = applied_words},
      {.name = "scale",
       .fields = {"replicas", "kind"},
       .run = run_scale,
       .words = [](V change, V what) { return fmt::format("{} is scaled to {}", names_in(what), json::get_int(change, {"replicas"})); }},
      {.name = "delete", .participle = "deleted", .run = [](World& w, V, V what) { return named(w, what, remove); }},
      {.name = "evict", .participle = "evicted", .run = [](World& w, V, V what) { return named(w, what, evict_pod); }},
      {.name = "resize",
       .fields = {"container", "requests"},
       .run = [](World& w, V change, V what) -> Result<void> {
         if (!what.is_string()) return invalid("NAMESPACE/POD is wanted");
         return resize_pod(w, names_in(what), std::string(json::get_string(change, {"container"})), field_of(change, "requests"));
       },
       .words = [](V, V what) { return fmt::format("{} is resized", names_in(what)); }},
      {.name = "config",
       .fields = {"from"},
       .run = [](World& w, V change, V what) { return change_config(w, what, json::get_string(change, {"from"}, "pending")); },
       .words = [](V, V) -> std::string { return "another scheduler configuration decides"; },
       .reason = "another configuration decides"},
      {.name = "descheduler",
       .run = [](World& w, V, V what) { return run_descheduler(w, what); },
       .words = [](V, V) -> std::string { return "the descheduler runs once"; },
       .reason = "the descheduler evicts it"},
      {.name = "pools",
       .fields = {"instanceTypes"},
       .run = [](World& w, V change, V what) { return buy_nodes(w, what, field_of(change, "instanceTypes")); },
       .words = [](V, V) -> std::string { return "NodePools buy nodes"; }},
      {.name = "autoscaler",
       .run = [](World& w, V, V what) { return run_autoscaler(w, what); },
       .words = [](V, V) -> std::string { return "the autoscaler runs once"; },
       .reason = "the autoscaler acts"},
  };
  return table;
}

const Verb* find_verb(std::string_view name) {
  const auto found = std::ranges::find(verbs(), name, &Verb::name);
  return found == verbs().end() ? nullptr : &*found;
}

namespace {

std::string words_of(const Verb& verb, V change) {
  V what = field_of(change, verb.name);
  if (verb.words != nullptr) return verb.words(change, what);
  return fmt::format("{} {} {}", names_in(what), what.is_array() && what.get_array().size() != 1 ? "are" : "is", verb.participle);
}

}  // namespace

std::string change_words(const json::Value& change) {
  for (const Verb& verb : verbs())
    if (json::find(change, verb.name) != nullptr) return words_of(verb, change);
  return json::serialize(change);
}

Result<void> carry_out(World& world, const Verb& verb, const json::Value& change) {
  world.set_reason(verb.reason.empty() ? words_of(verb, change) : std::string(verb.reason));
  V what = field_of(change, verb.name);
  if (verb.on_nodes == nullptr) return verb.run(world, change, what);
  auto nodes = choose_nodes(world, what);
  return nodes ? verb.on_nodes(world, *nodes, change) : std::unexpected(nodes.error());
}

}  // namespace berth::whatif
