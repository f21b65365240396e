#include "scheduler/tracked.h"

#include <array>
#include <string_view>

#include "base/check.h"

namespace berth::scheduler {
namespace {

constexpr std::array<std::string_view, 8> kNames = {"Queued",   "Aside",      "Asking",         "Preempting",
                                                    "AtPermit", "PreBinding", "AwaitingClaims", "Binding"};
static_assert(std::variant_size_v<Tracked::Stage> == kNames.size());

/// By stage: what may follow, as bits. A place that is given back ends the record; who waits again gets a new one.
constexpr std::array<unsigned, 8> kNext = {
    1u << 1 | 1u << 2 | 1u << 3 | 1u << 4,  // Queued: popped
    1u << 0,                                // Aside: its turn
    1u << 0,                                // Asking: answered
    1u << 0,                                // Preempting: its victims go, or it is tried again
    1u << 5,                                // AtPermit: allowed
    1u << 6 | 1u << 7,                      // PreBinding: written
    1u << 7,                                // AwaitingClaims: bound
    0,                                      // Binding
};

}  // namespace

HeldPtr Tracked::held() const {
  return std::visit(
      [](const auto& stage) -> HeldPtr {
        if constexpr (requires { stage.held; })
          return stage.held;
        else
          return nullptr;
      },
      stage_);
}

void Tracked::enter(Stage next) {
  BERTH_CHECK((kNext[stage_.index()] >> next.index() & 1) != 0, "pod {} cannot go from {} to {}", info->key, kNames[stage_.index()],
              kNames[next.index()]);
  stage_ = std::move(next);
}

}  // namespace berth::scheduler
