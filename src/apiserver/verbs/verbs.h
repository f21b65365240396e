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
StepResult decode_new(WritePipeline& writes, const WritePtr& operation);
StepResult decode_replacement(WritePipeline& writes, const WritePtr& operation);

// patch.cpp
StepResult decode_patch(WritePipeline& writes, const WritePtr& operation);
StepResult decode_apply(WritePipeline& writes, const WritePtr& operation);

// delete.cpp
StepResult decode_deletion(WritePipeline& writes, const WritePtr& operation);
StepResult find_victim(WritePipeline& writes, const WritePtr& operation);
/// Who is asked of it sees it in the request's version.
StepResult show_victim(WritePipeline& writes, const WritePtr& operation);
StepResult store_deletion(WritePipeline& writes, const WritePtr& operation);

}  // namespace steps
}  // namespace berth::apiserver
