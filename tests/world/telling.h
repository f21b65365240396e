// One run of a story in a world, to its judgement.
#pragma once
#include "tests/world/judges.h"
#include "tests/world/story.h"
#include "tests/world/subject.h"

namespace berth::world {

class Telling {
 public:
  /// All of it happens here.
  Telling(std::uint64_t seed, const std::vector<Fault>& faults, Ground ground = Ground::kEtcd);

  /// What did not hold.
  Findings findings();
  /// A number that is the same whenever everything went the same way.
  [[nodiscard]] std::size_t fingerprint();
  [[nodiscard]] std::size_t acts() const { return ledger_.acts().size(); }
  [[nodiscard]] std::size_t acknowledged() const;
  /// How often the disk's power failed, and how many acknowledged writes of those that may went with it.
  [[nodiscard]] std::pair<int, int> power_failures();

 private:
  void begin(const Fault& fault);
  void begin_near_etcd(const Fault& fault);
  void end_near_etcd(const Fault& fault);
  /// What is near etcd elsewhere is the disk's here: its power fails, or it is full.
  void begin_near_disk(const Fault& fault);
  void end_near_disk(const Fault& fault);
  void begin_act(const Fault& fault);
  /// What is not for a moment only is put right.
  void end(const Fault& fault);
  void heal();
  /// After everything was judged: one node's machine ends, for good.
  void lose_a_node();

  /// A Deployment with so many replicas: tried until it is.
  void want(const std::string& name, int replicas);
  void scale(const Fault& fault);
  void delete_pod(const Fault& fault);
  void upgrade(const Fault& fault);
  void make_gang(const Fault& fault);
  void end_gang(const std::string& gang);
  void set_dead(const std::string& node, bool is_dead);

  [[nodiscard]] std::size_t server(const Fault& fault) const { return fault.which % world_.servers(); }
  EtcdLink& link(const Fault& fault) { return *world_.server(server(fault)).etcd; }
  /// A component's every other time: there are many others.
  Wire& wire(const Fault& fault) {
    const std::size_t many = fault.which % 2 == 0 ? World::kComponents.size() : world_.processes().size();
    return *world_.processes()[fault.which / 2 % many]->wire;
  }
  Process& component(const Fault& fault) { return world_.process(World::kComponents[fault.which % World::kComponents.size()]); }

  World world_;
  Chronicle chronicle_;
  Ledger ledger_;
  Hand operator_;
  std::vector<std::unique_ptr<RegisterUser>> users_;
  std::vector<std::unique_ptr<RegisterWatcher>> watchers_;
  std::vector<std::pair<std::string, std::unique_ptr<Subject>>> subjects_;
  Findings at_the_end_;
};

}  // namespace berth::world
