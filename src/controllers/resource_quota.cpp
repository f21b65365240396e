// ResourceQuota status (pkg/controller/resourcequota): what a namespace may use and what it uses, recounted from the cache.
#include "controllers/common.h"
#include "controllers/services.h"
#include "model/quantity.h"
#include "model/quota_usage.h"

namespace berth::controllers {
namespace {

/// The kinds whose objects quotas count.
std::vector<Kind> counted_kinds() {
  const Kinds& k = kinds();
  return {k.pod,
          k.service,
          k.config_map,
          k.secret,
          k.persistent_volume_claim,
          k.replication_controller,
          k.resource_quota,
          k.deployment,
          k.replica_set,
          k.stateful_set,
          k.daemon_set,
          k.job,
          k.cron_job,
          k.resource_claim};
}

class ResourceQuotaController final : public Controller {
 public:
  [[nodiscard]] std::string_view name() const override { return "resourcequota-controller"; }
  [[nodiscard]] std::vector<Kind> watches() const override { return counted_kinds(); }

  void on_event(const Event& event, const Cache& cache, TimePoint, KeySink& sink) override {
    if (event.kind == kinds().resource_quota) {
      if (event.after) sink.add(event.after->key());
      return;
    }
    // A change of an object that exists before and after moves no count, but a pod may end.
    if (event.before && event.after && event.kind != kinds().pod && event.kind != kinds().service &&
        event.kind != kinds().persistent_volume_claim)
      return;
    cache.for_each_in(kinds().resource_quota, event.object().ns(), [&](const ObjectRef& quota) { sink.add(quota->key()); });
  }

  Plan reconcile(const std::string& key, TimePoint now, const Cache& cache) override {
    Plan plan;
    plan.cooldown = std::chrono::milliseconds(50);
    const auto [ns, name] = split_key(key);
    const ObjectRef object = cache.get(kinds().resource_quota, ns, name);
    if (!object) {
      seen_.erase(key);
      return plan;
    }
    const json::Value document = object->document();
    const json::Object& hard = json::get_object(document, {"spec", "hard"});
    std::map<std::string, model::Quantity> used;
    for (const auto& [resource, amount] : hard) used[std::string(resource)] = model::Quantity::from_value(0);
    for (const Kind kind : counted_kinds())
      cache.for_each_in(kind, ns, [&](const ObjectRef& one) {
        const json::Value counted = one->document();
        if (!model::quota_selects(document, *kind, counted)) return;
        for (const auto& [resource, amount] : model::quota_usage(*kind, counted))
          if (const auto found = used.find(resource); found != used.end()) found->second += amount;
      });
    // Admission books a pod before the pod is there, and this cache may learn of the booking first. A count that is lower than what is
    // booked is believed only once the quota has been left alone for a while.
    auto& seen = seen_[key];
    if (seen.revision != object->revision()) seen = {object->revision(), now};
    const auto quiet = now - seen.since;
    if (quiet < kSettle && is_lower(used, json::get_object(document, {"status", "used"}))) {
      plan.requeue_after = kSettle - quiet;
      return plan;
    }
    json::Object status = json::get_object(document, {"status"});
    json::Object used_texts;
    for (const auto& [resource, amount] : used) used_texts[resource] = amount.to_string();
    status["hard"] = hard;
    status["used"] = std::move(used_texts);
    // Admission writes here too: only from the revision that was counted.
    if (auto write = patch_status(kinds().resource_quota, *object, document, status, true)) plan.writes.push_back(std::move(*write));
    return plan;
  }

 private:
  struct Seen {
    std::int64_t revision = 0;
    TimePoint since{};
  };
  static constexpr Duration kSettle = std::chrono::seconds(1);

  static bool is_lower(const std::map<std::string, model::Quantity>& counted, const json::Object& booked) {
    for (const auto& [resource, amount] : counted) {
      const auto* text = booked.if_contains(resource);
      const auto before = text != nullptr && text->is_string() ? model::Quantity::parse(json::as_view(*text)) : std::nullopt;
      if (before && amount < *before) return true;
    }
    return false;
  }

  std::map<std::string, Seen> seen_;
};

}  // namespace

ControllerPtr make_resource_quota_controller() { return std::make_unique<ResourceQuotaController>(); }

}  // namespace berth::controllers
