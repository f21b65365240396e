// The kinds that a server serves at one moment: the API's own, and custom ones, which come and go.
#pragma once
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/bytes.h"
#include "base/mutex.h"
#include "custom/definition.h"
#include "model/kinds.h"
#include "store/store.h"

namespace berth::model {
enum class Features : std::uint8_t;
}

namespace berth::apiserver {

/// An apiVersion's group and version.
inline std::pair<std::string_view, std::string_view> split_version(std::string_view api_version) {
  const auto slash = api_version.find('/');
  if (slash == std::string_view::npos) return {{}, api_version};
  return {api_version.substr(0, slash), api_version.substr(slash + 1)};
}

/// A custom kind with what this server knows of its objects.
struct ServedKind {
  std::shared_ptr<const custom::CustomKind> kind;
  /// Objects of older revisions were written under another schema: they are read by this one before they are shown.
  store::Revision valid_since = 0;
  bool is_terminating = false;  ///< Its definition is being deleted: no new objects.
};

/// Immutable: a change makes another table. A request holds the one that it began with, so that pointers to kinds outlive the request.
class KindTable {
 public:
  /// The API's own kinds as far as the features are on, and the custom ones.
  KindTable(std::vector<ServedKind> custom, model::Features features);

  /// Null when the server has none such now. Versions that are stored but not served are not found.
  [[nodiscard]] const model::KindInfo* find_resource(std::string_view group, std::string_view version, std::string_view plural) const;
  [[nodiscard]] const model::KindInfo* find_kind(std::string_view group, std::string_view version, std::string_view kind) const;
  /// All that are served: the API's own in their order, then custom ones by group, preferred versions first.
  [[nodiscard]] const std::vector<const model::KindInfo*>& kinds() const { return kinds_; }
  /// Null for the API's own kinds.
  [[nodiscard]] const ServedKind* custom(const model::KindInfo& kind) const;
  [[nodiscard]] const std::vector<ServedKind>& all_custom() const { return custom_; }
  /// As model/published/openapi.h has them, of all that is served here. Made when first asked for.
  [[nodiscard]] Bytes openapi_v2() const;
  [[nodiscard]] Bytes openapi_v3_index() const;
  [[nodiscard]] Bytes openapi_v3(std::string_view group, std::string_view version) const;
  /// The kind of definitions, with everything that is asked of them.
  [[nodiscard]] static const model::KindInfo& definitions();

 private:
  /// Of groups' versions of which nothing is served: "GROUP/VERSION".
  [[nodiscard]] std::set<std::string> hidden_versions() const;

  std::vector<ServedKind> custom_;
  std::vector<const model::KindInfo*> kinds_;
  std::unordered_map<std::string, const model::KindInfo*> by_resource_, by_kind_;
  std::unordered_map<const model::KindInfo*, const ServedKind*> served_;
  mutable Mutex documents_mutex_;
  mutable std::map<std::string, Bytes> documents_ BERTH_GUARDED_BY(documents_mutex_);  ///< OpenAPI's, by path.
};
using KindTablePtr = std::shared_ptr<const KindTable>;

}  // namespace berth::apiserver
