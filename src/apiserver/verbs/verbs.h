// POST, PUT, PATCH and DELETE: the steps that are a verb's own, and which write takes which steps.
#pragma once
#include "apiserver/reads/reads.h"
#include "apiserver/writes/steps.h"

namespace berth::apiserver {

/// What WritePipeline::steps_of is: lists.cpp.
std::span<const Step> write_steps(WriteMode mode);

/// DELETE of a collection: a few at a time, the first error ends it; answered with what was there.
void remove_collection(WritePipeline& writes, Reads& reads, const RequestPtr& request);

namespace steps {

// create_update.cpp
StepFunction decode_new, decode_replacement;

// patch.cpp
StepFunction decode_patch, decode_apply;

// delete.cpp
StepFunction decode_deletion, find_victim, store_deletion;
/// Who is asked of it sees it in the request's version.
StepFunction show_victim;

}  // namespace steps
}  // namespace berth::apiserver
