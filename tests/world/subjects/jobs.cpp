// Jobs: never more pods at once than their parallelism, each pod counted once, whoever leads meanwhile, and at the end exactly what was
// wanted; those whose pods fail end once their limit is exceeded, and no sooner.
#include <set>

#include "tests/world/subject.h"

namespace berth::world {
namespace {

constexpr const char* kNs = "jobs";
constexpr const char* kPodsPath = "/api/v1/namespaces/jobs/pods";
constexpr int kJobs = 4, kParallelism = 2, kCompletions = 4;
constexpr int kFewFailures = 2;  ///< The limit of a Job whose pods fail.
/// A pod that is told to go ends by itself within its grace.
constexpr int kRuns = 2, kStopsAfter = 3;

using Uids = std::set<std::string, std::less<>>;

class JobSubject final : public Subject {
 public:
  using Subject::Subject;

  void set_up() override {
    hand_ = std::make_unique<Hand>(world_, "analyst");
    hand_->make(gvr::kNamespaces, "", make_namespace(kNs));
  }

  void act(std::uint64_t which, double share) override {
    std::string& name = names_[which % kJobs];
    const json::Value& job = chronicle_.find("jobs", kNs, name);
    if (job.is_null() || is_over(job)) {
      remove(name);
      name = fmt::format("j{}-{}", which % kJobs, ++made_);
      hand_->try_make(gvr::kJobs, kNs, document_of(name, which));
      if (share > 0.2) traps_[name] = share > 0.4 && !does_fail(which) ? kCompletions - kParallelism : 0;
    } else if (share < 0.3) {
      remove(name);
    } else if (const auto pods = chronicle_.names("pods", kNs); !pods.empty()) {
      hand_->try_remove(gvr::kPods, kNs, pods[which % pods.size()]);
    }
  }

  void see(const Seen& seen) override {
    if (seen.ns != kNs) return;
    if (seen.resource == "pods") see_pod(seen);
    if (seen.resource == "jobs") see_job(seen);
  }

  void heal() override { traps_.clear(); }

  void judge_rest() override {
    Uids jobs;
    chronicle_.for_each("jobs", kNs, [&](const std::string& name, const json::Value& job) {
      jobs.emplace(Seen::uid(job));
      if (condition_of(job, does_fail(job) ? "Failed" : "Complete") == nullptr)
        find(fmt::format("{} has not ended: {}", name, json::serialize(*json::find(job, "status"))));
    });
    chronicle_.for_each("pods", kNs, [&](const std::string& name, const json::Value& pod) {
      if (!jobs.contains(controller_of(pod))) find(fmt::format("pod {} is left of a job that is gone", name));
      if (is_tracked(pod)) find(fmt::format("pod {} is done, and was never let go", name));
    });
  }

 private:
  /// Of one job, by its uid.
  struct Ran {
    Uids succeeded, failed;                           ///< Pods that did, by their uids; those told to go have failed, too.
    std::set<std::string, std::less<>> done_indexes;  ///< Of pods that succeeded.
    Uids counted_succeeded, counted_failed;           ///< Pods that were ever on the way to be counted.
    std::int64_t succeeded_before = 0, failed_before = 0;
    int doubts = 0;  ///< World::doubts when it was made.
  };

  /// One of three.
  static bool does_fail(std::uint64_t which) { return which % 3 == 0; }
  static bool does_fail(const json::Value& job) { return json::get_int(job, {"spec", "backoffLimit"}) == kFewFailures; }
  static bool is_over(const json::Value& job) { return condition_of(job, "Complete") != nullptr || condition_of(job, "Failed") != nullptr; }
  static bool is_tracked(const json::Value& pod) { return !json::get_array(pod, {"metadata", "finalizers"}).empty(); }

