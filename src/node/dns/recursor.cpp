#include "node/dns/recursor.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <grp.h>
#include <linux/capability.h>
#include <net/if.h>
#include <pwd.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/owned_fd.h"
#include "node/services/addresses.h"

namespace berth::node::dns {
namespace {

namespace fs = std::filesystem;

sockaddr_in socket_address(const std::string& address, std::uint16_t port) {
  sockaddr_in out{};
  out.sin_family = AF_INET;
  out.sin_port = htons(port);
  ::inet_pton(AF_INET, address.c_str(), &out.sin_addr);
  return out;
}

/// The port that a socket of this type got there; 0: none.
std::uint16_t bound_port(int type, const std::string& address, std::uint16_t port) {
  const OwnedFd socket(::socket(AF_INET, type | SOCK_CLOEXEC, 0));
  const int one = 1;
  if (type == SOCK_STREAM) ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  sockaddr_in at = socket_address(address, port);
  socklen_t size = sizeof at;
  const bool well = ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0 &&
                    ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&at), &size) == 0;
  return well ? ntohs(at.sin_port) : 0;
}

/// Of the loopback's second, third … address: "lo:b1a2b3c".
ifreq alias_of(const std::string& directory) {
  ifreq request{};
  const std::string name = "lo:b" + services::digest(directory).substr(0, 6);
  std::memcpy(request.ifr_name, name.c_str(), name.size() + 1);
  return request;
}

Result<void> failed(const std::string& what) { return fail(ErrorCode::kUnavailable, fmt::format("{}: {}", what, std::strerror(errno))); }

struct User {
  uid_t uid = 65534;
  gid_t gid = 65534;
};
/// The package's own user, or nobody.
User recursor_user() {
  if (const passwd* found = ::getpwnam("pdns")) return {found->pw_uid, found->pw_gid};
  return {};
}

/// In the child: no right of root's but to bind a port below 1024.
bool drop_rights(User user) {
  ::prctl(PR_SET_KEEPCAPS, 1);
  if (::setgroups(0, nullptr) != 0 || ::setresgid(user.gid, user.gid, user.gid) != 0 || ::setresuid(user.uid, user.uid, user.uid) != 0)
    return false;
  __user_cap_header_struct head{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct rights[2]{};
  rights[0].effective = rights[0].permitted = rights[0].inheritable = 1U << CAP_NET_BIND_SERVICE;
  return ::syscall(SYS_capset, &head, rights) == 0 && ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_NET_BIND_SERVICE, 0, 0) == 0;
}

}  // namespace

std::string recursor_config(const RecursorOptions& options) {
  std::string out = fmt::format(R"(# Written by berth at each start.
local-address={}
local-port={}
socket-dir={}
lua-dns-script={}/cluster.lua
allow-from=0.0.0.0/0
disable-packetcache=yes
dnssec=off
qname-minimization=no
dont-query=
security-poll-suffix=
max-cache-entries=20000
max-total-msec=5000
threads=1
pdns-distributes-queries=no
write-pid=no
quiet=yes
loglevel=4
log-timestamp=no
disable-syslog=yes
)",
                                options.address, options.port, options.directory, options.directory);
  if (!options.upstream.empty()) out += fmt::format("forward-zones-recurse=.={}\n", fmt::join(options.upstream, ";"));
  return out;
}

std::string recursor_script(const RecursorOptions& options) {
  return fmt::format(R"(-- Written by berth at each start: names of the cluster are asked of it, a datagram a question.
local backend = newCA("127.0.0.1:{}")
local ours = {{newDN("{}"), newDN("in-addr.arpa"), newDN("ip6.arpa")}}

local function ask(dq, from)
  dq.udpQueryDest = backend
  dq.udpQuery = from .. " " .. dq.qtype .. " " .. dq.qname:toString()
  dq.udpCallback = "answered"
  dq.followupFunction = "udpQueryResponse"
end

function preresolve(dq)
  for _, domain in ipairs(ours) do
    if dq.qname:isPartOf(domain) then
      ask(dq, "0")
      return true
    end
  end
  return false
end

-- "CODE NEXT FOLLOW", then a line a record: "TYPE TTL SECTION NAME CONTENT". A long answer comes in several datagrams.
function answered(dq)
  dq.followupFunction = ""
  dq.variable = true
  local head, records = string.match(dq.udpAnswer, "^([^\n]*)\n(.*)$")
  if head == "pass" then
    return false
  end
  local code, following, follow = string.match(head or "", "^(%d+) (%d+) (%d)$")
  if not code then
    dq.rcode = pdns.SERVFAIL
    return true
  end
  dq.rcode = tonumber(code)
  for kind, ttl, section, name, content in string.gmatch(records, "(%d+) (%d+) (%d) (%S+) ([^\n]+)\n") do
    dq:addRecord(tonumber(kind), content, tonumber(section), tonumber(ttl), name)
  end
  if following ~= "0" then
    ask(dq, following)
  elseif follow == "1" then
    dq.followupFunction = "followCNAMERecords"
  end
  return true
end
)",
                     options.backend_port, options.domain);
}

