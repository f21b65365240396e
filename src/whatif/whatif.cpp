#include "whatif/whatif.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <unordered_map>

#include "whatif/answer.h"
#include "whatif/orders.h"
#include "whatif/outrun.h"
#include "whatif/question.h"

namespace berth::whatif {
namespace {

/// What no answer needs: much of a dump by bytes.
bool is_left_out(const json::Value& object, std::string_view kind) {
  static const std::set<std::string_view> kOut = {
      "Event",       "Secret",      "EndpointSlice",      "Endpoints",      "Lease",      "ControllerRevision", "Role",
      "RoleBinding", "ClusterRole", "ClusterRoleBinding", "ServiceAccount", "PodMetrics", "NodeMetrics"};
  if (kind == "ConfigMap") return json::get_string(object, {"metadata", "name"}) != "cluster-autoscaler-priority-expander";
  return kOut.contains(kind);
}

std::uint64_t revision_of(const json::Value& object) {
  const std::string_view text = json::get_string(object, {"metadata", "resourceVersion"});
  std::uint64_t out = 0;
  std::from_chars(text.data(), text.data() + text.size(), out);
  return out;
}

std::string some_of(const std::vector<std::string>& all, std::size_t most = 3) {
  std::vector<std::string> shown(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(std::min(most, all.size())));
  return fmt::format("{}{}", fmt::join(shown, ", "), all.size() > most ? fmt::format(" and {} more", all.size() - most) : "");
}

}  // namespace

struct Present::Impl {
  Options options;
  placement::Cluster cluster;
  std::optional<placement::Trial> trial;
  Tables tables;
  Moment moment;
  std::vector<std::string> notes;
  struct Seen {
    std::string uid, source;
    std::uint64_t revision = 0;
  };
  std::unordered_map<std::string, Seen> seen;  ///< By "Kind/namespace/name".
  std::vector<std::string> mixed, cut_off, unnamed, not_amounts;
  std::set<std::string> not_kept;  ///< Kinds of answers that are no objects: a Status, a Table.
  std::size_t without_kind = 0, finished = 0, terminating = 0, repeated = 0;
  bool uses_claims = false, uses_classes = false;

  explicit Impl(Options given) : options(std::move(given)), cluster(options.era) {}

