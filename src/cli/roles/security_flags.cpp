#include "cli/roles/security_flags.h"

#include <CLI/CLI.hpp>

#include "base/clock.h"
#include "base/config_reader.h"
#include "client/kubeconfig.h"

namespace berth::cli {
namespace {

void plan_audit(const SecurityFlags& flags, apiserver::audit::LogOptions& out, Findings& findings) {
  const bool has_backend = !flags.audit_log_path.empty() || !flags.audit_webhook_config.empty();
  if (flags.audit_policy_file.empty()) {
    if (has_backend)
      findings.error(
          "--audit-log-path and --audit-webhook-config-file need --audit-policy-file, which says what is written of which requests");
    return;
  }
  if (!has_backend)
    findings.error(
        "--audit-policy-file: give --audit-log-path (- for standard output) or --audit-webhook-config-file, too: nothing would be "
        "written anywhere");
  if (const auto text = findings.take(config::read_whole_file(flags.audit_policy_file)))
    if (auto policy = findings.take(apiserver::audit::parse_policy(*text, flags.audit_policy_file)))
      out.policy = std::make_shared<const apiserver::audit::Policy>(std::move(*policy));
  out.file.path = flags.audit_log_path;
  for (const auto& [flag, value] :
       {std::pair("--audit-log-maxage", flags.audit_log_max_age), std::pair("--audit-log-maxbackup", flags.audit_log_max_backups),
        std::pair("--audit-log-maxsize", flags.audit_log_max_size)})
    if (value < 0) findings.error(fmt::format("{}: {} is below 0", flag, value));
  out.file.max_age_days = flags.audit_log_max_age;
  out.file.max_backups = flags.audit_log_max_backups;
  out.file.max_megabytes = static_cast<std::size_t>(std::max(0, flags.audit_log_max_size));
  if (flags.audit_webhook_config.empty()) return;
  const auto connection = findings.take(client::load_kubeconfig(flags.audit_webhook_config));
  if (!connection) return;
  out.webhook.http = connection->http;
  out.webhook.bearer_token = connection->bearer_token;
  const auto wait = parse_go_duration(flags.audit_webhook_max_wait);
  if (!wait || *wait <= Duration::zero())
    findings.error(fmt::format("--audit-webhook-batch-max-wait: \"{}\" is not a duration above zero", flags.audit_webhook_max_wait));
  else
    out.webhook.max_wait = *wait;
  if (flags.audit_webhook_batch < 1)
    findings.error("--audit-webhook-batch-max-size: must be above zero");
  else
    out.webhook.batch_events = static_cast<std::size_t>(flags.audit_webhook_batch);
}

}  // namespace

void SecurityFlags::add_to(CLI::App& app) {
  app.add_option("--encryption-provider-config", encryption_config,
                 "EncryptionConfiguration: which resources are encrypted in the store, with which keys (aesgcm, aescbc, secretbox, "
                 "identity) or by which key management service (kms v2)");
  app.add_option("--audit-policy-file", audit_policy_file, "audit.k8s.io/v1 Policy: what is written of which requests");
  app.add_option("--audit-log-path", audit_log_path, "The file of the audit log, a JSON event a line; - is standard output");
  app.add_option("--audit-log-maxage", audit_log_max_age, "Days that rotated files are kept; 0: whatever their age")->capture_default_str();
  app.add_option("--audit-log-maxbackup", audit_log_max_backups, "How many rotated files are kept; 0: all")->capture_default_str();
  app.add_option("--audit-log-maxsize", audit_log_max_size, "Megabytes at which the file is rotated; 0: never")->capture_default_str();
  app.add_option("--audit-webhook-config-file", audit_webhook_config, "kubeconfig of a web service that gets the audit events in batches");
  app.add_option("--audit-webhook-batch-max-size", audit_webhook_batch, "The most events of a batch")->capture_default_str();
  app.add_option("--audit-webhook-batch-max-wait", audit_webhook_max_wait, "How long a batch waits to become full")->capture_default_str();
}

SecurityPlan SecurityFlags::plan(Findings& findings) const {
  SecurityPlan out;
  plan_audit(*this, out.audit, findings);
  if (!encryption_config.empty())
    if (const auto text = findings.take(config::read_whole_file(encryption_config)))
      if (auto parsed = findings.take(apiserver::encryption::parse_configuration(*text, encryption_config)))
        out.encryption = std::move(*parsed);
  return out;
}

}  // namespace berth::cli
