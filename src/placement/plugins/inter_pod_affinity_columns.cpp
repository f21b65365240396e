// InterPodAffinity's columnar form (columns/topology_part.h). Slots: a domain for each key of required affinity (or whether somebody is
// there, where domains are single nodes); one for each shared key of anti-affinity, the pod's own and that of pods that are there; and of
// the score one for each shared key, then the sum over keys of single nodes.
#include <algorithm>

#include "placement/columns/domain_sum.h"
#include "placement/columns/topology_part.h"
#include "placement/plugins/inter_pod_affinity.h"
#include "placement/removable_load.h"

namespace berth::placement {
namespace {

constexpr TopologyPart::Verdict kNoCompany = 1, kOwnAnti = 2, kExistingAnti = 3;

bool is_well_formed(const model::PodView& pod) {
  const auto good_term = [](const model::PodAffinityTerm& term) { return term.selector_error.empty(); };
  const auto good_weighted = [&](const model::WeightedPodAffinityTerm& weighted) { return good_term(weighted.term); };
  return std::ranges::all_of(pod.required_affinity, good_term) && std::ranges::all_of(pod.required_anti_affinity, good_term) &&
         std::ranges::all_of(pod.preferred_affinity, good_weighted) && std::ranges::all_of(pod.preferred_anti_affinity, good_weighted);
}

class AffinityPart final : public TopologyPart {
 public:
  AffinityPart(const TopologySetup& setup, const InterPodAffinityArgs& args, Era era)
      : index_(&setup.index),
        era_(era),
        weight_(setup.weight),
        hard_weight_(std::max<std::int64_t>(args.hard_pod_affinity_weight, 0)),
        filters_(setup.filters),
        scores_(setup.weight != 0) {
    const Cluster& cluster = index_->cluster();
    const PodInfo& pod = setup.pod;
    if (filters_) {
      const auto affinity = resolve_namespaces(pod.required_affinity, cluster);
      const auto anti = resolve_namespaces(pod.required_anti_affinity, cluster);
      self_matches_ = matches_all_terms(pod.view(), cluster.namespace_labels(pod.view().ns()), affinity);
      // Only pods that match all affinity terms count, for each of the keys.
      if (!affinity.empty()) {
        const CountId all = index_->matcher(affinity, false);
        for (const auto& term : affinity) add_source(affinity_, term.topology_key, {all, 1});
      }
      for (const auto& term : anti) add_source(anti_, term.topology_key, {index_->matcher({term}, false), 1});
    }
    const bool has_preferences = !pod.preferred_affinity.empty() || !pod.preferred_anti_affinity.empty();
    if (era_ != Era::k120 && args.ignore_preferred_terms_of_existing_pods && !has_preferences) scores_ = false;
    if (!scores_) return;
    for (const auto& term : resolve_namespaces(pod.preferred_affinity, cluster))
      add_source(score_sums_, term.topology_key, {index_->matcher({term}, false), term.weight});
    for (const auto& term : resolve_namespaces(pod.preferred_anti_affinity, cluster))
      add_source(score_sums_, term.topology_key, {index_->matcher({term}, false), -term.weight});
  }
  [[nodiscard]] std::unique_ptr<TopologyPart> clone() const override { return std::make_unique<AffinityPart>(*this); }

