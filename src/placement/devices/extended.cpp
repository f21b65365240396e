#include "placement/devices/extended.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

namespace berth::placement::devices {
namespace {

using model::ContainerView;

constexpr std::string_view kExtendedClaimAnnotation = "resource.kubernetes.io/extended-resource-claim";
constexpr std::string_view kClassPrefix = "deviceclass.resource.kubernetes.io/";

struct Request {
  std::string name;
  std::int64_t count = 0;
};

struct Mapping {
  std::string container, resource, request;
};

/// A pod's containers in the order that names of requests count in: init containers first.
struct Containers {
  std::vector<const ContainerView*> all;
  std::size_t init = 0;

  explicit Containers(const model::PodView& pod) : init(pod.init_containers.size()) {
    for (const auto& one : pod.init_containers) all.push_back(&one);
    for (const auto& one : pod.containers) all.push_back(&one);
  }
  /// An init container that ends before those after it start.
  [[nodiscard]] bool is_short_lived(std::size_t index) const { return index < init && !all[index]->restarts_always; }
};

/// The requests and mappings of one resource.
class OneResource {
 public:
  OneResource(const Containers& containers, std::string resource) : containers_(containers), resource_(std::move(resource)) {
    requests_.resize(containers.all.size());
    for (std::size_t i = 0; i < containers.all.size(); ++i)
      if (!containers.is_short_lived(i)) requests_[i] = ask(i, false, long_lived_);
    std::set<std::string> names;
    for (std::size_t i = 0; i < containers.all.size(); ++i) {
      if (!containers.is_short_lived(i)) continue;
      const auto request = ask(i, true, short_lived_);
      if (!request) continue;
      names.insert(request->name);
      if (!largest_ || largest_->count < request->count) largest_ = request;
    }
    for (auto& mapping : short_lived_)
      if (names.contains(mapping.request)) mapping.request = largest_->name;
  }

  void append(std::vector<Request>& requests, std::vector<Mapping>& mappings) const {
    if (largest_) requests.push_back(*largest_);
    for (const auto& request : requests_)
      if (request) requests.push_back(*request);
    mappings.insert(mappings.end(), long_lived_.begin(), long_lived_.end());
    mappings.insert(mappings.end(), short_lived_.begin(), short_lived_.end());
  }

 private:
  /// What container `index` asks for beyond what it may use of later containers' devices.
  std::optional<Request> ask(std::size_t index, bool shares_later, std::vector<Mapping>& mappings) const {
    const ContainerView& container = *containers_.all[index];
    const model::Quantity* wanted = model::find_resource(container.requests, resource_);
    if (wanted == nullptr) return std::nullopt;
    const std::int64_t amount = wanted->value();
    if (amount <= 0) return std::nullopt;
    std::int64_t sum = 0;
    for (std::size_t i = index; shares_later && i < requests_.size(); ++i) {
      if (!requests_[i]) continue;
      sum += requests_[i]->count;
      mappings.push_back({container.name, resource_, requests_[i]->name});
      if (sum >= amount) return std::nullopt;
    }
    const auto place = std::ranges::count_if(container.requests, [&](const auto& one) { return one.first < resource_; });
    Request out{fmt::format("container-{}-request-{}", index, place), amount - sum};
    mappings.push_back({container.name, resource_, out.name});
    return out;
  }

