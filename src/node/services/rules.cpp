#include "node/services/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace berth::node::services {
namespace {

struct Family {
  const char *name, *type, *localhost;
  bool is_ipv6;
};
constexpr Family kFamilies[] = {{"ip", "ipv4_addr", "127.0.0.0/8", false}, {"ip6", "ipv6_addr", "::1", true}};

/// Where things of one port are. All names begin with the port's digest, so that ports never meet.
struct Names {
  std::string key;
  explicit Names(const ServicePort& port) : key(digest(port.name + "/" + port.protocol)) {}
  [[nodiscard]] std::string service() const { return "service-" + key; }
  [[nodiscard]] std::string local() const { return "local-" + key; }
  [[nodiscard]] std::string external() const { return "external-" + key; }
  [[nodiscard]] std::string endpoint(const Endpoint& e) const {
    return fmt::format("endpoint-{}-{}", key, digest(fmt::format("{} {}", e.address, e.port)));
  }
  [[nodiscard]] std::string affinity(const Endpoint& e) const {
    return fmt::format("affinity-{}-{}", key, digest(fmt::format("{} {}", e.address, e.port)));
  }
};

/// One transaction in the making, for one family.
class Script {
 public:
  Script(const Family& family, const std::string& table) : family_(family), table_(table) {}
  /// A thing of our table as nft names it.
  [[nodiscard]] std::string at(std::string_view name) const { return fmt::format("{} {} {}", family_.name, table_, name); }
  template <typename... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
    text_ += '\n';
  }
  /// `is_new`: nothing is in it yet.
  void chain(const std::string& name, bool is_new) { line("{} chain {}", is_new ? "add" : "flush", at(name)); }
  template <typename... Args>
  void rule(const std::string& chain, fmt::format_string<Args...> format, Args&&... args) {
    line("add rule {} {}", at(chain), fmt::format(format, std::forward<Args>(args)...));
  }
  void element(bool adds, std::string_view map, const std::string& key, const std::string& verdict) {
    line("{} element {} {{ {} : {} }}", adds ? "add" : "delete", at(map), key, verdict);
  }
  [[nodiscard]] const Family& family() const { return family_; }
  [[nodiscard]] const std::string& table() const { return table_; }
  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  const Family& family_;
  const std::string& table_;
  std::string text_;
};

/// All endpoints that a port's chains name, each once.
std::vector<Endpoint> endpoints_of(const ServicePort& port) {
  std::vector<Endpoint> out = port.endpoints;
  out.insert(out.end(), port.local_endpoints.begin(), port.local_endpoints.end());
  std::ranges::sort(out);
  out.erase(std::ranges::unique(out).begin(), out.end());
  return out;
}

std::string host_port(const Endpoint& e, bool is_ipv6) {
  return is_ipv6 ? fmt::format("[{}]:{}", e.address, e.port) : fmt::format("{}:{}", e.address, e.port);
}

void endpoint_chain(Script& script, const ServicePort& port, const Endpoint& e, const RuleOptions& options, bool is_new) {
  const Names names(port);
  const std::string chain = names.endpoint(e);
  script.chain(chain, is_new);
  // A pod that reaches itself through a Service must see another source than its own, or it would answer past us.
  if (options.masquerades_local && e.is_local)
    script.rule(chain, "jump mark-for-masquerade");
  else
    script.rule(chain, "{} saddr {} jump mark-for-masquerade", script.family().name, e.address);
  if (port.affinity_seconds > 0) script.rule(chain, "update @{} {{ {} saddr }}", names.affinity(e), script.family().name);
  script.rule(chain, "meta l4proto {} dnat to {}", port.protocol, host_port(e, port.is_ipv6));
}

/// Clients that have a place go there; the others anywhere, with the same chance.
void choice_chain(Script& script, const ServicePort& port, const std::string& chain, const std::vector<Endpoint>& endpoints, bool is_new) {
  const Names names(port);
  script.chain(chain, is_new);
  if (port.affinity_seconds > 0)
    for (const Endpoint& e : endpoints)
      script.rule(chain, "{} saddr @{} goto {}", script.family().name, names.affinity(e), names.endpoint(e));
  if (endpoints.empty()) return;
  std::string choices;
  for (std::size_t i = 0; i < endpoints.size(); ++i)
    fmt::format_to(std::back_inserter(choices), "{}{} : goto {}", i == 0 ? "" : ", ", i, names.endpoint(endpoints[i]));
  script.rule(chain, "numgen random mod {} vmap {{ {} }}", endpoints.size(), choices);
}

/// Of traffic from outside: policy Local keeps the client's address and needs an endpoint here; else its source is this node from here on.
void external_chain(Script& script, const ServicePort& port, bool is_new) {
  const Names names(port);
  script.chain(names.external(), is_new);
  if (!port.external_local) script.rule(names.external(), "jump mark-for-masquerade");
  script.rule(names.external(), "goto {}", port.external_local ? names.local() : names.service());
}

struct Element {
  std::string map, key, verdict;
  friend auto operator<=>(const Element&, const Element&) = default;
};

