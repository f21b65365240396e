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

StepFunction answer_scale, decode_scale, decode_scale_apply;
StepFunction decode_binding, bind_pod;
StepFunction decode_eviction, evict;
StepFunction decode_token, check_token_request, issue_token;
StepFunction decode_connect;
/// Whoever reads the request from here on reads what admission made of it.
StepFunction connect;

}  // namespace steps
}  // namespace berth::apiserver
