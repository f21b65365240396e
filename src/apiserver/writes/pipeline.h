// What the steps of writes work with.
#pragma once
#include "apiserver/admission/plugin.h"
#include "apiserver/kinds/custom_resources.h"
#include "apiserver/kinds/service_allocator.h"
#include "apiserver/subresources/node_proxy.h"
#include "apiserver/verbs/reads.h"

namespace berth::apiserver {

class CreationPatterns;
struct CreationDraft;
class UpdatePatterns;
struct UpdateDraft;

/// Every change to what is stored, and whatever admission judges like one (sessions, tokens), goes through its lists of steps (lists.cpp).
/// What its members refer to outlives it. Thread-safe.
struct WritePipeline {
  Ground& ground;
  Versions& versions;
  Responder& respond;
  Reads& reads;             ///< A collection's deletion is answered with what was there.
  NodeProxy& nodes;         ///< Where sessions go once they are admitted.
  CustomResources& custom;  ///< Definitions that end say so themselves.
  ServiceAllocator services;
  std::unique_ptr<AdmissionChain> admission;        ///< Set before the first write.
  std::shared_ptr<CreationPatterns> patterns;       ///< Of creations that are like one before (stencil.h).
  std::shared_ptr<UpdatePatterns> update_patterns;  ///< Of updates that are (alike_update.h).
};

}  // namespace berth::apiserver
