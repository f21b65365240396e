// Cells of the core kinds, and what several kinds show.
#include <fmt/format.h>

#include "base/clock.h"
#include "model/quantity.h"
#include "model/selector.h"
#include "model/table_cells.h"
#include "model/table_printers.h"
#include "model/tables.h"

namespace berth::model::tables {

using json::Array;
using json::get_array;
using json::get_bool;
using json::get_int;
using json::get_object;
using json::get_string;
using json::Object;
using json::Value;

Value name_of(const Value& o) { return Value(get_string(o, {"metadata", "name"})); }
Value age_of(const Value& o, TimePoint now) { return Value(human_age(get_string(o, {"metadata", "creationTimestamp"}), now)); }
Value or_none(std::string_view text) { return Value(text.empty() ? std::string_view("<none>") : text); }
Value or_unset(std::string_view text) { return Value(text.empty() ? std::string_view("<unset>") : text); }

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  return fmt::format("{}", fmt::join(parts, separator));
}

std::string map_text(const Object& map) {
  std::vector<std::string> parts;
  for (const auto& [key, value] : map)
    parts.push_back(fmt::format("{}={}", std::string_view(key.data(), key.size()), value.is_string() ? json::as_view(value) : ""));
  std::sort(parts.begin(), parts.end());
  return parts.empty() ? "<none>" : join(parts);
}

std::string selector_text(const Value& object, json::Path path) {
  const Value* selector = json::find(object, path);
  if (selector == nullptr) return "<none>";
  const auto compiled = Selector::from_label_selector(selector);
  if (!compiled) return "<error>";
  const std::string text = compiled->to_string();
  return text.empty() ? "<none>" : text;
}

std::pair<std::string, std::string> containers_and_images(const Array& containers) {
  std::vector<std::string> names, images;
  for (const Value& container : containers) {
    names.emplace_back(get_string(container, {"name"}));
    images.emplace_back(get_string(container, {"image"}));
  }
  return {join(names), join(images)};
}

std::string array_text(const Array& array) {
  std::vector<std::string> parts;
  for (const Value& item : array) parts.emplace_back(item.is_string() ? json::as_view(item) : "");
  return join(parts);
}

