// Who makes and deletes machines. Three ways in one style: the Machine API's objects (machine_api.h; in `berth up` their machines are
// simulated nodes), and whatever speaks the autoscaler project's external gRPC protocol (external_provider.h).
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "autoscaler/options.h"
#include "autoscaler/snapshot.h"

namespace berth::autoscaler {

struct Resize;

/// What a provider says there is.
struct ProviderState {
  /// False: it could not be asked, or what it says cannot be. Then nothing is decided: no node is added or removed on a guess.
  bool is_usable = true;
  /// Groups that it does not speak of, or speaks of in ways that cannot be, are left out: they neither grow nor shrink.
  std::vector<NodeGroup> groups;
  std::vector<std::string> problems;         ///< For people.
  std::set<std::string> left_alone;          ///< Groups that it has, and that are left out.
  std::optional<std::string> gpu_label;      ///< What nodes with GPUs are labelled with; nullopt: it does not say.
  std::set<std::string> gpu_types;           ///< That label's values; empty: it does not say.
  std::map<std::string, double> pod_prices;  ///< Of an hour of waiting pods, by shape_of; only for the expander price.
};

/// Lives on the autoscaler's loop: every callback is called there, and none after the provider is gone.
class Provider {
 public:
  /// Empty: it is done; otherwise why not.
  using Done = std::function<void(const std::string& error)>;
  virtual ~Provider() = default;

  /// Before each pass. Nullopt: its groups are those that the API's objects tell of.
  virtual void refresh(const Options& options, std::function<void(std::optional<ProviderState>)> done) = 0;
  /// The group gets `resize.to` nodes. Where somebody asked for more meanwhile that stays.
  virtual void grow(const Resize& resize, Done done) = 0;
  /// The group asks for `resize.to` nodes instead of `resize.from`; no machine that is there goes. Nothing where it asks for others by now.
  virtual void give_up(const Resize& resize, Done done) = 0;
  /// This machine goes, and the group asks for one node less. `node` is empty for one that never became a node.
  virtual void remove(const std::string& group, const std::string& instance, const std::string& node, Done done) = 0;
};

}  // namespace berth::autoscaler
