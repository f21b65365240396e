// What every subresource speaks and takes: the one table that discovery shows and requests are held against.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "model/kinds.h"

namespace berth::model {

struct Subresource {
  std::string kind, group, version;  ///< Of its documents; group and version are empty where they are the parent's.
  std::vector<std::string> verbs;    ///< Every other verb is refused before anybody asks for the right to it.
  /// A GET starts a session in which things are done: who asks needs the right to `create` it, too (1.35,
  /// AuthorizePodWebsocketUpgradeCreatePermission).
  bool get_needs_create = false;
};

/// `name` is one of the parent's subresources.
Subresource subresource_of(const KindInfo& parent, std::string_view name);

}  // namespace berth::model
