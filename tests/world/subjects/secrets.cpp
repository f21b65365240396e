// Secrets, whose stored form changes with each build of the servers: each is as it was last wished for, whoever wrote it and whoever reads
// it; and once all of them were written anew, nothing stands in etcd as an earlier build stored it.
#include <array>

#include "tests/world/subject.h"

namespace berth::world {
namespace {

constexpr const char* kNs = "vault";
constexpr std::size_t kMany = 5;

class SecretSubject final : public Subject {
 public:
  using Subject::Subject;

  void set_up() override {
    hand_ = std::make_unique<Hand>(world_, "keeper");
    hand_->make(gvr::kNamespaces, "", make_namespace(kNs));
    for (std::size_t i = 0; i < kMany; ++i) wish(i);
  }

  void act(std::uint64_t which, double share) override {
    if (share < 0.7)
      wish(which % kMany);
    else
      remove(which % kMany);
  }

  void see(const Seen& seen) override {
    if (seen.ns != kNs || seen.resource != "secrets" || !seen.is_new() || seen.now.is_null()) return;
    ++made_;
  }

  /// Those that somebody deleted, or that an older wish may have reached after a newer one, are wished for anew; the others written as they
  /// are.
  void later() override {
    for (std::size_t i = 0; i < kMany; ++i)
      if (is_deleted_[i] || hand_->is_in_doubt(gvr::kSecrets, kNs, name_of(i)))
        wish(i);
      else
        hand_->edit(gvr::kSecrets, kNs, name_of(i), [](json::Value&) {});
  }

  void judge_rest() override {
    if (made_ == 0) find("no secret was ever made");
    for (std::size_t i = 0; i < kMany; ++i) {
      const json::Value& secret = chronicle_.find("secrets", kNs, name_of(i));
      if (const auto said = json::get_string(secret, {"data", "v"}); said != wanted_[i])
        find(fmt::format("{} is \"{}\", wished for was \"{}\"", name_of(i), said, wanted_[i]));
    }
    world_.for_each_secret([&](std::string_view, std::string_view name, const std::string& stored) {
      if (!writes_secret_so(world_.build(), stored))
        find(fmt::format("{} is stored as \"{}\", as build {} would not", name, stored.substr(0, 24), world_.build()));
    });
  }

 private:
  /// Whether or not somebody wishes for it meanwhile.
  void remove(std::size_t i) {
    is_deleted_[i] = true;
    hand_->try_remove(gvr::kSecrets, kNs, name_of(i));
  }
  static std::string name_of(std::size_t i) { return fmt::format("s{}", i); }
  void wish(std::size_t i) {
    // Base64 of any length that is a multiple of four is one.
    wanted_[i] = fmt::format("{:08}", ++number_);
    json::Value secret = document(R"({"apiVersion":"v1","kind":"Secret"})");
    json::set(secret, {"metadata", "name"}, json::Value(name_of(i)));
    json::set(secret, {"data", "v"}, json::Value(wanted_[i]));
    hand_->apply(gvr::kSecrets, kNs, name_of(i), std::move(secret));
  }

  std::unique_ptr<Hand> hand_;
  std::array<std::string, kMany> wanted_;
  std::array<bool, kMany> is_deleted_{};  ///< Ever: a deletion may come late.
  int number_ = 0, made_ = 0;
};

}  // namespace

std::unique_ptr<Subject> make_secret_subject(World& world, Chronicle& chronicle) {
  return std::make_unique<SecretSubject>(world, chronicle);
}

}  // namespace berth::world
