// pprof's format (github.com/google/pprof, proto/profile.proto) and folded stacks, for what base/cpu_profile.h took.
#pragma once
#include <string>

#include "base/cpu_profile.h"

namespace berth::net {

/// Gzip of a profile.proto with names: `go tool pprof`, speedscope and Grafana read it. Times are nanoseconds of the wall clock.
std::string pprof_of(const CpuProfile& profile, const Symbols& symbols, std::chrono::nanoseconds taken_at);
/// "outer;inner 12", a line a stack: what flame graphs are drawn from.
std::string folded_stacks(const CpuProfile& profile, const Symbols& symbols);

}  // namespace berth::net
