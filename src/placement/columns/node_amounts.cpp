#include "placement/columns/node_amounts.h"

namespace berth::placement {
namespace {

/// With a hundredfold and a pod on top still exact in a double.
constexpr std::int64_t kExactLimit = 1LL << 45;

bool is_small(std::int64_t value) { return value >= 0 && value < kExactLimit; }

}  // namespace

NodeAmounts NodeAmounts::of(const NodeInfo& node) {
  NodeAmounts out;
  out.allocatable_cpu = node.allocatable.cpu_milli;
  out.allocatable_memory = node.allocatable.memory_bytes;
  out.allocatable_storage = node.allocatable.ephemeral_storage_bytes;
  out.requested_cpu = node.requested.cpu_milli;
  out.requested_memory = node.requested.memory_bytes;
  out.requested_storage = node.requested.ephemeral_storage_bytes;
  out.nonzero_cpu = node.nonzero_cpu_milli;
  out.nonzero_memory = node.nonzero_memory_bytes;
  out.pods = static_cast<std::int32_t>(node.pods.size());
  out.claims = node.other_volumes != 0 ? kManyClaims : static_cast<std::uint16_t>(std::min<std::uint32_t>(node.claim_volumes, kManyClaims));
  out.allowed_pods = static_cast<std::int32_t>(std::clamp<std::int64_t>(node.allocatable.allowed_pods, 0, INT32_MAX));
  out.is_plain = out.allocatable_cpu > 0 && out.allocatable_memory > 0 && is_small(out.allocatable_cpu) &&
                 is_small(out.allocatable_memory) && is_small(out.requested_cpu) && is_small(out.requested_memory) &&
                 is_small(out.nonzero_cpu) && is_small(out.nonzero_memory);
  if (out.is_plain) {
    out.per_cpu = 1 / static_cast<double>(out.allocatable_cpu);
    out.per_memory = 1 / static_cast<double>(out.allocatable_memory);
    out.balance =
        static_cast<std::int8_t>(balance_of_two(static_cast<double>(out.requested_cpu) / static_cast<double>(out.allocatable_cpu),
                                                static_cast<double>(out.requested_memory) / static_cast<double>(out.allocatable_memory)));
  }
  return out;
}

}  // namespace berth::placement
