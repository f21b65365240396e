#include "whatif/workloads.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/config_reader.h"
#include "controllers/common.h"
#include "controllers/deployment_model.h"
#include "model/kinds.h"
#include "whatif/manifests.h"

namespace berth::whatif {
namespace {

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

/// The ReplicaSets of a Deployment: those that say so, and those that only their pods tell of.
std::vector<PodSet> sets_of_deployment(const World& world, const std::string& ns, const std::string& name) {
  std::vector<std::pair<std::int64_t, PodSet>> found;
  const auto& objects = world.tables().objects;
  const std::string prefix = Tables::key("ReplicaSet", ns, "");
  std::set<std::string> known;
  for (auto at = objects.lower_bound(prefix); at != objects.end() && at->first.starts_with(prefix); ++at) {
    const json::Value& set = *at->second;
    known.insert(std::string(json::get_string(set, {"metadata", "name"})));
    for (const json::Value& owner : json::get_array(set, {"metadata", "ownerReferences"})) {
      if (json::get_string(owner, {"kind"}) != "Deployment" || json::get_string(owner, {"name"}) != name) continue;
      std::int64_t revision = 0;
      const std::string_view text = json::get_string(set, {"metadata", "annotations", "deployment.kubernetes.io/revision"});
      std::from_chars(text.data(), text.data() + text.size(), revision);
      found.push_back({revision,
                       {"ReplicaSet", std::string(json::get_string(set, {"metadata", "name"})),
                        std::string(json::get_string(set, {"metadata", "uid"})), &set}});
    }
  }
  std::map<std::string, std::string> inferred;
  for (const auto& [key, record] : world.tables().pods) {
    const model::OwnerReference* owner = record.owner();
    if (record.view().ns() != ns || owner == nullptr || owner->kind != "ReplicaSet" || known.contains(owner->name)) continue;
    const std::string* hash = record.view().meta.labels.get("pod-template-hash");
    if (hash != nullptr && owner->name == name + "-" + *hash) inferred.emplace(owner->name, owner->uid);
  }
  for (const auto& [set, uid] : inferred) found.push_back({0, {"ReplicaSet", set, uid, nullptr}});
  std::ranges::stable_sort(found, {}, [](const auto& one) { return one.first; });
  std::vector<PodSet> out;
  for (auto& [revision, set] : found) out.push_back(std::move(set));
  return out;
}

/// The set whose template is the Deployment's; the last one that has pods where the templates cannot be compared.
std::size_t newest_of(const World& world, const Workload& workload) {
  if (workload.document != nullptr) {
    const json::Value deployment = with_defaults(*workload.document);
    const json::Value* wanted = json::find(deployment, {"spec", "template"});
    for (std::size_t i = 0; i < workload.sets.size(); ++i) {
      if (workload.sets[i].document == nullptr) continue;
      const json::Value set = with_defaults(*workload.sets[i].document);
      const json::Value* have = json::find(set, {"spec", "template"});
      if (have != nullptr && wanted != nullptr && controllers::deployment::same_template(*have, *wanted)) return i;
    }
  }
  for (std::size_t i = workload.sets.size(); i-- > 0;)
    if (!pods_of(world, workload.sets[i]).empty()) return i;
  return workload.sets.empty() ? 0 : workload.sets.size() - 1;
}

Workload workload_of(const World& world, const std::string& kind, const std::string& ns, const std::string& name,
                     const json::Value* document) {
  Workload out{kind, ns, name, document, {}, 0};
  if (kind != "Deployment") {
    out.sets.push_back({kind, name, std::string(json::get_string(*document, {"metadata", "uid"})), document});
    return out;
  }
  out.sets = sets_of_deployment(world, ns, name);
  out.newest = newest_of(world, out);
  return out;
}

constexpr std::string_view kDeletionCost = "controller.kubernetes.io/pod-deletion-cost";

constexpr std::array<std::string_view, 5> kScaledKinds = {"Deployment", "StatefulSet", "ReplicaSet", "ReplicationController", "Job"};

Error no_workload(const World& world, const ObjectName& name) {
  std::vector<std::string> names, near;
  for (const auto& [key, object] : world.tables().objects) {
    const std::size_t slash = key.find('/');
    if (std::ranges::find(kScaledKinds, std::string_view(key).substr(0, slash)) != kScaledKinds.end())
      names.push_back(key.substr(slash + 1));
  }
  const std::vector<std::string_view> views(names.begin(), names.end());
  const std::string wanted = name.ns + "/" + name.name;
  return {ErrorCode::kNotFound,
          fmt::format("there is no {} {}{}{}", name.kind.empty() ? "workload" : name.kind, wanted, config::suggestion(wanted, views),
                      names.empty() ? "; no workloads are among the cluster's objects" : "")};
}

/// What a namespace's quotas leave; counted anew for each batch of pods.
class Quotas {
 public:
  Quotas(const World& world, const std::string& ns) {
    const std::string prefix = Tables::key("ResourceQuota", ns, "");
    const auto& objects = world.tables().objects;
    for (auto at = objects.lower_bound(prefix); at != objects.end() && at->first.starts_with(prefix); ++at) {
      if (json::find(*at->second, {"spec", "scopes"}) != nullptr || json::find(*at->second, {"spec", "scopeSelector"}) != nullptr)
        has_scopes_ = true;
      else
        quotas_.push_back(at->second.get());
    }
    if (quotas_.empty()) return;
    for (const auto& [key, record] : world.tables().pods)
      if (record.view().ns() == ns && !(record.is_parked && record.node.empty())) add(*record.info);
  }
  [[nodiscard]] bool has_scopes() const { return has_scopes_; }
  /// Why the API server would refuse the pod; else it counts from here on.
  std::optional<std::string> take(const placement::PodInfo& pod) {
    placement::Resource asked = pod.wanted();
    asked.allowed_pods = 1;
    for (const json::Value* quota : quotas_)
      for (const auto& [key, value] : json::get_object(*quota, {"spec", "hard"})) {
        const auto limit = model::Quantity::parse(value.is_string() ? std::string(json::as_view(value)) : json::serialize(value));
        const std::optional<std::int64_t> wanted = amount(asked, key);
        if (!limit || !wanted || *wanted == 0) continue;
        const bool is_cpu = std::string_view(key).ends_with("cpu");
        const std::int64_t hard = is_cpu ? limit->milli_value() : limit->value(), used = *amount(used_, key);
        if (used + *wanted <= hard) continue;
        const auto words = [&](std::int64_t many) { return is_cpu ? model::Quantity::from_milli(many).to_string() : std::to_string(many); };
        return fmt::format("the API server refuses it: exceeded quota: {}, requested: {}={}, used: {}={}, limited: {}={}",
                           json::get_string(*quota, {"metadata", "name"}), std::string_view(key), words(*wanted), std::string_view(key),
                           words(used), std::string_view(key), limit->to_string());
      }
    add(pod);
    return std::nullopt;
  }

