#include "apiserver/upkeep/component_status.h"

namespace berth::apiserver {
namespace {

json::Object healthy() { return {{"type", "Healthy"}, {"status", "True"}, {"message", "ok"}}; }
json::Object unhealthy(std::string error) { return {{"type", "Healthy"}, {"status", "False"}, {"error", std::move(error)}}; }

/// Whoever works holds the Lease of his name in kube-system.
json::Object leader(const ObjectCache& cache, const std::string& name, TimePoint now) {
  const auto object = cache.get(make_key("coordination.k8s.io", "leases", "kube-system", name));
  // `berth up` runs them without election: then nothing is known of them here.
  if (object == nullptr)
    return {{"type", "Healthy"}, {"status", "Unknown"}, {"error", fmt::format("nobody holds the Lease kube-system/{}", name)}};
  const auto lease = decode_object(*object);
  const auto renewed = parse_rfc3339(json::get_string(lease, {"spec", "renewTime"}));
  const auto duration = std::chrono::seconds(json::get_int(lease, {"spec", "leaseDurationSeconds"}));
  if (renewed && *renewed + duration >= now) return healthy();
  return unhealthy(fmt::format("the Lease kube-system/{} was last renewed at {}", name, json::get_string(lease, {"spec", "renewTime"})));
}

}  // namespace

std::vector<ObjectPtr> component_statuses(const ObjectCache& cache, const model::KindInfo& kind, TimePoint now) {
  const std::pair<std::string, json::Object> components[] = {
      {"controller-manager", leader(cache, "kube-controller-manager", now)},
      {"etcd-0", !cache.is_writable() ? unhealthy("the store takes no writes") : healthy()},
      {"scheduler", leader(cache, "kube-scheduler", now)}};
  std::vector<ObjectPtr> out;
  for (const auto& [name, condition] : components) {
    json::Value document = json::Object{{"apiVersion", kind.api_version()},
                                        {"kind", kind.kind},
                                        {"metadata", json::Object{{"name", name}, {"creationTimestamp", nullptr}}},
                                        {"conditions", json::Array{condition}}};
    out.push_back(std::make_shared<StoredObject>(make_key("", kind.plural, "", name), make_bytes(json::serialize(document)), 0, 0,
                                                 extract_meta(kind, document)));
  }
  return out;
}

void answer_component_status(Reads& reads, const RequestPtr& request) {
  const auto& cache = *reads.ground.cache;
  const auto& info = request->info;
  auto all = component_statuses(cache, *request->kind, reads.ground.loop.now());
  if (info.verb == "list" && info.name.empty()) {
    ListResult result;
    result.items = std::move(all);
    result.revision = cache.revision();
    return reads.answer_list(request, std::move(result), {});
  }
  if (info.verb != "get" || info.name.empty()) return reads.respond.status(*request, model::method_not_allowed());
  for (const auto& one : all)
    if (one->meta.name == info.name) return reads.respond.object(*request, 200, one);
  reads.respond.status(*request, model::not_found("", request->kind->plural, info.name));
}

}  // namespace berth::apiserver
