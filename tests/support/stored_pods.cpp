#include "tests/support/stored_pods.h"

#include <fmt/format.h>

#include <algorithm>

#include "apiserver/server.h"
#include "client/client.h"
#include "controllers/manager.h"
#include "model/features.h"
#include "store/store.h"

namespace berth::testing {
namespace {

// Marks in learned texts, for the workload's own.
constexpr std::string_view kName = "\x01name", kUid = "\x01uid", kHash = "\x01hash";
constexpr std::size_t kSuffixLength = 5;

constexpr std::string_view kTemplate =
    R"({"metadata": {"labels": {"app": "learned"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}})";
constexpr std::string_view kBare =
    R"({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "learned"}, "spec": {"containers": [{"name": "c", "image": "i"}]}})";

/// An API server on a memory store with the controllers, under a virtual clock.
class SmallCluster {
 public:
  SmallCluster() : loop_(TimePoint{} + std::chrono::hours(500'000)) {}
  ~SmallCluster() {
    manager_.reset();
    if (api_ != nullptr) api_->begin_shutdown();
  }
  SmallCluster(const SmallCluster&) = delete;
  SmallCluster& operator=(const SmallCluster&) = delete;

  Result<void> start() {
    auto cache = apiserver::open_object_cache(store::make_memory_store(), loop_, {}, true);
    if (!cache) return std::unexpected(cache.error());
    apiserver::ServerOptions options;
    options.features = model::preferred_features();  // As `berth up` has them.
    options.cache = std::move(*cache);
    options.loop = &loop_;
    auto trusting = std::make_shared<apiserver::TrustingAuth>();
    options.authenticator = trusting;
    options.authorizer = trusting;
    options.seed = 7;
    options.single_threaded = true;
    auto created = apiserver::ApiServer::create(std::move(options));
    if (!created) return std::unexpected(created.error());
    api_ = std::move(*created);
    auto transport = client::make_in_process_transport(*api_, {"system:admin", {"system:masters", "system:authenticated"}});
    client_ = std::make_unique<client::Client>(transport, nullptr, "stored-pods");
    manager_ = controllers::make_controller_manager(transport, loop_, {}, &metrics_);
    manager_->start();
    loop_.run_for(std::chrono::seconds(5));
    return {};
  }

  Result<json::Value> create(const client::Gvr& gvr, std::string_view text) {
    auto document = json::parse(text);
    if (!document) return document;
    auto created = client_->create_and_wait(gvr, "default", *document);
    if (!created) return invalid(created.error().message);
    loop_.run_for(std::chrono::seconds(5));
    return std::move(*created);
  }

  /// Of the controller of that kind, or of none.
  Result<model::PodView> pod_of(std::string_view kind) {
    auto page = client_->list_and_wait({"", "v1", "pods"}, "default");
    if (!page) return invalid(page.error().message);
    for (const auto& document : page->items) {
      auto pod = model::PodView::parse(document);
      const auto* owner = pod.meta.controller();
      if ((owner == nullptr ? std::string_view() : std::string_view(owner->kind)) == kind) return pod;
    }
    return invalid(fmt::format("no pod of {} came", kind.empty() ? "its own" : kind));
  }

 private:
  VirtualLoop loop_;
  metrics::Registry metrics_;
  std::unique_ptr<apiserver::ApiServer> api_;
  std::unique_ptr<client::Client> client_;
  std::unique_ptr<controllers::ControllerManager> manager_;
};

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  if (from.empty()) return text;
  for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) text.replace(at, from.size(), to);
  return text;
}

}  // namespace

StoredPods::StoredPods(std::uint64_t seed)
    : learned_([]() -> const Learned& {
        static const Learned kLearned = learn();
        return kLearned;
      }()),
      seed_(seed),
      state_(seed * 0x9e3779b97f4a7c15ULL + 1) {}

StoredPods::Learned StoredPods::learn() {
  Learned out;
  SmallCluster cluster;
  const auto learn_one = [&](const client::Gvr& gvr, const std::string& document, std::string_view kind,
                             Addition& addition) -> Result<void> {
    if (auto created = cluster.create(gvr, document); !created) return std::unexpected(created.error());
    auto pod = cluster.pod_of(kind);
    if (!pod) return std::unexpected(pod.error());
    const auto* owner = pod->meta.controller();
    const auto* hash = pod->meta.labels.get("pod-template-hash");
    const auto marked = [&](std::string text) {
      if (owner != nullptr) text = replaced(std::move(text), owner->uid, kUid);
      if (hash != nullptr) text = replaced(std::move(text), *hash, kHash);
      return replaced(std::move(text), "learned", kName);
    };
    for (const auto& [key, value] : pod->meta.labels.pairs())
      if (key != "app") addition.labels.emplace_back(key, marked(value));
    for (auto reference : pod->meta.owner_references) {
      reference.name = marked(reference.name);
      reference.uid = marked(reference.uid);
      addition.owners.push_back(std::move(reference));
    }
    addition.tolerations = pod->tolerations;
    addition.volumes = pod->volumes;
    addition.scheduler_name = pod->scheduler_name;
    addition.termination_grace_period_seconds = pod->termination_grace_period_seconds;
    return {};
  };
  const auto with_template = [](std::string_view kind, std::string_view group, std::string_view rest) {
    return fmt::format(R"({{"apiVersion": "{}", "kind": "{}", "metadata": {{"name": "learned"}}, "spec": {{{}"template": {}}}}})", group,
                       kind, rest, kTemplate);
  };
  Result<void> done = cluster.start();
  if (done) done = learn_one({"", "v1", "pods"}, std::string(kBare), "", out.bare);
  if (done)
    done = learn_one({"apps", "v1", "deployments"},
                     with_template("Deployment", "apps/v1", R"("selector": {"matchLabels": {"app": "learned"}}, )"), "ReplicaSet",
                     out.deployment);
  if (done) {
    auto document = with_template("Job", "batch/v1", "");
    document = replaced(std::move(document), R"("spec": {"containers")", R"("spec": {"restartPolicy": "Never", "containers")");
    done = learn_one({"batch", "v1", "jobs"}, document, "Job", out.job);
  }
  if (!done) out.error = "pods as an API server stores them: " + done.error().message;
  return out;
}

model::PodView StoredPods::bare(model::PodView written, std::string_view name) {
  written.meta.name = std::string(name);
  return add(std::move(written), learned_.bare, {});
}

model::PodView StoredPods::of_deployment(model::PodView written, std::string_view workload) {
  const Identity identity = identity_of(workload);
  written.meta.name = fmt::format("{}-{}-{}", workload, identity.hash, letters(kSuffixLength));
  return add(std::move(written), learned_.deployment, identity);
}

model::PodView StoredPods::of_job(model::PodView written, std::string_view workload) {
  written.meta.name = fmt::format("{}-{}", workload, letters(kSuffixLength));
  return add(std::move(written), learned_.job, identity_of(workload));
}

json::Value StoredPods::replica_set(const model::PodView& written, std::string_view workload) const {
  const Identity identity = identity_of(workload);
  json::Object labels;
  for (const auto& [key, value] : written.meta.labels.pairs()) labels[key] = value;
  for (const auto& [key, value] : learned_.deployment.labels) labels[key] = fill(value, identity);
  const auto& owner = learned_.deployment.owners.front();
  return {{"apiVersion", owner.api_version},
          {"kind", owner.kind},
          {"metadata", {{"namespace", written.meta.ns}, {"name", fill(owner.name, identity)}, {"uid", identity.uid}, {"labels", labels}}},
          {"spec", {{"selector", {{"matchLabels", labels}}}}}};
}

model::PodView StoredPods::add(model::PodView written, const Addition& addition, const Identity& workload) {
  written.meta.uid = uid();
  if (!addition.labels.empty()) {
    auto labels = *written.meta.labels.pairs();
    for (const auto& [key, value] : addition.labels) labels.emplace_back(key, fill(value, workload));
    written.meta.labels = model::Labels(std::move(labels));
  }
  for (auto owner : addition.owners) {
    owner.name = fill(std::move(owner.name), workload);
    owner.uid = fill(std::move(owner.uid), workload);
    written.meta.owner_references.push_back(std::move(owner));
  }
  for (const auto& one : addition.tolerations) written.tolerations.push_back(one);
  for (auto volume : addition.volumes) {
    // A token's volume has no name in a view.
    if (!volume.name.empty()) volume.name.replace(volume.name.size() - kSuffixLength, kSuffixLength, letters(kSuffixLength));
    written.volumes.push_back(std::move(volume));
  }
  if (written.scheduler_name.empty()) written.scheduler_name = addition.scheduler_name;
  if (written.termination_grace_period_seconds == 0) written.termination_grace_period_seconds = addition.termination_grace_period_seconds;
  return written;
}

StoredPods::Identity StoredPods::identity_of(std::string_view workload) const {
  const std::uint64_t hash = (std::hash<std::string_view>{}(workload) ^ seed_) * 0xff51afd7ed558ccdULL;
  Identity out{std::string(workload), fmt::format("{:08x}-{:04x}-4000-8000-{:012x}", hash >> 32, hash & 0xffff, hash >> 16), {}};
  constexpr std::string_view kAlphabet = "bcdfghjklmnpqrstvwxz2456789";
  for (std::uint64_t rest = hash; out.hash.size() < 10; rest /= kAlphabet.size()) out.hash += kAlphabet[rest % kAlphabet.size()];
  return out;
}

std::string StoredPods::fill(std::string text, const Identity& workload) const {
  if (text.find('\x01') == std::string::npos) return text;
  return replaced(replaced(replaced(std::move(text), kName, workload.name), kUid, workload.uid), kHash, workload.hash);
}

std::uint64_t StoredPods::next() {
  state_ ^= state_ << 13, state_ ^= state_ >> 7, state_ ^= state_ << 17;
  return state_;
}

std::string StoredPods::letters(std::size_t count) {
  constexpr std::string_view kAlphabet = "bcdfghjklmnpqrstvwxz2456789";
  std::string out;
  for (std::size_t i = 0; i < count; ++i) out += kAlphabet[next() % kAlphabet.size()];
  return out;
}

std::string StoredPods::uid() { return fmt::format("{:08x}-{:04x}-4000-8000-{:012x}", next() >> 32, next() >> 48, next() >> 16); }

}  // namespace berth::testing
