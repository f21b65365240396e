#include "node/services/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <set>
#include <unordered_map>

namespace berth::node::services {
namespace {

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
  template <typename... Args>
  void rule(const std::string& chain, fmt::format_string<Args...> format, Args&&... args) {
    line("add rule {} {}", at(chain), fmt::format(format, std::forward<Args>(args)...));
  }
  /// All elements of one map in one command: a command apiece would double the price.
  void elements(const char* verb, const std::map<std::string, std::string>& by_map) {
    for (const auto& [map, list] : by_map) line("{} element {} {{ {} }}", verb, at(map), list);
  }
  [[nodiscard]] const Family& family() const { return family_; }
  [[nodiscard]] const std::string& table() const { return table_; }
  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  const Family& family_;
  const std::string& table_;
  std::string text_;
};

void add_to(std::map<std::string, std::string>& by_map, const Element& one, bool with_value) {
  std::string& list = by_map[one.map];
  if (!list.empty()) list += ", ";
  list += one.key;
  if (with_value && !one.value.empty()) fmt::format_to(std::back_inserter(list), " : {}", one.value);
}

constexpr int kMostClients = 262'144;  // Of all Services with session affinity; who comes beyond that is led anywhere.

void maps(Script& script, const RuleOptions& options) {
  const Family& f = script.family();
  script.line("add set {0} {{ type {1} . {1} . inet_proto . inet_service . mark; flags dynamic,timeout; size {2}; }}",
              script.at("affinity"), f.type, kMostClients);
  script.line("add map {0} {{ type {1} . inet_proto . inet_service . mark : {1} . inet_service; }}", script.at("affine-endpoints"), f.type);
  script.line("add map {} {{ type inet_proto . inet_service . mark : {} . inet_service; }}", script.at("node-affine-endpoints"), f.type);
  for (const char* map : {"service-ips", "no-endpoint-services", "firewall-ips"})
    script.line("add map {} {{ type {} . inet_proto . inet_service : verdict; }}", script.at(map), f.type);
  script.line("add map {} {{ type {} : verdict; }}", script.at("cluster-ips"), f.type);
  for (const char* map : {"service-nodeports", "no-endpoint-nodeports"})
    script.line("add map {} {{ type inet_proto . inet_service : verdict; }}", script.at(map));
  script.line("add set {0} {{ type {1} . {1}; }}", script.at("hairpins"), f.type);
  if (options.masquerades_local) script.line("add set {} {{ type {}; }}", script.at("local-endpoints"), f.type);
}

/// A pod that reaches itself through a Service must see another source than its own, or it would answer past us; where the way back does
/// not pass the rules, every pod of this machine.
void source_rules(Script& script, const RuleOptions& options) {
  const Family& f = script.family();
  script.line("add chain {} {{ type nat hook postrouting priority 99; policy accept; }}", script.at("nat-postrouting"));
  if (options.masquerades_local) {
    script.rule("nat-postrouting", "meta mark & 0x2000 != 0 {} daddr @local-endpoints jump mark-for-masquerade", f.name);
    script.rule("nat-postrouting", "meta mark set meta mark and 0xffffdfff");
  }
  script.rule("nat-postrouting", "{0} saddr . {0} daddr @hairpins jump mark-for-masquerade", f.name);
  // A source that is given to a connection is not changed again: the masquerading of the pods' network comes later (priority 100).
  if (!options.pod_block.empty() && !f.is_ipv6)
    script.rule("nat-postrouting", "meta mark & 0x4000 == 0 ip saddr {0} ip daddr {0} snat to ip saddr", options.pod_block);
  script.rule("nat-postrouting", "meta mark & 0x4000 == 0 return");
  script.rule("nat-postrouting", "meta mark set meta mark xor 0x4000");
  script.rule("nat-postrouting", "masquerade fully-random");
}

/// What is there without any Service, in a table that is not there yet.
void frame(Script& script, const RuleOptions& options) {
  const Family& f = script.family();
  script.line("add table {} {} {{ comment \"Services of the cluster, kept in step by berth\"; }}", f.name, script.table());
  maps(script, options);
  for (const char* chain : {"mark-for-masquerade", "mark-as-led", "refuse", "services", "refusals", "firewall"})
    script.line("add chain {}", script.at(chain));
  script.rule("mark-for-masquerade", "meta mark set meta mark or 0x4000");
  script.rule("mark-as-led", "meta mark set meta mark or 0x2000");
  script.rule("refuse", "reject");
  script.rule("services", "{} daddr . meta l4proto . th dport vmap @service-ips", f.name);
  script.rule("services", "fib daddr type local {} daddr != {} meta l4proto . th dport vmap @service-nodeports", f.name, f.localhost);
  script.rule("refusals", "{} daddr . meta l4proto . th dport vmap @no-endpoint-services", f.name);
  script.rule("refusals", "fib daddr type local {} daddr != {} meta l4proto . th dport vmap @no-endpoint-nodeports", f.name, f.localhost);
  script.rule("firewall", "{} daddr . meta l4proto . th dport vmap @firewall-ips", f.name);
  for (const auto& [chain, hook] :
       {std::pair("nat-prerouting", "type nat hook prerouting priority -100"), {"nat-output", "type nat hook output priority -100"}}) {
    script.line("add chain {} {{ {}; policy accept; }}", script.at(chain), hook);
    script.rule(chain, "jump services");
  }
  // Before the change of addresses: by whom a balancer's address may be asked.
  for (const char* hook : {"prerouting", "output"}) {
    const std::string chain = fmt::format("guard-{}", hook);
    script.line("add chain {} {{ type filter hook {} priority -110; policy accept; }}", script.at(chain), hook);
    script.rule(chain, "ct state new jump firewall");
  }
  for (const char* hook : {"input", "forward", "output"}) {
    const std::string chain = fmt::format("filter-{}", hook);
    script.line("add chain {} {{ type filter hook {} priority -110; policy accept; }}", script.at(chain), hook);
    script.rule(chain, "ct state new jump refusals");
  }
  // What is for a cluster address still, behind the change of addresses, is for a port that its Service does not have.
  for (const char* hook : {"forward", "output"}) {
    const std::string chain = fmt::format("unknown-ports-{}", hook);
    script.line("add chain {} {{ type filter hook {} priority -90; policy accept; }}", script.at(chain), hook);
    script.rule(chain, "ct state new {} daddr vmap @cluster-ips", f.name);
  }
  source_rules(script, options);
}

/// `now` in the order of `before` as far as that goes: each endpoint that stays keeps its number, if there is one still, so that one pod
/// of a thousand that goes changes two elements.
std::vector<Endpoint> in_places(std::vector<Endpoint> now, const std::vector<Endpoint>& before) {
  if (before.empty() || now.empty()) return now;
  std::map<std::pair<std::string_view, std::uint16_t>, std::size_t> place;
  for (std::size_t i = 0; i < before.size() && i < now.size(); ++i) place.try_emplace({before[i].address, before[i].port}, i);
  std::vector<std::optional<Endpoint>> placed(now.size());
  std::vector<const Endpoint*> others;
  for (const Endpoint& e : now)
    if (const auto found = place.find({e.address, e.port}); found != place.end() && !placed[found->second])
      placed[found->second] = e;
    else
      others.push_back(&e);
  auto next = others.begin();
  std::vector<Endpoint> out;
  out.reserve(now.size());
  for (auto& one : placed) out.push_back(one ? std::move(*one) : **next++);
  return out;
}

}  // namespace

