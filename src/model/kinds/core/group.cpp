// The kinds of the group, as discovery lists them.
#include "model/kinds/record.h"

namespace berth::model::kinds {
KindInfo config_map();
KindInfo endpoints();
KindInfo core_event();
KindInfo limit_range();
KindInfo namespace_record();
KindInfo node();
KindInfo persistent_volume_claim();
KindInfo persistent_volume();
KindInfo pod();
KindInfo pod_template();
KindInfo replication_controller();
KindInfo resource_quota();
KindInfo secret();
KindInfo service_account();
KindInfo service();

KindInfo component_status();

KindInfo binding() { return Record("", "v1", "Binding", "bindings").verbs({"create"}).not_stored().does(KindHooks::all_default()); }

std::vector<KindInfo> core_group() {
  return {binding(),
          component_status(),
          config_map(),
          endpoints(),
          core_event(),
          limit_range(),
          namespace_record(),
          node(),
          persistent_volume_claim(),
          persistent_volume(),
          pod(),
          pod_template(),
          replication_controller(),
          resource_quota(),
          secret(),
          service_account(),
          service()};
}

}  // namespace berth::model::kinds
