// The kinds of the group, as discovery lists them.
#include "model/kinds/record.h"

namespace berth::model::kinds {
KindInfo pod_group();
KindInfo priority_class();
KindInfo priority_class_v1beta1();
KindInfo workload();

std::vector<KindInfo> scheduling_group() { return {priority_class(), priority_class_v1beta1(), pod_group(), workload()}; }

}  // namespace berth::model::kinds
