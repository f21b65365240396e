// pods/eviction: deletion that disruption budgets may refuse (pkg/registry/core/pod/storage/eviction.go).
#include "apiserver/request/request_body.h"
#include "apiserver/subresources/conditions.h"
#include "apiserver/subresources/subresources.h"
#include "model/conditions.h"
#include "model/views/workload_views.h"

namespace berth::apiserver {
namespace {

constexpr std::size_t kMaxDisruptedPods = 2000;
constexpr int kMaxEvictionAttempts = 100;

struct EvictionRequest {
  RequestPtr request;
  json::Value options;  ///< DeleteOptions.
  std::string pod_uid;
  std::string budget;
  bool is_of_one_state = false;  ///< The deletion holds for the pod as it was looked at, by a precondition of our own.
  int attempts = 0;
};
using EvictionPtr = std::shared_ptr<EvictionRequest>;

bool is_ready(const json::Value& pod) {
  for (const auto& condition : json::get_array(pod, {"status", "conditions"}))
    if (json::get_string(condition, {"type"}) == "Ready") return json::get_string(condition, {"status"}) == "True";
  return false;
}

model::ApiStatus budget_refusal(std::string message, int retry_after_seconds) {
  auto status = model::too_many_requests(std::string(model::kBudgetViolated), retry_after_seconds);
  status.causes.push_back({"DisruptionBudget", std::move(message), ""});
  return status;
}

model::ApiStatus still_processed(const std::string& budget) {
  return budget_refusal(fmt::format("The disruption budget {} is still being processed by the server.", budget), 10);
}

/// Takes one disruption from the budget for the pod, or says why there is none.
std::optional<model::ApiStatus> take_disruption(json::Value& budget, const std::string& pod, TimePoint now) {
  const std::string name(json::get_string(budget, {"metadata", "name"}));
  if (json::get_int(budget, {"status", "observedGeneration"}) < json::get_int(budget, {"metadata", "generation"}))
    return still_processed(name);
  const auto allowed = json::get_int(budget, {"status", "disruptionsAllowed"});
  if (allowed < 0) return model::forbidden("policy", "poddisruptionbudgets", name, "pdb disruptions allowed is negative");
  if (json::get_object(budget, {"status", "disruptedPods"}).size() > kMaxDisruptedPods)
    return model::forbidden("policy", "poddisruptionbudgets", name,
                            "DisruptedPods map too big - too many evictions not confirmed by PDB controller");
  if (allowed == 0) {
    for (const auto& condition : json::get_array(budget, {"status", "conditions"}))
      if (json::get_string(condition, {"type"}) == "DisruptionAllowed" && json::get_string(condition, {"reason"}) == "SyncFailed")
        return budget_refusal(fmt::format("The disruption budget {} does not allow evicting pods currently because it failed sync: {}",
                                          name, json::get_string(condition, {"message"})),
                              0);
    if (json::get_int(budget, {"status", "currentHealthy"}) > json::get_int(budget, {"status", "desiredHealthy"}))
      return budget_refusal(fmt::format("The disruption budget {} does not allow evicting pods currently", name), 0);
    return budget_refusal(
        fmt::format("The disruption budget {} needs {} healthy pods and has {} currently", name,
                    json::get_int(budget, {"status", "desiredHealthy"}), json::get_int(budget, {"status", "currentHealthy"})),
        0);
  }
  json::set(budget, {"status", "disruptionsAllowed"}, allowed - 1);
  if (allowed == 1) {
    const auto generation = json::get_int(budget, {"metadata", "generation"});
    model::set_condition(budget, {"DisruptionAllowed", "False", "InsufficientPods", "", generation}, now);
  }
  json::ensure_object(budget, {"status", "disruptedPods"})[pod] = format_rfc3339(now);
  return std::nullopt;
}

/// Pods that no longer keep anything up need no budget's leave.
bool ignores_budgets(const json::Value& pod) {
  const auto phase = json::get_string(pod, {"status", "phase"});
  return phase == "Succeeded" || phase == "Failed" || phase == "Pending" || json::find(pod, {"metadata", "deletionTimestamp"}) != nullptr;
}

/// Who became ready since it was looked at has a budget that has a say.
void hold_to_state(EvictionRequest& eviction, store::Revision revision) {
  if (!json::get_string(eviction.options, {"preconditions", "resourceVersion"}).empty()) return;
  json::set(eviction.options, {"preconditions", "resourceVersion"}, json::Value(std::to_string(revision)));
  eviction.is_of_one_state = true;
}

void evict_admitted(WritePipeline& writes, const EvictionPtr& eviction);

/// The pod is no more as it was looked at: where no budget was asked it is looked at again, an unready one's caller comes again.
void answer_refusal(WritePipeline& writes, const EvictionPtr& eviction, const model::ApiStatus& status) {
  if (!eviction->is_of_one_state || status.code != 409) return writes.respond.status(*eviction->request, status);
  if (!eviction->budget.empty()) return writes.respond.status(*eviction->request, still_processed(eviction->budget));
  if (++eviction->attempts >= kMaxEvictionAttempts) return writes.respond.status(*eviction->request, status);
  json::erase(eviction->options, {"preconditions", "resourceVersion"});
  eviction->is_of_one_state = false;
  writes.ground.offload([&writes, eviction] { evict_admitted(writes, eviction); });
}

void delete_pod(WritePipeline& writes, const EvictionPtr& eviction, bool guard_uid) {
  const auto& request = eviction->request;
  if (guard_uid && json::get_string(eviction->options, {"preconditions", "uid"}).empty())
    json::set(eviction->options, {"preconditions", "uid"}, json::Value(eviction->pod_uid));
  auto deletion = make_write(writes, request, WriteMode::kDeleteAdmitted);
  deletion->decoded.options = eviction->options;
  deletion->done = [&writes, eviction](model::ApiResult<WriteOutcome> outcome) {
    if (!outcome) return answer_refusal(writes, eviction, outcome.error());
    writes.respond.document(*eviction->request, 201, created_status());
  };
  run_steps(writes, std::move(deletion));
}

/// What says on the pod why it goes.
class DisruptionMark final : public Change {
 public:
  DisruptionMark(WritePipeline& writes, EvictionPtr eviction) : loop_(writes.ground.loop), eviction_(std::move(eviction)) {}

