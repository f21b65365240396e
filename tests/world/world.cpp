#include "tests/world/world.h"

#include <algorithm>

#include "apiserver/etcd/range_claims.h"
#include "apiserver/etcd/shared_cache.h"
#include "model/features.h"
#include "tests/world/component.h"

namespace berth::world {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kRepairs = std::chrono::seconds(45);
constexpr Duration kEventsLast = std::chrono::minutes(2);
/// Of a server's own store: so seldom and so few that watches meet the end of what is kept.
constexpr Duration kCompacts = std::chrono::seconds(40);
constexpr std::size_t kWatchHistory = 300;
/// What a server that was killed had sent has arrived by then.
constexpr Duration kBetweenUpgrades = std::chrono::seconds(5);
constexpr std::uint64_t kSchedulingDelayMs = 50;
constexpr const char* kServiceRange = "10.96.0.0/28";
const TimePoint kStart{std::chrono::hours(24 * 365 * 56)};

}  // namespace

World::World(std::uint64_t seed, int nodes, Ground ground)
    : start_(kStart),
      seed_(seed),
      nodes_(nodes),
      loop_(kStart),
      disk_(ground == Ground::kDisk ? std::make_unique<Disk>(seed) : nullptr),
      random_(seed, "world") {
  for (std::size_t i = 0; i < servers(); ++i) {
    servers_[i].loop = std::make_unique<ProcessLoop>(loop_);
    start_server(i);
  }
  repair();
  for (const char* name : kComponents) {
    auto component = std::make_unique<Component>();
    component->name = name;
    component->process = &process(name);
    component->process->wire->on_doubt = [this](const std::string& path) { ++doubts_[path]; };
    components_.push_back(std::move(component));
    start(name);
  }
}

World::~World() {
  for (auto& component : components_) component->kill();
  for (std::size_t i = 0; i < servers(); ++i) kill_server(i);
}

/// As `berth server` does, some seconds off each other.
void World::repair() {
  for (Server& server : servers_)
    if (server.api)
      server.loop->post([&server, api = server.api.get()] {
        if (server.api.get() == api) api->repair_service_claims();
      });
  loop_.schedule_after(kRepairs, [this] { repair(); });
}

void World::start_server(std::size_t i) {
  Server& server = servers_[i];
  if (server.api) return;
  ++starts_;
  server.loop->set_skew(skew_);
  apiserver::ServerOptions options;
  options.cache = open_cache(i, options);
  const auto again = [this, i] { loop_.schedule_after(seconds(1), [this, i] { start_server(i); }); };
  if (!options.cache) return again();
  options.service_cidr = kServiceRange;
  options.node_port_first = kFirstNodePort;
  options.node_port_last = kLastNodePort;
  options.event_ttl = kEventsLast;
  options.loop = server.loop.get();
  auto trusting = std::make_shared<apiserver::TrustingAuth>();
  options.authenticator = trusting;
  options.authorizer = trusting;
  options.seed = seed_ * 1000 + 500 + starts_;
  options.features = model::preferred_features();  // As `berth up` has them.
  options.single_threaded = true;
  options.watch_flush_pause = Duration::zero();
  auto created = apiserver::ApiServer::create(std::move(options));
  if (!created) {
    wrongs.push_back(fmt::format("server {} does not start: {}", i, created.error().message));
    return again();
  }
  server.api = std::move(*created);
  server.door = std::make_shared<Door>(
      *server.loop, client::make_in_process_transport(*server.api, {"system:admin", {"system:masters", "system:authenticated"}}));
  if (server.etcd) server.etcd->is_calm = false;
  for (auto& process : processes_)
    if (process->wire->leads_nowhere()) lead(*process);
}

std::unique_ptr<apiserver::ObjectCache> World::open_cache(std::size_t i, apiserver::ServerOptions& options) {
  Server& server = servers_[i];
  auto stale = std::make_shared<apiserver::encryption::StaleKeys>();
  options.is_stale = [stale](std::string_view key) { return stale->contains(key); };
  if (disk_) return open_disk(server, stale);
  auto link = std::make_shared<EtcdLink>(etcd_, seed_ * 1000 + starts_, server.loop.get());
  if (server.etcd) link->is_cut = server.etcd->is_cut;
  server.etcd = link;
  if (link->is_cut || !etcd_.has_leader || etcd_.is_full) return nullptr;
  link->is_calm = true;
  link->as_stored = [build = server.build](const Bytes& value) { return as_stored_by(build, value); };
  link->as_read = [build = server.build](const Bytes& value) { return as_read_by(build, value); };
  auto cache = apiserver::etcd::open_shared_cache(link, *server.loop, {}, form_of(server.build, stale), kEventsLast, server.loop.get());
  auto claims = apiserver::etcd::open_range_claims(link, {kPrefix, kServiceRange, kFirstNodePort, kLastNodePort});
  if (!cache || !claims) return nullptr;
  options.service_claims = std::move(*claims);
  return std::move(*cache);
}

