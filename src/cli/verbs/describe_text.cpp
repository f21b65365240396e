#include "cli/verbs/describe_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <ranges>

#include "model/quantity.h"
#include "model/tables/tables.h"
#include "model/views/pod_view.h"
#include "placement/resource.h"

namespace berth::cli {
namespace {

using json::get_array;
using json::get_object;
using json::get_string;
using json::Value;

std::string text_of(const Value& value) { return value.is_string() ? std::string(json::as_view(value)) : json::serialize(value); }

/// Rows of cells; the columns of a block are aligned when it ends.
class Text {
 public:
  void row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  /// "Key:   value" at an indent of two spaces a level; an empty value leaves the key alone.
  void field(std::string_view key, std::string value, int level = 0) {
    row({fmt::format("{:{}}{}:", "", 2 * level, key), std::move(value)});
  }
  /// A field of several values, one a line.
  void lines(std::string_view key, const std::vector<std::string>& values, int level = 0) {
    if (values.empty()) return field(key, "<none>", level);
    for (std::size_t i = 0; i < values.size(); ++i) i == 0 ? field(key, values[i], level) : row({"", values[i]});
  }
  /// Ends an aligned block.
  void end_block() {
    std::vector<std::size_t> widths;
    for (const auto& cells : rows_)
      for (std::size_t i = 0; i + 1 < cells.size(); ++i) {
        widths.resize(std::max(widths.size(), i + 1));
        if (!cells[i + 1].empty()) widths[i] = std::max(widths[i], cells[i].size());
      }
    for (const auto& cells : rows_) {
      std::string line;
      for (std::size_t i = 0; i < cells.size(); ++i)
        line += i + 1 < cells.size() ? fmt::format("{:{}}  ", cells[i], i < widths.size() ? widths[i] : 0) : cells[i];
      while (line.ends_with(' ')) line.pop_back();
      out_ += line + "\n";
    }
    rows_.clear();
  }
  [[nodiscard]] std::string take() {
    end_block();
    return std::move(out_);
  }

