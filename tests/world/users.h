// Users of a world: those who keep registers (ConfigMaps whose every write is written down), and one who watches them. What they were told
// is held against etcd's own history.
#pragma once
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "client/client.h"
#include "client/watch_decoder.h"
#include "tests/world/world.h"

namespace berth::world {

/// One thing that a user asked for, and what came of it.
struct Act {
  enum class Kind { kPut, kDelete, kRead };
  enum class Outcome { kOpen, kDone, kRefused, kUnknown };
  Kind kind = Kind::kRead;
  std::string user, name, value;  ///< A read's value: what was read, empty when nothing was there.
  Outcome outcome = Outcome::kOpen;
  store::Revision revision = 0;           ///< kDone: of the object.
  store::Revision least = 0;              ///< What somebody had been told of before it began.
  store::Revision before = 0, after = 0;  ///< etcd's, when it began and when it was answered.
};

/// All users' acts, in the order in which they began.
class Ledger {
 public:
  explicit Ledger(World& world) : world_(world) {}
  std::size_t begin(Act act);
  void end(std::size_t number, Act::Outcome outcome, store::Revision revision, std::string value = {});
  [[nodiscard]] const std::vector<Act>& acts() const { return acts_; }

 private:
  World& world_;
  std::vector<Act> acts_;
  store::Revision told_ = 0;  ///< The newest that anybody was told of.
};

/// Writes, reads and deletes a few shared registers, one act after the other.
class RegisterUser {
 public:
  RegisterUser(World& world, Ledger& ledger, const std::string& name, std::uint64_t seed);
  void stop() { is_stopped_ = true; }

 private:
  void act();
  void next();
  World& world_;
  Ledger& ledger_;
  const std::string name_;
  simulator::Random random_;
  client::Client client_;
  std::map<std::string, std::string> seen_;  ///< The resourceVersion of each register, as last heard of.
  int writes_ = 0;
  bool is_stopped_ = false;
};

/// Watches all registers from a list on, and goes on where it was whenever its watch ends.
class RegisterWatcher {
 public:
  RegisterWatcher(World& world, const std::string& name);
  ~RegisterWatcher() { handle_.reset(); }

  struct Seen {
    std::string type, name;
    store::Revision revision = 0;
  };
  /// From a list to the moment at which its place was gone.
  struct Stretch {
    store::Revision from = 0, to = 0;
    std::vector<Seen> events;
  };
  [[nodiscard]] const std::vector<Stretch>& stretches() const { return stretches_; }
  void stop();

 private:
  void list();
  void watch();
  void take(const client::WatchEvent& event);
  void later(void (RegisterWatcher::*what)());
  World& world_;
  std::shared_ptr<Wire> wire_;
  client::Client client_;
  std::vector<Stretch> stretches_;
  std::unique_ptr<net::StreamHandle> handle_;
  std::shared_ptr<client::WatchDecoder> decoder_;
  bool is_gone_ = false, is_stopped_ = false;
  std::shared_ptr<char> alive_ = std::make_shared<char>();
};

}  // namespace berth::world
