// The kinds of the group, as discovery lists them.
#include "model/kinds/record.h"

namespace berth::model::kinds {
KindInfo ingress_class();
KindInfo ingress();
KindInfo network_policy();

std::vector<KindInfo> networking_group() { return {ingress_class(), ingress(), network_policy()}; }

}  // namespace berth::model::kinds
