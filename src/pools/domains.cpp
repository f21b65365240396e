#include "pools/domains.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>

#include "placement/attempt.h"
#include "pools/kinds.h"

namespace berth::pools {
namespace {

using placement::AffinityTerm;
using placement::NodeIndex;
using placement::PodInfo;
using placement::PodInfoPtr;

/// More of a slot than a node can have pods.
constexpr std::int64_t kWhole = 1'000'000;

bool is_of_host(std::string_view key) { return key == kHostnameLabel; }

/// The pod without what concerns single nodes, which slots and units keep.
PodInfoPtr without_hosts(const PodInfo& pod, placement::Era era) {
  auto view = std::make_shared<model::PodView>(pod.view());
  const auto of_host = [](const auto& one) { return is_of_host(one.topology_key); };
  view->spread_constraints.erase_if(of_host);
  view->required_affinity.erase_if(of_host);
  view->required_anti_affinity.erase_if(of_host);
  for (auto* containers : {&view->containers, &view->init_containers})
    containers->change_each([](model::ContainerView& one) { one.host_ports.clear(); });
  return PodInfo::make(std::move(view), era);
}

class Lots {
 public:
  Lots(placement::Trial& trial, ShapeTable& table, const std::vector<Amounts>& left, std::string zone)
      : trial_(trial), table_(table), left_(left), zone_(std::move(zone)), probes_(table.speakers().size()) {}

  PodLots run(const std::vector<PodInfoPtr>& pods) {
    kinds_ = kinds_of(trial_, pods);
    kind_places_.resize(kinds_.size());
    find_slots();
    find_domains();
    std::vector<std::size_t> seen;
    for (std::size_t k = 0; k < kinds_.size(); ++k)
      if (!kinds_[k].first().view().resource_claims.empty())
        out_.rest.insert(out_.rest.end(), kinds_[k].pods.begin(), kinds_[k].pods.end());
      else if (sees_places(kinds_[k].first()) || is_seen(kinds_[k].first()))
        seen.push_back(k);
      else
        add(k, {}, kinds_[k].pods);
    placement::Attempt attempt(trial_);
    choose_places(seen);
    return std::move(out_);
  }

 private:
  [[nodiscard]] const model::Labels& namespace_of(const PodInfo& pod) const {
    return trial_.cluster().namespace_labels(pod.view().meta.ns);
  }
  [[nodiscard]] bool matches(const AffinityTerm& term, const PodInfo& pod) const { return term.matches(pod.view(), namespace_of(pod)); }
  static bool matches(const PodInfo& owner, const model::TopologySpreadConstraint& one, const PodInfo& pod) {
    return owner.view().meta.ns == pod.view().meta.ns && one.selector.matches(pod.view().meta.labels);
  }

  // Slots and units: single nodes.

  /// A slot for each way in which pods keep apart on one node.
  void find_slots() {
    for (std::size_t k = 0; k < kinds_.size(); ++k) {
      const PodInfo& owner = kinds_[k].first();
      for (const AffinityTerm& term : owner.required_anti_affinity) {
        if (!is_of_host(term.topology_key) || !matches(term, owner)) continue;
        Slot slot{kWhole, {}};
        for (std::size_t other = 0; other < kinds_.size(); ++other)
          if (matches(term, kinds_[other].first())) slot.takes[other] = 1;
        slot.takes[k] = kWhole;
        slots_.push_back(std::move(slot));
      }
      for (const auto& one : owner.view().spread_constraints) {
        if (!one.is_hard || !is_of_host(one.topology_key) || !one.match_label_keys.empty() || !matches(owner, one, owner)) continue;
        Slot slot{one.max_skew, {}};
        for (std::size_t other = 0; other < kinds_.size(); ++other)
          if (matches(owner, one, kinds_[other].first())) slot.takes[other] = 1;
        slots_.push_back(std::move(slot));
      }
    }
    std::map<std::pair<std::string, std::int32_t>, Slot> ports;
    for (std::size_t k = 0; k < kinds_.size(); ++k)
      for (const model::HostPort& port : kinds_[k].first().host_ports)
        ports.try_emplace({port.protocol, port.port}, Slot{1, {}}).first->second.takes[k] = 1;
    for (auto& [port, slot] : ports) slots_.push_back(std::move(slot));
    std::set<std::pair<std::int64_t, std::map<std::size_t, std::int64_t>>> once;
    std::erase_if(slots_, [&](const Slot& slot) { return !once.emplace(slot.room, slot.takes).second; });
    for (const Slot& slot : slots_) out_.slots.push_back(slot.room);
  }
  [[nodiscard]] Amounts slots_of(std::size_t k) const {
    Amounts out;
    for (const Slot& slot : slots_) {
      const auto at = slot.takes.find(k);
      out.push_back(at == slot.takes.end() ? 0 : at->second);
    }
    return out;
  }
  /// The term by which pods of the kind want one node for all of them; null: none.
  [[nodiscard]] const AffinityTerm* together(const PodInfo& pod) const {
    for (const AffinityTerm& term : pod.required_affinity)
      if (is_of_host(term.topology_key)) return &term;
    return nullptr;
  }
  void add(std::size_t k, std::vector<std::size_t> places, const std::vector<PodInfoPtr>& pods) {
    if (pods.empty()) return;
    PodLot lot{{}, std::move(places), slots_of(k)};
    lot.units.reserve(pods.size());
    for (const PodInfoPtr& pod : pods) lot.units.push_back({pod});
    out_.lots.push_back(std::move(lot));
  }