/// One family's tables: what the kernel was told, and the ports as they should be.
class FamilyRules {
 public:
  explicit FamilyRules(const Family& family) : family_(family) {}

  void set(const std::string& name, ServicePort port, const RuleOptions& options) {
    const auto [at, is_new] = ports_.try_emplace(name);
    if (!is_new) {
      port.endpoints = in_places(std::move(port.endpoints), at->second.port.endpoints);
      port.local_endpoints = in_places(std::move(port.local_endpoints), at->second.port.local_endpoints);
      if (port == at->second.port) return;
    }
    told_.try_emplace(name, std::move(at->second.rules));
    at->second.rules = rules_of_port(port, options);
    at->second.port = std::move(port);
  }
  void erase(const std::string& name) {
    const auto at = ports_.find(name);
    if (at == ports_.end()) return;
    told_.try_emplace(name, std::move(at->second.rules));
    ports_.erase(at);
  }
  [[nodiscard]] std::size_t size() const { return ports_.size(); }

  std::string whole(const RuleOptions& options) {
    Script script(family_, options.table);
    frame(script, options);
    claims_.clear();
    users_.clear();
    picks_.clear();
    told_.clear();
    for (const auto& [name, one] : ports_) told_.emplace(name, PortRules{});
    write_step(script, options);
    return script.take();
  }
  std::string step(const RuleOptions& options) {
    Script script(family_, options.table);
    write_step(script, options);
    return script.take();
  }

 private:
  struct Port {
    ServicePort port;
    PortRules rules;
  };
  /// Who wants an element.
  struct Claim {
    std::string owner;
    Element element;
  };
  using Claims = std::vector<Claim>;  ///< Of one key of one map, in the order of the owners' names: the first has it.
  /// What the kernel has at the keys of this step.
  using Touched = std::map<std::string, std::optional<Element>>;

  [[nodiscard]] const PortRules& wanted(const std::string& name) const {
    static const PortRules none;
    const auto at = ports_.find(name);
    return at == ports_.end() ? none : at->second.rules;
  }

  /// First nobody leads to what goes, then chains are made, filled and taken away, then elements lead to what is new.
  void write_step(Script& script, const RuleOptions& options) {
    Touched touched;
    for (const auto& [name, before] : told_) claim(name, before, wanted(name), touched);
    std::map<std::string, std::string> gone, come;
    for (const auto& [where, was] : touched) {
      const auto claims = claims_.find(where);
      const Element* const is = claims->second.empty() ? nullptr : &claims->second.front().element;
      if (was && !(is != nullptr && *was == *is)) add_to(gone, *was, false);
      if (is != nullptr && !(was && *was == *is)) add_to(come, *is, true);
      if (is == nullptr) claims_.erase(claims);
    }
    script.elements("delete", gone);
    for (const auto& [name, before] : told_)
      for (const std::string& chain : wanted(name).shared) share(script, chain, options);
    for (const auto& [name, before] : told_) make_own(script, before, wanted(name));
    leave_shared(script);
    script.elements("add", come);
    told_.clear();
  }

