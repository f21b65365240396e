#include "apiserver/request/context.h"

namespace berth::apiserver {

Attributes attributes_of(const Request& request) {
  auto attributes = attributes_of(request, request.info.verb);
  attributes.is_resource = request.info.is_resource;
  attributes.path = request.info.path;
  if (!request.info.is_resource) return attributes;
  attributes.field_selector = request.query.get("fieldSelector");
  attributes.label_selector = request.query.get("labelSelector");
  return attributes;
}

Attributes attributes_of(const Request& request, std::string verb) {
  const auto& info = request.info;
  Attributes attributes;
  attributes.verb = std::move(verb);
  if (!info.is_resource) return attributes;
  attributes.group = info.group;
  attributes.version = info.version;
  attributes.resource = info.resource;
  attributes.subresource = info.subresource;
  attributes.ns = info.ns;
  attributes.name = info.name;
  return attributes;
}

}  // namespace berth::apiserver
