// Cluster IPs and node ports: which are taken, and the next free ones (in memory, rebuilt from the Services at start; over a shared store
// what all servers claim there).
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "apiserver/kinds/service_claims.h"
#include "base/error.h"
#include "base/json.h"
#include "base/mutex.h"
#include "model/api_status.h"

namespace berth::apiserver {

/// IPv4, with a prefix of 8 to 30 bits: "10.96.0.0/12".
Result<void> check_service_range(const std::string& cidr);

/// What one write of a Service took, to be given back when the write fails.
struct ServiceAllocation {
  std::vector<std::uint32_t> addresses;
  std::vector<int> ports;
};

/// What objects say about addresses beyond the configured range. Thread-safe.
struct AddressBook {
  /// Ranges ("203.0.113.0/24") of the ServiceCIDRs that are ready.
  std::function<std::vector<std::string>()> ranges;
  /// Is an address promised by an IPAddress object to something else than this Service?
  std::function<bool(const std::string& address, const json::Value& service)> is_promised;
};

/// Thread-safe.
class ServiceAllocator {
 public:
  /// `cidr`: IPv4, "10.96.0.0/12". The first address is the kubernetes Service's.
  Result<void> configure(const std::string& cidr, int first_port, int last_port);
  /// From now on `claims` says what is free. Before serving.
  void share(std::unique_ptr<ServiceClaims> claims) { claims_ = std::move(claims); }
  /// From now on ServiceCIDRs and IPAddresses count. Before serving. Further ranges are not used where others claim, too.
  void consult(AddressBook book) { book_ = std::move(book); }
  /// Marks what a stored Service holds.
  void adopt(const json::Value& service);
  /// Fills in spec.clusterIP(s), the node ports and the health check's port that `service` needs and does not name, takes those it names.
  /// `old_service`: null on creation.
  model::ApiResult<ServiceAllocation> allocate(json::Value& service, const json::Value* old_service);
  void release(const ServiceAllocation& allocation);
  /// Where others claim, too: frees in time what none of all `services` holds (ServiceClaims::repair).
  void repair(const std::vector<json::Value>& services);
  /// Gives back what a deleted Service, or its previous revision, held and `now` (null: nothing) does not.
  void release_unused(const json::Value& before, const json::Value* now);

 private:
  [[nodiscard]] std::string render(std::uint32_t address) const;
  // Each marks what it takes. Nothing: it is taken, or all are.
  using Taken = model::ApiResult<std::optional<std::uint32_t>>;
  /// One that is nobody else's by its IPAddress object.
  Taken take_address(std::optional<std::uint32_t> wanted, const json::Value& service) BERTH_REQUIRES(mutex_);
  /// Can Services have it: of the configured range, or of a further one?
  [[nodiscard]] bool is_in_range(std::uint32_t address) const;
  Taken take_port(std::optional<std::uint32_t> wanted, const ClaimOwner& owner) BERTH_REQUIRES(mutex_);
  std::optional<std::uint32_t> find_free_address(const json::Value& service) BERTH_REQUIRES(mutex_);
  [[nodiscard]] bool is_free(std::uint32_t address, const json::Value& service) const BERTH_REQUIRES(mutex_);
  std::optional<int> take_free_port() BERTH_REQUIRES(mutex_);
  void give_back(Claimed what, std::uint32_t taken) BERTH_REQUIRES(mutex_);
  void give_back(const ServiceAllocation& allocation) BERTH_REQUIRES(mutex_);
  // The parts of allocate: each notes in `taken` what it took, also where it fails.
  model::ApiResult<void> give_address(json::Value& service, const json::Value* old_service, ServiceAllocation& taken)
      BERTH_REQUIRES(mutex_);
  model::ApiResult<void> give_health_check_port(json::Value& service, const std::set<int>& old_ports, ServiceAllocation& taken)
      BERTH_REQUIRES(mutex_);
  model::ApiResult<void> give_node_ports(json::Value& service, const std::set<int>& old_ports, ServiceAllocation& taken)
      BERTH_REQUIRES(mutex_);
  std::unique_ptr<ServiceClaims> claims_;
  AddressBook book_;
  Mutex mutex_;
  std::uint32_t base_ = 0, size_ = 0, cursor_ BERTH_GUARDED_BY(mutex_) = 0;
  int first_port_ = 30000, last_port_ = 32767;
  std::mt19937 random_ BERTH_GUARDED_BY(mutex_){
      20};  ///< Where the search for a free port begins: ports of deleted Services are not soon used again.
  std::set<std::uint32_t> addresses_ BERTH_GUARDED_BY(mutex_);
  std::set<int> ports_ BERTH_GUARDED_BY(mutex_);
};

}  // namespace berth::apiserver