  [[nodiscard]] model::ApiResult<json::Value> made_of(const json::Value& pod) const override {
    // Who asked for another pod, or another state of it, leaves no mark on this one.
    const auto metadata = [&](std::string_view field) { return json::get_string(pod, {"metadata", field}); };
    const auto& kind = *eviction_->request->kind;
    if (auto status = refuse_deletion(kind, metadata("name"), eviction_->options, metadata("uid"), metadata("resourceVersion")))
      return std::unexpected(std::move(*status));
    auto updated = pod;
    json::erase(updated, {"metadata", "resourceVersion"});
    set_pod_condition(updated, "DisruptionTarget", "True", "EvictionByEvictionAPI", "Eviction API: evicting", loop_.now());
    return updated;
  }
  [[nodiscard]] Choice part() const override { return marked_part; }

 private:
  EventLoop& loop_;
  EvictionPtr eviction_;
};

/// Says on the pod why it goes, then deletes it.
void mark_and_delete(WritePipeline& writes, const EvictionPtr& eviction) {
  const auto& request = eviction->request;
  if (request->dry_run) return delete_pod(writes, eviction, true);
  auto operation = make_write(writes, request, WriteMode::kMark);
  operation->subresource = "status";
  operation->decoded.change = std::make_unique<DisruptionMark>(writes, eviction);
  operation->done = [&writes, eviction](model::ApiResult<WriteOutcome> outcome) {
    if (!outcome) return answer_refusal(writes, eviction, outcome.error());
    // The mark is a change of our own.
    if (outcome->object != nullptr && !json::get_string(eviction->options, {"preconditions", "resourceVersion"}).empty())
      json::set(eviction->options, {"preconditions", "resourceVersion"}, json::Value(std::to_string(outcome->object->revision)));
    writes.ground.offload([&writes, eviction] { delete_pod(writes, eviction, true); });
  };
  run_steps(writes, std::move(operation));
}

void book(WritePipeline& writes, const EvictionPtr& eviction) {
  const auto& request = eviction->request;
  const auto& kind = *model::find_resource("policy", "v1", "poddisruptionbudgets");
  const auto base = writes.ground.cache->get(object_key(kind, request->info.ns, eviction->budget));
  if (base == nullptr) return mark_and_delete(writes, eviction);
  auto budget = decode_object(*base);
  if (auto refusal = take_disruption(budget, request->info.name, writes.ground.loop.now()))
    return writes.respond.status(*request, *refusal);
  if (request->dry_run) return mark_and_delete(writes, eviction);
  put(writes.ground, kind, std::move(budget), base->revision, [&writes, eviction](const ProposeResult& result) {
    if (result) return writes.ground.offload([&writes, eviction] { mark_and_delete(writes, eviction); });
    if (is_of_storage(result.error()) || ++eviction->attempts >= kMaxEvictionAttempts)
      return writes.respond.status(
          *eviction->request,
          budget_refusal(fmt::format("couldn't update PodDisruptionBudget \"{}\" due to conflicts", eviction->budget), 10));
    writes.ground.offload([&writes, eviction] { book(writes, eviction); });
  });
}

/// Finds the budget that has a say, and goes by it.
void evict_admitted(WritePipeline& writes, const EvictionPtr& eviction) {
  const auto& request = eviction->request;
  const auto object = writes.ground.cache->get(object_key(*request->kind, request->info.ns, request->info.name));
  if (object == nullptr) return writes.respond.status(*request, model::not_found("", "pods", request->info.name));
  eviction->pod_uid = object->meta.uid;
  const auto pod = decode_object(*object);
  if (ignores_budgets(pod)) {
    if (json::get_string(pod, {"status", "phase"}) == "Pending" && json::find(pod, {"metadata", "deletionTimestamp"}) == nullptr)
      hold_to_state(*eviction, object->revision);
    return delete_pod(writes, eviction, true);
  }

  std::vector<model::PodDisruptionBudgetView> matching;
  for (const auto& document : writes.ground.mirror("policy", "poddisruptionbudgets").list(request->info.ns))
    if (auto budget = model::PodDisruptionBudgetView::parse(*document); budget.covers(request->info.ns, object->meta.labels()))
      matching.push_back(std::move(budget));
  if (matching.empty()) return mark_and_delete(writes, eviction);
  if (matching.size() > 1) {
    model::ApiStatus status;
    status.message = model::kSeveralBudgets;
    return writes.respond.status(*request, status);
  }
  const model::PodDisruptionBudgetView& budget = matching[0];
  eviction->budget = budget.meta.name;
  if (!is_ready(pod) && budget.lets_unready_go(budget.healthy, budget.desired_healthy)) {
    hold_to_state(*eviction, object->revision);
    return mark_and_delete(writes, eviction);
  }
  book(writes, eviction);
}

}  // namespace

namespace steps {

StepResult decode_eviction(WritePipeline&, const WritePtr& operation) {
  const auto& request = operation->request;
  // Both versions have the same fields, and whoever says nothing means the newer one.
  constexpr std::string_view kType = "policy.v1.Eviction";
  auto body = decode_unserved_body(*request, unserved_kind("policy", "v1", "Eviction", kType),
                                   &unserved_kind("policy", "v1beta1", "Eviction", kType));
  if (!body) return std::unexpected(std::move(body.error().status));
  if (json::get_string(*body, {"metadata", "name"}) != request->info.name)
    return std::unexpected(model::bad_request("name in URL does not match name in Eviction object"));
  operation->decoded.options = json::Object();
  if (const auto* given = json::find(*body, "deleteOptions"); given != nullptr && given->is_object()) operation->decoded.options = *given;
  if (auto wrong = check_delete_options(operation->decoded.options)) return std::unexpected(std::move(*wrong));
  if (!json::get_array(operation->decoded.options, {"dryRun"}).empty()) request->dry_run = operation->dry_run = true;
  operation->decoded.body = {"policy/v1", "Eviction"};
  operation->candidate.document = std::move(*body);
  return Flow::kNext;
}

StepResult evict(WritePipeline& writes, const WritePtr& operation) {
  auto eviction = std::make_shared<EvictionRequest>();
  eviction->request = operation->request;
  eviction->options = std::move(operation->decoded.options);
  evict_admitted(writes, eviction);
  return Flow::kWaits;
}

}  // namespace steps
}  // namespace berth::apiserver
