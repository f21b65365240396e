// The steps of writes. Each does one thing to the operation; which write takes which, in which order, is data: verbs/lists.cpp.
#pragma once
#include "apiserver/rules/kind_rules.h"
#include "apiserver/writes/alike.h"
#include "apiserver/writes/write.h"

namespace berth::apiserver {

enum class Flow {
  kNext,   ///< The next step may run.
  kWaits,  ///< The step runs on elsewhere: it calls run_steps (or done) itself, at once or later.
};
/// The error ends the write with that answer.
using StepResult = model::ApiResult<Flow>;
using StepFunction = StepResult(WritePipeline& writes, const WritePtr& operation);

/// Where a step stands among the others. In this order, whatever the write: what is admitted is what came, what is judged is what will be
/// stored, and nobody is asked after that.
enum class Stage {
  kDecode,    ///< The body becomes a document, defaulted.
  kRead,      ///< What is there, and what becomes of it.
  kOwn,       ///< Who owns which field.
  kAsk,       ///< What admission is told.
  kMutate,    ///< Plugins and webhooks change the object.
  kPrepare,   ///< Identity, defaults of what they added, the strategy of the kind.
  kValidate,  ///< Everything that is wrong with the result.
  kJudge,     ///< Plugins, policies and webhooks judge the result; the last of them is quota.
  kAllocate,  ///< Addresses and ports.
  kStore,     ///< The cache's writer.
  kAct,       ///< What is done instead of storing: a token issued, a session relayed, an eviction carried out.
};

struct Step {
  Stage stage;
  std::string_view name;
  StepFunction* run;
};

/// Goes on in another list, behind the stage: an update becomes a creation, or the other way round.
void enter(const WritePipeline& writes, WriteOperation& operation, WriteMode mode, Stage behind);
/// Tries again from the first step of the stage, on another thread where there is one.
void try_again(WritePipeline& writes, const WritePtr& operation, Stage from);

namespace steps {

// admit.cpp
StepFunction ask_of_creation, ask_of_update, ask_of_deletion;
StepFunction ask_of_session, mutate, judge;
/// Of the body itself, which is no object of the resource.
StepFunction ask_of_body;
/// Nobody is asked: what was asked of is another object, or another request's.
StepFunction ask_nobody;

// alike_create.cpp, alike_update.cpp
/// The whole of a write, where it is like one before.
StepFunction create_alike, update_alike;

// create.cpp
StepFunction check_storable, take_name, own_new_fields, give_identity, prepare_new, validate_new, refuse_revision, allocate_new, store_new;
/// Who changed the object has not made another of it: no other kind, namespace, or place in time.
StepFunction hold_new_identity;

// update.cpp
StepFunction read_current, produce_next, check_system_fields, carry_system_fields, own_changed_fields;
StepFunction guard_change, prepare_change, validate_change, allocate_change;
/// As hold_new_identity, of what has a name, a uid and a revision already.
StepFunction hold_identity;
/// Nothing is stored where nothing changed.
StepFunction store_if_changed;

}  // namespace steps

/// The first span of a pod's way: from its request's arrival until it is stored. Scheduler and node go on in the same trace. Of other
/// kinds, and where nobody traces, nothing.
void tell_way(const WritePipeline& writes, const WriteOperation& operation, std::string_view uid);

/// Of a write against others on the same object; every failed one let another succeed.
constexpr int kMostAttempts = 500;

/// The pattern that the write follows. Null: it goes the long way, and leaves one there if it is the second of its kind. `base`: what it is
/// an update of.
PatternPtr follow(const WritePipeline& writes, WriteOperation& operation, CutWrite& cut, const ObjectPtr& base);
/// Notes what admission is going to look at, where the write may leave a pattern; then whether all is as it was.
void begin_draft(const WritePipeline& writes, WriteOperation& operation);
void settle_draft(const WritePipeline& writes, WriteOperation& operation);
/// Leaves what became of it to the next one like it, where that can be told.
void leave_pattern(WritePipeline& writes, const WriteOperation& operation, const Proposal& proposal);
void leave_update_pattern(WritePipeline& writes, WriteOperation& operation, const Proposal& proposal);

/// What a write of a status has to do with: all but the spec and the field owners.
Take status_part(std::string_view parent, std::string_view key);
/// As the rules of its kind see it.
RuledWrite ruled(const Ground& ground, const WriteOperation& operation);
/// Everything that is wrong with what would be stored; `old` is null at creation. What a kind's rules complete is completed in `object`.
model::FieldErrors complete_and_validate(const Ground& ground, const WriteOperation& operation, const json::Value* old,
                                         json::Value& object);
/// Why the object as admission left it is not the one that the write is about: another kind or another namespace.
std::optional<model::ApiStatus> refuse_exchanged(const WriteOperation& operation, json::Value& object);
/// The rule of the kind that says who may write it.
std::optional<model::ApiStatus> refuse_writer(const Ground& ground, const WriteOperation& operation, const json::Value* old,
                                              const json::Value& object);
/// Warnings about the object, each sentence once, however often the write is tried.
void warn(WriteOperation& operation, const json::Value* old_object, const json::Value& object);
/// What stands in metadata.generateName, and a random suffix.
std::string generated_name(Ground& ground, std::string_view base);
bool takes_addresses(const model::KindInfo& kind);

}  // namespace berth::apiserver
