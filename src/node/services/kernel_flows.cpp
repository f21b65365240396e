// NftKernel's UDP flows, by libnetfilter_conntrack.
#include "node/services/kernel_flows.h"

#include <arpa/inet.h>

#ifdef BERTH_WITH_CONNTRACK
#include <libnetfilter_conntrack/libnetfilter_conntrack.h>
#endif

namespace berth::node::services {
#ifdef BERTH_WITH_CONNTRACK
namespace {

struct CloseHandle {
  void operator()(nfct_handle* handle) const { nfct_close(handle); }
};
struct Destroy {
  void operator()(nf_conntrack* flow) const { nfct_destroy(flow); }
};
using FlowPtr = std::unique_ptr<nf_conntrack, Destroy>;

struct Search {
  const std::function<bool(const Flow&)>& is_stale;
  bool is_ipv6 = false;
  std::vector<FlowPtr> found;
};

std::string address_of(const nf_conntrack* flow, bool is_ipv6, nf_conntrack_attr v4, nf_conntrack_attr v6) {
  char text[INET6_ADDRSTRLEN] = "";
  if (is_ipv6) {
    if (const void* bytes = nfct_get_attr(flow, v6)) ::inet_ntop(AF_INET6, bytes, text, sizeof text);
  } else if (const void* bytes = nfct_get_attr(flow, v4)) {
    ::inet_ntop(AF_INET, bytes, text, sizeof text);
  }
  return text;
}

int look(nf_conntrack_msg_type, nf_conntrack* entry, void* data) {
  auto& search = *static_cast<Search*>(data);
  if (nfct_get_attr_u8(entry, ATTR_L4PROTO) != IPPROTO_UDP) return NFCT_CB_CONTINUE;
  Flow flow;
  flow.asked = address_of(entry, search.is_ipv6, ATTR_ORIG_IPV4_DST, ATTR_ORIG_IPV6_DST);
  flow.answers = address_of(entry, search.is_ipv6, ATTR_REPL_IPV4_SRC, ATTR_REPL_IPV6_SRC);
  flow.asked_port = ntohs(nfct_get_attr_u16(entry, ATTR_ORIG_PORT_DST));
  flow.answers_port = ntohs(nfct_get_attr_u16(entry, ATTR_REPL_PORT_SRC));
  if (search.is_stale(flow)) search.found.emplace_back(nfct_clone(entry));
  return NFCT_CB_CONTINUE;
}

}  // namespace

Result<int> forget_udp_flows(const std::function<bool(const Flow&)>& is_stale) {
  const std::unique_ptr<nfct_handle, CloseHandle> handle(nfct_open(CONNTRACK, 0));
  if (!handle) return fail(ErrorCode::kUnavailable, fmt::format("connection tracking: {}", std::strerror(errno)));
  int forgotten = 0;
  for (const bool is_ipv6 : {false, true}) {
    Search search{is_stale, is_ipv6, {}};
    std::uint32_t family = is_ipv6 ? AF_INET6 : AF_INET;
    nfct_callback_register(handle.get(), NFCT_T_ALL, look, &search);
    if (nfct_query(handle.get(), NFCT_Q_DUMP, &family) != 0)
      return fail(ErrorCode::kUnavailable, fmt::format("listing connections: {}", std::strerror(errno)));
    nfct_callback_unregister(handle.get());
    // One that ended by itself meanwhile is none to complain of.
    for (const FlowPtr& flow : search.found) forgotten += nfct_query(handle.get(), NFCT_Q_DESTROY, flow.get()) == 0 ? 1 : 0;
  }
  return forgotten;
}
#else
Result<int> forget_udp_flows(const std::function<bool(const Flow&)>&) {
  return fail(ErrorCode::kUnavailable, "this berth was built without libnetfilter_conntrack (Debian's libnetfilter-conntrack-dev)");
}
#endif

}  // namespace berth::node::services
