// The kinds of the group, as discovery lists them.
#include "model/kinds/record.h"

namespace berth::model::kinds {
KindInfo csi_driver();
KindInfo csi_node();
KindInfo csi_storage_capacity();
KindInfo storage_class();
KindInfo volume_attachment();
KindInfo volume_attributes_class();

std::vector<KindInfo> storage_group() {
  return {csi_driver(), csi_node(), csi_storage_capacity(), storage_class(), volume_attachment(), volume_attributes_class()};
}

}  // namespace berth::model::kinds
