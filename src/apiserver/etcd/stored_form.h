// How objects stand in a store that kube-apiserver reads and writes, too: its keys, its bytes (docs/etcd.md "What is written").
//
//   /core/pods …  "//pods/default/web"          <->  /registry/pods/default/web             k8s\0 + protobuf
//                 "//services/default/web"      <->  /registry/services/specs/default/web
//                 "/machine.openshift.io/…"     <->  /registry/machine.openshift.io/…       JSON, as custom resources
#pragma once
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "apiserver/cache/object_codec.h"
#include "apiserver/encryption/store.h"

namespace berth::apiserver::etcd {

struct FormOptions {
  std::string prefix = "/registry";
  bool writes_protobuf = true;  ///< --storage-media-type; both are read, whatever is written.
  encryption::Configuration encryption;
  std::shared_ptr<encryption::StaleKeys> stale;
};

/// No two writes have the same, whoever makes them.
std::array<char, 8> next_mark();

/// Thread-safe.
class StoredForm {
 public:
  explicit StoredForm(FormOptions options);

  /// The store's key of the cache's.
  [[nodiscard]] std::string stored_key(std::string_view cache_key) const;
  /// The cache's key of the store's; nullopt: of something that is not served here, and left alone.
  [[nodiscard]] std::optional<std::string> cache_key(std::string_view stored_key) const;
  /// An object's text (of encode_object) as the store is to hold it; no two calls give the same bytes, so that a writer knows its own. With
  /// `foreign` as to_text gave it for the object that is written anew, the fields that are not known here are in it again, and `foreign` is
  /// then what is to be kept for the next time.
  [[nodiscard]] Result<Bytes> to_stored(std::string_view cache_key, std::string_view stored_key, const EncodedObject& object,
                                        Bytes* foreign = nullptr) const;
  /// The other way, from whatever version, media type and provider it was written with, defaulted as Kubernetes does on reading.
  /// kNotFound: of a version that is not known here; kCorrupt: it cannot be opened or read. `foreign` is set where protobuf has fields that
  /// are not known here: somebody newer wrote it, and they must not be lost.
  [[nodiscard]] Result<EncodedObject> to_text(std::string_view cache_key, std::string_view stored_key, std::string_view stored,
                                              Bytes* foreign = nullptr) const;
  [[nodiscard]] const FormOptions& options() const { return options_; }

 private:
  struct Place {
    std::string directory;  ///< "pods", "services/specs", "machine.openshift.io/machines"
    std::string resource;   ///< "//pods/"
    const model::KindInfo* kind = nullptr;
    bool has_protobuf = false;
  };
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  [[nodiscard]] const Place* place_of_cache_key(std::string_view key) const;

  FormOptions options_;
  std::vector<std::unique_ptr<Place>> places_;
  std::unordered_map<std::string, const Place*, Hash, std::equal_to<>> by_directory_, by_resource_;
};

}  // namespace berth::apiserver::etcd