  /// One of three is Indexed, and the pods of most end by themselves although they were told to go.
  static json::Value document_of(const std::string& name, std::uint64_t which) {
    const bool fails = does_fail(which), is_indexed = which % 3 == 1;
    json::Value out = document(R"({"apiVersion":"batch/v1","kind":"Job","spec":{"template":{"metadata":{"annotations":{}}}}})");
    json::set(out, {"metadata", "name"}, json::Value(name));
    json::set(out, {"spec", "parallelism"}, kParallelism);
    json::set(out, {"spec", "completions"}, kCompletions);
    json::set(out, {"spec", "backoffLimit"}, fails ? kFewFailures : 50);
    json::set(out, {"spec", "completionMode"}, is_indexed ? "Indexed" : "NonIndexed");
    json::Value& annotations = *json::find(out, {"spec", "template", "metadata", "annotations"});
    json::set(annotations, {"sim.berth.dev/run-for"}, json::Value(fmt::format("{}s", kRuns)));
    if (which % 7 != 0) json::set(annotations, {"sim.berth.dev/stop-after"}, json::Value(fmt::format("{}s", kStopsAfter)));
    if (fails) json::set(annotations, {"sim.berth.dev/exit-code"}, "1");
    json::Value spec = pod_spec();
    json::set(spec, {"restartPolicy"}, "Never");
    json::set(spec, {"terminationGracePeriodSeconds"}, kStopsAfter);
    json::set(out, {"spec", "template", "spec"}, std::move(spec));
    return out;
  }

  void remove(const std::string& name) {
    client::DeleteOptions options;
    options.propagation = client::Propagation::kBackground;
    if (!name.empty()) hand_->client.remove(gvr::kJobs, kNs, name, options, [](const auto&) {});
  }

  void see_pod(const Seen& seen) {
    if (!seen.before.is_null() && is_tracked(seen.before) && (seen.now.is_null() || !is_tracked(seen.now))) see_let_go(seen);
    if (seen.now.is_null()) return;
    const std::string owner(controller_of(seen.now));
    Ran& ran = ran_[owner];
    const auto phase = json::get_string(seen.now, {"status", "phase"});
    if (phase == "Succeeded") {
      ran.succeeded.emplace(Seen::uid(seen.now));
      ran.done_indexes.emplace(json::get_string(seen.now, {"metadata", "labels", "batch.kubernetes.io/job-completion-index"}));
    }
    if (phase == "Failed" || is_leaving(seen.now)) ran.failed.emplace(Seen::uid(seen.now));
    const auto trap = traps_.find(json::get_string(seen.now, {"metadata", "labels", "job-name"}));
    if (phase == "Running" && !is_leaving(seen.now) && trap != traps_.end() && std::ssize(ran.succeeded) >= trap->second)
      hand_->try_remove(gvr::kPods, kNs, std::string(seen.name));
    if (!seen.is_new()) return;
    int active = 0;
    chronicle_.for_each("pods", kNs,
                        [&](const std::string&, const json::Value& pod) { active += controller_of(pod) == owner && is_active(pod); });
    // A controller that does not know whether there is a pod makes it again, as Kubernetes' does.
    if (active > kParallelism + world_.doubts(kPodsPath) - ran.doubts)
      find(fmt::format("{}: {} pods of one job are active, {} are allowed", seen.words(), active, kParallelism));
  }

  /// A pod that ended well is let go of once it is counted, or on the way to be.
  void see_let_go(const Seen& seen) {
    if (json::get_string(seen.before, {"status", "phase"}) != "Succeeded") return;
    const auto owner = controller_of(seen.before);
    bool is_lost = false;
    chronicle_.for_each("jobs", kNs, [&](const std::string&, const json::Value& job) {
      if (Seen::uid(job) != owner || is_leaving(job) || is_over(job) || json::get_string(job, {"spec", "completionMode"}) == "Indexed")
        return;
      const Ran& ran = ran_[std::string(owner)];
      is_lost = !ran.counted_succeeded.contains(Seen::uid(seen.before)) && !ran.counted_failed.contains(Seen::uid(seen.before));
    });
    if (is_lost) find(fmt::format("{} ended well, and is let go of uncounted", seen.words()));
  }

