#include "client/hooked_transport.h"

namespace berth::client {
namespace {

using net::HttpRequest;
using net::HttpResponse;

class HookedTransport final : public Transport {
 public:
  HookedTransport(std::shared_ptr<Transport> inner, TransportHooks hooks)
      : inner_(std::move(inner)), hooks_(std::make_shared<const TransportHooks>(std::move(hooks))) {}

  void send(HttpRequest request, std::function<void(HttpResponse)> done) override {
    if (hooks_->before) hooks_->before(request);
    inner_->send(std::move(request), [hooks = hooks_, done = std::move(done)](HttpResponse response) {
      if (hooks->answered) hooks->answered(response.status, response.headers);
      done(std::move(response));
    });
  }
  std::unique_ptr<net::StreamHandle> stream(HttpRequest request, net::StreamCallbacks callbacks) override {
    if (hooks_->before) hooks_->before(request);
    callbacks.on_header = [hooks = hooks_, on_header = std::move(callbacks.on_header)](int status, const net::Headers& headers) {
      if (hooks->answered) hooks->answered(status, headers);
      if (on_header) on_header(status, headers);
    };
    return inner_->stream(std::move(request), std::move(callbacks));
  }
  void upgrade(HttpRequest request, std::function<void(std::unique_ptr<net::RawStream>, HttpResponse)> done) override {
    if (hooks_->before) hooks_->before(request);
    inner_->upgrade(std::move(request), std::move(done));
  }
  [[nodiscard]] bool is_in_process() const override { return inner_->is_in_process(); }

 private:
  std::shared_ptr<Transport> inner_;
  std::shared_ptr<const TransportHooks> hooks_;
};

}  // namespace

std::shared_ptr<Transport> with_hooks(std::shared_ptr<Transport> inner, TransportHooks hooks) {
  return std::make_shared<HookedTransport>(std::move(inner), std::move(hooks));
}

}  // namespace berth::client
