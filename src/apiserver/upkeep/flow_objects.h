// The objects of flow control: made, kept, and told to whoever judges requests by them (pkg/registry/flowcontrol/ensurer,
// apiserver/pkg/util/flowcontrol/apf_controller.go).
#pragma once
#include <memory>

#include "apiserver/flow/controller.h"
#include "apiserver/ground/ground.h"

namespace berth::apiserver {

/// Follows PriorityLevelConfigurations and FlowSchemas:
///  - mandatory objects are there, with the spec that they must have;
///  - suggested ones are there, with their spec as long as apf.kubernetes.io/autoupdate-spec is "true", or, where that is not said, as long
///    as nobody has changed them;
///  - of others that say they are kept up to date, from an older version perhaps, none is left;
///  - every FlowSchema's condition Dangling says whether its level is missing;
///  - flow control has what they say, and shares its seats out anew every ten seconds.
/// At once after every change, and once a minute. Thread-safe.
class FlowObjects {
 public:
  /// Both outlive this; the cache goes after stop(). `flow_control` may be null: then nobody is told. `follows`: later changes, too.
  FlowObjects(Ground& ground, flow::Controller* flow_control, bool follows);
  ~FlowObjects();
  FlowObjects(const FlowObjects&) = delete;
  FlowObjects& operator=(const FlowObjects&) = delete;

  /// Makes what is missing and waits until it is stored; then follows, where it does.
  Result<void> start();
  /// Waits for what is under way; nothing happens afterwards. Idempotent.
  void stop();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace berth::apiserver
