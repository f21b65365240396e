#include "cli/nodes/serving_certificate.h"

#include "base/config_reader.h"
#include "base/log.h"
#include "base/mutex.h"
#include "security/file_owner.h"

namespace berth::cli {

Result<bool> ServingKeeper::reuse(TimePoint now) {
  const auto text = config::read_whole_file(path());
  if (!text) return false;
  const auto key = text->find("-----BEGIN ", text->find("-----END CERTIFICATE"));
  if (key == std::string::npos) return invalid(fmt::format("{}: is not a certificate and its key", path()));
  const NodeIdentity identity{text->substr(0, key), text->substr(key)};
  const auto facts = net::read_certificate_facts(identity.certificate_pem);
  if (!facts) return invalid(fmt::format("{}: {}", path(), facts.error().message));
  const auto has = [&](const std::string& name) { return std::ranges::find(facts->names, name) != facts->names.end(); };
  if (facts->not_after <= now || !std::ranges::all_of(options_.names, has)) return false;
  if (auto used = adopt(identity); !used) return std::unexpected(used.error());
  return true;
}

Result<void> ServingKeeper::adopt(const NodeIdentity& identity) {
  const auto facts = net::read_certificate_facts(identity.certificate_pem);
  if (!facts) return invalid(facts.error().message);
  if (auto used = options_.use(identity); !used) return used;
  due_ = net::renewal_time(facts->not_before, facts->not_after, options_.share);
  end_ = facts->not_after;
  return {};
}

Result<bool> ServingKeeper::keep(client::Client& client, TimePoint now) {
  if (now < due_) return false;
  const auto identity = order_certificate(client, serving_order(options_.node, options_.names, options_.wait));
  if (!identity) return std::unexpected(identity.error());
  const std::string certificate = identity->certificate_pem.ends_with('\n') ? identity->certificate_pem : identity->certificate_pem + "\n";
  if (auto written = security::write_file(path(), certificate + identity->private_key_pem, 0600); !written)
    return std::unexpected(written.error());
  if (auto used = adopt(*identity); !used) return std::unexpected(used.error());
  return true;
}

ServingThread::ServingThread(ServingKeeper keeper, std::shared_ptr<client::Transport> transport)
    : client_(std::move(transport), nullptr, "berth-node"), keeper_(std::move(keeper)), thread_([this] { run(); }) {}

ServingThread::~ServingThread() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

bool ServingThread::wait_for(std::chrono::milliseconds pause) {
  MutexLock lock(mutex_);
  return !wake_.wait_for(mutex_, pause, [this]() BERTH_REQUIRES(mutex_) { return stopping_; });
}

void ServingThread::run() {
  constexpr std::chrono::milliseconds kLook = std::chrono::seconds(30), kAfterTrouble = std::chrono::minutes(15);
  const SystemClock clock;
  // For as long as somebody may approve it: requests that nobody does are deleted after a day, and asked anew.
  keeper_.set_wait([this] { return wait_for(std::chrono::seconds(5)); });
  if (const auto reused = keeper_.reuse(clock.now()); !reused) log::warning("node", "{}; another one is ordered", reused.error().message);
  // The node must have said where it is before anybody can tell whether the names are its own.
  for (std::chrono::milliseconds pause = std::chrono::seconds(2); wait_for(pause);) {
    if (keeper_.end() == TimePoint{})
      log::info("node",
                "the serving certificate is ordered from the cluster; until somebody approves it (`kubectl certificate approve`) "
                "the node shows one of its own making");
    const auto kept = keeper_.keep(client_, clock.now());
    pause = kept ? kLook : kAfterTrouble;
    const MutexLock lock(mutex_);
    if (stopping_) return;
    if (!kept)
      log::warning("node", "the serving certificate: {}", kept.error().message);
    else if (*kept)
      log::info("node", "the node shows a certificate of the cluster's from now on; it is good until {}", format_rfc3339(keeper_.end()));
  }
}

}  // namespace berth::cli
