#pragma once
#include <map>
#include <string>

#include "apiserver/ground/ground.h"

namespace berth::apiserver {

/// Sets these keys of the ConfigMap, leaving others; waits for the store.
Result<void> publish_client_trust(Ground& ground, const std::map<std::string, std::string>& data);

}  // namespace berth::apiserver
