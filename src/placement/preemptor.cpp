#include "placement/preemptor.h"

#include <algorithm>
#include <map>

#include "placement/preemption_words.h"
#include "placement/preemptor_class.h"

namespace berth::placement {
namespace {

constexpr std::size_t kMaxClasses = 64, kMaxBytes = std::size_t{64} << 20;
/// Where thousands of nodes are equally good, their names are not worth sorting.
constexpr std::size_t kMostTied = 256;
using Kind = PreemptionAnswer::Kind;

/// Why evicting helps nowhere.
std::map<std::string, std::size_t> reasons_of(const PreemptorClass& one, const PreemptionTally& tally) {
  std::map<std::string, std::size_t> out;
  const auto put = [&](std::string_view reason, std::int64_t count) {
    if (count != 0) out[std::string(reason)] += static_cast<std::size_t>(count);
  };
  const auto count_of = [&](Kind kind) { return tally.kinds[static_cast<std::size_t>(kind)]; };
  put(words::kNotHelpful, count_of(Kind::kNotHelpful));
  put(words::kNoVictims, count_of(Kind::kNoVictims));
  put(words::kHardBudget, count_of(Kind::kBudget));
  for (std::size_t bit = 0; bit < PreemptorClass::kReasonCount; ++bit)
    if (tally.missing[bit] != 0) put(one.reason(bit), tally.missing[bit]);
  return out;
}

}  // namespace

struct Preemptor::Impl {
  const Cluster& cluster;
  PreemptionOptions options;
  std::unique_ptr<PreemptionIndex> index;
  std::uint64_t epoch = 0;
  std::vector<std::shared_ptr<PreemptorClass>> classes;
  std::shared_ptr<PreemptorClass> single;  ///< Of a pod that names its nodes: for one question.
  std::uint64_t uses = 0;
  bool was_fast = false;

  Impl(const Cluster& c, PreemptionOptions o) : cluster(c), options(o) {}
  Impl(const Impl& from, const Cluster& fork)
      : cluster(fork),
        options(from.options),
        index(from.index == nullptr ? nullptr : std::make_unique<PreemptionIndex>(*from.index, fork)),
        epoch(from.epoch),
        classes(from.classes),
        uses(from.uses) {}

