// Where spans go by OTLP over gRPC.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "net/grpc.h"

namespace berth::testing {

/// Takes whatever is exported, as bytes.
class SpanCollector {
 public:
  SpanCollector() {
    auto started = net::GrpcService::start({}, [this](const std::string& method, const std::string& bytes) -> net::GrpcAnswer {
      const std::lock_guard lock(mutex_);
      methods_[method] += 1;
      taken_ += bytes;
      return std::string();
    });
    if (started) service_ = std::move(*started);
  }
  [[nodiscard]] bool runs() const { return service_ != nullptr; }
  [[nodiscard]] std::string endpoint() const { return "127.0.0.1:" + std::to_string(service_->port()); }
  std::string taken() {
    const std::lock_guard lock(mutex_);
    return taken_;
  }
  std::map<std::string, int> methods() {
    const std::lock_guard lock(mutex_);
    return methods_;
  }

 private:
  std::mutex mutex_;
  std::string taken_;
  std::map<std::string, int> methods_;
  std::unique_ptr<net::GrpcService> service_;
};

}  // namespace berth::testing
