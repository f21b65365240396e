// A whole cluster in one process and virtual time, over one etcd: several API servers, two of each component, simulated nodes, users; and
// everything between them may break (etcd_model.h, wire.h). What happens is a function of the seed.
//
//   users ── Wire ──┐                      ┌── EtcdLink ──┐
//   schedulers ─────┼── API server 1, 2, 3 ┼── EtcdLink ──┼── Etcd
//   controllers ────┤                      └── EtcdLink ──┘
//   autoscalers ────┤
//   nodes ──────────┘
//
// Or over one server's own SQLite file, on a disk that loses its power (disk.h).
#pragma once
#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "apiserver/server.h"
#include "tests/world/builds.h"
#include "tests/world/disk.h"
#include "tests/world/etcd_model.h"
#include "tests/world/process_loop.h"
#include "tests/world/wire.h"

namespace berth::world {

constexpr std::size_t kServers = 3;
inline constexpr const char* kPrefix = "/registry";
/// So few node ports that Services fight for them.
constexpr int kFirstNodePort = 30000, kLastNodePort = 30004;
/// Processes' clocks are wrong by so much at most, either way.
constexpr Duration kMostSkew = std::chrono::seconds(3);

/// What a world stands on: an etcd with several servers, or one server's own disk.
enum class Ground { kEtcd, kDisk };

/// One API server, dead or alive.
struct Server {
  std::unique_ptr<ProcessLoop> loop;
  std::shared_ptr<EtcdLink> etcd;
  std::unique_ptr<apiserver::ApiServer> api;
  std::shared_ptr<Door> door;
  std::size_t build = kFirstBuild;  ///< That is installed on its machine: it starts as this one.
};

/// One process that talks to some API server: which one changes when that one dies.
struct Process {
  std::string name;
  std::unique_ptr<ProcessLoop> loop;
  std::unique_ptr<ProcessLoop> election;  ///< A thread of its own: after a stop the others may have the processor first.
  std::shared_ptr<Wire> wire;
  std::size_t server = 0;

  void set_skew(Duration skew) {
    loop->set_skew(skew);
    election->set_skew(skew);
  }
};

class World {
 public:
  World(std::uint64_t seed, int nodes, Ground ground);
  ~World();
  World(const World&) = delete;

  VirtualLoop& loop() { return loop_; }
  /// Where the world stands on that; on a disk nothing is in it.
  Etcd& etcd() { return etcd_; }
  Disk* disk() { return disk_.get(); }  ///< Null: it stands on an etcd.
  Held& held() { return disk_ ? static_cast<Held&>(*disk_) : etcd_; }
  [[nodiscard]] std::size_t servers() const { return disk_ ? 1 : kServers; }
  [[nodiscard]] TimePoint start() const { return start_; }

  Server& server(std::size_t i) { return servers_[i]; }
  /// Killed: what was under way is lost. Who was led to it finds another a moment later.
  void kill_server(std::size_t i);
  /// The power fails in the middle of the so manieth thing that the disk does from now.
  void lose_power_after(int operations);
  void lose_power();
  /// Stopped as by SIGSTOP: it remembers all, answers nobody, and does what was due once it goes on.
  void stop_server(std::size_t i) { servers_[i].loop->stop(); }
  void continue_server(std::size_t i) { servers_[i].loop->go_on(); }
  /// With no memory of what was; it waits for etcd, if need be.
  void start_server(std::size_t i);
  /// Servers stop and start one after the other, from `first` on, as another build, with pauses. False: one upgrade is enough at a time.
  bool upgrade(std::size_t build, std::size_t first, Duration pause);
  /// The last that was begun with.
  [[nodiscard]] std::size_t build() const { return build_; }
  /// As they are stored.
  void for_each_secret(const std::function<void(std::string_view ns, std::string_view name, const std::string& stored)>& each);

  /// Each is killed, and started with no memory.
  static constexpr std::array<const char*, 7> kComponents = {"scheduler-0", "scheduler-1",  "controllers-0", "controllers-1",
                                                             "nodes",       "autoscaler-0", "autoscaler-1"};
  /// `says_goodbye`: it may still give its lease up.
  void kill(std::string_view component, bool says_goodbye = true);
  void start(std::string_view component);
  /// As stop_server; its threads go on in some order.
  void stop_process(Process& process);
  void continue_process(Process& process);
  /// The machines' clocks from now on: what starts goes by them.
  void set_skew(Duration skew) { skew_ = skew; }
  /// A process's way; also a user's, made when it is first asked for.
  Process& process(const std::string& name);
  std::vector<std::unique_ptr<Process>>& processes() { return processes_; }

  /// How often those who control had to go on without knowing whether what they asked for at this path had been created: no answer told, or
  /// who had asked for it was no more. What they make then may be one too many for a while.
  [[nodiscard]] int doubts(const std::string& path) { return doubts_[path] + changes_of_control_; }

  /// What broke that no judge of the end can see any more.
  std::vector<std::string> wrongs;

 private:
  struct Component;
  /// To a server that lives, not the one it is at.
  void lead(Process& process);
  void start_component(Component& component);  // This and the next in components.cpp.
  void start_controllers(Component& component);
  void start_scheduler(Component& component);
  void start_nodes(Component& component);
  void start_autoscaler(Component& component);
  /// Its process ends, and is started again.
  void restart(Component& component);
  [[nodiscard]] std::string identity_of(const Component& component) const;
  /// What a server keeps its objects in; null: not now.
  std::unique_ptr<apiserver::ObjectCache> open_cache(std::size_t i, apiserver::ServerOptions& options);
  std::unique_ptr<apiserver::ObjectCache> open_disk(Server& server, const std::shared_ptr<apiserver::encryption::StaleKeys>& stale);
  void upgrade_next(std::size_t first, std::size_t done, Duration pause);
  void repair();
  /// Two that lead at once, by what etcd says of the lease at the moment of each write.
  void watch_leader(Component& component, const net::HttpRequest& request);
  [[nodiscard]] std::string holder_of(std::string_view lease);

  const TimePoint start_;
  const std::uint64_t seed_;
  const int nodes_;
  Duration skew_{};
  VirtualLoop loop_;
  Etcd etcd_{loop_, kPrefix};
  std::unique_ptr<Disk> disk_;
  simulator::Random random_;
  std::array<Server, kServers> servers_;
  std::uint64_t starts_ = 0;
  std::size_t build_ = kFirstBuild;
  bool is_upgrading_ = false;
  TimePoint upgraded_{};
  std::map<std::string, int> doubts_;  ///< By the path of creations.
  std::string in_control_;
  int changes_of_control_ = 0;
  std::vector<std::unique_ptr<Process>> processes_;
  std::vector<std::unique_ptr<Component>> components_;
  metrics::Registry metrics_;
};

}  // namespace berth::world
