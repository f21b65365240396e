// What the server keeps in order between requests.
#pragma once
#include "apiserver/definitions/custom_resources.h"
#include "apiserver/flow/controller.h"
#include "apiserver/reads/streams.h"
#include "apiserver/upkeep/flow_objects.h"
#include "apiserver/upkeep/memory_guard.h"
#include "apiserver/upkeep/own_endpoints.h"
#include "apiserver/upkeep/policy_status.h"
#include "apiserver/upkeep/text_packing.h"

namespace berth::apiserver {

/// Its own Endpoints, the objects of flow control, the status of policies, the process's memory, texts packed.
class Upkeep {
 public:
  /// `flow_control`: null when single-threaded. All outlive this.
  Upkeep(Ground& ground, const UpkeepOptions& options, const CustomResources& custom, Streams& streams, flow::Controller* flow_control)
      : ground_(ground), options_(options), custom_(custom), streams_(streams), flow_control_(flow_control) {}

  /// Before any write: memory is watched from now on.
  void guard_memory();
  /// When what must be there is there.
  Result<void> start();
  /// Nothing is looked at any more. Idempotent.
  void stop();
  /// Lets go of the cache. After stop(), when the workers have stopped, too.
  void close();

 private:
  Ground& ground_;
  const UpkeepOptions& options_;
  const CustomResources& custom_;
  Streams& streams_;
  flow::Controller* flow_control_;
  std::unique_ptr<MemoryGuard> memory_guard_;    ///< Null without a limit.
  std::unique_ptr<TextPacking> text_packing_;    ///< Null where nothing is packed.
  std::unique_ptr<OwnEndpoints> own_endpoints_;  ///< Null where somebody else keeps them, or nobody.
  std::unique_ptr<PolicyStatus> policy_status_;
  std::unique_ptr<FlowObjects> flow_objects_;
};

}  // namespace berth::apiserver
