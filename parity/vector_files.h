// Finds and reads recorded scenarios: single files, folders, packs.
#pragma once
#include <functional>
#include <string>

#include "base/error.h"

namespace berth::scheduler::parity {

/// Calls `visit` with the name and the text of every scenario below `path`, sorted by name: a `.json` file, a folder (all `.json` files
/// below it), or a pack (`.jsonl.gz`: a line a scenario, "name<TAB>JSON"). Returns how many there were; the error names what cannot be
/// read.
Result<std::size_t> for_each_vector(const std::string& path,
                                    const std::function<void(const std::string& name, const std::string& text)>& visit);

}  // namespace berth::scheduler::parity