Array pod_cells(const Value& o, TimePoint now) {
  const PodSummary summary = summarise_pod(o);
  std::string restarts = fmt::format("{}", summary.restarts);
  if (summary.restarts != 0 && !summary.last_restart.empty()) restarts += fmt::format(" ({} ago)", human_age(summary.last_restart, now));
  std::size_t gates = 0, open = 0;
  for (const Value& gate : get_array(o, {"spec", "readinessGates"})) {
    ++gates;
    for (const Value& condition : get_array(o, {"status", "conditions"}))
      open += get_string(condition, {"type"}) == get_string(gate, {"conditionType"}) && get_string(condition, {"status"}) == "True";
  }
  return {name_of(o),
          fmt::format("{}/{}", summary.ready, summary.total),
          summary.status,
          restarts,
          age_of(o, now),
          or_none(get_string(o, {"status", "podIP"})),
          or_none(get_string(o, {"spec", "nodeName"})),
          or_none(get_string(o, {"status", "nominatedNodeName"})),
          gates == 0 ? "<none>" : fmt::format("{}/{}", open, gates)};
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

Array namespace_cells(const Value& o, TimePoint now) { return {name_of(o), Value(get_string(o, {"status", "phase"})), age_of(o, now)}; }
Array config_map_cells(const Value& o, TimePoint now) {
  return {name_of(o), get_object(o, {"data"}).size() + get_object(o, {"binaryData"}).size(), age_of(o, now)};
}
Array secret_cells(const Value& o, TimePoint now) {
  return {name_of(o), Value(get_string(o, {"type"})), get_object(o, {"data"}).size(), age_of(o, now)};
}
Array service_account_cells(const Value& o, TimePoint now) { return {name_of(o), age_of(o, now)}; }

Array service_cells(const Value& o, TimePoint now) {
  std::vector<std::string> ports, external;
  for (const Value& port : get_array(o, {"spec", "ports"})) {
    std::string text = fmt::format("{}", get_int(port, {"port"}));
    if (const std::int64_t node_port = get_int(port, {"nodePort"}); node_port > 0) text += fmt::format(":{}", node_port);
    ports.push_back(text + "/" + std::string(get_string(port, {"protocol"}, "TCP")));
  }
  const std::string_view type = get_string(o, {"spec", "type"});
  for (const Value& ip : get_array(o, {"spec", "externalIPs"})) external.emplace_back(ip.is_string() ? json::as_view(ip) : "");
  for (const Value& ingress : get_array(o, {"status", "loadBalancer", "ingress"}))
    external.emplace_back(get_string(ingress, {"ip"}, get_string(ingress, {"hostname"})));
  std::string external_text = external.empty() ? (type == "LoadBalancer" ? "<pending>" : "<none>") : join(external);
  if (type == "ExternalName") external_text = get_string(o, {"spec", "externalName"});
  return {name_of(o),
          Value(type),
          or_none(get_string(o, {"spec", "clusterIP"})),
          external_text,
          ports.empty() ? "<none>" : join(ports),
          age_of(o, now),
          map_text(get_object(o, {"spec", "selector"}))};
}

namespace {

std::string endpoints_text(const Value& o) {
  std::vector<std::string> parts;
  std::size_t more = 0;
  for (const Value& subset : get_array(o, {"subsets"}))
    for (std::size_t i = 0; i < std::max<std::size_t>(get_array(subset, {"ports"}).size(), 1); ++i) {
      const Array& ports = get_array(subset, {"ports"});
      for (const Value& address : get_array(subset, {"addresses"})) {
        if (parts.size() == 3) {
          ++more;
          continue;
        }
        parts.push_back(ports.empty() ? std::string(get_string(address, {"ip"}))
                                      : fmt::format("{}:{}", get_string(address, {"ip"}), get_int(ports[i], {"port"})));
      }
    }
  if (parts.empty()) return "<none>";
  return join(parts) + (more > 0 ? fmt::format(" + {} more...", more) : "");
}

}  // namespace
Array endpoints_cells(const Value& o, TimePoint now) { return {name_of(o), endpoints_text(o), age_of(o, now)}; }

Array endpoint_slice_cells(const Value& o, TimePoint now) {
  std::vector<std::string> ports, addresses;
  for (const Value& port : get_array(o, {"ports"})) ports.push_back(fmt::format("{}", get_int(port, {"port"})));
  for (const Value& endpoint : get_array(o, {"endpoints"}))
    for (const Value& address : get_array(endpoint, {"addresses"}))
      if (addresses.size() < 3) addresses.emplace_back(address.is_string() ? json::as_view(address) : "");
  return {name_of(o), Value(get_string(o, {"addressType"})), ports.empty() ? "<unset>" : join(ports),
          addresses.empty() ? "<unset>" : join(addresses), age_of(o, now)};
}

Array replication_controller_cells(const Value& o, TimePoint now) {
  const auto [names, images] = containers_and_images(get_array(o, {"spec", "template", "spec", "containers"}));
  return {name_of(o),
          get_int(o, {"spec", "replicas"}),
          get_int(o, {"status", "replicas"}),
          get_int(o, {"status", "readyReplicas"}),
          age_of(o, now),
          names,
          images,
          map_text(get_object(o, {"spec", "selector"}))};
}

Array event_cells(const Value& o, TimePoint now) {
  const auto first_of = [&](std::initializer_list<json::Path> paths) -> std::string_view {
    for (const json::Path& path : paths)
      if (const std::string_view text = get_string(o, path); !text.empty()) return text;
    return {};
  };
  const std::string_view first_time = first_of({{"firstTimestamp"}, {"deprecatedFirstTimestamp"}, {"eventTime"}});
  std::string_view last_time = first_of({{"series", "lastObservedTime"}, {"lastTimestamp"}, {"deprecatedLastTimestamp"}, {"eventTime"}});
  std::int64_t count = get_int(o, {"series", "count"}, get_int(o, {"count"}, get_int(o, {"deprecatedCount"}, 1)));
  const Value* involved = json::find(o, "involvedObject") != nullptr ? json::find(o, "involvedObject") : json::find(o, "regarding");
  std::string object;
  if (involved != nullptr) {
    std::string kind(get_string(*involved, {"kind"}));
    for (char& c : kind) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    object = kind + "/" + std::string(get_string(*involved, {"name"}));
  }
  std::string source(get_string(o, {"source", "component"}));
  if (source.empty()) source = first_of({{"deprecatedSource", "component"}, {"reportingComponent"}, {"reportingController"}});
  const std::string_view host = first_of({{"source", "host"}, {"deprecatedSource", "host"}, {"reportingInstance"}});
  if (!host.empty()) source += fmt::format(", {}", host);
  std::string message(first_of({{"message"}, {"note"}}));
  while (!message.empty() && message.back() == '\n') message.pop_back();
  return {Value(human_age(last_time, now)),
          Value(get_string(o, {"type"})),
          Value(get_string(o, {"reason"})),
          object,
          involved == nullptr ? Value("") : Value(get_string(*involved, {"fieldPath"})),
          source,
          message,
          Value(human_age(first_time, now)),
          count,
          name_of(o)};
}

Array limit_range_cells(const Value& o, TimePoint now) { return {name_of(o), Value(get_string(o, {"metadata", "creationTimestamp"}))}; }

Array resource_quota_cells(const Value& o, TimePoint now) {
  std::vector<std::string> requests, limits;
  std::vector<std::string> names;
  for (const auto& [key, value] : get_object(o, {"status", "hard"})) names.emplace_back(key);
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    const std::string text =
        fmt::format("{}: {}/{}", name, get_string(o, {"status", "used", name}, "0"), get_string(o, {"status", "hard", name}));
    (name.starts_with("limits.") ? limits : requests).push_back(text);
  }
  return {name_of(o), join(requests, ", "), join(limits, ", "), age_of(o, now)};
}

