// A pod as those who move pods have it: what placement reads of it, and what else counts.
#pragma once
#include <memory>

#include "model/views/pod_facts.h"
#include "placement/cluster.h"

namespace berth::placement {

struct ReadPod {
  PodInfoPtr info;
  model::PodFacts facts;

  [[nodiscard]] const model::PodView& view() const { return info->view(); }
  [[nodiscard]] const std::string& key() const { return info->key; }
  [[nodiscard]] const std::string& node() const { return view().node_name; }
  /// Of one that was read with it.
  [[nodiscard]] const model::PodStatus& status() const { return *facts.status; }
  [[nodiscard]] const std::vector<model::OwnerReference>& owners() const { return view().meta.owner_references; }
  /// `with_status`: facts.status too.
  static std::shared_ptr<const ReadPod> parse(const json::Value& pod, Era era, bool with_status) {
    ReadPod out{PodInfo::make(std::make_shared<const model::PodView>(model::PodView::parse(pod)), era), model::PodFacts::parse(pod)};
    if (with_status) out.facts.status = model::PodStatus::parse(pod);
    return std::make_shared<const ReadPod>(std::move(out));
  }
};
using ReadPodPtr = std::shared_ptr<const ReadPod>;

}  // namespace berth::placement
