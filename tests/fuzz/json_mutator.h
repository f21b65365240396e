// Changes JSON documents as documents: what a byte-wise mutator would break at once gets past the parser and into what reads the fields.
#pragma once
#include <random>

#include "base/json.h"

namespace berth::fuzz {

using Random = std::minstd_rand;

/// Changes one to four places of `root`: a value replaced by an odd one, removed, doubled, swapped, or taken from `donor` (which may be
/// `root` itself). The result stays below 200 levels.
void mutate_json(json::Value& root, const json::Value& donor, Random& random);

}  // namespace berth::fuzz
