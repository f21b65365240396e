// A pod's addresses in a patch of its status: those of a list are added to what is there, and of each family there may be but one.
#pragma once
#include <algorithm>
#include <array>

#include "base/json.h"

namespace berth::node {

inline constexpr std::array<const char*, 2> kAddressLists = {"hostIPs", "podIPs"};

/// `before`, a status, has an address that `status` has not.
[[nodiscard]] inline bool has_other_addresses(const json::Value& before, const json::Value& status) {
  return std::ranges::any_of(kAddressLists, [&](const char* list) {
    const json::Array& now = json::get_array(status, {list});
    return std::ranges::any_of(json::get_array(before, {list}), [&](const json::Value& one) {
      return std::ranges::none_of(now,
                                  [&](const json::Value& own) { return json::get_string(own, {"ip"}) == json::get_string(one, {"ip"}); });
    });
  });
}

/// The strategic merge patch that puts its addresses in the place of those that are there.
inline void replace_addresses(json::Value& patch) {
  for (const char* list : kAddressLists)
    if (json::Value* addresses = json::find(patch, list); addresses != nullptr && addresses->is_array())
      addresses->get_array().push_back(json::Object{{"$patch", "replace"}});
}

}  // namespace berth::node