  void bind(ClusterIndex& index) override {
    index_ = &index;
    for (auto* sums : all_sums())
      for (auto& sum : *sums) sum.bind(index);
  }
  [[nodiscard]] std::vector<Rejection> rejections() const override {
    return {{affinity_rejection(Code::kUnschedulableAndUnresolvable, kReasonAffinityRules, era_), 0},
            {affinity_rejection(Code::kUnschedulable, kReasonAntiAffinityRules, era_), 1},
            {affinity_rejection(Code::kUnschedulable, kReasonExistingAntiAffinity, era_), 2}};
  }
  bool adopt_terms(std::span<const std::uint32_t> terms) override {
    bool has_new_key = false;
    for (const auto id : terms) {
      const HeldTerm& held = index_->held_term(id);
      const CountId counts = ClusterIndex::held_counts(id);
      const bool rejects = filters_ && held.kind == HeldTerm::Kind::kRequiredAntiAffinity;
      const std::int64_t weight = held.kind == HeldTerm::Kind::kPreferred          ? held.term.weight
                                  : held.kind == HeldTerm::Kind::kRequiredAffinity ? hard_weight_
                                                                                   : 0;
      if (rejects) has_new_key |= add_source(existing_anti_, held.term.topology_key, {counts, 1});
      if (scores_ && weight != 0) has_new_key |= add_source(score_sums_, held.term.topology_key, {counts, weight});
    }
    return has_new_key;
  }
  [[nodiscard]] bool is_stale() const override {
    return std::ranges::any_of(all_sums(), [](const auto* sums) { return std::ranges::any_of(*sums, &DomainSum::is_stale); });
  }
  [[nodiscard]] bool is_empty() const override {
    return std::ranges::all_of(all_sums(), [](const auto* sums) { return sums->empty(); });
  }

  void reset() override {
    for (auto* sums : all_sums())
      for (auto& sum : *sums) sum.reset();
  }
  [[nodiscard]] std::size_t slot_count() const override {
    return affinity_.size() + shared(anti_) + shared(existing_anti_) + (score_sums_.empty() ? 0 : shared(score_sums_) + 1);
  }
  void place(const PodInfo&, const NodeInfo& info, bool, std::vector<std::int64_t>& key) override {
    const std::uint32_t node = info.index.value;
    update(node);
    for (const auto& sum : affinity_) {
      const std::int32_t value = sum.value_of(node);
      key.push_back(!sum.is_local() || value < 0 ? value : sum.amount_of(node) > 0 ? 1 : 0);
    }
    for (const auto* sums : {&anti_, &existing_anti_})
      for (const auto& sum : *sums)
        if (!sum.is_local()) key.push_back(sum.value_of(node));
    if (score_sums_.empty()) return;
    std::int64_t on_node = 0;
    for (const auto& sum : score_sums_) {
      if (!sum.is_local()) {
        key.push_back(sum.value_of(node));
      } else if (sum.value_of(node) >= 0) {
        on_node += sum.amount_of(node);
      }
    }
    key.push_back(on_node);
  }
  [[nodiscard]] bool describe_alike(Alike& nodes) const override {
    for (const auto* sums : all_sums())
      for (const auto& sum : *sums) {
        sum.mark_counted(nodes.is_counted);
        if (!sum.is_local())
          nodes.by_value.insert(sum.topology());
        else if (sums == &affinity_)
          nodes.by_presence.insert(sum.topology());
      }
    return true;
  }
  void remove(std::uint32_t node) override { update(node); }
  [[nodiscard]] Verdict reject_node(std::uint32_t node) const override {
    const auto anyone_here = [&](const DomainSum& sum) { return sum.is_local() && sum.value_of(node) >= 0 && sum.amount_of(node) > 0; };
    if (std::ranges::any_of(anti_, anyone_here)) return kOwnAnti;
    return std::ranges::any_of(existing_anti_, anyone_here) ? kExistingAnti : kNone;
  }

