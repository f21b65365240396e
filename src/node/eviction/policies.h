// What a kubelet's settings mean to the parts that act on them.
#pragma once
#include "node/eviction/allocatable.h"
#include "node/eviction/container_gc.h"
#include "node/eviction/image_gc.h"
#include "node/eviction/kubelet_config.h"
#include "node/eviction/manager.h"

namespace berth::node::eviction {

/// The error is the kubelet's text for the first wrong threshold. A negative evictionMaxPodGracePeriod leaves pods their own grace period.
[[nodiscard]] TextResult<ManagerConfig> manager_config(const KubeletSettings& settings);
[[nodiscard]] ReservationSettings reservation_settings(const KubeletSettings& settings);
/// Compatibility with the documents (SPEC I13, docs/differences.md): the eviction order of 000 §21.2.7, and 000 §21.2.9's allocatable, from
/// which nothing but the reservations is taken away ("system-reserved should include the amount covered by the eviction threshold").
void follow_documents(KubeletSettings& settings);
[[nodiscard]] ContainerGcPolicy container_gc_policy(const KubeletSettings& settings);
[[nodiscard]] ImageGcPolicy image_gc_policy(const KubeletSettings& settings);

}  // namespace berth::node::eviction
