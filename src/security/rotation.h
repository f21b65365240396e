// The exchange of the cluster's authority and of the key that signs tokens, in three steps between which everybody follows:
//
//   prepare   the new one is there and trusted, the old one signs       ca.crt = old, new      service-account.key = old, new
//   switch    the new one signs, the old one is still trusted           ca.crt = new, old      service-account.key = new, old
//   finish    the old one is gone: what it signed is worth nothing      ca.crt = new           service-account.key = new
//
// A server that runs sees each step within a minute (ServerRole::renew).
#pragma once
#include <string>

#include "base/clock.h"
#include "base/error.h"

namespace berth::security {

enum class RotationStep { kPrepare, kSwitch, kFinish };
/// What was done, and what is to be done next, in words. The error says which step comes first; nothing was changed then.
Result<std::string> rotate_authority(const std::string& pki_directory, RotationStep step, TimePoint now);
Result<std::string> rotate_signing_key(const std::string& pki_directory, RotationStep step);

}  // namespace berth::security