  void sync();
  PreemptorClass* class_for(const FrameworkPtr& framework, const PodInfoPtr& pod);
  [[nodiscard]] bool waits_for_victims(const PreemptorClass& one, const PodInfo& pod) const;
  PostFilterResult fast(PreemptorClass& one, const PodInfo& pod);
};

void Preemptor::Impl::sync() {
  index->sync();
  if (epoch == index->epoch()) return;
  epoch = index->epoch();
  classes.clear();
}

PreemptorClass* Preemptor::Impl::class_for(const FrameworkPtr& framework, const PodInfoPtr& pod) {
  if (index == nullptr) index = std::make_unique<PreemptionIndex>(cluster);
  sync();
  ++uses;
  Signature signature = framework->sign_filters(*pod, &index->cluster_index());
  for (auto& one : classes) {
    if (!one->serves(framework, signature)) continue;
    PreemptorClass& mine = unshare(one);
    mine.bind(cluster, *index);
    mine.adopt(pod, signature);
    mine.last_use = uses;
    return mine.is_covered() ? &mine : nullptr;
  }
  auto made = PreemptorClass::make(framework, pod, std::move(signature), cluster, *index, options);
  if (made == nullptr) return nullptr;
  if (made->only_nodes()) {
    single = std::move(made);
    return single.get();
  }
  made->last_use = uses;
  const auto bytes = [&] {
    std::size_t out = 0;
    for (const auto& one : classes) out += one->memory_bytes();
    return out;
  };
  while (classes.size() >= kMaxClasses || (!classes.empty() && bytes() > kMaxBytes))
    classes.erase(std::ranges::min_element(classes, {}, [](const auto& one) { return one->last_use; }));
  classes.push_back(std::move(made));
  return classes.back().get();
}

/// Room is being made on the pod's nominated node already (PodEligibleToPreemptOthers).
bool Preemptor::Impl::waits_for_victims(const PreemptorClass& one, const PodInfo& pod) const {
  const NodeInfo* node = pod.view().nominated_node_name.empty() ? nullptr : cluster.find_node(pod.view().nominated_node_name);
  if (node == nullptr) return false;
  const bool is_old = one.framework().profile().era == Era::k120;
  const bool leaving = std::ranges::any_of(node->pods, [&](const auto& other) {
    return other->view().priority < pod.view().priority && other->view().meta.is_deleting &&
           (is_old || other->view().terminating_by_preemption);
  });
  return leaving && one.is_resolvable(node->index, pod.key);
}

PostFilterResult Preemptor::Impl::fast(PreemptorClass& one, const PodInfo& pod) {
  PostFilterResult out;
  const auto refuse = [&](std::string_view why) { out.status = words::refused(why, one.framework().profile()); };
  if (pod.view().preemption_never) return refuse(words::kNever), out;
  if (waits_for_victims(one, pod)) return refuse(words::kTerminating), out;

  std::optional<PreemptionAnswer> best;
  PreemptionTally tally;
  if (one.only_nodes()) {
    std::vector<PreemptionAnswer> named;
    for (const NodeIndex node : *one.only_nodes()) {
      const PreemptionAnswer& answer = named.emplace_back(one.answer(node, nullptr, pod.key));
      tally.add(answer, 1);
      if (answer.kind == Kind::kCandidate && (!best || answer.rank() < best->rank())) best = answer;
    }
    for (std::size_t i = 0; i < named.size(); ++i)
      if (best && named[i].kind == Kind::kCandidate && named[i].rank() == best->rank()) out.tied.push_back((*one.only_nodes())[i]);
    PreemptionAnswer elsewhere;
    elsewhere.kind = Kind::kNotHelpful;
    tally.add(elsewhere, static_cast<std::int64_t>(cluster.node_count() - named.size()));
  } else {
    one.catch_up();
    // The pod's own nomination stands in the way of all others of its class, but not in its own.
    PreemptorClass::Exception own;
    if (cluster.has_nominations()) own.node = cluster.nominated_node(pod.key);
    if (own.node.is_valid()) own.answer = one.answer(own.node, nullptr, pod.key);
    best = one.best(own, kMostTied, out.tied);
    if (!best) tally = one.tally(own);
  }
  if (!best) {
    out.status = words::rejected(cluster.node_count(), reasons_of(one, tally), one.framework().profile());
    return out;
  }
  std::ranges::sort(out.tied, {}, [&](NodeIndex node) -> const std::string& { return cluster.node(node)->name; });
  Candidate candidate{out.tied[0], {}, best->violations};
  (void)one.answer(out.tied[0], &candidate.victims, pod.key);
  out.candidates.push_back(std::move(candidate));
  out.best = 0;
  return out;
}

Preemptor::Preemptor(const Cluster& cluster, PreemptionOptions options) : impl_(std::make_unique<Impl>(cluster, options)) {}
Preemptor::Preemptor(Preemptor& from, const Cluster& fork) {
  if (from.impl_->index != nullptr) from.impl_->sync();
  impl_ = std::make_unique<Impl>(*from.impl_, fork);
}
Preemptor::~Preemptor() = default;
bool Preemptor::was_fast() const { return impl_->was_fast; }

std::size_t Preemptor::memory_bytes() const {
  std::size_t out = impl_->index == nullptr ? 0 : impl_->index->memory_bytes();
  for (const auto& one : impl_->classes) out += one->memory_bytes();
  return out;
}

PostFilterResult Preemptor::find(const FrameworkPtr& framework, const PodInfoPtr& pod) {
  impl_->was_fast = false;
  const auto& profile = framework->profile();
  PreemptorClass* one = profile.has(profile.post_filter, "DefaultPreemption") && !framework->has_own_post_filter()
                            ? impl_->class_for(framework, pod)
                            : nullptr;
  if (one == nullptr)
    return run_post_filter(framework, impl_->cluster, pod, evaluate(*framework, impl_->cluster, *pod, false), impl_->options);
  impl_->was_fast = true;
  return impl_->fast(*one, *pod);
}

}  // namespace berth::placement
