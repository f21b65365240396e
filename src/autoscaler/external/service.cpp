#ifdef BERTH_WITH_GRPC
#include "autoscaler/external/service.h"

#include "net/grpc.h"
#include "net/proto/messages.h"

namespace berth::autoscaler::external {
namespace {

net::GrpcFailure failure_of(const Error& error) {
  const net::GrpcCode code = error.code == ErrorCode::kNotFound      ? net::GrpcCode::kUnimplemented
                             : error.code == ErrorCode::kUnavailable ? net::GrpcCode::kUnavailable
                                                                     : net::GrpcCode::kInternal;
  return {static_cast<int>(code), error.message};
}

class ServiceImpl final : public Service {
 public:
  ServiceImpl(std::unique_ptr<net::proto::Messages> messages, Answer answer) : messages_(std::move(messages)), answer_(std::move(answer)) {}
  Result<void> listen(const ServiceOptions& options) {
    auto started =
        net::GrpcService::start({options.address, options.certificate_pem, options.key_pem, options.client_ca_pem},
                                [this](const std::string& method, const std::string& bytes) { return reply(method.substr(1), bytes); });
    if (!started) return std::unexpected(started.error());
    service_ = std::move(*started);
    return {};
  }
  [[nodiscard]] int port() const override { return service_->port(); }

 private:
  net::GrpcAnswer reply(const std::string& method, const std::string& bytes) {
    const auto request = messages_->decode(method, net::proto::Messages::Side::kRequest, bytes);
    if (!request) return std::unexpected(failure_of(request.error()));
    const auto answer = answer_(method.substr(method.find('/') + 1), *request);
    if (!answer) return std::unexpected(failure_of(answer.error()));
    auto encoded = messages_->encode(method, net::proto::Messages::Side::kAnswer, *answer);
    if (!encoded) return std::unexpected(failure_of(encoded.error()));
    return std::move(*encoded);
  }

  std::unique_ptr<net::proto::Messages> messages_;
  Answer answer_;
  std::unique_ptr<net::GrpcService> service_;  ///< Goes first.
};

}  // namespace

Result<std::unique_ptr<Service>> Service::start(const ServiceOptions& options, std::string_view proto, Answer answer) {
  auto messages = net::proto::Messages::of(proto);
  if (!messages) return std::unexpected(messages.error());
  auto out = std::make_unique<ServiceImpl>(std::move(*messages), std::move(answer));
  if (auto listening = out->listen(options); !listening) return std::unexpected(listening.error());
  return out;
}

}  // namespace berth::autoscaler::external
#endif
