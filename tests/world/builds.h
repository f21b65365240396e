// The builds of a server that follow one another in rolling upgrades: each stores objects in its own way and reads what its neighbours
// store.
//
//        others                             secrets, written as        … and read as
//   0    JSON, some kinds in older versions  they are                   k1
//   1    protobuf                            k1 (AES-CBC)               they are
//   2    protobuf under w (AES-GCM)          k1                         k2
//   3    protobuf under w                    k2 (secretbox)             k1
//   4    JSON                                k2                         they are
//   5    JSON                                they are                   k2
//
// What a build cannot read any more has to be written anew before the build comes (5 to 0: what is under k2).
#pragma once
#include "apiserver/etcd/stored_form.h"

namespace berth::world {

constexpr std::size_t kBuilds = 6;
/// The one that a world begins with.
constexpr std::size_t kFirstBuild = 0;

/// How a build stores.
apiserver::etcd::FormOptions form_of(std::size_t build, std::shared_ptr<apiserver::encryption::StaleKeys> stale = nullptr);
/// Reads what any of them wrote.
const apiserver::etcd::StoredForm& all_forms();
/// How etcd has what a build writes, and how that build reads it: the first stores some kinds in versions that later ones only read.
Bytes as_stored_by(std::size_t build, const Bytes& value);
Bytes as_read_by(std::size_t build, const Bytes& value);
/// Whether the build can open what is stored for a secret; whether it would write it so, too.
bool opens_secret(std::size_t build, std::string_view stored);
bool writes_secret_so(std::size_t build, std::string_view stored);

}  // namespace berth::world
