#include "node/cri/snapshots.h"

#include <fmt/format.h>

#include "net/grpc.h"

namespace berth::node::cri {
namespace {

constexpr int kTimeoutMs = 30'000;
constexpr int kAlreadyExists = 6;  // gRPC's

std::string varint_bytes(std::uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>((value & 0x7f) | 0x80);
  return out += static_cast<char>(value);
}

std::string bytes_field(int number, std::string_view bytes) {
  return varint_bytes(static_cast<std::uint64_t>(number) << 3 | 2) + varint_bytes(bytes.size()) + std::string(bytes);
}

/// Takes the next field of a message that has strings and messages alone; false: at its end, or not readable (`data` is not empty then).
bool take_field(std::string_view& data, int& number, std::string_view& bytes) {
  const auto varint = [&]() -> std::optional<std::uint64_t> {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64 && static_cast<std::size_t>(shift / 7) < data.size(); shift += 7) {
      const auto byte = static_cast<unsigned char>(data[static_cast<std::size_t>(shift / 7)]);
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte >= 0x80) continue;
      data.remove_prefix(static_cast<std::size_t>(shift / 7) + 1);
      return value;
    }
    return std::nullopt;
  };
  if (data.empty()) return false;
  const std::string_view whole = data;
  const auto tag = varint();
  const auto size = tag && (*tag & 7) == 2 ? varint() : std::nullopt;
  if (!size || *size > data.size()) {
    data = whole;
    return false;
  }
  number = static_cast<int>(*tag >> 3);
  bytes = data.substr(0, *size);
  data.remove_prefix(*size);
  return true;
}

class ContainerdSnapshots final : public Snapshots {
 public:
  explicit ContainerdSnapshots(std::unique_ptr<net::GrpcCalls> calls) : calls_(std::move(calls)) {}

  Result<std::vector<SnapshotMount>> view(const std::string& snapshotter, const std::string& key, const std::string& parent) override {
    // What nothing refers to is collected; the label makes it a root of its own.
    const std::string label = bytes_field(4, message_of_strings({"containerd.io/gc.root", "2000-01-01T00:00:00Z"}));
    auto answer = call("View", message_of_strings({snapshotter, key, parent}) + label);
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
    if (!fields[i].empty()) out += bytes_field(static_cast<int>(i) + 1, fields[i]);
  return out;
}

std::optional<std::vector<SnapshotMount>> parse_snapshot_mounts(std::string_view response) {
  std::vector<SnapshotMount> out;
  int number = 0;
  std::string_view one, text;
  while (take_field(response, number, one)) {
    if (number != 1) continue;
    SnapshotMount& mount = out.emplace_back();
    // type = 1, source = 2, target = 3 (a place within others, unused here), options = 4
    while (take_field(one, number, text)) {
      if (number == 1) mount.type = text;
      if (number == 2) mount.source = text;
      if (number == 4) mount.options.emplace_back(text);
    }
    if (!one.empty()) return std::nullopt;
  }
  if (!response.empty()) return std::nullopt;
  return out;
}

Result<std::unique_ptr<Snapshots>> Snapshots::open(const std::string& socket) {
  auto calls = net::GrpcCalls::open({.target = "unix://" + socket, .headers = {{"containerd-namespace", "k8s.io"}}});
  if (!calls) return std::unexpected(calls.error());
  return std::make_unique<ContainerdSnapshots>(std::move(*calls));
}

}  // namespace berth::node::cri
