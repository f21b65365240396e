// From --etcd-servers to a store that may be written to.
#ifdef BERTH_WITH_ETCD
#include <fmt/format.h>

#include <charconv>
#include <set>

#include "base/log.h"
#include "store/etcd/certificates.h"
#include "store/etcd/etcd_store.h"

namespace berth::store::etcd {
namespace {

struct Address {
  std::string shown, target;
  bool is_tls = false;
};

Result<Address> parse_address(const std::string& text) {
  Address address{text, text, false};
  if (address.target.starts_with("https://")) {
    address.is_tls = true;
    address.target.erase(0, 8);
  } else if (address.target.starts_with("http://")) {
    address.target.erase(0, 7);
  } else if (address.target.find("://") != std::string::npos) {
    return invalid(fmt::format("--etcd-servers: \"{}\" is neither http://HOST:PORT nor https://HOST:PORT", text));
  }
  while (address.target.ends_with('/')) address.target.pop_back();
  const auto colon = address.target.ends_with(']') ? std::string::npos : address.target.rfind(':');
  if (address.target.empty() || colon == 0 || address.target.find('/') != std::string::npos)
    return invalid(fmt::format("--etcd-servers: \"{}\" is neither http://HOST:PORT nor https://HOST:PORT", text));
  if (colon == std::string::npos) {
    address.target += ":2379";
    return address;
  }
  const std::string_view port = std::string_view(address.target).substr(colon + 1);
  unsigned number = 0;
  const auto [end, wrong] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (wrong != std::errc() || end != port.data() + port.size() || number == 0 || number > 65535)
    return invalid(fmt::format("--etcd-servers: \"{}\": \"{}\" is no port from 1 to 65535", text, port));
  return address;
}

Member connect(const Address& address, const EtcdOptions& options) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(static_cast<int>(options.most_answer_bytes));
  arguments.SetMaxSendMessageSize(-1);
  // A link that is cut tells nobody; etcd ends those who ask more often than every 5 s.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 6000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 3000);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 2000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  const auto credentials = address.is_tls ? grpc::SslCredentials({options.ca_pem, options.key_pem, options.certificate_pem})
                                          : grpc::InsecureChannelCredentials();
  Member member;
  member.address = address.shown;
  member.channel = grpc::CreateCustomChannel(address.target, credentials, arguments);
  member.kv = pb::KV::NewStub(member.channel);
  member.watch = pb::Watch::NewStub(member.channel);
  member.lease = pb::Lease::NewStub(member.channel);
  member.maintenance = pb::Maintenance::NewStub(member.channel);
  return member;
}

std::string why_unreachable(const std::string& shown, const EtcdOptions& options, const grpc::Status& status) {
  if (shown.starts_with("https://")) {
    std::string target = shown.substr(8);
    while (target.ends_with('/')) target.pop_back();
    if (target.rfind(':') == std::string::npos) target += ":2379";
    if (const auto why = explain_tls(target, options); !why.empty()) return why;
  }
  return fmt::format("{}; does etcd run there, and does it serve TLS (https://)?", status.error_message());
}

}  // namespace

EtcdStore::Roll EtcdStore::call_roll() {
  constexpr auto kPatience = std::chrono::seconds(3);
  Roll roll;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    pb::StatusResponse answer;
    grpc::Status status;
    // The first try tells why nobody answers; the second waits for one who is slow.
    for (const bool patient : {false, true}) {
      grpc::ClientContext context;
      context.set_deadline(std::chrono::system_clock::now() + kPatience);
      context.set_wait_for_ready(patient);
      const auto watch = end_late(context, kPatience);
      const auto tried = members_[i].maintenance->Status(&context, {}, &answer);
      if (!patient || tried.ok()) status = tried;
      if (status.ok()) break;
    }
    if (!status.ok()) {
      const std::string& text = status.error_message();
      // gRPC calls what the kernel waited for in vain unavailable, like what is not there; its words tell.
      roll.is_slow = roll.is_slow || status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED || text.contains("timed out");
      roll.unreachable += fmt::format("{}{}: {}", roll.unreachable.empty() ? "" : "; ", members_[i].address,
                                      why_unreachable(members_[i].address, options_, status));
      continue;
    }
    roll.clusters.emplace(answer.header().cluster_id(), members_[i].address);
    if (!roll.answering) roll.answering = i;
  }
  return roll;
}

