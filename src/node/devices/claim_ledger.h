// Which resource claims are prepared on a node, and for whom (kubelet's pkg/kubelet/cm/dra): the core, which talks to nobody. What comes in
// are pods and drivers' answers, what goes out is what to say to which driver.
//
//   a pod comes ──▶ use: call these drivers ──▶ prepared(answer) ──▶ all have answered: the claim is prepared, for later pods too
//   it is over  ──▶ release: others use the claim? forget the pod : call its drivers ──▶ unprepared(answer) ──▶ all have: forgotten
#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json.h"

namespace berth::node::devices {

struct ClaimId {
  std::string ns, name, uid;
};

/// A claim that a pod uses, as the API has it.
struct ClaimUse {
  ClaimId id;
  std::set<std::string> drivers;  ///< Whose devices it was given.
};

/// What to say to a driver in one call.
struct ClaimCall {
  std::string driver;
  std::vector<ClaimId> claims;
};

/// Single-threaded; the shell's lock is around it. Claims are known by namespace and name, as long as one is used.
class ClaimLedger {
 public:
  /// One that a driver has prepared.
  struct Device {
    std::string pool, name, share;
    std::vector<std::string> requests, cdi_ids;  ///< No requests: it is all requests' device.
  };
  struct Claim {
    ClaimId id;
    std::map<std::string, std::optional<std::vector<Device>>> drivers;  ///< Nullopt: to be prepared.
    std::set<std::string> pods;                                         ///< Their uids.
    [[nodiscard]] bool is_prepared() const;
  };

  /// The pod uses these from now on. The calls that have to be answered before it may start: those drivers that have not prepared a claim.
  /// The error: another claim of that name is not unprepared yet; then nothing has changed.
  Result<std::vector<ClaimCall>> use(const std::string& pod_uid, const std::vector<ClaimUse>& claims);
  /// A driver's answer to NodePrepareResources. What it says of single claims is kept even where others failed; the error names the first
  /// that failed, was passed over, or was never asked for.
  Result<void> prepared(const ClaimCall& call, const json::Value& answer);
  /// The pod is over. The calls that have to be answered before nothing of it is left; claims that others use too are rid of it at once.
  std::vector<ClaimCall> release(const std::string& pod_uid);
  /// A driver's answer to NodeUnprepareResources; errors as with `prepared`. A claim that no driver holds any more is forgotten.
  Result<void> unprepared(const ClaimCall& call, const json::Value& answer);

  /// Null: it is not used here.
  [[nodiscard]] const Claim* find(const std::string& ns, const std::string& name) const;
  [[nodiscard]] std::vector<const Claim*> claims_of(const std::string& pod_uid) const;
  /// Pods that use something and are not among these.
  [[nodiscard]] std::set<std::string> others_than(const std::set<std::string>& pod_uids) const;
  /// Who uses this device.
  [[nodiscard]] std::set<std::string> users(std::string_view driver, std::string_view pool, std::string_view device) const;

  /// For the next process; `boot` tells whether that runs on the same machine's start, as drivers leave what they prepared in memory.
  [[nodiscard]] json::Value checkpoint(std::string_view boot) const;
  /// False: it is none of ours; nothing is taken over. Of another boot claims and pods are, and all is to be prepared anew.
  bool restore(const json::Value& checkpoint, std::string_view boot);

 private:
  [[nodiscard]] Claim* find_by_uid(const std::string& uid);
  std::map<std::string, Claim> claims_;  ///< By namespace/name.
};

/// Whether a container that names `request` of the claim (empty: all of it) gets this device. Of a list of alternatives, "gpu/small", the
/// request before the slash counts.
[[nodiscard]] bool serves(const ClaimLedger::Device& device, std::string_view request);

/// The message of a call, and of its opposite.
[[nodiscard]] json::Value claim_request(const ClaimCall& call);

}  // namespace berth::node::devices
