#include "simulator/replay.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/kinds.h"

namespace berth::simulator {
namespace {

std::string key_of(const json::Value& object) {
  return fmt::format("{}/{}/{}", json::get_string(object, {"kind"}), json::get_string(object, {"metadata", "namespace"}),
                     json::get_string(object, {"metadata", "name"}));
}

bool is_controlled(const json::Value& object) {
  return std::ranges::any_of(json::get_array(object, {"metadata", "ownerReferences"}),
                             [](const json::Value& owner) { return json::get_bool(owner, {"controller"}); });
}

std::string_view phase_of(const json::Value& pod) { return json::get_string(pod, {"status", "phase"}); }

bool is_over(const json::Value& pod) { return phase_of(pod) == "Succeeded" || phase_of(pod) == "Failed"; }

bool is_marked_ready(const json::Value& node) {
  for (const json::Value& condition : json::get_array(node, {"status", "conditions"}))
    if (json::get_string(condition, {"type"}) == "Ready") return json::get_string(condition, {"status"}) == "True";
  return true;
}

/// A node as its machine would be bought, with what people set on it.
json::Value node_as_written(const json::Value& node) {
  json::Value out = as_written(node);
  json::Object& object = out.as_object();
  object["status"] = json::Object{{"capacity", json::get_object(node, {"status", "capacity"})},
                                  {"allocatable", json::get_object(node, {"status", "allocatable"})}};
  json::set(out, {"metadata", "annotations", "sim.berth.dev/fleet"}, json::Value("default"));
  json::erase(out, {"metadata", "annotations", "sim.berth.dev/index"});
  if (!is_marked_ready(node)) json::set(out, {"metadata", "annotations", "sim.berth.dev/dead"}, json::Value("true"));
  json::Array taints;
  // The control plane's own taints follow from what it sees.
  for (const json::Value& taint : json::get_array(node, {"spec", "taints"}))
    if (!json::get_string(taint, {"key"}).starts_with("node.kubernetes.io/")) taints.push_back(taint);
  json::erase(out, {"spec", "podCIDR"});
  json::erase(out, {"spec", "podCIDRs"});
  json::erase(out, {"spec", "taints"});
  if (!taints.empty()) json::set(out, {"spec", "taints"}, std::move(taints));
  return out;
}

/// What people change on a node: nothing else of a revision is news.
json::Value node_settings(const json::Value& written) {
  json::Object out;
  for (const auto& path : {std::initializer_list<std::string_view>{"spec", "unschedulable"},
                           {"spec", "taints"},
                           {"metadata", "labels"},
                           {"metadata", "annotations", "sim.berth.dev/dead"}})
    if (const json::Value* value = json::find(written, path)) out[*(path.end() - 1)] = *value;
  return out;
}

}  // namespace

json::Value as_written(json::Value object) {
  static constexpr std::array<std::string_view, 9> kServers = {
      "uid",      "resourceVersion",   "creationTimestamp",          "managedFields",  "generation",
      "selfLink", "deletionTimestamp", "deletionGracePeriodSeconds", "ownerReferences"};
  for (const std::string_view field : kServers) json::erase(object, {"metadata", field});
  json::erase(object, {"metadata", "annotations", "deployment.kubernetes.io/revision"});
  if (json::Value* metadata = json::find(object, "metadata"); metadata != nullptr && metadata->is_object())
    metadata->get_object().erase("finalizers");
  json::erase(object, {"status"});
  return object;
}

Result<std::unique_ptr<Replay>> Replay::load(const std::string& file, bool as_workloads) {
  std::unique_ptr<Replay> out(new Replay);
  out->as_workloads_ = as_workloads;
  const auto head = read_recording(file, [&](RecordedEvent event) -> Result<void> {
    out->see(std::move(event));
    return {};
  });
  if (!head) return std::unexpected(head.error());
  out->notes_ = head->notes;
  out->finish();
  if (out->order_.empty() && out->initial_.empty() && out->actions_.empty())
    return invalid(fmt::format("{}: nothing happens in it: no node and no pod comes", file));
  return out;
}

void Replay::see(RecordedEvent event) {
  const std::string_view kind = json::get_string(event.object, {"kind"});
  const std::string key = key_of(event.object);
  if (kind == "Pod") return see_pod(event, key);
  if (kind == "Node") return see_node(event, key);
  if (kind != "Event" && kind != "Machine") see_other(event, key);
}

void Replay::see_pod(RecordedEvent& event, const std::string&) {
  const std::string uid(json::get_string(event.object, {"metadata", "uid"}));
  auto found = pods_.find(uid);
  if (found == pods_.end()) {
    if (event.type == RecordedEvent::Type::kDeleted || is_over(event.object)) return;
    found = pods_.emplace(uid, Life{}).first;
    found->second.pod = event.object;
    found->second.came = event.at_ms;
    found->second.was_placed = event.at_ms == 0 && !json::get_string(event.object, {"spec", "nodeName"}).empty();
    order_.push_back(uid);
  }
  Life& life = found->second;
  if (!life.started && phase_of(event.object) == "Running") life.started = event.at_ms;
  if (!life.ended && is_over(event.object)) life.ended = event.at_ms;
  if (!life.deleted &&
      (event.type == RecordedEvent::Type::kDeleted || json::find(event.object, {"metadata", "deletionTimestamp"}) != nullptr))
    life.deleted = event.at_ms;
}

void Replay::see_node(RecordedEvent& event, const std::string& key) {
  const Duration at = std::chrono::milliseconds(event.at_ms);
  if (event.type == RecordedEvent::Type::kDeleted) {
    if (last_.erase(key) > 0) actions_.push_back({at, Action::What::kDelete, std::move(event.object)});
    return;
  }
  json::Value written = node_as_written(event.object);
  json::Value settings = node_settings(written);
  const auto known = last_.find(key);
  if (known == last_.end()) {
    if (event.at_ms == 0)
      initial_.push_back(std::move(written));
    else
      actions_.push_back({at, Action::What::kCreate, std::move(written)});
  } else if (!json::equal(known->second, settings)) {
    // What is not there any more is taken away.
    json::Value patch =
        json::Object{{"kind", "Node"}, {"metadata", json::Object{{"name", json::get_string(event.object, {"metadata", "name"})}}}};
    const auto put = [&](json::Path path, std::string_view field) {
      const json::Value* value = json::find(settings, field);
      json::set(patch, path, value == nullptr ? json::Value(nullptr) : *value);
    };
    put({"spec", "unschedulable"}, "unschedulable");
    put({"spec", "taints"}, "taints");
    put({"metadata", "annotations", "sim.berth.dev/dead"}, "sim.berth.dev/dead");
    put({"metadata", "labels"}, "labels");
    actions_.push_back({at, Action::What::kUpdate, std::move(patch)});
  }
  last_[key] = std::move(settings);
}

void Replay::see_other(RecordedEvent& event, const std::string& key) {
  static const std::set<std::string, std::less<>> kWorkloads = {
      "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "ReplicationController", "Job", "CronJob", "HorizontalPodAutoscaler"};
  static const std::set<std::string, std::less<>> kAlways = {
      "Namespace",           "PriorityClass", "StorageClass", "PersistentVolume", "PersistentVolumeClaim",
      "PodDisruptionBudget", "ResourceQuota", "Service"};
  const std::string kind(json::get_string(event.object, {"kind"}));
  if (!kAlways.contains(kind) && !(as_workloads_ && kWorkloads.contains(kind) && !is_controlled(event.object))) return;
  const Duration at = std::chrono::milliseconds(event.at_ms);
  if (event.type == RecordedEvent::Type::kDeleted) {
    if (last_.erase(key) > 0) actions_.push_back({at, Action::What::kDelete, std::move(event.object)});
    return;
  }
  json::Value written = as_written(event.object);
  const auto known = last_.find(key);
  if (known != last_.end() && json::equal(known->second, written)) return;
  if (known == last_.end() && event.at_ms == 0)
    initial_.push_back(written);
  else
    actions_.push_back({at, known == last_.end() ? Action::What::kCreate : Action::What::kUpdate, written});
  last_[key] = std::move(written);
}

/// Pods become what they would have been asked for: how long they ran is known now.
void Replay::finish() {
  for (const std::string& uid : order_) {
    Life& life = pods_.find(uid)->second;
    if (as_workloads_ && is_controlled(life.pod)) continue;
    json::Value pod = as_written(life.pod);
    if (!life.was_placed) json::erase(pod, {"spec", "nodeName"});
    if (life.ended && life.started)
      json::set(pod, {"metadata", "annotations", "sim.berth.dev/run-for"},
                json::Value(boost::json::string(fmt::format("{}ms", std::max<std::int64_t>(*life.ended - *life.started, 1)))));
    const json::Value identity = json::Object{{"kind", "Pod"}, {"apiVersion", "v1"}, {"metadata", json::get_object(pod, {"metadata"})}};
    if (life.came == 0)
      initial_.push_back(std::move(pod));
    else
      actions_.push_back({std::chrono::milliseconds(life.came), Action::What::kCreate, std::move(pod)});
    if (life.deleted) actions_.push_back({std::chrono::milliseconds(*life.deleted), Action::What::kDelete, identity});
  }
  pods_.clear();
  last_.clear();
  order_.clear();
  std::ranges::stable_sort(actions_, {}, &Action::at);
}

std::vector<std::string> Replay::set_up(Story& story) {
  std::vector<std::string> notes = std::move(notes_);
  std::ranges::move(load_dump(initial_, story), std::back_inserter(notes));
  initial_.clear();
  return notes;
}

void Replay::begin(Story& story) { run_next(story); }

void Replay::run_next(Story& story) {
  if (next_ >= actions_.size()) return;
  story.at(actions_[next_].at, [this, &story] {
    const Duration when = actions_[next_].at;
    for (; next_ < actions_.size() && actions_[next_].at == when; ++next_) act(story, actions_[next_]);
    run_next(story);
  });
}

void Replay::act(Story& story, Action& action) {
  json::Value object = std::move(action.object);
  const std::string kind_name(json::get_string(object, {"kind"})), ns(json::get_string(object, {"metadata", "namespace"})),
      name(json::get_string(object, {"metadata", "name"}));
  if (action.what == Action::What::kCreate) return story.create(std::move(object), ns);
  const model::KindInfo* found = nullptr;
  for (const model::KindInfo& kind : model::all_kinds())
    if (kind.kind == kind_name && !kind.is_virtual) {
      found = &kind;
      break;
    }
  if (found == nullptr) return;
  if (action.what == Action::What::kDelete) return story.remove(found->group, found->plural, ns, name);
  story.patch(found->group, found->plural, ns, name, std::move(object));
}

}  // namespace berth::simulator
