// A run, or a comparison, as one HTML page that needs nothing else.
#pragma once
#include <string>

#include "simulator/compare.h"

namespace berth::simulator {

std::string to_html(const Outcome& outcome);
std::string to_html(const std::vector<Side>& sides);

}  // namespace berth::simulator
