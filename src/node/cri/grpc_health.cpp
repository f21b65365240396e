#include "node/cri/grpc_health.h"

#include <fmt/format.h>

#include "base/wire.h"

#ifdef BERTH_WITH_CRI
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include "base/deadlines.h"
#endif

namespace berth::node::cri {

// Two messages of one field each are written by hand: string service = 1, and enum status = 1.
std::string health_request(const std::string& service) {
  if (service.empty()) return {};
  std::string out;
  wire::append_field(out, 1, service);
  return out;
}

int health_status(const std::string& response) {
  if (response.empty()) return 0;  // UNKNOWN is the default, and not written.
  if (response.size() < 2 || response[0] != '\x08') return -1;
  return static_cast<unsigned char>(response[1]) < 0x80 ? response[1] : -1;
}

#ifdef BERTH_WITH_CRI
std::optional<std::string> check_grpc_health(const std::string& address, const std::string& service, int timeout_ms) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // Otherwise a failed connection delays the next try.
  const auto channel = grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
  const auto deadline = std::chrono::system_clock::now() + std::chrono::milliseconds(timeout_ms);
  const std::string seconds = fmt::format("{}s", timeout_ms / 1000);
  if (!channel->WaitForConnected(deadline))
    return fmt::format("timeout: failed to connect service \"{}\" within {}: context deadline exceeded", address, seconds);
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  context.set_deadline(deadline);
  const auto watch = Deadlines::of_process().watch(std::chrono::milliseconds(timeout_ms + 1000), [&context] { context.TryCancel(); });
  grpc::CompletionQueue queue;
  const grpc::Slice slice(health_request(service));
  const auto call = stub.PrepareUnaryCall(&context, "/grpc.health.v1.Health/Check", grpc::ByteBuffer(&slice, 1), &queue);
  grpc::ByteBuffer answer;
  grpc::Status status;
  call->StartCall();
  call->Finish(&answer, &status, &answer);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  if (!status.ok()) {
    if (status.error_code() == grpc::UNIMPLEMENTED)
      return fmt::format("error: this server does not implement the grpc health protocol (grpc.health.v1.Health): {}",
                         status.error_message());
    if (status.error_code() == grpc::DEADLINE_EXCEEDED) return fmt::format("timeout: health rpc did not complete within {}", seconds);
    return fmt::format("error: health rpc probe failed: {}", status.error_message());
  }
  std::vector<grpc::Slice> slices;
  std::string bytes;
  if (answer.Dump(&slices).ok())
    for (const grpc::Slice& part : slices) bytes.append(reinterpret_cast<const char*>(part.begin()), part.size());
  const int health = health_status(bytes);
  if (health == 1) return std::nullopt;
  static constexpr const char* kNames[] = {"UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN"};
  return fmt::format("service unhealthy (responded with \"{}\")", health >= 0 && health < 4 ? kNames[health] : "UNKNOWN");
}
#else
std::optional<std::string> check_grpc_health(const std::string&, const std::string&, int) {
  return "gRPC probes are not supported: this berth was built without gRPC";
}
#endif

}  // namespace berth::node::cri
