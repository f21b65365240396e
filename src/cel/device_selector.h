// Expressions that select devices (resource.k8s.io; dynamic-resource-allocation/cel/compile.go): their environment and their limits.
#pragma once
#include <string>
#include <string_view>

#include "base/expected.h"
#include "cel/cel.h"

namespace berth::cel {

/// The variable `device`: driver, attributes and capacity by domain and name, allowMultipleAllocations.
const Environment& device_environment();

/// A selector's program; or what is wrong with it, in Kubernetes' words ("compilation failed: …", "must evaluate to bool …").
Expected<Program, std::string> compile_device_selector(std::string_view expression);

}  // namespace berth::cel
