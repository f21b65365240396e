#include "cli/nodes/node_dns.h"

#include <filesystem>
#include <future>

#include "base/log.h"
#include "cli/command/process.h"
#include "node/dns/recursor.h"

namespace berth::cli {
namespace {

std::string absolute_directory(const std::string& directory) { return std::filesystem::absolute(directory).lexically_normal().string(); }

}  // namespace

NodeDns::NodeDns(std::shared_ptr<client::Transport> transport, const std::string& node, const std::string& directory,
                 const std::string& domain)
    : loop_(lasting_loop("dns")), client_(transport, &loop_, "berth-dns"), blocking_(std::move(transport), nullptr, "berth-dns") {
  node::dns::ClusterDnsOptions options{.node = node, .directory = absolute_directory(directory)};
  if (!domain.empty()) options.domain = domain;
  std::promise<void> made;
  loop_.post([&] {
    auto started = node::dns::ClusterDns::start(client_, blocking_, std::move(options), cluster_ip_);
    if (started)
      dns_ = std::move(*started);
    else
      trouble_ = started.error().message;
    made.set_value();
  });
  made.get_future().wait();
  if (!trouble_.empty())
    log::warning("dns", "pods of this node get no names of the cluster, only the machine's own name servers: {}", trouble_);
  if (!dns_) return;
  own_address_ = node::dns::own_address(absolute_directory(directory));
  log::info("dns", "names of the cluster are served at {}", cluster_ip_);
}

NodeDns::~NodeDns() {
  std::promise<void> gone;
  loop_.post([&] {
    dns_.reset();
    gone.set_value();
  });
  gone.get_future().wait();
  loop_.stop();
}

std::vector<std::string> NodeDns::servers() const {
  return cluster_ip_.empty() || cluster_ip_ == "None" ? std::vector<std::string>{} : std::vector{cluster_ip_};
}

std::string remove_dns_address(const std::string& directory) {
  return node::dns::remove_own_address(absolute_directory(directory)) ? "the address of the name service is gone" : "";
}

}  // namespace berth::cli
