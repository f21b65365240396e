// How files are written that others count on: whole, and by whom they are to be read.
#pragma once
#include <sys/types.h>

#include <string>
#include <string_view>

#include "base/error.h"

namespace berth::security {

/// What root writes into another's directory (`berth adm rotate`, `berth adm revoke`, where the server has a user of its own) is made that
/// other's, as is everything there: he has to read it. Where that cannot be it stays root's. For whoever else runs, nothing.
void give_to_owner(int fd, const std::string& path);
/// Replaces the file as a whole, in the directory's owner's name: a crash leaves the old one or the new one.
Result<void> write_file(const std::string& path, std::string_view text, mode_t mode);

}  // namespace berth::security
