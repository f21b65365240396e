// A plugin that takes part where it overrides something.
#pragma once
#include <type_traits>

#include "placement/framework.h"

namespace berth::placement {

/// The points whose methods P overrides.
template <typename P>
constexpr Points points_of() {
#define BERTH_OVERRIDES(method) (!std::is_same_v<decltype(&P::method), decltype(&Plugin::method)>)
  return {.pre_enqueue = BERTH_OVERRIDES(pre_enqueue) || BERTH_OVERRIDES(pre_enqueue_in),
          .queue_sort = BERTH_OVERRIDES(orders_queue),
          .pre_filter = BERTH_OVERRIDES(pre_filter),
          .filter = BERTH_OVERRIDES(filter),
          .post_filter = BERTH_OVERRIDES(post_filter),
          .pre_score = BERTH_OVERRIDES(pre_score),
          .score = BERTH_OVERRIDES(score),
          .reserve = BERTH_OVERRIDES(reserve),
          .permit = BERTH_OVERRIDES(permit),
          .pre_bind = BERTH_OVERRIDES(pre_bind),
          .bind = BERTH_OVERRIDES(bind),
          .post_bind = BERTH_OVERRIDES(post_bind),
          .counts_pods = BERTH_OVERRIDES(add_pod) || BERTH_OVERRIDES(remove_pod)};
#undef BERTH_OVERRIDES
}

/// `class Mine final : public PluginOf<Mine>`: takes part where it overrides something, and need not say where. Its overrides are public,
/// and nobody derives from it, who would override more. The one way to make a plugin: an override cannot be forgotten.
template <typename P>
class PluginOf : public Plugin {
 public:
  [[nodiscard]] Points points() const final {
    static_assert(std::is_final_v<P>, "a plugin's class is final: what a class derived from it overrides would not be asked");
    Points out = points_of<P>();
    this->leave_out(out);
    return out;
  }
};

}  // namespace berth::placement
