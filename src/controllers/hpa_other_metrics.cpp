#include "controllers/hpa_other_metrics.h"

#include <cmath>

#include "base/mutex.h"
#include "controllers/common.h"
#include "model/quantity.h"
#include "net/http.h"

namespace berth::controllers::hpa {
namespace {

using json::get_string;
using json::Value;

std::int64_t metric_milli(std::string_view quantity) { return model::Quantity::parse(quantity).value_or(model::Quantity()).milli_value(); }

/// Kinds are named by the metric asked for: kept for the life of the process, a few per cluster.
Kind metric_kind(const std::string& group, const std::string& version, const std::string& plural) {
  static Mutex mutex;
  static std::map<std::string, std::unique_ptr<model::KindInfo>> known BERTH_GUARDED_BY(mutex);
  const MutexLock lock(mutex);
  auto& slot = known[group + "/" + plural];
  if (slot == nullptr) {
    slot = std::make_unique<model::KindInfo>();
    slot->group = group;
    slot->version = version;
    slot->plural = plural;
    slot->kind = "MetricValueList";
  }
  return slot.get();
}

constexpr const char* kCustom = "custom.metrics.k8s.io";
constexpr const char* kExternal = "external.metrics.k8s.io";

std::string selector_query(const char* parameter, const Value* selector) {
  if (selector == nullptr) return {};
  const auto parsed = model::Selector::from_label_selector(selector);
  return parsed ? fmt::format("{}={}", parameter, net::percent_encode(parsed->to_string())) : std::string();
}

/// "services", "ingresses.networking.k8s.io": how a described object's resource stands in the path.
std::string described_resource(const Value& object) {
  const std::string_view version = get_string(object, {"apiVersion"}), kind = get_string(object, {"kind"});
  if (const Kind known = kind_of_reference(version, kind); known != nullptr)
    return known->group.empty() ? known->plural : known->plural + "." + known->group;
  std::string plural(kind);
  std::ranges::transform(plural, plural.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const auto slash = version.find('/');
  return slash == std::string_view::npos ? plural + "s" : fmt::format("{}s.{}", plural, version.substr(0, slash));
}

}  // namespace

std::optional<OtherMetric> read_other_metric(const Value& metric) {
  OtherMetric out;
  const std::string_view type = get_string(metric, {"type"});
  if (type == "Object")
    out.type = OtherMetric::Type::kObject;
  else if (type == "External")
    out.type = OtherMetric::Type::kExternal;
  else if (type != "Pods")
    return std::nullopt;
  out.source = json::find(metric, out.field());
  if (out.source == nullptr) return std::nullopt;
  out.name = get_string(*out.source, {"metric", "name"});
  out.is_average = json::find(*out.source, {"target", "averageValue"}) != nullptr;
  out.target_milli = metric_milli(get_string(*out.source, {"target", out.is_average ? "averageValue" : "value"}));
  return out;
}

Write ask_other_metric(const OtherMetric& metric, const std::string& ns, const model::Selector& pods, std::string tag) {
  Write write;
  write.verb = Write::Verb::kGet;
  write.ns = ns;
  write.may_fail = true;
  write.tag = std::move(tag);
  const Value* selector = json::find(*metric.source, {"metric", "selector"});
  const auto join = [](const std::string& a, const std::string& b) { return a.empty() || b.empty() ? a + b : a + "&" + b; };
  if (metric.type == OtherMetric::Type::kExternal) {
    write.verb = Write::Verb::kList;
    write.kind = metric_kind(kExternal, "v1beta1", metric.name);
    write.query = selector_query("labelSelector", selector);
    return write;
  }
  write.subresource = metric.name;
  if (metric.type == OtherMetric::Type::kPods) {
    write.kind = metric_kind(kCustom, "v1beta2", "pods");
    write.name = "*";
    write.query = join("labelSelector=" + net::percent_encode(pods.to_string()), selector_query("metricLabelSelector", selector));
    return write;
  }
  const Value& object = *json::find(*metric.source, "describedObject");
  write.query = selector_query("metricLabelSelector", selector);
  if (get_string(object, {"kind"}) == "Namespace") {
    write.ns = get_string(object, {"name"});
    write.kind = metric_kind(kCustom, "v1beta2", "metrics");
    write.name = metric.name;
    write.subresource.clear();
    return write;
  }
  write.kind = metric_kind(kCustom, "v1beta2", described_resource(object));
  write.name = get_string(object, {"name"});
  return write;
}

OtherAnswer read_other_answer(const Write& write, const ApiResult<Value>& result) {
  OtherAnswer out;
  const bool is_external = write.kind->group == kExternal;
  if (result) {
    out.items = json::get_array(*result, {"items"});
    if (out.items.empty())
      out.error = is_external ? "no metrics returned from external metrics API" : "no metrics returned from custom metrics API";
    return out;
  }
  const auto& failure = result.error();
  // Nobody serves the group, or nobody knows the metric: both are 404, and only the words of whoever serves metrics tell them apart.
  const bool is_unserved = failure.code == 404 && failure.message.find("metric") == std::string::npos;
  if (is_external)
    out.error =
        fmt::format("unable to fetch metrics from external metrics API: {}",
                    is_unserved ? fmt::format("the server could not find the requested resource (get {}.{})", write.kind->plural, kExternal)
                                : failure.message);
  else
    out.error = fmt::format("unable to fetch metrics from custom metrics API: {}",
                            is_unserved ? fmt::format("no custom metrics API ({}) registered", kCustom) : failure.message);
  return out;
}

std::unordered_map<std::string, Sample> samples_of(const OtherAnswer& answer) {
  std::unordered_map<std::string, Sample> out;
  for (const Value& item : answer.items) {
    Sample sample;
    sample.milli = metric_milli(get_string(item, {"value"}));
    sample.at = read_time(item, {"timestamp"});
    sample.window = std::chrono::seconds(json::get_int(item, {"windowSeconds"}, 60));
    out.emplace(get_string(item, {"describedObject", "name"}), sample);
  }
  return out;
}

std::int64_t sum_milli(const OtherAnswer& answer) {
  std::int64_t sum = 0;
  for (const Value& item : answer.items) sum += metric_milli(get_string(item, {"value"}));
  return sum;
}

OtherProposal propose_for_value(std::int64_t usage_milli, std::int64_t target_milli, std::int64_t current, std::int64_t ready,
                                const Tolerance& tolerance) {
  OtherProposal out{current, usage_milli, 0};
  const double ratio = static_cast<double>(usage_milli) / static_cast<double>(std::max<std::int64_t>(target_milli, 1));
  if (current == 0)
    out.replicas = static_cast<std::int64_t>(std::ceil(ratio));
  else if (!tolerance.covers(ratio))
    out.replicas = static_cast<std::int64_t>(std::ceil(ratio * static_cast<double>(ready)));
  return out;
}

OtherProposal propose_for_share(std::int64_t usage_milli, std::int64_t target_milli, std::int64_t current, const Tolerance& tolerance) {
  const auto target = static_cast<double>(std::max<std::int64_t>(target_milli, 1));
  const auto usage = static_cast<double>(usage_milli), pods = static_cast<double>(current);
  OtherProposal out{current, usage_milli, current == 0 ? 0 : static_cast<std::int64_t>(std::ceil(usage / pods))};
  if (current == 0 || !tolerance.covers(usage / (target * pods))) out.replicas = static_cast<std::int64_t>(std::ceil(usage / target));
  return out;
}

}  // namespace berth::controllers::hpa
