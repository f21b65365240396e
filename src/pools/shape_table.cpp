#include "pools/shape_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "placement/node_match.h"

namespace berth::pools {
namespace {

using placement::PodInfoPtr;

constexpr std::size_t kMostTypes = 60;

std::int64_t amount_of(const placement::Resource& resource, std::string_view name) {
  if (name == "cpu") return resource.cpu_milli;
  if (name == "memory") return resource.memory_bytes;
  if (name == "pods") return resource.allowed_pods;
  if (name == "ephemeral-storage") return resource.ephemeral_storage_bytes;
  return resource.scalar(name);
}

/// As amount_of counts: cpu in thousandths.
std::int64_t amount_of(const model::ResourceList& list, std::string_view name) {
  const model::Quantity* found = model::find_resource(list, name);
  if (found == nullptr) return 0;
  return name == "cpu" ? found->milli_value() : found->value();
}

/// Labels of nodes that these pods can tell apart.
std::set<std::string> keys_seen_by(const std::vector<PodInfoPtr>& pods) {
  std::set<std::string> out;
  for (const PodInfoPtr& pod : pods) {
    const model::PodView& view = pod->view();
    for (const auto& [key, value] : view.node_selector) out.insert(key);
    const auto take_terms = [&](const model::NodeSelectorTerm& term) {
      for (const model::Requirement& one : term.expressions) out.insert(one.key);
    };
    if (view.node_affinity.required)
      for (const auto& term : view.node_affinity.required->terms) take_terms(term);
    for (const auto& one : view.node_affinity.preferred) take_terms(one.preference);
    for (const auto& one : view.spread_constraints) out.insert(one.topology_key);
    for (const auto* terms :
         {&pod->required_affinity, &pod->required_anti_affinity, &pod->preferred_affinity, &pod->preferred_anti_affinity})
      for (const auto& term : *terms) out.insert(term.topology_key);
    // Where volumes are is told by zones.
    if (std::ranges::any_of(view.volumes, [](const auto& one) { return one.kind != model::VolumeView::Kind::kOther; }))
      out.insert(std::string(kZoneLabel));
  }
  return out;
}

/// Which values of the label the type brings to a choice (minValues).
std::set<std::string> values_of(const InstanceType& type, std::string_view key) {
  std::set<std::string> out;
  if (const std::string* value = type.labels.get(key)) out.insert(*value);
  for (const Offering& offering : type.offerings) {
    if (key == kZoneLabel) out.insert(offering.zone);
    if (key == kCapacityTypeLabel) out.insert(offering.capacity_type);
  }
  return out;
}

/// How much of a room another one lacks, as a sum of shares.
double lost_room(const Amounts& room, const Amounts& other) {
  double out = 0;
  for (std::size_t r = 0; r < room.size(); ++r)
    if (room[r] > other[r]) out += 1 - static_cast<double>(std::max<std::int64_t>(other[r], 0)) / static_cast<double>(room[r]);
  return out;
}

}  // namespace

ShapeTable::ShapeTable(const ProvisionInput& input, const std::vector<PodInfoPtr>& pods)
    : input_(input), shapes_(make_shapes(*input.pools, *input.catalogue, input.unavailable, input.now)) {
  std::set<std::string> more, limited;
  std::vector<PodInfoPtr> all = pods;
  all.insert(all.end(), input.daemons.begin(), input.daemons.end());
  for (const PodInfoPtr& pod : all) {
    if (pod->wanted().ephemeral_storage_bytes > 0) more.insert("ephemeral-storage");
    for (const auto& [name, amount] : pod->wanted().scalars) more.insert(name);
  }
  resources_ = {"cpu", "memory", "pods"};
  resources_.insert(resources_.end(), more.begin(), more.end());
  for (const NodePool& pool : *input.pools)
    for (const auto& [name, amount] : pool.limits) limited.insert(name);
  limited_.assign(limited.begin(), limited.end());
  for (const NodeShape& shape : shapes_)
    if (shape.offering->supply != INT64_MAX) supplies_.emplace(shape.offering->group, shape.offering->supply);
  const std::set<std::string> keys = keys_seen_by(all);
  std::map<std::pair<std::size_t, std::vector<std::string>>, std::size_t> known;
  // The cheapest of shapes that are alike: the same pool and type, and nobody sees a difference.
  std::map<std::tuple<std::size_t, std::size_t, std::string_view>, std::uint32_t> cheapest;
  std::vector<NodeShape> kept;
  std::ranges::stable_sort(shapes_, {}, &NodeShape::price);
  for (NodeShape& shape : shapes_) {
    std::vector<std::string> seen;
    for (const std::string& key : keys) {
      const std::string* value = shape.labels.get(key);
      seen.push_back(value == nullptr ? "" : "=" + *value);
    }
    for (const model::Taint& taint : input.catalogue->types[shape.type].taints)
      seen.push_back(fmt::format("{}={}:{}", taint.key, taint.value, taint.effect));
    const std::size_t place = known.try_emplace({shape.pool, std::move(seen)}, known.size()).first->second;
    if (!cheapest.try_emplace({place, shape.type, shape.offering->group}, static_cast<std::uint32_t>(kept.size())).second) continue;
    places_.push_back(place);
    kept.push_back(std::move(shape));
  }
  shapes_ = std::move(kept);
  speaker_.resize(known.size());
  std::map<std::size_t, std::vector<std::size_t>> daemons;
  for (std::uint32_t s = 0; s < shapes_.size(); ++s) {
    const NodeShape& shape = shapes_[s];
    speaker_[places_[s]] = s;
    const auto at = daemons.find(places_[s]);
    place_daemons_.push_back(at != daemons.end() ? at->second : (daemons[places_[s]] = daemons_of(shape)));
    BinShape bin{{}, {}, shape.price, shape.pool};
    for (const std::string& name : resources_) bin.room.push_back(amount_of(shape.allocatable, name));
    for (const std::size_t d : place_daemons_.back()) {
      const Amounts wanted = amounts(*input.daemons[d]);
      bool fit = true;
      for (std::size_t r = 0; r < wanted.size(); ++r) fit = fit && wanted[r] <= bin.room[r];
      for (std::size_t r = 0; fit && r < wanted.size(); ++r) bin.room[r] -= wanted[r];
    }
    for (const std::string& name : limited_)
      bin.capacity.push_back(name == "nodes" ? 1 : amount_of(input.catalogue->types[shape.type].capacity, name));
    for (const auto& [group, supply] : supplies_) bin.capacity.push_back(shape.offering->group == group ? 1 : 0);
    bins_.push_back(std::move(bin));
  }
  keep_choices();
  std::set<std::int64_t, std::greater<>> weights;
  for (const BinShape& bin : bins_) weights.insert((*input.pools)[bin.pool].weight);
  weights_.assign(weights.begin(), weights.end());
}

void ShapeTable::keep_choices() {
  for (const BinShape& bin : bins_) rooms_.push_back(bin.room);
  if (!keeps_choices()) return;
  const auto type_of = [&](std::uint32_t s) -> const InstanceType& { return input_.catalogue->types[shapes_[s].type]; };
  for (std::uint32_t s = 0; s < bins_.size(); ++s) {
    std::map<std::string, std::set<std::string>> lacking;  // The values that there are so far.
    const Requirements& wanted = (*input_.pools)[bins_[s].pool].requirements;
    for (const auto& [key, set] : wanted)
      if (set.min_values > 0) lacking[key] = values_of(type_of(s), key);
    const auto enough = [&](const auto& one) { return std::ssize(one.second) >= wanted.find(one.first)->second.min_values; };
    // Those of the others first that take least away.
    std::vector<std::pair<double, std::uint32_t>> others;
    std::erase_if(lacking, enough);
    for (std::uint32_t other = 0; !lacking.empty() && other < bins_.size(); ++other)
      if (other != s && places_[other] == places_[s]) others.emplace_back(lost_room(rooms_[s], rooms_[other]), other);
    std::ranges::sort(others);
    Amounts& room = bins_[s].room;
    for (const auto& [lost, other] : others) {
      if (lacking.empty()) break;
      bool brings = false;
      for (auto& [key, values] : lacking)
        for (const std::string& value : values_of(type_of(other), key)) brings |= values.insert(value).second;
      for (std::size_t r = 0; brings && r < room.size(); ++r) room[r] = std::min(room[r], rooms_[other][r]);
      std::erase_if(lacking, enough);
    }
    if (!lacking.empty()) room.assign(room.size(), 0);
  }
}

std::vector<std::size_t> ShapeTable::daemons_of(const NodeShape& shape) const {
  std::vector<std::size_t> out;
  for (std::size_t d = 0; d < input_.daemons.size(); ++d)
    if (placement::match_node(input_.daemons[d]->view(), "", shape.labels, shape.taints).belongs) out.push_back(d);
  return out;
}

Amounts ShapeTable::amounts(const placement::PodInfo& pod) const {
  Amounts out;
  const placement::Resource& wanted = pod.wanted();
  for (const std::string& name : resources_) out.push_back(name == "pods" ? 1 : amount_of(wanted, name));
  return out;
}

bool ShapeTable::is_allowed(const placement::PodInfo& pod, std::uint32_t shape) const {
  const NodeShape& one = shapes_[speaker_[places_[shape]]];
  return placement::match_node(pod.view(), "", one.labels, one.taints).belongs;
}

std::vector<std::uint32_t> ShapeTable::allowed(const placement::PodInfo& pod) {
  std::vector<std::uint32_t> out;
  std::vector<std::int8_t> verdicts(speaker_.size(), -1);
  for (std::uint32_t s = 0; s < shapes_.size(); ++s) {
    std::int8_t& verdict = verdicts[places_[s]];
    if (verdict < 0) verdict = is_allowed(pod, s) ? 1 : 0;
    if (verdict == 1) out.push_back(s);
  }
  return out;
}

std::vector<std::uint32_t> ShapeTable::preferred(const placement::PodInfo& pod) {
  const std::vector<std::uint32_t> all = allowed(pod);
  std::vector<std::pair<std::int64_t, std::uint32_t>> liked;
  std::int64_t most = INT64_MIN;
  constexpr std::string_view kSoft[] = {"PreferNoSchedule"};
  for (const std::uint32_t s : all) {
    if (!fits(amounts(pod), bins_[s].room)) continue;
    std::int64_t score = 0;
    for (const auto& one : pod.view().node_affinity.preferred)
      if (one.preference.matches(shapes_[s].labels, "")) score += one.weight;
    if (placement::find_untolerated_taint(shapes_[s].taints, pod.view().tolerations, kSoft) != nullptr) score -= 1000;
    liked.emplace_back(score, s);
    most = std::max(most, score);
  }
  std::vector<std::uint32_t> out;
  for (const auto& [score, s] : liked)
    if (score == most) out.push_back(s);
  return out.empty() ? all : out;
}

std::vector<Amounts> ShapeTable::limits_left() const {
  std::vector<Amounts> out;
  for (const NodePool& pool : *input_.pools) {
    Amounts left;
    const auto used = input_.in_use.find(pool.name);
    for (const std::string& name : limited_) {
      const bool is_limited = model::find_resource(pool.limits, name) != nullptr;
      std::int64_t amount = is_limited ? amount_of(pool.limits, name) : INT64_MAX;
      if (is_limited && used != input_.in_use.end())
        if (const auto at = used->second.find(name); at != used->second.end()) amount = std::max<std::int64_t>(0, amount - at->second);
      left.push_back(amount);
    }
    for (const auto& [group, supply] : supplies_) left.push_back(supply);
    out.push_back(std::move(left));
  }
  return out;
}

bool ShapeTable::keeps_choices() const {
  return std::ranges::any_of(*input_.pools, [](const NodePool& pool) {
    return std::ranges::any_of(pool.requirements, [](const auto& one) { return one.second.min_values > 0; });
  });
}

PackingProblem ShapeTable::problem(const std::vector<Amounts>& left, bool keeps_choices) const {
  PackingProblem out{bins_, {}, {}};
  for (std::size_t s = 0; !keeps_choices && s < bins_.size(); ++s) out.shapes[s].room = rooms_[s];
  for (std::size_t p = 0; p < input_.pools->size(); ++p) out.pools.push_back({(*input_.pools)[p].weight, left[p]});
  return out;
}

model::NodeViewPtr ShapeTable::node(std::uint32_t shape, const std::string& name) const {
  const NodeShape& one = shapes_[shape];
  return node_of(one, (*input_.pools)[one.pool], input_.catalogue->types[one.type], name);
}

model::NodeViewPtr ShapeTable::endless_node(std::size_t place, const std::string& name) const {
  auto out = std::make_shared<model::NodeView>(*node(speaker_[place], name));
  out->allocatable.clear();
  for (const std::string& resource : resources_)
    out->allocatable.emplace_back(resource, model::Quantity::from_value(1'000'000'000'000'000));
  out->allocatable.sort({}, [](const auto& one) { return one.first; });
  out->capacity = out->allocatable;
  return out;
}

std::vector<PodInfoPtr> ShapeTable::daemons_on(std::uint32_t shape, const std::string& name) const {
  std::vector<PodInfoPtr> out;
  for (const std::size_t d : place_daemons_[shape]) {
    auto view = std::make_shared<model::PodView>(input_.daemons[d]->view());
    view->meta.name += "-" + name;
    view->meta.uid = view->meta.ns + "/" + view->meta.name;
    out.push_back(placement::PodInfo::make(std::move(view), input_.trial->cluster().era()));
  }
  return out;
}

NewClaim ShapeTable::claim(std::uint32_t shape, const Amounts& used, const std::vector<PodInfoPtr>& pods,
                           const std::vector<Amounts>& left) {
  const NodeShape& chosen = shapes_[shape];
  NewClaim out{chosen.pool,
               {},
               {},
               {},
               chosen.labels,
               input_.catalogue->types[chosen.type].name,
               chosen.offering->zone,
               chosen.offering->capacity_type,
               chosen.price,
               pods,
               {}};
  for (const PodInfoPtr& pod : pods) out.requests.add(pod->wanted());
  for (const std::size_t d : place_daemons_[shape]) out.requests.add(input_.daemons[d]->wanted());
  std::set<std::string> zones{out.zone}, kinds{out.capacity_type};
  // Another type may stand in for it where it takes the content, and where the limits leave as much room for it.
  for (std::uint32_t s = 0; s < shapes_.size() && out.types.size() < kMostTypes; ++s) {  // Cheapest first.
    const NodeShape& other = shapes_[s];
    if (other.pool != chosen.pool || places_[s] != places_[shape] || !fits(used, rooms_[s])) continue;
    bool is_within = true;
    for (std::size_t r = 0; r < left[chosen.pool].size(); ++r)
      is_within =
          is_within && (left[chosen.pool][r] == INT64_MAX || bins_[s].capacity[r] - bins_[shape].capacity[r] <= left[chosen.pool][r]);
    const std::string& name = input_.catalogue->types[other.type].name;
    if (!is_within || std::ranges::find(out.types, name) != out.types.end()) continue;
    out.types.push_back(name);
    zones.insert(other.offering->zone);
    kinds.insert(other.offering->capacity_type);
  }
  if (std::ranges::find(out.types, out.type) == out.types.end()) out.types.insert(out.types.begin(), out.type);
  out.zones.assign(zones.begin(), zones.end());
  out.capacity_types.assign(kinds.begin(), kinds.end());
  return out;
}

std::string ShapeTable::lacking_values(const NewClaim& claim) const {
  for (const auto& [key, set] : (*input_.pools)[claim.pool].requirements) {
    if (set.min_values <= 0) continue;
    std::set<std::string> values;
    for (const std::string& name : claim.types)
      if (const InstanceType* type = input_.catalogue->find(name)) values.merge(values_of(*type, key));
    if (static_cast<std::int64_t>(values.size()) < set.min_values)
      return fmt::format("pool \"{}\" wants {} values of {} to choose from (minValues), and {} would do", (*input_.pools)[claim.pool].name,
                         set.min_values, key, values.size());
  }
  return "";
}

std::string ShapeTable::why_not(const placement::PodInfo& pod, const std::vector<Amounts>& left) {
  std::vector<std::string> out;
  const Amounts wanted = amounts(pod);
  constexpr std::string_view kHard[] = {"NoSchedule", "NoExecute"};
  for (std::size_t p = 0; p < input_.pools->size(); ++p) {
    const NodePool& pool = (*input_.pools)[p];
    std::string why = "no instance type of the catalogue meets its requirements";
    int step = 0;
    for (std::uint32_t s = 0; s < shapes_.size(); ++s) {
      if (shapes_[s].pool != p) continue;
      int reached = 1;
      if (const auto* taint = placement::find_untolerated_taint(shapes_[s].taints, pod.view().tolerations, kHard)) {
        if (step == 0) why = fmt::format("taint {}={}:{} is not tolerated", taint->key, taint->value, taint->effect);
        continue;
      }
      if (is_allowed(pod, s)) reached = 2;
      std::string lacks;
      for (std::size_t r = 0; reached == 2 && r < wanted.size(); ++r)
        if (wanted[r] > bins_[s].room[r]) lacks = resources_[r];
      if (reached == 2 && fits(wanted, rooms_[s])) reached = lacks.empty() ? 4 : 3;
      for (std::size_t r = 0; reached == 4 && r < left[p].size(); ++r)
        if (left[p][r] != INT64_MAX && bins_[s].capacity[r] > left[p][r])
          lacks = r < limited_.size() ? fmt::format("the pool's limit of {} is reached", limited_[r])
                                      : fmt::format("{} has as many machines as it may have", shapes_[s].offering->group);
      if (reached == 4 && lacks.empty()) reached = 5;
      if (reached <= step) continue;
      step = reached;
      if (reached == 1) why = "its node selector or node affinity matches no node of the pool";
      if (reached == 2) why = fmt::format("no instance type that it may go to has as much {}", lacks);
      if (reached == 3) why = "too few instance types to choose from have room for it (minValues)";
      if (reached == 4) why = lacks;
      if (reached == 5) why = "spreading, affinity, ports or volumes keep it off a new node";
    }
    out.push_back(fmt::format("pool \"{}\": {}", pool.name, why));
  }
  if (out.empty()) return "there is no NodePool";
  return fmt::format("{}", fmt::join(out, "; "));
}

}  // namespace berth::pools
