// A cache in front of a server's own, for who does something of his to what is proposed.
#pragma once
#include "tests/apiserver/server_fixture.h"

namespace berth::apiserver::testing {

class WrappedCache : public ObjectCache {
 public:
  explicit WrappedCache(std::unique_ptr<ObjectCache> below) : below_(std::move(below)) {}
  void end() override { below_->end(); }
  [[nodiscard]] ObjectPtr get(std::string_view key) const override { return below_->get(key); }
  [[nodiscard]] ListResult list(const WatchFilter& filter, std::string_view after_key, std::size_t limit) const override {
    return below_->list(filter, after_key, limit);
  }
  [[nodiscard]] std::optional<ListResult> list_at(Revision revision, const WatchFilter& filter, std::string_view after_key,
                                                  std::size_t limit) const override {
    return below_->list_at(revision, filter, after_key, limit);
  }
  [[nodiscard]] Revision revision() const override { return below_->revision(); }
  [[nodiscard]] bool is_read_only() const override { return below_->is_read_only(); }
  std::unique_ptr<Watch> watch(WatchFilter filter, Revision after, bool initial_state, std::shared_ptr<WatchSink> sink) override {
    return below_->watch(std::move(filter), after, initial_state, std::move(sink));
  }
  [[nodiscard]] std::vector<std::pair<std::string, std::size_t>> counts() const override { return below_->counts(); }
  void wait_for(Revision revision, Duration timeout, std::function<void(bool)> done) override {
    below_->wait_for(revision, timeout, std::move(done));
  }

 protected:
  std::unique_ptr<ObjectCache> below_;
};

}  // namespace berth::apiserver::testing
