#include "node/devices/device_plugins.h"

#include <fmt/format.h>

#include <atomic>
#include <thread>

#include "base/log.h"
#include "base/mutex.h"
#include "net/grpc.h"
#include "net/proto/messages.h"
#include "node/devices/plugin_files.h"
#include "node/devices/plugin_protocol.h"
#include "node/plugins/plugin_watcher.h"
#include "node/state_files.h"
#include "placement/resource.h"

namespace berth::node::devices {
namespace {

using net::proto::Messages;
constexpr const char* kService = "v1beta1.DevicePlugin/";
constexpr const char* kRegister = "v1beta1.Registration/Register";

/// One plugin, and the thread that listens to it.
struct Plugin {
  std::string resource, endpoint;
  bool wants_pre_start = false, has_preferences = false;
  std::unique_ptr<net::GrpcCalls> calls;
  std::atomic<bool> is_over{false};  ///< It is not wanted any more.
  std::atomic<bool> is_done{false};  ///< Its thread is at its end.
  std::thread thread;
};
using PluginPtr = std::shared_ptr<Plugin>;

net::GrpcAnswer refused(std::string why) {
  log::warning("devices", "a device plugin is refused: {}", why);
  return std::unexpected(net::GrpcFailure{static_cast<int>(net::GrpcCode::kInvalidArgument), std::move(why)});
}

class Served final : public DevicePlugins, public plugins::PluginHandler {
 public:
  Served(const Clock& clock, PluginOptions options, std::unique_ptr<Messages> messages)
      : clock_(clock), options_(std::move(options)), messages_(std::move(messages)) {}
  ~Served() override {
    service_.reset();
    std::vector<PluginPtr> all;
    {
      const MutexLock lock(mutex_);
      for (auto& [resource, plugin] : plugins_) all.push_back(plugin);
      for (auto& plugin : ended_) all.push_back(plugin);
    }
    for (const auto& plugin : all) plugin->is_over = true;
    for (const auto& plugin : all) plugin->thread.join();
  }
  Served(const Served&) = delete;
  Served& operator=(const Served&) = delete;

  Result<void> listen() {
    auto folder = SocketFolder::take(options_.directory);
    if (!folder) return std::unexpected(folder.error());
    folder_.emplace(std::move(*folder));
    if (const auto text = read_file(options_.checkpoint)) {
      const auto document = json::parse(*text);
      const MutexLock lock(mutex_);
      if (!document || !ledger_.restore(*document))
        log::warning("devices", "{} cannot be read: which container has which device is not known any more", options_.checkpoint);
    }
    auto service =
        net::GrpcService::start({.address = "unix://" + folder_->socket()}, [this](const std::string& method, const std::string& bytes) {
          if (method != std::string("/") + kRegister)
            return net::GrpcAnswer(std::unexpected(net::GrpcFailure{static_cast<int>(net::GrpcCode::kUnimplemented), method}));
          return take(bytes);
        });
    if (!service) return std::unexpected(service.error());
    service_ = std::move(*service);
    return {};
  }

  void tell(numa::Offer& offer) const override {
    const MutexLock lock(mutex_);
    ledger_.tell(offer);
  }
  DeviceLedger::Inventory inventory() const override {
    const MutexLock lock(mutex_);
    return ledger_.inventory(clock_.now());
  }

  DeviceLedger::ByResource held(const std::string& uid, const std::string& container) const override {
    const MutexLock lock(mutex_);
    return ledger_.held_devices(uid, container);
  }
  DeviceLedger::ByResource healthy_devices() const override {
    const MutexLock lock(mutex_);
    return ledger_.healthy_devices();
  }

  void keep_only(const std::set<std::string>& uids) override {
    const MutexLock lock(mutex_);
    ledger_.keep_only(uids);
    save();
  }
  void release(const std::string& uid) override {
    const MutexLock lock(mutex_);
    ledger_.release(uid);
    save();
  }
  numa::HintsByResource hints(const numa::PodWishes& pod, const numa::Wish& container) const override {
    const MutexLock lock(mutex_);
    return ledger_.hints(pod, container, options_.machine);
  }
  numa::HintsByResource pod_hints(const numa::PodWishes& pod) const override {
    const MutexLock lock(mutex_);
    return ledger_.pod_hints(pod, options_.machine);
  }
  std::optional<Refusal> give(const numa::PodWishes& pod, const numa::Wish& container, const numa::Hint& near) override {
    const MutexLock lock(mutex_);
    auto refusal = ledger_.give(pod, container, near);
    save();
    return refusal;
  }

