// Which DRA drivers a node can call, how healthy their devices are, and whose ResourceSlices have to go (kubelet's
// pkg/kubelet/cm/dra/plugin, healthinfo.go): the core, which talks to nobody.
//
//   (start) ──▶ all slices of the node go            registered, or answers again ──▶ nothing is due
//   no socket of a driver answers any more ──▶ after kDriverPatience its slices go; while that fails, again, later each time
#pragma once
#include <chrono>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/error.h"

namespace berth::node::devices {

/// How long a driver may be gone before what it published goes (defaultWipingDelay).
inline constexpr std::chrono::seconds kDriverPatience{30};
/// How long a driver's word on a device's health holds where it does not say (DefaultHealthTimeout).
inline constexpr std::chrono::seconds kHealthHolds{30};

/// Single-threaded; the shell's lock is around it.
class DriverRegistry {
 public:
  struct Endpoint {
    std::string path, service;  ///< `service`: which of kClaimServices it is spoken to by.
    bool answers = true;
  };

  /// The service to speak with a driver that has these; the error says what this node has.
  [[nodiscard]] static Result<std::string> choose_service(const std::vector<std::string>& services);
  /// A driver may have several endpoints, while one takes over from another. The error: it has this one.
  Result<void> add(const std::string& driver, const std::string& path, const std::string& service);
  void remove(const std::string& driver, const std::string& path, TimePoint now);
  /// Whether somebody listens there.
  void look(const std::string& driver, const std::string& path, bool answers, TimePoint now);
  /// The newest that answers, else the newest; null: the driver is not registered.
  [[nodiscard]] const Endpoint* find(const std::string& driver) const;
  [[nodiscard]] std::vector<std::pair<std::string, Endpoint>> all() const;

  /// The agent has just started: nobody is registered, and what was published is of no use. Due at once.
  void begin(TimePoint now) { wipes_[""] = {now, {}}; }
  /// Drivers whose slices are to be removed now; "": those of all drivers.
  [[nodiscard]] std::vector<std::string> due(TimePoint now) const;
  void wiped(const std::string& driver, bool is_done, TimePoint now);

  struct Health {
    std::string state = "Unknown", message;  ///< state: Healthy, Unhealthy or Unknown.
    friend bool operator==(const Health&, const Health&) = default;
  };
  struct DeviceReport {
    std::string pool, device;
    Health health;
    std::chrono::seconds holds = kHealthHolds;
  };
  /// All that a driver says. Pool and device of those that are otherwise than before.
  std::vector<std::pair<std::string, std::string>> report(const std::string& driver, const std::vector<DeviceReport>& devices,
                                                          TimePoint now);
  /// The driver says nothing any more.
  void forget_health(const std::string& driver) { health_.erase(driver); }
  [[nodiscard]] Health health(const std::string& driver, const std::string& pool, const std::string& device, TimePoint now) const;

 private:
  void settle(const std::string& driver, TimePoint now);
  struct Wipe {
    TimePoint due{};
    Duration pause{};  ///< Before the next try; zero: there was none.
  };
  struct Known {
    Health health;
    TimePoint until{};
  };
  std::map<std::string, std::vector<Endpoint>> endpoints_;  ///< By driver, in the order in which they came.
  std::map<std::string, Wipe> wipes_;                       ///< By driver.
  std::map<std::string, std::map<std::pair<std::string, std::string>, Known>> health_;
};

}  // namespace berth::node::devices
