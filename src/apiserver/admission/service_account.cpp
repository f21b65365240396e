// ServiceAccount: every pod runs as one, and its token is mounted as a projected volume (plugin/pkg/admission/serviceaccount).

#include "apiserver/admission/plugins.h"
#include "apiserver/admission/pod_helpers.h"
#include "base/mutex.h"

namespace berth::apiserver {
namespace {

constexpr std::string_view kMountPath = "/var/run/secrets/kubernetes.io/serviceaccount";
constexpr std::string_view kVolumePrefix = "kube-api-access-";

class ServiceAccount final : public AdmissionPlugin {
 public:
  explicit ServiceAccount(const AdmissionContext& context) : cache_(context.cache), random_suffix_(context.random_suffix) {}
  [[nodiscard]] std::string_view name() const override { return "ServiceAccount"; }

  bool add_circumstances(const AdmissionRequest& request, Circumstances& circumstances) override {
    if (!applies(request)) return true;
    const auto account = json::get_string(request.object, {"spec", "serviceAccountName"});
    circumstances.add([this, key = make_key("", "serviceaccounts", request.ns, account.empty() ? "default" : account)] {
      const auto found = cache_.get(key);
      return found == nullptr ? 0 : static_cast<std::uint64_t>(found->revision);
    });
    return true;
  }

  Admitted mutate(AdmissionRequest& request) override {
    if (!applies(request)) return {};
    if (is_mirror_pod(request.object)) return validate(request);
    auto& spec = json::ensure_object(request.object, {"spec"});
    if (json::get_string(request.object, {"spec", "serviceAccountName"}).empty()) spec["serviceAccountName"] = "default";
    const std::string account_name(json::get_string(request.object, {"spec", "serviceAccountName"}));
    const auto found = find(request, account_name);
    if (!found) return std::unexpected(found.error());
    const auto account = document_of(*found);
    if (should_mount(request.object, *account)) mount_token(spec, request.notes.made_up);
    if (const auto& secrets = json::get_array(*account, {"imagePullSecrets"});
        !secrets.empty() && json::find(request.object, {"spec", "imagePullSecrets"}) == nullptr)
      spec["imagePullSecrets"] = secrets;
    return {};
  }

  Admitted validate(const AdmissionRequest& request) override {
    if (!applies(request)) return {};
    if (!is_mirror_pod(request.object)) {
      const auto account = find(request, std::string(json::get_string(request.object, {"spec", "serviceAccountName"}, "default")));
      if (!account) return std::unexpected(account.error());
      return may_use_secrets(request, *document_of(*account));
    }
    if (!json::get_string(request.object, {"spec", "serviceAccountName"}).empty())
      return std::unexpected(request.forbidden("a mirror pod may not reference service accounts"));
    for (const auto& volume : json::get_array(request.object, {"spec", "volumes"})) {
      if (json::find(volume, "secret") != nullptr) return std::unexpected(request.forbidden("a mirror pod may not reference secrets"));
      for (const auto& source : json::get_array(volume, {"projected", "sources"}))
        if (json::find(source, "serviceAccountToken") != nullptr)
          return std::unexpected(request.forbidden("a mirror pod may not use ServiceAccountToken volume projections"));
    }
    return {};
  }

 private:
  static bool applies(const AdmissionRequest& request) { return request.is("", "pods") && request.operation == Operation::kCreate; }

  /// Null: there is none yet, and none is needed.
  model::ApiResult<ObjectPtr> find(const AdmissionRequest& request, const std::string& account_name) const {
    auto found = cache_.get(make_key("", "serviceaccounts", request.ns, account_name));
    // A namespace's default account is made by a controller a moment after the namespace: its pods need not wait for it.
    if (found != nullptr || account_name == "default") return found;
    return std::unexpected(request.forbidden(
        fmt::format("error looking up service account {}/{}: serviceaccount \"{}\" not found", request.ns, account_name, account_name)));
  }

  /// Most pods follow one that had the same account.
  std::shared_ptr<const json::Value> document_of(const ObjectPtr& account) {
    const MutexLock lock(mutex_);
    if (document_ == nullptr || account_ != account) {
      auto parsed = account != nullptr ? json::parse(account->text().here()) : Result<json::Value>(json::Object());
      document_ = std::make_shared<const json::Value>(parsed ? std::move(*parsed) : json::Value(json::Object()));
      account_ = account;
    }
    return document_;
  }