 private:
  std::vector<std::vector<std::string>> rows_;
  std::string out_;
};

std::vector<std::string> pairs_of(const json::Object& map, std::string_view between) {
  std::vector<std::string> out;
  for (const auto& [key, value] : map)
    if (std::string_view(key.data(), key.size()) != "kubectl.kubernetes.io/last-applied-configuration")
      out.push_back(fmt::format("{}{}{}", std::string_view(key.data(), key.size()), between, text_of(value)));
  std::ranges::sort(out);
  return out;
}

std::string time_text(std::string_view rfc3339) {
  const auto time = parse_rfc3339(rfc3339);
  if (!time) return "<unknown>";
  const std::time_t seconds =
      std::chrono::system_clock::to_time_t(std::chrono::time_point_cast<std::chrono::system_clock::duration>(*time));
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char buffer[64];
  std::strftime(buffer, sizeof buffer, "%a, %d %b %Y %H:%M:%S +0000", &parts);
  return buffer;
}

std::string toleration_text(const Value& toleration) {
  std::string out(get_string(toleration, {"key"}));
  const std::string_view value = get_string(toleration, {"value"}), effect = get_string(toleration, {"effect"});
  if (!value.empty()) out += fmt::format("={}", value);
  if (!effect.empty()) out += fmt::format(":{}", effect);
  if (get_string(toleration, {"operator"}) == "Exists" && value.empty())
    out += out.empty() || !effect.empty() ? " op=Exists" : ":op=Exists";
  if (json::find(toleration, {"tolerationSeconds"}) != nullptr)
    out += fmt::format(" for {}s", json::get_int(toleration, {"tolerationSeconds"}));
  return out;
}

std::string taint_text(const Value& taint) {
  const std::string_view value = get_string(taint, {"value"});
  return fmt::format("{}{}{}:{}", get_string(taint, {"key"}), value.empty() ? "" : "=", value, get_string(taint, {"effect"}));
}

void metadata(Text& text, const model::KindInfo& kind, const Value& object) {
  text.lines("Labels", pairs_of(get_object(object, {"metadata", "labels"}), "="));
  text.lines("Annotations", pairs_of(get_object(object, {"metadata", "annotations"}), ": "));
  if (kind.kind != "Pod") text.field("CreationTimestamp", time_text(get_string(object, {"metadata", "creationTimestamp"})));
}

void container_state(Text& text, std::string_view title, const Value& state) {
  for (const auto& [name, detail] : state.is_object() ? state.get_object() : json::Object()) {
    std::string word(name);
    word[0] = static_cast<char>(std::toupper(word[0]));
    text.field(title, word, 2);
    for (const char* key : {"reason", "message", "exitCode", "signal", "startedAt", "finishedAt"}) {
      const Value* value = json::find(detail, key);
      if (value == nullptr) continue;
      static const std::map<std::string_view, const char*> kNames = {{"reason", "Reason"},      {"message", "Message"},
                                                                     {"exitCode", "Exit Code"}, {"signal", "Signal"},
                                                                     {"startedAt", "Started"},  {"finishedAt", "Finished"}};
      const std::string shown = text_of(*value);
      text.field(kNames.at(key), std::string_view(key).ends_with("At") ? time_text(shown) : shown, 3);
    }
  }
}

void container(Text& text, const Value& one, const Value* status) {
  text.row({fmt::format("  {}:", get_string(one, {"name"}))});
  text.field("Image", std::string(get_string(one, {"image"})), 2);
  std::vector<std::string> ports;
  for (const Value& port : get_array(one, {"ports"}))
    ports.push_back(fmt::format("{}/{}", json::get_int(port, {"containerPort"}), get_string(port, {"protocol"})));
  text.field(ports.size() > 1 ? "Ports" : "Port", ports.empty() ? "<none>" : fmt::format("{}", fmt::join(ports, ", ")), 2);
  for (const auto& [key, title] : {std::pair{"command", "Command"}, std::pair{"args", "Args"}}) {
    if (get_array(one, {key}).empty()) continue;
    text.field(title, "", 2);
    for (const Value& word : get_array(one, {key})) text.row({"      " + text_of(word)});
  }
  if (status != nullptr) {
    container_state(text, "State", *(json::find(*status, "state") != nullptr ? json::find(*status, "state") : status));
    if (const Value* last = json::find(*status, "lastState")) container_state(text, "Last State", *last);
    text.field("Ready", json::get_bool(*status, {"ready"}) ? "True" : "False", 2);
    text.field("Restart Count", std::to_string(json::get_int(*status, {"restartCount"})), 2);
  }
  for (const auto& [key, title] : {std::pair{"limits", "Limits"}, std::pair{"requests", "Requests"}}) {
    if (get_object(one, {"resources", key}).empty()) continue;
    text.field(title, "", 2);
    for (const auto& [name, amount] : get_object(one, {"resources", key}))
      text.field(std::string_view(name.data(), name.size()), text_of(amount), 3);
  }
  std::vector<std::string> mounts;
  for (const Value& mount : get_array(one, {"volumeMounts"}))
    mounts.push_back(fmt::format("{} from {} ({})", get_string(mount, {"mountPath"}), get_string(mount, {"name"}),
                                 json::get_bool(mount, {"readOnly"}) ? "ro" : "rw"));
  text.field("Mounts", mounts.empty() ? "<none>" : "", 2);
  for (const std::string& mount : mounts) text.row({"      " + mount});
}

void containers(Text& text, const Value& pod, const char* list, const char* statuses, const char* title) {
  if (get_array(pod, {"spec", list}).empty()) return;
  text.row({fmt::format("{}:", title)});
  for (const Value& one : get_array(pod, {"spec", list})) {
    const auto& known = get_array(pod, {"status", statuses});
    const auto status =
        std::ranges::find_if(known, [&](const Value& candidate) { return get_string(candidate, {"name"}) == get_string(one, {"name"}); });
    container(text, one, status == known.end() ? nullptr : &*status);
  }
}

void describe_pod(Text& text, const model::KindInfo& kind, const Value& pod) {
  text.field("Priority", std::to_string(json::get_int(pod, {"spec", "priority"})));
  const auto given = [&](std::string_view title, std::string_view value) {
    if (!value.empty()) text.field(title, std::string(value));
  };
  given("Priority Class Name", get_string(pod, {"spec", "priorityClassName"}));
  given("Service Account", get_string(pod, {"spec", "serviceAccountName"}));
  const std::string_view node = get_string(pod, {"spec", "nodeName"}), host = get_string(pod, {"status", "hostIP"});
  text.field("Node", node.empty() ? "<none>" : fmt::format("{}{}{}", node, host.empty() ? "" : "/", host));
  if (const std::string_view started = get_string(pod, {"status", "startTime"}); !started.empty())
    text.field("Start Time", time_text(started));
  metadata(text, kind, pod);
  const std::string phase(get_string(pod, {"status", "phase"}));
  text.field("Status", json::find(pod, {"metadata", "deletionTimestamp"}) != nullptr
                           ? fmt::format("Terminating (since {})", get_string(pod, {"metadata", "deletionTimestamp"}))
                           : phase);
  given("Reason", get_string(pod, {"status", "reason"}));
  given("Message", get_string(pod, {"status", "message"}));
  given("Nominated Node Name", get_string(pod, {"status", "nominatedNodeName"}));
  text.field("IP", std::string(get_string(pod, {"status", "podIP"})));
  for (const Value& owner : get_array(pod, {"metadata", "ownerReferences"}))
    if (json::get_bool(owner, {"controller"}))
      text.field("Controlled By", fmt::format("{}/{}", get_string(owner, {"kind"}), get_string(owner, {"name"})));
  text.end_block();
  containers(text, pod, "initContainers", "initContainerStatuses", "Init Containers");
  containers(text, pod, "containers", "containerStatuses", "Containers");
  text.end_block();
  text.row({"Conditions:"});
  text.row({"  Type", "Status"});
  for (const Value& condition : get_array(pod, {"status", "conditions"}))
    text.row({fmt::format("  {}", get_string(condition, {"type"})), std::string(get_string(condition, {"status"}))});
  text.end_block();
  text.field("QoS Class", std::string(get_string(pod, {"status", "qosClass"})));
  text.lines("Node-Selectors", pairs_of(get_object(pod, {"spec", "nodeSelector"}), "="));
  json::Array sorted = get_array(pod, {"spec", "tolerations"});
  std::ranges::stable_sort(sorted, std::less<>(), [](const Value& toleration) { return get_string(toleration, {"key"}); });
  std::vector<std::string> tolerations;
  for (const Value& toleration : sorted) tolerations.push_back(toleration_text(toleration));
  text.lines("Tolerations", tolerations);
  text.end_block();
}

std::string percent(std::int64_t part, std::int64_t whole) { return fmt::format("{}%", whole == 0 ? 0 : part * 100 / whole); }

std::string milli_text(std::int64_t milli) { return model::Quantity::from_milli(milli).to_string(); }
std::string bytes_text(std::int64_t bytes) { return model::Quantity::from_value(bytes, model::Quantity::Format::kBinarySI).to_string(); }

/// The pods that still take room on the node, and what they have asked for together.
void node_pods(Text& text, const Value& node, const DescribeContext& context) {
  const model::ResourceList allocatable_list = model::parse_resource_list(json::find(node, {"status", "allocatable"}));
  const placement::Resource allocatable = placement::Resource::from_list(allocatable_list);
  placement::Resource asked;
  std::vector<std::vector<std::string>> rows;
  for (const Value& pod : context.pods) {
    const std::string_view phase = get_string(pod, {"status", "phase"});
    if (phase == "Succeeded" || phase == "Failed") continue;
    const placement::Resource request = placement::pod_request(model::PodView::parse(pod), placement::Era::k136, true).total;
    asked.add(request);
    rows.push_back({fmt::format("  {}", get_string(pod, {"metadata", "namespace"})), std::string(get_string(pod, {"metadata", "name"})),
                    fmt::format("{} ({})", milli_text(request.cpu_milli), percent(request.cpu_milli, allocatable.cpu_milli)),
                    fmt::format("{} ({})", bytes_text(request.memory_bytes), percent(request.memory_bytes, allocatable.memory_bytes)),
                    model::human_age(get_string(pod, {"metadata", "creationTimestamp"}), context.now)});
  }
  text.row({fmt::format("Non-terminated Pods:  ({} in total)", rows.size())});
  text.end_block();
  text.row({"  Namespace", "Name", "CPU Requests", "Memory Requests", "Age"});
  text.row({"  ---------", "----", "------------", "---------------", "---"});
  for (auto& row : rows) text.row(std::move(row));
  text.end_block();
  text.row({"Allocated resources:"});
  text.row({"  Resource", "Requests"});
  text.row({"  --------", "--------"});
  text.row({"  cpu", fmt::format("{} ({})", milli_text(asked.cpu_milli), percent(asked.cpu_milli, allocatable.cpu_milli))});
  text.row({"  memory", fmt::format("{} ({})", bytes_text(asked.memory_bytes), percent(asked.memory_bytes, allocatable.memory_bytes))});
  text.row({"  ephemeral-storage", fmt::format("{} ({})", bytes_text(asked.ephemeral_storage_bytes),
                                               percent(asked.ephemeral_storage_bytes, allocatable.ephemeral_storage_bytes))});
  for (const auto& [name, amount] : asked.scalars)
    text.row({"  " + name, fmt::format("{} ({})", amount, percent(amount, allocatable.scalar(name)))});
  text.end_block();
}

void describe_node(Text& text, const model::KindInfo& kind, const Value& node, const DescribeContext& context) {
  std::vector<std::string> roles;
  constexpr std::string_view kRole = "node-role.kubernetes.io/";
  for (const auto& [key, value] : get_object(node, {"metadata", "labels"}))
    if (std::string_view(key.data(), key.size()).starts_with(kRole))
      roles.emplace_back(std::string_view(key.data(), key.size()).substr(kRole.size()));
  text.field("Roles", roles.empty() ? "<none>" : fmt::format("{}", fmt::join(roles, ",")));
  metadata(text, kind, node);
  json::Array sorted = get_array(node, {"spec", "taints"});
  std::ranges::stable_sort(sorted, std::less<>(), [](const Value& taint) {
    return fmt::format("{},{}", get_string(taint, {"effect"}), get_string(taint, {"key"}));  // As kubectl: NoExecute first.
  });
  std::vector<std::string> taints;
  for (const Value& taint : sorted) taints.push_back(taint_text(taint));
  text.lines("Taints", taints);
  text.field("Unschedulable", json::get_bool(node, {"spec", "unschedulable"}) ? "true" : "false");
  text.end_block();
  text.row({"Conditions:"});
  text.row({"  Type", "Status", "LastHeartbeatTime", "LastTransitionTime", "Reason", "Message"});
  text.row({"  ----", "------", "-----------------", "------------------", "------", "-------"});
  for (const Value& condition : get_array(node, {"status", "conditions"}))
    text.row({fmt::format("  {}", get_string(condition, {"type"})), std::string(get_string(condition, {"status"})),
              time_text(get_string(condition, {"lastHeartbeatTime"})), time_text(get_string(condition, {"lastTransitionTime"})),
              std::string(get_string(condition, {"reason"})), std::string(get_string(condition, {"message"}))});
  text.end_block();
  text.row({"Addresses:"});
  for (const Value& address : get_array(node, {"status", "addresses"}))
    text.field(get_string(address, {"type"}), std::string(get_string(address, {"address"})), 1);
  text.end_block();
  for (const auto& [key, title] : {std::pair{"capacity", "Capacity"}, std::pair{"allocatable", "Allocatable"}}) {
    text.row({fmt::format("{}:", title)});
    for (const auto& [name, amount] : get_object(node, {"status", key}))
      text.field(std::string_view(name.data(), name.size()), text_of(amount), 1);
    text.end_block();
  }
  text.row({"System Info:"});
  for (const auto& [name, value] : get_object(node, {"status", "nodeInfo"}))
    if (value.is_string()) text.field(std::string_view(name.data(), name.size()), text_of(value), 1);
  text.end_block();
  node_pods(text, node, context);
}

/// A kind without a layout of its own: its fields as YAML.
void describe_fields(Text& text, const Value& object) {
  text.end_block();
  for (const auto& [name, value] : object.get_object()) {
    const std::string_view key(name.data(), name.size());
    if (key == "metadata" || key == "apiVersion" || key == "kind") continue;
    if (!value.is_object() && !value.is_array()) {
      text.field(key, text_of(value));
      continue;
    }
    text.row({fmt::format("{}:", key)});
    for (const auto line : std::views::split(json::to_yaml(value), '\n'))
      if (!line.empty()) text.row({fmt::format("  {}", std::string_view(line.begin(), line.end()))});
  }
  text.end_block();
}

void events(Text& text, const DescribeContext& context) {
  if (context.events.empty()) return text.field("Events", "<none>");
  text.row({"Events:"});
  text.row({"  Type", "Reason", "Age", "From", "Message"});
  text.row({"  ----", "------", "---", "----", "-------"});
  for (const Value& event : context.events) {
    std::string age = model::human_age(get_string(event, {"lastTimestamp"}, get_string(event, {"eventTime"})), context.now);
    if (const auto count = json::get_int(event, {"count"}); count > 1)
      age += fmt::format(" (x{} over {})", count, model::human_age(get_string(event, {"firstTimestamp"}), context.now));
    const std::string_view source = get_string(event, {"source", "component"});
    text.row({fmt::format("  {}", get_string(event, {"type"})), std::string(get_string(event, {"reason"})), age,
              std::string(source.empty() ? get_string(event, {"reportingComponent"}) : source),
              std::string(get_string(event, {"message"}))});
  }
}

}  // namespace

std::string describe(const model::KindInfo& kind, const Value& object, const DescribeContext& context) {
  Text text;
  text.field("Name", std::string(get_string(object, {"metadata", "name"})));
  if (kind.namespaced) text.field("Namespace", std::string(get_string(object, {"metadata", "namespace"})));
  if (kind.kind == "Pod") {
    describe_pod(text, kind, object);
  } else if (kind.kind == "Node") {
    describe_node(text, kind, object, context);
  } else {
    metadata(text, kind, object);
    describe_fields(text, object);
  }
  events(text, context);
  return text.take();
}

}  // namespace berth::cli
