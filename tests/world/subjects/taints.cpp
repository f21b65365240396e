// Nodes are tainted (NoExecute) and freed. No pod goes for a taint before its tolerationSeconds are over, and whoever controls it then,
// however often that was somebody else meanwhile, lets it go when they are.
#include <algorithm>
#include <optional>

#include "tests/world/subject.h"

namespace berth::world {
namespace {

using std::chrono::seconds;

constexpr const char* kNs = "taints";
constexpr const char* kTaint = "berth.dev/op";
constexpr const char* kClosed = "berth.dev/closed";  // So that nobody comes back to a tainted node at once.
constexpr Duration kTolerated = seconds(15);
/// At rest: the taint's own seconds, and until when the pods must be gone: a new leader, and what its first look takes.
constexpr Duration kLongTolerated = seconds(70), kLate = seconds(30);
/// Times are written in whole seconds, by clocks that may be wrong.
constexpr Duration kSlack = 2 * kMostSkew + seconds(2);
/// How long a taint that has gone may still be what a controller knows.
constexpr Duration kKnownFor = seconds(90);
constexpr int kNodes = 4;

class TaintSubject final : public Subject {
 public:
  using Subject::Subject;

  void set_up() override {
    hand_ = std::make_unique<Hand>(world_, "warden");
    hand_->make(gvr::kNamespaces, "", make_namespace(kNs));
    make_tolerant("short", kTolerated);
    make_tolerant("long", kLongTolerated);
  }

  void act(std::uint64_t which, double share) override {
    const std::string node = fmt::format("node-{}", 1 + which % kNodes);
    taint(node, share < 0.6);
  }

  void see(const Seen& seen) override {
    if (seen.resource == "nodes") return see_node(seen);
    if (seen.resource != "pods" || seen.now.is_null()) return;
    if (seen.is_new()) bound_.erase(std::string(Seen::uid(seen.before)));
    const std::string uid(Seen::uid(seen.now));
    if (!json::get_string(seen.now, {"spec", "nodeName"}).empty()) bound_.emplace(uid, seen.at);
    const json::Value* mark = condition_of(seen.now, "DisruptionTarget");
    if (mark == nullptr || json::get_string(*mark, {"reason"}) != "DeletionByTaintManager") return;
    const json::Value* old = seen.is_new() ? nullptr : condition_of(seen.before, "DisruptionTarget");
    if (old != nullptr && json::get_string(*old, {"reason"}) == "DeletionByTaintManager" && json::get_string(*old, {"status"}) == "True")
      return;
    if (json::get_string(*mark, {"status"}) == "True" && !may_go(seen.now, bound_[uid], seen.at))
      find(fmt::format("{}: told to go before its time", seen.words()));
  }

  /// All nodes are free. A minute later one is not, and in the middle of the pods' seconds who controls them changes.
  void heal() override {
    for (int i = 1; i <= kNodes; ++i) taint(fmt::format("node-{}", i), false);
    auto& loop = world_.loop();
    loop.schedule_after(seconds(60), [this] { taint(kLast, true); });
    loop.schedule_after(seconds(60) + kLongTolerated - seconds(15), [this] {
      for (const char* name : {"controllers-0", "controllers-1"}) {
        world_.kill(name, false);
        world_.start(name);
      }
    });
    loop.schedule_after(seconds(60) + kLongTolerated + kLate + seconds(1), [this] {
      chronicle_.for_each("pods", kNs, [&](const std::string& name, const json::Value& pod) {
        if (is_active(pod) && json::get_string(pod, {"spec", "nodeName"}) == kLast)
          find(fmt::format("{} is on {} still, whose taint it tolerates no longer", name, kLast));
      });
      taint(kLast, false);
    });
  }

 private:
  static constexpr const char* kLast = "node-2";
  /// A taint's time on a node.
  struct Presence {
    json::Value taint;
    TimePoint from;
    std::optional<TimePoint> to;
  };

