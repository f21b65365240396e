#include "node/devices/claim_drivers.h"

#include <fmt/format.h>

#include <thread>

#include "base/log.h"
#include "base/mutex.h"
#include "net/grpc.h"
#include "net/proto/messages.h"
#include "node/devices/claim_protocol.h"
#include "node/devices/plugin_files.h"
#include "node/plugins/plugin_watcher.h"
#include "node/state_files.h"

namespace berth::node::devices {
namespace {

using net::proto::Messages;
constexpr std::chrono::milliseconds kLookAgain(100);  // How soon who waits for another sees that it need not wait any more.
constexpr std::chrono::seconds kHealthRetry(5), kReconcilePeriod(60);

/// One that registered, and the thread that hears of its devices' health.
struct Driver {
  std::string name, endpoint, service;
  std::unique_ptr<net::GrpcCalls> calls;
  std::atomic<bool> is_over{false};
  std::thread listener;
};
using DriverPtr = std::shared_ptr<Driver>;

std::chrono::seconds seconds_of(const json::Value& device, std::string_view field) {
  // 64-bit numbers come as text.
  return std::chrono::seconds(std::atoll(std::string(json::get_string(device, {field})).c_str()));
}

std::string state_of(std::string_view told) { return told == "HEALTHY" ? "Healthy" : told == "UNHEALTHY" ? "Unhealthy" : "Unknown"; }

class Drivers final : public ClaimDrivers, public plugins::PluginHandler {
 public:
  Drivers(const Clock& clock, ClaimDriverOptions options) : clock_(clock), options_(std::move(options)) {}
  ~Drivers() override {
    Drivers::stop_looking();
    {
      const MutexLock lock(mutex_);
      is_over_ = true;
      changed_.notify_all();
    }
    for (const auto& driver : drivers_) driver->is_over = true;
    for (const auto& driver : drivers_) driver->listener.join();
  }
  Drivers(const Drivers&) = delete;
  Drivers& operator=(const Drivers&) = delete;

  Result<void> begin() {
    for (const std::string_view service : kClaimServices) {
      auto read = Messages::of(fmt::format("package {};\n{}", claim_package(service), kClaimProtocol));
      if (!read) return std::unexpected(read.error());
      messages_[std::string(service)] = std::move(*read);
    }
    auto health = Messages::of(kHealthProtocol);
    if (!health) return std::unexpected(health.error());
    health_messages_ = std::move(*health);
    const MutexLock lock(mutex_);
    if (const auto text = read_file(options_.checkpoint)) {
      const auto document = json::parse(*text);
      if (!document || !ledger_.restore(*document, options_.boot_id))
        log::warning("devices", "{} cannot be read: which claims are prepared is not known any more", options_.checkpoint);
      saved_ = *text;
    }
    registry_.begin(clock_.now());
    return {};
  }

  plugins::PluginHandler& handler() override { return *this; }

  Result<void> register_plugin(const plugins::PluginInfo& found, const std::atomic<bool>&) override {
    const auto refuse = [&](const Error& why) {
      return invalid(fmt::format("invalid supported gRPC versions of DRA driver plugin {} at endpoint {}: {}", found.name, found.endpoint,
                                 why.message));
    };
    const auto service = DriverRegistry::choose_service(found.versions);
    if (!service) return refuse(service.error());
    auto calls = net::GrpcCalls::open({.target = "unix://" + found.endpoint});
    if (!calls) return std::unexpected(calls.error());
    auto driver = std::make_shared<Driver>();
    driver->name = found.name;
    driver->endpoint = found.endpoint;
    driver->service = *service;
    driver->calls = std::move(*calls);
    const MutexLock lock(mutex_);
    if (auto added = registry_.add(found.name, found.endpoint, *service); !added) return added;
    log::info("devices", "the DRA driver {} is at {} ({})", found.name, found.endpoint, *service);
    driver->listener = std::thread([this, driver] { listen_to(*driver); });
    drivers_.push_back(driver);
    return {};
  }

