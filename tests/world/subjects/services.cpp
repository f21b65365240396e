// Services come and go, more of them than there are node ports: no address and no port is given twice, and what they gave back is given
// again.
#include "tests/world/subject.h"

namespace berth::world {
namespace {

constexpr const char* kNs = "default";
constexpr int kServices = 8, kPorts = kLastNodePort - kFirstNodePort + 1;
/// Of the world's 14 addresses one is the API server's own.
constexpr int kAddresses = 13;

class ServiceSubject final : public Subject {
 public:
  using Subject::Subject;

  void set_up() override {
    for (int i = 0; i < 3; ++i) hands_.push_back(std::make_unique<Hand>(world_, fmt::format("publisher-{}", i)));
  }

  void act(std::uint64_t which, double share) override {
    for (std::size_t i = 0; i < hands_.size(); ++i) {
      const std::string name = fmt::format("s{}", (which + 3 * i) % kServices);
      if (share < 0.4)
        hands_[i]->try_remove(gvr::kServices, kNs, name);
      else if (share < 0.8)
        hands_[i]->try_make(gvr::kServices, kNs, service(name, share < 0.7));
      else  // From one type to the other: its port is given back, or it is given one.
        hands_[i]->client.patch(gvr::kServices, kNs, name, client::PatchType::kMerge,
                                json::Object{{"spec", json::Object{{"type", which % 2 == 0 ? "NodePort" : "ClusterIP"}}}},
                                [](const auto&) {});
    }
  }

  void see(const Seen& seen) override {
    if (seen.resource != "services") return;
    const std::string key = fmt::format("{}/{}", seen.ns, seen.name);
    std::erase_if(given_, [&](const auto& entry) { return entry.second == key; });
    if (const auto address = json::get_string(seen.now, {"spec", "clusterIP"}); !address.empty() && address != "None")
      give(std::string(address), key, seen);
    for (const auto& port : json::get_array(seen.now, {"spec", "ports"}))
      if (const auto number = json::get_int(port, {"nodePort"}); number != 0) give(std::to_string(number), key, seen);
  }

  void heal() override {
    for (int i = 0; i < kServices; ++i) hands_[0]->remove(gvr::kServices, kNs, fmt::format("s{}", i));
  }
  /// As many as there are addresses, and as many of them with a port as there are ports.
  void later() override {
    for (int i = 0; i < kAddresses; ++i) hands_[0]->make(gvr::kServices, kNs, service(fmt::format("last-{}", i), i < kPorts));
  }
  void judge_rest() override {
    for (int i = 0; i < kAddresses; ++i)
      if (chronicle_.find("services", kNs, fmt::format("last-{}", i)).is_null())
        find(fmt::format("no {} for the service last-{}, though all are free", i < kPorts ? "port or address" : "address", i));
  }

 private:
  static json::Value service(const std::string& name, bool has_port) {
    json::Value out = document(R"({"apiVersion":"v1","kind":"Service","spec":{"ports":[{"port":80}]}})");
    json::set(out, {"metadata", "name"}, json::Value(name));
    json::set(out, {"spec", "type"}, has_port ? "NodePort" : "ClusterIP");
    return out;
  }
  void give(const std::string& what, const std::string& key, const Seen& seen) {
    const auto [at, is_free] = given_.emplace(what, key);
    if (!is_free && at->second != key) find(fmt::format("{} has {} of {}", seen.words(), what, at->second));
  }

  std::vector<std::unique_ptr<Hand>> hands_;
  std::map<std::string, std::string> given_;  ///< Addresses and ports, and who has them.
};

}  // namespace

std::unique_ptr<Subject> make_service_subject(World& world, Chronicle& chronicle) {
  return std::make_unique<ServiceSubject>(world, chronicle);
}

}  // namespace berth::world
