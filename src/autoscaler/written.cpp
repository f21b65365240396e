#include "autoscaler/written.h"

#include "base/log.h"

namespace berth::autoscaler {
namespace {

const model::Gvr kStatusMaps{"", "v1", "configmaps"};
const model::Gvr kRequests{"autoscaling.x-k8s.io", "v1", "provisioningrequests"};
constexpr std::string_view kStatusName = "cluster-autoscaler-status";

}  // namespace

client::ObjectReference StatusMap::reference(std::string uid) const {
  return {"v1", "ConfigMap", ns_, std::string(kStatusName), std::move(uid), "", ""};
}

/// Made or taken over by the first write; from then on only what changes is sent.
void StatusMap::send(const std::string& text, TimePoint now) {
  json::Object metadata{{"annotations", json::Object{{"cluster-autoscaler.kubernetes.io/last-updated", format_rfc3339(now)}}}};
  json::Object body{{"data", json::Object{{"status", text}}}};
  if (!is_there_) {
    body["apiVersion"] = "v1";
    body["kind"] = "ConfigMap";
    metadata["name"] = kStatusName;
    metadata["namespace"] = ns_;
  }
  body["metadata"] = std::move(metadata);
  client_.patch(kStatusMaps, ns_, std::string(kStatusName), is_there_ ? client::PatchType::kMerge : client::PatchType::kApply,
                std::move(body), guarded([text, now](StatusMap& self, const client::ApiResult<json::Value>& result) {
                  const bool is_gone = !result && result.error().code == 404 && std::exchange(self.is_there_, false);
                  if (is_gone) return self.send(text, now);
                  if (!result) return log::warning("autoscaler", "status: {}", result.error().message);
                  self.is_there_ = true;
                  self.written_(self.reference(std::string(json::get_string(*result, {"metadata", "uid"}))));
                }),
                "", client::Answer::kIdentity);
}

void RequestStatuses::take(RequestUpdate update) {
  own_writes_.started(resource_name(kRequests));
  if (update.awaited_groups.empty())
    write(update);
  else
    held_.push_back(std::move(update));
}

void RequestStatuses::release(const std::string& group, bool is_grown) {
  for (auto held = held_.begin(); held != held_.end();) {
    const bool is_concerned = std::erase(held->awaited_groups, group) > 0;
    if (is_concerned && !is_grown) {
      held->set_not_found(client_.loop()->now());
      held->awaited_groups.clear();
    }
    if (is_concerned && held->awaited_groups.empty()) {
      write(*held);
      held = held_.erase(held);
    } else {
      ++held;
    }
  }
}

void RequestStatuses::write(const RequestUpdate& update) {
  const auto written = [key = update.request->key(), is_deleted = update.is_deleted](RequestStatuses& self,
                                                                                     const client::ApiResult<json::Value>& result) {
    self.own_writes_.ended(resource_name(kRequests), result && !is_deleted ? revision_in(*result) : 0);
    // Gone, or changed meanwhile: the next pass looks again.
    if (!result && result.error().code != 404 && result.error().code != 409)
      log::warning("autoscaler", "ProvisioningRequest {}: {}", key, result.error().message);
  };
  const ProvisioningRequest& request = *update.request;
  if (update.is_deleted) return client_.remove(kRequests, request.ns, request.name, {.precondition_uid = request.uid}, guarded(written));
  const json::Value body =
      json::Object{{"metadata", json::Object{{"uid", request.uid}, {"resourceVersion", request.revision}}}, {"status", update.status()}};
  client_.patch(kRequests, request.ns, request.name, client::PatchType::kMerge, body, guarded(written), "status",
                client::Answer::kIdentity);
}

}  // namespace berth::autoscaler
