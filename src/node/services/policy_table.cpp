#include "node/services/policy_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "node/services/addresses.h"

namespace berth::node::services {
namespace {

std::string lower_word(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

/// One direction of the rules: which side of a packet is the pod's peer.
struct Direction {
  const char *type, *rules, *peers, *peer_side, *pod_side, *map;
};
constexpr Direction kIngress{"Ingress", "ingress", "from", "saddr", "daddr", "ingress"};
constexpr Direction kEgress{"Egress", "egress", "to", "daddr", "saddr", "egress"};

std::string matches(const char* side, const std::set<std::string>& addresses, bool v6) {
  std::vector<std::string_view> of_family;
  for (const std::string& one : addresses)
    if (is_ipv6_text(one) == v6) of_family.push_back(one);
  if (of_family.empty()) return {};
  return fmt::format("{} {} {{ {} }}", v6 ? "ip6" : "ip", side, fmt::join(of_family, ", "));
}

/// A rule of both would be refused, and with it the whole transaction.
bool is_of_other_family(const std::string& match, bool v6) {
  return match.starts_with(v6 ? "ip " : "ip6 ") || match.starts_with(v6 ? "meta nfproto ipv4" : "meta nfproto ipv6");
}

class Compiler {
 public:
  explicit Compiler(const PolicyInput& input) : input_(input) {}

  PolicyRules run() {
    for (const auto& policy : input_.policies) {
      const std::string ns(json::get_string(*policy, {"metadata", "namespace"}));
      const auto selected = select(json::find(*policy, {"spec", "podSelector"}), [&](const PolicyPod& pod) { return pod.ns == ns; });
      std::vector<const PolicyPod*> guarded;
      std::ranges::copy_if(selected, std::back_inserter(guarded), [](const PolicyPod* pod) { return pod->is_local; });
      if (guarded.empty()) continue;
      for (const Direction* direction : {&kIngress, &kEgress})
        if (has_type(*policy, *direction)) add(*policy, *direction, ns, guarded);
    }
    return std::move(out_);
  }

 private:
  using Pods = std::vector<const PolicyPod*>;

  Pods select(const json::Value* selector, const auto& where) const {
    const auto compiled = model::Selector::from_label_selector(selector);
    Pods out;
    if (compiled)
      for (const PolicyPod* pod : input_.pods)
        if (!pod->addresses.empty() && where(*pod) && compiled->matches(pod->labels)) out.push_back(pod);
    return out;
  }

  static bool has_type(const json::Value& policy, const Direction& direction) {
    const auto& types = json::get_array(policy, {"spec", "policyTypes"});
    if (types.empty()) return &direction == &kIngress || !json::get_array(policy, {"spec", "egress"}).empty();
    return std::ranges::any_of(types, [&](const json::Value& type) { return type.is_string() && json::as_view(type) == direction.type; });
  }

  void add(const json::Value& policy, const Direction& direction, const std::string& ns, const Pods& guarded) {
    const std::string chain =
        fmt::format("{}-{}", direction.map, digest(ns + "/" + std::string(json::get_string(policy, {"metadata", "name"}))));
    std::vector<std::string>& rules = out_.chains[chain];
    for (const json::Value& rule : json::get_array(policy, {"spec", direction.rules})) {
      const auto sides = peers_of(rule, direction, ns);
      const auto& ports = json::get_array(rule, {"ports"});
      if (ports.empty())
        for (const std::string& peer : sides.matches) rules.push_back(peer + (peer.empty() ? "accept" : " accept"));
      for (const json::Value& port : ports) add_port(port, direction, sides, guarded, rules);
    }
    for (const PolicyPod* pod : guarded)
      for (const std::string& address : pod->addresses) guard(direction, address, chain);
  }

  struct Peers {
    std::vector<std::string> matches;  ///< Each one way to be a peer; "" alone: everybody is.
    Pods pods;                         ///< Those of them that are pods; with everybody, all.
  };

  Peers peers_of(const json::Value& rule, const Direction& direction, const std::string& ns) const {
    const auto& listed = json::get_array(rule, {direction.peers});
    if (listed.empty()) return {{""}, input_.pods};
    Peers out;
    std::set<std::string> addresses;
    for (const json::Value& peer : listed) {
      if (const json::Value* block = json::find(peer, "ipBlock")) {
        if (std::string match = block_match(*block, direction.peer_side); !match.empty()) out.matches.push_back(std::move(match));
        continue;
      }
      for (const PolicyPod* pod : pods_of(peer, ns)) {
        out.pods.push_back(pod);
        addresses.insert(pod->addresses.begin(), pod->addresses.end());
      }
    }
    for (const bool v6 : {false, true})
      if (std::string match = services::matches(direction.peer_side, addresses, v6); !match.empty())
        out.matches.push_back(std::move(match));
    return out;
  }

  Pods pods_of(const json::Value& peer, const std::string& ns) const {
    static const json::Value kAll = json::Object{};
    const json::Value* const pods = json::find(peer, "podSelector");
    const json::Value* const namespaces = json::find(peer, "namespaceSelector");
    if (namespaces == nullptr) return select(pods, [&](const PolicyPod& pod) { return pod.ns == ns; });
    const auto wanted = model::Selector::from_label_selector(namespaces);
    if (!wanted) return {};
    return select(pods != nullptr ? pods : &kAll, [&](const PolicyPod& pod) {
      const auto found = input_.namespaces.find(pod.ns);
      return found != input_.namespaces.end() && wanted->matches(found->second);
    });
  }

  static std::string block_match(const json::Value& block, const char* side) {
    const std::string cidr = canonical_block(json::get_string(block, {"cidr"}));
    if (cidr.empty()) return {};
    const char* const family = is_ipv6_text(cidr) ? "ip6" : "ip";
    std::string out = cidr.ends_with("/0") ? fmt::format("meta nfproto {}", is_ipv6_text(cidr) ? "ipv6" : "ipv4")
                                           : fmt::format("{} {} {}", family, side, cidr);
    for (const json::Value& except : json::get_array(block, {"except"}))
      if (const std::string one = except.is_string() ? canonical_block(json::as_view(except)) : ""; !one.empty())
        out += fmt::format(" {} {} != {}", family, side, one);
    return out;
  }

  /// A port by number, by range, by name (as the pod that is reached calls it), or a protocol whole.
  void add_port(const json::Value& port, const Direction& direction, const Peers& peers, const Pods& guarded,
                std::vector<std::string>& rules) const {
    const std::string protocol = lower_word(json::get_string(port, {"protocol"}, "TCP"));
    const json::Value* const number = json::find(port, "port");
    const auto for_peers = [&](const std::string& match) {
      for (const std::string& peer : peers.matches) rules.push_back(fmt::format("{}{}{} accept", peer, peer.empty() ? "" : " ", match));
    };
    if (number == nullptr) return for_peers(fmt::format("meta l4proto {}", protocol));
    if (!number->is_string()) {
      const auto first = json::get_int(port, {"port"}), last = json::get_int(port, {"endPort"}, first);
      return for_peers(first == last ? fmt::format("{} dport {}", protocol, first) : fmt::format("{} dport {}-{}", protocol, first, last));
    }
    const Pods& reached = &direction == &kIngress ? guarded : peers.pods;
    std::map<int, std::set<std::string>> by_number;
    for (const PolicyPod* pod : reached)
      for (const PolicyPod::Port& one : pod->ports)
        if (one.name == json::as_view(*number) && one.protocol == protocol)
          by_number[one.number].insert(pod->addresses.begin(), pod->addresses.end());
    for (const auto& [at, addresses] : by_number)
      for (const bool v6 : {false, true}) {
        const std::string where = services::matches("daddr", addresses, v6);
        if (where.empty()) continue;
        const std::string match = fmt::format("{} {} dport {}", where, protocol, at);
        if (&direction == &kEgress) rules.push_back(match + " accept");
        if (&direction == &kIngress)
          for (const std::string& peer : peers.matches)
            if (!is_of_other_family(peer, v6)) rules.push_back(fmt::format("{}{}{} accept", peer, peer.empty() ? "" : " ", match));
      }
  }

  /// The chain of an address tries each policy's; what none of them took is dropped.
  void guard(const Direction& direction, const std::string& address, const std::string& chain) {
    const std::string own = fmt::format("pod-{}-{}", direction.map, digest(address));
    std::vector<std::string>& rules = out_.chains[own];
    if (rules.empty()) {
      rules.push_back(fmt::format("{} {} {} accept", is_ipv6_text(address) ? "ip6" : "ip", direction.peer_side, address));
      rules.emplace_back("drop");
    }
    rules.insert(rules.end() - 1, "jump " + chain);
    out_.guards[{fmt::format("{}{}", direction.map, is_ipv6_text(address) ? "6" : "4"), address}] = "goto " + own;
  }

  const PolicyInput& input_;
  PolicyRules out_;
};

void frame_policies(std::string& out, const std::string& table) {
  const auto line = [&]<typename... Args>(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out), format, std::forward<Args>(args)...);
    out += '\n';
  };
  line("add table inet {} {{ comment \"NetworkPolicies of the cluster, kept in step by berth\"; }}", table);
  for (const char* map : {"ingress", "egress"}) {
    line("add map inet {} {}4 {{ type ipv4_addr : verdict; }}", table, map);
    line("add map inet {} {}6 {{ type ipv6_addr : verdict; }}", table, map);
  }
  // What leaves a pod is judged first, what comes to one then, each in a chain of its own: "accept" ends one judgement, not both.
  struct Base {
    const char *name, *hook, *side, *map;
    int priority;
  };
  for (const Base& base : {Base{"out-of-pods", "forward", "saddr", "egress", 10},
                           {"out-of-pods-to-node", "input", "saddr", "egress", 10},
                           {"into-pods", "forward", "daddr", "ingress", 11}}) {
    line("add chain inet {} {} {{ type filter hook {} priority {}; policy accept; }}", table, base.name, base.hook, base.priority);
    line("flush chain inet {} {}", table, base.name);
    line("add rule inet {} {} ct state established,related accept", table, base.name);
    // Without these a neighbour is not even found.
    line("add rule inet {} {} icmpv6 type {{ nd-neighbor-solicit, nd-neighbor-advert, nd-router-solicit, nd-router-advert }} accept", table,
         base.name);
    line("add rule inet {} {} ip {} vmap @{}4", table, base.name, base.side, base.map);
    line("add rule inet {} {} ip6 {} vmap @{}6", table, base.name, base.side, base.map);
  }
}

}  // namespace