  void claim(const std::string& owner, const PortRules& before, const PortRules& after, Touched& touched) {
    const auto touch = [&](const Element& one) -> Claims& {
      std::string where = fmt::format("{} {}", one.map, one.key);
      Claims& claims = claims_[where];
      if (!touched.contains(where))
        touched.emplace(std::move(where), claims.empty() ? std::nullopt : std::optional(claims.front().element));
      return claims;
    };
    std::vector<Element> changes;
    std::ranges::set_difference(before.elements, after.elements, std::back_inserter(changes));
    for (const Element& one : changes) std::erase_if(touch(one), [&](const Claim& claim) { return claim.owner == owner; });
    changes.clear();
    std::ranges::set_difference(after.elements, before.elements, std::back_inserter(changes));
    for (Element& one : changes) {
      Claims& claims = touch(one);
      claims.insert(std::ranges::lower_bound(claims, owner, {}, &Claim::owner), Claim{owner, std::move(one)});
    }
  }

  void share(Script& script, const std::string& chain, const RuleOptions& options) {
    if (++users_[chain] > 1) return;
    const SharedChain shared = shared_chain(chain, family_, options);
    for (const std::string& pick : shared.picks)
      if (picks_.insert(pick).second) {
        const SharedChain one = shared_chain(pick, family_, options);
        if (!one.map.empty()) script.line("add map {} {{ {} }}", script.at(pick), one.map);
        make_chain(script, pick, one.rules);
      }
    make_chain(script, chain, shared.rules);
  }
  static void make_chain(Script& script, const std::string& name, const Chain& rules) {
    script.line("add chain {}", script.at(name));
    for (const std::string& rule : rules) script.rule(name, "{}", rule);
  }
  /// Shared chains of no port go; picks stay, which are as few as the most endpoints that a port ever had.
  void leave_shared(Script& script) {
    std::vector<std::string> unused;
    for (const auto& [name, before] : told_)
      for (const std::string& chain : before.shared)
        if (--users_[chain] == 0) unused.push_back(chain);
    for (const std::string& chain : unused) script.line("flush chain {}", script.at(chain));
    for (const std::string& chain : unused) {
      script.line("delete chain {}", script.at(chain));
      users_.erase(chain);
    }
  }

  /// A port's own chains. A thing can go when nothing leads to it: all that stays is written anew before.
  static void make_own(Script& script, const PortRules& before, const PortRules& after) {
    for (const auto& [name, rules] : after.chains)
      if (!before.chains.contains(name)) script.line("add chain {}", script.at(name));
    for (const auto& [name, rules] : before.chains)
      if (const auto now = after.chains.find(name); now == after.chains.end() || now->second != rules)
        script.line("flush chain {}", script.at(name));
    for (const auto& [name, rules] : after.chains)
      if (const auto old = before.chains.find(name); old == before.chains.end() || old->second != rules)
        for (const std::string& rule : rules) script.rule(name, "{}", rule);
    for (const auto& [name, rules] : before.chains)
      if (!after.chains.contains(name)) script.line("delete chain {}", script.at(name));
  }

  const Family& family_;
  std::unordered_map<std::string, Port> ports_;
  std::map<std::string, PortRules> told_;  ///< Ports that changed since the last step, as the kernel was told of them.
  std::unordered_map<std::string, Claims> claims_;
  std::map<std::string, std::size_t> users_;  ///< Ports by shared chain.
  std::set<std::string> picks_;
};

struct Rules::Impl {
  explicit Impl(RuleOptions given) : options(std::move(given)) {}
  const RuleOptions options;
  std::array<FamilyRules, 2> families{FamilyRules(kFamilies[0]), FamilyRules(kFamilies[1])};
};

Rules::Rules(RuleOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
Rules::~Rules() = default;

void Rules::set(const std::string& name, ServicePort port) {
  const bool is_ipv6 = port.is_ipv6;
  impl_->families[is_ipv6 ? 1 : 0].set(name, std::move(port), impl_->options);
}
void Rules::erase(const std::string& name) {
  for (FamilyRules& family : impl_->families) family.erase(name);
}
std::size_t Rules::size() const { return impl_->families[0].size() + impl_->families[1].size(); }

std::string Rules::step() { return impl_->families[0].step(impl_->options) + impl_->families[1].step(impl_->options); }
std::string Rules::whole() {
  return no_rules(impl_->options.table) + impl_->families[0].whole(impl_->options) + impl_->families[1].whole(impl_->options);
}

std::string no_rules(const std::string& table) {
  std::string out;
  for (const Family& family : kFamilies) out += fmt::format("add table {0} {1}\ndelete table {0} {1}\n", family.name, table);
  return out;
}

}  // namespace berth::node::services
