#include "model/kind_hooks.h"

namespace berth::model {

const KindHooks& hooks_of(const KindInfo& kind) {
  static const KindHooks plain = KindHooks::all_default();
  return kind.hooks == nullptr ? plain : *kind.hooks;
}

}  // namespace berth::model