  // Places: one after the other, by the plugins.

  static bool sees_places(const PodInfo& pod) {
    const model::PodView& view = pod.view();
    return !pod.required_affinity.empty() ||
           std::ranges::any_of(pod.required_anti_affinity, [](const auto& one) { return !is_of_host(one.topology_key); }) ||
           std::ranges::any_of(view.spread_constraints, [](const auto& one) { return one.is_hard && !is_of_host(one.topology_key); }) ||
           std::ranges::any_of(view.volumes, [](const auto& one) { return one.kind != model::VolumeView::Kind::kOther; });
  }
  /// Whether others go by where this one is.
  [[nodiscard]] bool is_seen(const PodInfo& pod) const {
    return std::ranges::any_of(kinds_, [&](const PodKind& kind) {
      const PodInfo& owner = kind.first();
      const auto sees = [&](const AffinityTerm& term) { return !is_of_host(term.topology_key) && matches(term, pod); };
      return std::ranges::any_of(owner.required_affinity, sees) || std::ranges::any_of(owner.required_anti_affinity, sees) ||
             std::ranges::any_of(owner.view().spread_constraints,
                                 [&](const auto& one) { return one.is_hard && !is_of_host(one.topology_key) && matches(owner, one, pod); });
    });
  }
  /// Places that are one domain of each topology that is spoken of.
  void find_domains() {
    std::set<std::string> keys;
    for (const PodKind& kind : kinds_) {
      for (const auto* terms : {&kind.first().required_affinity, &kind.first().required_anti_affinity})
        for (const AffinityTerm& term : *terms) keys.insert(term.topology_key);
      for (const auto& one : kind.first().view().spread_constraints) keys.insert(one.topology_key);
      if (!kind.first().view().volumes.empty()) keys.insert(std::string(kZoneLabel));
    }
    keys.erase(std::string(kHostnameLabel));
    std::map<std::vector<std::string>, std::size_t> known;
    for (std::size_t place = 0; place < probes_.size(); ++place) {
      std::vector<std::string> values;
      for (const std::string& key : keys) {
        const std::string* value = table_.labels_of(place).get(key);
        values.push_back(value == nullptr ? "" : "=" + *value);
      }
      const std::size_t domain = known.try_emplace(std::move(values), known.size()).first->second;
      domain_of_.push_back(domain);
      places_in_[domain].push_back(place);
    }
  }
  /// The places that may take the kind, the best first.
  std::vector<std::size_t> places_for(const PodInfo& pod) {
    struct Choice {
      std::int64_t weight = 0;
      bool is_other = false;
      double price = 0;
    };
    std::map<std::size_t, Choice> found;
    const Amounts wanted = table_.amounts(pod);
    for (const std::uint32_t s : table_.allowed(pod)) {
      const BinShape& shape = table_.shape(s);
      if (!fits(wanted, shape.room) || !fits(shape.capacity, left_[shape.pool])) continue;
      double share = 0;
      for (std::size_t r = 0; r < wanted.size(); ++r)
        if (shape.room[r] > 0) share = std::max(share, static_cast<double>(wanted[r]) / static_cast<double>(shape.room[r]));
      const std::size_t place = table_.place_of(s);
      const auto [at, is_new] = found.try_emplace(place, Choice{-table_.weight_of(s), zone_of(place) != zone_, share * shape.price});
      if (!is_new) at->second.price = std::min(at->second.price, share * shape.price);
    }
    std::vector<std::size_t> out;
    for (const auto& [place, choice] : found) out.push_back(place);
    std::ranges::stable_sort(out, {}, [&](std::size_t place) {
      const Choice& one = found.at(place);
      return std::tuple(one.weight, one.is_other, one.price);
    });
    return out;
  }
  std::string zone_of(std::size_t place) {
    const std::string* zone = table_.labels_of(place).get(kZoneLabel);
    return zone == nullptr ? "" : *zone;
  }
  NodeIndex probe(std::size_t place) {
    if (!probes_[place].is_valid())
      probes_[place] = trial_.cluster().upsert_node(table_.endless_node(place, fmt::format("place-{}", place)));
    return probes_[place];
  }
  /// Where one pod of the kind goes; nullopt: nowhere for now.
  std::optional<std::size_t> put(std::size_t k, const PodInfoPtr& pod) {
    if (kind_places_[k].empty()) kind_places_[k] = places_for(*pod);
    const PodInfoPtr bare = without_hosts(*pod, trial_.cluster().era());
    for (const std::size_t place : kind_places_[k])
      if (trial_.place_on(bare, probe(place)).is_success()) return place;
    return std::nullopt;
  }
  /// Rounds for as long as one of them gets somewhere: some wait for others.
  void choose_places(const std::vector<std::size_t>& seen) {
    std::vector<std::size_t> next(kinds_.size(), 0);
    std::map<std::pair<std::size_t, std::size_t>, std::vector<PodInfoPtr>> placed;
    std::vector<Party> parties;
    for (bool goes_on = true; goes_on;) {
      goes_on = false;
      for (const std::size_t k : seen)
        for (; next[k] < kinds_[k].pods.size(); ++next[k]) {
          const PodInfoPtr& pod = kinds_[k].pods[next[k]];
          const AffinityTerm* term = together(*pod);
          if (term != nullptr) {
            if (!join(parties, k, *term, pod)) break;
          } else if (const auto place = put(k, pod)) {
            placed[{k, domain_of_[*place]}].push_back(pod);
          } else {
            break;
          }
          out_.order.emplace(pod.get(), out_.order.size());
          goes_on = true;
        }
    }
    for (const std::size_t k : seen)
      out_.rest.insert(out_.rest.end(), kinds_[k].pods.begin() + static_cast<std::ptrdiff_t>(next[k]), kinds_[k].pods.end());
    for (const auto& [at, pods] : placed) add(at.first, places_in_[at.second], pods);
    for (Party& party : parties) {
      std::vector<std::size_t> places = places_in_[domain_of_[party.place]];
      out_.lots.push_back({{std::move(party.pods)}, std::move(places), std::move(party.slots)});
    }
  }