PolicyPod policy_pod(const json::Value& pod, const std::string& node) {
  PolicyPod out;
  out.ns = json::get_string(pod, {"metadata", "namespace"});
  out.name = json::get_string(pod, {"metadata", "name"});
  out.labels = model::Labels::from_json(json::find(pod, {"metadata", "labels"}));
  out.is_local = json::get_string(pod, {"spec", "nodeName"}) == node;
  const std::string_view phase = json::get_string(pod, {"status", "phase"});
  if (json::get_bool(pod, {"spec", "hostNetwork"}) || phase == "Succeeded" || phase == "Failed") return out;
  for (const json::Value& ip : json::get_array(pod, {"status", "podIPs"}))
    if (std::string one = canonical_block(json::get_string(ip, {"ip"})); !one.empty())
      out.addresses.push_back(one.substr(0, one.find('/')));
  for (const char* list : {"containers", "initContainers"})
    for (const json::Value& container : json::get_array(pod, {"spec", list}))
      for (const json::Value& port : json::get_array(container, {"ports"}))
        if (const auto name = json::get_string(port, {"name"}); !name.empty())
          out.ports.push_back({std::string(name), lower_word(json::get_string(port, {"protocol"}, "TCP")),
                               static_cast<int>(json::get_int(port, {"containerPort"}))});
  return out;
}