  [[nodiscard]] Verdict gate(const std::int64_t* slots) const override {
    bool has_keys = true;
    bool all_there = true;
    std::int64_t matching = 0;
    for (const auto& sum : affinity_) {
      const std::int64_t part = *slots++;
      has_keys &= part >= 0;
      all_there &= part >= 0 && (sum.is_local() ? part > 0 : sum.sum(part) > 0);
      matching += sum.total();
    }
    // The first of a group whose members want each other may go anywhere that has the keys.
    if (!has_keys || (!all_there && (matching != 0 || !self_matches_))) return kNoCompany;
    bool is_kept_off = false;
    for (const auto* sums : {&anti_, &existing_anti_}) {
      for (const auto& sum : *sums) {
        if (sum.is_local()) continue;
        const std::int64_t part = *slots++;
        is_kept_off |= part >= 0 && sum.sum(part) > 0;
      }
      if (is_kept_off) return sums == &anti_ ? kOwnAnti : kExistingAnti;
    }
    return kNone;
  }
  void score(std::span<TopologyCandidate> candidates, std::size_t first) override {
    if (score_sums_.empty()) return;
    const std::size_t at = first + slot_count() - shared(score_sums_) - 1;
    std::int64_t min = era_ == Era::k120 ? 0 : INT64_MAX;
    std::int64_t max = era_ == Era::k120 ? 0 : INT64_MIN;
    raw_.clear();
    for (const auto& candidate : candidates) {
      raw_.push_back(raw_score(candidate.key + at));
      min = std::min(min, raw_.back());
      max = std::max(max, raw_.back());
    }
    for (std::size_t i = 0; i < candidates.size(); ++i) candidates[i].bonus += weight_ * affinity_normalized(raw_[i], min, max);
  }
  [[nodiscard]] std::size_t memory_bytes() const override {
    std::size_t out = sizeof(AffinityPart);
    for (const auto* sums : all_sums())
      for (const auto& sum : *sums) out += sum.memory_bytes();
    return out;
  }
  [[nodiscard]] bool is_swayed_by(const PodInfo& nominated, const PodInfo& pod) const override {
    if (!filters_) return false;
    const Cluster& cluster = index_->cluster();
    const auto& labels = cluster.namespace_labels(nominated.view().ns());
    const auto& own_labels = cluster.namespace_labels(pod.view().ns());
    const auto matches_other = [&](const AffinityTerm& term) { return term.matches(nominated.view(), labels); };
    return std::ranges::any_of(pod.required_affinity, matches_other) || std::ranges::any_of(pod.required_anti_affinity, matches_other) ||
           std::ranges::any_of(nominated.required_anti_affinity,
                               [&](const AffinityTerm& term) { return term.matches(pod.view(), own_labels); });
  }

 private:
  friend class AffinityLoad;
  using Sums = std::vector<DomainSum>;
  [[nodiscard]] std::array<Sums*, 4> all_sums() { return {&affinity_, &anti_, &existing_anti_, &score_sums_}; }
  [[nodiscard]] std::array<const Sums*, 4> all_sums() const { return {&affinity_, &anti_, &existing_anti_, &score_sums_}; }
  static std::size_t shared(const Sums& sums) {
    return static_cast<std::size_t>(std::ranges::count_if(sums, [](const auto& sum) { return !sum.is_local(); }));
  }
  /// True when the key is new among the sums.
  bool add_source(Sums& sums, const std::string& topology_key, DomainSum::Source source) {
    const std::size_t topology = index_->topology(topology_key);
    const auto known = std::ranges::find(sums, topology, &DomainSum::topology);
    if (known != sums.end()) {
      known->add_source(source);
      return false;
    }
    sums.emplace_back(*index_, topology).add_source(source);
    return true;
  }
  void update(std::uint32_t node) {
    for (auto* sums : all_sums())
      for (auto& sum : *sums) sum.update(node, true, false);
  }
  [[nodiscard]] std::int64_t raw_score(const std::int64_t* slots) const {
    std::int64_t out = 0;
    for (const auto& sum : score_sums_) {
      if (sum.is_local()) continue;
      const std::int64_t part = *slots++;
      if (part >= 0) out += sum.sum(part);
    }
    return out + *slots;
  }

