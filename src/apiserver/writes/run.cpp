#include "apiserver/writes/steps.h"

namespace berth::apiserver {
namespace {

std::size_t first_of(std::span<const Step> list, const auto& is_wanted) {
  return static_cast<std::size_t>(std::ranges::find_if(list, is_wanted, &Step::stage) - list.begin());
}

}  // namespace

void run_steps(WritePipeline& writes, WritePtr operation) {
  for (auto list = writes.steps_of(operation->mode); operation->next_step < list.size(); list = writes.steps_of(operation->mode)) {
    auto flow = list[operation->next_step++].run(writes, operation);
    if (!flow) return operation->fail(std::move(flow.error()));
    if (*flow == Flow::kWaits) return;
  }
}

void enter(const WritePipeline& writes, WriteOperation& operation, WriteMode mode, Stage behind) {
  operation.mode = mode;
  operation.next_step = first_of(writes.steps_of(mode), [behind](Stage stage) { return stage > behind; });
}

void try_again(WritePipeline& writes, const WritePtr& operation, Stage from) {
  operation->next_step = first_of(writes.steps_of(operation->mode), [from](Stage stage) { return stage >= from; });
  writes.ground.offload([&writes, operation] { run_steps(writes, operation); });
}

void begin_write(WritePipeline& writes, const RequestPtr& request, WriteMode mode) { run_steps(writes, make_write(writes, request, mode)); }

}  // namespace berth::apiserver
