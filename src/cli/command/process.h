// What every long-running role of the binary needs from the operating system.
#pragma once
#include <string>

#include "base/error.h"
#include "base/event_loop.h"

namespace berth::cli {

/// Blocks SIGINT, SIGTERM, SIGHUP and SIGPIPE in this thread and all made after it: call first in a role's main.
void block_signals();
/// Waits for SIGINT, SIGTERM or SIGHUP and returns its number; a process that was started with a Configuration reads it again on SIGHUP and
/// goes on. A second SIGINT later ends the process at once.
int wait_for_signal();
/// `host:port`, `:port` or `host`; the port may be 0. The error says what is wrong.
struct ListenAddress {
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;
};
Result<ListenAddress> parse_listen(const std::string& text, std::uint16_t default_port);
/// Makes a directory (and those above it) with mode 0700; an existing one is left as it is.
Result<void> make_private_directory(const std::string& path);
/// `text` as one word of a shell, quoted where that is needed.
std::string shell_word(std::string_view text);
/// This program's directory where nobody finds a `berth` by its name; empty: it is found.
std::string directory_to_add_to_path();
/// A host as URLs hold it: an IPv6 address in brackets.
std::string url_host(const std::string& host);
/// The machine's name; empty when it has none.
std::string host_name();
/// Raises the limit of open files as far as the system lets us: each watch of a node is a connection.
void raise_file_limit();

/// A loop that is there until the process ends: in one process with the server, an answer may still come for a role that was stopped. The
/// role stops it; what is posted then is not run.
ThreadLoop& lasting_loop(std::string name);

}  // namespace berth::cli
