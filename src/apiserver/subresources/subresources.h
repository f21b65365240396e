// Scale, Binding, Eviction, TokenRequest and sessions: the steps that are their own.
#pragma once
#include "apiserver/reads/reads.h"
#include "apiserver/relays/node_proxy.h"
#include "apiserver/writes/steps.h"

namespace berth::apiserver {

/// GET of a Scale.
void get_scale(Reads& reads, const RequestPtr& request);
/// exec, attach, portforward, proxy: relayed once admitted.
void begin_session(WritePipeline& writes, NodeProxy& nodes, const RequestPtr& request);

namespace steps {

StepResult decode_scale(WritePipeline& writes, const WritePtr& operation);
StepResult decode_scale_apply(WritePipeline& writes, const WritePtr& operation);

StepResult decode_binding(WritePipeline& writes, const WritePtr& operation);
StepResult bind_pod(WritePipeline& writes, const WritePtr& operation);

StepResult decode_eviction(WritePipeline& writes, const WritePtr& operation);
StepResult evict(WritePipeline& writes, const WritePtr& operation);

StepResult decode_token(WritePipeline& writes, const WritePtr& operation);
StepResult check_token_request(WritePipeline& writes, const WritePtr& operation);
StepResult issue_token(WritePipeline& writes, const WritePtr& operation);

StepResult decode_connect(WritePipeline& writes, const WritePtr& operation);
/// Whoever reads the request from here on reads what admission made of it.
StepResult connect(WritePipeline& writes, const WritePtr& operation);

}  // namespace steps
}  // namespace berth::apiserver
