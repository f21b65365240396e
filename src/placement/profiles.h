// The profiles of a scheduler, found by the name that a pod asks for.
#pragma once
#include <map>
#include <string>
#include <string_view>

#include "placement/framework.h"

namespace berth::placement {

/// What `spec.schedulerName` means. A value; frameworks are shared.
class Profiles {
 public:
  Profiles() = default;
  /// One profile for every pod, whatever it asks for.
  Profiles(FrameworkPtr every) : otherwise_(std::move(every)) {}  // NOLINT(google-explicit-constructor): one profile is a set of profiles

  /// Makes the plugin objects of each profile. The error names the profile; two of one name are an error too.
  static Result<Profiles> create(const std::vector<Profile>& profiles);
  /// False when there is a profile of that name already.
  bool add(FrameworkPtr framework);
  /// Pods that ask for a scheduler that is not here are decided by this one.
  void set_otherwise(FrameworkPtr framework) { otherwise_ = std::move(framework); }

  /// Null when nobody here is asked for. An empty name is "default-scheduler".
  [[nodiscard]] const FrameworkPtr& find(std::string_view scheduler_name) const;
  [[nodiscard]] const FrameworkPtr& of(const PodInfo& pod) const { return find(pod.view().scheduler_name); }
  [[nodiscard]] bool contains(std::string_view scheduler_name) const { return by_name_.contains(scheduler_name); }
  [[nodiscard]] const std::map<std::string, FrameworkPtr, std::less<>>& by_name() const { return by_name_; }

 private:
  std::map<std::string, FrameworkPtr, std::less<>> by_name_;
  FrameworkPtr otherwise_;
};

}  // namespace berth::placement