  void deregister_plugin(const plugins::PluginInfo& found) override {
    DriverPtr gone;
    {
      const MutexLock lock(mutex_);
      registry_.remove(found.name, found.endpoint, clock_.now());
      const auto at =
          std::ranges::find_if(drivers_, [&](const DriverPtr& one) { return one->name == found.name && one->endpoint == found.endpoint; });
      if (at == drivers_.end()) return;
      gone = *at;
      drivers_.erase(at);
    }
    log::info("devices", "the DRA driver {} at {} is gone", found.name, found.endpoint);
    gone->is_over = true;
    gone->listener.join();
  }

  Result<void> prepare(const std::string& pod_uid, const std::vector<ClaimUse>& claims, const std::atomic<bool>& cancel) override {
    std::set<std::string> uids;
    for (const ClaimUse& one : claims) uids.insert(one.id.uid);
    MutexLock lock(mutex_);
    if (auto waited = occupy(uids, cancel); !waited) return waited;
    Result<void> out;
    // Nothing is noted for a driver that is not there: the pod could not be taken away again without it.
    for (const ClaimUse& one : claims)
      for (const std::string& driver : one.drivers)
        if (out && registry_.find(driver) == nullptr)
          out = fail(ErrorCode::kUnavailable, fmt::format("DRA driver {} is not registered", driver));
    if (out) out = prepare_occupied(pod_uid, claims, cancel);
    vacate(uids);
    return out;
  }

  Result<void> release(const std::string& pod_uid, const std::atomic<bool>& cancel) override {
    MutexLock lock(mutex_);
    std::set<std::string> uids;
    for (const ClaimLedger::Claim* one : ledger_.claims_of(pod_uid)) uids.insert(one->id.uid);
    if (uids.empty()) return {};
    if (auto waited = occupy(uids, cancel); !waited) return waited;
    Result<void> out;
    for (const ClaimCall& call : ledger_.release(pod_uid)) {
      const auto answer = ask(call, "NodeUnprepareResources", cancel);
      if (auto taken = answer ? ledger_.unprepared(call, *answer) : Result<void>(std::unexpected(answer.error())); !taken && out)
        out = std::move(taken);
    }
    save();
    vacate(uids);
    return out;
  }

  std::vector<std::string> cdi_devices(const std::vector<ContainerClaim>& uses) const override {
    const MutexLock lock(mutex_);
    std::vector<std::string> out;
    for (const ContainerClaim& use : uses)
      each_device(use, [&](const std::string&, const ClaimLedger::Device& device) {
        for (const std::string& id : device.cdi_ids)
          if (std::ranges::find(out, id) == out.end()) out.push_back(id);
      });
    return out;
  }

  std::vector<DeviceHealth> health(const ContainerClaim& use) const override {
    const MutexLock lock(mutex_);
    std::vector<DeviceHealth> out;
    each_device(use, [&](const std::string& driver, const ClaimLedger::Device& device) BERTH_REQUIRES(mutex_) {
      std::string id = device.cdi_ids.empty() ? fmt::format("{}/{}/{}", driver, device.pool, device.name) : device.cdi_ids.front();
      if (std::ranges::find(out, id, &DeviceHealth::id) != out.end()) return;
      out.push_back({std::move(id), registry_.health(driver, device.pool, device.name, clock_.now())});
    });
    return out;
  }

  std::optional<ClaimLedger::Claim> claim(const std::string& ns, const std::string& name) const override {
    const MutexLock lock(mutex_);
    const ClaimLedger::Claim* found = ledger_.find(ns, name);
    return found == nullptr ? std::nullopt : std::optional(*found);
  }

  void look(const Pods& pods) override {
    MutexLock lock(mutex_);
    const auto endpoints = registry_.all();
    lock.unlock();
    std::vector<bool> answers;
    for (const auto& [driver, endpoint] : endpoints) answers.push_back(is_served(endpoint.path));
    lock.lock();
    for (std::size_t i = 0; i < endpoints.size(); ++i)
      registry_.look(endpoints[i].first, endpoints[i].second.path, answers[i], clock_.now());
    for (const std::string& driver : registry_.due(clock_.now())) {
      lock.unlock();
      const auto removed = options_.remove_slices ? options_.remove_slices(driver) : Result<void>();
      lock.lock();
      if (!removed)
        log::warning("devices", "the ResourceSlices of {} are not removed yet: {}", driver.empty() ? "all drivers" : driver,
                     removed.error().message);
      registry_.wiped(driver, removed.has_value(), clock_.now());
    }
    lock.unlock();
    if (!pods || clock_.now() < reconciled_ + kReconcilePeriod) return;
    reconciled_ = clock_.now();
    keep_only(*pods);
  }

