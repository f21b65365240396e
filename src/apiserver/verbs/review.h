#pragma once
#include "apiserver/answers/respond.h"

namespace berth::apiserver {

/// POST of a TokenReview, one of the access reviews, or a SelfSubjectReview.
void answer_review(const Ground& ground, Responder& respond, const RequestPtr& request);

}  // namespace berth::apiserver
