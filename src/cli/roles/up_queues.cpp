#include "cli/roles/up_queues.h"

#include "cli/roles/queues_role.h"

namespace berth::cli {

struct UpQueues::Impl {
  QueuesRole role;
};

UpQueues::UpQueues(std::shared_ptr<client::Transport> transport, bool fair_sharing)
    : impl_(new Impl{QueuesRole(std::move(transport), queues::RunnerOptions{.settings = {.fair_sharing = fair_sharing}})}) {}
UpQueues::~UpQueues() = default;

client::ComponentServerOptions UpQueues::port_options() { return impl_->role.port_options(); }

}  // namespace berth::cli
