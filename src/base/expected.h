// A value or why there is none, that nobody may pass over.
#pragma once
#include <expected>

namespace berth {

/// std::expected, and whoever drops one is told by the compiler (-Wunused-result, an error here): libstdc++ marks neither the class nor its
/// members [[nodiscard]]. The same in everything else, and made of a std::expected where a library gives one. Who has a reason not to look
/// says it beside a cast to void.
template <typename T, typename E>
class [[nodiscard]] Expected : public std::expected<T, E> {
 public:
  using Base = std::expected<T, E>;
  using Base::Base;
  Expected() = default;
  Expected(Base base) : Base(std::move(base)) {}
};

}  // namespace berth
