// Files of a volume that change all at once: a fresh directory, and one rename of the link that everybody reads through (volume/util
// AtomicWriter).
#pragma once
#include <map>
#include <optional>
#include <string>

#include "base/error.h"

namespace berth::node::agent {

struct VolumeFile {
  std::string content;
  int mode = 0644;
  std::optional<std::int64_t> owner;  ///< User id.
};
/// By the path inside the volume.
using VolumeFiles = std::map<std::string, VolumeFile>;

/// Makes the directory's content be `files`: readers see all of the old or all of the new, and files no longer wanted go. Nothing is
/// written when all is as it should be. `group` (fsGroup), when given, owns files and directories, and may read them. After an error the
/// old content stands.
Result<void> write_volume_files(const std::string& directory, const VolumeFiles& files, std::optional<std::int64_t> group);

}  // namespace berth::node::agent
