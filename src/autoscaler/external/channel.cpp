#ifdef BERTH_WITH_GRPC
#include "autoscaler/external/channel.h"

#include <fmt/format.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include "autoscaler/external/bytes.h"
#include "autoscaler/external/messages.h"

namespace berth::autoscaler::external {
namespace {

ErrorCode code_of(grpc::StatusCode code) {
  switch (code) {
    case grpc::UNIMPLEMENTED:
      return ErrorCode::kNotFound;
    case grpc::UNAVAILABLE:
    case grpc::DEADLINE_EXCEEDED:
    case grpc::CANCELLED:
      return ErrorCode::kUnavailable;
    default:
      return ErrorCode::kInternal;
  }
}

class GrpcCalls final : public Channel {
 public:
  GrpcCalls(std::unique_ptr<Messages> messages, const ChannelAddress& address)
      : messages_(std::move(messages)), channel_(grpc::CreateChannel(address.address, credentials(address))), stub_(channel_) {}

  Result<json::Value> call(const std::string& method, const json::Value& request, int timeout_ms) override {
    const auto bytes = messages_->encode(method, Messages::Side::kRequest, request);
    if (!bytes) return fail(ErrorCode::kInvalid, bytes.error().message);
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(timeout_ms));
    grpc::CompletionQueue queue;
    const auto reader = stub_.PrepareUnaryCall(&context, "/" + method, to_buffer(*bytes), &queue);
    grpc::ByteBuffer answer;
    grpc::Status status;
    reader->StartCall();
    reader->Finish(&answer, &status, this);
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
    if (!status.ok()) return fail(code_of(status.error_code()), status.error_message());
    auto document = messages_->decode(method, Messages::Side::kAnswer, from_buffer(answer));
    if (!document) return fail(ErrorCode::kInternal, document.error().message);
    return document;
  }

 private:
  static std::shared_ptr<grpc::ChannelCredentials> credentials(const ChannelAddress& address) {
    if (address.ca_pem.empty() && address.certificate_pem.empty()) return grpc::InsecureChannelCredentials();
    return grpc::SslCredentials({address.ca_pem, address.key_pem, address.certificate_pem});
  }

  std::unique_ptr<Messages> messages_;
  std::shared_ptr<grpc::Channel> channel_;
  grpc::GenericStub stub_;
};

}  // namespace

Result<std::unique_ptr<Channel>> Channel::open(const ChannelAddress& address, std::string_view proto) {
  auto messages = Messages::of(proto);
  if (!messages) return std::unexpected(messages.error());
  return std::make_unique<GrpcCalls>(std::move(*messages), address);
}

}  // namespace berth::autoscaler::external
#endif
