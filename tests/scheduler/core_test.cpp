// The life of a pod in the scheduler's core, without server, loop or thread: tables of what it is told and what it wants done
// (tests/scheduler/cases/*.yaml).
//
// A step is one thing that happens, and lists the effects that follow from it, in order; turns are taken and posted work is done as long as
// there is any; "shows" are words of the metrics then, "says" of what is written in the step. "group NAME" shows a PodGroup, "object" one
// of another kind. Effects: "condition NAME STATUS", "bind POD to NODE", "patch POD STATUS", "delete POD", "get POD", "announce POD", "ask
// about POD", "tell POD REASON", "wake" and "wake no more". An answer is for the oldest open effect of that name.
#include "scheduler/core.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/check.h"
#include "base/yaml.h"
#include "placement/cluster_kinds.h"
#include "placement/plugin_of.h"
#include "tests/support/source_dir.h"

namespace berth::scheduler {
namespace {

using namespace placement;
using client::ObjectRef;

/// Makes every pod of one label wait for its patience; who has the other lets those that wait go on.
class Hold final : public PluginOf<Hold> {
 public:
  Hold(std::string_view name, const char* holds, const char* opens, Duration patience)
      : name_(name), holds_(holds), opens_(opens), patience_(patience) {}
  std::string_view name() const override { return name_; }
  PermitOutcome permit(CycleState&, const PodInfo& pod, const NodeInfo&, WaitingPods& waiting) const override {
    if (pod.view().meta.labels.get(opens_) != nullptr)
      waiting.for_each([&](const PodInfo& other, std::string_view) { waiting.allow(other.view().meta.uid, name()); });
    if (pod.view().meta.labels.get(holds_) == nullptr) return {};
    return {Status::wait(), patience_};
  }
  EventSet events_to_register() const override { return ClusterEvent::kNodeAdded; }

 private:
  std::string_view name_;
  const char *holds_, *opens_;
  Duration patience_;
};

/// Cannot take, or cannot keep, what one label says: "reserve" or "pre-bind".
class Stumble final : public PluginOf<Stumble> {
 public:
  std::string_view name() const override { return "Stumble"; }
  Status reserve(CycleState&, const PodInfo& pod, const NodeInfo&, Cluster&) const override {
    return stumbles(pod, "reserve") ? Status::error("it slipped") : Status::success();
  }
  std::expected<std::vector<PreBindWrite>, Status> pre_bind(const CycleState&, const PodInfo& pod, const NodeInfo&) const override {
    if (stumbles(pod, "pre-bind")) return std::unexpected(Status::error("it fell"));
    return std::vector<PreBindWrite>();
  }

