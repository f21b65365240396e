// What an admission plugin is (SPEC E; apiserver/pkg/admission): one step of the chain between decoding and committing.
#pragma once
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/admission/config.h"
#include "apiserver/auth/interfaces.h"
#include "apiserver/cache/mirror.h"
#include "apiserver/cache/object_cache.h"
#include "base/event_loop.h"
#include "base/json.h"
#include "model/api_status.h"
#include "model/kinds.h"
#include "net/client.h"

namespace berth::apiserver {

class KindTable;
using KindTablePtr = std::shared_ptr<const KindTable>;

enum class Operation { kCreate, kUpdate, kDelete, kConnect };
std::string_view to_string(Operation operation);

/// What was looked at beside a request, as numbers that say whether it is the same: generations and revisions, which never come again once
/// something has changed; or whether there is anything at all, where nothing of it was used. What they are asked of outlives this. Reading
/// is thread-safe.
class Circumstances {
 public:
  void add(std::function<std::uint64_t()> state) {
    const auto was = state();
    all_.push_back({std::move(state), was});
  }
  /// Nothing has changed since.
  [[nodiscard]] bool hold() const {
    return std::ranges::all_of(all_, [](const auto& one) { return one.state() == one.was; });
  }

 private:
  struct One {
    std::function<std::uint64_t()> state;
    std::uint64_t was;
  };
  std::vector<One> all_;
};

/// What is asked for, and by whom: as it came, but for a name that is made up on the way.
struct Asked {
  Operation operation = Operation::kCreate;
  const model::KindInfo* kind = nullptr;  ///< Of the resource in the path.
  std::string subresource;
  std::string ns, name;
  const UserInfo* user = nullptr;
  bool dry_run = false;
  KindTablePtr kinds;   ///< What is served, as the request sees it; null: the API's own kinds.
  json::Value options;  ///< CreateOptions, UpdateOptions, DeleteOptions, PatchOptions as sent, or null.
  struct Body {
    std::string api_version, kind;
  };
  std::optional<Body> body;  ///< What is sent, where it is no object of the resource (Binding, Eviction, Scale, TokenRequest).
};

/// Who waits for the answer, and how he is told what is no part of it.
struct Caller {
  std::vector<std::string>* warnings = nullptr;
  /// Nobody waits for the answer after that (?timeout= of the request).
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
  std::string_view traceparent;  ///< The request's, for whoever is asked about it; empty: none. The request keeps it.
  std::function<void(std::string key, std::string value)> annotate;  ///< Into the audit log; may be empty.
};

/// What an update or a deletion is of.
struct Present {
  ObjectPtr object;  ///< As it is stored.
  /// Set where object and old_object are but the part that the write has to do with: fills in the rest, once.
  std::function<void()> fill_in;
  bool is_rest_sent = false;  ///< What they lack was sent all the same: it counts for nothing, but who fills it in sees it.
};

/// What plugins keep of one object while it goes through them.
struct Notes {
  /// The mutating policies that ran, and what they made of the object: whoever changes it afterwards may have them look again.
  struct PolicyPass {
    std::vector<std::string> invoked;  ///< Keys of those that want to.
    json::Value output;
    bool is_stale = false;  ///< One of them was followed by another's change.
    bool is_second = false;
  };
  std::optional<PolicyPass> policy_pass;
  /// Texts that plugins made up for this object alone, each ending in a random suffix: the next one like it gets others.
  std::vector<std::string> made_up;
  struct Form {
    json::Value object, old_object;
  };
  /// The objects in other versions of their kind, as a conversion webhook made them (equivalent_forms.h).
  mutable std::map<const model::KindInfo*, Form> forms;
};

/// What is to be admitted; made anew for each attempt. `object` may be changed by mutating plugins alone.
struct AdmissionRequest : Asked {
  json::Value object;              ///< Null for deletions.
  json::Value old_object;          ///< Null for creations.
  std::optional<Present> present;  ///< Updates and deletions that admission is asked about.
  Caller caller;
  Notes notes;