PolicyRules compile_policies(const PolicyInput& input) { return Compiler(input).run(); }

std::string no_policies(const std::string& table) { return fmt::format("add table inet {0}\ndelete table inet {0}\n", table); }

std::string whole_policies(const PolicyRules& rules, const std::string& table) {
  std::string out = no_policies(table);
  frame_policies(out, table);
  return out + policies_between({}, rules, table);
}

std::string policies_between(const PolicyRules& before, const PolicyRules& after, const std::string& table) {
  std::string out;
  const auto line = [&]<typename... Args>(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out), format, std::forward<Args>(args)...);
    out += '\n';
  };
  for (const auto& [where, verdict] : before.guards)
    if (const auto now = after.guards.find(where); now == after.guards.end() || now->second != verdict)
      line("delete element inet {} {} {{ {} : {} }}", table, where.first, where.second, verdict);
  for (const auto& [chain, rules] : after.chains)
    if (!before.chains.contains(chain)) line("add chain inet {} {}", table, chain);
  // A chain can go when nobody leads to it: those that changed are emptied first, then those that went, then all are filled.
  const auto changed = [&](const std::string& chain, const std::vector<std::string>& rules) {
    const auto old = before.chains.find(chain);
    return old == before.chains.end() || old->second != rules;
  };
  for (const auto& [chain, rules] : before.chains)
    if (const auto now = after.chains.find(chain); now == after.chains.end() || now->second != rules)
      line("flush chain inet {} {}", table, chain);
  for (const auto& [chain, rules] : before.chains)
    if (!after.chains.contains(chain)) line("delete chain inet {} {}", table, chain);
  for (const auto& [chain, rules] : after.chains)
    if (changed(chain, rules))
      for (const std::string& rule : rules) line("add rule inet {} {} {}", table, chain, rule);
  for (const auto& [where, verdict] : after.guards)
    if (const auto old = before.guards.find(where); old == before.guards.end() || old->second != verdict)
      line("add element inet {} {} {{ {} : {} }}", table, where.first, where.second, verdict);
  return out;
}

}  // namespace berth::node::services
