// Finished Jobs go ttlSecondsAfterFinished after their end (pkg/controller/ttlafterfinished).
#include "controllers/common.h"
#include "controllers/workloads.h"

namespace berth::controllers {
namespace {

class TtlController final : public Controller {
 public:
  [[nodiscard]] std::string_view name() const override { return "ttl-after-finished-controller"; }
  [[nodiscard]] std::vector<Kind> watches() const override { return {kinds().job}; }
  void on_event(const Event& event, const Cache&, TimePoint, KeySink& sink) override {
    if (event.after) sink.add(event.after->key());
  }
  Plan reconcile(const std::string& key, TimePoint now, const Cache& cache) override {
    Plan plan;
    const auto [ns, name] = split_key(key);
    const ObjectRef object = cache.get(kinds().job, ns, name);
    if (!object || object->is_deleting()) return plan;
    const auto parsed = object->parsed();
    const json::Value& document = *parsed;
    if (json::find(document, {"spec", "ttlSecondsAfterFinished"}) == nullptr) return plan;
    const json::Value* end = find_condition(document, "Complete");
    if (end == nullptr) end = find_condition(document, "Failed");
    if (end == nullptr || json::get_string(*end, {"status"}) != "True") return plan;
    const TimePoint when = read_time(*end, {"lastTransitionTime"}) + seconds_at(document, {"spec", "ttlSecondsAfterFinished"});
    if (when > now) {
      plan.requeue_after = when - now;
      return plan;
    }
    Write write = delete_object(kinds().job, *object);
    write.delete_options.propagation = Propagation::kForeground;
    plan.writes.push_back(std::move(write));
    return plan;
  }
};

}  // namespace

ControllerPtr make_ttl_after_finished_controller() { return std::make_unique<TtlController>(); }

}  // namespace berth::controllers
