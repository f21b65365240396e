// What must be there before anybody asks: namespaces, PriorityClasses, the kubernetes Service (controlplane's bootstrap controllers).
#pragma once
#include "apiserver/ground/ground.h"
#include "apiserver/kinds/service_allocator.h"

namespace berth::apiserver {

/// Namespaces and PriorityClasses. Writes what is missing and waits until it is stored.
Result<void> make_system_objects(Ground& ground);

/// The range of addresses, who has which of them already, and the Service `kubernetes`, likewise. `services` is told where ranges and
/// promised addresses are written.
Result<void> make_own_service(Ground& ground, ServiceAllocator& services);

}  // namespace berth::apiserver
