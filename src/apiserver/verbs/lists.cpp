// Which steps a write takes, in which order. Every write of the API goes through here, so that nothing is ever admitted in another order.
#include <algorithm>
#include <array>

#include "apiserver/subresources/subresources.h"
#include "apiserver/verbs/verbs.h"

namespace berth::apiserver {
namespace {

using namespace steps;
using S = Stage;

template <std::size_t... Sizes>
constexpr auto joined(const std::array<Step, Sizes>&... parts) {
  std::array<Step, (Sizes + ...)> out{};
  auto at = out.begin();
  ((at = std::ranges::copy(parts, at).out), ...);
  return out;
}

constexpr std::array<Step, 1> decoded_by(StepFunction* decode) { return {Step{S::kDecode, "decode", decode}}; }

constexpr std::array kNew = {
    Step{S::kRead, "check storable", check_storable},
    Step{S::kRead, "take name", take_name},
};
constexpr std::array kNewAdmitted = {
    Step{S::kAsk, "ask", ask_of_creation},
    Step{S::kMutate, "mutate", mutate},
    Step{S::kPrepare, "hold identity", hold_new_identity},
    // Who changes an object sees it before it has an identity, who judges it sees the whole.
    Step{S::kPrepare, "give identity", give_identity},
    Step{S::kPrepare, "prepare", prepare_new},
    Step{S::kValidate, "validate", validate_new},
    Step{S::kJudge, "judge", judge},
    Step{S::kAllocate, "refuse revision", refuse_revision},
    // After everybody's leave: what is taken from the ranges is given back only when the store refuses.
    Step{S::kAllocate, "allocate", allocate_new},
    Step{S::kStore, "store", store_new},
};
/// Most creations by controllers are like one before, and done with the first step.
constexpr auto kCreateSteps = joined(std::array{Step{S::kDecode, "create alike", create_alike}}, decoded_by(decode_new), kNew,
                                     std::array{Step{S::kOwn, "own fields", own_new_fields}}, kNewAdmitted);
/// What apply found nothing to update: it is decoded, and its owners are written down, already.
constexpr auto kCreateAppliedSteps = joined(kNew, kNewAdmitted);

constexpr std::array kChange = {
    Step{S::kRead, "check storable", check_storable},
    Step{S::kRead, "read", read_current},
    Step{S::kRead, "produce", produce_next},
    Step{S::kRead, "check system fields", check_system_fields},
    Step{S::kRead, "carry system fields", carry_system_fields},
};
constexpr std::array kChangeAdmitted = {
    Step{S::kAsk, "ask", ask_of_update},
    Step{S::kMutate, "mutate", mutate},
    Step{S::kPrepare, "hold identity", hold_identity},
    Step{S::kPrepare, "guard", guard_change},
    Step{S::kPrepare, "prepare", prepare_change},
    Step{S::kValidate, "validate", validate_change},
    Step{S::kJudge, "judge", judge},
    Step{S::kAllocate, "allocate", allocate_change},
    Step{S::kStore, "store", store_if_changed},
};
constexpr std::array kChangeOwned = {Step{S::kOwn, "own fields", own_changed_fields}};
/// Most of what kubelets report is like a report before, and done with the first step.
constexpr std::array kAlike = {Step{S::kDecode, "update alike", update_alike}};
constexpr auto kReplaceSteps = joined(kAlike, decoded_by(decode_replacement), kChange, kChangeOwned, kChangeAdmitted);
constexpr auto kPatchSteps = joined(kAlike, decoded_by(decode_patch), kChange, kChangeOwned, kChangeAdmitted);
constexpr std::array kScaled = {Step{S::kDecode, "answer with a Scale", answer_scale}};
constexpr auto kScaleSteps = joined(kScaled, kAlike, decoded_by(decode_scale), kChange, kChangeOwned, kChangeAdmitted);
/// Apply writes the owners down when it produces the object.
constexpr auto kApplySteps = joined(decoded_by(decode_apply), kChange, kChangeAdmitted);
constexpr auto kScaleApplySteps = joined(kScaled, decoded_by(decode_scale_apply), kChange, kChangeAdmitted);

/// Of what is no object of the resource.
constexpr std::array kBodyAsked = {Step{S::kAsk, "ask", ask_of_body}};
constexpr std::array kAsked = {Step{S::kMutate, "mutate", mutate}, Step{S::kJudge, "judge", judge}};
constexpr auto kBindSteps = joined(decoded_by(decode_binding), kBodyAsked, kAsked, std::array{Step{S::kStore, "bind", bind_pod}});

constexpr std::array kMarkSteps = {
    Step{S::kRead, "check storable", check_storable}, Step{S::kRead, "read", read_current},
    Step{S::kRead, "produce", produce_next},          Step{S::kRead, "carry system fields", carry_system_fields},
    Step{S::kAsk, "ask nobody", ask_nobody},          Step{S::kPrepare, "guard", guard_change},
    Step{S::kStore, "store", store_if_changed},
};

// Marked as it is by then: who admits a deletion may take his time.
constexpr std::array kDeleteAdmittedSteps = {Step{S::kStore, "delete", store_deletion}};
/// Without the decoding: of collections, whose options were read once.
constexpr auto kDeleteMemberSteps =
    joined(std::array{Step{S::kRead, "find", find_victim}, Step{S::kRead, "show", show_victim}, Step{S::kAsk, "ask", ask_of_deletion}},
           kAsked, kDeleteAdmittedSteps);
constexpr auto kDeleteSteps = joined(decoded_by(decode_deletion), kDeleteMemberSteps);

constexpr auto kEvictSteps = joined(decoded_by(decode_eviction), kBodyAsked, kAsked, std::array{Step{S::kAct, "evict", evict}});
constexpr std::array kTokenSteps = {
    Step{S::kDecode, "decode", decode_token}, Step{S::kAsk, "ask", ask_of_body},
    Step{S::kMutate, "mutate", mutate},       Step{S::kValidate, "check request", check_token_request},
    Step{S::kJudge, "judge", judge},          Step{S::kAct, "issue", issue_token},
};
constexpr auto kConnectSteps = joined(decoded_by(decode_connect), std::array{Step{S::kAsk, "ask", ask_of_session}}, kAsked,
                                      std::array{Step{S::kAct, "connect", connect}});

struct ListOf {
  WriteMode mode;
  std::span<const Step> steps;
};
/// In the order of the modes.
constexpr ListOf kLists[] = {{WriteMode::kCreate, kCreateSteps},
                             {WriteMode::kCreateApplied, kCreateAppliedSteps},
                             {WriteMode::kReplace, kReplaceSteps},
                             {WriteMode::kPatch, kPatchSteps},
                             {WriteMode::kApply, kApplySteps},
                             {WriteMode::kScale, kScaleSteps},
                             {WriteMode::kScaleApply, kScaleApplySteps},
                             {WriteMode::kBind, kBindSteps},
                             {WriteMode::kMark, kMarkSteps},
                             {WriteMode::kDelete, kDeleteSteps},
                             {WriteMode::kDeleteMember, kDeleteMemberSteps},
                             {WriteMode::kDeleteAdmitted, kDeleteAdmittedSteps},
                             {WriteMode::kEvict, kEvictSteps},
                             {WriteMode::kToken, kTokenSteps},
                             {WriteMode::kConnect, kConnectSteps}};

constexpr std::span<const Step> steps_of(WriteMode mode) { return kLists[static_cast<std::size_t>(mode)].steps; }

/// The stages never go back; and unless it is said that nobody is asked, everything is told, changed and judged, in this order, before
/// anything is stored or done.
constexpr bool is_in_order(WriteMode mode) {
  const auto list = steps_of(mode);
  const auto stages = [&](Stage stage) { return std::ranges::count(list, stage, &Step::stage); };
  const bool asks_nobody = mode == WriteMode::kMark || mode == WriteMode::kDeleteAdmitted;
  if (!std::ranges::is_sorted(list, {}, &Step::stage)) return false;
  if (stages(S::kStore) + stages(S::kAct) == 0) return false;
  if (asks_nobody) return stages(S::kMutate) + stages(S::kJudge) == 0;
  return stages(S::kAsk) == 1 && stages(S::kMutate) == 1 && stages(S::kJudge) == 1;
}
constexpr bool are_in_order() {
  for (std::size_t i = 0; i < std::size(kLists); ++i)
    if (kLists[i].mode != static_cast<WriteMode>(i) || !is_in_order(kLists[i].mode)) return false;
  return std::size(kLists) == static_cast<std::size_t>(WriteMode::kConnect) + 1;
}
static_assert(are_in_order());

}  // namespace

std::span<const Step> write_steps(WriteMode mode) { return steps_of(mode); }

}  // namespace berth::apiserver
