// GpuShare: GPUs for pods, several whole ones or a share of one, in thousandths, with the words of Alibaba's open-gpu-share. The GPU is
// chosen with the node and written to the pod's annotation. Which node and GPU is a matter of the policy: FGD is fragmentation gradient
// descent of Weng et al., "Beware of Fragmentation" (USENIX ATC '23); the others are those it is compared with there, as their simulator
// defines them (hkust-adsl/kubernetes-scheduler-simulator, pkg/simulator/plugin). CuttingStock is our own: FGD that does not spoil the
// places of other shares (cutting_stock.h).
//
//   pod    annotation alibabacloud.com/gpu-milli       thousandths of each GPU, 1 to 1000; whole ones when there is only the count
//          annotation alibabacloud.com/gpu-count       number of GPUs, 1 when there is only a share
//          annotation alibabacloud.com/gpu-card-model  the models that will do, a bar between: "V100M16|V100M32"
//          annotation alibabacloud.com/gpu-index       those it got: "0-1"; written by this plugin
//   node   allocatable alibabacloud.com/gpu-count and label alibabacloud.com/gpu-card-model
#include <berth/plugin.h>

#include <boost/unordered/unordered_flat_map.hpp>
#include <charconv>
#include <cmath>
#include <numeric>

#include "cutting_stock.h"

namespace {

using namespace berth::placement;
using berth::config::Reader;

constexpr std::string_view kName = "GpuShare";
constexpr std::string_view kMilli = "alibabacloud.com/gpu-milli", kCount = "alibabacloud.com/gpu-count",
                           kModel = "alibabacloud.com/gpu-card-model", kIndex = "alibabacloud.com/gpu-index";
constexpr std::string_view kNoGpuReason = "node(s) had no GPU", kModelReason = "node(s) had another GPU model than the pod asks for",
                           kFullReason = "Insufficient GPU";
constexpr int kWhole = 1000;
/// What the policies measure nodes by: the largest there are (the paper's cluster).
constexpr double kMostCpuMilli = 128'000, kMostGpuMilli = 8'000;

/// How much a rest's lost worth counts beside fragmentation. Anything from 2 to 4 does (examples/simulate/openb).
constexpr double kWorthWeight = 3;

constexpr std::string_view kPolicies[] = {"FGD", "BestFit", "DotProd", "GpuClustering", "GpuPacking", "Random", "CuttingStock"};
enum class Policy : std::uint8_t { kFgd, kBestFit, kDotProd, kGpuClustering, kGpuPacking, kRandom, kCuttingStock };
/// Those that go by the pods that usually come.
constexpr bool is_by_typical_pods(Policy policy) { return policy == Policy::kFgd || policy == Policy::kCuttingStock; }

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const auto end = std::min(text.find(separator), text.size());
    if (end > 0) out.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

/// What a pod asks for.
struct Ask {
  int count = 0;                    ///< 0: no GPU.
  int milli = 0;                    ///< Of each.
  std::vector<std::string> models;  ///< Empty: any.
  std::int64_t cpu_milli = 0;
  std::string problem;  ///< What is wrong with its annotations; then it asks for nothing that there is.

  [[nodiscard]] bool is_share() const { return count == 1 && milli < kWhole; }
  [[nodiscard]] int total() const { return count * milli; }
  [[nodiscard]] bool takes(std::string_view model) const { return models.empty() || std::ranges::find(models, model) != models.end(); }
};

Ask ask_of(const PodInfo& pod) {
  Ask out;
  out.cpu_milli = pod.request.nonzero_cpu_milli;
  const auto& meta = pod.view().meta;
  const auto number = [&](std::string_view key, int most, int fallback) {
    const std::string* text = meta.annotation(key);
    if (text == nullptr) return fallback;
    int value = 0;
    const auto [end, wrong] = std::from_chars(text->data(), text->data() + text->size(), value);
    if (wrong == std::errc() && end == text->data() + text->size() && value >= 0 && value <= most) return value;
    out.problem = fmt::format("annotation {}: \"{}\" is not a number from 0 to {}", key, *text, most);
    return 0;
  };
  const bool has_milli = meta.annotation(kMilli) != nullptr;
  out.count = number(kCount, 1024, has_milli ? 1 : 0);
  out.milli = number(kMilli, kWhole, out.count > 0 ? kWhole : 0);
  if (out.count == 0 || out.milli == 0) out.count = out.milli = 0;
  if (out.count > 1 && out.milli < kWhole && out.problem.empty())
    out.problem =
        fmt::format("annotation {}: shares of several GPUs are not given; ask for {} whole ones or for a share of one", kMilli, out.count);
  if (const std::string* models = meta.annotation(kModel)) out.models = split(*models, '|');
  return out;
}

struct State : Cloneable<State> {
  Ask ask;
};

/// A node's GPUs with what is left of them.
struct Gpus {
  std::vector<int> free;  ///< Thousandths, by index.
  std::string_view model;
  std::int64_t cpu_free = 0;  ///< Thousandths.
  std::uint32_t kinds = 0;    ///< Of the pods that are there: bit 0 for shares, bit n for n whole GPUs.
  std::size_t accepted = 0;   ///< Which typical pods take the model: Fragmentation's.