  void see_job(const Seen& seen) {
    if (seen.now.is_null()) return;
    Ran& ran = ran_[std::string(Seen::uid(seen.now))];
    if (seen.is_new()) ran.doubts = world_.doubts(kPodsPath);
    const std::int64_t succeeded = json::get_int(seen.now, {"status", "succeeded"}), failed = json::get_int(seen.now, {"status", "failed"});
    const auto coming = see_coming(seen, "succeeded", ran.succeeded, ran.counted_succeeded, ran.counted_failed);
    const auto failing = see_coming(seen, "failed", ran.failed, ran.counted_failed, ran.counted_succeeded);
    const bool is_indexed = json::get_string(seen.now, {"spec", "completionMode"}) == "Indexed";
    const std::size_t most = is_indexed ? ran.done_indexes.size() : ran.counted_succeeded.size();
    if (succeeded + coming > static_cast<std::int64_t>(most))
      find(fmt::format("{}: {} counted and {} to be counted of {} that succeeded", seen.words(), succeeded, coming, most));
    if (failed + failing > std::ssize(ran.counted_failed))
      find(fmt::format("{}: {} counted and {} to be counted of {} that failed", seen.words(), failed, failing, ran.counted_failed.size()));
    if (succeeded < ran.succeeded_before || failed < ran.failed_before)
      find(fmt::format("{}: {} succeeded and {} failed, after {} and {}", seen.words(), succeeded, failed, ran.succeeded_before,
                       ran.failed_before));
    ran.succeeded_before = succeeded;
    ran.failed_before = failed;
    see_end(seen, succeeded + coming, failed + failing);
    if (failing > 0 && traps_.contains(seen.name)) spring(seen.name);
  }

  /// Pods whose uids stand in the status, until their number does.
  std::int64_t see_coming(const Seen& seen, const char* list, const Uids& did, Uids& counted, const Uids& counted_otherwise) {
    const json::Array before = json::get_array(seen.before, {"status", "uncountedTerminatedPods", list});
    const json::Array now = json::get_array(seen.now, {"status", "uncountedTerminatedPods", list});
    for (const json::Value& one : now) {
      const std::string uid(json::as_view(one));
      // Of a Job that fails all have failed that had not ended.
      if (!did.contains(uid) && condition_of(seen.now, "FailureTarget") == nullptr)
        find(fmt::format("{}: pod {} is counted as {}, and has not", seen.words(), uid, list));
      const bool is_again = !counted.insert(uid).second && std::ranges::find(before, one) == before.end();
      if (is_again || counted_otherwise.contains(uid)) find(fmt::format("{}: pod {} is counted twice", seen.words(), uid));
    }
    return std::ssize(now);
  }

  void see_end(const Seen& seen, std::int64_t succeeded, std::int64_t failed) {
    for (const char* type : {"SuccessCriteriaMet", "Complete"})
      if (condition_of(seen.now, type) != nullptr && succeeded != kCompletions)
        find(fmt::format("{}: {} with {} of {}", seen.words(), type, succeeded, kCompletions));
    const auto limit = json::get_int(seen.now, {"spec", "backoffLimit"});
    for (const char* type : {"FailureTarget", "Failed"})
      if (condition_of(seen.now, type) != nullptr && failed <= limit)
        find(fmt::format("{}: {} with {} failures, {} are allowed", seen.words(), type, failed, limit));
  }

  /// Controllers die between the count that is on its way and the finalizer that goes; when they are back, the pod has ended well.
  void spring(std::string_view job) {
    traps_.erase(traps_.find(job));
    world_.loop().post([this] {
      for (const char* name : {"controllers-0", "controllers-1"}) world_.kill(name);
      world_.loop().schedule_after(std::chrono::seconds(kStopsAfter + 1), [this] {
        for (const char* name : {"controllers-0", "controllers-1"}) world_.start(name);
      });
    });
  }

  std::unique_ptr<Hand> hand_;
  std::array<std::string, kJobs> names_;  ///< Of the jobs that are there, or were.
  int made_ = 0;
  /// By the names of jobs: once so many of one's pods have ended well, the others are told to go, and who counts them dies.
  std::map<std::string, int, std::less<>> traps_;
  std::map<std::string, Ran> ran_;
};

}  // namespace

std::unique_ptr<Subject> make_job_subject(World& world, Chronicle& chronicle) { return std::make_unique<JobSubject>(world, chronicle); }

}  // namespace berth::world
