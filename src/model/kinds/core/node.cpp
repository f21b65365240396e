// Nodes.
#include "model/kinds/record.h"

namespace berth::model::kinds {
namespace {

void default_node(Object& doc) {
  // podCIDR is the first of podCIDRs: who sets one of them has set the other, and where they differ the older one holds (core/v1
  // conversion).
  if (Object* spec = child(doc, "spec")) {
    const std::string one(string_at(*spec, "podCIDR"));
    const Array* all = list(*spec, "podCIDRs");
    if (!one.empty() && (all == nullptr || all->empty() || all->front() != Value(one)))
      (*spec)["podCIDRs"] = Array{Value(one)};
    else if (one.empty() && all != nullptr && !all->empty())
      (*spec)["podCIDR"] = Value(all->front());
  }
  // A kubelet that reports only its capacity can give all of it.
  Object* status = child(doc, "status");
  if (status != nullptr && child(*status, "capacity") != nullptr && !status->contains("allocatable"))
    (*status)["allocatable"] = Value(status->at("capacity"));
}

Array node_cells(const Value& o, TimePoint now) {
  std::vector<std::string> status, roles;
  for (const Value& condition : get_array(o, {"status", "conditions"}))
    if (get_string(condition, {"type"}) == "Ready") status.emplace_back(get_string(condition, {"status"}) == "True" ? "Ready" : "NotReady");
  if (status.empty()) status.emplace_back("Unknown");
  if (get_bool(o, {"spec", "unschedulable"})) status.emplace_back("SchedulingDisabled");
  for (const auto& [key, value] : get_object(o, {"metadata", "labels"})) {
    const std::string_view label(key.data(), key.size());
    constexpr std::string_view kPrefix = "node-role.kubernetes.io/";
    if (label.starts_with(kPrefix) && label.size() > kPrefix.size())
      roles.emplace_back(label.substr(kPrefix.size()));
    else if (label == "kubernetes.io/role" && value.is_string() && !value.get_string().empty())
      roles.emplace_back(json::as_view(value));
  }
  std::sort(roles.begin(), roles.end());
  const auto address = [&](std::string_view type) -> std::string_view {
    for (const Value& one : get_array(o, {"status", "addresses"}))
      if (get_string(one, {"type"}) == type) return get_string(one, {"address"});
    return {};
  };
  const auto or_unknown = [](std::string_view text) { return Value(text.empty() ? std::string_view("<unknown>") : text); };
  std::string kernel(get_string(o, {"status", "nodeInfo", "kernelVersion"}, "<unknown>"));
  if (kernel.empty()) kernel = "<unknown>";
  if (const auto architecture = get_string(o, {"status", "nodeInfo", "architecture"}); !architecture.empty())
    kernel += fmt::format(" ({})", architecture);
  return {name_of(o),
          join(status),
          roles.empty() ? "<none>" : join(roles),
          age_of(o, now),
          Value(get_string(o, {"status", "nodeInfo", "kubeletVersion"})),
          or_none(address("InternalIP")),
          or_none(address("ExternalIP")),
          or_unknown(get_string(o, {"status", "nodeInfo", "osImage"})),
          Value(kernel),
          or_unknown(get_string(o, {"status", "nodeInfo", "containerRuntimeVersion"}))};
}

void warn_of_node(const Value& doc, Sentences& out) {
  if (json::find(doc, {"spec", "configSource"}) != nullptr) out.emplace_back("spec.configSource: the feature is no longer supported");
  if (!get_string(doc, {"spec", "externalID"}).empty())
    out.emplace_back("spec.externalID: this field is deprecated, and is unused by Kubernetes");
}

}  // namespace

KindInfo node() {
  return Record("", "v1", "Node", "nodes")
      .shorts({"no"})
      .cluster()
      .subs({"proxy", "status"})
      .fields({"spec.unschedulable"})
      .does({.form = Form{.defaults = default_node},
             .strategy = Strategy{.keeps_given_status = true},
             .rules = Rules{.metadata_looks = kLooksAtBothAgain,
                            .create = validation::node,
                            .update = in_turn(validation::node, validation::node_update),
                            .status = validation::node_update,
                            // Of a spec that stays as it is, it finds nothing.
                            .status_reads_rest = reads_status_alone,
                            .warnings = [](const Value*, const Value& doc, Sentences& out) { warn_of_node(doc, out); }},
             .printer = Printer{{{"Name"},
                                 {"Status"},
                                 {"Roles"},
                                 {"Age"},
                                 {"Version"},
                                 {"Internal-IP", 1},
                                 {"External-IP", 1},
                                 {"OS-Image", 1},
                                 {"Kernel-Version", 1},
                                 {"Container-Runtime", 1}},
                                node_cells},
             .selected = std::vector<SelectedField>{{.name = "spec.unschedulable", .absent = "false"}},
             .scale = kDefault,
             .life = Life{.etcd_prefix = "minions"},
             .counted = kDefault});
}

}  // namespace berth::model::kinds