  [[nodiscard]] int total_free() const { return std::accumulate(free.begin(), free.end(), 0); }
  [[nodiscard]] auto whole() const { return std::ranges::count(free, kWhole); }
};

std::uint32_t kind_of(const Ask& ask) { return 1U << (ask.is_share() ? 0 : std::min(ask.count, 31)); }

/// The first GPUs that nobody has a part of; fewer when there are not so many.
std::vector<int> whole_gpus(const Gpus& gpus, int count) {
  std::vector<int> out;
  for (int i = 0; i < static_cast<int>(gpus.free.size()) && static_cast<int>(out.size()) < count; ++i)
    if (gpus.free[static_cast<std::size_t>(i)] == kWhole) out.push_back(i);
  return out;
}

/// Takes off what the pod has: those that its annotation names, or, where somebody else bound it, the first with room.
void take(const PodInfo& pod, Gpus& gpus) {
  const Ask ask = ask_of(pod);
  if (ask.count == 0) return;
  gpus.kinds |= kind_of(ask);
  std::vector<int> held;
  if (const std::string* index = pod.view().meta.annotation(kIndex))
    for (const std::string& one : split(*index, '-')) {
      std::size_t value = 0;
      const auto [end, wrong] = std::from_chars(one.data(), one.data() + one.size(), value);
      if (wrong == std::errc() && value < gpus.free.size()) held.push_back(static_cast<int>(value));
    }
  if (held.empty())
    for (int i = 0; i < static_cast<int>(gpus.free.size()); ++i)
      if (gpus.free[static_cast<std::size_t>(i)] >= ask.milli) held.push_back(i);
  if (static_cast<int>(held.size()) > ask.count) held.resize(static_cast<std::size_t>(ask.count));
  for (const int at : held) gpus.free[static_cast<std::size_t>(at)] = std::max(0, gpus.free[static_cast<std::size_t>(at)] - ask.milli);
}

Gpus gpus_of(const NodeInfo& node) {
  Gpus out;
  const auto* count = berth::model::find_resource(node.node->allocatable, kCount);
  if (count == nullptr || count->value() <= 0) return out;
  out.free.assign(static_cast<std::size_t>(std::min<std::int64_t>(count->value(), 1024)), kWhole);
  if (const std::string* model = node.label(kModel)) out.model = *model;
  out.cpu_free = node.allocatable.cpu_milli - node.requested.cpu_milli;
  for (const auto& pod : node.pods) take(*pod, out);
  return out;
}

/// A class of pods that the workload has, and its part in it.
struct TypicalPod {
  std::int64_t cpu_milli = 0;
  int milli = 0, count = 0;
  std::vector<std::string> models;
  double popularity = 0;
};

/// How much of a node's free GPUs the next pod cannot be expected to use (the paper's F_n(M)): for each typical pod, by its popularity, all
/// that is free where it does not fit on the node, and otherwise what is left of GPUs that have too little for it. Pods without GPUs use
/// none.
///
/// A pure function, remembered: what a node is like recurs. Thread-safe.
class Fragmentation {
 public:
  explicit Fragmentation(std::vector<TypicalPod> pods) : pods_(std::move(pods)) {
    for (const auto& pod : pods_) cpu_steps_.push_back(pod.cpu_milli);
    std::ranges::sort(cpu_steps_);
  }

