// What berth snapshot and berth check do with an etcd.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "apiserver/etcd/transfer.h"
#include "cli/keep/etcd_flags.h"

namespace CLI {
class App;
}

namespace berth::cli {

/// The flags by which a command finds an etcd and reads what is in it.
struct EtcdAccess {
  EtcdFlags flags;
  std::string encryption_config;
  void add_to(CLI::App& app);
  [[nodiscard]] bool is_wanted() const { return !flags.servers.empty(); }
  /// Reads the files; connects nowhere. All that is wrong is in one error.
  struct Plan {
    EtcdPlan etcd;
    apiserver::encryption::Configuration encryption;
    [[nodiscard]] apiserver::etcd::StoredForm form(const std::string& prefix) const;
  };
  [[nodiscard]] Result<Plan> plan() const;
};

/// berth snapshot move: SQLite to etcd and back.
int run_snapshot_move(const std::vector<std::string>& args);

/// A server without --etcd-servers must not begin an empty cluster where one was that went to etcd.
Result<void> expect_not_moved(const std::string& data_dir);

}  // namespace berth::cli
