// The shared reader of configuration documents, under the names that this folder uses.
#pragma once
#include "base/config_reader.h"

namespace berth::scheduler::config {

using berth::config::nearest;
using berth::config::Problems;
using berth::config::Reader;
using berth::config::Refusal;
using berth::config::suggestion;

}  // namespace berth::scheduler::config
