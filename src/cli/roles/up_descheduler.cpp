#include "cli/roles/up_descheduler.h"

#include <fmt/format.h>

#include "cli/roles/descheduler_role.h"

namespace berth::cli {

struct UpDescheduler::Impl {
  descheduler::DeschedulerOptions options;
  Duration interval{};
  std::unique_ptr<DeschedulerRole> role;
};

UpDescheduler::UpDescheduler(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
UpDescheduler::~UpDescheduler() = default;

std::unique_ptr<UpDescheduler> UpDescheduler::plan(const std::string& policy_file, const std::string& interval_text,
                                                   const scheduler::config::SchedulerConfig& scheduler, Findings& findings) {
  const auto interval = parse_interval(interval_text);
  if (!interval || *interval < std::chrono::seconds(1))
    findings.error(fmt::format("--descheduling-interval {}: a duration of a second or more is wanted, such as 5m", interval_text));
  auto policy = findings.take(descheduler::load_policy(policy_file));
  if (!policy) return nullptr;
  findings.notes(policy->warnings);
  auto impl = std::make_unique<Impl>();
  impl->interval = interval.value_or(Duration::zero());
  impl->options.policy = std::move(*policy);
  impl->options.policy_file = policy_file;
  impl->options.era = scheduler.era;
  if (auto profiles = findings.take(placement::Profiles::create(scheduler.profiles))) impl->options.profiles = std::move(*profiles);
  return std::unique_ptr<UpDescheduler>(new UpDescheduler(std::move(impl)));
}

void UpDescheduler::start(std::shared_ptr<client::Transport> transport) {
  impl_->role = std::make_unique<DeschedulerRole>(std::move(transport), std::move(impl_->options), impl_->interval);
}

}  // namespace berth::cli
