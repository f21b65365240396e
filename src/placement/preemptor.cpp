#include "placement/preemptor.h"

#include <algorithm>
#include <map>

#include "placement/preemption_words.h"
#include "placement/preemptor_class.h"

namespace berth::placement {
namespace {

constexpr std::size_t kMaxClasses = 64;
using Kind = PreemptionAnswer::Kind;

/// Counts why evicting helps nowhere.
class Reasons {
 public:
  explicit Reasons(const PreemptorClass& one) : one_(one) {}
  void add(const PreemptionAnswer& answer) {
    ++kinds_[static_cast<std::size_t>(answer.kind)];
    for (std::size_t bit = 0; answer.kind == Kind::kTooSmall && bit < PreemptorClass::kReasonCount; ++bit)
      missing_[bit] += answer.missing >> bit & 1;
  }
  void add_not_helpful(std::size_t count) { kinds_[static_cast<std::size_t>(Kind::kNotHelpful)] += count; }
  [[nodiscard]] std::map<std::string, std::size_t> counts() const {
    std::map<std::string, std::size_t> out;
    const auto put = [&](std::string_view reason, std::size_t count) {
      if (count != 0) out[std::string(reason)] += count;
    };
    put(words::kNotHelpful, kinds_[static_cast<std::size_t>(Kind::kNotHelpful)]);
    put(words::kNoVictims, kinds_[static_cast<std::size_t>(Kind::kNoVictims)]);
    put(words::kHardBudget, kinds_[static_cast<std::size_t>(Kind::kBudget)]);
    for (std::size_t bit = 0; bit < PreemptorClass::kReasonCount; ++bit)
      if (missing_[bit] != 0) put(one_.reason(bit), missing_[bit]);
    return out;
  }

 private:
  const PreemptorClass& one_;
  std::array<std::size_t, 5> kinds_{};
  std::array<std::size_t, PreemptorClass::kReasonCount> missing_{};
};

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
  if (classes.size() >= kMaxClasses) classes.erase(std::ranges::min_element(classes, {}, [](const auto& one) { return one->last_use; }));
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

  // The pod's own nomination stands in the way of all others of its class, but not in its own.
  const NodeIndex own = cluster.has_nominations() ? cluster.nominated_node(pod.key) : NodeIndex{};
  const PreemptionAnswer own_answer = own.is_valid() ? one.answer(own, nullptr, pod.key) : PreemptionAnswer{};
  const PreemptionAnswer* best = nullptr;
  std::vector<PreemptionAnswer> named;
  const auto consider = [&](NodeIndex node, const PreemptionAnswer& answer) {
    if (answer.kind != Kind::kCandidate) return;
    if (best != nullptr && best->rank() < answer.rank()) return;
    if (best == nullptr || answer.rank() < best->rank()) out.tied.clear();
    best = &answer;
    out.tied.push_back(node);
  };
  const auto for_each = [&](auto&& visit) {
    if (one.only_nodes()) {
      for (std::size_t i = 0; i < named.size(); ++i) visit((*one.only_nodes())[i], named[i]);
    } else {
      for (std::uint32_t i = 0; i < one.answers().size(); ++i) visit(NodeIndex{i}, i == own.value ? own_answer : one.answers()[i]);
    }
  };
  if (one.only_nodes()) {
    for (const NodeIndex node : *one.only_nodes()) named.push_back(one.answer(node, nullptr, pod.key));
  } else {
    one.catch_up();
  }
  for_each(consider);
  if (best != nullptr) {
    std::ranges::sort(out.tied, {}, [&](NodeIndex node) -> const std::string& { return cluster.node(node)->name; });
    Candidate candidate{out.tied[0], {}, best->violations};
    (void)one.answer(out.tied[0], &candidate.victims, pod.key);
    out.candidates.push_back(std::move(candidate));
    out.best = 0;
    return out;
  }
  Reasons reasons(one);
  for_each([&](NodeIndex node, const PreemptionAnswer& answer) {
    if (index->node(node.value).is_candidate) reasons.add(answer);
  });
  if (one.only_nodes()) reasons.add_not_helpful(cluster.node_count() - named.size());
  out.status = words::rejected(cluster.node_count(), reasons.counts(), one.framework().profile());
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
