// Where a server of this user keeps its data unless --data-dir says otherwise.
#pragma once
#include <string>

namespace berth::cli {

/// $HOME/.berth
std::string default_data_dir();

}  // namespace berth::cli
