#include "queues/flavors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "placement/node_match.h"

namespace berth::queues {
namespace {

using json::Value;

/// How well one flavor serves, finer than Mode.
enum class Fit { kNone, kNobodyToPreempt, kPreempt, kReclaim, kFits };
struct Grade {
  Fit fit = Fit::kNone;
  bool borrows = false;
};

bool is_better(const Grade& a, const Grade& b) {
  if (a.fit == Fit::kNone || b.fit == Fit::kNone) return a.fit != Fit::kNone;
  return a.fit != b.fit ? a.fit > b.fit : !a.borrows && b.borrows;
}

Mode mode_of(Fit fit) { return fit == Fit::kNone ? Mode::kNoFit : fit == Fit::kFits ? Mode::kFit : Mode::kPreempt; }

bool is_good_enough(const Grade& grade, const ClusterQueue& queue) {
  if (grade.borrows && queue.tries_next_before_borrowing) return false;
  if (grade.fit == Fit::kFits) return true;
  return (grade.fit == Fit::kPreempt || grade.fit == Fit::kReclaim) && !queue.tries_next_before_preempting;
}

/// Of a pod's rules about nodes only those count that speak of the flavors' labels. A term that says nothing of them leaves the choice
/// open.
void keep_affinity(Value& pod, const std::set<std::string>& keys) {
  Value* required = json::find(pod, {"spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"});
  if (required == nullptr) return;
  json::Array terms;
  for (const Value& term : json::get_array(*required, {"nodeSelectorTerms"})) {
    json::Array kept;
    for (const Value& expression : json::get_array(term, {"matchExpressions"}))
      if (keys.contains(std::string(json::get_string(expression, {"key"})))) kept.push_back(expression);
    if (kept.empty()) {
      json::erase(pod, {"spec", "affinity"});
      return;
    }
    terms.push_back(json::Object{{"matchExpressions", std::move(kept)}});
  }
  json::set(*required, {"nodeSelectorTerms"}, Value(std::move(terms)));
}

model::PodView pod_for_flavors(const PodSet& pod_set, const std::set<std::string>& keys) {
  Value pod = pod_set.pod_template;
  if (Value* selector = json::find(pod, {"spec", "nodeSelector"}); selector != nullptr && selector->is_object()) {
    json::Object kept;
    for (const auto& [key, value] : selector->get_object())
      if (keys.contains(std::string(key))) kept[key] = value;
    *selector = std::move(kept);
  }
  keep_affinity(pod, keys);
  json::erase(pod, {"spec", "nodeName"});
  return model::PodView::parse(pod);
}

/// Why pods cannot be on the flavor's nodes; empty where they can.
std::string mismatch(const model::PodView& pod, const Flavor& flavor) {
  constexpr std::array<std::string_view, 2> kKeepAway = {"NoExecute", "NoSchedule"};
  std::vector<model::Toleration> tolerations = pod.tolerations;
  tolerations.insert(tolerations.end(), flavor.tolerations.begin(), flavor.tolerations.end());
  if (const auto* taint = placement::find_untolerated_taint(flavor.taints, tolerations, kKeepAway); taint != nullptr)
    return fmt::format("untolerated taint {{{} {} {} <nil>}} in flavor {}", taint->key, taint->value, taint->effect, flavor.name);
  if (!pod.matches_node_selector(model::Labels(flavor.node_labels), ""))
    return fmt::format("flavor {} doesn't match node affinity", flavor.name);
  return {};
}

class Assigner {
 public:
  Assigner(Books& books, const AssignmentQuestion& question)
      : books_(books), question_(question), queue_(*question.queue), node_(books.tree().queue(queue_.name)) {}

  Assignment run() {
    const auto totals = question_.workload->totals();
    for (std::size_t i = 0; i < question_.workload->pod_sets.size(); ++i) {
      const PodSet& pod_set = question_.workload->pod_sets[i];
      PodSetChoice choice{.name = pod_set.name, .requests = totals[i], .count = question_.workload->count_of(pod_set)};
      if (queue_.group_of("pods") != nullptr) choice.requests["pods"] = choice.count;
      choose(pod_set, choice);
      const bool failed = choice.mode() == Mode::kNoFit;
      for (const auto& [resource, flavor] : choice.flavors) {
        out_.borrowing = std::max(out_.borrowing, flavor.borrowing);
        Amount& sum = out_.usage[{flavor.flavor, resource}];
        sum = plus(sum, choice.requests[resource]);
      }
      out_.pod_sets.push_back(std::move(choice));
      if (failed) break;
    }
    return std::move(out_);
  }

 private:
  void choose(const PodSet& pod_set, PodSetChoice& choice) {
    for (const auto& [resource, amount] : choice.requests) {
      if (choice.flavors.contains(resource)) continue;
      const ResourceGroup* group = queue_.group_of(resource);
      if (group == nullptr) {
        // Nothing of a resource is nothing to ask for.
        if (amount == 0) continue;
        choice.reasons = {fmt::format("resource {} unavailable in ClusterQueue", resource)};
        choice.flavors.clear();
        return;
      }
      auto found = find_flavor(pod_set, choice, *group);
      if (found.empty()) {
        choice.flavors.clear();
        return;
      }
      choice.flavors.merge(std::move(found));
    }
  }

