// The stories of cases/*.yaml: what happens, a step at a time, and what stands then (README.md tells the words).
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/queues/world.h"
#include "tests/support/source_dir.h"

namespace berth::queues::testing {
namespace {

using json::get_string;
using json::Value;

Settings settings_of(const Value& story) {
  Settings out;
  out.fair_sharing = json::get_bool(story, {"fairSharing"});
  if (const auto timeout = parse_go_duration(get_string(story, {"podsReadyTimeout"}))) out.pods_ready_timeout = *timeout;
  if (json::find(story, "requeueLimit") != nullptr) out.requeue_limit = json::get_int(story, {"requeueLimit"});
  return out;
}

/// "admitted default", "pending: …", "evicted Preempted", "finished Succeeded", "none".
std::string state_of(const World& world, const std::string& name) {
  const Value* found = world.workload_of(name);
  if (found == nullptr) return "none";
  const Workload workload = Workload::parse(*found);
  if (const Condition* end = workload.condition("Finished")) return "finished " + end->reason;
  if (workload.is("Evicted") && workload.has_reservation()) return "evicted " + workload.condition("Evicted")->reason;
  if (workload.has_reservation()) {
    std::string out = "admitted";
    for (const auto& assignment : workload.assignments)
      for (const auto& [resource, flavor] : assignment.flavors)
        if (out.find(" " + flavor) == std::string::npos) out += " " + flavor;
    return out;
  }
  const Condition* why = workload.condition("QuotaReserved");
  return why == nullptr ? "pending" : (why->reason == "Inadmissible" ? "inadmissible: " : "pending: ") + why->message;
}

class Story {
 public:
  explicit Story(const Value& story) : settings_(settings_of(story)), world_(settings_) {}

  void step(const Value& step) {
    for (const auto& [word, value] : step.get_object()) {
      SCOPED_TRACE(fmt::format("{}: {}", std::string_view(word.data(), word.size()), json::serialize(value)));
      if (word == "expect") {
        expect(value);
      } else if (word == "events") {
        for (const Value& event : value.get_array()) expect_event(std::string(json::as_view(event)));
        world_.events.clear();
      } else {
        act({word.data(), word.size()}, value);
        if (world_is_told_) world_.settle();
      }
    }
  }

 private:
  void act(std::string_view word, const Value& value) {
    const auto each = [&](const auto& does) {
      if (value.is_array())
        for (const Value& one : value.get_array()) does(one);
      else
        does(value);
    };
    const auto job_key = [](const Value& name) { return ObjectKey{Kind::kJob, "default", std::string(json::as_view(name))}; };
    if (word == "flavors")
      each([&](const Value& one) { world_.flavor(one); });
    else if (word == "queue" || word == "queues")
      each([&](const Value& one) { world_.queue(one); });
    else if (word == "cohort" || word == "cohorts")
      each([&](const Value& one) { world_.cohort(one); });
    else if (word == "job" || word == "jobs")
      each([&](const Value& one) { world_.job(one); });
    else if (word == "pod" || word == "pods")
      each([&](const Value& one) { world_.pod(one); });
    else if (word == "class")
      each([&](const Value& one) { world_.put(Kind::kWorkloadPriorityClass, one); });
    else if (word == "podgroup")
      each([&](const Value& one) { world_.put(Kind::kPodGroup, one); });
    else if (word == "finish")
      each([&](const Value& one) { world_.finish_job(std::string(json::as_view(one))); });
    else if (word == "fail")
      each([&](const Value& one) { world_.finish_job(std::string(json::as_view(one)), false); });
    else if (word == "suspend")
      each([&](const Value& one) { world_.patch(job_key(one), yaml("{spec: {suspend: true}}")); });
    else if (word == "resume")
      each([&](const Value& one) { world_.patch(job_key(one), yaml("{spec: {suspend: false}}")); });
    else if (word == "delete")
      for (const auto& [kind, name] : value.get_object()) world_.remove(key_of({kind.data(), kind.size()}, name));
    else if (word == "patch")
      for (const auto& [kind, what] : value.get_object()) {
        for (const auto& [name, change] : what.get_object()) world_.patch(key_of({kind.data(), kind.size()}, Value(name)), change);
      }
    else if (word == "pass")
      world_.now += *parse_go_duration(json::as_view(value));
    else if (word == "podsStay")
      world_.pods_stay = value.as_bool();
    else if (word == "restart")
      world_.restart(settings_);
    else if (word == "refuse")
      for (const auto& [name, code] : value.get_object()) {
        const Value* workload = world_.workload_of(std::string(name.data(), name.size()));
        ASSERT_NE(workload, nullptr);
        world_.refusals[{Kind::kWorkload, "default", std::string(get_string(*workload, {"metadata", "name"}))}] =
            static_cast<int>(code.as_int64());
      }
    else if (word == "silently")
      world_is_told_ = !value.as_bool();
    else
      FAIL() << "unknown word " << word;
  }

