// What the rules of some kinds see of a write beside the objects.
#pragma once
#include "apiserver/auth/interfaces.h"
#include "apiserver/cache/object_cache.h"
#include "base/clock.h"
#include "model/kinds.h"

namespace berth::apiserver {

struct RuledWrite {
  const model::KindInfo& kind;
  const std::string& subresource;
  const std::string &ns, &name;
  const UserInfo& user;
  const std::string& verb;  ///< "update" or "patch"; of no account at creation.
  // Of whom more is asked.
  ObjectCache& cache;
  Authorizer& authorizer;
  const Clock& clock;
};

}  // namespace berth::apiserver
