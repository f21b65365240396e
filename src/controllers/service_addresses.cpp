// Addresses of Services as objects (pkg/controller/servicecidrs, pkg/registry/core/service/ipallocator): ServiceCIDRs are ready and go when
// nothing of them is used; each address of a Service is an IPAddress. Who gives addresses away is the API server, which reads both.
#include <fmt/format.h>

#include "controllers/common.h"
#include "controllers/services.h"
#include "model/validation/ip_range.h"

namespace berth::controllers {
namespace {

using json::get_array;
using json::get_string;
using json::Value;
using model::validation::IpRange;

constexpr std::string_view kRangeFinalizer = "networking.k8s.io/service-cidr-finalizer";
constexpr std::string_view kManagedBy = "ipaddress.kubernetes.io/managed-by", kAllocator = "ipallocator.k8s.io";
constexpr std::string_view kFamily = "ipaddress.kubernetes.io/ip-family";
/// From the deletion of a range until it goes: API servers have to hear of it before its last address may be gone.
constexpr Duration kDeletionGrace = std::chrono::seconds(10);

std::vector<IpRange> ranges_of(const Value& service_cidr) {
  std::vector<IpRange> out;
  for (const Value& text : get_array(service_cidr, {"spec", "cidrs"}))
    if (const auto range = text.is_string() ? model::validation::parse_cidr(json::as_view(text)) : std::nullopt) out.push_back(*range);
  return out;
}

/// Keys are names of ServiceCIDRs.
class ServiceCidrs final : public Controller {
 public:
  [[nodiscard]] std::string_view name() const override { return "service-cidr-controller"; }
  [[nodiscard]] std::vector<Kind> watches() const override { return {kinds().service_cidr, kinds().ip_address}; }

  void on_event(const Event& event, const Cache& cache, TimePoint, KeySink& sink) override {
    if (event.kind == kinds().service_cidr && event.after) sink.add(event.after->name());
    // Another range that went, or an address, may have been what a range had to stay for.
    if (!event.after || event.kind == kinds().service_cidr)
      cache.for_each(kinds().service_cidr, [&](const ObjectRef& range) {
        if (range->is_deleting()) sink.add(range->name());
      });
  }

  Plan reconcile(const std::string& key, TimePoint now, const Cache& cache) override {
    Plan plan;
    const ObjectRef object = cache.get(kinds().service_cidr, "", key);
    if (!object) return plan;
    const auto parsed = object->parsed();
    if (object->is_deleting()) {
      if (!has_finalizer(*parsed, kRangeFinalizer)) return plan;
      if (is_needed(*object, cache)) {
        state(plan, *object, now,
              {"Ready", "False", "Terminating",
               "There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new ServiceCIDR"});
        return plan;
      }
      const Duration left = read_time(*parsed, {"metadata", "deletionTimestamp"}) + kDeletionGrace - now;
      if (left > Duration::zero())
        plan.requeue_after = left;
      else
        plan.writes.push_back(remove_finalizer(kinds().service_cidr, *object, *parsed, kRangeFinalizer));
      return plan;
    }
    if (!has_finalizer(*parsed, kRangeFinalizer)) {
      plan.writes.push_back(add_finalizer(kinds().service_cidr, *object, *parsed, kRangeFinalizer));
      return plan;  // The write wakes this key again.
    }
    state(plan, *object, now, {"Ready", "True", "", "Kubernetes Service CIDR is ready"});
    return plan;
  }

 private:
  static void state(Plan& plan, const Object& object, TimePoint now, const Condition& condition) {
    const auto parsed = object.parsed();
    json::Object status = json::get_object(*parsed, {"status"});
    json::Array conditions = get_array(*parsed, {"status", "conditions"});
    if (!set_condition(conditions, condition, now)) return;
    status["conditions"] = std::move(conditions);
    if (auto write = patch_status(kinds().service_cidr, object, *parsed, status)) plan.writes.push_back(std::move(*write));
  }