  void make_tolerant(const std::string& name, Duration tolerated) {
    json::Value deployment = document(fmt::format(
        R"({{"apiVersion":"apps/v1","kind":"Deployment","metadata":{{"name":"{0}"}},"spec":{{"replicas":3,"selector":{{"matchLabels":)"
        R"({{"app":"{0}"}}}},"template":{{"metadata":{{"labels":{{"app":"{0}"}}}}}}}}}})",
        name));
    json::Value spec = pod_spec();
    json::set(spec, {"tolerations"},
              document(fmt::format(R"([{{"key":"{}","operator":"Exists","effect":"NoExecute","tolerationSeconds":{}}}])", kTaint,
                                   std::chrono::duration_cast<seconds>(tolerated).count())));
    json::set(deployment, {"spec", "template", "spec"}, std::move(spec));
    hand_->make(gvr::kDeployments, kNs, std::move(deployment));
  }

  void taint(const std::string& node, bool is_there) {
    hand_->edit(gvr::kNodes, "", node, [is_there](json::Value& object) {
      json::Array taints;
      for (const auto& taint : json::get_array(object, {"spec", "taints"}))
        if (const auto key = json::get_string(taint, {"key"}); key != kTaint && key != kClosed) taints.push_back(taint);
      if (is_there) {
        taints.push_back(json::Object{{"key", kTaint}, {"effect", "NoExecute"}});
        taints.push_back(json::Object{{"key", kClosed}, {"effect", "NoSchedule"}});
      }
      json::set(object, {"spec", "taints"}, std::move(taints));
    });
  }

  void see_node(const Seen& seen) {
    auto& presences = presences_[std::string(seen.name)];
    const json::Array& now = json::get_array(seen.now, {"spec", "taints"});
    const auto is_one = [](const json::Value& taint, const json::Value& other) {
      return json::get_string(taint, {"key"}) == json::get_string(other, {"key"}) &&
             json::get_string(taint, {"effect"}) == json::get_string(other, {"effect"});
    };
    for (Presence& presence : presences)
      if (!presence.to && std::ranges::none_of(now, [&](const auto& taint) { return is_one(taint, presence.taint); }))
        presence.to = seen.at;
    for (const auto& taint : now) {
      if (json::get_string(taint, {"effect"}) != "NoExecute") continue;
      if (std::ranges::none_of(presences, [&](const Presence& presence) { return !presence.to && is_one(taint, presence.taint); }))
        presences.push_back({taint, seen.at, {}});
    }
  }

  /// Whether there is a taint that it tolerates no longer, or that a controller may think is there.
  [[nodiscard]] bool may_go(const json::Value& pod, TimePoint bound, TimePoint now) const {
    const auto found = presences_.find(std::string(json::get_string(pod, {"spec", "nodeName"})));
    if (found == presences_.end()) return false;
    return std::ranges::any_of(found->second, [&](const Presence& presence) {
      if (presence.to && *presence.to + kKnownFor < now) return false;
      const auto tolerated = tolerated_of(pod, json::get_string(presence.taint, {"key"}));
      return tolerated && now + kSlack >= std::max(presence.from, bound) + *tolerated;
    });
  }

  /// Nullopt: for ever.
  static std::optional<Duration> tolerated_of(const json::Value& pod, std::string_view key) {
    for (const auto& toleration : json::get_array(pod, {"spec", "tolerations"})) {
      const auto effect = json::get_string(toleration, {"effect"}), of = json::get_string(toleration, {"key"});
      if ((!effect.empty() && effect != "NoExecute") || (!of.empty() && of != key)) continue;
      const json::Value* left = json::find(toleration, {"tolerationSeconds"});
      if (left == nullptr) return std::nullopt;
      return seconds(json::get_int(toleration, {"tolerationSeconds"}));
    }
    return Duration{};
  }

  std::unique_ptr<Hand> hand_;
  std::map<std::string, std::vector<Presence>> presences_;  ///< By node.
  std::map<std::string, TimePoint> bound_;                  ///< By pods' uids.
};

}  // namespace

std::unique_ptr<Subject> make_taint_subject(World& world, Chronicle& chronicle) { return std::make_unique<TaintSubject>(world, chronicle); }

}  // namespace berth::world