  [[nodiscard]] bool is(std::string_view group, std::string_view plural, std::string_view sub = {}) const {
    return kind->plural == plural && kind->group == group && subresource == sub;
  }
  [[nodiscard]] model::ApiStatus forbidden(std::string_view why) const {
    // A name is made up only after the plugins that change the object have run: until then it goes by its beginning.
    const auto base = name.empty() ? json::get_string(object, {"metadata", "generateName"}) : std::string_view(name);
    return model::forbidden(kind->group, kind->plural, base, why);
  }
};

/// What plugins work with. Mirrors are shared between plugins. Everything outlives the plugins.
struct AdmissionContext {
  ObjectCache& cache;
  EventLoop& loop;
  Authorizer& authorizer;
  const AdmissionConfig& config;
  model::Features features;
  net::ClientConfig webhook_client;
  std::function<Mirror&(std::string_view group, std::string_view plural)> mirror;
  /// Five characters of Kubernetes' name alphabet, from the server's seeded generator. Thread-safe.
  std::function<std::string()> random_suffix;
  std::function<std::string()> uid;     ///< A fresh UUID. Thread-safe.
  std::function<KindTablePtr()> kinds;  ///< What is served now.
  /// Runs a task off the calling thread where the server has threads of its own, otherwise at once.
  std::function<void(Task)> offload;
};

/// The newest of the classes that one of these annotations calls the default; of the same second, the first by name. Null: none is.
Mirror::Document default_class(const Mirror& classes, std::initializer_list<std::string_view> annotations);
/// The object has the finalizer, once.
void add_finalizer(json::Value& object, std::string_view finalizer);

using Admitted = model::ApiResult<void>;
using AdmitDone = std::function<void(Admitted)>;

/// Thread-safe. One object a plugin for the life of the server. A plugin that needs to wait overrides the asynchronous forms; `request`
/// stays alive and untouched until `done` is called (once, from any thread, or before returning).
class AdmissionPlugin {
 public:
  virtual ~AdmissionPlugin() = default;
  /// Kubernetes' (or OpenShift's) name of it.
  [[nodiscard]] virtual std::string_view name() const = 0;
  /// Sessions and proxied requests, whose object is their options, are asked of those alone that say so.
  [[nodiscard]] virtual bool handles(Operation operation) const { return operation != Operation::kConnect; }
  /// Whether it looks at more than metadata and status of the objects of this request, of a deletion at more than metadata. Not asked of
  /// plugins that pass these over (chain.cpp).
  [[nodiscard]] virtual bool wants_whole(const AdmissionRequest&) { return true; }
  /// Adds what its part in this creation or update depends on beside the request, the stored object and whether a node asks about its own.
  /// False: on more than can be told, or it leaves something behind, so that the next one in the same words has to be asked about again.
  /// Asked before the first plugin and after the last; of writes of a status not where the plugin passes over these.
  virtual bool add_circumstances(const AdmissionRequest&, Circumstances&) { return false; }
  virtual Admitted mutate(AdmissionRequest&) { return {}; }
  /// After all others, once: whether they left something that it wants to look at again.
  [[nodiscard]] virtual bool wants_second_look(const AdmissionRequest&) const { return false; }
  virtual Admitted validate(const AdmissionRequest&) { return {}; }
  /// Whether it overrides what follows; the others are asked without any.
  [[nodiscard]] virtual bool may_wait() const { return false; }
  virtual void mutate_async(AdmissionRequest& request, AdmitDone done) { done(mutate(request)); }
  virtual void validate_async(const AdmissionRequest& request, AdmitDone done) { done(validate(request)); }
};

/// The plugins that are on, in Kubernetes' order. Stops at the first refusal.
class AdmissionChain {
 public:
  static Result<std::unique_ptr<AdmissionChain>> create(AdmissionContext context);
  void mutate(AdmissionRequest& request, AdmitDone done) const { step(0, true, request, std::move(done)); }
  /// The objects may get what they lack, for those who want to see the whole.
  void validate(AdmissionRequest& request, AdmitDone done) const { step(0, false, request, std::move(done)); }
  /// What everybody's part in this creation or update depends on; nothing where somebody's cannot be told.
  [[nodiscard]] std::optional<Circumstances> circumstances(const AdmissionRequest& write) const;
  [[nodiscard]] std::vector<std::string_view> names() const;
  [[nodiscard]] const AdmissionContext& context() const { return context_; }

 private:
  explicit AdmissionChain(AdmissionContext context) : context_(std::move(context)) {}
  void step(std::size_t index, bool mutating, AdmissionRequest& request, AdmitDone done) const;
  struct Link {
    std::unique_ptr<AdmissionPlugin> plugin;
    bool passes_status_over = false;
    bool knows_request_alone = false;
  };
  AdmissionContext context_;
  std::vector<Link> plugins_;
};

}  // namespace berth::apiserver
