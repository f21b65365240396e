#include "client/heartbeats.h"

#include <algorithm>

namespace berth::client {
namespace {

/// Whether a string that begins behind `before` and goes on with `behind` is one of those that a heartbeat moves. Labels and annotations
/// may have such names, too: labels are compared beside this, and nobody reads an annotation of such a name.
bool is_moved_by_heartbeats(std::string_view before, std::string_view behind) {
  return before.ends_with(R"("resourceVersion":)") || before.ends_with(R"("lastHeartbeatTime":)") ||
         (before.ends_with(R"("time":)") && behind.starts_with(R"(","fieldsType":)"));
}

bool differ_in_heartbeats_alone(std::string_view a, std::string_view b) {
  while (true) {
    const auto [in_a, in_b] = std::ranges::mismatch(a, b);
    if (in_a == a.end() && in_b == b.end()) return true;
    const auto at = static_cast<std::size_t>(in_a - a.begin());
    const std::size_t open = at == 0 ? std::string_view::npos : b.rfind('"', at - 1);
    const std::size_t end_a = a.find('"', at), end_b = b.find('"', at);
    if (open == std::string_view::npos || end_a == std::string_view::npos || end_b == std::string_view::npos) return false;
    if (!is_moved_by_heartbeats(b.substr(0, open), b.substr(end_b)) || !is_moved_by_heartbeats(a.substr(0, open), a.substr(end_a)))
      return false;
    a.remove_prefix(end_a);
    b.remove_prefix(end_b);
  }
}

}  // namespace

bool is_heartbeat(const Object& before, const Object& after) {
  if (before.uid() != after.uid() || before.labels() != after.labels() || before.is_deleting() != after.is_deleting()) return false;
  const HeldText a = before.text(), b = after.text();
  return differ_in_heartbeats_alone(*a, *b);
}

}  // namespace berth::client
