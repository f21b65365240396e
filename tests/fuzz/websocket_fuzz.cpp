// Fuzz target: WebSocket frames, in both roles; whole or byte by byte they must mean the same.
#include <cstdio>
#include <cstdlib>

#include "net/websocket.h"

namespace {

using namespace berth::net;

std::string meaning_of(WebSocketRole role, std::string_view data, std::size_t step) {
  WebSocketParser parser(role, 4096);
  std::vector<WebSocketMessage> messages;
  std::uint16_t fault = 0;
  while (!data.empty() && fault == 0) {
    fault = parser.feed(data.substr(0, step), messages);
    data.remove_prefix(std::min(step, data.size()));
  }
  std::string out;
  for (const auto& message : messages) {
    if (message.data.size() > 4096) std::abort();
    out += fmt::format("{}:{}:{}|", static_cast<int>(message.kind), message.code, message.data);
  }
  return out + std::to_string(fault);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* bytes, std::size_t size) {
  const std::string_view data(reinterpret_cast<const char*>(bytes), size);
  for (const auto role : {WebSocketRole::kClient, WebSocketRole::kServer}) {
    if (meaning_of(role, data, size + 1) != meaning_of(role, data, 1)) {
      std::fprintf(stderr, "broken: frames differ by how they arrive\n");
      std::abort();
    }
  }
  return 0;
}
