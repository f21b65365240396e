// A transport whose credentials can be exchanged while it is in use: what lies behind it is replaced as a whole.
#pragma once

#include "base/mutex.h"
#include "client/transport.h"

namespace berth::client {

/// Thread-safe. What is under way goes on on the transport that it began on, which is kept until the replacement after next.
class ReplaceableTransport final : public Transport {
 public:
  explicit ReplaceableTransport(std::shared_ptr<Transport> first) : now_(std::move(first)) {}
  void replace(std::shared_ptr<Transport> next) {
    const MutexLock lock(mutex_);
    before_ = std::move(now_);
    now_ = std::move(next);
  }
  void send(net::HttpRequest request, std::function<void(net::HttpResponse)> done) override {
    present()->send(std::move(request), std::move(done));
  }
  std::unique_ptr<net::StreamHandle> stream(net::HttpRequest request, net::StreamCallbacks callbacks) override {
    return present()->stream(std::move(request), std::move(callbacks));
  }
  void upgrade(net::HttpRequest request, std::function<void(std::unique_ptr<net::RawStream>, net::HttpResponse)> done) override {
    present()->upgrade(std::move(request), std::move(done));
  }
  [[nodiscard]] bool is_in_process() const override { return present()->is_in_process(); }

 private:
  [[nodiscard]] std::shared_ptr<Transport> present() const {
    const MutexLock lock(mutex_);
    return now_;
  }
  mutable Mutex mutex_;
  std::shared_ptr<Transport> now_ BERTH_GUARDED_BY(mutex_), before_ BERTH_GUARDED_BY(mutex_);
};

}  // namespace berth::client
