#include "node/cri/descriptors.h"

#include <fcntl.h>
#include <google/protobuf/descriptor.pb.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

namespace berth::node::cri {
namespace {

/// The uncompressed content of a gzip member at the start of `data`; empty when it is none.
std::string inflate_member(std::string_view data) {
  z_stream stream{};
  if (inflateInit2(&stream, 16 + MAX_WBITS) != Z_OK) return {};
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));
  stream.avail_in = static_cast<uInt>(std::min<std::size_t>(data.size(), 1 << 20));
  std::string out;
  char buffer[1 << 15];
  int status;
  do {
    stream.next_out = reinterpret_cast<Bytef*>(buffer);
    stream.avail_out = sizeof buffer;
    status = inflate(&stream, Z_NO_FLUSH);
    if (status != Z_OK && status != Z_STREAM_END) break;
    out.append(buffer, sizeof buffer - stream.avail_out);
  } while (status == Z_OK && out.size() < (4U << 20));
  inflateEnd(&stream);
  return status == Z_STREAM_END ? out : std::string();
}

bool is_cri(const std::string& bytes) {
  google::protobuf::FileDescriptorProto file;
  if (!file.ParseFromString(bytes) || file.package() != "runtime.v1") return false;
  for (const auto& service : file.service())
    if (service.name() == "RuntimeService") return true;
  return false;
}

}  // namespace

Result<std::string> find_cri_descriptor(const std::string& binary) {
  const int fd = ::open(binary.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return fail(ErrorCode::kNotFound, fmt::format("{}: {}; the container runtime is not installed there", binary, std::strerror(errno)));
  struct stat info {};
  fstat(fd, &info);
  const auto size = static_cast<std::size_t>(info.st_size);
  void* memory = size ? mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
  ::close(fd);
  if (memory == MAP_FAILED) return fail(ErrorCode::kNotFound, binary + ": cannot be read");
  const std::string_view all(static_cast<const char*>(memory), size);
  static constexpr std::string_view kMagic = "\x1f\x8b\x08";
  std::string found;
  for (std::size_t at = all.find(kMagic); at != std::string_view::npos && found.empty(); at = all.find(kMagic, at + 1)) {
    std::string bytes = inflate_member(all.substr(at));
    if (!bytes.empty() && is_cri(bytes)) found = std::move(bytes);
  }
  munmap(memory, size);
  if (found.empty())
    return fail(ErrorCode::kNotFound, binary + " carries no CRI (runtime.v1) descriptor: is it a container runtime with CRI v1?");
  return found;
}

}  // namespace berth::node::cri