  /// `kubernetes.io/enforce-mountable-secrets`: the account's pods may use the secrets that it lists, and no other.
  static Admitted may_use_secrets(const AdmissionRequest& request, const json::Value& account) {
    const auto wanted = json::get_string(account, {"metadata", "annotations", "kubernetes.io/enforce-mountable-secrets"});
    static const std::set<std::string_view> kTrue = {"1", "t", "T", "true", "TRUE", "True"};
    if (!kTrue.contains(wanted)) return {};
    const auto name = json::get_string(account, {"metadata", "name"});
    // As long as a pod's references can an account's list be: each is looked up, none searched for.
    std::map<std::string_view, std::unordered_set<std::string_view>> listed;
    for (const std::string_view list : {"secrets", "imagePullSecrets"})
      for (const auto& one : json::get_array(account, {list})) listed[list].insert(json::get_string(one, {"name"}));
    const auto lists = [&](std::string_view list, std::string_view secret) { return listed[list].contains(secret); };
    const auto refuse = [&](const std::string& what, std::string_view list = "secret") {
      return std::unexpected(
          request.forbidden(fmt::format("{} is not allowed because service account {} does not reference that {}", what, name, list)));
    };
    for (const auto& volume : json::get_array(request.object, {"spec", "volumes"})) {
      if (json::find(volume, "secret") == nullptr) continue;
      const auto secret = json::get_string(volume, {"secret", "secretName"});
      if (!lists("secrets", secret)) return refuse(fmt::format("volume with secret.secretName=\"{}\"", secret));
    }
    for (auto [list, word] : {std::pair{"initContainers", "init container"}, std::pair{"containers", "container"}}) {
      for (const auto& container : json::get_array(request.object, {"spec", list})) {
        const auto its_name = json::get_string(container, {"name"});
        for (const auto& env : json::get_array(container, {"env"})) {
          if (json::find(env, {"valueFrom", "secretKeyRef"}) == nullptr) continue;
          const auto secret = json::get_string(env, {"valueFrom", "secretKeyRef", "name"});
          if (!lists("secrets", secret))
            return refuse(fmt::format("{} {} with envVar {} referencing secret.secretName=\"{}\"", word, its_name,
                                      json::get_string(env, {"name"}), secret));
        }
        for (const auto& from : json::get_array(container, {"envFrom"})) {
          if (json::find(from, {"secretRef"}) == nullptr) continue;
          const auto secret = json::get_string(from, {"secretRef", "name"});
          if (!lists("secrets", secret))
            return refuse(fmt::format("{} {} with envFrom referencing secret.secretName=\"{}\"", word, its_name, secret));
        }
      }
    }
    const auto& pull = json::get_array(request.object, {"spec", "imagePullSecrets"});
    for (std::size_t i = 0; i < pull.size(); ++i)
      if (!lists("imagePullSecrets", json::get_string(pull[i], {"name"})))
        return refuse(fmt::format("imagePullSecrets[{}].name=\"{}\"", i, json::get_string(pull[i], {"name"})), "imagePullSecret");
    return {};
  }

  static bool should_mount(const json::Value& pod, const json::Value& account) {
    if (const auto* own = json::find(pod, {"spec", "automountServiceAccountToken"}); own != nullptr && own->is_bool())
      return own->get_bool();
    return json::get_bool(account, {"automountServiceAccountToken"}, true);
  }

  void mount_token(json::Object& spec, std::vector<std::string>& made_up) {
    std::string volume_name;
    bool has_volume = false;
    if (const auto* volumes = spec.if_contains("volumes"); volumes != nullptr && volumes->is_array()) {
      for (const auto& volume : volumes->get_array()) {
        const auto its_name = json::get_string(volume, {"name"});
        if (!its_name.starts_with(kVolumePrefix)) continue;
        volume_name = its_name;
        has_volume = true;
      }
    }
    if (!has_volume) made_up.push_back(volume_name = std::string(kVolumePrefix) + random_suffix_());
    bool needs_volume = false;
    for (std::string_view list : {"initContainers", "containers"}) {
      auto* containers = spec.if_contains(list);
      if (containers == nullptr || !containers->is_array()) continue;
      for (auto& container : containers->get_array()) {
        if (!container.is_object() || has_mount(container)) continue;
        auto& mounts = container.get_object()["volumeMounts"];
        if (!mounts.is_array()) mounts = json::Array();
        mounts.get_array().push_back(json::Object{{"name", volume_name}, {"readOnly", true}, {"mountPath", kMountPath}});
        needs_volume = true;
      }
    }
    if (!needs_volume || has_volume) return;
    auto& volumes = spec["volumes"];
    if (!volumes.is_array()) volumes = json::Array();
    volumes.get_array().push_back(token_volume(volume_name));
  }

  static bool has_mount(const json::Value& container) {
    for (const auto& mount : json::get_array(container, {"volumeMounts"}))
      if (json::get_string(mount, {"mountPath"}) == kMountPath) return true;
    return false;
  }

  static json::Object token_volume(const std::string& name) {
    static const json::Object kVolume = [] {
      json::Array sources;
      // 3607 s: an hour, and recognisable as the value that nobody chose.
      sources.push_back(json::Object{{"serviceAccountToken", json::Object{{"expirationSeconds", 3607}, {"path", "token"}}}});
      sources.push_back(
          json::Object{{"configMap", json::Object{{"name", "kube-root-ca.crt"},
                                                  {"items", json::Array{json::Object{{"key", "ca.crt"}, {"path", "ca.crt"}}}}}}});
      json::Object field{{"path", "namespace"}, {"fieldRef", json::Object{{"apiVersion", "v1"}, {"fieldPath", "metadata.namespace"}}}};
      sources.push_back(json::Object{{"downwardAPI", json::Object{{"items", json::Array{std::move(field)}}}}});
      return json::Object{{"name", ""}, {"projected", json::Object{{"sources", std::move(sources)}, {"defaultMode", 420}}}};
    }();
    json::Object out = kVolume;
    out["name"] = name;
    return out;
  }

  ObjectCache& cache_;
  std::function<std::string()> random_suffix_;
  Mutex mutex_;
  ObjectPtr account_ BERTH_GUARDED_BY(mutex_);
  std::shared_ptr<const json::Value> document_ BERTH_GUARDED_BY(mutex_);  ///< Of account_.
};

}  // namespace

PluginResult make_service_account(const AdmissionContext& context) { return std::make_unique<ServiceAccount>(context); }

}  // namespace berth::apiserver
