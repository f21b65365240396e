// The kinds of the group, as discovery lists them.
#include "model/kinds/record.h"

namespace berth::model::kinds {
KindInfo device_class();
KindInfo device_taint_rule();
KindInfo resource_claim();
KindInfo resource_claim_template();
KindInfo resource_slice();

std::vector<KindInfo> resource_group() {
  return {device_class(), resource_claim(), resource_claim_template(), resource_slice(), device_taint_rule()};
}

}  // namespace berth::model::kinds
