// The Machine API's objects as a provider: replicas of MachineSets and MachineDeployments, marks on Machines (SPEC H6).
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "autoscaler/provider.h"
#include "client/client.h"

namespace berth::autoscaler {

class ClusterCache;

/// Around every write that the next pass must see: the plural of what is written, and the revision that came of it (0: it failed).
struct WriteCallbacks {
  std::function<void(const std::string& resource)> write_started;
  std::function<void(const std::string& resource, std::int64_t revision)> write_ended;
};

class MachineApi final : public Provider {
 public:
  /// `cache` must outlive it.
  MachineApi(client::Client& client, const ClusterCache& cache, WriteCallbacks callbacks);
  ~MachineApi() override;
  MachineApi(const MachineApi&) = delete;
  MachineApi& operator=(const MachineApi&) = delete;

  void refresh(const Options& options, std::function<void(std::optional<ProviderState>)> done) override;
  void grow(const Resize& resize, Done done) override;
  void give_up(const Resize& resize, Done done) override;
  void remove(const std::string& group, const std::string& instance, const std::string& node, Done done) override;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace berth::autoscaler
