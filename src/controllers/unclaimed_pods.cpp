// Pods that no scheduler looks at: their schedulerName is nobody's. Kubernetes leaves them pending without a word; here an event says so
// after a while (SPEC B9). A key is a waiting pod, "namespace/name".
#include "base/config_reader.h"
#include "controllers/cluster.h"
#include "controllers/common.h"

namespace berth::controllers {
namespace {

constexpr std::string_view kDefaultScheduler = "default-scheduler";

std::string scheduler_of(const PodInfo& pod) { return pod.scheduler->empty() ? std::string(kDefaultScheduler) : *pod.scheduler; }

/// A scheduler that looked at a pod and found no room, or that waits for its gates, leaves the condition.
bool is_taken(const PodInfo& pod) { return !pod.node.empty() || pod.has_scheduled_condition; }

class UnclaimedPods final : public Controller {
 public:
  explicit UnclaimedPods(UnclaimedPodsOptions options) : options_(options) {}
  [[nodiscard]] std::string_view name() const override { return "unclaimed-pod-controller"; }
  [[nodiscard]] std::vector<Kind> watches() const override { return {kinds().pod}; }

  void on_event(const Event& event, const Cache&, TimePoint now, KeySink& sink) override {
    const PodRef &before = event.pod_before, &after = event.pod_after;
    if (!after || (before && !before->node.empty())) return;
    if (is_taken(*after)) {
      if (!before || !is_taken(*before)) last_taken_[scheduler_of(*after)] = now;
    } else if (!before) {
      first_seen_[after->object->key()] = now;
      sink.add(after->object->key(), options_.patience);
    }
  }

  Plan reconcile(const std::string& key, TimePoint now, const Cache& cache) override {
    Plan plan;
    const auto slash = key.find('/');
    const PodRef pod = cache.pod(key.substr(0, slash), key.substr(slash + 1));
    const auto seen = first_seen_.find(key);
    if (!pod || seen == first_seen_.end() || pod->deleting || pod->is_finished() || is_taken(*pod)) {
      first_seen_.erase(key);
      return plan;
    }
    const std::string scheduler = scheduler_of(*pod);
    // A scheduler that is busy with others takes pods of its name all the while.
    const auto taken = last_taken_.find(scheduler);
    const TimePoint quiet_since = taken == last_taken_.end() ? seen->second : std::max(seen->second, taken->second);
    if (now - quiet_since < options_.patience) {
      plan.requeue_after = quiet_since + options_.patience - now;
      return plan;
    }
    plan.events.push_back(note_about(kinds().pod, *pod->object, "Warning", "NoScheduler", message(*pod, scheduler, now)));
    plan.requeue_after = options_.pause;
    return plan;
  }

 private:
  [[nodiscard]] std::string message(const PodInfo& pod, const std::string& scheduler, TimePoint now) const {
    std::vector<std::string_view> known;
    for (const auto& [name, when] : last_taken_)
      if (name != scheduler) known.push_back(name);
    const TimePoint since = pod.created != TimePoint{} ? pod.created : now;
    const auto waited = std::chrono::duration_cast<std::chrono::seconds>(now - since);
    return fmt::format(
        "no scheduler has taken this pod for {}: its schedulerName is \"{}\"; schedulers known here by the pods they took: {}{}",
        format_go_duration(waited), scheduler, known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", ")),
        config::suggestion(scheduler, known));
  }

  UnclaimedPodsOptions options_;
  std::map<std::string, TimePoint, std::less<>> first_seen_;  ///< Of pods that nobody has taken yet, by key.
  std::map<std::string, TimePoint> last_taken_;               ///< By schedulerName: when one of its pods was last taken.
};

}  // namespace

ControllerPtr make_unclaimed_pod_controller(UnclaimedPodsOptions options) { return std::make_unique<UnclaimedPods>(options); }

}  // namespace berth::controllers
