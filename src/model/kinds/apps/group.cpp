// The kinds of the group, as discovery lists them.
#include "model/kinds/record.h"

namespace berth::model::kinds {
KindInfo controller_revision();
KindInfo daemon_set();
KindInfo deployment();
KindInfo replica_set();
KindInfo stateful_set();

std::vector<KindInfo> apps_group() { return {controller_revision(), daemon_set(), deployment(), replica_set(), stateful_set()}; }

}  // namespace berth::model::kinds