  using Choices = std::map<std::string, FlavorChoice, std::less<>>;
  Choices find_flavor(const PodSet& pod_set, PodSetChoice& choice, const ResourceGroup& group) {
    std::set<std::string> keys;
    for (const std::string& name : group.flavors)
      if (const auto flavor = question_.flavors->find(name); flavor != question_.flavors->end())
        for (const auto& [key, value] : flavor->second.node_labels) keys.insert(key);
    const model::PodView pod = pod_for_flavors(pod_set, keys);
    Choices best;
    Grade best_grade;
    std::vector<std::string> reasons;
    for (std::size_t i = 0; i < group.flavors.size(); ++i) {
      const auto flavor = question_.flavors->find(group.flavors[i]);
      const std::string why =
          flavor == question_.flavors->end() ? fmt::format("flavor {} not found", group.flavors[i]) : mismatch(pod, flavor->second);
      if (!why.empty()) {
        reasons.push_back(why);
        continue;
      }
      Choices found;
      const Grade grade = look_at(flavor->first, choice.requests, group, found, reasons);
      if (is_better(grade, best_grade)) {
        best = std::move(found);
        best_grade = grade;
      }
      if (is_good_enough(grade, queue_) && (grade.fit == Fit::kFits || !question_.looks_at_all)) {
        out_.has_more_flavors |= i + 1 < group.flavors.size();
        break;
      }
    }
    if (best_grade.fit != Fit::kFits) std::ranges::move(reasons, std::back_inserter(choice.reasons));
    return best;
  }

  /// The worst of what the flavor is for each resource of the group.
  Grade look_at(const std::string& flavor, const Requests& requests, const ResourceGroup& group, Choices& found,
                std::vector<std::string>& reasons) {
    Grade worst{Fit::kFits, false};
    for (const std::string& resource : group.resources) {
      const auto asked = requests.find(resource);
      if (asked == requests.end()) continue;
      const FlavorResource what{flavor, resource};
      const auto before = out_.usage.find(what);
      int height = 0;
      const Fit fit = look_at(what, plus(asked->second, before == out_.usage.end() ? 0 : before->second), height, reasons);
      const Grade grade{fit, height > 0};
      if (is_better(worst, grade)) worst = grade;
      if (worst.fit == Fit::kNone) return worst;
      found[resource] = {flavor, mode_of(fit), height};
    }
    return worst;
  }

  Fit look_at(const FlavorResource& what, Amount amount, int& height, std::vector<std::string>& reasons) {
    const QuotaTree& tree = books_.tree();
    if (const Amount most = tree.potential(node_, what); amount > most) {
      reasons.push_back(fmt::format("insufficient quota for {} in flavor {}, request > maximum capacity ({} > {})", what.resource,
                                    what.flavor, amount_text(what.resource, amount), amount_text(what.resource, most)));
      return Fit::kNone;
    }
    const Amount left = tree.available(node_, what);
    const BorrowingHeight borrowing = borrowing_height(tree, node_, what, amount);
    height = borrowing.height;
    if (amount <= left) return Fit::kFits;
    reasons.push_back(fmt::format("insufficient unused quota for {} in flavor {}, {} more needed", what.resource, what.flavor,
                                  amount_text(what.resource, amount - left)));
    const bool may_while_borrowing =
        queue_.may_borrow_and_preempt || (question_.fair_sharing && queue_.reclaim != PreemptionPolicy::kNever);
    if (amount > tree.nominal(node_, what) && !borrowing.may_reclaim && !may_while_borrowing) return Fit::kNone;
    const Preemptor preemptor{.queue = &queue_, .node = node_, .priority = question_.workload->priority, .queued = question_.queued};
    const PreemptionOutlook outlook = look_for_preemption(books_, preemptor, what, amount, question_.fair_sharing);
    height = outlook.borrowing;
    switch (outlook.who) {
      case Preemptible::kReclaim:
        return Fit::kReclaim;
      case Preemptible::kWithinQueue:
        return Fit::kPreempt;
      case Preemptible::kNobody:
        return Fit::kNobodyToPreempt;
    }
    return Fit::kNone;
  }

  Books& books_;
  const AssignmentQuestion& question_;
  const ClusterQueue& queue_;
  QuotaNode node_;
  Assignment out_;
};

}  // namespace

Mode PodSetChoice::mode() const {
  if (reasons.empty()) return Mode::kFit;
  if (flavors.empty()) return Mode::kNoFit;
  Mode out = Mode::kFit;
  for (const auto& [resource, choice] : flavors) out = std::min(out, choice.mode);
  return out;
}

Mode Assignment::mode() const {
  if (pod_sets.empty()) return Mode::kNoFit;
  Mode out = Mode::kFit;
  for (const PodSetChoice& pod_set : pod_sets) out = std::min(out, pod_set.mode());
  return out;
}

std::string Assignment::message() const {
  std::string out;
  for (const PodSetChoice& pod_set : pod_sets) {
    if (pod_set.reasons.empty()) continue;
    std::vector<std::string> reasons = pod_set.reasons;
    std::ranges::sort(reasons);
    out += fmt::format("{}couldn't assign flavors to pod set {}: {}", out.empty() ? "" : "; ", pod_set.name, fmt::join(reasons, ", "));
  }
  return out;
}

std::set<FlavorResource> Assignment::short_of() const {
  std::set<FlavorResource> out;
  for (const PodSetChoice& pod_set : pod_sets)
    for (const auto& [resource, choice] : pod_set.flavors)
      if (choice.mode == Mode::kPreempt) out.insert({choice.flavor, resource});
  return out;
}

Assignment assign_flavors(Books& books, const AssignmentQuestion& question) { return Assigner(books, question).run(); }

}  // namespace berth::queues
