// Flags of a component as OpenShift's files give them: schedulerArguments, controllerArguments, apiServerArguments, kubeletArguments.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "base/config_reader.h"

namespace berth::config {

struct Argument {
  std::vector<std::string> values;
  std::string place;  ///< "FILE:LINE: PATH", for what is said of it.
};
/// By the flag's name, without dashes before it.
using Arguments = std::map<std::string, Argument, std::less<>>;

/// A map of lists (`feature-gates: [A=true]`), of single values (`v: 2`), or as the documents write it where the map should stand:
/// `disablePreemption=false`, alone or as a list of such. Problems are the reader's.
Arguments read_arguments(const Reader& at);

/// What is to be done with a name that is none of `known`. A near one is meant: it is refused, since the setting would be lost in silence.
/// Any other is of a version or a plugin that is not known here: it is told.
void refuse_near(const Reader& at, std::string_view name, std::span<const std::string_view> known, std::string_view what);

/// The names of a flag that takes lists and may be repeated: --enable=a,b --enable=c.
std::vector<std::string> split_at_commas(const std::vector<std::string>& entries);

}  // namespace berth::config
