// Addresses and ports of Services that come, change, fail to be written and go: nothing is given twice, nothing is refused that is free,
// and everything comes back.
#include "apiserver/kinds/service_allocator.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/support/life.h"

namespace berth::apiserver {
namespace {

constexpr int kFirstPort = 30000, kPorts = 24, kAddresses = 14;

std::set<int> ports_of(const json::Value& service) {
  std::set<int> out;
  for (const json::Value& port : json::get_array(service, {"spec", "ports"}))
    if (const auto number = json::get_int(port, {"nodePort"}); number != 0) out.insert(static_cast<int>(number));
  if (const auto number = json::get_int(service, {"spec", "healthCheckNodePort"}); number != 0) out.insert(static_cast<int>(number));
  return out;
}
std::string address_of(const json::Value& service) {
  const std::string address(json::get_string(service, {"spec", "clusterIP"}));
  return address == "None" ? "" : address;
}

class Life {
 public:
  explicit Life(std::uint64_t seed) : dice_(seed) { EXPECT_TRUE(allocator_.configure("10.0.0.0/28", kFirstPort, kFirstPort + kPorts - 1)); }

  void run(int steps) {
    for (int i = 0; i < steps && !::testing::Test::HasFailure(); ++i) {
      SCOPED_TRACE(fmt::format("step {}", i));
      step();
      judge();
    }
    while (!services_.empty()) remove(services_.begin()->first);
    fill();
  }

 private:
  void step() {
    const std::string name = fmt::format("s{}", dice_.below(18));
    const auto found = services_.find(name);
    if (found == services_.end())
      write(name, make(name), nullptr);
    else if (dice_.chance(35))
      remove(name);
    else
      write(name, change(found->second), &found->second);
  }
  json::Value make(const std::string& name) {
    constexpr std::array<const char*, 5> kTypes = {"ClusterIP", "ClusterIP", "NodePort", "LoadBalancer", "ExternalName"};
    json::Value out = json::Object{{"metadata", json::Object{{"namespace", "default"}, {"name", name}}},
                                   {"spec", json::Object{{"type", dice_.of(kTypes)}}}};
    if (dice_.chance(20)) json::set(out, {"spec", "clusterIP"}, json::Value(dice_.chance(30) ? std::string("None") : some_address()));
    // What validation refuses does not come here: ports of those that want none.
    const std::string type(json::get_string(out, {"spec", "type"}));
    if (type == "LoadBalancer" && dice_.chance(40)) {
      json::set(out, {"spec", "externalTrafficPolicy"}, json::Value("Local"));
      if (dice_.chance(40)) json::set(out, {"spec", "healthCheckNodePort"}, json::Value(some_port()));
    }
    const bool wants_ports = type == "NodePort" || (type == "LoadBalancer" && dice_.chance(70));
    if (type == "LoadBalancer" && !wants_ports) json::set(out, {"spec", "allocateLoadBalancerNodePorts"}, json::Value(false));
    json::Array ports;
    for (int i = dice_.below(3); i >= 0; --i) {
      json::Object port{{"port", 80 + i}};
      if ((wants_ports || type == "LoadBalancer") && dice_.chance(25)) port["nodePort"] = some_port();
      ports.push_back(std::move(port));
    }
    json::set(out, {"spec", "ports"}, std::move(ports));
    return out;
  }
  std::string some_address() { return fmt::format("10.0.0.{}", dice_.below(17)); }
  int some_port() { return kFirstPort - 1 + dice_.below(kPorts + 2); }
  json::Value change(const json::Value& before) {
    json::Value out = before;
    switch (dice_.below(6)) {
      case 0: {
        constexpr std::array<const char*, 3> kTypes = {"ClusterIP", "NodePort", "LoadBalancer"};
        json::set(out, {"spec", "type"}, json::Value(dice_.of(kTypes)));
        for (json::Value& port : json::find(out, {"spec", "ports"})->get_array()) port.get_object().erase("nodePort");
        json::erase(out, {"spec", "healthCheckNodePort"});
        break;
      }
      case 1:
        json::find(out, {"spec", "ports"})->get_array().push_back(json::Object{{"port", 90 + dice_.below(9)}});
        break;
      case 3:
        if (json::get_string(out, {"spec", "type"}) == "LoadBalancer")
          json::set(out, {"spec", "allocateLoadBalancerNodePorts"}, json::Value(dice_.chance(50)));
        break;
      case 4:
        if (json::get_string(out, {"spec", "type"}) == "LoadBalancer")
          json::set(json::find(out, {"spec", "ports"})->get_array()[0], {"nodePort"}, json::Value(some_port()));
        break;
      case 2:
        json::find(out, {"spec", "ports"})->get_array().pop_back();
        if (json::get_array(out, {"spec", "ports"}).empty()) json::set(out, {"spec", "ports"}, json::Array{json::Object{{"port", 80}}});
        break;
      default:
        json::erase(out, {"spec", "clusterIP"});
        json::erase(out, {"spec", "clusterIPs"});
    }
    return out;
  }

