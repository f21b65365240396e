// What binding asks of volumes and claims, read once per revision (pkg/controller/volume/persistentvolume/index.go).
#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "client/object.h"
#include "model/quantity.h"
#include "model/selector.h"

namespace berth::controllers {

/// The class of a claim or a volume: the annotation of the beta times goes before the field.
std::string_view storage_class_of(const json::Value& document);

struct ClaimFacts {
  std::string ns, name, uid;
  std::string storage_class, volume_name, selected_node;
  bool names_class = false;          ///< storageClassName is there, be it "".
  bool bind_completed = false;       ///< The binding was once complete: a claim that loses its volume now is Lost.
  bool bound_by_controller = false;  ///< spec.volumeName was not the user's wish.
  static ClaimFacts of(const client::Object& claim, const json::Value& document);
};

struct VolumeFacts {
  std::string name, storage_class, mode, attributes_class, phase;
  std::set<std::string, std::less<>> access_modes;
  model::Quantity capacity;
  model::Labels labels;
  std::string claim_ns, claim_name, claim_uid;  ///< spec.claimRef; all empty: none.
  bool is_deleting = false;
  static VolumeFacts of(const client::Object& volume, const json::Value& document);

  [[nodiscard]] bool has_claim() const { return !claim_name.empty(); }
  /// claimRef names this claim: this very one, or one of its name when the reference has no uid yet.
  [[nodiscard]] bool is_for(const ClaimFacts& claim) const {
    return claim_ns == claim.ns && claim_name == claim.name && (claim_uid.empty() || claim_uid == claim.uid);
  }
};

/// Why a claim that names its volume cannot have it, in the API's words; nullopt when it can.
std::optional<std::string> volume_mismatch(const VolumeFacts& volume, const json::Value& claim);

/// The known volumes. Deterministic: equal volumes are ordered by name.
class VolumeIndex {
 public:
  void put(VolumeFacts facts);
  void erase(std::string_view name);
  [[nodiscard]] const VolumeFacts* find(std::string_view name) const;
  /// The volume for an unbound claim: one reserved for it; else of those with the fewest access modes the smallest that fits. Null: none.
  /// `reserved_only`: the claim waits for its consumer, whose node the scheduler chooses.
  [[nodiscard]] const VolumeFacts* best_for(const ClaimFacts& claim, const json::Value& document, bool reserved_only) const;

 private:
  std::map<std::string, VolumeFacts, std::less<>> volumes_;
  std::map<std::string, std::set<std::string, std::less<>>, std::less<>> free_by_class_;
  std::map<std::string, std::set<std::string, std::less<>>, std::less<>> by_claim_;  ///< By "ns/name" of claimRef.
};

}  // namespace berth::controllers
