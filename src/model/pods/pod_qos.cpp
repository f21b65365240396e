// Quality-of-service classes (k8s.io/component-helpers/resource, pkg/apis/core/v1/helper/qos).
#include <optional>

#include "model/quantity.h"
#include "model/schema.h"

namespace berth::model {
namespace {

using json::Object;
using json::Value;

const Quantity* parse_resource(const Value& resources, std::string_view list, std::string_view name, Quantity& storage) {
  // A dump written by hand may have a plain number, which an API server has as text.
  const Value* value = json::find(resources, {list, name});
  const std::string number = value != nullptr && value->is_number() ? json::serialize(*value) : std::string();
  const std::string_view text = number.empty() ? json::get_string(resources, {list, name}) : std::string_view(number);
  if (text.empty()) return nullptr;
  const auto quantity = Quantity::parse(text);
  if (!quantity || quantity->is_zero()) return nullptr;
  storage = *quantity;
  return &storage;
}

}  // namespace

std::string_view pod_qos_class(const Value& pod) {
  constexpr std::string_view kResources[] = {"cpu", "memory"};
  std::optional<Quantity> requests[2], limits[2];
  bool guaranteed = true;
  const auto look = [&](const Value& holder, bool may_be_unlimited) {
    const Value none = Object();
    const Value* resources = json::find(holder, "resources");
    std::size_t limited = 0;
    for (std::size_t i = 0; i < std::size(kResources); ++i) {
      Quantity storage[2];
      const auto amount = [&](std::string_view list, Quantity& place) {
        const Quantity* there = parse_resource(resources != nullptr ? *resources : none, list, kResources[i], place);
        return there != nullptr && there->sign() > 0 ? there : nullptr;
      };
      const auto count = [](std::optional<Quantity>& sum, const Quantity* part) {
        if (part != nullptr) sum = sum ? Quantity(*sum) += *part : *part;
      };
      const Quantity *request = amount("requests", storage[0]), *limit = amount("limits", storage[1]);
      // A limit without a request counts as both (the defaults make it so).
      count(requests[i], request != nullptr ? request : limit);
      count(limits[i], limit);
      limited += limit != nullptr;
    }
    guaranteed &= limited == std::size(kResources) || may_be_unlimited;
  };
  // With resources of its own those of the containers do not count.
  if (const Value* own = json::find(pod, {"spec", "resources"}); own != nullptr && own->is_object()) {
    look(*json::find(pod, {"spec"}), json::get_object(*own, {"limits"}).empty());
  } else {
    for (const char* list : {"containers", "initContainers"})
      for (const Value& container : json::get_array(pod, {"spec", list})) look(container, false);
  }
  const auto is_any = [](const auto& amounts) { return amounts[0] || amounts[1]; };
  if (!is_any(requests) && !is_any(limits)) return "BestEffort";
  return guaranteed && requests[0] == limits[0] && requests[1] == limits[1] ? "Guaranteed" : "Burstable";
}

}  // namespace berth::model