 private:
  static bool stumbles(const PodInfo& pod, std::string_view at) {
    const std::string* said = pod.view().meta.labels.get("stumbles");
    return said != nullptr && *said == at;
  }
};

Result<PluginPtr> make_stumble(const Profile&) { return std::make_unique<Stumble>(); }
Result<PluginPtr> make_hold(const Profile&) { return std::make_unique<Hold>("Hold", "held", "partner", std::chrono::minutes(1)); }
Result<PluginPtr> make_latch(const Profile&) { return std::make_unique<Hold>("Latch", "latched", "key", std::chrono::minutes(2)); }

/// Stands still until it is set.
struct HandClock final : Clock {
  TimePoint time{std::chrono::hours(500'000)};
  [[nodiscard]] TimePoint now() const override { return time; }
};

class Desk {
 public:
  explicit Desk(const json::Value& table) {
    static const bool is_registered =
        register_plugin({"Hold", make_hold}) && register_plugin({"Latch", make_latch}) && register_plugin({"Stumble", make_stumble});
    EXPECT_TRUE(is_registered);
    SchedulerOptions options;
    Profile profile = default_profile(json::find(table, {"1.20"}) != nullptr ? Era::k120 : Era::k136);
    if (json::find(table, {"permit"}) != nullptr) profile.permit = {{"Hold", 0}, {"Latch", 0}};
    if (json::find(table, {"stumbles"}) != nullptr) {
      profile.reserve.emplace_back("Stumble", 0);
      profile.pre_bind.emplace_back("Stumble", 0);
    }
    options.profiles.push_back(profile);
    const auto groups = std::make_shared<GroupOptions>();
    if (json::find(table, {"told of pods that are missing"}) == nullptr) groups->incomplete_after = Duration(0);
    options.groups = groups;
    core_ = std::make_unique<Core>(
        options, *Profiles::create(options.profiles),
        [this](const client::Gvr& gvr, const std::string& ns, const std::string& name) { return known(gvr.resource, ns, name); }, clock_,
        [this](Effect effect) { std::visit([this](const auto& one) { take(one); }, effect); });
    if (json::find(table, {"extenders"}) != nullptr) {
      config::Extender one;
      one.filter_verb = "filter";
      if (json::find(table, {"binds"}) != nullptr) one.bind_verb = "bind";
      if (json::find(table, {"preempts"}) != nullptr) one.preempt_verb = "preempt";
      if (const json::Value* resource = json::find(table, {"manages"}))
        one.managed_resources = {{std::string(json::as_view(*resource)), false}};
      core_->extenders = std::make_shared<Extenders>(std::vector{one}, Extenders::Post());
    }
    core_->is_ready = true;
    core_->serves_groups = json::find(table, {"groups"}) != nullptr;
    core_->now = clock_.now();
    core_->lead(true);
    settle();
    done_.clear();
  }

  void play(const json::Value& step) {
    done_.clear();
    bodies_.clear();
    core_->now = clock_.now();
    for (const auto& [key, value] : step.as_object()) {
      const bool is_event = key != "then" && key != "with" && key != "left" && key != "shows" && key != "says";
      if (is_event) happen(key, std::string(json::as_view(value)), json::find(step, {"with"}));
    }
    settle();
    std::vector<std::string> wanted;
    for (const json::Value& one : json::get_array(step, {"then"})) wanted.emplace_back(json::as_view(one));
    EXPECT_EQ(done_, wanted) << json::serialize(step);
    for (const json::Value& one : json::get_array(step, {"shows"}))
      EXPECT_NE(core_->meters.registry().expose().find(json::as_view(one)), std::string::npos) << json::as_view(one);
    for (const json::Value& one : json::get_array(step, {"says"}))
      EXPECT_NE(bodies_.find(json::as_view(one)), std::string::npos) << json::as_view(one) << " in " << bodies_;
    if (const json::Value* left = json::find(step, {"left"})) {
      EXPECT_EQ(core_->pods.size(), static_cast<std::size_t>(left->as_int64())) << json::serialize(step);
    }
  }
  /// So many pods alike that no node takes, and nothing else of them but that they wait.
  void crowd(int count, const std::string& cpu) {
    const json::Value with{{"cpu", cpu}};
    for (int i = 0; i < count; ++i) show_new_pod(fmt::format("crowd-{}", i), &with);
    settle();
    while (!open_.empty()) answer(std::string(open_.front().first), "ok");
    settle();
  }
  Core& core() { return *core_; }
  /// Nothing is left of anybody: no record, no entry of the queue, no question.
  void expect_nothing_left() const {
    EXPECT_TRUE(core_->pods.empty());
    EXPECT_EQ(core_->out.open(), 0u);
    EXPECT_EQ(core_->assumed, 0u);
    EXPECT_EQ(core_->bindings_in_flight, 0u);
    EXPECT_TRUE(core_->preempted_by.empty() && core_->bindings_by_claim.empty() && core_->waiting_for_claim.empty());
    EXPECT_TRUE(core_->at_permit.empty() && core_->gates.empty());
    EXPECT_TRUE(core_->group_preempting.empty() && core_->group_waits.empty() && core_->reservations.empty());
    EXPECT_TRUE(core_->incomplete_groups.empty());
    const auto sizes = core_->queue.sizes();
    EXPECT_EQ(sizes.active + sizes.backoff + sizes.unschedulable + sizes.gated, 0u);
  }

 private:
  ObjectRef known(const std::string& resource, const std::string& ns, const std::string& name) const {
    const auto found = objects_.find(resource + "/" + ns + "/" + name);
    return found != objects_.end() ? found->second : nullptr;
  }
  ObjectRef pod(const std::string& name) const { return known("pods", "default", name); }

  void show(json::Value document) {
    json::set(document, {"metadata", "namespace"}, json::Value("default"));
    json::set(document, {"metadata", "resourceVersion"}, json::Value(std::to_string(++revision_)));
    const auto after = std::make_shared<client::Object>(document);
    ObjectRef& slot = objects_["pods/default/" + after->name()];
    const ObjectRef before = std::exchange(slot, after);
    if (before == nullptr)
      core_->pod_added(after);
    else
      core_->pod_updated(before, after);
  }
  void show_new_pod(const std::string& name, const json::Value* with) {
    json::Value spec = json::Object{{"schedulerName", "default-scheduler"}, {"priority", 0}};
    json::Object metadata{{"name", name}, {"uid", name + "-" + std::to_string(++uids_)}};
    std::string cpu = "1", started;
    json::Object others;  ///< Requests and limits of resources that somebody made up.
    const json::Object asked = with != nullptr ? with->as_object() : json::Object();
    for (const auto& [key, value] : asked) {
      if (key == "cpu")
        cpu = json::as_view(value);
      else if (key.find('/') != std::string_view::npos)
        others[key] = value;
      else if (key == "labels")
        metadata["labels"] = value;
      else if (key == "KiB")
        metadata["annotations"] = json::Object{{"large", std::string(static_cast<std::size_t>(value.as_int64()) << 10, 'x')}};
      else if (key == "created")
        metadata["creationTimestamp"] = value;
      else if (key == "started")
        started = json::as_view(value);
      else if (key == "group")
        json::set(spec, {"schedulingGroup", "podGroupName"}, value);
      else
        json::set(spec, {std::string(key)}, value);
    }
    json::Object requests = others;
    requests["cpu"] = cpu;
    json::set(spec, {"containers"},
              json::Array{json::Object{{"name", "c"}, {"resources", json::Object{{"requests", requests}, {"limits", others}}}}});
    json::Object pod{{"apiVersion", "v1"}, {"kind", "Pod"}, {"metadata", metadata}, {"spec", spec}};
    if (!started.empty()) pod["status"] = json::Object{{"phase", "Running"}, {"startTime", started}};
    show(std::move(pod));
  }

  void show_group(const std::string& name, const json::Value* with) {
    json::Value group{{"kind", "PodGroup"},
                      {"metadata", {{"name", name}, {"namespace", "default"}, {"uid", "group-" + name}}},
                      {"spec", {{"schedulingPolicy", {{"gang", {{"minCount", json::get_int(*with, {"minCount"}, 1)}}}}}}}};
    for (const auto& [key, value] : with->as_object())
      if (key == "topologyKey")
        json::set(group, {"spec", "schedulingConstraints", "topology"}, json::Array{json::Object{{"key", value}}});
      else if (key == "created")
        json::set(group, {"metadata", "creationTimestamp"}, value);
      else if (key == "annotations")
        json::set(group, {"metadata", "annotations"}, value);
      else if (key != "minCount")
        json::set(group, {"spec", std::string(key)}, value);
    const auto after = std::make_shared<client::Object>(group);
    ObjectRef& slot = objects_["podgroups/default/" + name];
    core_->object_changed({"PodGroup", {}, ClusterEvent::kNodeCordoned}, std::exchange(slot, after), after);
  }

  /// Another kind's that placement knows.
  void show_object(json::Value document) {
    const auto* kind = find_cluster_resource(json::get_string(document, {"kind"}));
    ASSERT_NE(kind, nullptr) << json::serialize(document);
    const bool has_namespace = kind->plural == "persistentvolumeclaims" || kind->plural == "resourceclaims";
    if (has_namespace) json::set(document, {"metadata", "namespace"}, json::Value("default"));
    json::set(document, {"metadata", "resourceVersion"}, json::Value(std::to_string(++revision_)));
    const auto after = std::make_shared<client::Object>(document);
    ObjectRef& slot = objects_[fmt::format("{}/{}/{}", kind->plural, has_namespace ? "default" : "", after->name())];
    if (kind->plural == "resourceclaims") claims_[after->name()] = document;
    const client::Gvr gvr{std::string(kind->group), "v1", std::string(kind->plural)};
    core_->object_changed({std::string(kind->kind), gvr, kind->event}, std::exchange(slot, after), after);
  }

  /// A ResourceClaim is not in the watch any more, or not for a while: who asks the server gets it.
  void hide_claim(const std::string& name) {
    const auto* kind = find_cluster_resource("ResourceClaim");
    const auto last = objects_.extract("resourceclaims/default/" + name);
    core_->object_changed({"ResourceClaim", {std::string(kind->group), "v1", "resourceclaims"}, kind->event}, last.mapped(), nullptr);
  }

  /// A node of two processors, or what `with` says of it.
  void show_node(const std::string& name, const json::Value* with) {
    json::Value node{
        {"kind", "Node"}, {"metadata", {{"name", name}}}, {"status", {{"allocatable", {{"cpu", "2"}, {"memory", "8Gi"}, {"pods", "10"}}}}}};
    const json::Object asked = with != nullptr ? with->as_object() : json::Object();
    for (const auto& [key, value] : asked)
      if (key == "cpu" || key.find('/') != std::string_view::npos)
        json::set(node, {"status", "allocatable", std::string(key)}, value);
      else if (key == "labels")
        json::set(node, {"metadata", "labels"}, value);
      else
        json::set(node, {"spec", std::string(key)}, value);
    const auto after = std::make_shared<client::Object>(node);
    const ObjectRef before = std::exchange(objects_["nodes//" + name], after);
    if (before == nullptr)
      core_->node_added(after);
    else
      core_->node_updated(before, after);
  }

  /// A ResourceClaim as the core last wrote it; `is_ready`: its driver says so of every device.
  void show_written(const std::string& name, bool is_ready) {
    json::Value claim = written_.at(name);
    json::Array devices;
    for (const json::Value& device : json::get_array(claim, {"status", "allocation", "devices", "results"}))
      devices.push_back(json::Object{{"driver", *json::find(device, "driver")},
                                     {"pool", *json::find(device, "pool")},
                                     {"device", *json::find(device, "device")},
                                     {"conditions", json::Array{json::Object{{"type", "example.com/ready"}, {"status", "True"}}}}});
    if (is_ready) json::set(claim, {"status", "devices"}, std::move(devices));
    show_object(std::move(claim));
  }

  void happen(std::string_view what, const std::string& name, const json::Value* with) {
    if (what == "group") return show_group(name, with);
    if (what == "group gone") {
      const auto last = objects_.extract("podgroups/default/" + name);
      return core_->object_changed({"PodGroup", {}, ClusterEvent::kNodeCordoned}, last.mapped(), nullptr);
    }
    if (what == "object") return show_object(*with);
    if (what == "claim hidden") return hide_claim(name);
    if (what == "written" || what == "ready") return show_written(name, what == "ready");
    if (what == "node") return show_node(name, with);
    if (what == "node gone") {
      core_->node_deleted(objects_.extract("nodes//" + name).mapped());
    } else if (what == "pod") {
      show_new_pod(name, with);
    } else if (what == "bound and more") {  // At once: the watch did not show what was between.
      json::Value document = pod(name)->document();
      for (const auto& [key, value] : with->as_object())
        if (key == "node")
          json::set(document, {"spec", "nodeName"}, value);
        else
          json::set(document, {"status", std::string(key)}, value);
      show(std::move(document));
    } else if (what == "bound" || what == "going" || what == "label" || what == "status") {
      json::Value document = pod(name)->document();
      if (what == "bound")
        json::set(document, {"spec", "nodeName"}, json::Value(json::as_view(*with)));
      else if (what == "going")
        json::set(document, {"metadata", "deletionTimestamp"}, json::Value("2026-01-01T00:00:00Z"));
      else if (what == "label" && with == nullptr)
        json::set(document, {"metadata", "labels", "changed"}, json::Value("yes"));
      else if (what == "label")
        json::set(document, {"metadata", "labels"}, *with);
      else
        for (const auto& [key, value] : with->as_object()) json::set(document, {"status", std::string(key)}, value);
      show(std::move(document));
    } else if (what == "gone") {
      const auto last = objects_.extract("pods/default/" + name);
      core_->pod_deleted(last.mapped());
    } else if (what == "lead") {
      core_->lead(name == "yes");
    } else if (what == "pass") {
      pass(*parse_go_duration(name));
    } else if (what == "answer") {
      answer(name, with != nullptr ? std::string(json::as_view(*with)) : "ok");
    } else {
      ADD_FAILURE() << "no such step: " << what;
    }
  }

  /// "ok", an HTTP status, "no answer", the node that a pod has, the node that extenders want, or that they want "none".
  void answer(const std::string& name, const std::string& with) {
    const auto open = std::ranges::find(open_, name, &std::pair<std::string, Ask>::first);
    ASSERT_NE(open, open_.end()) << name << " was not asked for";
    const Ask id = open->second;
    open_.erase(open);
    if (name.starts_with("ask about")) return core_->out.answered(id, choice(with));
    if (name.starts_with("ask for victims")) {
      auto left = candidates_.extract(id).mapped();
      if (with == "none") left.clear();
      return core_->out.answered(id, LeftVictims(std::move(left)));
    }
    if (name.starts_with("ask to bind"))
      return core_->out.answered(id, with == "error" ? Bound(invalid("the extender is away")) : Bound(with == "ok"));
    if (with == "ok" && name.starts_with("update")) {
      json::Value& written = written_[name.substr(7)] = *json::parse(updates_.extract(id).mapped());
      json::set(written, {"metadata", "resourceVersion"}, json::Value(std::to_string(++revision_)));
      return core_->out.answered(id, Answered(written));
    }
    if (const auto claim = claims_.find(name.substr(name.find(' ') + 1)); with == "ok" && name.starts_with("get") && claim != claims_.end())
      return core_->out.answered(id, Answered(claim->second));
    if (with == "ok" && name.starts_with("create")) {
      claims_["made"] = json::Value{{"metadata", {{"name", "made"}, {"uid", "made-uid"}}}};
      return core_->out.answered(id, Answered(claims_["made"]));
    }
    if (with == "ok") return core_->out.answered(id, Answered(json::Value(json::Object())));
    if (name.starts_with("get") && with != "no answer" && with != "404") {
      const ObjectRef now = pod(name.substr(4));
      return core_->out.answered(id, Answered(json::Value{{"metadata", {{"uid", now->uid()}}}, {"spec", {{"nodeName", with}}}}));
    }
    client::ApiStatus status;
    status.code = with == "no answer" ? 0 : std::stoi(with);
    status.message = "refused";
    core_->out.answered(id, Answered(std::unexpected(status)));
  }

  static Chosen choice(const std::string& with) {
    Chosen out;
    if (with == "error") {
      out.decision.outcome = Decision::Outcome::kError;
      out.decision.error = "the extender is away";
    } else if (with == "none") {
      out.decision.outcome = Decision::Outcome::kUnschedulable;
      out.decision.diagnosis = std::make_shared<Diagnosis>();
    } else {
      out.decision.outcome = Decision::Outcome::kScheduled;
      out.node_name = with;
    }
    return out;
  }

  void pass(Duration time) {
    const TimePoint until = clock_.now() + time;
    while (true) {
      const auto due = std::ranges::min_element(timers_, {}, [](const auto& timer) { return std::pair(timer.second, timer.first); });
      const auto turn = core_->next_turn();
      const TimePoint next = std::min(due != timers_.end() ? due->second : until, turn.value_or(until));
      if (next > until || (next == until && (due == timers_.end() || due->second > until) && (!turn || *turn > until))) break;
      clock_.time = std::max(next, clock_.time);
      core_->now = clock_.now();
      if (due != timers_.end() && due->second <= clock_.now()) {
        const Ask id = due->first;
        timers_.erase(due);
        core_->out.answered(id, {});
      }
      settle();
    }
    clock_.time = until;
    core_->now = until;
  }

  void settle() {
    do {
      while (!later_.empty()) {
        const Ask id = later_.front();
        later_.pop_front();
        core_->out.answered(id, {});
      }
      while (core_->take_turn()) continue;
    } while (!later_.empty());
  }

  void take(const Request& request) {
    const std::string body = request.call.body, name = request.call.name;
    bodies_ += body + "\n";
    std::string what = request.call.verb + " " + name;
    if (request.call.subresource == "binding") {
      const auto binding = json::parse(body);
      what = fmt::format("bind {} to {}", name, json::get_string(*binding, {"target", "name"}));
    } else if (request.call.gvr.resource == "podgroups") {
      const auto patch = json::parse(body);
      what = fmt::format("condition {} {}", name, json::get_string(json::get_array(*patch, {"status", "conditions"})[0], {"status"}));
    } else if (request.call.subresource == "status" && request.call.gvr == kPods) {
      what = body.find("DisruptionTarget") != std::string::npos ? "mark " + name
             : body.find("PodScheduled") != std::string::npos   ? "patch " + name
             : body.find("null") != std::string::npos           ? "withdraw " + name
                                                                : "announce " + name;
    }
    if (request.call.verb == "update") updates_[request.id] = body;
    note(what, request.id);
  }
  void take(const Report& report) { done_.push_back(fmt::format("tell {} {}", report.regarding.name, report.reason)); }
  void take(const WakeAt& wake) {
    timers_[wake.id] = wake.when;
    done_.push_back("wake");
  }
  void take(const CancelWake& wake) {
    EXPECT_EQ(timers_.erase(wake.id), 1u);
    done_.push_back("wake no more");
  }
  void take(const Later& later) { later_.push_back(later.id); }
  void take(const TakeTurns&) {}
  void take(const AskForNode& question) { note("ask about " + question.info->view().meta.name, question.id); }
  void take(const AskForVictims& question) {
    candidates_[question.id] = question.candidates;
    note("ask for victims of " + question.info->view().meta.name, question.id);
  }
  void take(const AskToBind& question) { note("ask to bind " + question.info->view().meta.name, question.id); }
  void note(const std::string& what, Ask id) {
    done_.push_back(what);
    if (id != 0) open_.emplace_back(what, id);
  }

  HandClock clock_;
  std::map<std::string, ObjectRef> objects_;
  std::int64_t revision_ = 0;
  int uids_ = 0;
  std::vector<std::string> done_;
  std::string bodies_;  ///< Of what was written in this step.
  std::vector<std::pair<std::string, Ask>> open_;
  std::map<Ask, std::vector<Candidate>> candidates_;
  std::map<Ask, std::string> updates_;          ///< What was to be written.
  std::map<std::string, json::Value> written_;  ///< By name.
  std::map<std::string, json::Value> claims_;   ///< As the server has them, by name.
  std::map<Ask, TimePoint> timers_;
  std::deque<Ask> later_;
  std::unique_ptr<Core> core_;
};

TEST(SchedulerCore, TablesOfEventsAndEffects) {
  std::size_t tables = 0;
  for (const auto& file : std::filesystem::directory_iterator(testing::source_dir() + "/tests/scheduler/cases")) {
    std::ifstream in(file.path());
    const auto documents = json::read_yaml(std::string(std::istreambuf_iterator<char>(in), {}));
    ASSERT_TRUE(documents) << file.path() << ": " << documents.error().message();
    for (const json::Value& table : *documents) {
      ++tables;
      SCOPED_TRACE(fmt::format("{}: {}", file.path().filename().string(), json::get_string(table, {"case"})));
      Desk desk(table);
      for (const json::Value& step : json::get_array(table, {"steps"})) desk.play(step);
      desk.expect_nothing_left();
    }
  }
  EXPECT_GE(tables, 15u);
}

json::Value step(const std::string& text) { return *json::parse(text); }

TEST(SchedulerCore, WhereThousandsWaitTheNodeOfTheEventMustTakeThem) {
  Desk desk(json::Value(json::Object{}));
  desk.play(step(R"({"node": "n1"})"));
  for (const auto* pod : {R"({"pod": "x", "with": {"cpu": "1400m", "priority": 5, "nodeName": "n1"}})",
                          R"({"pod": "y", "with": {"cpu": "500m", "priority": 5, "nodeName": "n1"}})"})
    desk.play(step(pod));
  desk.crowd(1001, "1");
  EXPECT_EQ(desk.core().queue.sizes().unschedulable, 1001U);
  desk.play(step(R"({"gone": "y"})"));  // Some room, and not enough: nobody is tried.
  EXPECT_EQ(desk.core().queue.sizes().unschedulable, 1001U);
  desk.play(step(R"({"pod": "z", "with": {"cpu": "500m", "priority": 5, "nodeName": "n1"}})"));
  desk.play(step(R"({"gone": "z"})"));
  EXPECT_EQ(desk.core().queue.sizes().unschedulable, 1001U);
}

TEST(SchedulerCore, FewAreTriedAfterAnyEventThatCouldHelp) {
  Desk desk(json::Value(json::Object{}));
  desk.play(step(R"({"node": "n1"})"));
  for (const auto* pod : {R"({"pod": "x", "with": {"cpu": "1400m", "priority": 5, "nodeName": "n1"}})",
                          R"({"pod": "y", "with": {"cpu": "500m", "priority": 5, "nodeName": "n1"}})"})
    desk.play(step(pod));
  desk.crowd(1, "1");
  desk.play(step(R"({"gone": "x", "then": ["bind crowd-0 to n1"]})"));
}

/// What a large pod left behind counts, however it went; after 32 MiB the columns are given back, and it counts anew.
TEST(SchedulerCore, LargePodsThatWentAreCounted) {
  Desk desk(json::Value(json::Object{}));
  desk.play(step(R"({"node": "n1"})"));
  const auto gone = [&] { return desk.core().gone_bytes; };
  desk.play(step(R"({"pod": "small", "with": {"cpu": "10m", "nodeName": "n1", "KiB": 1}})"));
  desk.play(step(R"({"gone": "small"})"));
  EXPECT_EQ(gone(), 0U);
  desk.play(step(R"({"pod": "placed", "with": {"cpu": "10m", "nodeName": "n1", "KiB": 64}})"));
  desk.play(step(R"({"gone": "placed"})"));
  const std::size_t one = gone();
  EXPECT_GT(one, std::size_t{64} << 10);
  desk.play(step(R"({"pod": "waiting", "with": {"cpu": "9", "KiB": 64}, "then": ["tell waiting FailedScheduling", "patch waiting"]})"));
  desk.play(step(R"({"gone": "waiting"})"));
  EXPECT_GT(gone(), one + (std::size_t{64} << 10));
  const std::size_t two = gone();
  desk.play(step(R"({"pod": "ends", "with": {"cpu": "10m", "nodeName": "n1", "KiB": 64}})"));
  desk.play(step(R"({"status": "ends", "with": {"phase": "Succeeded"}})"));
  const std::size_t three = gone();
  EXPECT_GT(three, two + (std::size_t{64} << 10));
  desk.play(step(R"({"gone": "ends"})"));
  EXPECT_EQ(gone(), three) << "once";
  desk.play(step(R"({"pod": "huge", "with": {"cpu": "10m", "nodeName": "n1", "KiB": 33000}})"));
  desk.play(step(R"({"gone": "huge"})"));
  EXPECT_EQ(gone(), 0U);
}

TEST(SchedulerCore, WhatPermitSaidIsMeasured) {
  Desk desk(json::Value(json::Object{{"permit", "yes"}}));
  desk.play(step(R"({"node": "n1"})"));
  desk.play(step(R"({"pod": "a", "with": {"labels": {"held": "1"}}, "then": ["wake"]})"));
  const auto count = [&](const std::string& status) {
    const std::string text = desk.core().meters.registry().expose();
    const auto line = text.find("extension_point_duration_seconds_count{extension_point=\"Permit\"");
    return line != std::string::npos && text.find("status=\"" + status + "\"", line) < text.find('\n', line);
  };
  EXPECT_TRUE(count("Wait"));
  EXPECT_FALSE(count("Success"));
}

TEST(SchedulerCore, AnEffectIsAnsweredOnce) {
  std::vector<Ask> asked;
  Outbox out([&](Effect effect) { asked.push_back(std::get<Later>(effect).id); });
  out.later([] {});
  out.answered(asked.front(), {});
  EXPECT_EXIT(out.answered(asked.front(), {}), ::testing::ExitedWithCode(kCheckFailedExit), "nobody waits for that");
}

}  // namespace
}  // namespace berth::scheduler
