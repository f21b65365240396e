#include "apiserver/upkeep/own_endpoints.h"

#include "apiserver/ground/proposals.h"
#include "base/lifeline.h"
#include "base/mutex.h"
#include "model/schema.h"

namespace berth::apiserver {
namespace {

constexpr Duration kEndpointsPause = std::chrono::seconds(10);

json::Object port_of(std::uint16_t port) { return {{"name", "https"}, {"port", static_cast<int>(port)}, {"protocol", "TCP"}}; }

json::Object metadata_of(const char* label, const char* value) {
  return {{"name", "kubernetes"}, {"namespace", "default"}, {"labels", json::Object{{label, value}}}};
}

}  // namespace

json::Value own_endpoints(const std::set<std::string>& addresses, std::uint16_t port) {
  json::Array list, subsets;
  for (const std::string& address : addresses) list.push_back(json::Object{{"ip", address}});
  if (!addresses.empty()) subsets.push_back(json::Object{{"addresses", std::move(list)}, {"ports", json::Array{port_of(port)}}});
  return json::Object{{"apiVersion", "v1"},
                      {"kind", "Endpoints"},
                      {"metadata", metadata_of("endpointslice.kubernetes.io/skip-mirror", "true")},
                      {"subsets", std::move(subsets)}};
}

json::Value own_slice(const std::set<std::string>& addresses, std::uint16_t port) {
  json::Array endpoints;
  for (const std::string& address : addresses)
    endpoints.push_back(json::Object{{"addresses", json::Array{json::Value(address)}}, {"conditions", json::Object{{"ready", true}}}});
  const bool is_v6 = !addresses.empty() && addresses.begin()->find(':') != std::string::npos;
  return json::Object{{"apiVersion", "discovery.k8s.io/v1"},
                      {"kind", "EndpointSlice"},
                      {"metadata", metadata_of("kubernetes.io/service-name", "kubernetes")},
                      {"addressType", is_v6 ? "IPv6" : "IPv4"},
                      {"endpoints", std::move(endpoints)},
                      {"ports", json::Array{port_of(port)}}};
}

struct OwnEndpoints::State : Guarded<State> {
  explicit State(Ground& of) : ground(of) {}

  Ground& ground;
  Mutex mutex;
  bool is_stopped BERTH_GUARDED_BY(mutex) = false;
  TimerId timer BERTH_GUARDED_BY(mutex) = TimerId::kNone;

  void schedule() BERTH_REQUIRES(mutex) {
    timer = ground.loop.schedule_after(kEndpointsPause, guarded([](State& self) {
                                         const MutexLock lock(self.mutex);
                                         if (self.is_stopped) return;
                                         self.look();
                                         self.schedule();
                                       }));
  }

  void look() const {
    const std::set<std::string> address{ground.options.advertise_address};
    keep(*model::find_resource("", "endpoints"), own_endpoints(address, ground.options.advertise_port));
    keep(*model::find_resource("discovery.k8s.io", "endpointslices"), own_slice(address, ground.options.advertise_port));
  }

  void keep(const model::KindInfo& kind, json::Value wanted) const {
    const auto stored = ground.cache->get(object_key(kind, "default", "kubernetes"));
    if (stored == nullptr) {
      json::Value document = newborn(ground, ground.names, kind, std::move(wanted));
      model::apply_defaults(kind, document);
      model::prepare_for_create(kind, document);
      return put(ground, kind, std::move(document), 0);  // Whoever was faster is judged at the next look.
    }
    json::Value document = decode_object(*stored);
    bool says_so = true;
    const auto set = [&](std::initializer_list<std::string_view> path, const json::Value& value) {
      const json::Value* now = json::find(document, path);
      if (now != nullptr && json::equal(*now, value)) return;
      says_so = false;
      json::set(document, path, value);
    };
    for (const auto& label : json::get_object(wanted, {"metadata", "labels"})) set({"metadata", "labels", label.key()}, label.value());
    for (const char* field : {"subsets", "addressType", "endpoints", "ports"})
      if (const json::Value* value = json::find(wanted, field)) set({field}, *value);
    if (!says_so) put(ground, kind, std::move(document), stored->revision);
  }
};

OwnEndpoints::OwnEndpoints(Ground& ground) : state_(std::make_shared<State>(ground)) {
  const MutexLock lock(state_->mutex);
  state_->look();
  state_->schedule();
}

void OwnEndpoints::stop() {
  const MutexLock lock(state_->mutex);
  state_->is_stopped = true;
  state_->ground.loop.cancel(state_->timer);
}

}  // namespace berth::apiserver
