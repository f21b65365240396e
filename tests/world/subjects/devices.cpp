// Pods that ask for devices, more than there are: no device is allocated to two claims, and what goes leaves its device.
#include "tests/world/subject.h"

namespace berth::world {
namespace {

constexpr const char* kNs = "devices";
constexpr int kDevices = 8;  ///< Two on each of the world's four nodes.

class DeviceSubject final : public Subject {
 public:
  using Subject::Subject;

  void set_up() override {
    hand_ = std::make_unique<Hand>(world_, "researcher");
    hand_->make(gvr::kNamespaces, "", make_namespace(kNs));
    hand_->make(gvr::kClasses, "",
                document(R"({"apiVersion":"resource.k8s.io/v1","kind":"DeviceClass","metadata":{"name":"gpu"},"spec":{"selectors":[)"
                         R"({"cel":{"expression":"device.driver == 'gpu.example.com'"}}]}})"));
    hand_->make(gvr::kClaimTemplates, kNs,
                document(R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaimTemplate","metadata":{"name":"one"},"spec":{"spec":)"
                         R"({"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"gpu"}}]}}}})"));
  }

  void act(std::uint64_t which, double share) override {
    const std::string name = fmt::format("d{}", which % (kDevices + 4));
    if (share < 0.4) return hand_->try_remove(gvr::kPods, kNs, name);
    for (int i = 0; i < 3; ++i) hand_->try_make(gvr::kPods, kNs, pod(fmt::format("d{}", (which + i) % (kDevices + 4))));
  }

  void see(const Seen& seen) override {
    if (seen.resource != "resourceclaims") return;
    const std::string key = fmt::format("{}/{}", seen.ns, seen.name);
    std::erase_if(given_, [&](const auto& entry) { return entry.second == key; });
    for (const auto& result : json::get_array(seen.now, {"status", "allocation", "devices", "results"})) {
      const std::string device = fmt::format("{}/{}/{}", json::get_string(result, {"driver"}), json::get_string(result, {"pool"}),
                                             json::get_string(result, {"device"}));
      const auto [at, is_free] = given_.emplace(device, key);
      if (!is_free && at->second != key) find(fmt::format("{} is given {}, which {} has", seen.words(), device, at->second));
    }
  }

  void heal() override {
    for (const auto& name : chronicle_.names("pods", kNs)) hand_->remove(gvr::kPods, kNs, name);
  }
  void later() override {
    for (int i = 0; i < kDevices; ++i) hand_->make(gvr::kPods, kNs, pod(fmt::format("last-{}", i)));
  }
  void judge_rest() override {
    int running = 0;
    chronicle_.for_each("pods", kNs, [&](const std::string&, const json::Value& pod) { running += is_ready(pod); });
    if (running != kDevices) find(fmt::format("{} pods run with a device, and there are {} devices", running, kDevices));
    if (given_.size() != kDevices) find(fmt::format("{} devices are given at rest", given_.size()));
  }

 private:
  static json::Value pod(const std::string& name) {
    json::Value spec = pod_spec();
    json::set(spec, {"resourceClaims"}, document(R"([{"name":"r","resourceClaimTemplateName":"one"}])"));
    json::set(spec.get_object()["containers"].get_array()[0], {"resources", "claims"}, document(R"([{"name":"r"}])"));
    return json::Object{{"apiVersion", "v1"}, {"kind", "Pod"}, {"metadata", json::Object{{"name", name}}}, {"spec", std::move(spec)}};
  }

  std::unique_ptr<Hand> hand_;
  std::map<std::string, std::string> given_;  ///< Devices, and the claim that has each.
};

}  // namespace

std::unique_ptr<Subject> make_device_subject(World& world, Chronicle& chronicle) {
  return std::make_unique<DeviceSubject>(world, chronicle);
}

}  // namespace berth::world