  /// Pods that want one node for all of them.
  struct Party {
    const AffinityTerm* term = nullptr;
    std::size_t place = 0;
    std::vector<PodInfoPtr> pods;
    Amounts used, slots;
  };
  /// False: no node could hold the pod with those of the party that have come so far, or it does not belong to its own party.
  bool join(std::vector<Party>& parties, std::size_t k, const AffinityTerm& term, const PodInfoPtr& pod) {
    if (!matches(term, *pod)) return false;
    const auto at = std::ranges::find_if(parties, [&](const Party& one) { return *one.term == term; });
    Party alone{&term, 0, {}, Amounts(table_.width(), 0), Amounts(slots_.size(), 0)};
    Party& party = at == parties.end() ? alone : *at;
    Amounts used = party.used, slots = party.slots;
    const Amounts wanted = table_.amounts(*pod), taken = slots_of(k);
    for (std::size_t r = 0; r < used.size(); ++r) used[r] += wanted[r];
    for (std::size_t i = 0; i < slots.size(); ++i) slots[i] += taken[i];
    if (!fits(slots, out_.slots)) return false;
    if (at == parties.end()) {
      const auto place = put(k, pod);
      if (!place) return false;
      party.place = *place;
    } else {
      const auto holds = [&](std::uint32_t s) {
        return domain_of_[table_.place_of(s)] == domain_of_[party.place] && fits(used, table_.shape(s).room) &&
               fits(table_.shape(s).capacity, left_[table_.shape(s).pool]);
      };
      if (std::ranges::none_of(table_.allowed(*pod), holds)) return false;
      if (!trial_.place_on(without_hosts(*pod, trial_.cluster().era()), probe(party.place)).is_success()) return false;
    }
    party.used = std::move(used);
    party.slots = std::move(slots);
    party.pods.push_back(pod);
    if (at == parties.end()) parties.push_back(std::move(alone));
    return true;
  }

  struct Slot {
    std::int64_t room = 0;
    std::map<std::size_t, std::int64_t> takes;  ///< By kind.
  };
  placement::Trial& trial_;
  ShapeTable& table_;
  const std::vector<Amounts>& left_;
  std::string zone_;
  std::vector<NodeIndex> probes_;       ///< By place.
  std::vector<std::size_t> domain_of_;  ///< By place.
  std::map<std::size_t, std::vector<std::size_t>> places_in_;
  std::vector<PodKind> kinds_;
  std::vector<std::vector<std::size_t>> kind_places_;
  std::vector<Slot> slots_;
  PodLots out_;
};

}  // namespace

PodLots lots_of(placement::Trial& trial, ShapeTable& table, const std::vector<PodInfoPtr>& pods, const std::vector<Amounts>& left,
                const std::string& zone) {
  return Lots(trial, table, left, zone).run(pods);
}

}  // namespace berth::pools
