// base64 (base/base64.h) and random UUIDs.
#pragma once
#include <string>

#include "base/base64.h"

namespace berth::security {

/// RFC 4122 version 4, from the machine's cryptographic random source.
std::string random_uuid();

}  // namespace berth::security