std::unique_ptr<apiserver::ObjectCache> World::open_disk(Server& server, const std::shared_ptr<apiserver::encryption::StaleKeys>& stale) {
  if (disk_->is_full()) return nullptr;
  apiserver::CacheOptions caching;
  caching.compaction_interval = kCompacts;
  caching.history_events = kWatchHistory;
  auto store = disk_->open(server.build, stale);
  auto cache = store ? apiserver::open_object_cache(std::move(*store), *server.loop, caching, true, kEventsLast)
                     : Result<std::unique_ptr<apiserver::ObjectCache>>(std::unexpected(store.error()));
  if (cache) return std::move(*cache);
  wrongs.push_back(fmt::format("the store does not open: {}", cache.error().message));
  return nullptr;
}

void World::lose_power_after(int operations) {
  // Whoever is told of it is in the middle of a write.
  disk_->lose_power_after(operations, [this] { loop_.post([this] { kill_server(0); }); });
}

void World::lose_power() {
  disk_->lose_power();
  kill_server(0);
}

void World::kill_server(std::size_t i) {
  Server& server = servers_[i];
  if (!server.api) return;
  for (auto& process : processes_) {
    if (process->server != i || process->wire->leads_nowhere()) continue;
    process->wire->lead_to(nullptr);
    loop_.schedule_after(milliseconds(100 + random_.below(2000)), [this, one = process.get()] {
      if (one->wire->leads_nowhere()) lead(*one);
    });
  }
  server.door->close();
  server.door.reset();
  if (server.etcd) server.etcd->kill();
  if (disk_) disk_->kill_process();
  server.api.reset();
  server.loop->go_on();
}

bool World::upgrade(std::size_t build, std::size_t first, Duration pause) {
  if (is_upgrading_ || loop_.now() < upgraded_ + kBetweenUpgrades) return false;
  is_upgrading_ = true;
  build_ = build;
  upgrade_next(first, 0, pause);
  return true;
}

void World::upgrade_next(std::size_t first, std::size_t done, Duration pause) {
  if (done == servers()) {
    is_upgrading_ = false;
    upgraded_ = loop_.now();
    return;
  }
  const std::size_t i = (first + done) % servers();
  servers_[i].build = build_;
  kill_server(i);
  loop_.schedule_after(pause, [this, first, done, pause, i] {
    start_server(i);
    loop_.schedule_after(pause, [this, first, done, pause] { upgrade_next(first, done + 1, pause); });
  });
}

void World::for_each_secret(const std::function<void(std::string_view, std::string_view, const std::string&)>& each) {
  const auto tell = [&](std::string_view rest, const Bytes& stored) {
    if (stored != nullptr) each(rest.substr(0, rest.find('/')), rest.substr(rest.find('/') + 1), *stored);
  };
  static constexpr std::string_view kInEtcd = "/registry/secrets/", kOnDisk = "//secrets/";
  if (disk_)
    for (const auto& [key, stored] : disk_->secrets()) tell(std::string_view(key).substr(kOnDisk.size()), stored);
  for (const auto& [key, item] : etcd_.items())
    if (key.starts_with(kInEtcd)) tell(std::string_view(key).substr(kInEtcd.size()), item.value);
}

void World::lead(Process& process) {
  for (std::size_t step = 1; step <= servers(); ++step) {
    const std::size_t i = (process.server + step) % servers();
    if (!servers_[i].api) continue;
    process.server = i;
    return process.wire->lead_to(servers_[i].door);
  }
}

Process& World::process(const std::string& name) {
  for (auto& process : processes_)
    if (process->name == name) return *process;
  auto made = std::make_unique<Process>();
  made->name = name;
  made->loop = std::make_unique<ProcessLoop>(loop_);
  made->election = std::make_unique<ProcessLoop>(loop_);
  made->wire = std::make_shared<Wire>(loop_, *made->loop, seed_ * 1000 + 700 + processes_.size());
  made->server = processes_.size() % servers();
  lead(*made);
  processes_.push_back(std::move(made));
  return *processes_.back();
}

void World::kill(std::string_view name, bool says_goodbye) {
  for (auto& component : components_)
    if (component->name == name) {
      component->is_wanted = false;
      component->process->wire->is_dumb = !says_goodbye;
      component->kill();
      component->process->wire->is_dumb = false;
      component->process->loop->go_on();
      component->process->election->go_on();
    }
}

void World::stop_process(Process& process) {
  process.loop->stop();
  process.election->stop();
}

void World::continue_process(Process& process) {
  process.loop->go_on();
  loop_.schedule_after(milliseconds(random_.below(kSchedulingDelayMs)), [&process] {
    if (!process.loop->is_stopped()) process.election->go_on();
  });
}

void World::start(std::string_view name) {
  for (auto& component : components_)
    if (component->name == name && !component->runs()) {
      component->is_wanted = true;
      start_component(*component);
    }
}

}  // namespace berth::world