/// Where the port is found, and where it is refused or, with the policy Local and endpoints elsewhere alone, dropped.
std::vector<Element> elements_of(const ServicePort& port) {
  const Names names(port);
  std::vector<Element> out;
  const auto add = [&](const std::string& address, bool is_local, const std::string& chain) {
    const std::string key = fmt::format("{} . {} . {}", address, port.protocol, port.port);
    const auto& usable = is_local ? port.local_endpoints : port.endpoints;
    if (!usable.empty())
      out.push_back({"service-ips", key, "goto " + chain});
    else
      out.push_back({"no-endpoint-services", key, port.endpoints.empty() ? "goto refuse" : "drop"});
  };
  out.push_back({"cluster-ips", port.cluster_ip, "goto refuse"});
  add(port.cluster_ip, port.internal_local, port.internal_local ? names.local() : names.service());
  for (const std::string& ip : port.external_ips) add(ip, port.external_local, names.external());
  if (port.node_port != 0) {
    const std::string key = fmt::format("{} . {}", port.protocol, port.node_port);
    const auto& usable = port.external_local ? port.local_endpoints : port.endpoints;
    if (!usable.empty())
      out.push_back({"service-nodeports", key, "goto " + names.external()});
    else
      out.push_back({"no-endpoint-nodeports", key, port.endpoints.empty() ? "goto refuse" : "drop"});
  }
  return out;
}

/// The chains of a port. `old`: what is there of it, with the same names; nothing of that is written again which stays. `has_endpoints`:
/// also the chains of its endpoints are there.
void put(Script& script, const ServicePort& port, const ServicePort* old, bool has_endpoints, const RuleOptions& options) {
  const Names names(port);
  const std::vector<Endpoint> before = has_endpoints ? endpoints_of(*old) : std::vector<Endpoint>{};
  for (const Endpoint& e : endpoints_of(port)) {
    const auto known = std::ranges::find_if(before, [&](const Endpoint& one) { return one.address == e.address && one.port == e.port; });
    if (known != before.end() && *known == e) continue;
    if (port.affinity_seconds > 0 && known == before.end())
      script.line("add set {} {{ type {}; flags dynamic,timeout; timeout {}s; size 65535; }}", script.at(names.affinity(e)),
                  script.family().type, port.affinity_seconds);
    endpoint_chain(script, port, e, options, known == before.end());
  }
  const bool is_new = old == nullptr;
  if (!has_endpoints || old->endpoints != port.endpoints) choice_chain(script, port, names.service(), port.endpoints, is_new);
  if (!has_endpoints || old->local_endpoints != port.local_endpoints)
    choice_chain(script, port, names.local(), port.local_endpoints, is_new);
  if (!has_endpoints || old->external_local != port.external_local) external_chain(script, port, is_new);
}

void drop_endpoints(Script& script, const ServicePort& of, const std::vector<Endpoint>& endpoints) {
  const Names names(of);
  for (const Endpoint& e : endpoints) script.line("delete chain {}", script.at(names.endpoint(e)));
  if (of.affinity_seconds > 0)
    for (const Endpoint& e : endpoints) script.line("delete set {}", script.at(names.affinity(e)));
}

/// Endpoints' chains and sets that `after`, of the same names, has no more. Its own chains name them no more by then.
void drop_rest(Script& script, const ServicePort& before, const ServicePort& after) {
  std::vector<Endpoint> gone;
  const std::vector<Endpoint> kept = endpoints_of(after);
  for (const Endpoint& e : endpoints_of(before))
    if (std::ranges::none_of(kept, [&](const Endpoint& k) { return k.address == e.address && k.port == e.port; })) gone.push_back(e);
  drop_endpoints(script, before, gone);
}

/// Everything that stands behind a port's own chains; these stay, empty, for the elements that lead to them.
void empty(Script& script, const ServicePort& port) {
  const Names names(port);
  for (const std::string& chain : {names.external(), names.service(), names.local()}) script.line("flush chain {}", script.at(chain));
  drop_endpoints(script, port, endpoints_of(port));
}

/// All of a port to which no element leads.
void drop(Script& script, const ServicePort& port) {
  const Names names(port);
  empty(script, port);
  for (const std::string& chain : {names.external(), names.service(), names.local()}) script.line("delete chain {}", script.at(chain));
}

