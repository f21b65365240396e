#include "apiserver/upkeep/upkeep.h"

#include "apiserver/representation/representation.h"

namespace berth::apiserver {

void Upkeep::guard_memory() {
  constexpr std::size_t kBehindBytes = 1024 * 1024;
  if (options_.memory_limit_bytes == 0 || flow_control_ == nullptr) return;
  MemoryGuard::Callbacks calls;
  calls.changed = [this](flow::Memory memory) {
    flow_control_->set_memory(memory);
    if (memory == flow::Memory::kShort) streams_.drop_behind(kBehindBytes);
  };
  calls.give_up = [this] {
    EventFrames::forget_shared();
    if (options_.on_memory_tight) options_.on_memory_tight();
  };
  memory_guard_ = std::make_unique<MemoryGuard>(ground_.loop, options_.memory_limit_bytes, std::move(calls));
}

Result<void> Upkeep::start() {
  if (ground_.options.advertise_port != 0 && options_.writes_endpoints) own_endpoints_ = std::make_unique<OwnEndpoints>(ground_);
  if (options_.texts_packed_after > Duration::zero() && ground_.workers != nullptr)
    text_packing_ = std::make_unique<TextPacking>(ground_, options_.texts_packed_after);
  policy_status_ = std::make_unique<PolicyStatus>(ground_, custom_);
  flow_objects_ = std::make_unique<FlowObjects>(ground_, flow_control_, !ground_.options.single_threaded || options_.keeps_flow_objects);
  return flow_objects_->start();
}

void Upkeep::stop() {
  memory_guard_.reset();
  text_packing_.reset();
  if (flow_objects_ != nullptr) flow_objects_->stop();
  if (own_endpoints_ != nullptr) own_endpoints_->stop();
}

void Upkeep::close() {
  policy_status_.reset();
  flow_objects_.reset();
  own_endpoints_.reset();
}

}  // namespace berth::apiserver
