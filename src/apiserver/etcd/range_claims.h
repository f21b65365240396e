// Cluster IPs and node ports as all API servers on one etcd give them away, by Kubernetes' own records:
//
//   /registry/ranges/serviceips         a bitmap of addresses (kube-apiserver to 1.33), compared and swapped
//   /registry/ipaddresses/10.96.0.17    an IPAddress a Service (from 1.33): whoever creates it has the address
//   /registry/ranges/servicenodeports   a bitmap of ports (all versions)
//
// An address counts as taken when either says so, and is entered in both.
#pragma once
#include <memory>
#include <string>

#include "apiserver/kinds/service_claims.h"
#include "store/shared.h"

namespace berth::apiserver::etcd {

struct RangeOptions {
  std::string prefix;        ///< Of all keys.
  std::string service_cidr;  ///< "10.96.0.0/12"
  int first_port = 30000, last_port = 32767;
};

/// Finds the records, or makes them. kInvalid: other servers on this etcd give addresses or ports of another range.
Result<std::unique_ptr<ServiceClaims>> open_range_claims(std::shared_ptr<store::SharedStore> store, const RangeOptions& options);

}  // namespace berth::apiserver::etcd