  void keep_looking(Duration period, std::function<Pods()> pods) override {
    keeper_ = std::thread([this, period, pods = std::move(pods)] {
      MutexLock lock(mutex_);
      while (!is_unwatched_) {
        lock.unlock();
        look(pods());
        lock.lock();
        changed_.wait_for(mutex_, period, [this] { return is_unwatched_.load(); });
      }
    });
  }

  void stop_looking() override {
    {
      const MutexLock lock(mutex_);
      is_unwatched_ = true;
      changed_.notify_all();
    }
    if (keeper_.joinable()) keeper_.join();
  }

 private:
  void keep_only(const std::set<std::string>& pod_uids) {
    std::set<std::string> strangers;
    {
      const MutexLock lock(mutex_);
      strangers = ledger_.others_than(pod_uids);
    }
    for (const std::string& uid : strangers)
      if (const auto released = release(uid, is_unwatched_); !released)
        log::warning("devices", "what a pod that is gone used ({}) is not taken back yet: {}", uid, released.error().message);
  }

  /// Waits until nobody else is at one of these claims: drivers are asked one thing of a claim at a time.
  Result<void> occupy(const std::set<std::string>& uids, const std::atomic<bool>& cancel) BERTH_REQUIRES(mutex_) {
    const auto is_free = [&]() BERTH_REQUIRES(mutex_) {
      return std::ranges::none_of(uids, [&](const std::string& uid) BERTH_REQUIRES(mutex_) { return busy_.contains(uid); });
    };
    while (!is_free()) {
      if (cancel || is_over_) return fail(ErrorCode::kUnavailable, "called off");
      changed_.wait_for(mutex_, kLookAgain);
    }
    busy_.insert(uids.begin(), uids.end());
    return {};
  }
  void vacate(const std::set<std::string>& uids) BERTH_REQUIRES(mutex_) {
    for (const std::string& uid : uids) busy_.erase(uid);
    changed_.notify_all();
  }

  Result<void> prepare_occupied(const std::string& pod_uid, const std::vector<ClaimUse>& claims, const std::atomic<bool>& cancel)
      BERTH_REQUIRES(mutex_) {
    const auto calls = ledger_.use(pod_uid, claims);
    if (!calls) return std::unexpected(calls.error());
    // Before a driver is asked: should this process end meanwhile, the next one knows what to take back.
    if (!save())
      return fail(ErrorCode::kUnavailable, fmt::format("checkpoint ResourceClaim cache: {} cannot be written", options_.checkpoint));
    for (const ClaimCall& call : *calls) {
      const auto answer = ask(call, "NodePrepareResources", cancel);
      if (!answer) return std::unexpected(answer.error());
      if (auto taken = ledger_.prepared(call, *answer); !taken) {
        save();
        return taken;
      }
    }
    save();
    return {};
  }

  /// Without the lock while the driver thinks.
  Result<json::Value> ask(const ClaimCall& call, const std::string& method, const std::atomic<bool>& cancel) BERTH_REQUIRES(mutex_) {
    const DriverRegistry::Endpoint* endpoint = registry_.find(call.driver);
    const auto found = endpoint == nullptr ? drivers_.end() : std::ranges::find_if(drivers_, [&](const DriverPtr& one) {
      return one->name == call.driver && one->endpoint == endpoint->path;
    });
    if (found == drivers_.end()) return fail(ErrorCode::kUnavailable, fmt::format("DRA driver {} is not registered", call.driver));
    const DriverPtr driver = *found;
    const Messages& messages = *messages_.at(driver->service);
    const std::string whole = fmt::format("{}.DRAPlugin/{}", claim_package(driver->service), method);
    const auto bytes = messages.encode(whole, Messages::Side::kRequest, claim_request(call));
    if (!bytes) return std::unexpected(bytes.error());
    const auto answer = [&]() BERTH_REQUIRES(mutex_) {
      const MutexUnlock free(mutex_);
      return driver->calls->call("/" + whole, *bytes, options_.call_timeout_ms, &cancel);
    }();
    if (!answer) return fail(ErrorCode::kUnavailable, fmt::format("{}: DRA driver {}: {}", method, call.driver, answer.error().message));
    return messages.decode(whole, Messages::Side::kAnswer, *answer);
  }

