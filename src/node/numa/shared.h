// What a node goes by and the scheduler as well stands in placement/numa; on a node it goes by these names.
#pragma once
#include "placement/numa/alignment.h"
#include "placement/numa/number_list.h"

namespace berth::node {
using placement::numa::Refusal;
namespace numa {
using namespace placement::numa;
}
}  // namespace berth::node
