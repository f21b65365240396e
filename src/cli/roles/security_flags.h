// The flags of `berth server` about who is let in, what is written of it, and how data is kept: kube-apiserver's names.
#pragma once
#include <memory>
#include <string>

#include "apiserver/audit/log.h"
#include "apiserver/encryption/config.h"
#include "cli/command/findings.h"

namespace CLI {
class App;
}

namespace berth::cli {

struct SecurityPlan {
  apiserver::audit::LogOptions audit;  ///< Without a policy: none.
  apiserver::encryption::Configuration encryption;
};

struct SecurityFlags {
  std::string audit_policy_file, audit_log_path, audit_webhook_config;
  std::string encryption_config;
  int audit_log_max_age = 0, audit_log_max_backups = 0, audit_log_max_size = 100;
  int audit_webhook_batch = 400;
  std::string audit_webhook_max_wait = "30s";
  void add_to(CLI::App& app);
  /// Reads the files; changes nothing.
  [[nodiscard]] SecurityPlan plan(Findings& findings) const;
};

}  // namespace berth::cli
