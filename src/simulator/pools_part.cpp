#include "simulator/pools_part.h"

#include "pools/runner.h"

namespace berth::simulator {

std::shared_ptr<pools::Runner> run_pools(client::Client& client, const PoolsSetting& setting, placement::Profiles profiles,
                                         std::uint64_t seed) {
  pools::RunnerOptions options;
  options.catalogue = *setting.instance_types;
  options.keeper.profiles = std::move(profiles);
  options.keeper.seed = seed;
  auto out = std::make_shared<pools::Runner>(client, std::move(options));
  out->start();
  return out;
}

}  // namespace berth::simulator
