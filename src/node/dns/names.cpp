#include "node/dns/names.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <ranges>
#include <unordered_set>

#include "base/split.h"

namespace berth::node::dns {
namespace {

constexpr int kMaxAliases = 8;

std::string lower_case(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

std::vector<std::string> labels_of(std::string_view name) {
  if (name.empty()) return {};
  if (name.ends_with('.')) name.remove_suffix(1);
  return split(name, '.').list<std::string>();
}

/// The name without `.DOMAIN`; nullopt: it is not below it.
std::optional<std::string_view> below(std::string_view name, std::string_view domain) {
  if (name == domain) return std::string_view{};
  if (name.size() <= domain.size() || !name.ends_with(domain) || name[name.size() - domain.size() - 1] != '.') return std::nullopt;
  return name.substr(0, name.size() - domain.size() - 1);
}

bool is_ipv6(std::string_view address) { return address.find(':') != std::string_view::npos; }
std::uint16_t address_type(std::string_view address) { return is_ipv6(address) ? kAaaa : kA; }
bool wants(std::uint16_t asked, std::uint16_t type) { return asked == type || asked == kAny; }

/// "10-0-0-1", "fd00--1": an address as a label.
std::string dashed(std::string_view address) {
  std::string out(address);
  std::ranges::replace(out, is_ipv6(address) ? ':' : '.', '-');
  // A label neither begins nor ends with a dash.
  if (out.starts_with('-')) out.insert(0, "0");
  if (out.ends_with('-')) out += '0';
  return out;
}

/// An address in the one form in which all of them are compared.
std::string canonical(std::string_view address) {
  const std::string text(address);
  std::array<unsigned char, 16> bytes{};
  std::array<char, INET6_ADDRSTRLEN> out{};
  const int family = is_ipv6(address) ? AF_INET6 : AF_INET;
  if (::inet_pton(family, text.c_str(), bytes.data()) != 1) return {};
  return ::inet_ntop(family, bytes.data(), out.data(), out.size());
}

/// The address that a label of a pod's name stands for; empty: none.
std::string address_in(std::string label) {
  if (std::ranges::count(label, '-') == 3)
    if (std::string v4 = label; std::ranges::replace(v4, '-', '.'), !canonical(v4).empty()) return canonical(v4);
  std::ranges::replace(label, '-', ':');
  return canonical(label);
}

/// The address of a name below in-addr.arpa or ip6.arpa.
std::string reversed_address(std::string_view name) {
  auto labels = labels_of(name);
  if (labels.size() == 6 && name.ends_with(".in-addr.arpa"))
    return canonical(fmt::format("{}.{}.{}.{}", labels[3], labels[2], labels[1], labels[0]));
  if (labels.size() != 34 || !name.ends_with(".ip6.arpa")) return {};
  std::string out;
  for (int i = 31; i >= 0; --i) {
    out += labels[static_cast<std::size_t>(i)];
    if (i % 4 == 0 && i > 0) out += ':';
  }
  return canonical(out);
}

/// The records of one reply, each once, as many as an answer can hold.
class Records {
 public:
  explicit Records(std::vector<Record>& into) : into_(into) {}
  [[nodiscard]] bool is_full() const { return into_.size() >= kMostRecords; }
  void add(Record record) {
    if (!is_full() && seen_.insert(fmt::format("{} {} {}", record.type, record.name, record.content)).second)
      into_.push_back(std::move(record));
  }

 private:
  std::vector<Record>& into_;
  std::unordered_set<std::string> seen_;
};

std::string without_underscore(std::string_view label) { return std::string(label.substr(label.starts_with('_') ? 1 : 0)); }

}  // namespace

Names::Names(std::string domain) : domain_(lower_case(domain)) {}

std::string Names::service_name(const Key& key) const { return fmt::format("{}.{}.svc.{}.", key.second, key.first, domain_); }

void Names::index(const Key& key, const Service& service, bool adds) {
  const auto put = [&](const std::string& address, const std::string& hostname) {
    auto& at = by_address_[address];
    adds ? (void)at.insert({key, hostname}) : (void)at.erase({key, hostname});
    if (at.empty()) by_address_.erase(address);
  };
  for (const std::string& ip : service.cluster_ips) put(ip, "");
  for (const Endpoint& e : service.endpoints) put(e.address, e.hostname);
}

void Names::set_service(const json::Value& document, const std::vector<const json::Value*>& slices) {
  const Key key{json::get_string(document, {"metadata", "namespace"}), json::get_string(document, {"metadata", "name"})};
  erase_service(key.first, key.second);
  Service service;
  if (json::get_string(document, {"spec", "type"}) == "ExternalName")
    service.external_name = lower_case(json::get_string(document, {"spec", "externalName"}));
  service.is_headless = json::get_string(document, {"spec", "clusterIP"}) == "None";
  const auto port_in = [](const json::Value& port, std::string_view field) {
    return Port{std::string(json::get_string(port, {"name"})), lower_case(json::get_string(port, {"protocol"}, "TCP")),
                static_cast<std::uint16_t>(json::get_int(port, {field}))};
  };
  const auto add_ip = [&](std::string_view ip) {
    if (std::string one = canonical(ip); !one.empty() && std::ranges::find(service.cluster_ips, one) == service.cluster_ips.end())
      service.cluster_ips.push_back(std::move(one));
  };
  add_ip(json::get_string(document, {"spec", "clusterIP"}));
  for (const json::Value& ip : json::get_array(document, {"spec", "clusterIPs"}))
    if (ip.is_string()) add_ip(json::as_view(ip));
  for (const json::Value& port : json::get_array(document, {"spec", "ports"})) service.ports.push_back(port_in(port, "port"));
  for (const json::Value* slice : slices) {
    const auto ports = std::make_shared<std::vector<Port>>();
    for (const json::Value& port : json::get_array(*slice, {"ports"})) ports->push_back(port_in(port, "port"));
    for (const json::Value& one : json::get_array(*slice, {"endpoints"})) {
      if (!json::get_bool(one, {"conditions", "ready"}, true)) continue;
      for (const json::Value& address : json::get_array(one, {"addresses"})) {
        std::string ip = address.is_string() ? canonical(json::as_view(address)) : std::string();
        if (ip.empty()) continue;
        const std::string_view hostname = json::get_string(one, {"hostname"});
        service.endpoints.push_back({hostname.empty() ? dashed(ip) : lower_case(hostname), ip, ports});
        service.by_hostname[service.endpoints.back().hostname].push_back(service.endpoints.size() - 1);
      }
    }
  }
  index(key, service, true);
  services_[key] = std::move(service);
}

void Names::erase_service(const std::string& ns, const std::string& name) {
  const auto found = services_.find({ns, name});
  if (found == services_.end()) return;
  index(found->first, found->second, false);
  services_.erase(found);
}

/// No such name, or no such record of a name that is there: the zone's own record says for how long that may be believed.
Reply Names::nothing(bool exists) const {
  Reply out;
  out.code = exists ? ResponseCode::kNoError : ResponseCode::kNxDomain;
  out.records.push_back(
      {kSoa, Section::kAuthority, domain_ + ".", fmt::format("ns.dns.{0}. hostmaster.{0}. 1 7200 1800 86400 {1}", domain_, kTtlSeconds)});
  return out;
}

Reply Names::ask(std::string_view name, std::uint16_t type) const { return ask_at_depth(name, type, 0); }

Reply Names::ask_at_depth(std::string_view asked, std::uint16_t type, int depth) const {
  std::string name = lower_case(asked);
  if (name.ends_with('.')) name.pop_back();
  if (name.ends_with(".arpa")) return reverse(name, type);
  const auto inner = below(name, domain_);
  if (!inner) return {.is_ours = false, .code = {}, .records = {}};
  const std::string full = name + ".";
  const auto labels = labels_of(*inner);
  if (labels.empty()) {
    Reply out = nothing(true);
    if (wants(type, kSoa)) out.records[0].section = Section::kAnswer;
    if (type == kNs) out.records = {{kNs, Section::kAnswer, full, fmt::format("ns.dns.{}.", domain_)}};
    return out;
  }
  if (labels.size() == 1 && labels[0] == "dns-version") {
    if (!wants(type, kTxt)) return nothing(true);
    return {.code = {}, .records = {{kTxt, Section::kAnswer, full, "\"1.1.0\""}}};
  }
  if (labels.back() == "svc") return about_service(labels, full, type, depth);
  if (labels.back() == "pod") return about_pod(labels, full, type);
  return nothing(labels.back() == "dns");
}

/// "10-0-0-1.NAMESPACE.pod": the address itself, whether or not a pod has it (as CoreDNS does by default).
Reply Names::about_pod(const std::vector<std::string>& labels, const std::string& name, std::uint16_t type) const {
  if (labels.size() == 1) return nothing(true);
  if (!namespaces_.contains(labels[labels.size() - 2])) return nothing(false);
  if (labels.size() == 2) return nothing(true);
  const std::string address = labels.size() == 3 ? address_in(labels[0]) : std::string();
  if (address.empty()) return nothing(false);
  if (!wants(type, address_type(address))) return nothing(true);
  return {.code = {}, .records = {{address_type(address), Section::kAnswer, name, address}}};
}

Reply Names::external(const Service& service, const std::string& name, std::uint16_t type, int depth) const {
  Reply out;
  std::string target = service.external_name;
  if (target.ends_with('.')) target.pop_back();
  out.records.push_back({kCname, Section::kAnswer, name, target + "."});
  if (type == kCname || type == kAny || depth >= kMaxAliases) return out;
  Reply rest = ask_at_depth(target, type, depth + 1);
  out.leads_outside = !rest.is_ours || rest.leads_outside;
  out.code = rest.code;
  std::ranges::move(rest.records, std::back_inserter(out.records));
  return out;
}

/// [_PORT._PROTOCOL.]SERVICE.NAMESPACE.svc or ENDPOINT.SERVICE.NAMESPACE.svc
Reply Names::about_service(const std::vector<std::string>& labels, const std::string& name, std::uint16_t type, int depth) const {
  const std::size_t count = labels.size();
  if (count == 1) return nothing(true);
  const std::string& ns = labels[count - 2];
  if (count == 2) return nothing(namespaces_.contains(ns));
  const auto found = services_.find({ns, labels[count - 3]});
  if (found == services_.end() || count > 5) return nothing(false);
  const auto& [key, service] = *found;
  if (!service.external_name.empty()) return count == 3 ? external(service, name, type, depth) : nothing(false);
  const std::string hostname = count == 4 ? labels[0] : "", port = count == 5 ? without_underscore(labels[0]) : "",
                    protocol = count == 5 ? without_underscore(labels[1]) : "";
  const auto fits = [&](const Port& one) { return count != 5 || (one.name == port && one.protocol == protocol); };
  Reply out;
  Records records(out.records);
  bool exists = false;
  const auto add_address = [&](const std::string& address) {
    exists = true;
    if (wants(type, address_type(address))) records.add({address_type(address), Section::kAnswer, name, address});
  };
  if (count == 4) {
    if (const auto named = service.by_hostname.find(hostname); named != service.by_hostname.end())
      for (const std::size_t at : named->second) ++looked_at_, add_address(service.endpoints[at].address);
  } else if (service.is_headless) {
    for (const Endpoint& e : service.endpoints) {
      if (records.is_full()) break;
      ++looked_at_;
      if (std::ranges::any_of(*e.ports, fits) || (e.ports->empty() && count == 3)) add_address(e.address);
    }
  } else if (count == 3 || std::ranges::any_of(service.ports, fits)) {
    for (const std::string& ip : service.cluster_ips) add_address(ip);
  }
  if (!exists) return nothing(false);
  if (wants(type, kSrv) && count != 4) add_services_of(key, service, name, port, protocol, out.records);
  return out.records.empty() ? nothing(true) : out;
}

/// SRV records, and the addresses of the names that they lead to.
void Names::add_services_of(const Key& key, const Service& service, const std::string& name, std::string_view port,
                            std::string_view protocol, std::vector<Record>& into) const {
  std::vector<Record> target_records;
  Records services(into), targets(target_records);
  const auto add = [&](const Port& one, const std::string& target, const std::vector<std::string>& addresses) {
    if (!port.empty() && (one.name != port || one.protocol != protocol)) return;
    services.add({kSrv, Section::kAnswer, name, fmt::format("0 100 {} {}", one.number, target)});
    for (const std::string& address : addresses) targets.add({address_type(address), Section::kAdditional, target, address});
  };
  if (service.is_headless) {
    for (const Endpoint& e : service.endpoints) {
      if (services.is_full()) break;
      ++looked_at_;
      const std::string target = fmt::format("{}.{}", e.hostname, service_name(key));
      for (const Port& one : *e.ports) add(one, target, {e.address});
    }
  } else {
    for (const Port& one : service.ports) add(one, service_name(key), service.cluster_ips);
  }
  for (Record& extra : target_records)
    if (!services.is_full()) into.push_back(std::move(extra));
}

Reply Names::reverse(std::string_view name, std::uint16_t type) const {
  const std::string address = reversed_address(name);
  const auto found = by_address_.find(address);
  if (address.empty() || found == by_address_.end()) return {.is_ours = false, .code = {}, .records = {}};
  if (!wants(type, kPtr)) return nothing(true);
  Reply out;
  for (const auto& [key, hostname] : found->second | std::views::take(kMostRecords))
    out.records.push_back({kPtr, Section::kAnswer, std::string(name) + ".",
                           hostname.empty() ? service_name(key) : fmt::format("{}.{}", hostname, service_name(key))});
  return out;
}

std::string Pages::answer(const Names& names, std::string_view name, std::uint16_t type, std::size_t from, std::size_t room) {
  const auto is_it = [&](const Kept& one) { return one.type == type && one.name == name; };
  if (from != 0)
    if (const auto found = std::ranges::find_if(kept_, is_it); found != kept_.end()) return datagram_of(found->reply, from, room);
  Reply reply = names.ask(name, type);
  std::string page = datagram_of(reply, from, room);
  if (reply.records.size() < 2) return page;  // There is no rest of it.
  std::erase_if(kept_, is_it);
  if (kept_.size() >= kMostKept) kept_.pop_back();
  kept_.push_front({std::string(name), type, std::move(reply)});
  return page;
}

std::string datagram_of(const Reply& reply, std::size_t from, std::size_t room) {
  if (!reply.is_ours) return "pass\n";
  constexpr std::size_t kHead = 24;
  std::string lines;
  std::size_t next = from;
  for (; next < reply.records.size(); ++next) {
    const Record& one = reply.records[next];
    const std::string line = fmt::format("{} {} {} {} {}\n", one.type, kTtlSeconds, static_cast<int>(one.section), one.name, one.content);
    if (lines.size() + line.size() + kHead > room) break;
    lines += line;
  }
  if (next >= reply.records.size() || next == from) next = 0;
  return fmt::format("{} {} {}\n{}", static_cast<int>(reply.code), next, reply.leads_outside ? 1 : 0, lines);
}

}  // namespace berth::node::dns
