#include "apiserver/request/negotiate.h"

#include <optional>
#include <vector>

#include "apiserver/request/offer.h"
#include "base/go/strings.h"
#include "base/split.h"

namespace berth::apiserver {
namespace {

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

struct Alternative {
  std::string type;
  std::string as, version, group;
  bool pretty = false;
  double quality = 1;
};

Alternative parse_alternative(std::string_view text) {
  auto parts = split(text, ';').list();
  std::ranges::transform(parts, parts.begin(), trim);
  Alternative alternative;
  alternative.type = go::to_lower(parts[0]);
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const auto eq = parts[i].find('=');
    const auto key = go::to_lower(parts[i].substr(0, eq));
    auto value = eq == std::string_view::npos ? std::string_view{} : parts[i].substr(eq + 1);
    if (value.size() >= 2 && value.front() == '"' && value.back() == '"') value = value.substr(1, value.size() - 2);
    if (key == "as") alternative.as = value;
    if (key == "v") alternative.version = value;
    if (key == "g") alternative.group = value;
    if (key == "pretty") alternative.pretty = value == "1" || value == "true";
    if (key == "q") {
      double q = 0;
      const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), q);
      alternative.quality = error == std::errc() ? q : 0;
    }
  }
  return alternative;
}

constexpr std::string_view kProtobufType = "application/vnd.kubernetes.protobuf";

std::optional<Negotiated> accept_one(const Alternative& alternative, const Offer& offer) {
  Negotiated out;
  out.pretty = alternative.pretty;
  if (alternative.type == "application/json" || alternative.type == "*/*" || alternative.type == "application/*") {
    out.format = Format::kJson;
  } else if (alternative.type == "application/yaml" && !offer.watch) {
    out.format = Format::kYaml;
  } else if (alternative.type == kProtobufType && (alternative.as.empty() ? offer.protobuf : alternative.as != "Table")) {
    out.format = Format::kProtobuf;
  } else {
    return std::nullopt;
  }
  if (alternative.as.empty()) {
    if (!alternative.version.empty() || !alternative.group.empty()) return std::nullopt;
    return out;
  }
  if (!offer.forms || alternative.group != "meta.k8s.io" || (alternative.version != "v1" && alternative.version != "v1beta1"))
    return std::nullopt;
  if (alternative.version == "v1beta1") out.meta_version = "meta.k8s.io/v1beta1";
  if (alternative.as == "Table") {
    out.form = ObjectForm::kTable;
  } else if (alternative.as == "PartialObjectMetadata") {
    out.form = ObjectForm::kPartialMetadata;
  } else if (alternative.as == "PartialObjectMetadataList") {
    out.form = ObjectForm::kPartialMetadataList;
  } else {
    return std::nullopt;
  }
  return out;
}

constexpr std::string_view kBodies = "application/json, application/yaml, application/vnd.kubernetes.protobuf";

/// The router looks at the bare media types first (go-restful's Route.matchesAccept): "application/*" leads nowhere.
bool route_accepts(std::string_view accept) {
  for (const auto part : split(accept, ',')) {
    const auto type = trim(part.substr(0, part.find(';')));
    if (type == "*/*" || type == "application/json" || type == "application/yaml" || type == "application/vnd.kubernetes.protobuf")
      return true;
  }
  return false;
}

}  // namespace

model::ApiResult<Negotiated> negotiate(std::string_view accept, const Offer& offer) {
  if (trim(accept).empty()) return Negotiated{};
  if (offer.is_routed && !route_accepts(accept)) {
    auto status = model::not_acceptable(
        fmt::format("406: Not Acceptable\n\nAvailable representations: {}{}", kBodies,
                    offer.list ? ", application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch" : ""));
    status.shows_details = true;
    return std::unexpected(std::move(status));
  }
  std::optional<Negotiated> best;
  double best_quality = 0;
  for (const auto part : split(accept, ',')) {
    if (trim(part).empty()) continue;
    const auto alternative = parse_alternative(part);
    if (alternative.quality <= best_quality) continue;
    if (auto accepted = accept_one(alternative, offer)) {
      best = accepted;
      best_quality = alternative.quality;
    }
  }
  if (!best)
    return std::unexpected(model::not_acceptable(
        fmt::format("only the following media types are accepted: {}",
                    offer.watch ? "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch" : kBodies)));
  if (offer.checks_form && offer.list && best->form == ObjectForm::kPartialMetadata)
    return std::unexpected(model::not_acceptable(
        fmt::format("you requested PartialObjectMetadata, but the requested object is a list (*{}List)", offer.kind)));
  if (offer.checks_form && !offer.list && best->form == ObjectForm::kPartialMetadataList)
    return std::unexpected(model::not_acceptable(
        fmt::format("you requested PartialObjectMetadataList, but the requested object is not a list (*{})", offer.kind)));
  return *best;
}

model::ApiResult<Negotiated> negotiate(std::string_view accept, bool allow_forms) {
  Offer offer;
  offer.forms = allow_forms;
  return negotiate(accept, offer);
}

Format status_format(std::string_view accept) {
  Offer offer;
  offer.forms = false;
  offer.protobuf = true;
  const auto negotiated = negotiate(accept, offer);
  return negotiated ? negotiated->format : Format::kJson;
}

std::string media_type(std::string_view content_type) { return go::to_lower(trim(content_type.substr(0, content_type.find(';')))); }

model::ApiResult<Format> body_format(std::string_view content_type) {
  const auto type = media_type(content_type);
  if (type.empty() || type == "application/json") return Format::kJson;
  if (type == "application/yaml") return Format::kYaml;
  return std::unexpected(model::unsupported_media_type(
      fmt::format("the body of the request was in an unknown format - accepted media types include: {}", kBodies)));
}

}  // namespace berth::apiserver
