// What the steps of writes work with.
#pragma once
#include "apiserver/admission/plugin.h"
#include "apiserver/answers/respond.h"
#include "apiserver/definitions/custom_resources.h"
#include "apiserver/kinds/service_allocator.h"

namespace berth::apiserver {

class Patterns;
struct Step;
enum class WriteMode;

/// Every change to what is stored, and whatever admission judges like one (sessions, tokens), goes through lists of steps.
/// What its members refer to outlives it. Thread-safe.
struct WritePipeline {
  Ground& ground;
  Versions& versions;
  Responder& respond;
  CustomResources& custom;  ///< Definitions that end say so themselves.
  const WriteOptions& options;
  std::span<const Step> (*steps_of)(WriteMode);  ///< Which write takes which steps (verbs/lists.cpp).
  ServiceAllocator services;
  std::unique_ptr<AdmissionChain> admission;  ///< Set before the first write.
  std::shared_ptr<Patterns> patterns;         ///< Of writes that are like one before (alike.h).
};

}  // namespace berth::apiserver
