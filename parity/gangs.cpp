#include "parity/gangs.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <random>
#include <set>

#include "scheduler/core.h"

namespace berth::scheduler::parity {
namespace {

using client::ObjectRef;
using placement::PodInfoPtr;

constexpr Duration kQuiet = std::chrono::milliseconds(3200);  ///< As long the recorder waited.

/// Stands still until it is set.
struct HandClock final : Clock {
  TimePoint time{std::chrono::hours(500'000)};
  [[nodiscard]] TimePoint now() const override { return time; }
};

std::string text(const json::Value& object, std::string_view key) { return std::string(json::get_string(object, {key})); }

/// Of a list of conditions, the one of this type; made where it is not there.
json::Value& condition_of(json::Array& list, std::string_view type) {
  for (json::Value& one : list)
    if (json::get_string(one, {"type"}) == type) return one;
  return list.emplace_back(json::Object{{"type", type}});
}

/// A patch of a status as the API server applies it: conditions by type, null takes a field away.
void apply(json::Value& document, const json::Value& patch) {
  for (const auto& [key, value] : json::get_object(patch, {"status"})) {
    if (key == "conditions") {
      if (json::find(document, {"status", "conditions"}) == nullptr) json::set(document, {"status", "conditions"}, json::Array());
      json::Array& list = json::find(document, {"status", "conditions"})->get_array();
      for (const json::Value& one : value.get_array()) {
        json::Value& mine = condition_of(list, json::get_string(one, {"type"}));
        for (const auto& [field, said] : one.get_object()) mine.get_object()[field] = said;
      }
    } else if (value.is_null()) {
      if (json::Value* status = json::find(document, "status")) status->get_object().erase(key);
    } else {
      json::set(document, {"status", std::string(key)}, value);
    }
  }
}

/// The cluster of one scenario: objects, the scheduler's core, and what the API does of what it asks.
class GangCase {
 public:
  /// `chance`: another one for each number. 0: the first of equals, and in the order of coming.
  GangCase(const json::Value& file, std::uint32_t chance) : file_(file), chance_(chance), random_(chance) {
    SchedulerOptions options;
    const auto groups = std::make_shared<GroupOptions>();
    options.groups = groups;
    groups->as_kubernetes = true;
    options.profiles.push_back(placement::default_profile(placement::Era::k136));
    options.queue.initial_backoff = options.queue.max_backoff = std::chrono::seconds(1);
    options.engine.tie_break = placement::EngineOptions::TieBreak::kFirstByName;
    groups->choose_among_equals = [this](const placement::Cluster& cluster, const placement::PodInfo& pod, auto equals) {
      return recorded_among(cluster, pod, equals);
    };
    groups->order_members = [this](std::vector<PodInfoPtr>& members) { order(members); };
    groups->pick_domain = [this](std::size_t count) { return chance_ == 0 ? 0 : random_() % count; };
    options.on_preemption = [this](const placement::Cluster& cluster, const PodInfoPtr& pod, placement::Candidate& choice) {
      take_recorded(cluster, pod, choice);
    };
    auto profiles = placement::Profiles::create(options.profiles);
    core_ = std::make_unique<Core>(
        options, std::move(*profiles),
        [this](const client::Gvr& gvr, const std::string& ns, const std::string& name) { return known(gvr.resource, ns, name); }, clock_,
        [this](Effect effect) { std::visit([this](auto& one) { take(std::move(one)); }, effect); });
    core_->serves_groups = core_->is_ready = true;
    core_->now = clock_.now();
    core_->lead(true);
    for (const json::Value& node : json::get_array(file, {"nodes"})) add_node(node);
    for (const json::Value& pod : json::get_array(file, {"existing"})) add_pod(pod);
    settle();
  }

  std::vector<std::string> run() {
    const json::Array& steps = json::get_array(file_, {"steps"});
    const json::Array& expected = json::get_array(file_, {"expected"});
    if (steps.empty() || steps.size() != expected.size()) return {"malformed: steps and expected must be lists of one length"};
    for (std::size_t i = 0; i < steps.size(); ++i) {
      wanted_ = &expected[i];
      take_step(steps[i]);
      compare(fmt::format("step {}", i + 1));
    }
    return std::move(out_);
  }

  json::Array play() {
    json::Array out;
    for (const json::Value& step : json::get_array(file_, {"steps"})) {
      take_step(step);
      json::Object pods;
      for (const auto& [pod, owner] : owners_) pods[pod] = place_of(pod);
      out.emplace_back(std::move(pods));
    }
    return out;
  }

 private:
  ObjectRef known(const std::string& resource, const std::string& ns, const std::string& name) const {
    const auto found = objects_.find(resource + "/" + ns + "/" + name);
    return found != objects_.end() ? found->second : nullptr;
  }
  std::int64_t priority_of(const json::Value& from) const {
    const std::string name = text(from, "priorityClassName");
    return name.empty() ? 0 : json::get_int(file_, {"priorityClasses", name});
  }

  void take_step(const json::Value& step) {
    for (const json::Value& group : json::get_array(step, {"groups"})) add_group(group);
    const bool come_at_once = chance_ % 4 == 3;  ///< Before the scheduler looks.
    for (const json::Value& pod : json::get_array(step, {"pods"})) {
      add_pod(pod);
      if (!come_at_once) settle();
    }
    wait_until_quiet();
  }

  void add_node(const json::Value& from) {
    const std::string name = text(from, "name");
    json::Object labels{{"kubernetes.io/hostname", name}, {"zone", text(from, "zone")}, {"rack", text(from, "rack")}};
    for (const auto& [key, value] : json::get_object(from, {"labels"})) labels[key] = value;
    json::Value node{
        {"kind", "Node"},
        {"metadata", {{"name", name}, {"labels", labels}}},
        {"spec", {{"taints", json::get_array(from, {"taints"})}}},
        {"status", {{"allocatable", {{"cpu", std::to_string(json::get_int(from, {"cpu"}))}, {"memory", "64Gi"}, {"pods", "110"}}}}}};
    core_->node_added(objects_["nodes//" + name] = std::make_shared<client::Object>(node));
  }

  void add_group(const json::Value& from) {
    const std::string name = text(from, "name");
    const json::Value* min_count = json::find(from, "minCount");
    json::Value policy = min_count != nullptr && min_count->is_number() ? json::Value{{"gang", {{"minCount", *min_count}}}}
                                                                        : json::Value{{"basic", json::Object()}};
    json::Value spec{{"schedulingPolicy", policy}, {"priority", priority_of(from)}};
    if (const std::string key = text(from, "topologyKey"); !key.empty())
      json::set(spec, {"schedulingConstraints"}, {{"topology", json::Array{json::Object{{"key", key}}}}});
    if (const std::string mode = text(from, "disruptionMode"); !mode.empty()) json::set(spec, {"disruptionMode"}, json::Value(mode));
    show("podgroups", {{"apiVersion", "scheduling.k8s.io/v1alpha2"},
                       {"kind", "PodGroup"},
                       {"metadata", {{"name", name}, {"namespace", "default"}, {"uid", "group-" + name}, {"generation", 1}}},
                       {"spec", spec}});
    settle();
  }

  void add_pod(const json::Value& from) {
    const std::string name = text(from, "name"), group = text(from, "group");
    const std::string label = group.empty() ? "none" : group;
    const json::Value selector{{"matchLabels", {{"g", label}}}};
    json::Value spec{{"schedulerName", "default-scheduler"}, {"priority", priority_of(from)}, {"terminationGracePeriodSeconds", 0}};
    json::set(spec, {"containers"},
              json::Array{json::Object{
                  {"name", "c"},
                  {"resources", json::Object{{"requests", json::Object{{"cpu", std::to_string(json::get_int(from, {"cpu"}))}}}}}}});
    if (!group.empty()) json::set(spec, {"schedulingGroup"}, {{"podGroupName", group}});
    if (const std::string node = text(from, "node"); !node.empty()) json::set(spec, {"nodeName"}, json::Value(node));
    if (const json::Value* wanted = json::find(from, "nodeSelector"); wanted != nullptr && wanted->is_object())
      json::set(spec, {"nodeSelector"}, *wanted);
    if (const std::string key = text(from, "anti"); !key.empty())
      json::set(spec, {"affinity", "podAntiAffinity", "requiredDuringSchedulingIgnoredDuringExecution"},
                json::Array{json::Object{{"topologyKey", key}, {"labelSelector", selector}}});
    if (const std::string key = text(from, "spread"); !key.empty())
      json::set(spec, {"topologySpreadConstraints"},
                json::Array{json::Object{
                    {"maxSkew", 1}, {"topologyKey", key}, {"whenUnsatisfiable", "DoNotSchedule"}, {"labelSelector", selector}}});
    owners_[name] = group.empty() ? name.substr(0, name.find('-')) : group;
    show("pods",
         {{"apiVersion", "v1"},
          {"kind", "Pod"},
          {"metadata", {{"name", name}, {"namespace", "default"}, {"uid", "pod-" + name}, {"generation", 1}, {"labels", {{"g", label}}}}},
          {"spec", spec},
          {"status", {{"phase", "Pending"}}}});
  }

  /// The watch shows the object's new revision.
  void show(const std::string& resource, json::Value document) {
    json::set(document, {"metadata", "resourceVersion"}, json::Value(std::to_string(++revision_)));
    const auto after = std::make_shared<client::Object>(document);
    ObjectRef& slot = objects_[resource + "/default/" + after->name()];
    const ObjectRef before = std::exchange(slot, after);
    last_change_ = clock_.now();
    core_->now = clock_.now();
    if (resource == "podgroups") return core_->object_changed({"PodGroup", {}, ClusterEvent::kNodeCordoned}, before, after);
    if (before == nullptr) return core_->pod_added(after);
    core_->pod_updated(before, after);
  }

  // Effects

  void take(Request request) {
    doing_.emplace_back([this, request = std::move(request)] {
      Answered answer = carry_out(request.call);
      if (request.id != 0) core_->out.answered(request.id, std::move(answer));
    });
  }
  Answered carry_out(const client::Call& call) {
    const std::string key = call.gvr.resource + "/" + call.ns + "/" + call.name;
    const auto found = objects_.find(key);
    if (found == objects_.end()) {
      client::ApiStatus status;
      status.code = 404;
      status.message = call.name + " not found";
      return std::unexpected(status);
    }
    json::Value document = found->second->document();
    if (call.verb == "delete") {
      const ObjectRef last = objects_.extract(found).mapped();
      gone_.insert(call.name);
      last_change_ = clock_.now();
      core_->pod_deleted(last);
      return Answered(json::Value(json::Object()));
    }
    if (call.verb == "get") return Answered(document);
    const json::Value body = *json::parse(call.body);
    if (call.subresource == "binding")
      json::set(document, {"spec", "nodeName"}, json::Value(json::get_string(body, {"target", "name"})));
    else
      apply(document, body);
    show(call.gvr.resource, document);
    return Answered(document);
  }
  void take(const Report&) {}
  void take(const WakeAt& wake) { timers_[wake.id] = wake.when; }
  void take(const CancelWake& wake) { timers_.erase(wake.id); }
  void take(const Later& later) {
    doing_.emplace_back([this, id = later.id] { core_->out.answered(id, {}); });
  }
  void take(const TakeTurns&) {}
  void take(const AskForNode&) {}
  void take(const AskForVictims&) {}
  void take(const AskToBind&) {}

  void settle() {
    core_->now = clock_.now();
    do {
      while (!doing_.empty()) {
        const auto next = std::move(doing_.front());
        doing_.pop_front();
        next();
      }
    } while (core_->take_turn() || !doing_.empty());
  }

  void wait_until_quiet() {
    settle();
    last_change_ = clock_.now();
    while (true) {
      const auto due = std::ranges::min_element(timers_, {}, [](const auto& timer) { return std::pair(timer.second, timer.first); });
      const TimePoint end = last_change_ + kQuiet;
      const TimePoint next = std::min({due != timers_.end() ? due->second : end, core_->next_turn().value_or(end), end});
      if (next >= end) break;
      clock_.time = std::max(next, clock_.time);
      core_->now = clock_.now();
      if (due != timers_.end() && due->second <= clock_.now()) {
        const Ask id = due->first;
        timers_.erase(due);
        core_->out.answered(id, {});
      }
      settle();
    }
    clock_.time = last_change_ + kQuiet;
  }

  // What was chance

  [[nodiscard]] std::string recorded(const std::string& pod) const {
    return wanted_ == nullptr ? std::string() : std::string(json::get_string(*wanted_, {"pods", pod}));
  }
  placement::NodeIndex recorded_among(const placement::Cluster& cluster, const placement::PodInfo& pod,
                                      std::span<const placement::NodeIndex> equals) {
    const std::string node = recorded(pod.view().meta.name);
    const auto found = std::ranges::find_if(equals, [&](placement::NodeIndex one) { return cluster.node(one)->name == node; });
    if (found != equals.end()) return *found;
    return chance_ == 0 ? placement::NodeIndex() : equals[random_() % equals.size()];
  }
  /// Of several nodes where evicting is as good, the recorded one.
  void take_recorded(const placement::Cluster& cluster, const PodInfoPtr& pod, placement::Candidate& choice) const {
    const placement::Evaluation failed = core_->trial.evaluate(*pod);
    const placement::PostFilterResult all = core_->trial.victims_for(pod, &failed);
    for (const placement::Candidate& one : all.candidates)
      if (std::ranges::find(all.tied, one.node) != all.tied.end() && cluster.node(one.node)->name == recorded(pod->view().meta.name))
        choice = one;
  }
  /// Those that were placed first, then those that had a place in vain, then the others; last those that fitted nowhere.
  void order(std::vector<PodInfoPtr>& members) {
    if (wanted_ == nullptr) return;
    const auto rank = [&](const PodInfoPtr& pod) {
      const std::string& name = pod->view().meta.name;
      const std::string said(json::get_string(*wanted_, {"messages", name, "message"}));
      const std::string node = recorded(name);
      if (said.starts_with("0/")) return 3;
      if (chance_ % 2 == 0 && chance_ != 0) return 0;
      if (!said.empty()) return 1;
      return node.empty() || node == "pending" ? 2 : 0;
    };
    if (chance_ != 0) std::ranges::shuffle(members, random_);
    std::ranges::stable_sort(members, [&](const PodInfoPtr& a, const PodInfoPtr& b) {
      if (a->view().priority != b->view().priority) return a->view().priority > b->view().priority;
      return rank(a) < rank(b);
    });
  }

  // What came of it

  void differ(const std::string& step, const std::string& what, std::string_view wanted, std::string_view got) {
    if (wanted != got) out_.push_back(fmt::format("{}: {}: wanted {}, got {}", step, what, wanted, got));
  }
  [[nodiscard]] std::string place_of(const std::string& pod) const {
    const ObjectRef object = known("pods", "default", pod);
    if (object == nullptr) return "gone";
    const std::string node(json::get_string(object->document(), {"spec", "nodeName"}));
    return node.empty() ? "pending" : node;
  }
  void compare(const std::string& step);
  void compare_owners(const std::string& step);
  void compare_messages(const std::string& step);

  const json::Value& file_;
  const std::uint32_t chance_;
  std::mt19937 random_;
  const json::Value* wanted_ = nullptr;  ///< Of the step that is played.
  HandClock clock_;
  TimePoint last_change_{};
  std::map<std::string, ObjectRef> objects_;
  std::map<std::string, std::string> owners_;  ///< By pod, those that are gone included.
  std::set<std::string> gone_;
  std::int64_t revision_ = 0;
  std::deque<std::function<void()>> doing_;
  std::map<Ask, TimePoint> timers_;
  std::vector<std::string> out_;
  std::unique_ptr<Core> core_;
};

void GangCase::compare(const std::string& step) {
  for (const auto& [pod, place] : json::get_object(*wanted_, {"pods"}))
    differ(step, fmt::format("pod {}", std::string_view(pod)), json::as_view(place), place_of(std::string(pod)));
  compare_owners(step);
  compare_messages(step);
}

void GangCase::compare_owners(const std::string& step) {
  struct Seen {
    std::int64_t placed = 0, pending = 0, gone = 0;
    std::set<std::string> zones, racks;
  };
  std::map<std::string, Seen> owners;
  for (const auto& [pod, owner] : owners_) {
    Seen& seen = owners[owner];
    const std::string place = place_of(pod);
    ++(place == "gone" ? seen.gone : place == "pending" ? seen.pending : seen.placed);
    const ObjectRef node = known("nodes", "", place);
    if (node == nullptr) continue;
    seen.zones.emplace(json::get_string(node->document(), {"metadata", "labels", "zone"}));
    seen.racks.emplace(json::get_string(node->document(), {"metadata", "labels", "rack"}));
  }
  for (const auto& [owner, counts] : json::get_object(*wanted_, {"counts"})) {
    const Seen& seen = owners[std::string(owner)];
    differ(step, fmt::format("{} placed/pending/gone", std::string_view(owner)),
           fmt::format("{}/{}/{}", json::get_int(counts, {"placed"}), json::get_int(counts, {"pending"}), json::get_int(counts, {"gone"})),
           fmt::format("{}/{}/{}", seen.placed, seen.pending, seen.gone));
  }
  const auto names = [](const json::Value& domains, std::string_view key) {
    std::set<std::string> out;
    for (const json::Value& one : json::get_array(domains, {key})) out.emplace(json::as_view(one));
    return out;
  };
  for (const auto& [owner, domains] : json::get_object(*wanted_, {"domains"})) {
    const Seen& seen = owners[std::string(owner)];
    differ(step, fmt::format("{} zones", std::string_view(owner)), fmt::format("{}", fmt::join(names(domains, "zones"), " ")),
           fmt::format("{}", fmt::join(seen.zones, " ")));
    differ(step, fmt::format("{} racks", std::string_view(owner)), fmt::format("{}", fmt::join(names(domains, "racks"), " ")),
           fmt::format("{}", fmt::join(seen.racks, " ")));
  }
}

void GangCase::compare_messages(const std::string& step) {
  const auto said = [](const ObjectRef& object, std::string_view type) {
    std::string out;
    const json::Value document = object != nullptr ? object->document() : json::Value();
    for (const json::Value& one : json::get_array(document, {"status", "conditions"}))
      if (json::get_string(one, {"type"}) == type)
        out = fmt::format("{}: {}: {}", json::get_string(one, {"status"}), json::get_string(one, {"reason"}),
                          json::get_string(one, {"message"}));
    return out;
  };
  for (const auto& [name, conditions] : json::get_object(*wanted_, {"podGroupConditions"}))
    for (const json::Value& one : conditions.as_array())
      differ(step, fmt::format("condition of group {}", std::string_view(name)),
             fmt::format("{}: {}: {}", text(one, "status"), text(one, "reason"), text(one, "message")),
             said(known("podgroups", "default", std::string(name)), text(one, "type")));
  for (const auto& [name, message] : json::get_object(*wanted_, {"messages"})) {
    const bool is_none = text(message, "reason").empty() && text(message, "message").empty();
    differ(step, fmt::format("message of pod {}", std::string_view(name)),
           is_none ? "" : fmt::format("False: {}: {}", text(message, "reason"), text(message, "message")),
           said(known("pods", "default", std::string(name)), "PodScheduled"));
  }
}

}  // namespace

bool is_gang_vector(const json::Value& file) {
  return file.is_object() && json::find(file, "nodes") != nullptr && json::find(file, "steps") != nullptr &&
         json::find(file, "expected") != nullptr && json::find(file, "priorityClasses") != nullptr;
}

json::Array play_gangs(const json::Value& file) { return GangCase(file, 0).play(); }

std::vector<std::string> replay_gangs(const json::Value& file) {
  constexpr std::uint32_t kMostChances = 2000;
  std::vector<std::string> closest = GangCase(file, 0).run();
  for (std::uint32_t chance = 1; chance < kMostChances && !closest.empty(); ++chance) {
    std::vector<std::string> differences = GangCase(file, chance).run();
    if (differences.size() < closest.size()) closest = std::move(differences);
  }
  return closest;
}

}  // namespace berth::scheduler::parity
