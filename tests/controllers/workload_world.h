// What the tests of workload controllers share: a fake API under a virtual clock, and the shortest workload of a kind.
#pragma once
#include "controllers/workloads.h"
#include "tests/controllers/fake_api.h"

namespace berth::controllers::testing {

using std::chrono::minutes;
using std::chrono::seconds;

inline const TimePoint kStart = *parse_rfc3339("2026-01-05T10:00:00Z");

struct World {
  VirtualLoop loop{kStart};
  FakeApi api{loop};
  std::size_t pods() const { return api.all(kinds().pod).size(); }
  void settle(Duration d = seconds(2)) {
    loop.run_for(d);
    api.run_pods();
    loop.run_for(d);
  }
};

inline std::string workload(const char* kind, int replicas, const char* extra = "") {
  return fmt::format(
      "apiVersion: apps/v1\nkind: {0}\nmetadata: {{name: w, generation: 1}}\nspec:\n  replicas: {1}\n{2}  selector: {{matchLabels: {{app: "
      "w}}}}\n  template:\n    metadata: {{labels: {{app: w}}}}\n"
      "    spec: {{containers: [{{name: c, image: 'a:1'}}]}}\n",
      kind, replicas, extra);
}

}  // namespace berth::controllers::testing
