// The kinds of the group, as discovery lists them.
#include "model/kinds/record.h"

namespace berth::model::kinds {
KindInfo ingress_class();
KindInfo ingress();
KindInfo network_policy();
KindInfo ip_address();
KindInfo service_cidr();

std::vector<KindInfo> networking_group() { return {ingress_class(), ingress(), ip_address(), network_policy(), service_cidr()}; }

}  // namespace berth::model::kinds
