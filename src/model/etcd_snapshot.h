// Objects out of an etcd snapshot (`etcdctl snapshot save`, or the file member/snap/db of a stopped etcd): a bbolt database, read without
// etcd. Pure; hostile input costs no more than its size.
//
//   file: pages of one size │ page 0, 1: meta, the one with the higher transaction counts │ branch and leaf pages: B+ trees of keys
//   bucket "key": revision (8 bytes, '_', 8 bytes, 't' when deleted) -> mvccpb.KeyValue {1: key, 5: value}
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json.h"

namespace berth::model {

/// Whether the bytes begin as such a file does; says nothing about the rest.
bool is_etcd_snapshot(std::string_view bytes);

/// What was in the file besides objects.
struct EtcdSnapshotNotes {
  std::size_t objects = 0;
  std::size_t encrypted = 0;         ///< Values that the API server encrypted (`k8s:enc:`): left out.
  std::vector<std::string> unknown;  ///< apiVersion and kind of protobuf values that berth has no table for, each once: left out.
  std::size_t others = 0;            ///< Values that are no objects (addresses, port ranges, other users of the etcd).
  std::int64_t revision = 0;         ///< etcd's, the last one in the file.
};

/// The present state of every key whose value is an object, in order of keys, protobuf or JSON; metadata.resourceVersion is etcd's
/// revision. The error says where the file is cut off or damaged.
Result<EtcdSnapshotNotes> read_etcd_snapshot(std::string_view bytes, const std::function<void(json::Value)>& each);

/// The notes as sentences for people; empty when there is nothing to say.
std::vector<std::string> sentences_of(const EtcdSnapshotNotes& notes);

}  // namespace berth::model
