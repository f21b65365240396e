// What can be said of etcd's certificates before and after a connection failed: gRPC itself only says that it did.
#pragma once
#include <string>

#include "store/shared.h"

namespace berth::store::etcd {

/// Why a TLS connection to HOST:PORT does not come about, for people; empty when it does.
std::string explain_tls(const std::string& host_port, const EtcdOptions& options);

}  // namespace berth::store::etcd
