// Random UUIDs.
#pragma once
#include <string>

namespace berth::security {

/// RFC 4122 version 4, from the machine's cryptographic random source.
std::string random_uuid();

}  // namespace berth::security
