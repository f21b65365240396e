#include "node/cri/snapshots.h"

#include <fmt/format.h>

#include "base/wire.h"
#include "net/grpc.h"

namespace berth::node::cri {
namespace {

constexpr int kTimeoutMs = 30'000;
constexpr int kAlreadyExists = 6;  // gRPC's

class ContainerdSnapshots final : public Snapshots {
 public:
  explicit ContainerdSnapshots(std::unique_ptr<net::GrpcCalls> calls) : calls_(std::move(calls)) {}

  Result<std::vector<SnapshotMount>> view(const std::string& snapshotter, const std::string& key, const std::string& parent) override {
    // What nothing refers to is collected; the label makes it a root of its own.
    auto request = message_of_strings({snapshotter, key, parent});
    wire::append_field(request, 4, message_of_strings({"containerd.io/gc.root", "2000-01-01T00:00:00Z"}));
    auto answer = call("View", request);
    if (!answer && answer.error().code == kAlreadyExists) answer = call("Mounts", message_of_strings({snapshotter, key}));
    if (!answer) return failed(answer.error());
    auto mounts = parse_snapshot_mounts(*answer);
    if (!mounts) return fail(ErrorCode::kInternal, "the runtime's answer about a snapshot cannot be read");
    return std::move(*mounts);
  }

  Result<void> remove(const std::string& snapshotter, const std::string& key) override {
    const auto answer = call("Remove", message_of_strings({snapshotter, key}));
    if (answer || answer.error().is(net::GrpcCode::kNotFound)) return {};
    return failed(answer.error());
  }

 private:
  net::GrpcAnswer call(const char* method, const std::string& request) {
    return calls_->call(fmt::format("/containerd.services.snapshots.v1.Snapshots/{}", method), request, kTimeoutMs);
  }

  static std::unexpected<Error> failed(const net::GrpcFailure& failure) {
    if (failure.is(net::GrpcCode::kUnimplemented))
      return fail(ErrorCode::kInternal, "this container runtime mounts no images: containerd does");
    return fail(failure.is_unanswered() ? ErrorCode::kUnavailable : ErrorCode::kInternal, failure.message);
  }

  std::unique_ptr<net::GrpcCalls> calls_;
};

}  // namespace

std::string message_of_strings(const std::vector<std::string>& fields) {
  std::string out;
  for (std::size_t i = 0; i < fields.size(); ++i)
    if (!fields[i].empty()) wire::append_field(out, static_cast<int>(i) + 1, fields[i]);
  return out;
}

std::optional<std::vector<SnapshotMount>> parse_snapshot_mounts(std::string_view response) try {
  std::vector<SnapshotMount> out;
  wire::Field one, text;
  for (wire::Reader mounts(response); mounts.next(one);) {
    if (one.number != 1) continue;
    SnapshotMount& mount = out.emplace_back();
    // type = 1, source = 2, target = 3 (a place within others, unused here), options = 4
    for (wire::Reader members(one.bytes); members.next(text);) {
      if (text.number == 1) mount.type = text.bytes;
      if (text.number == 2) mount.source = text.bytes;
      if (text.number == 4) mount.options.emplace_back(text.bytes);
    }
  }
  return out;
} catch (const wire::Malformed&) {
  return std::nullopt;
}

Result<std::unique_ptr<Snapshots>> Snapshots::open(const std::string& socket) {
  auto calls = net::GrpcCalls::open({.target = "unix://" + socket, .headers = {{"containerd-namespace", "k8s.io"}}});
  if (!calls) return std::unexpected(calls.error());
  return std::make_unique<ContainerdSnapshots>(std::move(*calls));
}

}  // namespace berth::node::cri