  /// What the typical pods think of a model, as a number.
  std::size_t accepted(std::string_view model) const {
    const std::scoped_lock lock(mutex_);
    const auto [at, is_new] = models_.try_emplace(std::string(model), accepts_.size());
    if (is_new) {
      auto& accepts = accepts_.emplace_back();
      for (const auto& pod : pods_)
        accepts.push_back(pod.models.empty() || (!model.empty() && std::ranges::find(pod.models, model) != pod.models.end()));
    }
    return at->second;
  }

  /// With `milli` less on each of `taken`, and `cpu_milli` less.
  double after(const Gpus& gpus, std::int64_t cpu_milli, int milli, std::span<const int> taken) const {
    const std::int64_t cpu = gpus.cpu_free - cpu_milli;
    const auto step = static_cast<std::uint64_t>(std::ranges::upper_bound(cpu_steps_, cpu) - cpu_steps_.begin());
    if (gpus.free.size() > kRemembered) {
      auto free = gpus.free;
      for (const int at : taken) free[static_cast<std::size_t>(at)] -= milli;
      const std::scoped_lock lock(mutex_);
      return compute(accepts_[gpus.accepted], cpu, free);
    }
    std::array<int, kRemembered> left{};
    std::ranges::copy(gpus.free, left.begin());
    for (const int at : taken) left[static_cast<std::size_t>(at)] -= milli;
    const std::span free(left.data(), gpus.free.size());
    std::ranges::sort(free);
    Key key{gpus.accepted << 48 | step << 32 | free.size() << 24, 0};
    for (std::size_t i = 0; i < free.size(); ++i)
      (i < 2 ? key.first : key.second) |= static_cast<std::uint64_t>(free[i]) << (10 * (i < 2 ? i : i - 2));
    const std::scoped_lock lock(mutex_);
    const auto found = known_.find(key);
    if (found != known_.end()) return found->second;
    if (known_.size() >= kMostKnown) known_.clear();
    return known_.emplace(key, compute(accepts_[gpus.accepted], cpu, free)).first->second;
  }

 private:
  using Key = std::pair<std::uint64_t, std::uint64_t>;
  static constexpr std::size_t kRemembered = 8, kMostKnown = 1 << 20;

  /// Sums by cause, each in the order of the pods, as the paper's simulator does: its scores are rounded, so that the last bit counts.
  double compute(const std::vector<bool>& accepts, std::int64_t cpu, std::span<const int> free) const {
    enum Cause { kLacksBoth, kLacksGpu, kLacksCpu, kCpuPodFits, kCpuPodDoesNot, kOtherModel, kCauses };
    std::array<double, kCauses> sums{};
    const int total = std::accumulate(free.begin(), free.end(), 0);
    for (std::size_t i = 0; i < pods_.size(); ++i) {
      const TypicalPod& pod = pods_[i];
      const bool has_cpu = cpu >= pod.cpu_milli;
      if (pod.milli == 0 || !accepts[i]) {
        sums[pod.milli != 0 ? kOtherModel : has_cpu ? kCpuPodFits : kCpuPodDoesNot] += pod.popularity * total;
        continue;
      }
      int enough = 0, too_little = 0;
      for (const int one : free) (one >= pod.milli ? enough : too_little) += one >= pod.milli ? 1 : one;
      const bool has_gpu = enough >= std::max(pod.count, 1);
      if (has_gpu && has_cpu)
        sums[kLacksGpu] += pod.popularity * too_little;
      else
        sums[has_gpu ? kLacksCpu : has_cpu ? kLacksGpu : kLacksBoth] += pod.popularity * total;
    }
    return std::accumulate(sums.begin(), sums.end(), 0.0);
  }

  std::vector<TypicalPod> pods_;
  std::vector<std::int64_t> cpu_steps_;  ///< Sorted: between two of them CPU makes no difference.
  mutable std::mutex mutex_;             ///< For what follows.
  mutable std::map<std::string, std::size_t> models_;
  mutable std::deque<std::vector<bool>> accepts_;
  mutable boost::unordered_flat_map<Key, double> known_;
};

struct Arguments {
  Policy policy = Policy::kFgd;
  std::vector<TypicalPod> typical_pods;
  std::uint64_t seed = 0;
};

class GpuShare final : public PluginOf<GpuShare> {
 public:
  explicit GpuShare(Arguments arguments)
      : policy_(arguments.policy),
        seed_(arguments.seed),
        worth_(policy_ == Policy::kCuttingStock ? worth_of_rests(arguments.typical_pods) : std::vector<double>()),
        fragmentation_(std::move(arguments.typical_pods)) {}
  std::string_view name() const override { return kName; }
  /// Everything that is read of a pod which is to be placed, and nothing else: what it got before is no matter.
  void sign(Signer& signer, const PodInfo&) const override {
    signer.request();
    for (const auto key : {kCount, kMilli, kModel}) signer.annotation(key);
  }
  ColumnKind column_kind() const override { return ColumnKind::kNodeLocal; }