  void add(const json::Value& object, std::string_view source);
  void add_pod(const json::Value& object, const std::string& key);
  void check_amounts(const json::Value* amounts, std::string_view whose);
  Result<void> finish();
  void check_places();
  void check_owners();
  void tell_what_lacks();
  void count_budgets();
  [[nodiscard]] json::Object moment_told() const;
  /// The present, before anything is asked.
  World begin();
  json::Object play_orders(const json::Value& question, const Fates& fates);
};

void Present::Impl::add(const json::Value& object, std::string_view source) {
  const std::string kind(json::get_string(object, {"kind"})), name(json::get_string(object, {"metadata", "name"}));
  if (kind.empty()) {
    if (json::find(object, "items") != nullptr)
      cut_off.push_back(fmt::format("{}: a list without its kind", source.empty() ? "the objects" : source));
    else
      ++without_kind;
    return;
  }
  if (name.empty()) {
    if (kind == "Status") not_kept.insert(fmt::format("a Status: {}", json::get_string(object, {"message"}, "without a message")));
    if (kind == "Table") not_kept.insert("a Table, which has no objects");
    unnamed.push_back(kind);
    return;
  }
  const std::string ns(json::get_string(object, {"metadata", "namespace"}));
  const std::string key = Tables::key(kind, ns, name);
  const std::string uid(json::get_string(object, {"metadata", "uid"}));
  const std::uint64_t revision = revision_of(object);
  const auto [known, is_new] = seen.try_emplace(key, Seen{uid, std::string(source), revision});
  if (!is_new) {
    if (!uid.empty() && !known->second.uid.empty() && uid != known->second.uid) {
      mixed.push_back(fmt::format("{} has uid {}{} and uid {}{}", key, known->second.uid,
                                  known->second.source.empty() ? "" : " in " + known->second.source, uid,
                                  source.empty() ? "" : fmt::format(" in {}", source)));
      return;
    }
    ++repeated;
    if (revision < known->second.revision) return;
    known->second.revision = revision;
  }
  moment.see(object);
  if (is_left_out(object, kind)) return;
  tables.kinds.insert(kind);
  if (kind == "Pod") return add_pod(object, ns + "/" + name);
  if (kind == "Node") {
    check_amounts(json::find(object, {"status", "allocatable"}), "Node " + name);
    cluster.upsert(object);
    return;
  }
  cluster.upsert(object);
  if (kind == "PodDisruptionBudget") tables.budgets.put(object);
  tables.objects.insert_or_assign(key, std::make_shared<const json::Value>(object));
}

void Present::Impl::add_pod(const json::Value& object, const std::string& key) {
  for (const char* list : {"containers", "initContainers"})
    for (const json::Value& container : json::get_array(object, {"spec", list}))
      check_amounts(json::find(container, {"resources", "requests"}), "Pod " + key);
  const auto pod = placement::ReadPod::parse(object, cluster.era(), true);
  const model::PodView* view = &pod->view();
  if (view->containers.empty()) {
    cut_off.push_back(fmt::format("Pod {} has no spec.containers", key));
    return;
  }
  if (view->is_terminal()) {
    ++finished;
    return;
  }
  terminating += view->meta.is_deleting;
  uses_classes |= !view->priority_class_name.empty() && !view->priority_class_name.starts_with("system-");
  for (const model::VolumeView& volume : view->volumes)
    uses_claims |= volume.kind == model::VolumeView::Kind::kPersistentVolumeClaim || volume.kind == model::VolumeView::Kind::kEphemeral;
  cluster.upsert_pod(pod->info);
  Record& record = tables.pods[key];
  record = Record{};
  record.info = pod->info;
  record.read = pod;
  record.node = view->node_name;
  record.created = pod->facts.created.value_or(TimePoint{});
  record.is_ready = !record.node.empty();  // A pod written by hand has no conditions.
  for (const model::PodCondition& condition : pod->status().conditions) {
    if (condition.type != "Ready") continue;
    record.is_ready = !record.node.empty() && condition.status == "True";
    record.ready_since = condition.last_transition.value_or(TimePoint{});
  }
  for (const model::ContainerState& container : pod->status().containers)
    if (container.kind == model::ContainerState::Kind::kContainer) record.restarts = std::max(record.restarts, container.restarts);
  record.was_waiting = record.node.empty();
  record.reason = "it waited before";
}

/// What no API server lets in would count as nothing in every sum.
void Present::Impl::check_amounts(const json::Value* amounts, std::string_view whose) {
  if (amounts == nullptr || !amounts->is_object()) return;
  for (const auto& [resource, amount] : amounts->get_object()) {
    const auto quantity = model::Quantity::parse(amount.is_string() ? json::as_view(amount) : std::string_view(json::serialize(amount)));
    if (!quantity || quantity->sign() < 0) not_amounts.push_back(fmt::format("{}: {}: {}", whose, resource, json::serialize(amount)));
  }
}

void Present::Impl::check_places() {
  std::map<std::string, std::vector<std::string>> lost;
  for (const auto& [key, record] : tables.pods) {
    if (record.node.empty()) continue;
    const auto* node = cluster.find_node(record.node);
    if (node == nullptr || node->node == nullptr) lost[record.node].push_back(key);
  }
  for (auto& [node, pods] : lost) {
    std::ranges::sort(pods);
    notes.push_back(
        fmt::format("{} pods are on node {}, which is not among the objects: they are left out ({})", pods.size(), node, some_of(pods)));
    for (const std::string& pod : pods) {
      cluster.remove_pod(pod);
      tables.pods.erase(pod);
    }
  }
}

void Present::Impl::check_owners() {
  std::vector<std::string> strangers;
  std::unordered_map<std::string, std::string_view> uids;  // By the controller's key; empty: it has none, or is not there.
  for (const auto& [key, record] : tables.pods) {
    const model::OwnerReference* owner = record.owner();
    if (owner == nullptr) continue;
    tables.pods_of_owner[owner->uid].push_back(key);
    const auto [known, is_new] = uids.try_emplace(Tables::key(owner->kind, record.view().ns(), owner->name));
    if (is_new)
      if (const json::Value* object = tables.find(owner->kind, record.view().ns(), owner->name))
        known->second = json::get_string(*object, {"metadata", "uid"});
    const std::string_view uid = known->second;
    if (!uid.empty() && !owner->uid.empty() && uid != owner->uid) strangers.push_back(key);
  }
  std::ranges::sort(strangers);
  if (!strangers.empty())
    notes.push_back(fmt::format(
        "{} pods belong to a controller of another uid than the one of that name here: the objects are of several moments, or of "
        "several clusters ({})",
        strangers.size(), some_of(strangers)));
}

void Present::Impl::tell_what_lacks() {
  std::vector<std::string> empty_nodes;
  for (const auto* node : cluster.nodes())
    if (node->node->allocatable.empty()) empty_nodes.push_back(node->name);
  if (!empty_nodes.empty())
    notes.push_back(fmt::format("{} nodes have no status.allocatable: nothing fits there ({})", empty_nodes.size(), some_of(empty_nodes)));
  std::map<std::string, std::size_t> strangers;
  for (const auto& [key, record] : tables.pods)
    if (!options.profiles.by_name().empty() &&
        !options.profiles.contains(record.view().scheduler_name.empty() ? "default-scheduler" : record.view().scheduler_name))
      ++strangers[record.view().scheduler_name];
  for (const auto& [name, count] : strangers)
    notes.push_back(
        fmt::format("{} pods are scheduler {}'s, of which no configuration is known: the first profile decides for it", count, name));
  const auto lacks = [&](std::string_view kind, std::string_view plural) {
    return !tables.kinds.contains(kind) && !tables.known_whole.contains(plural);
  };
  const auto tell = [&](std::string_view kind, std::string_view plural, std::string_view what) {
    if (lacks(kind, plural)) notes.push_back(fmt::format("no {} among the objects: {}", plural, what));
  };
  tell("Pod", "pods", "every node counts as empty");
  tell("PodDisruptionBudget", "poddisruptionbudgets", "no eviction is refused and no budget is broken");
  std::set<std::string> owners;
  for (const auto& [key, record] : tables.pods)
    if (record.owner() != nullptr) owners.insert(record.owner()->kind);
  for (const auto& [kind, plural] : {std::pair("ReplicaSet", "replicasets"), std::pair("StatefulSet", "statefulsets"),
                                     std::pair("Job", "jobs"), std::pair("ReplicationController", "replicationcontrollers")})
    if (owners.contains(kind)) tell(kind, plural, "pods that name one are supposed to be made anew by it");
  if (uses_classes) tell("PriorityClass", "priorityclasses", "pods keep the priority that they have; new pods of a class get 0");
  if (uses_claims) {
    tell("PersistentVolumeClaim", "persistentvolumeclaims", "pods with claims find no volume");
    tell("PersistentVolume", "persistentvolumes", "what volumes are bound to is not known");
    tell("StorageClass", "storageclasses", "claims without a volume find none");
    tell("CSINode", "csinodes", "a node attaches any number of volumes");
  }
  if (!unnamed.empty()) notes.push_back(fmt::format("{} objects without a name are left out ({})", unnamed.size(), some_of(unnamed)));
  if (without_kind > 0) notes.push_back(fmt::format("{} documents without a kind are left out", without_kind));
  if (repeated > 0) notes.push_back(fmt::format("{} objects are there more than once: the newest of each counts", repeated));
  if (terminating > 0)
    notes.push_back(fmt::format("{} pods are on their way out: they hold their room, and nothing comes after them", terminating));
}

void Present::Impl::count_budgets() {
  const std::vector<Tally> counted = tally(tables);
  for (Budgets::Id id = 0; id < tables.budgets.size(); ++id) {
    Budget& budget = tables.budgets.at(id);
    const json::Value& document = budget.document;
    budget.computed = counted[id].desired;
    budget.desired = json::get_int(document, {"status", "desiredHealthy"}, counted[id].desired);
    budget.healthy = json::get_int(document, {"status", "currentHealthy"}, counted[id].healthy);
    const json::Value* allowed = json::find(document, {"status", "disruptionsAllowed"});
    if (allowed == nullptr) continue;
    const std::int64_t said = json::get_int(document, {"status", "disruptionsAllowed"});
    if (json::find(document, {"status", "desiredHealthy"}) == nullptr) budget.desired = budget.healthy - said;
    budget.held = std::max<std::int64_t>(0, budget.allowed() - said);
  }
}

Result<void> Present::Impl::finish() {
  if (!cut_off.empty()) return invalid(fmt::format("{}: the file seems to be cut off", cut_off.front()));
  if (!mixed.empty())
    return invalid(
        fmt::format("the objects are of several clusters, or of several moments: {}. Give one dump of one cluster", some_of(mixed)));
  if (!not_amounts.empty())
    return invalid(fmt::format("amounts that no API server would have taken: {}. The dump is damaged", some_of(not_amounts)));
  if (cluster.nodes().empty() && !options.may_lack_nodes)
    return invalid(fmt::format("there is no Node among the objects{}: `kubectl get nodes,pods,… -A -o yaml` gives them",
                               not_kept.empty() ? "" : fmt::format(" (there is {})", fmt::join(not_kept, "; "))));
  check_places();
  check_owners();
  tell_what_lacks();
  count_budgets();
  seen.clear();
  placement::Profiles profiles = options.profiles;
  trial.emplace(cluster, std::move(profiles), trial_options(options));
  return {};
}

Present::Present(Options options) : impl_(std::make_unique<Impl>(std::move(options))) {}
Present::~Present() = default;
Present::Present(Present&&) noexcept = default;
Present& Present::operator=(Present&&) noexcept = default;

void Present::add(const json::Value& object, std::string_view source) { impl_->add(object, source); }
void Present::know_all_of(std::string_view plural) { impl_->tables.known_whole.emplace(plural); }
void Present::note(std::string sentence) { impl_->notes.push_back(std::move(sentence)); }
Result<void> Present::finish() { return impl_->finish(); }
const std::vector<std::string>& Present::notes() const { return impl_->notes; }

/// Of which moment answers are.
json::Object Present::Impl::moment_told() const {
  json::Object out = moment.to_json();
  if (!options.asked_at.empty()) out["asked"] = options.asked_at;
  return out;
}

World Present::Impl::begin() {
  World world(trial->fork(), tables, options);
  world.tables().budgets.start();
  world.begin_change(-1, "it waited, and fits already");
  return world;
}

json::Object Present::Impl::play_orders(const json::Value& question, const Fates& fates) {
  return compare_orders(fates, *orders_wanted(question), [&](int order) -> std::optional<Fates> {
    World world = begin();
    world.settle();
    world.set_order(order);
    if (!apply_changes(world, question)) return std::nullopt;
    return Fates::of(world);
  });
}

Result<json::Value> Present::ask(const json::Value& question, Part part, const NameOfChange& name_of) {
  World world = impl_->begin();
  const Fullness before = Fullness::of(world.cluster());
  world.settle();
  world.gangs_before = count_gangs(world.tables());
  if (auto done = apply_changes(world, question, name_of); !done) return std::unexpected(done.error());
  const Fates fates = Fates::of(world);
  const bool is_of_order = part.index == 0 && !json::get_array(question, {"changes"}).empty() && world.moves.size() + fates.left.size() > 1;
  auto each = each_loss(world, question, part);
  if (!each) return std::unexpected(each.error());
  json::Object more = std::move(*each);
  if (is_of_order && orders_wanted(question).value_or(0) > 0) more["orders"] = impl_->play_orders(question, fates);
  if (const json::Value* request = json::find(question, "capacity")) {
    auto capacity = capacity_for(world, *request);
    if (!capacity) return std::unexpected(capacity.error());
    more["capacity"] = std::move(*capacity);
  }
  if (const json::Value* request = json::find(question, "pack")) {
    auto packed = pack(world, *request);
    if (!packed) return std::unexpected(packed.error());
    more["pack"] = std::move(*packed);
  }
  json::Object out = answer_of(world, world.baseline != nullptr ? *world.baseline : before, impl_->notes);
  if (json::get_bool(question, {"preempt"})) add_preemption(world, out["pending"].get_array());
  for (auto& [key, value] : more) out[key] = std::move(value);
  json::Value answer(std::move(out));
  json::Array seen = seen_by(answer, question, impl_->cluster, impl_->tables);
  answer.get_object()["of"] = impl_->moment_told();
  if (!impl_->options.configuration.empty()) answer.get_object()["configuration"] = impl_->options.configuration;
  answer.get_object()["question"] = question;
  answer.get_object()["seen"] = std::move(seen);
  return answer;
}

Result<json::Value> Present::look_again(const json::Value& answer) {
  const json::Value* question = json::find(answer, "question");
  if (question == nullptr || json::find(answer, "summary") == nullptr)
    return invalid("this is no answer of what-if, capacity or pack: `-o json` or `-o yaml` saves one, with its question");
  auto now = ask(*question);
  json::Array changed, differing;
  for (const std::string& one : changed_since(json::get_array(answer, {"seen"}), impl_->cluster, impl_->tables)) changed.emplace_back(one);
  if (now)
    for (const std::string& one : differences(answer, *now)) differing.emplace_back(one);
  else
    differing.emplace_back(fmt::format("the question has no answer any more: {}", now.error().message));
  const json::Value* then = json::find(answer, "of");
  return json::Value(json::Object{{"holds", differing.empty()},
                                  {"then", then == nullptr ? json::Value(json::Object()) : *then},
                                  {"now", impl_->moment_told()},
                                  {"changed", std::move(changed)},
                                  {"differences", std::move(differing)}});
}

Result<json::Value> ask(std::span<const json::Value> objects, const json::Value& question, Options options) {
  Present present(std::move(options));
  for (const json::Value& object : objects) present.add(object);
  if (auto done = present.finish(); !done) return std::unexpected(done.error());
  return present.ask(question);
}

}  // namespace berth::whatif
