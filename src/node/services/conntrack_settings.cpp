#include "node/services/conntrack_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <utility>

#include "base/log.h"

namespace berth::node::services {

void raise_conntrack_settings(const std::string& root, unsigned processors) {
  const std::pair<const char*, std::int64_t> wanted[] = {{"nf_conntrack_max", std::max<std::int64_t>(32768LL * processors, 131072)},
                                                         {"nf_conntrack_tcp_timeout_established", 86400},
                                                         // A pod that closes half of a connection may answer for an hour yet.
                                                         {"nf_conntrack_tcp_timeout_close_wait", 3600}};
  for (const auto& [name, value] : wanted) {
    const std::string path = fmt::format("{}/net/netfilter/{}", root, name);
    const auto read = [&] {
      std::int64_t is = -1;
      std::ifstream(path) >> is;
      return is;
    };
    if (const std::int64_t is = read(); is < 0 || is >= value) continue;
    std::ofstream(path) << value << "\n";
    if (const std::int64_t is = read(); is < value)
      log::warning("proxy", "{} stays {} where {} is wanted: it cannot be written", path, is, value);
  }
}

}  // namespace berth::node::services