  PreFilterOutcome pre_filter(CycleState& state, const PodInfo& pod) const override {
    auto data = std::make_unique<State>();
    data->ask = ask_of(pod);
    if (!data->ask.problem.empty()) return {Status::unresolvable(data->ask.problem), {}};
    const bool asks = data->ask.count > 0;
    state.set(slot(), std::move(data));
    return asks ? PreFilterOutcome{} : PreFilterOutcome{Status::skip(), {}};
  }

  Status filter(const CycleState& state, const PodInfo& pod, const NodeInfo& node) const override {
    const Ask ask = known(state, pod);
    if (ask.count == 0) return Status::success();
    const Gpus& gpus = look(node);
    if (gpus.free.empty()) return Status::unresolvable(std::string(kNoGpuReason));
    if (!ask.takes(gpus.model)) return Status::unresolvable(std::string(kModelReason));
    const auto enough = std::ranges::count_if(gpus.free, [&](int free) { return free >= ask.milli; });
    return enough >= ask.count ? Status::success() : Status::unschedulable(std::string(kFullReason));
  }

  std::expected<std::int64_t, Status> score(const CycleState& state, const PodInfo& pod, const NodeInfo& node) const override {
    return score_by_policy(known(state, pod), look(node));
  }

  Status reserve(CycleState& state, const PodInfo& pod, const NodeInfo& node, Cluster&) const override {
    const Ask ask = known(state, pod);
    if (ask.count == 0) return Status::success();
    const std::vector<int> chosen = choose(ask, pod, look(node));
    if (static_cast<int>(chosen.size()) < ask.count) return Status::unschedulable(std::string(kFullReason));
    state.annotate(std::string(kIndex), fmt::format("{}", fmt::join(chosen, "-")), kName);
    return Status::success();
  }

  EventSet events_to_register() const override {
    using enum ClusterEvent;
    return kNewNode | EventSet{kNodeAllocatable, kNodeLabels, kAssignedPodDeleted};
  }
  /// Of pods that go, only those that had GPUs make room.
  bool queueing_hint(const Cluster&, const PodInfo&, const EventChange& change) const override {
    const PodInfo* gone = change.pod_before != nullptr ? change.pod_before : change.pod;
    return gone == nullptr || ask_of(*gone).count > 0;
  }

 private:
  /// What PreFilter found; a profile may leave that point out.
  Ask known(const CycleState& state, const PodInfo& pod) const {
    const State* data = state.get<State>(slot());
    return data != nullptr ? data->ask : ask_of(pod);
  }

  const Gpus& look(const NodeInfo& node) const {
    return node.notes.get<Gpus>(note_, [&] {
      Gpus out = gpus_of(node);
      if (is_by_typical_pods(policy_)) out.accepted = fragmentation_.accepted(out.model);
      return out;
    });
  }

  std::int64_t score_by_policy(const Ask& ask, const Gpus& gpus) const {
    switch (policy_) {
      case Policy::kFgd:
      case Policy::kCuttingStock:
        return gradient(ask, gpus).first;
      case Policy::kBestFit: {
        const double left = static_cast<double>(gpus.cpu_free - ask.cpu_milli) / kMostCpuMilli * 0.5 +
                            (gpus.total_free() - ask.total()) / kMostGpuMilli * 0.5;
        return static_cast<std::int64_t>((1.0 - left) * kMaxNodeScore);
      }
      case Policy::kDotProd: {
        const double cpu = static_cast<double>(gpus.cpu_free) / kMostCpuMilli * (static_cast<double>(ask.cpu_milli) / kMostCpuMilli);
        const double gpu = gpus.total_free() / kMostGpuMilli * (ask.total() / kMostGpuMilli);
        return static_cast<std::int64_t>(kMaxNodeScore * (1.0 - (cpu + gpu) / 2));
      }
      case Policy::kGpuClustering:
        return ask.count == 0 ? 0 : cluster_score(ask, gpus);
      case Policy::kGpuPacking:
        return ask.count == 0 ? 0 : packing_score(ask, gpus);
      case Policy::kRandom:
        break;  // All are equal: chance is the engine's among the best.
    }
    return 0;
  }

