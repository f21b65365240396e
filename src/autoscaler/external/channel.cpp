#ifdef BERTH_WITH_GRPC
#include "autoscaler/external/channel.h"

#include "net/grpc.h"
#include "net/proto/messages.h"

namespace berth::autoscaler::external {
namespace {

class GrpcChannel final : public Channel {
 public:
  GrpcChannel(std::unique_ptr<net::proto::Messages> messages, std::unique_ptr<net::GrpcCalls> calls)
      : messages_(std::move(messages)), calls_(std::move(calls)) {}

  Result<json::Value> call(const std::string& method, const json::Value& request, int timeout_ms) override {
    const auto bytes = messages_->encode(method, net::proto::Messages::Side::kRequest, request);
    if (!bytes) return fail(ErrorCode::kInvalid, bytes.error().message);
    const auto answer = calls_->call("/" + method, *bytes, timeout_ms);
    if (!answer) {
      const auto& failure = answer.error();
      return fail(failure.is(net::GrpcCode::kUnimplemented) ? ErrorCode::kNotFound
                  : failure.is_unanswered()                 ? ErrorCode::kUnavailable
                                                            : ErrorCode::kInternal,
                  failure.message);
    }
    auto document = messages_->decode(method, net::proto::Messages::Side::kAnswer, *answer);
    if (!document) return fail(ErrorCode::kInternal, document.error().message);
    return document;
  }

 private:
  std::unique_ptr<net::proto::Messages> messages_;
  std::unique_ptr<net::GrpcCalls> calls_;
};

}  // namespace

Result<std::unique_ptr<Channel>> Channel::open(const ChannelAddress& address, std::string_view proto) {
  auto messages = net::proto::Messages::of(proto);
  if (!messages) return std::unexpected(messages.error());
  auto calls = net::GrpcCalls::open({address.address, address.ca_pem, address.certificate_pem, address.key_pem});
  if (!calls) return std::unexpected(calls.error());
  return std::make_unique<GrpcChannel>(std::move(*messages), std::move(*calls));
}

}  // namespace berth::autoscaler::external
#endif
