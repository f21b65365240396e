// apiserver.config.k8s.io/v1 EncryptionConfiguration: which resources are stored how (staging/src/k8s.io/apiserver/pkg/server/options/
// encryptionconfig).
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/encryption/kms.h"
#include "apiserver/encryption/transform.h"
#include "base/error.h"

namespace berth::apiserver::encryption {

/// One entry of `resources`: the first provider writes, all of them read.
struct ResourceRule {
  std::vector<std::string> resources;  ///< "secrets", "deployments.apps", "*.apps", "*.", "*.*"
  std::vector<std::shared_ptr<const Provider>> providers;
};

struct Configuration {
  std::string file;  ///< For messages; empty: there is none.
  std::vector<ResourceRule> rules;
  std::vector<std::shared_ptr<KmsProvider>> key_services;  ///< Those among the providers. Nothing was asked of them yet.
  /// The first answer of each; what is stored can be read and written then. The error names the one that is not well.
  [[nodiscard]] Result<void> start_key_services() const;
  /// Why an object of this resource must not be written now; empty: it may.
  [[nodiscard]] std::string trouble_with(std::string_view group, std::string_view plural) const;
  /// Whether this one writes the object of a key ("/GROUP/PLURAL/…"). Keeps nothing of the configuration alive.
  [[nodiscard]] std::function<bool(std::string_view key)> written_by(const KmsProvider& service) const;
  /// The providers of a stored resource; null: it is not to be encrypted.
  [[nodiscard]] const ResourceRule* rule_of(std::string_view group, std::string_view plural) const;
};

/// The error lists every problem with file, line and field path. Keys are never in it.
Result<Configuration> parse_configuration(std::string_view text, const std::string& file);

}  // namespace berth::apiserver::encryption