Result<void> EtcdStore::examine() {
  // One that takes connections and says nothing yet is starting, or has no processor at the moment.
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  Roll roll = call_roll();
  while (!roll.answering && roll.is_slow && std::chrono::steady_clock::now() < give_up) roll = call_roll();
  const auto& [clusters, unreachable, answering, is_slow] = roll;
  if (!answering) return fail(ErrorCode::kUnavailable, fmt::format("no etcd answers. {}", unreachable));
  if (!unreachable.empty()) log::warning("etcd", "not every member answers, the others are used: {}", unreachable);
  if (clusters.size() > 1) {
    std::string which;
    for (const auto& [id, address] : clusters) which += fmt::format("{}{} ({:x})", which.empty() ? "" : ", ", address, id);
    return invalid(fmt::format("--etcd-servers names members of different clusters: {}. Name those of one; nothing was written", which));
  }
  current_ = *answering;
  pb::AlarmResponse alarms;
  auto asked = ask([&](Member& member, grpc::ClientContext& context) { return member.maintenance->Alarm(&context, {}, &alarms); }, 10);
  if (!asked) return asked;
  for (const pb::AlarmMember& alarm : alarms.alarms()) {
    if (alarm.alarm() == pb::NOSPACE)
      return fail(ErrorCode::kUnavailable,
                  fmt::format("etcd takes no writes: member {:x} has raised the alarm NOSPACE (its database is as large as "
                              "--quota-backend-bytes). Make room (etcdctl compact REVISION; etcdctl defrag, or a larger quota), then "
                              "etcdctl alarm disarm; nothing was written",
                              alarm.memberid()));
    if (alarm.alarm() == pb::CORRUPT)
      return fail(ErrorCode::kCorrupt,
                  fmt::format("etcd has raised the alarm CORRUPT: member {:x}'s data differs from the others'. Replace that member "
                              "(etcdctl member remove, then add), then etcdctl alarm disarm; nothing was written",
                              alarm.memberid()));
  }
  return {};
}

}  // namespace berth::store::etcd

namespace berth::store {

Result<std::unique_ptr<SharedStore>> open_etcd_store(EtcdOptions options) {
  if (auto usable = check_etcd_certificates(options); !usable) return std::unexpected(usable.error());
  while (options.prefix.ends_with('/')) options.prefix.pop_back();
  if (!options.prefix.starts_with('/'))
    return invalid(fmt::format("--etcd-prefix: \"{}\" must begin with / and name something", options.prefix));
  std::vector<etcd::Member> members;
  bool any_tls = false;
  for (const std::string& server : options.servers) {
    auto address = etcd::parse_address(server);
    if (!address) return std::unexpected(address.error());
    any_tls = any_tls || address->is_tls;
    members.push_back(etcd::connect(*address, options));
  }
  if (members.empty()) return invalid("--etcd-servers names no server");
  if (!any_tls && !(options.ca_pem.empty() && options.certificate_pem.empty()))
    return invalid("--etcd-cafile and --etcd-certfile are for https:// servers, and --etcd-servers names none");
  auto store = std::make_unique<etcd::EtcdStore>(std::move(options), std::move(members));
  if (auto sound = store->examine(); !sound) return std::unexpected(sound.error());
  return store;
}

}  // namespace berth::store
#else
#include "store/shared.h"

namespace berth::store {

Result<void> check_etcd_certificates(const EtcdOptions&) { return {}; }

Result<std::unique_ptr<SharedStore>> open_etcd_store(EtcdOptions) {
  return invalid(
      "this berth was built without etcd: install libgrpc++-dev, protobuf-compiler and protobuf-compiler-grpc, and build it again");
}

}  // namespace berth::store
#endif
