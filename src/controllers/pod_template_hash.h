// The hashes in the names of ReplicaSets and ControllerRevisions, the same as Kubernetes' controllers make them: who moves a cluster over
// finds the names that its own would have made.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"

namespace berth::controllers {

/// A pod template as Go's spew prints the struct (k8s.io/utils/dump, ForHash): every field in the struct's order with its type, what is not
/// there as <nil> or empty, empty lists and maps as what is not there (so protobuf brings them). Fields that no type knows are left out.
std::string dump_pod_template(const json::Value& pod_template);

/// The hash of Deployments and DaemonSets (pkg/controller ComputeHash): FNV-1a 32 over the dump and, where there is one, the count.
std::string pod_template_hash(const json::Value& pod_template, std::optional<std::int64_t> collision_count);
/// How often a hash of the workload's was taken already (status.collisionCount); nullopt where its status says nothing.
std::optional<std::int64_t> collision_count(const json::Value& workload);
/// The hash of a StatefulSet's revision (pkg/controller/history HashControllerRevision): FNV-1 32 over the bytes of its data, then the
/// count.
std::string revision_data_hash(std::string_view data, std::int64_t collision_count);

/// FNV-1a 32 of a text in letters and digits that cannot spell words (k8s.io/apimachinery/pkg/util/rand, SafeEncodeString).
std::string text_hash(std::string_view text);

}  // namespace berth::controllers