  ClusterIndex* index_;  ///< As of the last bind().
  Era era_;
  std::int64_t weight_, hard_weight_;
  bool filters_, scores_;
  bool self_matches_ = false;  ///< The pod matches all of its own affinity terms.
  Sums affinity_, anti_, existing_anti_, score_sums_;
  std::vector<std::int64_t> raw_;  ///< Working space.
};

/// The same sums as conditions: company in each domain that it is wanted in, then nobody whom the pod minds, then nobody who minds it.
class AffinityLoad final : public RemovableLoad {
 public:
  AffinityLoad(const TopologySetup& setup, const InterPodAffinityArgs& args, Era era)
      : part_({by_domains(setup), setup.index, setup.default_selector, true, 0}, args, era),
        affinity_(resolve_namespaces(setup.pod.required_affinity, setup.index.cluster())),
        anti_(resolve_namespaces(setup.pod.required_anti_affinity, setup.index.cluster())) {
    for (const AffinityTerm& term : anti_)
      if (is_local(setup, term) && std::ranges::find(own_keys_, term.topology_key) == own_keys_.end())
        own_keys_.push_back(term.topology_key);
  }
  [[nodiscard]] std::unique_ptr<RemovableLoad> clone() const override { return std::make_unique<AffinityLoad>(*this); }
  void bind(ClusterIndex& index) override { part_.bind(index); }
  [[nodiscard]] std::vector<Condition> conditions() const override {
    std::vector<Condition> out;
    if (!affinity_.empty()) out.push_back({.is_of_domain = true});
    for (const DomainSum& sum : part_.anti_) out.push_back({.is_of_domain = !sum.is_local()});
    out.resize(out.size() + own_keys_.size(), Condition{.is_summed = true});
    for (const DomainSum& sum : part_.existing_anti_) out.push_back({.is_of_domain = !sum.is_local()});
    return out;
  }
  [[nodiscard]] std::vector<Status> words() const override {
    std::vector<Status> out;
    for (auto& [status, step] : part_.rejections()) out.push_back(std::move(status));
    return out;
  }
  [[nodiscard]] std::uint8_t reads() const override { return has_terms() ? kAnything : kRequiredAntiAffinity; }
  void load_of(const PodInfo& other, std::span<std::int64_t> out) const override {
    std::size_t at = 0;
    if (has_terms()) {
      const model::Labels& labels = part_.index_->cluster().namespace_labels(other.view().ns());
      if (!affinity_.empty()) out[at++] = matches_all_terms(other.view(), labels, affinity_) ? 1 : 0;
      const auto minded = [&](const std::string& key) {
        return std::ranges::count_if(
            anti_, [&](const AffinityTerm& term) { return key == term.topology_key && term.matches(other.view(), labels); });
      };
      for (const DomainSum& sum : part_.anti_) out[at++] = minded(sum.column().key);
      for (const std::string& key : own_keys_) out[at++] = minded(key);
    }
    for (const DomainSum& sum : part_.existing_anti_)
      out[at++] = std::ranges::count_if(other.required_anti_affinity,
                                        [&](const AffinityTerm& term) { return sum.column().key == term.topology_key && is_known(term); });
  }
  void limits(const NodeInfo& node, std::span<LoadLimit> out) const override {
    if (phase() != 0) return (void)std::ranges::fill(out, LoadLimit::always());
    std::size_t at = 0;
    if (!affinity_.empty()) out[at++] = company(node.index.value);
    const auto apart = [&](const DomainSum& sum, std::uint8_t said) {
      const std::int32_t value = sum.value_of(node.index.value);
      return value < 0 ? LoadLimit::always() : LoadLimit{.there = sum.sum(value), .most = 0, .said = said};
    };
    for (const DomainSum& sum : part_.anti_) out[at++] = apart(sum, kOwnAnti - 1);
    for (const std::string& key : own_keys_)
      out[at++] = node.label(key) == nullptr ? LoadLimit::always() : LoadLimit{.most = 0, .said = kOwnAnti - 1};
    for (const DomainSum& sum : part_.existing_anti_) out[at++] = apart(sum, kExistingAnti - 1);
  }
  void reset() override { part_.reset(); }
  void update(std::uint32_t node, const NodeInfo*) override { part_.update(node); }
  bool adopt_terms(std::span<const std::uint32_t> terms) override {
    for (const auto id : terms)
      if (part_.index_->rejects(id)) known_.push_back(part_.index_->held_term(id).term);
    return part_.adopt_terms(terms);
  }
  /// PreFilter skips the plugin where no pod that is there minds; then nominated pods that do mind are not counted either.
  [[nodiscard]] std::uint32_t phase() const override {
    const auto has_any = [](const DomainSum& sum) { return sum.total() > 0; };
    return part_.era_ != Era::k120 && !has_terms() && std::ranges::none_of(part_.existing_anti_, has_any) ? 1 : 0;
  }
  [[nodiscard]] bool is_outdated() const override {
    return part_.is_stale() || std::ranges::any_of(own_keys_, [&](const std::string& key) {
             return !part_.index_->topology_column(part_.index_->topology(key)).is_local();
           });
  }
  /// Its term is nobody's who is there: whom it matches is not in the signature.
  [[nodiscard]] bool is_blind_to(const PodInfo& nominated, const PodInfo& pod) const override {
    const model::Labels& labels = part_.index_->cluster().namespace_labels(pod.view().ns());
    return std::ranges::any_of(nominated.required_anti_affinity,
                               [&](const AffinityTerm& term) { return term.matches(pod.view(), labels) && !is_known(term); });
  }
  [[nodiscard]] std::size_t memory_bytes() const override {
    return part_.memory_bytes() + heap_bytes(affinity_) + heap_bytes(anti_) + heap_bytes(known_);
  }

