// How often an update tells what is wrong with an object's metadata.
#pragma once
#include "model/kinds.h"

namespace berth::model {

/// Kubernetes looks at an update's metadata once for every kind (rest.BeforeUpdate), and most kinds look again in their own rules. The
/// sentence is told once all the same, the causes as often as somebody looked.
struct MetadataLooks {
  int whole = 1;    ///< At everything in it, as at a creation.
  int changes = 2;  ///< At what may not change, at labels, annotations and owners.
};
MetadataLooks metadata_looks(const KindInfo& kind);

}  // namespace berth::model