  void write(const std::string& name, json::Value service, const json::Value* before) {
    const auto taken = allocator_.allocate(service, before);
    if (!taken) return judge_refusal(service, taken.error(), before);
    if (dice_.chance(20)) return allocator_.release(*taken);  // The write failed.
    if (before != nullptr) allocator_.release_unused(*before, &service);
    services_[name] = std::move(service);
  }
  void remove(const std::string& name) {
    allocator_.release_unused(services_.at(name), nullptr);
    services_.erase(name);
  }

  void judge() const {
    std::map<std::string, std::string> addresses;
    std::map<int, std::string> ports;
    for (const auto& [name, service] : services_) {
      if (const std::string address = address_of(service); !address.empty()) {
        const auto [other, is_new] = addresses.emplace(address, name);
        EXPECT_TRUE(is_new) << address << " of " << name << " is " << other->second << "'s, too";
      }
      for (const int port : ports_of(service)) {
        const auto [other, is_new] = ports.emplace(port, name);
        EXPECT_TRUE(is_new) << port << " of " << name << " is " << other->second << "'s, too";
      }
      const std::string type(json::get_string(service, {"spec", "type"}));
      EXPECT_EQ(json::get_string(service, {"spec", "clusterIP"}).empty(), type == "ExternalName") << json::serialize(service);
      const bool wants_ports =
          type == "NodePort" || (type == "LoadBalancer" && json::get_bool(service, {"spec", "allocateLoadBalancerNodePorts"}, true));
      for (const json::Value& port : json::get_array(service, {"spec", "ports"}))
        EXPECT_TRUE(!wants_ports || json::get_int(port, {"nodePort"}) != 0) << json::serialize(service);
    }
  }
  void judge_refusal(const json::Value& service, const model::ApiStatus& status, const json::Value* before) const {
    std::set<std::string> addresses;
    std::set<int> ports;
    for (const auto& [name, one] : services_) {
      if (const std::string address = address_of(one); !address.empty()) addresses.insert(address);
      ports.merge(ports_of(one));
    }
    const std::string& why = status.message;
    const auto says = [&](std::string_view words) { return why.find(words) != std::string::npos; };
    if (says("serviceIP: range is full")) return expect(addresses.size() == kAddresses, why);
    if (says("range is full")) return expect(ports.size() + ports_of(service).size() >= kPorts, why);
    const auto wanted = address_of(service);
    if (says("provided IP is already allocated")) {
      EXPECT_TRUE(addresses.contains(wanted)) << why;
    } else if (says("does not match the current range")) {
      EXPECT_TRUE(wanted == "10.0.0.0" || wanted == "10.0.0.15" || wanted == "10.0.0.16") << why;
    } else if (says("provided port is already allocated")) {
      EXPECT_TRUE(std::ranges::any_of(ports_of(service), [&](int port) { return ports.contains(port); }) || has_twice(service)) << why;
    } else if (says("not in the valid range")) {
      EXPECT_TRUE(ports_of(service).contains(kFirstPort - 1) || ports_of(service).contains(kFirstPort + kPorts)) << why;
    } else {
      ADD_FAILURE() << why << ": " << json::serialize(service) << (before == nullptr ? "" : json::serialize(*before));
    }
  }
  static void expect(bool holds, const std::string& why) { EXPECT_TRUE(holds) << why; }
  /// Its health check wants one of its own ports.
  static bool has_twice(const json::Value& service) {
    return std::ranges::any_of(json::get_array(service, {"spec", "ports"}), [&](const json::Value& port) {
      return json::get_int(port, {"nodePort"}) != 0 &&
             json::get_int(port, {"nodePort"}) == json::get_int(service, {"spec", "healthCheckNodePort"});
    });
  }
  /// Everything is free again.
  void fill() {
    for (int i = 0; i < kPorts; ++i) {
      json::Value service = json::Object{
          {"metadata", json::Object{{"name", "p"}}},
          {"spec", json::Object{{"type", "NodePort"}, {"clusterIP", "None"}, {"ports", json::Array{json::Object{{"port", 80}}}}}}};
      EXPECT_TRUE(allocator_.allocate(service, nullptr)) << "port " << i;
    }
    for (int i = 0; i < kAddresses; ++i) {
      json::Value service = json::Object{{"metadata", json::Object{{"name", "a"}}}, {"spec", json::Object{{"type", "ClusterIP"}}}};
      EXPECT_TRUE(allocator_.allocate(service, nullptr)) << "address " << i;
    }
    json::Value one_more = json::Object{{"metadata", json::Object{{"name", "a"}}}, {"spec", json::Object{{"type", "ClusterIP"}}}};
    EXPECT_FALSE(allocator_.allocate(one_more, nullptr));
  }

