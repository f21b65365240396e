// Two who apply one object, each its own field: nobody's application changes the other's field, and each field is as its owner last applied
// it and was told so.
#include <set>

#include "client/response.h"
#include "tests/world/subject.h"

namespace berth::world {
namespace {

constexpr const char* kNs = "default";
constexpr const char* kName = "shared";

/// One of them: one application after the other, each with the next number; every fifth is without the field.
class Applier {
 public:
  Applier(World& world, std::string name) : name_(std::move(name)), hand_(world, name_) {}

  void go_on() {
    if (is_busy_) return;
    is_busy_ = true;
    ++number_;
    const std::string value = number_ % 5 == 0 ? "" : std::to_string(number_);
    json::Value body = json::Object{{"apiVersion", "v1"}, {"kind", "ConfigMap"}, {"metadata", json::Object{{"name", kName}}}};
    json::set(body, {"data", "common"}, "both");  // Which both own.
    if (!value.empty()) json::set(body, {"data", name_}, json::Value(value));
    possible_.insert(value);
    hand_.client.patch(gvr::kConfigMaps, kNs, kName, client::PatchType::kApply, body, [this, value](const auto& answer) {
      is_busy_ = false;
      is_told_ = static_cast<bool>(answer);
      if (answer) {
        // What was not answered may come yet, even after what was.
        possible_ = lost_;
        possible_.insert(value);
        if (const auto said = json::get_string(*answer, {"data", name_}); said != value)
          refused_.push_back(fmt::format("applied \"{}\", was told of \"{}\"", value, said));
      } else if (client::is_uncertain(answer.error())) {
        lost_.insert(value);
      } else if (answer.error().code != 429 && answer.error().code != 409) {
        refused_.push_back(answer.error().message);
      }
      if (is_insisting_ && !is_told_) go_on();
    });
  }
  /// Nothing is lost from now on: again until it is told.
  void insist() {
    lost_.clear();
    is_insisting_ = true;
    go_on();
  }

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] bool may_be(const std::string& value) const { return possible_.contains(value); }
  [[nodiscard]] const std::vector<std::string>& refused() const { return refused_; }

 private:
  const std::string name_;
  Hand hand_;
  int number_ = 0;
  bool is_busy_ = false, is_told_ = false, is_insisting_ = false;
  std::set<std::string> possible_, lost_;  ///< What its field may be now, and what may still come.
  std::vector<std::string> refused_;
};

class ApplySubject final : public Subject {
 public:
  using Subject::Subject;

  void set_up() override {
    for (const char* name : {"left", "right"}) appliers_.push_back(std::make_unique<Applier>(world_, name));
  }

  void act(std::uint64_t, double) override {
    for (auto& one : appliers_) one->go_on();
  }

  void see(const Seen& seen) override {
    if (seen.resource != "configmaps" || seen.name != kName) return;
    int changed = 0;
    for (const auto& one : appliers_) {
      const std::string before(json::get_string(seen.before, {"data", one->name()}));
      const std::string now(json::get_string(seen.now, {"data", one->name()}));
      if (before == now) continue;
      ++changed;
      if (!one->may_be(now))
        find(fmt::format("{}: {} is \"{}\" (was \"{}\"), which nobody applies now", seen.words(), one->name(), now, before));
    }
    if (changed > 1) find(fmt::format("{}: one application changes both fields", seen.words()));
    if (json::get_string(seen.now, {"data", "common"}) != "both") find(fmt::format("{}: what both own is gone", seen.words()));
  }

  void later() override {
    for (auto& one : appliers_) one->insist();
  }
  void judge_rest() override {
    const json::Value& object = chronicle_.find("configmaps", kNs, kName);
    for (const auto& one : appliers_) {
      const std::string value(json::get_string(object, {"data", one->name()}));
      if (!one->may_be(value)) find(fmt::format("{} is \"{}\" at rest", one->name(), value));
      for (const auto& text : one->refused()) find(fmt::format("{}: {}", one->name(), text));
    }
  }

 private:
  std::vector<std::unique_ptr<Applier>> appliers_;
};

}  // namespace

std::unique_ptr<Subject> make_apply_subject(World& world, Chronicle& chronicle) { return std::make_unique<ApplySubject>(world, chronicle); }

}  // namespace berth::world
