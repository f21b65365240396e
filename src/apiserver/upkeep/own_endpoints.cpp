#include "apiserver/upkeep/own_endpoints.h"

#include "apiserver/ground/proposals.h"
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
    const auto& kind = *model::find_resource("", "endpoints");
    const auto stored = ground.cache->get(object_key(kind, "default", "kubernetes"));
    json::Object address{{"ip", ground.options.advertise_address}};
    json::Object port{{"name", "https"}, {"port", static_cast<int>(ground.options.advertise_port)}, {"protocol", "TCP"}};
    json::Value subsets =
        json::Array{json::Object{{"addresses", json::Array{std::move(address)}}, {"ports", json::Array{std::move(port)}}}};
    json::Value document = json::Object{{"metadata", json::Object{{"name", "kubernetes"}, {"namespace", "default"}}}};
    if (stored != nullptr) {
      document = decode_object(*stored);
      const json::Value* now = json::find(document, "subsets");
      if (now != nullptr && json::equal(*now, subsets)) return;
    }
    document.get_object()["subsets"] = std::move(subsets);
    if (stored == nullptr) {
      document = newborn(ground, ground.names, kind, std::move(document));
      // kube-apiserver mirrors them itself; here the mirroring controller does.
      model::apply_defaults(kind, document);
      model::prepare_for_create(kind, document);
    }
    put(ground, kind, std::move(document), stored == nullptr ? 0 : stored->revision);  // Whoever was faster is judged at the next look.
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
