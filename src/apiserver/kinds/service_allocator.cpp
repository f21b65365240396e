#include "apiserver/kinds/service_allocator.h"

#include <arpa/inet.h>

#include "base/mutex.h"

namespace berth::apiserver {
namespace {

std::optional<std::uint32_t> parse_ipv4(std::string_view text) {
  in_addr address{};
  if (inet_pton(AF_INET, std::string(text).c_str(), &address) != 1) return std::nullopt;
  return ntohl(address.s_addr);
}

/// Of an IPv4 range "203.0.113.0/24"; nullopt of any other, and of those without room.
struct Range {
  std::uint32_t base, size;
};
std::optional<Range> parse_range(const std::string& cidr) {
  const auto slash = cidr.find('/');
  const auto base = parse_ipv4(std::string_view(cidr).substr(0, slash));
  int bits = -1;
  if (slash != std::string::npos) std::from_chars(cidr.data() + slash + 1, cidr.data() + cidr.size(), bits);
  if (!base || bits < 8 || bits > 30) return std::nullopt;
  const auto size = std::uint32_t{1} << (32 - bits);
  return Range{*base & ~(size - 1), size};
}

bool wants_cluster_ip(const json::Value& service) { return json::get_string(service, {"spec", "type"}, "ClusterIP") != "ExternalName"; }

/// A Service has no node ports, has those that it names, or has one for each of its ports.
enum class NodePorts : std::uint8_t { kNone, kNamed, kAll };
NodePorts node_ports_for(const json::Value& service) {
  const auto type = json::get_string(service, {"spec", "type"});
  if (type == "NodePort") return NodePorts::kAll;
  if (type != "LoadBalancer") return NodePorts::kNone;
  return json::get_bool(service, {"spec", "allocateLoadBalancerNodePorts"}, true) ? NodePorts::kAll : NodePorts::kNamed;
}

bool wants_health_check_port(const json::Value& service) {
  return json::get_string(service, {"spec", "type"}) == "LoadBalancer" &&
         json::get_string(service, {"spec", "externalTrafficPolicy"}) == "Local";
}

std::set<int> node_ports_of(const json::Value& service) {
  std::set<int> ports;
  for (const auto& port : json::get_array(service, {"spec", "ports"}))
    if (const auto number = json::get_int(port, {"nodePort"}); number != 0) ports.insert(static_cast<int>(number));
  if (const auto number = json::get_int(service, {"spec", "healthCheckNodePort"}); number != 0) ports.insert(static_cast<int>(number));
  return ports;
}

ClaimOwner owner_of(const json::Value& service) {
  return {std::string(json::get_string(service, {"metadata", "namespace"})), std::string(json::get_string(service, {"metadata", "name"}))};
}

model::ApiStatus invalid_service(const json::Value& service, std::string field, std::string value, std::string detail) {
  return model::invalid_object("", "Service", json::get_string(service, {"metadata", "name"}),
                               {{model::FieldError::Type::kInvalid, std::move(field), std::move(value), std::move(detail)}});
}

}  // namespace

Result<void> check_service_range(const std::string& cidr) { return ServiceAllocator().configure(cidr, 1, 1); }

Result<void> ServiceAllocator::configure(const std::string& cidr, int first_port, int last_port) {
  const auto range = parse_range(cidr);
  if (!range) return invalid(fmt::format("service address range \"{}\" is not an IPv4 range with a prefix of 8 to 30 bits", cidr));
  if (first_port < 1 || last_port > 65535 || first_port > last_port)
    return invalid(fmt::format("node port range {}-{} is wrong", first_port, last_port));
  size_ = range->size;
  base_ = range->base;
  const MutexLock lock(mutex_);
  cursor_ = 10;  // The first few are left to well-known services.
  if (cursor_ >= size_ - 1) cursor_ = 2;
  first_port_ = first_port;
  last_port_ = last_port;
  return {};
}

std::string ServiceAllocator::render(std::uint32_t address) const {
  return fmt::format("{}.{}.{}.{}", address >> 24, (address >> 16) & 255, (address >> 8) & 255, address & 255);
}

void ServiceAllocator::adopt(const json::Value& service) {
  const MutexLock lock(mutex_);
  const auto address = parse_ipv4(json::get_string(service, {"spec", "clusterIP"}));
  if (claims_ == nullptr) {
    if (address) addresses_.insert(*address);
    ports_.merge(node_ports_of(service));
    return;
  }
  // It may have been given to the Service by one who knows no claims.
  const ClaimOwner owner = owner_of(service);
  if (address && *address > base_ && *address < base_ + size_ - 1) claims_->confirm(Claimed::kAddress, *address - base_ - 1, owner);
  for (int port : node_ports_of(service))
    if (port >= first_port_ && port <= last_port_) claims_->confirm(Claimed::kPort, static_cast<std::uint32_t>(port - first_port_), owner);
}

bool ServiceAllocator::is_free(std::uint32_t address, const json::Value& service) const {
  return !addresses_.contains(address) && (!book_.is_promised || !book_.is_promised(render(address), service));
}

bool ServiceAllocator::is_in_range(std::uint32_t address) const {
  if (address > base_ && address < base_ + size_ - 1) return true;
  if (claims_ != nullptr || !book_.ranges) return false;
  return std::ranges::any_of(book_.ranges(), [&](const std::string& cidr) {
    const auto range = parse_range(cidr);
    return range && address > range->base && address < range->base + range->size - 1;
  });
}

std::optional<std::uint32_t> ServiceAllocator::find_free_address(const json::Value& service) {
  std::uint32_t tried = 0;
  while (tried < size_ && (cursor_ < 1 || cursor_ >= size_ - 1 || !is_free(base_ + cursor_, service))) {
    cursor_ = cursor_ + 1 >= size_ - 1 ? 1 : cursor_ + 1;
    ++tried;
  }
  if (tried < size_) return base_ + cursor_;
  if (!book_.ranges) return std::nullopt;
  for (const std::string& cidr : book_.ranges()) {
    const auto range = parse_range(cidr);
    for (std::uint32_t i = 1; range && i + 1 < range->size; ++i)
      if (is_free(range->base + i, service)) return range->base + i;
  }
  return std::nullopt;
}

ServiceAllocator::Taken ServiceAllocator::take_address(std::optional<std::uint32_t> wanted, const json::Value& service) {
  if (claims_ == nullptr) {
    const auto address = wanted ? wanted : find_free_address(service);
    if (!address || !is_free(*address, service)) return std::nullopt;
    addresses_.insert(*address);
    return address;
  }
  auto claimed = claims_->claim(Claimed::kAddress, wanted ? std::optional(*wanted - base_ - 1) : std::nullopt, owner_of(service));
  if (!claimed) return std::unexpected(model::internal_error("failed to allocate a serviceIP: " + claimed.error().message));
  return *claimed ? std::optional(base_ + 1 + **claimed) : std::nullopt;
}

ServiceAllocator::Taken ServiceAllocator::take_port(std::optional<std::uint32_t> wanted, const ClaimOwner& owner) {
  if (claims_ == nullptr) {
    if (wanted) return ports_.insert(static_cast<int>(*wanted)).second ? wanted : std::nullopt;
    const auto port = take_free_port();
    return port ? std::optional(static_cast<std::uint32_t>(*port)) : std::nullopt;
  }
  const auto first = static_cast<std::uint32_t>(first_port_);
  if (wanted && (*wanted < first || *wanted > static_cast<std::uint32_t>(last_port_))) return wanted;  // Nobody's to give away.
  auto claimed = claims_->claim(Claimed::kPort, wanted ? std::optional(*wanted - first) : std::nullopt, owner);
  if (!claimed) return std::unexpected(model::internal_error("failed to allocate a nodePort: " + claimed.error().message));
  return *claimed ? std::optional(first + **claimed) : std::nullopt;
}

void ServiceAllocator::give_back(Claimed what, std::uint32_t taken) {
  if (what == Claimed::kAddress)
    addresses_.erase(taken);
  else
    ports_.erase(static_cast<int>(taken));
  if (claims_ == nullptr) return;
  const auto first = what == Claimed::kAddress ? base_ + 1 : static_cast<std::uint32_t>(first_port_);
  if (taken >= first) claims_->release(what, taken - first);
}

std::optional<int> ServiceAllocator::take_free_port() {
  // The first ports are left, while others are free, to those who name theirs (KEP-3668: a thirty-second of the range, 16 to 128).
  const int count = last_port_ - first_port_ + 1;
  const int named = count <= 16 ? 0 : std::clamp(count / 32, 16, 128);
  const int start = std::uniform_int_distribution<int>(named, count - 1)(random_);
  for (int tried = 0; tried < count; ++tried) {
    const int upper = count - named;
    const int offset = tried < upper ? named + (start - named + tried) % upper : tried - upper;
    if (ports_.insert(first_port_ + offset).second) return first_port_ + offset;
  }
  return std::nullopt;
}

model::ApiResult<ServiceAllocation> ServiceAllocator::allocate(json::Value& service, const json::Value* old_service) {
  const MutexLock lock(mutex_);
  ServiceAllocation taken;
  const auto old_ports = old_service ? node_ports_of(*old_service) : std::set<int>();
  auto given = give_address(service, old_service, taken);
  if (given) given = give_health_check_port(service, old_ports, taken);
  if (given) given = give_node_ports(service, old_ports, taken);
  if (given) return taken;
  give_back(taken);
  return std::unexpected(std::move(given.error()));
}

model::ApiResult<void> ServiceAllocator::give_address(json::Value& service, const json::Value* old_service, ServiceAllocation& taken) {
  auto& spec = json::ensure_object(service, {"spec"});
  if (!wants_cluster_ip(service)) {
    for (const char* field : {"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"}) spec.erase(field);
    return {};
  }
  std::string cluster_ip(json::get_string(service, {"spec", "clusterIP"}));
  const auto old_ip = old_service ? json::get_string(*old_service, {"spec", "clusterIP"}) : std::string_view{};
  if (cluster_ip.empty() && !old_ip.empty() && wants_cluster_ip(*old_service)) cluster_ip = old_ip;
  if (cluster_ip.empty()) {
    auto chosen = take_address(std::nullopt, service);
    if (!chosen) return std::unexpected(std::move(chosen.error()));
    if (!*chosen) return std::unexpected(model::internal_error("failed to allocate a serviceIP: range is full"));
    taken.addresses.push_back(**chosen);
    cluster_ip = render(**chosen);
  } else if (cluster_ip != "None" && cluster_ip != old_ip) {
    const auto refused = [&](std::string_view why) {
      return std::unexpected(invalid_service(service, "spec.clusterIPs", fmt::format("[\"{}\"]", cluster_ip),
                                             fmt::format("failed to allocate IP {}: {}", cluster_ip, why)));
    };
    const auto address = parse_ipv4(cluster_ip);
    if (!address || !is_in_range(*address)) return refused("the provided network does not match the current range");
    auto chosen = take_address(*address, service);
    if (!chosen) return std::unexpected(std::move(chosen.error()));
    if (!*chosen) return refused("provided IP is already allocated");
    taken.addresses.push_back(*address);
  }
  spec["clusterIP"] = cluster_ip;
  spec["clusterIPs"] = json::Array{json::Value(cluster_ip)};
  // A headless Service without a selector may have endpoints of any family.
  const bool is_open = cluster_ip == "None" && json::get_object(service, {"spec", "selector"}).empty();
  // Who updates and says nothing means the policy that was there.
  const auto* said = spec.if_contains("ipFamilyPolicy");
  const auto* before = old_service == nullptr ? nullptr : json::find(*old_service, {"spec", "ipFamilyPolicy"});
  const bool is_any = is_open && !spec.contains("ipFamilies");
  const json::Value policy = said != nullptr     ? *said
                             : before != nullptr ? *before
                                                 : json::Value(is_any ? "RequireDualStack" : "SingleStack");
  if (!spec.contains("ipFamilies"))
    spec["ipFamilies"] = is_open && policy != json::Value("SingleStack") ? json::Array{"IPv4", "IPv6"} : json::Array{"IPv4"};
  spec["ipFamilyPolicy"] = policy;
  return {};
}

model::ApiResult<void> ServiceAllocator::give_health_check_port(json::Value& service, const std::set<int>& old_ports,
                                                                ServiceAllocation& taken) {
  if (!wants_health_check_port(service)) return {};
  const auto number = static_cast<int>(json::get_int(service, {"spec", "healthCheckNodePort"}));
  if (number != 0 && old_ports.contains(number)) return {};
  auto chosen = take_port(number != 0 ? std::optional(static_cast<std::uint32_t>(number)) : std::nullopt, owner_of(service));
  if (!chosen) return std::unexpected(std::move(chosen.error()));
  if (!*chosen && number != 0)
    return std::unexpected(
        invalid_service(service, "spec.healthCheckNodePort", std::to_string(number), "provided port is already allocated"));
  if (!*chosen) return std::unexpected(model::internal_error("failed to allocate a HealthCheck NodePort: range is full"));
  taken.ports.push_back(static_cast<int>(**chosen));
  json::ensure_object(service, {"spec"})["healthCheckNodePort"] = static_cast<int>(**chosen);
  return {};
}

model::ApiResult<void> ServiceAllocator::give_node_ports(json::Value& service, const std::set<int>& old_ports, ServiceAllocation& taken) {
  const NodePorts wanted = node_ports_for(service);
  if (wanted == NodePorts::kNone) return {};
  const ClaimOwner owner = owner_of(service);
  auto* ports = json::ensure_object(service, {"spec"}).if_contains("ports");
  if (ports == nullptr || !ports->is_array()) return {};
  std::set<int> used_here;  // TCP and UDP may share one.
  for (std::size_t i = 0; i < ports->get_array().size(); ++i) {
    auto& port = ports->get_array()[i];
    if (!port.is_object()) continue;
    auto number = static_cast<int>(json::get_int(port, {"nodePort"}));
    if (number == 0 && wanted == NodePorts::kNamed) continue;
    if (number == 0) {
      auto free = take_port(std::nullopt, owner);
      if (!free) return std::unexpected(std::move(free.error()));
      if (!*free) return std::unexpected(model::internal_error("failed to allocate a nodePort: range is full"));
      number = static_cast<int>(**free);
      taken.ports.push_back(number);
      port.get_object()["nodePort"] = number;
    } else if (!old_ports.contains(number) && !used_here.contains(number)) {
      const auto refused = [&](std::string why) {
        return std::unexpected(invalid_service(service, fmt::format("spec.ports[{}].nodePort", i), std::to_string(number), std::move(why)));
      };
      if (number < first_port_ || number > last_port_)
        return refused(fmt::format("provided port is not in the valid range. The range of valid ports is {}-{}", first_port_, last_port_));
      auto chosen = take_port(static_cast<std::uint32_t>(number), owner);
      if (!chosen) return std::unexpected(std::move(chosen.error()));
      if (!*chosen) return refused("provided port is already allocated");
      taken.ports.push_back(number);
    }
    used_here.insert(number);
  }
  return {};
}

void ServiceAllocator::give_back(const ServiceAllocation& allocation) {
  for (auto address : allocation.addresses) give_back(Claimed::kAddress, address);
  for (auto port : allocation.ports) give_back(Claimed::kPort, static_cast<std::uint32_t>(port));
}

void ServiceAllocator::release(const ServiceAllocation& allocation) {
  const MutexLock lock(mutex_);
  give_back(allocation);
}

void ServiceAllocator::repair(const std::vector<json::Value>& services) {
  if (claims_ == nullptr) return;
  std::set<std::uint32_t> addresses, ports;
  for (const json::Value& service : services) {
    if (const auto address = parse_ipv4(json::get_string(service, {"spec", "clusterIP"})); address && *address > base_)
      addresses.insert(*address - base_ - 1);
    for (const int port : node_ports_of(service))
      if (port >= first_port_) ports.insert(static_cast<std::uint32_t>(port - first_port_));
  }
  claims_->repair(Claimed::kAddress, addresses);
  claims_->repair(Claimed::kPort, ports);
}

void ServiceAllocator::release_unused(const json::Value& before, const json::Value* now) {
  const MutexLock lock(mutex_);
  const auto old_ip = json::get_string(before, {"spec", "clusterIP"});
  if (const auto address = parse_ipv4(old_ip); address && (now == nullptr || json::get_string(*now, {"spec", "clusterIP"}) != old_ip))
    give_back(Claimed::kAddress, *address);
  const auto kept = now ? node_ports_of(*now) : std::set<int>();
  for (int port : node_ports_of(before))
    if (!kept.contains(port)) give_back(Claimed::kPort, static_cast<std::uint32_t>(port));
}

}  // namespace berth::apiserver