 private:
  static std::optional<std::int64_t> amount(const placement::Resource& of, std::string_view key) {
    if (key == "pods" || key == "count/pods") return of.allowed_pods;
    if (key == "cpu" || key == "requests.cpu") return of.cpu_milli;
    if (key == "memory" || key == "requests.memory") return of.memory_bytes;
    if (key.starts_with("requests.") && key.find('/') != std::string_view::npos) return of.scalar(key.substr(9));
    return std::nullopt;
  }
  void add(const placement::PodInfo& pod) {
    used_.add(pod.wanted());
    ++used_.allowed_pods;
  }
  std::vector<const json::Value*> quotas_;
  placement::Resource used_;
  bool has_scopes_ = false;
};

/// The owner's pod, without name and uid.
Result<model::PodView> view_of_template(World& world, const json::Value& owner, model::PodFacts& facts) {
  const json::Value* pod_template = json::find(owner, {"spec", "template"});
  if (pod_template == nullptr || !pod_template->is_object())
    return invalid(
        fmt::format("{} {} has no spec.template", json::get_string(owner, {"kind"}), json::get_string(owner, {"metadata", "name"})));
  const json::Value pod = complete_pod(pod_of_template(owner), world.cluster(), world.options().default_namespace);
  if (auto unknown = unknown_priority(json::get_string(pod, {"spec", "priorityClassName"}), world.cluster()); !unknown.empty())
    world.note(std::move(unknown));
  facts = facts_of_new(pod);
  return model::PodView::parse(pod);
}

void add_pod(World& world, Quotas& quotas, model::PodView view, const model::PodFacts& facts, std::vector<std::string>& out) {
  view.meta.uid = fmt::format("what-if/Pod/{}/{}/{}", view.meta.ns, view.meta.name, world.change());
  view.phase = "Pending";
  const auto pod = placement::PodInfo::make(std::make_shared<const model::PodView>(std::move(view)), world.cluster().era());
  const auto refused = quotas.take(*pod);
  if (!world.add(pod, facts, world.reason())) return;
  out.push_back(pod->key);
  if (!refused) return;
  Record& record = *world.find(pod->key);
  record.is_parked = true;
  record.message = *refused;
}

}  // namespace

std::string kind_meant(std::string_view word) {
  const std::string_view head = word.substr(0, word.find('.'));
  for (const model::KindInfo& kind : model::all_kinds()) {
    if (equal_ignoring_case(head, kind.kind) || equal_ignoring_case(head, kind.plural) || equal_ignoring_case(head, kind.singular))
      return kind.kind;
    for (const std::string& name : kind.short_names)
      if (equal_ignoring_case(head, name)) return kind.kind;
  }
  return {};
}

ObjectName parse_object_name(std::string_view text, const std::string& default_namespace) {
  const std::size_t first = text.find('/');
  if (first == std::string_view::npos) return {{}, default_namespace, std::string(text)};
  const std::string_view head = text.substr(0, first), rest = text.substr(first + 1);
  const std::size_t second = rest.find('/');
  if (second != std::string_view::npos) {
    const std::string kind = kind_meant(head);
    return {kind.empty() ? std::string(head) : kind, std::string(rest.substr(0, second)), std::string(rest.substr(second + 1))};
  }
  if (const std::string kind = kind_meant(head); !kind.empty()) return {kind, default_namespace, std::string(rest)};
  return {{}, std::string(head), std::string(rest)};
}

Result<Workload> find_workload(const World& world, const ObjectName& name) {
  std::vector<Workload> found;
  for (const std::string_view kind : kScaledKinds) {
    if (!name.kind.empty() && name.kind != kind) continue;
    const json::Value* document = world.tables().find(kind, name.ns, name.name);
    if (document != nullptr) found.push_back(workload_of(world, std::string(kind), name.ns, name.name, document));
  }
  if (found.empty() && (name.kind.empty() || name.kind == "Deployment")) {
    Workload inferred = workload_of(world, "Deployment", name.ns, name.name, nullptr);
    if (!inferred.sets.empty()) found.push_back(std::move(inferred));
  }
  if (found.empty()) return std::unexpected(no_workload(world, name));
  if (found.size() == 1) return std::move(found.front());
  std::vector<std::string> kinds;
  for (const Workload& one : found) kinds.push_back(one.kind);
  return invalid(fmt::format("{}/{} is a {}: say which, such as {}/{}/{}", name.ns, name.name, fmt::join(kinds, " and a "), kinds.front(),
                             name.ns, name.name));
}

std::vector<std::string> pods_of(const World& world, const PodSet& set) { return world.pods_of(set.uid); }

std::vector<std::string> pods_of(const World& world, const Workload& workload) {
  std::vector<std::string> out;
  for (const PodSet& set : workload.sets) {
    const auto pods = pods_of(world, set);
    out.insert(out.end(), pods.begin(), pods.end());
  }
  std::ranges::sort(out);
  return out;
}

std::vector<std::string> in_order_of_deletion(World& world, const std::vector<std::string>& pods, const std::vector<std::string>& related) {
  const auto as_controllers_see = [&](const std::string& key) {
    const Record& record = *world.find(key);
    const model::PodView& view = record.view();
    const bool runs = !record.node.empty() && (view.phase.empty() || view.phase == "Running" || record.is_ready);
    json::Object annotations;
    if (const std::string* cost = view.meta.annotation(kDeletionCost)) annotations[kDeletionCost] = *cost;
    json::Object ready{{"type", "Ready"}, {"status", record.is_ready && runs ? "True" : "False"}};
    if (record.ready_since != TimePoint{}) ready["lastTransitionTime"] = format_rfc3339(record.ready_since);
    json::Value document = json::Object{
        {"apiVersion", "v1"},
        {"kind", "Pod"},
        {"metadata",
         json::Object{{"name", view.name()}, {"namespace", view.ns()}, {"uid", view.meta.uid}, {"annotations", std::move(annotations)}}},
        {"spec", json::Object{{"nodeName", record.node}}},
        {"status", json::Object{{"phase", runs ? "Running" : "Pending"},
                                {"conditions", json::Array{std::move(ready)}},
                                {"containerStatuses", json::Array{json::Object{{"restartCount", record.restarts}}}}}}};
    if (record.created != TimePoint{}) json::set(document, {"metadata", "creationTimestamp"}, json::Value(format_rfc3339(record.created)));
    return controllers::make_pod_info(std::make_shared<const client::Object>(document));
  };
  std::vector<controllers::PodRef> sorted, others;
  for (const std::string& key : pods) sorted.push_back(as_controllers_see(key));
  for (const std::string& key : related) others.push_back(as_controllers_see(key));
  controllers::sort_for_deletion(sorted, others, world.options().now);
  std::vector<std::string> out;
  for (const auto& pod : sorted) out.push_back(pod->object->key());
  return out;
}

std::function<std::optional<std::string>(const placement::PodInfo&)> quota_of(const World& world, const std::string& ns) {
  return [quotas = Quotas(world, ns)](const placement::PodInfo& pod) mutable { return quotas.take(pod); };
}

Result<std::vector<std::string>> make_pods(World& world, const json::Value& owner, std::int64_t count) {
  std::vector<std::string> out;
  if (count <= 0) return out;
  model::PodFacts facts;
  auto view = view_of_template(world, owner, facts);
  if (!view) return std::unexpected(view.error());
  Quotas quotas(world, view->meta.ns);
  if (quotas.has_scopes()) world.note(fmt::format("quotas with scopes in namespace {} are not counted", view->meta.ns));
  const std::string prefix = std::string(json::get_string(owner, {"metadata", "name"})) + "-new-";
  for (std::int64_t number = 1; count > 0; ++number) {
    view->meta.name = prefix + std::to_string(number);
    if (world.find(view->meta.key()) != nullptr) continue;
    add_pod(world, quotas, *view, facts, out);
    --count;
  }
  return out;
}

Result<void> make_pod(World& world, const json::Value& owner, const std::string& name) {
  model::PodFacts facts;
  auto view = view_of_template(world, owner, facts);
  if (!view) return std::unexpected(view.error());
  view->meta.name = name;
  // A StatefulSet's claims are volumes of its pods.
  for (const json::Value& claim : json::get_array(owner, {"spec", "volumeClaimTemplates"})) {
    model::VolumeView volume;
    volume.kind = model::VolumeView::Kind::kPersistentVolumeClaim;
    volume.name = std::string(json::get_string(claim, {"metadata", "name"}));
    volume.id = volume.name + "-" + name;
    view->volumes.push_back(std::move(volume));
  }
  Quotas quotas(world, view->meta.ns);
  std::vector<std::string> made;
  add_pod(world, quotas, std::move(*view), facts, made);
  return {};
}

void make_pods_like(World& world, const std::string& pod, std::int64_t count) {
  const placement::PodInfoPtr like = placement::successor_of(*world.find(pod)->info, world.cluster().era());
  model::PodView view = like->view();
  Quotas quotas(world, view.meta.ns);
  const std::string prefix = view.meta.controller()->name + "-new-";
  std::vector<std::string> made;
  for (std::int64_t number = 1; count > 0; ++number) {
    view.meta.name = prefix + std::to_string(number);
    if (world.find(view.meta.key()) != nullptr) continue;
    add_pod(world, quotas, view, world.find(pod)->read->facts, made);
    --count;
  }
}

void make_claims(World& world, const json::Value& stateful_set, const std::string& pod_name) {
  const std::string ns(json::get_string(stateful_set, {"metadata", "namespace"}));
  for (const json::Value& claim_template : json::get_array(stateful_set, {"spec", "volumeClaimTemplates"})) {
    const std::string name = std::string(json::get_string(claim_template, {"metadata", "name"})) + "-" + pod_name;
    if (world.cluster().claims().contains(ns + "/" + name)) continue;
    json::Value claim = json::Object{
        {"apiVersion", "v1"},
        {"kind", "PersistentVolumeClaim"},
        {"metadata",
         json::Object{{"name", name}, {"namespace", ns}, {"uid", fmt::format("what-if/PersistentVolumeClaim/{}/{}", ns, name)}}},
        {"spec", json::get_object(claim_template, {"spec"})},
        {"status", json::Object{{"phase", "Pending"}}}};
    std::string class_name(json::get_string(claim, {"spec", "storageClassName"}));
    if (json::find(claim, {"spec", "storageClassName"}) == nullptr)
      for (const auto& [key, storage_class] : world.cluster().storage_classes())
        if (const std::string* is_default = storage_class->meta.annotation("storageclass.kubernetes.io/is-default-class");
            is_default != nullptr && *is_default == "true")
          class_name = key;
    if (!class_name.empty()) json::set(claim, {"spec", "storageClassName"}, json::Value(class_name));
    const auto found = world.cluster().storage_classes().find(class_name);
    if (found != world.cluster().storage_classes().end() && !found->second->wait_for_first_consumer) {
      // The provisioner makes it somewhere before anybody asks for a node.
      const std::string volume = "what-if-" + name;
      world.note(
          fmt::format("the volume of claim {}/{} is made by {} before its pod has a node: it is supposed to be reachable from everywhere",
                      ns, name, found->second->provisioner));
      json::set(claim, {"spec", "volumeName"}, json::Value(volume));
      json::set(claim, {"metadata", "annotations"}, json::Object{{"pv.kubernetes.io/bind-completed", "yes"}});
      json::set(claim, {"status", "phase"}, json::Value("Bound"));
      world.cluster().upsert(json::Object{
          {"apiVersion", "v1"},
          {"kind", "PersistentVolume"},
          {"metadata", json::Object{{"name", volume}, {"uid", "what-if/PersistentVolume/" + volume}}},
          {"spec", json::Object{{"storageClassName", class_name}, {"claimRef", json::Object{{"namespace", ns}, {"name", name}}}}},
          {"status", json::Object{{"phase", "Bound"}}}});
    }
    world.cluster().upsert(claim);
  }
}

std::int64_t ordinal_of(std::string_view set, std::string_view pod) {
  if (pod.size() <= set.size() + 1 || !pod.starts_with(set) || pod[set.size()] != '-') return -1;
  std::int64_t out = -1;
  const auto [end, error] = std::from_chars(pod.data() + set.size() + 1, pod.data() + pod.size(), out);
  return error == std::errc{} && end == pod.data() + pod.size() ? out : -1;
}

void keep_object(World& world, json::Value document) {
  const std::string kind(json::get_string(document, {"kind"}));
  if (kind == "PodDisruptionBudget")
    world.put_budget(document);
  else
    world.cluster().upsert(document);
  world.tables().kinds.insert(kind);
  std::string key =
      Tables::key(kind, json::get_string(document, {"metadata", "namespace"}), json::get_string(document, {"metadata", "name"}));
  world.tables().objects.insert_or_assign(std::move(key), std::make_shared<const json::Value>(std::move(document)));
}

}  // namespace berth::whatif
