#ifdef BERTH_WITH_GRPC
#include "autoscaler/external/service.h"

#include <fmt/format.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <thread>

#include "autoscaler/external/bytes.h"
#include "autoscaler/external/messages.h"

namespace berth::autoscaler::external {
namespace {

class GenericService final : public Service {
 public:
  GenericService(std::unique_ptr<Messages> messages, Answer answer) : messages_(std::move(messages)), answer_(std::move(answer)) {}
  ~GenericService() override {
    if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
    if (queue_ != nullptr) queue_->Shutdown();
    if (thread_.joinable()) thread_.join();
  }
  GenericService(const GenericService&) = delete;
  GenericService& operator=(const GenericService&) = delete;

  bool listen(const ServiceOptions& options) {
    grpc::ServerBuilder builder;
    std::shared_ptr<grpc::ServerCredentials> credentials = grpc::InsecureServerCredentials();
    if (!options.certificate_pem.empty()) {
      grpc::SslServerCredentialsOptions tls(options.client_ca_pem.empty() ? GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE
                                                                          : GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
      tls.pem_root_certs = options.client_ca_pem;
      tls.pem_key_cert_pairs.push_back({options.key_pem, options.certificate_pem});
      credentials = grpc::SslServerCredentials(tls);
    }
    builder.AddListeningPort(options.address, credentials, &port_);
    builder.RegisterAsyncGenericService(&service_);
    queue_ = builder.AddCompletionQueue();
    server_ = builder.BuildAndStart();
    if (server_ == nullptr || port_ == 0) return false;
    thread_ = std::thread([this] { serve(); });
    return true;
  }
  [[nodiscard]] int port() const override { return port_; }

 private:
  struct CallState {
    grpc::GenericServerContext context;
    grpc::GenericServerAsyncReaderWriter stream{&context};
    grpc::ByteBuffer request;
    enum class Step { kAccepted, kRead, kAnswered } step = Step::kAccepted;
  };

  void accept() {
    auto* call = new CallState;
    service_.RequestCall(&call->context, &call->stream, queue_.get(), queue_.get(), call);
  }

  void serve() {
    accept();
    void* tag = nullptr;
    bool ok = false;
    while (queue_->Next(&tag, &ok)) {
      auto* call = static_cast<CallState*>(tag);
      if (ok && call->step == CallState::Step::kAccepted) {
        accept();
        call->step = CallState::Step::kRead;
        call->stream.Read(&call->request, call);
      } else if (ok && call->step == CallState::Step::kRead) {
        call->step = CallState::Step::kAnswered;
        reply(*call);
      } else {
        delete call;
      }
    }
  }

  void reply(CallState& call) {
    const std::string method = call.context.method().substr(1);
    const auto request = messages_->decode(method, Messages::Side::kRequest, from_buffer(call.request));
    const auto refuse = [&](const Error& error) {
      const grpc::StatusCode code = error.code == ErrorCode::kNotFound      ? grpc::UNIMPLEMENTED
                                    : error.code == ErrorCode::kUnavailable ? grpc::UNAVAILABLE
                                                                            : grpc::INTERNAL;
      call.stream.Finish(grpc::Status(code, error.message), &call);
    };
    if (!request) return refuse(request.error());
    const auto answer = answer_(method.substr(method.find('/') + 1), *request);
    if (!answer) return refuse(answer.error());
    const auto bytes = messages_->encode(method, Messages::Side::kAnswer, *answer);
    if (!bytes) return refuse(bytes.error());
    call.stream.WriteAndFinish(to_buffer(*bytes), grpc::WriteOptions(), grpc::Status::OK, &call);
  }

  std::unique_ptr<Messages> messages_;
  Answer answer_;
  grpc::AsyncGenericService service_;
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::unique_ptr<grpc::Server> server_;
  int port_ = 0;
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<Service>> Service::start(const ServiceOptions& options, std::string_view proto, Answer answer) {
  auto messages = Messages::of(proto);
  if (!messages) return std::unexpected(messages.error());
  auto out = std::make_unique<GenericService>(std::move(*messages), std::move(answer));
  if (!out->listen(options)) return fail(ErrorCode::kUnavailable, fmt::format("{}: cannot be listened on", options.address));
  return out;
}

}  // namespace berth::autoscaler::external
#endif
