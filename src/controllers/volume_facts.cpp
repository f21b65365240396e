#include "controllers/volume_facts.h"

#include <algorithm>

namespace berth::controllers {
namespace {

using json::get_array;
using json::get_string;
using json::Value;

model::Quantity storage_of(std::string_view text) { return model::Quantity::parse(text).value_or(model::Quantity()); }
std::string mode_of(const Value& document) { return std::string(get_string(document, {"spec", "volumeMode"}, "Filesystem")); }
model::Quantity wanted_size(const Value& claim) { return storage_of(get_string(claim, {"spec", "resources", "requests", "storage"})); }

bool offers_modes(const VolumeFacts& volume, const Value& claim) {
  return std::ranges::all_of(get_array(claim, {"spec", "accessModes"}),
                             [&](const Value& mode) { return volume.access_modes.contains(json::as_view(mode)); });
}

}  // namespace

std::string_view storage_class_of(const Value& document) {
  const Value* beta = json::find(document, {"metadata", "annotations", "volume.beta.kubernetes.io/storage-class"});
  return beta != nullptr && beta->is_string() ? json::as_view(*beta) : get_string(document, {"spec", "storageClassName"});
}

ClaimFacts ClaimFacts::of(const client::Object& claim, const Value& document) {
  ClaimFacts facts;
  facts.ns = claim.ns();
  facts.name = claim.name();
  facts.uid = claim.uid();
  facts.storage_class = storage_class_of(document);
  facts.names_class = !facts.storage_class.empty() || json::find(document, {"spec", "storageClassName"}) != nullptr;
  facts.volume_name = get_string(document, {"spec", "volumeName"});
  facts.selected_node = get_string(document, {"metadata", "annotations", "volume.kubernetes.io/selected-node"});
  facts.bind_completed = json::find(document, {"metadata", "annotations", "pv.kubernetes.io/bind-completed"}) != nullptr;
  facts.bound_by_controller = json::find(document, {"metadata", "annotations", "pv.kubernetes.io/bound-by-controller"}) != nullptr;
  return facts;
}

VolumeFacts VolumeFacts::of(const client::Object& volume, const Value& document) {
  VolumeFacts facts;
  facts.name = volume.name();
  facts.storage_class = storage_class_of(document);
  facts.mode = mode_of(document);
  facts.attributes_class = get_string(document, {"spec", "volumeAttributesClassName"});
  facts.phase = get_string(document, {"status", "phase"});
  for (const Value& mode : get_array(document, {"spec", "accessModes"}))
    if (mode.is_string()) facts.access_modes.emplace(json::as_view(mode));
  facts.capacity = storage_of(get_string(document, {"spec", "capacity", "storage"}));
  facts.labels = volume.labels();
  facts.claim_ns = get_string(document, {"spec", "claimRef", "namespace"});
  facts.claim_name = get_string(document, {"spec", "claimRef", "name"});
  facts.claim_uid = get_string(document, {"spec", "claimRef", "uid"});
  facts.is_deleting = volume.is_deleting();
  return facts;
}

std::optional<std::string> volume_mismatch(const VolumeFacts& volume, const Value& claim) {
  if (volume.capacity < wanted_size(claim)) return "requested PV is too small";
  if (volume.storage_class != storage_class_of(claim)) return "storageClassName does not match";
  if (volume.attributes_class != get_string(claim, {"spec", "volumeAttributesClassName"}))
    return "VolumeAttributesClassName does not match";
  if (volume.mode != mode_of(claim)) return "incompatible volumeMode";
  if (!offers_modes(volume, claim)) return "incompatible accessMode";
  return std::nullopt;
}

void VolumeIndex::put(VolumeFacts facts) {
  erase(facts.name);
  if (facts.has_claim())
    by_claim_[facts.claim_ns + "/" + facts.claim_name].insert(facts.name);
  else
    free_by_class_[facts.storage_class].insert(facts.name);
  std::string name = facts.name;
  volumes_.insert_or_assign(std::move(name), std::move(facts));
}

void VolumeIndex::erase(std::string_view name) {
  const auto it = volumes_.find(name);
  if (it == volumes_.end()) return;
  const VolumeFacts& facts = it->second;
  auto& index = facts.has_claim() ? by_claim_ : free_by_class_;
  const auto entry = index.find(facts.has_claim() ? facts.claim_ns + "/" + facts.claim_name : facts.storage_class);
  entry->second.erase(facts.name);
  if (entry->second.empty()) index.erase(entry);
  volumes_.erase(it);
}

const VolumeFacts* VolumeIndex::find(std::string_view name) const {
  const auto it = volumes_.find(name);
  return it == volumes_.end() ? nullptr : &it->second;
}

const VolumeFacts* VolumeIndex::best_for(const ClaimFacts& claim, const Value& document, bool reserved_only) const {
  if (const auto reserved = by_claim_.find(claim.ns + "/" + claim.name); reserved != by_claim_.end()) {
    for (const std::string& name : reserved->second) {
      const VolumeFacts& volume = volumes_.find(name)->second;
      if (volume.is_for(claim) && !volume.is_deleting && volume.mode == mode_of(document) && volume.capacity >= wanted_size(document))
        return &volume;
    }
  }
  const auto free = free_by_class_.find(claim.storage_class);
  if (reserved_only || free == free_by_class_.end()) return nullptr;
  const Value* wanted_labels = json::find(document, {"spec", "selector"});
  const auto selector = wanted_labels == nullptr ? Result<model::Selector>(model::Selector::everything())
                                                 : model::Selector::from_label_selector(wanted_labels);
  if (!selector) return nullptr;
  const VolumeFacts* best = nullptr;
  for (const std::string& name : free->second) {
    const VolumeFacts& volume = volumes_.find(name)->second;
    if (volume.is_deleting || (!volume.phase.empty() && volume.phase != "Available") || volume_mismatch(volume, document)) continue;
    if (!selector->matches(volume.labels)) continue;
    if (best == nullptr || std::pair(volume.access_modes.size(), volume.capacity) < std::pair(best->access_modes.size(), best->capacity))
      best = &volume;
  }
  return best;
}

}  // namespace berth::controllers
