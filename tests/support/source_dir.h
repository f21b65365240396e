// Where the project's files are, for tests that read examples and recorded data.
#pragma once
#include <string>

namespace berth::testing {

/// The project's root folder. One generated source holds it, so that objects of tests do not depend on where the checkout is.
std::string source_dir();

}  // namespace berth::testing
