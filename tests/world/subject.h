// What a world's users are about, one subject a file (subjects/): what they want, what they do in the middle of it all, and the judges of
// it. Judges see each write at the moment at which etcd has it.
#pragma once
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "client/client.h"
#include "tests/world/world.h"

namespace berth::world {

using Findings = std::vector<std::string>;

/// A write, with the object as it was and as it is; null: it is not there.
struct Seen {
  std::string_view resource;  ///< "pods"
  std::string_view ns, name;
  store::Revision revision = 0;
  TimePoint at{};  ///< By the world's clock: those of processes may be wrong by kMostSkew.
  const json::Value &before, &now;

  [[nodiscard]] bool is_new() const { return before.is_null() || uid(before) != uid(now); }
  static std::string_view uid(const json::Value& object) { return json::get_string(object, {"metadata", "uid"}); }
  [[nodiscard]] std::string words() const { return fmt::format("{} {}/{} at {}", resource, ns, name, revision); }
};

/// What etcd holds now, as documents.
class Chronicle {
 public:
  /// Begins with what is there. `world` outlives it.
  explicit Chronicle(World& world);
  /// Called with each write.
  std::function<void(const Seen&)> on_seen;

  /// Null: not there.
  [[nodiscard]] const json::Value& find(std::string_view resource, std::string_view ns, std::string_view name) const;
  void for_each(std::string_view resource, std::string_view ns,
                const std::function<void(const std::string& name, const json::Value&)>& each) const;
  [[nodiscard]] std::vector<std::string> names(std::string_view resource, std::string_view ns) const;

 private:
  void see(const store::SharedRecord& record);
  World& world_;
  std::map<std::string, json::Value, std::less<>> present_;  ///< By "RESOURCE/NAMESPACE/NAME".
};

/// Somebody who asks for things through a connection of his own.
class Hand {
 public:
  Hand(World& world, const std::string& name);
  client::Client client;

  /// Each is asked for again until it is so; a newer wish about an object takes the place of an older one.
  void make(const model::Gvr& gvr, const std::string& ns, json::Value body);
  void apply(const model::Gvr& gvr, const std::string& ns, const std::string& name, json::Value body);
  void change(const model::Gvr& gvr, const std::string& ns, const std::string& name, client::PatchType type, json::Value patch);
  void remove(const model::Gvr& gvr, const std::string& ns, const std::string& name);
  /// Reads it, and writes it as `edit` makes it if nobody else was there meanwhile.
  using Edit = std::function<void(json::Value&)>;
  void edit(const model::Gvr& gvr, const std::string& ns, const std::string& name, Edit edit);
  /// Once, whatever comes of it.
  void try_make(const model::Gvr& gvr, const std::string& ns, const json::Value& body);
  void try_remove(const model::Gvr& gvr, const std::string& ns, const std::string& name);
  /// A request about it was once not answered before the next one left, or not with what came of it: it may be carried out late, after
  /// newer ones.
  [[nodiscard]] bool is_in_doubt(const model::Gvr& gvr, const std::string& ns, const std::string& name) const;

 private:
  struct Wish {
    client::Call call;
    int good_enough = 0;  ///< A status that says that it is so already.
    int number = 0;
    Edit edit;  ///< Empty: the call is all.
    bool is_open = false;
  };
  void wish(const std::string& about, Wish wish);
  void ask(const std::string& about, int number);
  void again(const std::string& about, int number);
  World& world_;
  std::map<std::string, Wish> wishes_;  ///< By what they are about.
  std::set<std::string> in_doubt_;
  int last_wish_ = 0;
};

class Subject {
 public:
  explicit Subject(World& world, Chronicle& chronicle) : world_(world), chronicle_(chronicle) {}
  virtual ~Subject() = default;
  Subject(const Subject&) = delete;

  /// What is wanted from the beginning.
  virtual void set_up() = 0;
  /// Somebody does something, drawn by the two.
  virtual void act(std::uint64_t which, double share) = 0;
  virtual void see(const Seen& seen) = 0;
  /// Nothing breaks from now on; what is to be judged at rest is begun. `later` is called minutes after it, a minute before the judgement.
  virtual void heal() {}
  virtual void later() {}
  virtual void judge_rest() {}

  Findings findings;

 protected:
  void find(std::string text) {
    if (findings.size() < 20) findings.push_back(std::move(text));
  }
  World& world_;
  Chronicle& chronicle_;
};

std::unique_ptr<Subject> make_quota_subject(World& world, Chronicle& chronicle);
std::unique_ptr<Subject> make_budget_subject(World& world, Chronicle& chronicle);
std::unique_ptr<Subject> make_service_subject(World& world, Chronicle& chronicle);
std::unique_ptr<Subject> make_device_subject(World& world, Chronicle& chronicle);
std::unique_ptr<Subject> make_job_subject(World& world, Chronicle& chronicle);
std::unique_ptr<Subject> make_stateful_set_subject(World& world, Chronicle& chronicle);
std::unique_ptr<Subject> make_taint_subject(World& world, Chronicle& chronicle);
std::unique_ptr<Subject> make_rollout_subject(World& world, Chronicle& chronicle);
std::unique_ptr<Subject> make_apply_subject(World& world, Chronicle& chronicle);
std::unique_ptr<Subject> make_secret_subject(World& world, Chronicle& chronicle);
std::unique_ptr<Subject> make_pool_subject(World& world, Chronicle& chronicle);
std::unique_ptr<Subject> make_group_subject(World& world, Chronicle& chronicle);

/// A document from its text.
json::Value document(std::string_view text);
json::Value make_namespace(const std::string& name);
/// A pod's spec that takes next to nothing; `cpu` may be empty.
json::Value pod_spec(std::string_view cpu = {});
[[nodiscard]] bool is_ready(const json::Value& pod);
[[nodiscard]] bool is_leaving(const json::Value& object);
/// Neither done nor told to go.
[[nodiscard]] bool is_active(const json::Value& pod);
[[nodiscard]] bool is_done(const json::Value& pod);
/// The uid of what controls it; empty: nobody.
[[nodiscard]] std::string_view controller_of(const json::Value& object);
/// Null: it has none.
[[nodiscard]] const json::Value* condition_of(const json::Value& object, std::string_view type);

namespace gvr {
inline const model::Gvr kPods{"", "v1", "pods"}, kNamespaces{"", "v1", "namespaces"}, kNodes{"", "v1", "nodes"},
    kServices{"", "v1", "services"}, kQuotas{"", "v1", "resourcequotas"}, kConfigMaps{"", "v1", "configmaps"},
    kSecrets{"", "v1", "secrets"}, kVolumes{"", "v1", "persistentvolumes"}, kDeployments{"apps", "v1", "deployments"},
    kSets{"apps", "v1", "statefulsets"}, kJobs{"batch", "v1", "jobs"}, kBudgets{"policy", "v1", "poddisruptionbudgets"},
    kClasses{"resource.k8s.io", "v1", "deviceclasses"}, kClaimTemplates{"resource.k8s.io", "v1", "resourceclaimtemplates"};
}  // namespace gvr

}  // namespace berth::world