  Result<DeviceGrant> prepare(const std::string& uid, const std::string& container) override {
    MutexLock lock(mutex_);
    for (const auto& [resource, ids] : ledger_.held(uid, container)) {
      const auto found = plugins_.find(resource);
      const PluginPtr plugin = found == plugins_.end() ? nullptr : found->second;
      const bool is_new = ledger_.granted(uid, container, resource) == nullptr;
      if (plugin == nullptr && is_new) return fail(ErrorCode::kUnavailable, fmt::format("no device plugin of {} is there", resource));
      if (plugin == nullptr || (!is_new && !plugin->wants_pre_start)) continue;
      std::set<std::string> chosen = ids;
      if (is_new && plugin->has_preferences) {
        const auto choice = ledger_.choice(uid, container, resource);
        lock.unlock();
        auto preferred = ask_preference(*plugin, choice, ids.size());
        lock.lock();
        if (preferred && ledger_.exchange(uid, container, resource, *preferred)) chosen = std::move(*preferred);
      }
      lock.unlock();
      json::Value answer;
      if (is_new) {
        auto allocated = allocate(*plugin, chosen);
        if (!allocated) return std::unexpected(allocated.error());
        answer = std::move(*allocated);
      }
      if (plugin->wants_pre_start)
        if (auto ready = call(*plugin, "PreStartContainer", json::Object{{"devices_ids", texts(chosen)}}); !ready)
          return std::unexpected(ready.error());
      lock.lock();
      if (!is_new) continue;
      ledger_.note_grant(uid, container, resource, std::move(answer));
      save();
    }
    return ledger_.grant(uid, container);
  }

  plugins::PluginHandler& handler() override { return *this; }

  Result<void> register_plugin(const plugins::PluginInfo& found, const std::atomic<bool>& cancel) override {
    if (std::ranges::find(found.versions, kPluginVersion) == found.versions.end())
      return invalid(
          fmt::format("manager version, {}, is not among plugin supported versions {}", kPluginVersion, fmt::join(found.versions, ", ")));
    auto plugin = made(found.name, found.endpoint);
    if (!plugin) return std::unexpected(plugin.error());
    const auto options = call(**plugin, "GetDevicePluginOptions", json::Object{}, &cancel);
    if (!options) return std::unexpected(options.error());
    take(std::move(*plugin), *options);
    return {};
  }
  /// It is listened to until its stream ends: that its registration went says nothing of its devices.
  void deregister_plugin(const plugins::PluginInfo&) override {}

 private:
  static std::set<std::int64_t> numa_nodes(const json::Value& device) {
    std::set<std::int64_t> out;
    for (const auto& node : json::get_array(device, {"topology", "nodes"}))
      out.insert(std::atoll(std::string(json::get_string(node, {"ID"}, "0")).c_str()));  // 64-bit numbers come as text.
    return out;
  }
  static json::Array texts(const std::set<std::string>& ids) { return json::Array(ids.begin(), ids.end()); }

  /// A plugin says that it is there.
  net::GrpcAnswer take(const std::string& bytes) {
    const auto request = messages_->decode(kRegister, Messages::Side::kRequest, bytes);
    if (!request) return refused(request.error().message);
    const std::string version(json::get_string(*request, {"version"})), endpoint(json::get_string(*request, {"endpoint"}));
    if (version != kPluginVersion)
      return refused(
          fmt::format("requested API version \"{}\" is not supported by kubelet. Supported version is [\"{}\"]", version, kPluginVersion));
    if (endpoint.empty() || endpoint.find('/') != std::string::npos)
      return refused(fmt::format("endpoint \"{}\" is no name of a socket", endpoint));
    auto plugin = made(std::string(json::get_string(*request, {"resource_name"})), options_.directory + "/" + endpoint);
    if (!plugin) return refused(plugin.error().message);
    const json::Value* options = json::find(*request, "options");
    take(std::move(*plugin), options == nullptr ? json::Value(json::Object{}) : *options);
    return std::string();
  }

  static Result<PluginPtr> made(const std::string& resource, const std::string& socket) {
    if (!placement::is_extended_resource_name(resource)) return invalid(fmt::format("the ResourceName \"{}\" is invalid", resource));
    auto calls = net::GrpcCalls::open({.target = "unix://" + socket});
    if (!calls) return std::unexpected(calls.error());
    auto plugin = std::make_shared<Plugin>();
    plugin->resource = resource;
    plugin->endpoint = socket;
    plugin->calls = std::move(*calls);
    return plugin;
  }

  /// In the place of the one that its resource had.
  void take(PluginPtr plugin, const json::Value& options) {
    plugin->wants_pre_start = json::get_bool(options, {"pre_start_required"});
    plugin->has_preferences = json::get_bool(options, {"get_preferred_allocation_available"});
    const MutexLock lock(mutex_);
    join_ended();
    auto& known = plugins_[plugin->resource];
    if (known != nullptr) {
      known->is_over = true;
      ended_.push_back(known);
    }
    known = plugin;
    plugin->thread = std::thread([this, plugin] { listen_to(*plugin); });
  }

  /// Those whose threads have said that they are done.
  void join_ended() BERTH_REQUIRES(mutex_) {
    std::erase_if(ended_, [](const PluginPtr& plugin) {
      if (!plugin->is_done) return false;
      plugin->thread.join();
      return true;
    });
  }

