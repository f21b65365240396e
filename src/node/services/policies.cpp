#include "node/services/policies.h"

#include <optional>

#include "base/lifeline.h"
#include "base/log.h"
#include "client/informer.h"
#include "node/services/proxy.h"

namespace berth::node::services {
namespace {

const model::Gvr kPolicies{"networking.k8s.io", "v1", "networkpolicies"}, kPods{"", "v1", "pods"}, kNamespaces{"", "v1", "namespaces"};

}  // namespace

struct Policies::Impl : Guarded<Impl> {
  Impl(client::Client& c, std::unique_ptr<Kernel> k, PolicyOptions o)
      : client(c),
        kernel(std::move(k)),
        options(std::move(o)),
        policies(c, kPolicies, {.is_optional = true}),
        pods(c, kPods, {.is_optional = true}),
        namespaces(c, kNamespaces, {.is_optional = true}) {}

  void start() {
    watch(
        policies, [](const client::ObjectRef&) { return true; }, [](const client::ObjectRef&) {});
    watch(
        pods, [this](const client::ObjectRef& pod) { return take(*pod); },
        [this](const client::ObjectRef& pod) {
          known.erase({pod->ns(), pod->name()});
        });
    watch(
        namespaces,
        [this](const client::ObjectRef& ns) {
          auto& labels = labels_of[ns->name()];
          return std::exchange(labels, ns->labels()) != ns->labels();
        },
        [this](const client::ObjectRef& ns) { labels_of.erase(ns->name()); });
  }

  /// `taken` says whether anything changed that counts.
  void watch(client::Informer& informer, std::function<bool(const client::ObjectRef&)> taken,
             std::function<void(const client::ObjectRef&)> gone) {
    const auto changed = guarded([taken](Impl& self, const client::ObjectRef& object) {
      if (taken(object)) self.later(self.options.pause);
    });
    informer.add_handler({.on_add = changed,
                          .on_update = [changed](const client::ObjectRef&, const client::ObjectRef& now) { changed(now); },
                          .on_delete = guarded([gone](Impl& self, const client::ObjectRef& object) {
                            gone(object);
                            self.later(self.options.pause);
                          })});
    informer.start();
  }

  bool take(const client::Object& object) {
    PolicyPod pod = policy_pod(*object.parsed(), options.node);
    PolicyPod& before = known[{object.ns(), object.name()}];
    if (before == pod) return false;
    before = std::move(pod);
    return true;
  }

  void later(Duration pause) {
    if (is_due) return;
    is_due = true;
    client.loop()->schedule_after(pause, guarded(&Impl::apply));
  }

  [[nodiscard]] PolicyRules wanted() const {
    PolicyInput input;
    for (const PolicyPod& pod : options.peers) input.pods.push_back(&pod);
    for (const auto& [key, pod] : known) input.pods.push_back(&pod);
    input.namespaces = labels_of;
    policies.for_each([&](const client::ObjectRef& policy) { input.policies.push_back(policy->parsed()); });
    return compile_policies(input);
  }

  void apply() {
    is_due = false;
    if (!policies.has_synced() || !pods.has_synced() || !namespaces.has_synced()) return later(std::chrono::milliseconds(100));
    PolicyRules next = wanted();
    const std::string script = in_kernel ? policies_between(*in_kernel, next, options.table) : whole_policies(next, options.table);
    if (!script.empty()) {
      auto done = kernel->run(script);
      // Somebody else may have changed our table: all anew.
      if (!done && in_kernel) done = kernel->run(whole_policies(next, options.table));
      if (!done) {
        log::error("policy", "the rules of NetworkPolicies were not taken: {}", done.error().message);
        in_kernel.reset();
        return later(std::chrono::seconds(5));
      }
    }
    in_kernel = std::move(next);
  }

  client::Client& client;
  std::unique_ptr<Kernel> kernel;
  const PolicyOptions options;
  client::Informer policies, pods, namespaces;
  std::map<std::pair<std::string, std::string>, PolicyPod> known;
  std::map<std::string, model::Labels> labels_of;
  bool is_due = false;
  std::optional<PolicyRules> in_kernel;  ///< What the kernel has; unknown at the start and after a failure.
};

Policies::Policies(client::Client& client, std::unique_ptr<Kernel> kernel, PolicyOptions options)
    : impl_(std::make_shared<Impl>(client, std::move(kernel), std::move(options))) {
  impl_->start();
  impl_->later(impl_->options.pause);
}
Policies::~Policies() = default;

Result<void> Policies::remove(Kernel& kernel, const std::string& table) { return kernel.run(no_policies(table)); }

std::string policies_table_of(const std::string& directory) { return table_of(directory) + "-policies"; }

}  // namespace berth::node::services
