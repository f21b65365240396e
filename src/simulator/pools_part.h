// Who makes and gives up the nodes of a scenario's NodePools.
#pragma once
#include <cstdint>
#include <memory>

#include "client/client.h"
#include "placement/profiles.h"
#include "simulator/scenario.h"

namespace berth::pools {
class Runner;
}

namespace berth::simulator {

/// Started. The client must outlive it, and it is let go on the client's loop.
std::shared_ptr<pools::Runner> run_pools(client::Client& client, const PoolsSetting& setting, placement::Profiles profiles,
                                         std::uint64_t seed);

}  // namespace berth::simulator
