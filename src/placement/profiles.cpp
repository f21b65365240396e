#include "placement/profiles.h"

#include <fmt/format.h>

namespace berth::placement {

Result<Profiles> Profiles::create(const std::vector<Profile>& profiles) {
  Profiles out;
  for (const Profile& profile : profiles) {
    auto framework = Framework::create(profile);
    if (!framework) return invalid(fmt::format("profile \"{}\": {}", profile.scheduler_name, framework.error().message));
    if (!out.add(std::move(*framework))) return invalid(fmt::format("two profiles are named \"{}\"", profile.scheduler_name));
  }
  return out;
}

bool Profiles::add(FrameworkPtr framework) {
  std::string name = framework->profile().scheduler_name;
  return by_name_.try_emplace(std::move(name), std::move(framework)).second;
}

const FrameworkPtr& Profiles::find(std::string_view scheduler_name) const {
  const auto found = by_name_.find(scheduler_name.empty() ? std::string_view("default-scheduler") : scheduler_name);
  return found == by_name_.end() ? otherwise_ : found->second;
}

}  // namespace berth::placement