  /// Is there a Service's address that no other range has, in a part that no other range covers?
  static bool is_needed(const Object& object, const Cache& cache) {
    std::vector<IpRange> others;
    cache.for_each(kinds().service_cidr, [&](const ObjectRef& other) {
      if (other->name() != object.name() && !other->is_deleting())
        std::ranges::move(ranges_of(*other->parsed()), std::back_inserter(others));
    });
    std::vector<IpRange> alone = ranges_of(*object.parsed());
    std::erase_if(alone, [&](const IpRange& range) {
      return std::ranges::any_of(others, [&](const IpRange& other) { return other.bits <= range.bits && other.contains(range); });
    });
    const auto is_in = [](const std::vector<IpRange>& ranges, const IpRange& address) {
      return std::ranges::any_of(ranges, [&](const IpRange& range) { return range.is_v6 == address.is_v6 && range.contains(address); });
    };
    bool needed = false;
    cache.for_each(kinds().ip_address, [&](const ObjectRef& taken) {
      if (needed || get_string(*taken->parsed(), {"metadata", "labels", kManagedBy}) != kAllocator) return;
      const auto address = model::validation::parse_ip(taken->name());
      needed = address && is_in(alone, *address) && !is_in(others, *address);
    });
    return needed;
  }
};

/// Keys are addresses.
class IpAddresses final : public Controller {
 public:
  [[nodiscard]] std::string_view name() const override { return "service-ip-address-controller"; }
  [[nodiscard]] std::vector<Kind> watches() const override { return {kinds().service, kinds().ip_address}; }

  void on_event(const Event& event, const Cache&, TimePoint, KeySink& sink) override {
    if (event.kind == kinds().ip_address) return sink.add(event.object().name());
    for (const ObjectRef& service : {event.before, event.after}) {
      if (!service) continue;
      const auto parsed = service->parsed();
      for (const Value& address : get_array(*parsed, {"spec", "clusterIPs"}))
        if (const auto text = address.is_string() ? json::as_view(address) : ""; model::validation::parse_ip(text)) {
          if (event.after)
            holders_[std::string(text)] = {service->ns(), service->name()};
          else
            holders_.erase(std::string(text));
          sink.add(std::string(text));
        }
    }
  }

  Plan reconcile(const std::string& key, TimePoint, const Cache& cache) override {
    Plan plan;
    const ObjectRef object = cache.get(kinds().ip_address, "", key);
    const ObjectRef service = holder(key, cache);
    if (!service) {
      if (object && is_ours(*object)) plan.writes.push_back(delete_object(kinds().ip_address, *object));
      return plan;
    }
    if (object) {
      const auto parsed = object->parsed();
      const bool is_its = get_string(*parsed, {"spec", "parentRef", "name"}) == service->name() &&
                          get_string(*parsed, {"spec", "parentRef", "namespace"}) == service->ns();
      if (!is_its && is_ours(*object)) plan.writes.push_back(delete_object(kinds().ip_address, *object));
      return plan;
    }
    const auto range = model::validation::parse_ip(key);
    json::Object labels{{kFamily, range && range->is_v6 ? "IPv6" : "IPv4"}, {kManagedBy, kAllocator}};
    json::Object parent{{"resource", "services"}, {"namespace", service->ns()}, {"name", service->name()}};
    plan.writes.push_back(create_object(kinds().ip_address, "",
                                        json::Object{{"apiVersion", "networking.k8s.io/v1"},
                                                     {"kind", "IPAddress"},
                                                     {"metadata", json::Object{{"name", key}, {"labels", std::move(labels)}}},
                                                     {"spec", json::Object{{"parentRef", std::move(parent)}}}}));
    plan.writes.back().may_fail = true;
    return plan;
  }

 private:
  static bool is_ours(const Object& address) { return get_string(*address.parsed(), {"metadata", "labels", kManagedBy}) == kAllocator; }
  /// The Service that has the address now; null: none.
  ObjectRef holder(const std::string& address, const Cache& cache) {
    const auto found = holders_.find(address);
    if (found == holders_.end()) return nullptr;
    ObjectRef service = cache.get(kinds().service, found->second.first, found->second.second);
    const auto has = [&](const Value& one) { return one.is_string() && json::as_view(one) == address; };
    if (service && std::ranges::any_of(get_array(*service->parsed(), {"spec", "clusterIPs"}), has)) return service;
    holders_.erase(found);
    return nullptr;
  }
  std::map<std::string, std::pair<std::string, std::string>, std::less<>> holders_;  ///< By address: the Service seen with it last.
};

}  // namespace

ControllerPtr make_service_cidr_controller() { return std::make_unique<ServiceCidrs>(); }
ControllerPtr make_ip_address_controller() { return std::make_unique<IpAddresses>(); }

}  // namespace berth::controllers