  template <typename Visit>
  void each_device(const ContainerClaim& use, const Visit& visit) const BERTH_REQUIRES(mutex_) {
    const ClaimLedger::Claim* found = ledger_.find(use.ns, use.claim);
    if (found == nullptr) return;
    for (const auto& [driver, devices] : found->drivers)
      if (devices)
        for (const ClaimLedger::Device& device : *devices)
          if (serves(device, use.request)) visit(driver, device);
  }

  /// Until the driver goes. One that has no such service is not asked twice.
  void listen_to(Driver& driver) {
    const auto empty = health_messages_->encode(std::string(kHealthMethod), Messages::Side::kRequest, json::Object{});
    while (!driver.is_over) {
      const auto why = driver.calls->read_stream(
          std::string("/") + std::string(kHealthMethod), empty.value_or(""),
          [&](const std::string& bytes) {
            if (const auto list = health_messages_->decode(std::string(kHealthMethod), Messages::Side::kAnswer, bytes))
              told(driver.name, *list);
          },
          driver.is_over);
      {
        const MutexLock lock(mutex_);
        registry_.forget_health(driver.name);
      }
      if (why.is(net::GrpcCode::kUnimplemented)) return;
      MutexLock lock(mutex_);
      const auto until = std::chrono::steady_clock::now() + kHealthRetry;
      while (!driver.is_over && !is_over_ && std::chrono::steady_clock::now() < until) changed_.wait_for(mutex_, kLookAgain);
    }
  }

  void told(const std::string& driver, const json::Value& list) {
    std::vector<DriverRegistry::DeviceReport> devices;
    for (const auto& one : json::get_array(list, {"devices"}))
      devices.push_back({std::string(json::get_string(one, {"device", "pool_name"})),
                         std::string(json::get_string(one, {"device", "device_name"})),
                         {state_of(json::get_string(one, {"health"})), std::string(json::get_string(one, {"message"}))},
                         seconds_of(one, "health_check_timeout_seconds")});
    std::set<std::string> pods;
    {
      const MutexLock lock(mutex_);
      for (const auto& [pool, device] : registry_.report(driver, devices, clock_.now())) pods.merge(ledger_.users(driver, pool, device));
    }
    if (options_.health_changed)
      for (const std::string& uid : pods) options_.health_changed(uid);
  }

  /// False: the next process will not know.
  bool save() BERTH_REQUIRES(mutex_) {
    const std::string text = json::serialize(ledger_.checkpoint(options_.boot_id));
    if (text == saved_) return true;
    if (!replace_file(options_.checkpoint, text)) {
      log::warning("devices", "{} cannot be written: the next start of this node will not know which claims are prepared",
                   options_.checkpoint);
      return false;
    }
    saved_ = text;
    return true;
  }

  const Clock& clock_;
  const ClaimDriverOptions options_;
  std::map<std::string, std::unique_ptr<Messages>> messages_;  ///< By service.
  std::unique_ptr<Messages> health_messages_;

  mutable Mutex mutex_;
  CondVar changed_;
  std::atomic<bool> is_over_{false}, is_unwatched_{false};  ///< Unwatched: nobody looks by himself any more.
  ClaimLedger ledger_ BERTH_GUARDED_BY(mutex_);
  DriverRegistry registry_ BERTH_GUARDED_BY(mutex_);
  std::vector<DriverPtr> drivers_ BERTH_GUARDED_BY(mutex_);
  std::set<std::string> busy_ BERTH_GUARDED_BY(mutex_);  ///< Uids of claims that somebody is at.
  std::string saved_ BERTH_GUARDED_BY(mutex_);
  TimePoint reconciled_{};  ///< Of who looks.
  std::thread keeper_;
};

}  // namespace

Result<std::unique_ptr<ClaimDrivers>> ClaimDrivers::start(const Clock& clock, ClaimDriverOptions options) {
  auto out = std::make_unique<Drivers>(clock, std::move(options));
  if (auto begun = out->begin(); !begun) return std::unexpected(begun.error());
  return out;
}

}  // namespace berth::node::devices
