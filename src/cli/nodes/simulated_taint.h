// The taint that keeps plain pods from simulated nodes where a real one is beside them.
#pragma once
#include <memory>

#include "base/json.h"
#include "client/transport.h"

namespace berth::cli {

json::Value simulated_taint();

/// Plain pods are for the real node where there is one: simulated nodes beside it (this fleet's and those kept from earlier starts) are
/// tainted, and the taint is taken away where there is none.
void taint_simulated_nodes(const std::shared_ptr<client::Transport>& transport, bool is_wanted);

}  // namespace berth::cli
