// What a request asks for, read from its method, path and query alone (apiserver/pkg/endpoints/request/requestinfo.go).
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace berth::apiserver {

/// Query parameters, decoded, in order; the first value of a name counts.
class Query {
 public:
  Query() = default;
  explicit Query(std::string_view raw);
  [[nodiscard]] std::string_view get(std::string_view name) const;
  [[nodiscard]] bool has(std::string_view name) const;
  [[nodiscard]] std::vector<std::string> all(std::string_view name) const;
  /// Kubernetes' reading of a boolean parameter: absent, "", "0" and "false" (any case) are false, everything else is true.
  [[nodiscard]] bool flag(std::string_view name) const;
  [[nodiscard]] const std::vector<std::pair<std::string, std::string>>& parameters() const { return parameters_; }

 private:
  std::vector<std::pair<std::string, std::string>> parameters_;
};

struct RequestInfo {
  bool is_resource = false;
  /// get list watch create update patch delete deletecollection, or the lower-case HTTP method for non-resource requests.
  std::string verb;
  std::string path;
  std::string group, version;
  std::string ns, resource, name, subresource;
  std::vector<std::string> rest;  ///< Path segments after the subresource (proxy).
  bool legacy_watch = false;      ///< /api/v1/watch/…
};

/// Never fails: what is not a resource path is a non-resource request.
RequestInfo parse_request_info(std::string_view method, std::string_view path, const Query& query);

}  // namespace berth::apiserver
