#include "autoscaler/provisioning_request.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/kinds.h"
#include "model/schema.h"

namespace berth::autoscaler {
namespace {

using json::get_string;

std::vector<RequestCondition> read_conditions(const json::Value& object) {
  std::vector<RequestCondition> out;
  for (const json::Value& one : json::get_array(object, {"status", "conditions"}))
    out.push_back({std::string(get_string(one, {"type"})), std::string(get_string(one, {"status"})),
                   std::string(get_string(one, {"reason"})), std::string(get_string(one, {"message"})),
                   parse_rfc3339(get_string(one, {"lastTransitionTime"})).value_or(TimePoint{}),
                   json::get_int(one, {"observedGeneration"})});
  return out;
}

/// The first pod of a set as the API server would make it of the template; the others differ in name and uid.
json::Value pod_of_template(const json::Value& pod_template, const ProvisioningRequest& request) {
  json::Value pod = json::Object{{"apiVersion", "v1"}, {"kind", "Pod"}};
  for (const char* field : {"labels", "annotations"})
    if (const json::Value* found = json::find(pod_template, {"template", "metadata", field})) json::set(pod, {"metadata", field}, *found);
  if (const json::Value* spec = json::find(pod_template, {"template", "spec"})) json::set(pod, {"spec"}, *spec);
  json::set(pod, {"metadata", "namespace"}, json::Value(request.ns));
  json::set(pod, {"metadata", "annotations", kConsumeRequest}, json::Value(request.name));
  json::set(pod, {"metadata", "annotations", kClassOfPod}, json::Value(request.class_name));
  json::set(pod, {"metadata", "creationTimestamp"}, json::Value(format_rfc3339(request.created)));
  json::set(pod, {"metadata", "ownerReferences"},
            json::Array{json::Object{{"apiVersion", "autoscaling.x-k8s.io/v1"},
                                     {"kind", "ProvisioningRequest"},
                                     {"name", request.name},
                                     {"uid", request.uid},
                                     {"controller", true}}});
  if (const model::KindInfo* kind = model::find_kind("", "v1", "Pod")) model::apply_defaults(*kind, pod);
  return pod;
}

std::vector<PodPtr> make_pods(const json::Value& pod_template, const ProvisioningRequest& request, std::size_t set, std::int64_t count,
                              placement::Era era) {
  const json::Value document = pod_of_template(pod_template, request);
  const model::PodView view = model::PodView::parse(document);
  const model::PodFacts facts = model::PodFacts::parse(document);
  std::vector<PodPtr> out;
  for (std::int64_t i = 0; i < count; ++i) {
    auto one = std::make_shared<model::PodView>(view);
    // No pod of the API can be called like this.
    one->meta.name = fmt::format("{}:{}:{}", request.name, set, i);
    one->meta.uid = fmt::format("{}/{}", request.ns, one->meta.name);
    out.push_back(std::make_shared<const Pod>(Pod{placement::PodInfo::make(std::move(one), era), facts}));
  }
  return out;
}

}  // namespace

std::int64_t ProvisioningRequest::count() const {
  std::int64_t out = 0;
  for (const PodSet& set : sets) out = std::min(out + set.count, kMostRequestedPods + 1);
  return out;
}

const RequestCondition* ProvisioningRequest::condition(std::string_view type) const {
  const auto found = std::ranges::find(conditions, type, &RequestCondition::type);
  return found == conditions.end() ? nullptr : &*found;
}
bool ProvisioningRequest::is_true(std::string_view type) const {
  const RequestCondition* found = condition(type);
  return found != nullptr && found->status == "True";
}
std::string_view ProvisioningRequest::parameter(std::string_view name) const {
  const auto found = parameters.find(name);
  return found == parameters.end() ? std::string_view() : found->second;
}

std::string ProvisioningRequest::problem() const {
  if (!missing_templates.empty())
    return fmt::format("missing pod templates, {} pod templates were referenced, {} templates were missing: {}", sets.size(),
                       missing_templates.size(), fmt::join(missing_templates, ","));
  return is_too_large ? fmt::format("more than {} pods are asked for", kMostRequestedPods) : "";
}

std::vector<PodPtr> ProvisioningRequest::pods() const {
  std::vector<PodPtr> out;
  for (const PodSet& set : sets) out.insert(out.end(), set.pods.begin(), set.pods.end());
  return out;
}

ProvisioningRequest ProvisioningRequest::parse(const json::Value& object, placement::Era era,
                                               const std::function<const json::Value*(std::string_view)>& template_of,
                                               const ProvisioningRequest* before) {
  ProvisioningRequest out;
  const auto meta = [&](std::string_view field) { return std::string(get_string(object, {"metadata", field})); };
  out.ns = meta("namespace");
  out.name = meta("name");
  out.uid = meta("uid");
  out.revision = meta("resourceVersion");
  out.generation = json::get_int(object, {"metadata", "generation"});
  out.created = parse_rfc3339(meta("creationTimestamp")).value_or(TimePoint{});
  out.is_leaving = !meta("deletionTimestamp").empty();
  out.class_name = get_string(object, {"spec", "provisioningClassName"});
  for (const auto& [key, value] : json::get_object(object, {"spec", "parameters"}))
    if (value.is_string()) out.parameters.emplace(std::string(key.data(), key.size()), json::as_view(value));
  out.conditions = read_conditions(object);
  out.details = json::get_object(object, {"status", "provisioningClassDetails"});
  for (const json::Value& set : json::get_array(object, {"spec", "podSets"}))
    out.sets.push_back(
        {std::string(get_string(set, {"podTemplateRef", "name"})), std::max<std::int64_t>(json::get_int(set, {"count"}), 0), {}});
  const bool is_known = out.class_name == kCheckCapacity || out.class_name == kBestEffortAtomic;
  if (!is_known || out.is_leaving || out.has_ended()) return out;
  out.is_too_large = out.count() > kMostRequestedPods;
  for (std::size_t i = 0; i < out.sets.size(); ++i) {
    PodSet& set = out.sets[i];
    const json::Value* pod_template = template_of(set.template_name);
    if (pod_template == nullptr) {
      out.missing_templates.push_back(set.template_name);
    } else if (before != nullptr && before->uid == out.uid && before->generation == out.generation && !before->sets[i].pods.empty()) {
      set.pods = before->sets[i].pods;
    } else if (!out.is_too_large) {
      set.pods = make_pods(*pod_template, out, i, set.count, era);
    }
  }
  return out;
}

void RequestUpdate::set(std::string_view type, bool status, std::string_view reason, std::string_view message, TimePoint now) {
  auto found = std::ranges::find(conditions, type, &RequestCondition::type);
  if (found == conditions.end()) found = conditions.insert(conditions.end(), RequestCondition{.type = std::string(type)});
  *found = {std::string(type), status ? "True" : "False", std::string(reason), std::string(message), now, request->generation};
}

void RequestUpdate::set_not_found(TimePoint now) {
  if (request->class_name == kCheckCapacity && request->parameter("noRetry") == "true")
    set("Failed", true, kCapacityIsNotFound, kNoRetryMessage, now);
  else
    set("Provisioned", false, kCapacityIsNotFound, kLaterMessage, now);
}

json::Value RequestUpdate::status() const {
  json::Array list;
  for (const RequestCondition& one : conditions)
    list.push_back(json::Object{{"type", one.type},
                                {"status", one.status},
                                {"reason", one.reason},
                                {"message", one.message},
                                {"observedGeneration", one.generation},
                                {"lastTransitionTime", format_rfc3339(one.since)}});
  return json::Object{{"conditions", std::move(list)}, {"provisioningClassDetails", details}};
}

}  // namespace berth::autoscaler