  void listen_to(Plugin& plugin) {
    log::info("devices", "{} has a device plugin at {}", plugin.resource, plugin.endpoint);
    const auto empty = messages_->encode(std::string(kService) + "ListAndWatch", Messages::Side::kRequest, json::Object{});
    const auto why = plugin.calls->read_stream(
        std::string("/") + kService + "ListAndWatch", empty.value_or(""),
        [&](const std::string& bytes) {
          const auto list = messages_->decode(std::string(kService) + "ListAndWatch", Messages::Side::kAnswer, bytes);
          if (list) listed(plugin, *list);
        },
        plugin.is_over);
    log::warning("devices", "the device plugin of {} at {} has ended: {}", plugin.resource, plugin.endpoint, why.message);
    {
      const MutexLock lock(mutex_);
      const auto found = plugins_.find(plugin.resource);
      const bool is_current = found != plugins_.end() && found->second.get() == &plugin;
      if (is_current) {
        ledger_.lose(plugin.resource, clock_.now());
        ended_.push_back(found->second);
        plugins_.erase(found);
      }
    }
    if (options_.changed) options_.changed();
    plugin.is_done = true;
  }

  void listed(const Plugin& plugin, const json::Value& list) {
    DeviceLedger::Devices devices;
    for (const auto& one : json::get_array(list, {"devices"}))
      devices[std::string(json::get_string(one, {"ID"}))] = {json::get_string(one, {"health"}) == "Healthy", numa_nodes(one)};
    bool is_other = false;
    {
      const MutexLock lock(mutex_);
      const auto found = plugins_.find(plugin.resource);
      if (found == plugins_.end() || found->second.get() != &plugin) return;
      is_other = ledger_.report(plugin.resource, std::move(devices));
      save();
    }
    if (is_other && options_.changed) options_.changed();
  }

  Result<json::Value> call(const Plugin& plugin, const std::string& method, const json::Value& request,
                           const std::atomic<bool>* cancel = nullptr) const {
    const std::string whole = kService + method;
    const auto bytes = messages_->encode(whole, Messages::Side::kRequest, request);
    if (!bytes) return std::unexpected(bytes.error());
    const auto answer = plugin.calls->call("/" + whole, *bytes, options_.call_timeout_ms, cancel);
    if (!answer)
      return fail(ErrorCode::kUnavailable,
                  fmt::format("the device plugin of {} says to {}: {}", plugin.resource, method, answer.error().message));
    return messages_->decode(whole, Messages::Side::kAnswer, *answer);
  }

  std::optional<std::set<std::string>> ask_preference(const Plugin& plugin, const std::set<std::string>& choice, std::size_t count) const {
    const auto answer = call(plugin, "GetPreferredAllocation",
                             json::Object{{"container_requests",
                                           json::Array{json::Object{{"available_deviceIDs", texts(choice)}, {"allocation_size", count}}}}});
    if (!answer) {
      log::warning("devices", "{}: its own choice is not known", answer.error().message);
      return std::nullopt;
    }
    const auto& answers = json::get_array(*answer, {"container_responses"});
    std::set<std::string> out;
    if (!answers.empty())
      for (const auto& id : json::get_array(answers[0], {"deviceIDs"}))
        if (id.is_string()) out.emplace(json::as_view(id));
    return out;
  }

  Result<json::Value> allocate(const Plugin& plugin, const std::set<std::string>& ids) const {
    auto answer = call(plugin, "Allocate", json::Object{{"container_requests", json::Array{json::Object{{"devices_ids", texts(ids)}}}}});
    if (!answer) return answer;
    auto& answers = json::get_array(*answer, {"container_responses"});
    if (answers.empty())
      return fail(ErrorCode::kUnavailable, fmt::format("the device plugin of {} answered Allocate with nothing", plugin.resource));
    return answers[0];
  }

  void save() BERTH_REQUIRES(mutex_) {
    const std::string text = json::serialize(ledger_.checkpoint());
    if (text == saved_) return;
    if (replace_file(options_.checkpoint, text))
      saved_ = text;
    else
      log::warning("devices", "{} cannot be written: the next start of this node will not know which container has which device",
                   options_.checkpoint);
  }

  const Clock& clock_;
  const PluginOptions options_;
  const std::unique_ptr<Messages> messages_;
  std::optional<SocketFolder> folder_;  ///< Before the service: whoever has the folder may not find it served.
  std::unique_ptr<net::GrpcService> service_;

  mutable Mutex mutex_;
  DeviceLedger ledger_ BERTH_GUARDED_BY(mutex_);
  std::map<std::string, PluginPtr> plugins_ BERTH_GUARDED_BY(mutex_);  ///< By resource.
  std::vector<PluginPtr> ended_ BERTH_GUARDED_BY(mutex_);              ///< Whose threads are to be joined.
  std::string saved_ BERTH_GUARDED_BY(mutex_);
};

}  // namespace

Result<std::unique_ptr<DevicePlugins>> DevicePlugins::start(const Clock& clock, PluginOptions options) {
  auto messages = Messages::of(kPluginProtocol);
  if (!messages) return std::unexpected(messages.error());
  auto out = std::make_unique<Served>(clock, std::move(options), std::move(*messages));
  if (auto listening = out->listen(); !listening) return std::unexpected(listening.error());
  return out;
}

}  // namespace berth::node::devices
