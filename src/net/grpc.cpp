#include "net/grpc.h"

#include <fmt/format.h>

#ifdef BERTH_WITH_GRPC
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <thread>

#include "base/deadlines.h"
#include "base/mutex.h"

namespace berth::net {
namespace {

constexpr std::chrono::seconds kLateCall(1);  ///< How late gRPC's own deadline may be.

grpc::ByteBuffer to_buffer(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return {&slice, 1};
}

std::string from_buffer(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  std::string out;
  if (buffer.Dump(&slices).ok())
    for (const grpc::Slice& one : slices) out.append(reinterpret_cast<const char*>(one.begin()), one.size());
  return out;
}

std::shared_ptr<grpc::ChannelCredentials> credentials_for(const GrpcAddress& address) {
  if (address.ca_pem.empty() && address.certificate_pem.empty()) return grpc::InsecureChannelCredentials();
  return grpc::SslCredentials({address.ca_pem, address.private_key_pem, address.certificate_pem});
}

class ChannelCalls final : public GrpcCalls {
 public:
  explicit ChannelCalls(const GrpcAddress& address)
      : headers_(address.headers), channel_(grpc::CreateChannel(address.target, credentials_for(address))), stub_(channel_) {}

  GrpcAnswer call(const std::string& method, const std::string& request, int timeout_ms, const std::atomic<bool>* cancel) override {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(timeout_ms));
    const auto watch =
        Deadlines::of_process().watch(std::chrono::milliseconds(timeout_ms) + kLateCall, [&context] { context.TryCancel(); });
    for (const auto& [name, value] : headers_) context.AddMetadata(name, value);
    grpc::CompletionQueue queue;
    const auto reader = stub_.PrepareUnaryCall(&context, method, to_buffer(request), &queue);
    grpc::ByteBuffer answer;
    grpc::Status status;
    reader->StartCall();
    reader->Finish(&answer, &status, this);
    void* tag = nullptr;
    bool ok = false;
    while (cancel != nullptr && queue.AsyncNext(&tag, &ok, std::chrono::system_clock::now() + std::chrono::milliseconds(100)) ==
                                    grpc::CompletionQueue::TIMEOUT) {
      if (!cancel->load()) continue;
      context.TryCancel();
      cancel = nullptr;
    }
    if (tag == nullptr) queue.Next(&tag, &ok);
    if (!status.ok()) return std::unexpected(GrpcFailure{status.error_code(), status.error_message()});
    return from_buffer(answer);
  }

  GrpcFailure read_stream(const std::string& method, const std::string& request, const std::function<void(const std::string&)>& on_message,
                          const std::atomic<bool>& cancel) override {
    grpc::ClientContext context;
    for (const auto& [name, value] : headers_) context.AddMetadata(name, value);
    grpc::CompletionQueue queue;
    const auto stream = stub_.PrepareCall(&context, method, &queue);
    // One operation at a time; false: it failed, and the stream is over.
    const auto done = [&] {
      void* tag = nullptr;
      bool ok = false;
      for (bool is_called_off = false;
           queue.AsyncNext(&tag, &ok, std::chrono::system_clock::now() + std::chrono::milliseconds(100)) == grpc::CompletionQueue::TIMEOUT;)
        if (cancel.load() && !std::exchange(is_called_off, true)) context.TryCancel();
      return ok;
    };
    stream->StartCall(this);
    bool goes_on = done();
    if (goes_on) {
      stream->WriteLast(to_buffer(request), grpc::WriteOptions(), this);
      goes_on = done();
    }
    while (goes_on) {
      grpc::ByteBuffer message;
      stream->Read(&message, this);
      goes_on = done();
      if (goes_on) on_message(from_buffer(message));
    }
    grpc::Status status;
    stream->Finish(&status, this);
    done();
    return {status.error_code(), status.error_message()};
  }

 private:
  const std::vector<std::pair<std::string, std::string>> headers_;
  std::shared_ptr<grpc::Channel> channel_;
  grpc::GenericStub stub_;
};

class GenericServer final : public GrpcService {
 public:
  explicit GenericServer(Handler handler) : handler_(std::move(handler)) {}
  ~GenericServer() override {
    {
      const MutexLock lock(mutex_);
      is_stopping_ = true;
    }
    if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
    if (queue_ != nullptr) queue_->Shutdown();
    if (thread_.joinable()) thread_.join();
  }
  GenericServer(const GenericServer&) = delete;
  GenericServer& operator=(const GenericServer&) = delete;

  bool listen(const GrpcServiceOptions& options) {
    grpc::ServerBuilder builder;
    std::shared_ptr<grpc::ServerCredentials> credentials = grpc::InsecureServerCredentials();
    if (!options.certificate_pem.empty()) {
      grpc::SslServerCredentialsOptions tls(options.client_ca_pem.empty() ? GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE
                                                                          : GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
      tls.pem_root_certs = options.client_ca_pem;
      tls.pem_key_cert_pairs.push_back({options.private_key_pem, options.certificate_pem});
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

  /// Not of a server that is going: gRPC aborts the program for that.
  void accept() {
    const MutexLock lock(mutex_);
    if (is_stopping_) return;
    auto* call = new CallState;
    service_.RequestCall(&call->context, &call->stream, queue_.get(), queue_.get(), call);
  }

  /// The call's next operation; where the server is going there is none any more, as with `accept`.
  template <typename Operation>
  void go_on(CallState* call, const Operation& operation) {
    const MutexLock lock(mutex_);
    if (is_stopping_)
      delete call;
    else
      operation();
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
        go_on(call, [&] { call->stream.Read(&call->request, call); });
      } else if (ok && call->step == CallState::Step::kRead) {
        call->step = CallState::Step::kAnswered;
        const auto answer = handler_(call->context.method(), from_buffer(call->request));
        go_on(call, [&] {
          if (answer)
            call->stream.WriteAndFinish(to_buffer(*answer), grpc::WriteOptions(), grpc::Status::OK, call);
          else
            call->stream.Finish(grpc::Status(static_cast<grpc::StatusCode>(answer.error().code), answer.error().message), call);
        });
      } else {
        delete call;
      }
    }
  }

  Handler handler_;
  grpc::AsyncGenericService service_;
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::unique_ptr<grpc::Server> server_;
  int port_ = 0;
  Mutex mutex_;
  bool is_stopping_ BERTH_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<GrpcCalls>> GrpcCalls::open(const GrpcAddress& address) { return std::make_unique<ChannelCalls>(address); }

Result<std::unique_ptr<GrpcService>> GrpcService::start(const GrpcServiceOptions& options, Handler handler) {
  auto out = std::make_unique<GenericServer>(std::move(handler));
  if (!out->listen(options)) return fail(ErrorCode::kUnavailable, fmt::format("{}: cannot be listened on", options.address));
  return out;
}

}  // namespace berth::net
#else
namespace berth::net {
namespace {
constexpr const char* kNoGrpc = "this berth was built without gRPC: install libgrpc++-dev and libprotobuf-dev and build again";
}  // namespace

Result<std::unique_ptr<GrpcCalls>> GrpcCalls::open(const GrpcAddress&) { return fail(ErrorCode::kUnavailable, kNoGrpc); }
Result<std::unique_ptr<GrpcService>> GrpcService::start(const GrpcServiceOptions&, Handler) {
  return fail(ErrorCode::kUnavailable, kNoGrpc);
}

}  // namespace berth::net
#endif
