#include "apiserver/cache/follow.h"

namespace berth::apiserver {
namespace {

class Follower final : public WatchSink {
 public:
  explicit Follower(std::function<void(const WatchEvent&)> changed) : changed_(std::move(changed)) {}
  bool deliver(const WatchEvent& event) override {
    if (event.type != WatchEventType::kBookmark && event.object != nullptr) changed_(event);
    return true;
  }

 private:
  const std::function<void(const WatchEvent&)> changed_;
};

}  // namespace

std::unique_ptr<Watch> follow(ObjectCache& cache, std::string prefix, std::function<void(const WatchEvent&)> changed,
                              std::optional<Revision> after) {
  return cache.watch(WatchFilter{.prefix = std::move(prefix)}, after.value_or(0), !after, std::make_shared<Follower>(std::move(changed)));
}

}  // namespace berth::apiserver
