// What the scheduler of this process tells of placement, below the API server's /debug/placement: to system:masters by default, as all of
// /debug is.
#pragma once
#include <functional>
#include <memory>

#include "base/mutex.h"
#include "model/api_status.h"
#include "net/http.h"

namespace berth::cli {

struct PlacementQuestion;

/// Mounted before the scheduler begins. Threading: any.
class PlacementPages final : public net::Handler {
 public:
  /// Calls `done` once, from any thread: with the answer, or why there is none. Must not block.
  using Answer = std::function<void(PlacementQuestion question, std::function<void(model::ApiResult<std::string>)> done)>;

  /// Who answers from now on; empty: nobody. When this returns, who answered before is not asked any more.
  void set(Answer answer);
  void handle(net::HttpRequest request, std::shared_ptr<net::ResponseWriter> writer) override;

 private:
  Mutex mutex_;
  Answer answer_ BERTH_GUARDED_BY(mutex_);
};

}  // namespace berth::cli