  ObjectKey key_of(std::string_view kind, const Value& value) const {
    const std::string name(json::as_view(value));
    if (kind == "queue") return {Kind::kClusterQueue, "", name};
    if (kind == "localqueue") return {Kind::kLocalQueue, "default", name};
    if (kind == "flavor") return {Kind::kResourceFlavor, "", name};
    if (kind == "cohort") return {Kind::kCohort, "", name};
    if (kind == "namespace") return {Kind::kNamespace, "", name};
    if (kind == "pod") return {Kind::kPod, "default", name};
    if (kind == "job") return {Kind::kJob, "default", name};
    const Value* workload = world_.workload_of(name);
    EXPECT_NE(workload, nullptr) << name;
    return {Kind::kWorkload, "default", workload == nullptr ? "" : std::string(get_string(*workload, {"metadata", "name"}))};
  }

  void expect(const Value& wanted) {
    for (const auto& [key, value] : wanted.get_object()) {
      const std::string name(key.data(), key.size());
      const std::size_t space = name.find(' ');
      const std::string text = value.is_string() ? std::string(json::as_view(value)) : json::serialize(value);
      if (space == std::string::npos)
        EXPECT_TRUE(state_of(world_, name).starts_with(text)) << name << " is " << state_of(world_, name) << ", not " << text;
      else
        EXPECT_EQ(shown(name.substr(0, space), name.substr(space + 1)), text) << name;
    }
  }

  /// Of anything else: its condition Active, what it uses, whether a Job is suspended, where its pods may be.
  std::string shown(const std::string& what, const std::string& name) const {
    if (what == "job") {
      const Value* job = world_.find({Kind::kJob, "default", name});
      if (job == nullptr) return "none";
      std::string out = json::get_bool(*job, {"spec", "suspend"}) ? "suspended" : "running";
      for (const auto& [key, value] : json::get_object(*job, {"spec", "template", "spec", "nodeSelector"}))
        out += fmt::format(" {}={}", std::string_view(key.data(), key.size()), json::as_view(value));
      return out;
    }
    if (what == "pod") {
      const Value* pod = world_.find({Kind::kPod, "default", name});
      return pod == nullptr ? "none" : json::get_array(*pod, {"spec", "schedulingGates"}).empty() ? "free" : "gated";
    }
    if (what == "tally") {
      const auto found = world_.tallies.find(name);
      return std::to_string(found == world_.tallies.end() ? 0 : found->second);
    }
    const Value* queue =
        world_.find(what == "local" ? ObjectKey{Kind::kLocalQueue, "default", name} : ObjectKey{Kind::kClusterQueue, "", name});
    if (queue == nullptr) return "none";
    if (what != "used") return world_.condition(*queue, "Active");
    std::string out =
        fmt::format("{}+{}", json::get_int(*queue, {"status", "admittedWorkloads"}), json::get_int(*queue, {"status", "pendingWorkloads"}));
    for (const Value& flavor : json::get_array(*queue, {"status", "flavorsUsage"}))
      for (const Value& resource : json::get_array(flavor, {"resources"})) {
        out += fmt::format(" {}/{}={}", get_string(flavor, {"name"}), get_string(resource, {"name"}), get_string(resource, {"total"}));
        if (const auto borrowed = get_string(resource, {"borrowed"}); borrowed != "0") out += fmt::format("({} borrowed)", borrowed);
      }
    return out;
  }

  void expect_event(const std::string& wanted) {
    for (const std::string& event : world_.events)
      if (event.starts_with(wanted)) return;
    std::string all;
    for (const std::string& event : world_.events) all += "\n  " + event;
    ADD_FAILURE() << "no event " << wanted << "; there were" << all;
  }

  Settings settings_;
  World world_;
  bool world_is_told_ = true;
};

TEST(QueueCases, AreAsTold) {
  std::size_t count = 0;
  std::vector<std::filesystem::path> files;
  for (const auto& file : std::filesystem::directory_iterator(::berth::testing::source_dir() + "/tests/queues/cases"))
    if (file.path().extension() == ".yaml") files.push_back(file.path());
  std::ranges::sort(files);
  for (const auto& file : files) {
    std::ifstream in(file);
    std::stringstream text;
    text << in.rdbuf();
    const auto stories = json::parse_yaml_stream(text.str());
    ASSERT_TRUE(stories) << file << ": " << stories.error().message;
    for (const Value& story : *stories) {
      SCOPED_TRACE(fmt::format("{}: {}", file.filename().string(), get_string(story, {"name"})));
      Story told(story);
      for (const Value& step : json::get_array(story, {"steps"})) told.step(step);
      ++count;
    }
  }
  EXPECT_GT(count, 30u);
}

}  // namespace
}  // namespace berth::queues::testing
