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
    ledger_.observe(event, cache, [&](const std::string& key) {
      see_releases(key);
      sink.add(key);
    });
    const auto wait_for_end = [&](const PodRef& pod) {
      if (pod->deleting && !pod->is_finished() && ledger_.limits(pod->ns())) sink.add("/" + pod->object->key());
    };
    if (event.pod_after) wait_for_end(event.pod_after);
    if (event.kind != kinds().resource_quota || !event.after) return;
    if (!event.before)
      for (const PodRef& pod : cache.pods_in(event.after->ns())) wait_for_end(pod);
    sink.add(event.after->key());
  }

  /// Keys are "ns/name" of quotas, and "/ns/name" of pods that are to go.
  Plan reconcile(const std::string& key, TimePoint now, const Cache& cache) override {
    if (key.starts_with('/')) return look_at_pod(key.substr(1), now, cache);
    Plan plan;
    plan.cooldown = std::chrono::milliseconds(50);
    const auto [ns, name] = split_key(key);
    const ObjectRef object = cache.get(kinds().resource_quota, ns, name);
    if (!object) {
      booked_.erase(key);
      return plan;
    }
    const auto parsed = object->parsed();
    const json::Value& document = *parsed;
    const model::ResourceAmounts& used = *ledger_.used(ns, name);
    Booked& booked = booked_[key];
    booked.counted = used;
    if (booked.revision != object->revision()) booked.revision = object->revision(), booked.since = now;
    const auto quiet = now - booked.since;
    json::Object used_texts;
    bool is_lower = false, is_kept = false;
    for (const auto& [resource, amount] : used) {
      const auto before = model::Quantity::parse(json::get_string(document, {"status", "used", resource}));
      used_texts[resource] = amount.to_string();
      if (!before || !(amount < *before)) continue;
      is_lower = true;
      const model::Quantity left = less_what_went(*before, booked.released, resource);
      if (quiet >= kSettle || !(amount < left)) continue;
      is_kept = true;
      used_texts[resource] = left.to_string();
    }
    if (is_kept) plan.requeue_after = kSettle - quiet;
    if (!is_lower) booked.released.clear();
    json::Object status = json::get_object(document, {"status"});
    status["hard"] = json::get_object(document, {"spec", "hard"});
    status["used"] = std::move(used_texts);
    booked.told = booked.released;
    // Admission writes here too: only from the revision that was counted.
    if (auto write = patch_status(kinds().resource_quota, *object, document, status, true)) plan.writes.push_back(std::move(*write));
    return plan;
  }

  void on_result(const std::string& key, const Write&, const ApiResult<json::Value>& result, TimePoint) override {
    const auto found = booked_.find(key);
    if (!result || found == booked_.end()) return;
    for (const auto& [resource, amount] : std::exchange(found->second.told, {})) found->second.released[resource] -= amount;
  }

 private:
  /// Admission books an object before it is there, and a server may take its time from the one to the other. What is counted may therefore
  /// be less than what is booked: what was seen to go is given back at once; of the rest, which is still to come or never will (its
  /// creation failed), only once the quota has been left alone for longer than a write may take.
  struct Booked {
    std::int64_t revision = 0;
    TimePoint since{};                ///< When this revision was first seen.
    model::ResourceAmounts counted;   ///< As last seen.
    model::ResourceAmounts released;  ///< Of what went since the status was last written.
    model::ResourceAmounts told;      ///< Of these, what the write under way gives back.
  };
  static constexpr Duration kSettle = std::chrono::seconds(15);

  /// One that does not go, since its node is lost, must not keep its place from those who come instead.
  Plan look_at_pod(const std::string& key, TimePoint now, const Cache& cache) {
    Plan plan;
    const auto [ns, name] = split_key(key);
    const PodRef pod = cache.pod(ns, name);
    if (!pod || !pod->deleting) return plan;
    const auto end = model::quota_stops_counting(*kinds().pod, *pod->object->parsed());
    if (!end) return plan;
    if (now <= *end) {
      plan.requeue_after = *end - now + std::chrono::milliseconds(1);
      return plan;
    }
    ledger_.stop_counting(*pod->object, cache, [&](const std::string& quota) {
      see_releases(quota);
      plan.enqueue.push_back(quota);
    });
    return plan;
  }

  void see_releases(const std::string& key) {
    const auto [ns, name] = split_key(key);
    const model::ResourceAmounts* used = ledger_.used(ns, name);
    if (used == nullptr) return;
    Booked& booked = booked_[key];
    for (const auto& [resource, amount] : *used) {
      const auto before = booked.counted.find(resource);
      if (before == booked.counted.end() || !(amount < before->second)) continue;
      booked.released[resource] += before->second;
      booked.released[resource] -= amount;
    }
    booked.counted = *used;
  }

  static model::Quantity less_what_went(model::Quantity amount, const model::ResourceAmounts& released, const std::string& resource) {
    if (const auto found = released.find(resource); found != released.end()) amount -= found->second;
    return amount;
  }

  QuotaLedger ledger_;
  std::map<std::string, Booked> booked_;
};

}  // namespace

ControllerPtr make_resource_quota_controller() { return std::make_unique<ResourceQuotaController>(); }

}  // namespace berth::controllers
