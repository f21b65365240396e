// /openapi/v2 and /openapi/v3, served as the bytes that were made once.
#include "model/published/openapi.h"

#include "apiserver/openapi/openapi_protobuf.h"
#include "apiserver/pages/own_pages.h"
#include "base/mutex.h"

namespace berth::apiserver {
namespace {

/// The version of a document by its bytes, read once for as long as they are kept.
std::string tag_of(const Bytes& bytes) {
  static Mutex mutex;
  static std::map<const std::string*, std::pair<std::weak_ptr<const std::string>, std::string>> known BERTH_GUARDED_BY(mutex);
  const MutexLock lock(mutex);
  if (const auto found = known.find(bytes.get()); found != known.end() && found->second.first.lock() == bytes) return found->second.second;
  std::erase_if(known, [](const auto& entry) { return entry.second.first.expired(); });
  return known.insert_or_assign(bytes.get(), std::pair(bytes, fmt::format("\"{:016X}\"", std::hash<std::string_view>()(*bytes))))
      .first->second.second;
}

}  // namespace

/// Who has a document already is told that it is still the same: clients ask often, and all kinds together are a megabyte.
void OwnPages::respond_bytes(Request& request, const Bytes& bytes, std::string_view content_type) {
  const auto tag = tag_of(bytes);
  const bool is_known = net::has_token(request.http.headers.get("If-None-Match"), tag);
  respond_.account(request, is_known ? 304 : 200);
  auto headers = respond_.headers_for(request, content_type);
  headers.set("ETag", tag);
  if (is_known) return request.writer->respond_shared(304, std::move(headers), {});
  request.writer->respond_shared(200, std::move(headers), {bytes});
}

bool OwnPages::serve_openapi(const RequestPtr& request) {
  const std::string_view path = request->http.path;
  if (path == "/openapi/v2" && request->http.headers.get("Accept").find("proto-openapi.spec.v2") != std::string_view::npos) {
    const auto plain = request->kinds->openapi_v2();
    const auto own = [plain] {
      // Made anew only where the kinds are others.
      static Mutex mutex;
      static Bytes of BERTH_GUARDED_BY(mutex), encoded BERTH_GUARDED_BY(mutex);
      const MutexLock lock(mutex);
      if (of != plain) {
        const auto document = json::parse(*plain);
        encoded = make_bytes(document ? encode_openapi_protobuf(*document) : std::string());
        of = plain;
      }
      return encoded;
    };
    respond_bytes(*request, aggregator_.openapi_v2_protobuf(plain, own), "application/com.github.proto-openapi.spec.v2.v1.0+protobuf");
    return true;
  }
  if (path == "/openapi/v2") {
    respond_bytes(*request, aggregator_.openapi_v2(request->kinds->openapi_v2()), "application/json");
    return true;
  }
  if (path == "/openapi/v3" || path == "/openapi/v3/") {
    respond_bytes(*request, aggregator_.openapi_v3_index(request->kinds->openapi_v3_index()), "application/json");
    return true;
  }
  constexpr std::string_view kPrefix = "/openapi/v3/";
  if (!path.starts_with(kPrefix)) return false;
  auto rest = path.substr(kPrefix.size());
  Bytes document;
  if (rest.starts_with("apis/")) {
    rest.remove_prefix(5);
    const auto slash = rest.find('/');
    if (slash != std::string_view::npos) document = request->kinds->openapi_v3(rest.substr(0, slash), rest.substr(slash + 1));
  } else if (rest.starts_with("api/")) {
    document = model::openapi_v3("", rest.substr(4));
  }
  if (document == nullptr) return false;
  respond_bytes(*request, document, "application/json");
  return true;
}

}  // namespace berth::apiserver
