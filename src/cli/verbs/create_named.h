// create TYPE NAME: one object described by flags, as the documents do it (sa, configmap, clusterrolebinding) and kubectl beside them.
#pragma once
#include <string>
#include <vector>

namespace berth::cli {

/// `args` begins with the type. An unknown type's error tells those that there are, and kubectl's command for the others.
int run_create_named(const std::vector<std::string>& args);
/// The types' names, for help and completion.
std::vector<std::string> creatable_types();

}  // namespace berth::cli