  const Containers& containers_;
  std::string resource_;
  std::vector<std::optional<Request>> requests_;  ///< By container: those that last.
  std::optional<Request> largest_;                ///< Of those that end, one after the other.
  std::vector<Mapping> long_lived_, short_lived_;
};

json::Object request_document(const Request& request, std::string_view class_name) {
  return {{"name", request.name},
          {"exactly", json::Object{{"deviceClassName", class_name}, {"allocationMode", "ExactCount"}, {"count", request.count}}}};
}

bool is_eligible(std::string_view resource) { return is_extended_resource_name(resource) || resource.starts_with(kClassPrefix); }

}  // namespace

const model::DeviceClassView* class_behind(const Cluster& cluster, std::string_view resource) {
  if (cluster.device_classes().empty() || !is_eligible(resource)) return nullptr;
  if (resource.starts_with(kClassPrefix)) {
    const auto named = cluster.device_classes().find(resource.substr(kClassPrefix.size()));
    return named == cluster.device_classes().end() ? nullptr : named->second.get();
  }
  const model::DeviceClassView* out = nullptr;
  for (const auto& [name, one] : cluster.device_classes())
    if (one->extended_resource == resource && (out == nullptr || one->meta.creation_timestamp > out->meta.creation_timestamp))
      out = one.get();
  return out;
}

std::vector<std::string> backed_resources(const Resource& wanted, const Cluster& cluster) {
  std::vector<std::string> out;
  for (const auto& [resource, amount] : wanted.scalars)
    if (amount != 0 && class_behind(cluster, resource) != nullptr) out.push_back(resource);
  return out;
}

bool is_left_to_devices(const Cluster& cluster, const Resource& allocatable, std::string_view resource) {
  return !cluster.device_classes().empty() && allocatable.scalar(resource) == 0 && class_behind(cluster, resource) != nullptr;
}

ExtendedClaim make_extended_claim(const model::PodView& pod, const std::vector<std::string>& resources, const Cluster& cluster) {
  const Containers containers(pod);
  std::vector<std::pair<std::string, json::Object>> requests;
  json::Array mappings;
  for (const auto& resource : resources) {
    std::vector<Request> asked;
    std::vector<Mapping> mapped;
    OneResource(containers, resource).append(asked, mapped);
    for (const auto& one : asked) requests.emplace_back(one.name, request_document(one, class_behind(cluster, resource)->meta.name));
    for (const auto& one : mapped)
      mappings.push_back(json::Object{{"containerName", one.container}, {"resourceName", one.resource}, {"requestName", one.request}});
  }
  std::ranges::sort(requests, {}, &std::pair<std::string, json::Object>::first);
  json::Array list;
  for (auto& [name, request] : requests) list.emplace_back(std::move(request));

  json::Object owner{{"apiVersion", "v1"}, {"kind", "Pod"}, {"name", pod.meta.name}, {"uid", pod.meta.uid}, {"controller", true}};
  json::Object document{{"apiVersion", "resource.k8s.io/v1"},
                        {"kind", "ResourceClaim"},
                        {"metadata",
                         {{"namespace", pod.ns()},
                          {"generateName", pod.meta.name + "-extended-resources-"},
                          {"annotations", json::Object{{kExtendedClaimAnnotation, "true"}}},
                          {"ownerReferences", json::Array{std::move(owner)}}}},
                        {"spec", {{"devices", {{"requests", std::move(list)}}}}}};
  auto view = model::ResourceClaimView::parse(document);
  view.meta.name = "<extended-resources>";  // As messages call it; no claim can have that name.
  view.meta.uid = extended_claim_uid(pod);
  return {std::make_shared<const model::ResourceClaimView>(std::move(view)), std::move(document), std::move(mappings)};
}

bool is_extended_claim(const model::ResourceClaimView& claim) {
  const std::string* mark = claim.meta.annotation(kExtendedClaimAnnotation);
  return mark != nullptr && *mark == "true";
}

std::string extended_claim_uid(const model::PodView& pod) { return "extended-resources/" + pod.meta.uid; }

std::shared_ptr<const model::ResourceClaimView> find_extended_claim(const model::PodView& pod, const Cluster& cluster) {
  for (const auto& [key, claim] : cluster.resource_claims()) {
    if (!is_extended_claim(*claim) || claim->meta.ns != pod.ns()) continue;
    if (const auto* owner = claim->meta.controller(); owner != nullptr && owner->uid == pod.meta.uid) return claim;
  }
  return nullptr;
}

}  // namespace berth::placement::devices