  /// Pods of one kind together: on nodes of their kind alone, then on those that have it among others, then on idle ones.
  static std::int64_t cluster_score(const Ask& ask, const Gpus& gpus) {
    const std::int64_t quarter = kMaxNodeScore / 4;
    const std::int64_t fullness =
        quarter * (static_cast<std::int64_t>(kMostGpuMilli) - gpus.total_free()) / static_cast<std::int64_t>(kMostGpuMilli);
    const std::uint32_t own = kind_of(ask);
    if ((gpus.kinds & own) != 0) return fullness + (gpus.kinds == own ? 3 : 2) * quarter;
    return gpus.kinds == 0 ? fullness + quarter : fullness;
  }

  /// GPUs in use before idle ones, those of used nodes before those of idle nodes.
  static std::int64_t packing_score(const Ask& ask, const Gpus& gpus) {
    const auto idle = static_cast<std::int64_t>(gpus.whole());
    if (idle == static_cast<std::int64_t>(gpus.free.size())) return std::max(kMaxNodeScore / 3 - idle, idle);
    auto free = gpus.free;
    std::ranges::sort(free);
    std::int64_t idle_taken = 0, percent_free = 0;
    int wanted = ask.count;
    for (const int one : free) {
      if (wanted == 0) break;
      if (one < ask.milli) continue;
      --wanted;
      idle_taken += one == kWhole;
      percent_free += one * 100 / kWhole;
    }
    if (idle_taken > 0) return std::max(kMaxNodeScore / 2 - idle_taken, kMaxNodeScore / 3);
    return std::max(kMaxNodeScore - percent_free / 10, kMaxNodeScore / 2);
  }

  static std::vector<double> worth_of_rests(const std::vector<TypicalPod>& pods) {
    std::map<int, double> shares;
    for (const auto& pod : pods)
      if (pod.count == 1 && pod.milli > 0 && pod.milli < kWhole) shares[pod.milli] += pod.popularity;
    return cutting_stock::worth_of_rests(shares);
  }
  /// What a GPU loses of its worth to the shares of others, in GPUs, by a share of so many thousandths. 0 for other policies.
  [[nodiscard]] double worth_lost(int free, int milli) const {
    if (worth_.empty()) return 0;
    const auto worth = [&](int rest) { return worth_[static_cast<std::size_t>(rest / cutting_stock::kMilliPerUnit)]; };
    return worth(free) - worth(free - milli);
  }

  /// How steeply fragmentation falls when the pod comes here (50: not at all), and on which GPUs it does.
  std::pair<std::int64_t, std::vector<int>> gradient(const Ask& ask, const Gpus& gpus) const {
    const double before = fragmentation_.after(gpus, 0, 0, {});
    const auto slope = [&](std::span<const int> taken) {
      double fall = before - fragmentation_.after(gpus, ask.cpu_milli, ask.milli, taken);
      if (ask.is_share()) fall -= kWorthWeight * kWhole * worth_lost(gpus.free[static_cast<std::size_t>(taken.front())], ask.milli);
      return static_cast<std::int64_t>(1.0 / (1.0 + std::exp(-fall / 1000)) * kMaxNodeScore);
    };
    if (!ask.is_share()) {
      auto taken = whole_gpus(gpus, ask.count);
      return {slope(taken), taken};
    }
    std::pair<std::int64_t, std::vector<int>> best{-1, {}};
    for (int i = 0; i < static_cast<int>(gpus.free.size()); ++i) {
      if (gpus.free[static_cast<std::size_t>(i)] < ask.milli) continue;
      if (const std::int64_t one = slope(std::span(&i, 1)); one > best.first) best = {one, {i}};
    }
    return best;
  }