void frame(Script& script) {
  const Family& f = script.family();
  script.line("add table {} {} {{ comment \"Services of the cluster, kept in step by berth\"; }}", f.name, script.table());
  for (const char* map : {"service-ips", "no-endpoint-services"})
    script.line("add map {} {{ type {} . inet_proto . inet_service : verdict; }}", script.at(map), f.type);
  script.line("add map {} {{ type {} : verdict; }}", script.at("cluster-ips"), f.type);
  for (const char* map : {"service-nodeports", "no-endpoint-nodeports"})
    script.line("add map {} {{ type inet_proto . inet_service : verdict; }}", script.at(map));
  script.chain("mark-for-masquerade", true);
  script.rule("mark-for-masquerade", "meta mark set meta mark or 0x4000");
  script.chain("refuse", true);
  script.rule("refuse", "reject");
  script.chain("services", true);
  script.rule("services", "{} daddr . meta l4proto . th dport vmap @service-ips", f.name);
  script.rule("services", "fib daddr type local {} daddr != {} meta l4proto . th dport vmap @service-nodeports", f.name, f.localhost);
  script.chain("refusals", true);
  script.rule("refusals", "{} daddr . meta l4proto . th dport vmap @no-endpoint-services", f.name);
  script.rule("refusals", "fib daddr type local {} daddr != {} meta l4proto . th dport vmap @no-endpoint-nodeports", f.name, f.localhost);
  for (const auto& [chain, hook] :
       {std::pair("nat-prerouting", "type nat hook prerouting priority -100"), {"nat-output", "type nat hook output priority -100"}}) {
    script.line("add chain {} {{ {}; policy accept; }}", script.at(chain), hook);
    script.line("flush chain {}", script.at(chain));
    script.rule(chain, "jump services");
  }
  for (const char* hook : {"input", "forward", "output"}) {
    const std::string chain = fmt::format("filter-{}", hook);
    script.line("add chain {} {{ type filter hook {} priority -110; policy accept; }}", script.at(chain), hook);
    script.line("flush chain {}", script.at(chain));
    script.rule(chain, "ct state new jump refusals");
  }
  // What is for a cluster address still, behind the change of addresses, is for a port that its Service does not have.
  for (const char* hook : {"forward", "output"}) {
    const std::string chain = fmt::format("unknown-ports-{}", hook);
    script.line("add chain {} {{ type filter hook {} priority -90; policy accept; }}", script.at(chain), hook);
    script.rule(chain, "ct state new {} daddr vmap @cluster-ips", f.name);
  }
  script.line("add chain {} {{ type nat hook postrouting priority 100; policy accept; }}", script.at("nat-postrouting"));
  script.line("flush chain {}", script.at("nat-postrouting"));
  script.rule("nat-postrouting", "meta mark & 0x4000 == 0 return");
  script.rule("nat-postrouting", "meta mark set meta mark xor 0x4000");
  script.rule("nat-postrouting", "masquerade fully-random");
}

bool same_names(const ServicePort& a, const ServicePort& b) { return Names(a).key == Names(b).key; }

/// Elements of all ports as one map: where two Services claim one external address and port, the first by name has it, as long as it is
/// there.
std::map<std::pair<std::string, std::string>, std::string> all_elements(const ServiceTable& table, bool ipv6) {
  std::map<std::pair<std::string, std::string>, std::string> out;
  for (const auto& [name, port] : table)
    if (port.is_ipv6 == ipv6)
      for (const Element& one : elements_of(port)) out.try_emplace({one.map, one.key}, one.verdict);
  return out;
}

std::string family_between(const Family& family, const ServiceTable& before, const ServiceTable& after, const RuleOptions& options) {
  Script script(family, options.table);
  const auto old_elements = all_elements(before, family.is_ipv6), new_elements = all_elements(after, family.is_ipv6);
  for (const auto& [where, verdict] : old_elements)
    if (const auto now = new_elements.find(where); now == new_elements.end() || now->second != verdict)
      script.element(false, where.first, where.second, verdict);
  for (const auto& [name, port] : before) {
    if (port.is_ipv6 != family.is_ipv6) continue;
    const auto now = after.find(name);
    if (now == after.end() || !same_names(port, now->second))
      drop(script, port);
    else if (port.affinity_seconds != now->second.affinity_seconds)
      empty(script, port);  // A set cannot change its timeout.
  }
  for (const auto& [name, port] : after) {
    if (port.is_ipv6 != family.is_ipv6) continue;
    const auto old = before.find(name);
    if (old != before.end() && old->second == port) continue;
    const bool is_there = old != before.end() && same_names(old->second, port);
    const bool has_endpoints = is_there && old->second.affinity_seconds == port.affinity_seconds;
    put(script, port, is_there ? &old->second : nullptr, has_endpoints, options);
    if (has_endpoints) drop_rest(script, old->second, port);
  }
  for (const auto& [where, verdict] : new_elements)
    if (const auto old = old_elements.find(where); old == old_elements.end() || old->second != verdict)
      script.element(true, where.first, where.second, verdict);
  return script.take();
}

}  // namespace

std::string digest(std::string_view text) {
  std::uint64_t hash = 1469598103934665603ULL;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return fmt::format("{:016x}", hash);
}

std::string no_rules(const std::string& table) {
  std::string out;
  for (const Family& family : kFamilies) out += fmt::format("add table {0} {1}\ndelete table {0} {1}\n", family.name, table);
  return out;
}

std::string whole_rules(const ServiceTable& table, const RuleOptions& options) {
  std::string out = no_rules(options.table);
  for (const Family& family : kFamilies) {
    Script script(family, options.table);
    frame(script);
    out += script.take() + family_between(family, {}, table, options);
  }
  return out;
}

std::string rules_between(const ServiceTable& before, const ServiceTable& after, const RuleOptions& options) {
  std::string out;
  for (const Family& family : kFamilies) out += family_between(family, before, after, options);
  return out;
}

}  // namespace berth::node::services
