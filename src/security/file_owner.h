// Whose a file is that a command makes beside a server's.
#pragma once
#include <string>

namespace berth::security {

/// What root writes into another's directory (`berth adm rotate`, `berth adm revoke`, where the server has a user of its own) is made that
/// other's, as is everything there: he has to read it. Where that cannot be it stays root's. For whoever else runs, nothing.
void give_to_owner(int fd, const std::string& path);

}  // namespace berth::security
