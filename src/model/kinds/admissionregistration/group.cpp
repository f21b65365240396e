// The kinds of the group, as discovery lists them.
#include "model/kinds/record.h"

namespace berth::model::kinds {
KindInfo mutating_policy();
KindInfo mutating_policy_binding();
KindInfo mutating_webhooks();
KindInfo validating_policy();
KindInfo validating_policy_binding();
KindInfo validating_webhooks();

std::vector<KindInfo> admissionregistration_group() {
  return {mutating_policy(),   mutating_policy_binding(),   mutating_webhooks(),
          validating_policy(), validating_policy_binding(), validating_webhooks()};
}

}  // namespace berth::model::kinds