Recursor::~Recursor() { stop(); }

void Recursor::stop() {
  if (child_ <= 0) return;
  ::kill(child_, SIGTERM);
  for (int i = 0; i < 100; ++i) {
    if (::waitpid(child_, nullptr, WNOHANG) == child_) return void(child_ = -1);
    if (i == 50) ::kill(child_, SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  child_ = -1;
}

bool Recursor::is_running() {
  if (child_ > 0 && ::waitpid(child_, nullptr, WNOHANG) == child_) child_ = -1;
  return child_ > 0;
}

Result<void> Recursor::start(const RecursorOptions& options) {
  stop();
  const std::string program = recursor_program();
  if (program.empty()) return fail(ErrorCode::kUnavailable, "pdns_recursor is missing (package pdns-recursor)");
  const User user = recursor_user();
  std::error_code error;
  fs::create_directories(options.directory, error);
  if (error) return fail(ErrorCode::kUnavailable, fmt::format("{}: {}", options.directory, error.message()));
  for (const auto& [name, text] :
       {std::pair("recursor.conf", recursor_config(options)), std::pair("cluster.lua", recursor_script(options))}) {
    const std::string file = fmt::format("{}/{}", options.directory, name);
    std::ofstream(file, std::ios::trunc) << text;
    ::chmod(file.c_str(), 0644);  // It reads them with its own rights, whatever the umask is here.
  }
  // It makes its control socket there.
  if (::chown(options.directory.c_str(), user.uid, user.gid) != 0) return failed(options.directory);
  const std::string config = "--config-dir=" + options.directory, log = options.directory + "/recursor.log";
  const pid_t parent = ::getpid();
  child_ = ::fork();
  if (child_ < 0) return failed("fork");
  if (child_ > 0) return {};
  const int out = ::open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  ::dup2(out, 1);
  ::dup2(out, 2);
  ::close_range(3, ~0U, 0);
  ::setsid();
  if (!drop_rights(user)) ::_exit(126);
  // After the rights: a change of user takes this back.
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(0);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  ::execl(program.c_str(), "pdns_recursor", config.c_str(), "--daemon=no", static_cast<char*>(nullptr));
  ::_exit(127);
}

std::string recursor_program() {
  for (const char* path : {"/usr/sbin/pdns_recursor", "/usr/local/sbin/pdns_recursor", "/usr/bin/pdns_recursor"})
    if (::access(path, X_OK) == 0) return path;
  return {};
}

std::string own_address(const std::string& directory) {
  const auto hash = std::stoul(services::digest(directory).substr(0, 8), nullptr, 16);
  return fmt::format("198.19.{}.{}", (hash >> 8) % 256, 1 + hash % 254);
}

Result<void> add_own_address(const std::string& directory) {
  const OwnedFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request = alias_of(directory);
  const auto give = [&](unsigned long what, const std::string& value) {
    const sockaddr_in address = socket_address(value, 0);
    std::memcpy(&request.ifr_addr, &address, sizeof address);
    return ::ioctl(socket.get(), what, &request) == 0;
  };
  if (give(SIOCSIFADDR, own_address(directory)) && give(SIOCSIFNETMASK, "255.255.255.255")) return {};
  return failed("the loopback's address " + own_address(directory));
}

bool remove_own_address(const std::string& directory) {
  const OwnedFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request = alias_of(directory);
  const bool was_there = ::ioctl(socket.get(), SIOCGIFADDR, &request) == 0;
  request = alias_of(directory);
  // An alias that is down is gone.
  if (was_there) (void)::ioctl(socket.get(), SIOCSIFFLAGS, &request);
  std::error_code error;
  fs::remove_all(runtime_directory(directory), error);
  return was_there;
}

bool can_bind(const std::string& address, std::uint16_t port) {
  return bound_port(SOCK_DGRAM, address, port) != 0 && bound_port(SOCK_STREAM, address, port) != 0;
}

std::uint16_t free_port(const std::string& address) {
  for (int i = 0; i < 20; ++i)
    if (const std::uint16_t port = bound_port(SOCK_DGRAM, address, 0); port != 0 && bound_port(SOCK_STREAM, address, port) == port)
      return port;
  return 0;
}

std::string runtime_directory(const std::string& directory) { return "/run/berth-dns-" + services::digest(directory); }

}  // namespace berth::node::dns
