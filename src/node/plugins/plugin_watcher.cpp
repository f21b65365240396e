#include "node/plugins/plugin_watcher.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <filesystem>
#include <thread>

#include "base/log.h"
#include "base/mutex.h"
#include "net/grpc.h"
#include "net/proto/messages.h"
#include "node/agent/leftovers.h"
#include "node/agent/task_group.h"
#include "node/plugins/plugin_registry.h"
#include "node/plugins/registration_protocol.h"

namespace berth::node::plugins {
namespace {

namespace fs = std::filesystem;
using net::proto::Messages;
constexpr const char* kGetInfo = "pluginregistration.Registration/GetInfo";
constexpr const char* kNotify = "pluginregistration.Registration/NotifyRegistrationStatus";

/// The sockets of a directory and of those below it. What goes while it is looked at is not there.
PluginRegistry::Sockets sockets_below(const std::string& directory) {
  PluginRegistry::Sockets out;
  std::error_code error;
  for (fs::recursive_directory_iterator it(directory, fs::directory_options::skip_permission_denied, error), end; !error && it != end;
       it.increment(error)) {
    if (it->path().filename().string().starts_with('.')) {
      it.disable_recursion_pending();
      continue;
    }
    struct stat info {};
    if (::stat(it->path().c_str(), &info) == 0 && S_ISSOCK(info.st_mode))
      out[it->path().string()] = {info.st_dev, info.st_ino, info.st_ctim.tv_sec * 1'000'000'000 + info.st_ctim.tv_nsec};
  }
  return out;
}

class Watching final : public PluginWatcher {
 public:
  Watching(const Clock& clock, WatcherOptions options, std::unique_ptr<Messages> messages, agent::DirectoryLock lock)
      : clock_(clock), options_(std::move(options)), messages_(std::move(messages)), directory_lock_(std::move(lock)), thread_([this] {
          run();
        }) {}
  ~Watching() override {
    {
      const MutexLock lock(mutex_);
      is_over_ = true;
    }
    wake_.notify_all();
    thread_.join();
    tasks_.wait();
  }
  Watching(const Watching&) = delete;
  Watching& operator=(const Watching&) = delete;

  void look() override {
    const MutexLock lock(mutex_);
    is_asked_ = true;
    wake_.notify_all();
  }

 private:
  using Effect = PluginRegistry::Effect;

  void run() {
    while (!is_over_) {
      const auto there = sockets_below(options_.directory);
      MutexLock lock(mutex_);
      is_asked_ = false;
      carry_out(registry_.look(there, clock_.now()));
      wake_.wait_for(mutex_, options_.period, [this]() BERTH_REQUIRES(mutex_) { return is_over_ || is_asked_; });
    }
  }

  void carry_out(const PluginRegistry::Effects& effects) BERTH_REQUIRES(mutex_) {
    if (is_over_) return;
    for (const Effect& effect : effects)
      tasks_.run([this, effect] {
        const bool is_accepted = effect.kind == Effect::Kind::kRegister ? take(effect.path) : drop(effect.path);
        const MutexLock lock(mutex_);
        carry_out(registry_.done(effect, is_accepted, clock_.now()));
      });
  }

  bool take(const std::string& socket) {
    auto calls = net::GrpcCalls::open({.target = "unix://" + socket});
    if (!calls) return complain(socket, calls.error().message);
    const auto plugin = ask(**calls, socket);
    if (!plugin) return complain(socket, plugin.error().message);
    const auto handler = options_.handlers.find(plugin->type);
    auto taken =
        handler != options_.handlers.end()
            ? handler->second->register_plugin(*plugin, is_over_)
            : fail(ErrorCode::kInvalid, fmt::format("no handler registered for plugin type: {} at socket {}", plugin->type, socket));
    if (is_over_) return false;
    tell(**calls, *plugin, taken ? "" : taken.error().message);
    if (!taken) return complain(socket, taken.error().message);
    log::info("plugins", "{} {} is registered, at {}", plugin->type, plugin->name, plugin->endpoint);
    const MutexLock lock(mutex_);
    taken_[socket] = *plugin;
    return true;
  }

  bool drop(const std::string& socket) {
    PluginInfo plugin;
    {
      const MutexLock lock(mutex_);
      plugin = std::move(taken_.extract(socket).mapped());
    }
    log::info("plugins", "{} {} is gone from {}", plugin.type, plugin.name, socket);
    options_.handlers.find(plugin.type)->second->deregister_plugin(plugin);
    return true;
  }

  bool complain(const std::string& socket, const std::string& why) const {
    if (!is_over_) log::warning("plugins", "the plugin at {} is not registered: {}", socket, why);
    return false;
  }

  Result<PluginInfo> ask(net::GrpcCalls& calls, const std::string& socket) const {
    const auto answer = calls.call(std::string("/") + kGetInfo, "", options_.info_timeout_ms, &is_over_);
    if (!answer) return fail(ErrorCode::kUnavailable, fmt::format("GetInfo: {}", answer.error().message));
    const auto info = messages_->decode(kGetInfo, Messages::Side::kAnswer, *answer);
    if (!info) return std::unexpected(info.error());
    PluginInfo plugin{std::string(json::get_string(*info, {"type"})),
                      std::string(json::get_string(*info, {"name"})),
                      std::string(json::get_string(*info, {"endpoint"})),
                      {},
                      socket};
    if (plugin.name.empty()) return fail(ErrorCode::kInvalid, "GetInfo: it says no name");
    if (plugin.endpoint.empty()) plugin.endpoint = socket;
    for (const auto& version : json::get_array(*info, {"supported_versions"}))
      if (version.is_string()) plugin.versions.emplace_back(json::as_view(version));
    return plugin;
  }

  /// A plugin that does not hear it is registered all the same: the next one of its socket is asked anew.
  void tell(net::GrpcCalls& calls, const PluginInfo& plugin, const std::string& error) const {
    const auto status =
        messages_->encode(kNotify, Messages::Side::kRequest, json::Object{{"plugin_registered", error.empty()}, {"error", error}});
    if (!status) return;
    if (const auto heard = calls.call(std::string("/") + kNotify, *status, options_.notify_timeout_ms, &is_over_); !heard && !is_over_)
      log::warning("plugins", "{} {} was not told how its registration ended: {}", plugin.type, plugin.name, heard.error().message);
  }

  const Clock& clock_;
  const WatcherOptions options_;
  const std::unique_ptr<Messages> messages_;
  const agent::DirectoryLock directory_lock_;
  std::atomic<bool> is_over_{false};

  Mutex mutex_;
  CondVar wake_;
  bool is_asked_ BERTH_GUARDED_BY(mutex_) = false;
  PluginRegistry registry_ BERTH_GUARDED_BY(mutex_);
  std::map<std::string, PluginInfo> taken_ BERTH_GUARDED_BY(mutex_);  ///< By socket.
  agent::TaskGroup tasks_;
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<PluginWatcher>> PluginWatcher::start(const Clock& clock, WatcherOptions options) {
  auto messages = Messages::of(kRegistrationProtocol);
  if (!messages) return std::unexpected(messages.error());
  auto lock = agent::DirectoryLock::take(options.directory);
  if (!lock) return std::unexpected(lock.error());
  return std::make_unique<Watching>(clock, std::move(options), std::move(*messages), std::move(*lock));
}

}  // namespace berth::node::plugins
