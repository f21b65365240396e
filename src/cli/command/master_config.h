// OpenShift's master-config.yaml as a file: API server, scheduler and controllers read it.
#pragma once
#include <string>

#include "apiserver/admission/config.h"
#include "base/error.h"

namespace berth::cli {

/// Empty without a path. The error lists all that is wrong with the file.
Result<apiserver::MasterConfig> read_master_config(const std::string& path);

}  // namespace berth::cli
