// The one configuration file of all roles (docs/configuration.md):
//
//   apiVersion: berth/v1
//   kind: Configuration
//   log: {level: info, format: json}
//   server: {listen: "0.0.0.0:6443", data-dir: /var/lib/berth}
//   scheduler: {config: /etc/berth/scheduler.yaml}
//
// A role's section holds its flags by their names; flags of the command line win. `--config` takes it for every role; where --config means
// a file of the role's own (a KubeSchedulerConfiguration, a KubeletConfiguration), the file's kind decides.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "base/error.h"

namespace CLI {
class App;
}

namespace berth::cli {

/// `args` with what the Configuration that --config names says of the role `app` ("berth server"), and the log set as it says. The same
/// `args` when there is none. The error lists everything that is wrong with the file, a line each.
Result<std::vector<std::string>> with_configuration(const CLI::App& app, std::vector<std::string> args);

/// Whether `app` ("berth server") takes a Configuration and has no --config of its own that its --help would show.
bool takes_only_a_configuration(const CLI::App& app);
/// Whether a `--config` among the arguments names a Configuration, and not a file of the role's own.
bool names_configuration(std::vector<std::string> args);
/// The Configuration that this process was started with; empty: none.
std::string configuration_file();
/// The flags ("--nodes") that it said, and not the command line.
std::set<std::string> configured_flags();

/// Reads the Configuration that this process was started with again: log settings take effect, of the others it is said in the log which
/// changed and wait for a restart; a file with mistakes changes nothing. False when the process was started without one.
bool reload_configuration();

/// Takes --log-format and --log-level, with which a command line may begin, out of it and sets the log.
Result<void> take_log_flags(std::vector<std::string>& args);

}  // namespace berth::cli
