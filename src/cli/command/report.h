// How a subcommand tells what went wrong.
#pragma once
#include "base/error.h"
#include "model/api_status.h"

namespace berth::cli {

/// "error: …" on standard error; returns 1, the exit code.
int report(const Error& error);
int report(const model::ApiStatus& status);

}  // namespace berth::cli
