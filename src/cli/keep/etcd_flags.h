// The flags of `berth server` and `berth up` about etcd, by kube-apiserver's names, and the store that they lead to.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cli/command/findings.h"
#include "store/shared.h"

namespace CLI {
class App;
}

namespace berth::cli {

struct EtcdPlan {
  store::EtcdOptions options;  ///< Without servers: the embedded store.
  bool writes_protobuf = true;
  Duration compaction_interval{};
  [[nodiscard]] bool is_wanted() const { return !options.servers.empty(); }
};

struct EtcdFlags {
  std::vector<std::string> servers;
  std::string ca_file, certificate_file, key_file;
  std::string prefix = "/registry";
  std::string media_type = "application/vnd.kubernetes.protobuf";
  std::string compaction_interval = "5m";
  void add_to(CLI::App& app);
  /// Reads the files; changes nothing and connects nowhere.
  [[nodiscard]] EtcdPlan plan(Findings& findings) const;
};

/// Whose prefix it is: the cluster's authority is noted in it. Another cluster's servers are refused before they write anything. `ca_pem`
/// may be several certificates while an authority is being exchanged: any in common is enough.
Result<void> claim_prefix(store::SharedStore& store, const std::string& prefix, const std::string& ca_pem, const std::string& data_dir);

}  // namespace berth::cli
