#include "apiserver/upkeep/own_endpoints.h"

#include "apiserver/ground/proposals.h"
#include "apiserver/upkeep/own_documents.h"
#include "base/lifeline.h"
#include "base/mutex.h"
#include "model/schema.h"

namespace berth::apiserver {
namespace {

constexpr Duration kEndpointsPause = std::chrono::seconds(10);

}  // namespace

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
