// Questions of what-if asked by a command: on all processors, and of answers that were saved.
#pragma once
#include <string>

#include "cli/planning/whatif_input.h"

namespace berth::cli {

/// As Present::ask; single losses are shared by `processes` processes (this one and copies of it): the same answer, byte for byte.
/// Needed: no other thread of this process holds a lock.
Result<json::Value> ask_with_processes(whatif::Present& present, const json::Value& question, std::size_t processes,
                                       const whatif::NameOfChange& name_of);

/// `--check FILE`: whether the saved answer still holds for the cluster of the flags. Prints; the exit code: 0, 1 (cannot be read), 3 (it
/// does not hold).
int check_answer(const std::string& path, WhatIfFlags flags);

}  // namespace berth::cli