  testing::Dice dice_;
  ServiceAllocator allocator_;
  std::map<std::string, json::Value> services_;
};

TEST(ServiceAllocations, NothingIsGivenTwiceAndEverythingComesBack) {
  for (std::uint64_t seed = 1; seed <= 20 && !HasFailure(); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Life(seed).run(400);
  }
}

/// A balancer that leads to the pods itself needs no node ports, and may name some.
TEST(ServiceAllocations, WhoGetsNoNodePortsHasThoseThatItNames) {
  ServiceAllocator allocator;
  ASSERT_TRUE(allocator.configure("10.0.0.0/28", kFirstPort, kFirstPort + kPorts - 1));
  const auto balanced = [](const std::string& name, json::Array ports, bool gets_ports = false) {
    return json::Value(json::Object{{"metadata", json::Object{{"name", name}}},
                                    {"spec", json::Object{{"type", "LoadBalancer"},
                                                          {"clusterIP", "None"},
                                                          {"allocateLoadBalancerNodePorts", gets_ports},
                                                          {"ports", std::move(ports)}}}});
  };
  const json::Object plain{{"port", 80}}, named{{"port", 81}, {"nodePort", 30003}}, beyond{{"port", 82}, {"nodePort", 20000}};
  json::Value first = balanced("first", {plain, named}), second = balanced("second", {named}), third = balanced("third", {beyond});
  ASSERT_TRUE(allocator.allocate(first, nullptr));
  EXPECT_EQ(ports_of(first), std::set<int>{30003}) << "it gets no other";
  const auto taken = allocator.allocate(second, nullptr);
  ASSERT_FALSE(taken);
  EXPECT_NE(taken.error().message.find("spec.ports[0].nodePort: Invalid value: 30003: provided port is already allocated"),
            std::string::npos)
      << taken.error().message;
  EXPECT_FALSE(allocator.allocate(third, nullptr)) << "it is not in the range";
  json::Value wants_all = balanced("first", {plain, named}, true);
  ASSERT_TRUE(allocator.allocate(wants_all, &first));
  EXPECT_EQ(ports_of(wants_all).size(), 2U) << "the one that it had, and one more";
  allocator.release_unused(wants_all, nullptr);
  EXPECT_TRUE(allocator.allocate(second, nullptr)) << "what was named is given back like any other";
}

TEST(ServiceAllocations, WhatStoredServicesHoldIsTaken) {
  ServiceAllocator allocator;
  ASSERT_TRUE(allocator.configure("10.0.0.0/28", kFirstPort, kFirstPort + kPorts - 1));
  allocator.adopt(json::Object{
      {"spec", json::Object{
                   {"clusterIP", "10.0.0.3"}, {"healthCheckNodePort", 30001}, {"ports", json::Array{json::Object{{"nodePort", 30002}}}}}}});
  const auto refused = [&](const char* address, int port) {
    json::Value service = json::Object{{"metadata", json::Object{{"name", "s"}}},
                                       {"spec", json::Object{{"type", "NodePort"},
                                                             {"clusterIP", address},
                                                             {"ports", json::Array{json::Object{{"port", 80}, {"nodePort", port}}}}}}};
    const auto taken = allocator.allocate(service, nullptr);
    if (taken) allocator.release(*taken);
    return !taken;
  };
  EXPECT_TRUE(refused("10.0.0.3", 30003));
  EXPECT_TRUE(refused("10.0.0.4", 30001));
  EXPECT_TRUE(refused("10.0.0.4", 30002));
  EXPECT_FALSE(refused("10.0.0.4", 30003));
}

TEST(ServiceAllocations, ARangeIsOneOfIpv4WithRoom) {
  for (const char* wrong : {"", "10.0.0.0", "10.0.0.0/7", "10.0.0.0/31", "fd00::/112", "10.0.0/24", "10.0.0.0/x"})
    EXPECT_FALSE(check_service_range(wrong)) << wrong;
  for (const char* right : {"10.0.0.0/8", "10.0.0.0/30", "10.1.2.3/24"}) EXPECT_TRUE(check_service_range(right)) << right;
  ServiceAllocator allocator;
  EXPECT_FALSE(allocator.configure("10.0.0.0/24", 0, 9));
  EXPECT_FALSE(allocator.configure("10.0.0.0/24", 1, 65536));
  EXPECT_FALSE(allocator.configure("10.0.0.0/24", 9, 8));
  EXPECT_TRUE(allocator.configure("10.0.0.0/24", 9, 9));
}

}  // namespace
}  // namespace berth::apiserver
