// Jobs: never more pods at once than their parallelism, each finished pod counted once, and at the end exactly what was wanted.
#include <set>

#include "tests/world/subject.h"

namespace berth::world {
namespace {

constexpr const char* kNs = "jobs";
constexpr int kJobs = 4, kParallelism = 2, kCompletions = 4;

class JobSubject final : public Subject {
 public:
  using Subject::Subject;

  void set_up() override {
    hand_ = std::make_unique<Hand>(world_, "analyst");
    hand_->make(gvr::kNamespaces, "", make_namespace(kNs));
  }

  void act(std::uint64_t which, double share) override {
    const std::string name = fmt::format("j{}", which % kJobs);
    if (share > 0.75) {
      const auto pods = chronicle_.names("pods", kNs);
      if (!pods.empty()) hand_->try_remove(gvr::kPods, kNs, pods[which % pods.size()]);
    } else if (chronicle_.find("jobs", kNs, name).is_null()) {
      hand_->try_make(gvr::kJobs, kNs, job(name, which % 2 == 0));
    } else if (share < 0.3) {
      client::DeleteOptions options;
      options.propagation = client::Propagation::kBackground;
      hand_->client.remove(gvr::kJobs, kNs, name, options, [](const auto&) {});
    }
  }

  void see(const Seen& seen) override {
    if (seen.ns != kNs) return;
    if (seen.resource == "pods") see_pod(seen);
    if (seen.resource == "jobs") see_job(seen);
  }

  void judge_rest() override {
    std::set<std::string, std::less<>> jobs;
    chronicle_.for_each("jobs", kNs, [&](const std::string& name, const json::Value& job) {
      jobs.emplace(Seen::uid(job));
      if (condition_of(job, "Complete") == nullptr)
        find(fmt::format("{} is not complete: {}", name, json::serialize(*json::find(job, "status"))));
    });
    chronicle_.for_each("pods", kNs, [&](const std::string& name, const json::Value& pod) {
      if (!jobs.contains(controller_of(pod))) find(fmt::format("pod {} is left of a job that is gone", name));
      if (!json::get_array(pod, {"metadata", "finalizers"}).empty()) find(fmt::format("pod {} is done, and was never let go", name));
    });
  }

 private:
  /// Of one job, by its uid.
  struct Ran {
    std::set<std::string, std::less<>> succeeded;  ///< Pods' uids.
    std::int64_t counted = 0;
    int doubts = 0;  ///< World::doubts when it was made.
  };

  static json::Value job(const std::string& name, bool is_indexed) {
    json::Value out = document(R"({"apiVersion":"batch/v1","kind":"Job","spec":{"backoffLimit":50,"template":{"metadata":{"annotations":)"
                               R"({"sim.berth.dev/run-for":"2s"}}}}})");
    json::set(out, {"metadata", "name"}, json::Value(name));
    json::set(out, {"spec", "parallelism"}, kParallelism);
    json::set(out, {"spec", "completions"}, kCompletions);
    json::set(out, {"spec", "completionMode"}, is_indexed ? "Indexed" : "NonIndexed");
    json::Value spec = pod_spec();
    json::set(spec, {"restartPolicy"}, "Never");
    json::set(out, {"spec", "template", "spec"}, std::move(spec));
    return out;
  }

  void see_pod(const Seen& seen) {
    if (seen.now.is_null()) return;
    const std::string owner(controller_of(seen.now));
    if (json::get_string(seen.now, {"status", "phase"}) == "Succeeded") ran_[owner].succeeded.emplace(Seen::uid(seen.now));
    if (!seen.is_new()) return;
    int active = 0;
    chronicle_.for_each("pods", kNs,
                        [&](const std::string&, const json::Value& pod) { active += controller_of(pod) == owner && is_active(pod); });
    // A controller that does not know whether there is a pod makes it again, as Kubernetes' does.
    if (active > kParallelism + world_.doubts(kNs) - ran_[owner].doubts)
      find(fmt::format("{}: {} pods of one job are active, {} are allowed", seen.words(), active, kParallelism));
  }

  void see_job(const Seen& seen) {
    if (seen.now.is_null()) return;
    Ran& ran = ran_[std::string(Seen::uid(seen.now))];
    if (seen.is_new()) ran.doubts = world_.doubts(kNs);
    const auto succeeded = json::get_int(seen.now, {"status", "succeeded"});
    const auto on_the_way = json::get_array(seen.now, {"status", "uncountedTerminatedPods", "succeeded"}).size();
    if (succeeded + static_cast<std::int64_t>(on_the_way) > static_cast<std::int64_t>(ran.succeeded.size()))
      find(fmt::format("{}: {} counted and {} to be counted of {} that succeeded", seen.words(), succeeded, on_the_way,
                       ran.succeeded.size()));
    if (succeeded < ran.counted) find(fmt::format("{}: {} succeeded, after {}", seen.words(), succeeded, ran.counted));
    ran.counted = succeeded;
    if (condition_of(seen.now, "Complete") != nullptr && succeeded != kCompletions)
      find(fmt::format("{}: complete with {} of {}", seen.words(), succeeded, kCompletions));
    if (condition_of(seen.now, "Failed") != nullptr) find(fmt::format("{}: failed", seen.words()));
  }

  std::unique_ptr<Hand> hand_;
  std::map<std::string, Ran> ran_;
};

}  // namespace

std::unique_ptr<Subject> make_job_subject(World& world, Chronicle& chronicle) { return std::make_unique<JobSubject>(world, chronicle); }

}  // namespace berth::world
