// The life of a pod in the scheduler's core, without server, loop or thread: tables of what it is told and what it wants done
// (tests/scheduler/cases/*.yaml).
//
// A step is one thing that happens, and lists the effects that follow from it, in order; turns are taken and posted work is done as long as
// there is any. "group NAME" shows a PodGroup. Effects: "condition NAME STATUS", "bind POD to NODE", "patch POD STATUS", "delete POD", "get
// POD", "announce POD", "ask about POD", "tell POD REASON", "wake" and "wake no more". An answer is for the oldest open effect of that
// name.
#include "scheduler/core.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/check.h"
#include "base/yaml.h"
#include "placement/plugin_of.h"
#include "tests/support/source_dir.h"

namespace berth::scheduler {
namespace {

using namespace placement;
using client::ObjectRef;

/// Makes every pod of the label "held" wait for a minute; who has the label "partner" as well lets the others go on.
class Hold final : public PluginOf<Hold> {
 public:
  std::string_view name() const override { return "Hold"; }
  PermitOutcome permit(CycleState&, const PodInfo& pod, const NodeInfo&, WaitingPods& waiting) const override {
    if (pod.view().meta.labels.get("partner") != nullptr)
      waiting.for_each([&](const PodInfo& other, std::string_view) { waiting.allow(other.view().meta.uid, name()); });
    if (pod.view().meta.labels.get("held") == nullptr) return {};
    return {Status::wait(), std::chrono::minutes(1)};
  }
};

Result<PluginPtr> make_hold(const Profile&) { return std::make_unique<Hold>(); }

/// Stands still until it is set.
struct HandClock final : Clock {
  TimePoint time{std::chrono::hours(500'000)};
  [[nodiscard]] TimePoint now() const override { return time; }
};

class Desk {
 public:
  explicit Desk(const json::Value& table) {
    static const bool is_registered = register_plugin({"Hold", make_hold});
    EXPECT_TRUE(is_registered);
    SchedulerOptions options;
    Profile profile = default_profile(Era::k136);
    if (json::find(table, {"permit"}) != nullptr) profile.permit = {{"Hold", 0}};
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
    core_->now = clock_.now();
    for (const auto& [key, value] : step.as_object()) {
      const bool is_event = key != "then" && key != "with" && key != "left";
      if (is_event) happen(key, std::string(json::as_view(value)), json::find(step, {"with"}));
    }
    settle();
    std::vector<std::string> wanted;
    for (const json::Value& one : json::get_array(step, {"then"})) wanted.emplace_back(json::as_view(one));
    EXPECT_EQ(done_, wanted) << json::serialize(step);
    if (const json::Value* left = json::find(step, {"left"})) {
      EXPECT_EQ(core_->pods.size(), static_cast<std::size_t>(left->as_int64())) << json::serialize(step);
    }
  }
  /// Nothing is left of anybody: no record, no entry of the queue, no question.
  void expect_nothing_left() const {
    EXPECT_TRUE(core_->pods.empty());
    EXPECT_EQ(core_->out.open(), 0u);
    EXPECT_EQ(core_->assumed, 0u);
    EXPECT_EQ(core_->bindings_in_flight, 0u);
    EXPECT_TRUE(core_->preempted_by.empty() && core_->bindings_by_claim.empty() && core_->at_permit.empty() && core_->gates.empty());
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
    const json::Object asked = with != nullptr ? with->as_object() : json::Object();
    for (const auto& [key, value] : asked) {
      if (key == "cpu")
        cpu = json::as_view(value);
      else if (key == "labels")
        metadata["labels"] = value;
      else if (key == "created")
        metadata["creationTimestamp"] = value;
      else if (key == "started")
        started = json::as_view(value);
      else if (key == "group")
        json::set(spec, {"schedulingGroup", "podGroupName"}, value);
      else
        json::set(spec, {std::string(key)}, value);
    }
    json::set(spec, {"containers"},
              json::Array{json::Object{{"name", "c"}, {"resources", json::Object{{"requests", json::Object{{"cpu", cpu}}}}}}});
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

  void happen(std::string_view what, const std::string& name, const json::Value* with) {
    if (what == "group") return show_group(name, with);
    if (what == "group gone") {
      const auto last = objects_.extract("podgroups/default/" + name);
      return core_->object_changed({"PodGroup", {}, ClusterEvent::kNodeCordoned}, last.mapped(), nullptr);
    }
    if (what == "node") {
      json::Value node{{"kind", "Node"},
                       {"metadata", {{"name", name}}},
                       {"status", {{"allocatable", {{"cpu", "2"}, {"memory", "8Gi"}, {"pods", "10"}}}}}};
      auto object = std::make_shared<client::Object>(node);
      core_->node_added(objects_["nodes//" + name] = object);
    } else if (what == "node gone") {
      core_->node_deleted(objects_.extract("nodes//" + name).mapped());
    } else if (what == "pod") {
      show_new_pod(name, with);
    } else if (what == "label") {
      json::Value document = pod(name)->document();
      json::set(document, {"metadata", "labels", "changed"}, json::Value("yes"));
      show(std::move(document));
    } else if (what == "bound" || what == "going") {
      json::Value document = pod(name)->document();
      if (what == "bound")
        json::set(document, {"spec", "nodeName"}, json::Value(json::as_view(*with)));
      else
        json::set(document, {"metadata", "deletionTimestamp"}, json::Value("2026-01-01T00:00:00Z"));
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

  /// "ok", an HTTP status, "no answer", the node that a pod has, the node that extenders want.
  void answer(const std::string& name, const std::string& with) {
    const auto open = std::ranges::find(open_, name, &std::pair<std::string, Ask>::first);
    ASSERT_NE(open, open_.end()) << name << " was not asked for";
    const Ask id = open->second;
    open_.erase(open);
    if (name.starts_with("ask about")) {
      Chosen chosen;
      chosen.decision.outcome = with == "error" ? Decision::Outcome::kError : Decision::Outcome::kScheduled;
      if (with == "error") chosen.decision.error = "the extender is away";
      chosen.node_name = with;
      return core_->out.answered(id, chosen);
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
  void take(const AskForVictims& question) { note("ask for victims of " + question.info->view().meta.name, question.id); }
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
  std::vector<std::pair<std::string, Ask>> open_;
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

TEST(SchedulerCore, AnEffectIsAnsweredOnce) {
  std::vector<Ask> asked;
  Outbox out([&](Effect effect) { asked.push_back(std::get<Later>(effect).id); });
  out.later([] {});
  out.answered(asked.front(), {});
  EXPECT_EXIT(out.answered(asked.front(), {}), ::testing::ExitedWithCode(kCheckFailedExit), "nobody waits for that");
}

}  // namespace
}  // namespace berth::scheduler