 private:
  static bool is_local(const TopologySetup& setup, const AffinityTerm& term) {
    return setup.index.topology_column(setup.index.topology(term.topology_key)).is_local();
  }
  /// Whom the pod minds on its own node is counted there: no sums are kept, which would begin with counting all pods.
  static PodInfo by_domains(const TopologySetup& setup) {
    PodInfo out = setup.pod;
    out.required_anti_affinity.erase_if([&](const AffinityTerm& term) { return is_local(setup, term); });
    return out;
  }
  [[nodiscard]] bool has_terms() const { return !affinity_.empty() || !anti_.empty(); }
  [[nodiscard]] bool is_known(const AffinityTerm& term) const { return std::ranges::find(known_, term) != known_.end(); }
  /// Somebody in each domain; or nobody anywhere, where the pod would be company for itself.
  [[nodiscard]] LoadLimit company(std::uint32_t node) const {
    LoadLimit out{.there = INT64_MAX, .most = INT64_MIN, .least = 1, .said = kNoCompany - 1, .is_hopeless = true};
    std::int64_t anywhere = 0;
    for (const DomainSum& sum : part_.affinity_) {
      const std::int32_t value = sum.value_of(node);
      if (value < 0) return LoadLimit::never(out.said, out.is_hopeless);
      const std::int64_t terms = count_terms(sum);
      out.there = std::min(out.there, sum.sum(value) / terms);
      anywhere = std::max(anywhere, sum.total() / terms);
    }
    if (part_.self_matches_) out.most = out.there - anywhere;
    return out;
  }
  /// Pods count once for each term of the key.
  [[nodiscard]] std::int64_t count_terms(const DomainSum& sum) const {
    return std::ranges::count(affinity_, sum.column().key, &AffinityTerm::topology_key);
  }

  AffinityPart part_;
  std::vector<AffinityTerm> affinity_, anti_, known_;  ///< The pod's, and those of pods that are there that match it.
  std::vector<std::string> own_keys_;                  ///< Of anti_, those whose every domain is one node.
};

}  // namespace

std::unique_ptr<RemovableLoad> make_affinity_load(const TopologySetup& setup, const InterPodAffinityArgs& args, Era era) {
  if (!is_well_formed(setup.pod.view())) return nullptr;
  setup.index.note_namespace_selectors(setup.pod);
  return std::make_unique<AffinityLoad>(setup, args, era);
}

TopologyOutcome make_affinity_part(const TopologySetup& setup, const InterPodAffinityArgs& args, Era era) {
  // What cannot be parsed is reported by the plain form.
  if (!is_well_formed(setup.pod.view())) return {.plain_only = true};
  setup.index.note_namespace_selectors(setup.pod);
  return {.part = std::make_unique<AffinityPart>(setup, args, era)};
}

}  // namespace berth::placement