namespace {

std::string access_modes(const Array& modes) {
  std::vector<std::string> parts;
  for (const Value& mode : modes) {
    const std::string_view text = mode.is_string() ? json::as_view(mode) : "";
    parts.emplace_back(text == "ReadWriteOnce"      ? "RWO"
                       : text == "ReadOnlyMany"     ? "ROX"
                       : text == "ReadWriteMany"    ? "RWX"
                       : text == "ReadWriteOncePod" ? "RWOP"
                                                    : text);
  }
  return join(parts);
}

}  // namespace

Array volume_cells(const Value& o, TimePoint now) {
  const std::string_view claim = get_string(o, {"spec", "claimRef", "name"});
  const std::string_view phase =
      json::find(o, {"metadata", "deletionTimestamp"}) != nullptr ? "Terminating" : get_string(o, {"status", "phase"});
  return {name_of(o),
          Value(get_string(o, {"spec", "capacity", "storage"})),
          access_modes(get_array(o, {"spec", "accessModes"})),
          Value(get_string(o, {"spec", "persistentVolumeReclaimPolicy"})),
          Value(phase),
          claim.empty() ? "" : fmt::format("{}/{}", get_string(o, {"spec", "claimRef", "namespace"}), claim),
          Value(get_string(o, {"spec", "storageClassName"})),
          or_unset(get_string(o, {"spec", "volumeAttributesClassName"})),
          Value(get_string(o, {"status", "reason"})),
          age_of(o, now),
          or_unset(get_string(o, {"spec", "volumeMode"}))};
}

Array claim_cells(const Value& o, TimePoint now) {
  const bool bound = !get_string(o, {"spec", "volumeName"}).empty();
  const std::string_view phase =
      json::find(o, {"metadata", "deletionTimestamp"}) != nullptr ? "Terminating" : get_string(o, {"status", "phase"});
  return {name_of(o),
          Value(phase),
          Value(get_string(o, {"spec", "volumeName"})),
          bound ? Value(get_string(o, {"status", "capacity", "storage"}, "0")) : Value(""),
          bound ? access_modes(get_array(o, {"status", "accessModes"})) : "",
          Value(get_string(o, {"spec", "storageClassName"})),
          or_unset(get_string(o, {"spec", "volumeAttributesClassName"})),
          age_of(o, now),
          or_unset(get_string(o, {"spec", "volumeMode"}))};
}

}  // namespace berth::model::tables
