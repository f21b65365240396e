// What the controllers of Endpoints and EndpointSlices share: the pods behind a Service as endpoints, and their division into slices
// (staging/src/k8s.io/endpointslice).
#pragma once
#include <map>
#include <string>
#include <vector>

#include "controllers/common.h"

namespace berth::controllers::endpoints {

inline constexpr const char* kServiceName = "kubernetes.io/service-name";
inline constexpr const char* kManagedBy = "endpointslice.kubernetes.io/managed-by";
inline constexpr const char* kHeadless = "service.kubernetes.io/headless";
inline constexpr const char* kLastChange = "endpoints.kubernetes.io/last-change-trigger-time";
inline constexpr std::size_t kMaxPerSlice = 100;  ///< --max-endpoints-per-slice

/// The number that a Service port means on a pod; 0: the pod has no such port.
std::int64_t target_port(const json::Value& service_port, const json::Value& pod);
/// The Service's ports as this pod has them; those it lacks are left out. `with_app_protocol`: as slices show them.
json::Array ports_on(const json::Value& service, const json::Value& pod);
/// Whether the pod's own name stands in the Service's zone of DNS: it has a hostname and names the Service as its subdomain.
bool has_service_hostname(const json::Value& service, const json::Value& pod);
/// No cluster address ("None", or none at all).
bool is_headless(const json::Value& service);
/// Whether endpoints of this Service are made from its selector.
bool has_selector(const json::Value& service);
/// The pod's addresses of one family ("IPv4" or "IPv6"); the first alone counts.
std::string address_of(const json::Value& pod, std::string_view family);
std::string_view family_of(std::string_view address);

/// Enqueues the Services that select the pod before or after.
void enqueue_services(const Event& pod_event, const Cache& cache, KeySink& sink);

/// Tells when the change happened that leads to a new state of a Service's endpoints: the earliest of the Service's creation and the moves
/// of its pods' readiness since the last step (endpointslice/util/trigger_time_tracker.go).
class TriggerTimes {
 public:
  /// `moved`: when each pod's Ready condition moved, by name. Nullopt: nothing has changed.
  std::optional<TimePoint> next(const std::string& service, TimePoint created, std::map<std::string, TimePoint> moved);
  void forget(const std::string& service) { seen_.erase(service); }

 private:
  std::map<std::string, std::map<std::string, TimePoint>> seen_;
};

/// The slices that there should be of one owner and address family.
struct WantedSlices {
  std::string ns, name;  ///< Of the Service or Endpoints: slices are called NAME-xxxxx.
  std::string address_type;
  json::Object labels, owner;
  std::optional<json::Object> annotations;  ///< Nullopt: whatever they have stays.
  /// The last change, noted on slices that are written (kLastChange); nullopt: the note is taken off them. Only where annotations stay.
  std::optional<TimePoint> last_change;
  /// Endpoints by the ports they offer (ports_key).
  std::map<std::string, std::vector<json::Object>> by_ports;
  std::size_t max_per_slice = kMaxPerSlice;
  bool placeholder = false;  ///< Keep one empty slice when there is no endpoint at all.
};
/// Where a port stands among others: FNV-1a of 128 bits over it as Go prints it, the order that clients have always seen. `in_slice`: a
/// port of an EndpointSlice (whose fields Go holds by pointers), not of Endpoints.
unsigned __int128 place_of(const json::Value& port, bool in_slice);
/// The key of WantedSlices::by_ports: the ports in one canonical JSON form, with a name each (be it empty).
std::string ports_key(const json::Array& ports);
/// Adds the writes that turn `present` into what is wanted while touching as few slices as possible: endpoints stay in the slice they are
/// in, new ones fill slices that change anyway, then slices with room, then new slices; empty slices go.
void pack_slices(Plan& plan, const WantedSlices& wanted, const std::vector<ObjectRef>& present);

}  // namespace berth::controllers::endpoints
