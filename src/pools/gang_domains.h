// Gangs whose group names required topology keys: their nodes are bought in one domain.
#pragma once
#include <functional>

#include "pools/plan.h"

namespace berth::pools {

using Planner = std::function<ProvisionPlan(const ProvisionInput&)>;

/// The input with every such gang's waiting pods bound to one domain: the one in which members stand, or else the one where enough of them
/// get places at the least cost, by plans for the gang alone. Names of nodes are no domains to buy in: such a key is left to the scheduler.
ProvisionInput in_domains(const ProvisionInput& input, const Planner& plan);

}  // namespace berth::pools
