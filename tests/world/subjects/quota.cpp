// A namespace with a quota, and creators who race for it through different servers: at no revision is there more than it allows, and what
// goes is free again.
#include "model/quantity.h"
#include "tests/world/subject.h"

namespace berth::world {
namespace {

constexpr const char* kNs = "quota";
constexpr std::int64_t kPods = 4, kCpuMilli = 12;

class QuotaSubject final : public Subject {
 public:
  using Subject::Subject;

  void set_up() override {
    for (int i = 0; i < 3; ++i) hands_.push_back(std::make_unique<Hand>(world_, fmt::format("creator-{}", i)));
    hands_[0]->make(gvr::kNamespaces, "", make_namespace(kNs));
    hands_[0]->make(gvr::kQuotas, kNs,
                    document(fmt::format(R"({{"apiVersion":"v1","kind":"ResourceQuota","metadata":{{"name":"q"}},)"
                                         R"("spec":{{"hard":{{"pods":"{}","requests.cpu":"{}m"}}}}}})",
                                         kPods, kCpuMilli)));
  }

  void act(std::uint64_t which, double share) override {
    const auto pods = chronicle_.names("pods", kNs);
    if (share < 0.5 && !pods.empty()) return hands_[which % 3]->try_remove(gvr::kPods, kNs, pods[which % pods.size()]);
    // What the quota's own controller has not seen yet is limited by nothing.
    if (json::find(chronicle_.find("resourcequotas", kNs, "q"), {"status", "used", "pods"}) == nullptr) return;
    // Again and again: the last of them come when the first are half done.
    for (int burst = 0; burst < 4; ++burst)
      world_.loop().schedule_after(std::chrono::milliseconds(800 * burst), [this, which] {
        if (!is_at_rest_) make_some(which);
      });
  }

  void see(const Seen& seen) override {
    if (seen.resource != "pods" || seen.ns != kNs) return;
    if (!seen.is_new() || seen.now.is_null()) return;
    std::int64_t count = 0, milli = 0;
    chronicle_.for_each("pods", kNs, [&](const std::string&, const json::Value& pod) {
      if (!counts(pod, seen.at)) return;
      ++count;
      milli += cpu_of(pod);
    });
    if (count > kPods || milli > kCpuMilli)
      find(fmt::format("{}: {} pods of {}, {}m cpu of {}m", seen.words(), count, kPods, milli, kCpuMilli));
  }

  void heal() override {
    is_at_rest_ = true;
    for (const auto& name : chronicle_.names("pods", kNs)) hands_[0]->remove(gvr::kPods, kNs, name);
  }
  void later() override {
    for (int i = 0; i < kPods; ++i) hands_[0]->make(gvr::kPods, kNs, pod(fmt::format("last-{}", i), kCpuMilli / kPods));
  }
  void judge_rest() override {
    if (const auto count = chronicle_.names("pods", kNs).size(); count != kPods)
      find(fmt::format("{} pods at rest where {} have room and are asked for", count, kPods));
    const json::Value& quota = chronicle_.find("resourcequotas", kNs, "q");
    if (json::get_string(quota, {"status", "used", "pods"}) != std::to_string(kPods))
      find(fmt::format("a quota says that {} pods of {} are there", json::get_string(quota, {"status", "used", "pods"}), kPods));
  }

 private:
  void make_some(std::uint64_t which) {
    for (auto& hand : hands_) {
      ++made_;
      hand->try_make(gvr::kPods, kNs, pod(fmt::format("p{}", made_), 1 + (which + made_) % 5));
    }
  }
  static json::Value pod(const std::string& name, std::uint64_t milli) {
    return json::Object{
        {"apiVersion", "v1"}, {"kind", "Pod"}, {"metadata", json::Object{{"name", name}}}, {"spec", pod_spec(fmt::format("{}m", milli))}};
  }
  static std::int64_t cpu_of(const json::Value& pod) {
    std::int64_t milli = 0;
    for (const auto& container : json::get_array(pod, {"spec", "containers"}))
      if (const auto amount = model::Quantity::parse(json::get_string(container, {"resources", "requests", "cpu"})))
        milli += amount->milli_value();
    return milli;
  }
  /// A pod that should be gone by now is not charged (pkg/quota/v1/evaluator/core/pods.go); by whose clock, nobody knows.
  static bool counts(const json::Value& pod, TimePoint now) {
    if (is_done(pod)) return false;
    const auto gone_at = parse_rfc3339(json::get_string(pod, {"metadata", "deletionTimestamp"}));
    return !gone_at || now + 2 * kMostSkew < *gone_at;
  }

  std::vector<std::unique_ptr<Hand>> hands_;
  std::uint64_t made_ = 0;
  bool is_at_rest_ = false;
};

}  // namespace

std::unique_ptr<Subject> make_quota_subject(World& world, Chronicle& chronicle) { return std::make_unique<QuotaSubject>(world, chronicle); }

}  // namespace berth::world