  std::vector<int> choose(const Ask& ask, const PodInfo& pod, const Gpus& gpus) const {
    if (!ask.is_share()) return whole_gpus(gpus, ask.count);
    if (is_by_typical_pods(policy_)) return gradient(ask, gpus).second;
    std::vector<int> open;
    for (int i = 0; i < static_cast<int>(gpus.free.size()); ++i)
      if (gpus.free[static_cast<std::size_t>(i)] >= ask.milli) open.push_back(i);
    if (open.empty()) return open;
    if (policy_ == Policy::kRandom) return {open[dice(pod.view().meta.uid + pod.key) % open.size()]};
    return {*std::ranges::min_element(open, {}, [&](int at) { return gpus.free[static_cast<std::size_t>(at)]; })};  // The tightest fit.
  }

  /// The same for the same pod and seed, on any machine (FNV-1a, then mixed).
  std::uint64_t dice(std::string_view text) const {
    std::uint64_t out = 0xcbf29ce484222325ULL ^ seed_ * 0x9e3779b97f4a7c15ULL;
    for (const char c : text) out = (out ^ static_cast<std::uint8_t>(c)) * 0x100000001b3ULL;
    out ^= out >> 33;
    out *= 0xff51afd7ed558ccdULL;
    return out ^ out >> 33;
  }

  Policy policy_;
  std::uint64_t seed_;
  std::vector<double> worth_;  ///< Of a rest, by hundredths; empty for policies that do not ask.
  Fragmentation fragmentation_;
  NoteId note_;
};

std::vector<TypicalPod> read_typical_pods(const Reader& list) {
  std::vector<TypicalPod> out;
  double sum = 0;
  for (const Reader& item : list.items()) {
    if (!item.expect_object()) continue;
    item.only({"cpu", "gpuMilli", "gpuCount", "gpuModels", "popularity"});
    TypicalPod one;
    const std::string cpu = item.string("cpu", "0");
    if (const auto quantity = berth::model::Quantity::parse(cpu); quantity && quantity->sign() >= 0)
      one.cpu_milli = quantity->milli_value();
    else
      item.problem("cpu", fmt::format("Invalid value: \"{}\": not an amount of CPUs such as 4 or 500m", cpu));
    const std::int64_t count = item.integer("gpuCount", 0), milli = item.integer("gpuMilli", count > 0 ? kWhole : 0);
    if (count < 0 || count > 1024) item.problem("gpuCount", fmt::format("Invalid value: {}: not in valid range [0, 1024]", count));
    if (milli < 0 || milli > kWhole) item.problem("gpuMilli", fmt::format("Invalid value: {}: not in valid range [0, {}]", milli, kWhole));
    one.milli = static_cast<int>(std::clamp<std::int64_t>(milli, 0, kWhole));
    one.count = static_cast<int>(std::clamp<std::int64_t>(count, one.milli > 0 ? 1 : 0, 1024));
    one.models = item.strings("gpuModels");
    one.popularity = item.number("popularity", 1);
    if (!(one.popularity > 0)) item.problem("popularity", fmt::format("Invalid value: {}: must be above 0", one.popularity));
    sum += one.popularity;
    out.push_back(std::move(one));
  }
  // Parts of one stay what they are to the last bit; anything else is a proportion.
  if (std::abs(sum - 1) > 1e-6)
    for (auto& one : out) one.popularity /= sum;
  return out;
}

berth::placement::PluginPtr build(const Reader& args, const Profile&) {
  Arguments out;
  args.only({"kind", "apiVersion", "policy", "typicalPods", "seed"});
  const std::string policy = args.one_of("policy", kPolicies, "FGD");
  if (const auto at = std::ranges::find(kPolicies, policy); at != std::end(kPolicies))
    out.policy = static_cast<Policy>(at - std::begin(kPolicies));
  out.typical_pods = read_typical_pods(args.field("typicalPods"));
  if (is_by_typical_pods(out.policy) && out.typical_pods.empty())
    args.problem("typicalPods",
                 fmt::format("Required value: policy {} goes by the pods that usually come; list them, or choose another policy", policy));
  if (!is_by_typical_pods(out.policy)) args.without_effect({"typicalPods"}, "policies FGD and CuttingStock alone go by them");
  if (const std::int64_t seed = args.integer("seed", 0); seed < 0)
    args.problem("seed", fmt::format("Invalid value: {}: must be zero or positive", seed));
  else
    out.seed = static_cast<std::uint64_t>(seed);
  return std::make_unique<GpuShare>(std::move(out));
}

}  // namespace

BERTH_PLUGIN({.name = kName, .build = build})
