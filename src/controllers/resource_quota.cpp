// ResourceQuota status (pkg/controller/resourcequota): what a namespace may use and what it uses.
#include "controllers/common.h"
#include "controllers/quota_ledger.h"
#include "controllers/services.h"

namespace berth::controllers {
namespace {

class ResourceQuotaController final : public Controller {
 public:
  [[nodiscard]] std::string_view name() const override { return "resourcequota-controller"; }
  [[nodiscard]] std::vector<Kind> watches() const override {
    std::vector<Kind> out = quota_counted_kinds();
    out.push_back(kinds().device_class);
    return out;
  }
  [[nodiscard]] bool watches_custom_kinds() const override { return true; }

  void on_event(const Event& event, const Cache& cache, TimePoint, KeySink& sink) override {
    ledger_.observe(event, cache, [&](const std::string& key) { sink.add(key); });
    if (event.kind == kinds().resource_quota && event.after) sink.add(event.after->key());
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
    const auto parsed = object->parsed();
    const json::Value& document = *parsed;
    const json::Object& hard = json::get_object(document, {"spec", "hard"});
    const model::ResourceAmounts& used = *ledger_.used(ns, name);
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

  static bool is_lower(const model::ResourceAmounts& counted, const json::Object& booked) {
    for (const auto& [resource, amount] : counted) {
      const auto* text = booked.if_contains(resource);
      const auto before = text != nullptr && text->is_string() ? model::Quantity::parse(json::as_view(*text)) : std::nullopt;
      if (before && amount < *before) return true;
    }
    return false;
  }

  QuotaLedger ledger_;
  std::map<std::string, Seen> seen_;
};

}  // namespace

ControllerPtr make_resource_quota_controller() { return std::make_unique<ResourceQuotaController>(); }

}  // namespace berth::controllers
