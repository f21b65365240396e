// EndpointSlices.
#include "model/kinds/record.h"

namespace berth::model::kinds {
namespace {

void default_slice(Object& doc) {
  each(doc, "ports", [](Object& port) {
    put(port, "name", "");
    put(port, "protocol", "TCP");
  });
}

/// The form before v1 had the labels of an endpoint's node; a v1 client says them by fields.
void drop_old_topology(const Value* old, Value& slice) {
  Value* endpoints = json::find(slice, "endpoints");
  if (endpoints == nullptr || !endpoints->is_array()) return;
  const Value* before = old == nullptr ? nullptr : json::find(*old, "endpoints");
  if (before != nullptr && json::equal(*before, *endpoints)) return;
  for (Value& endpoint : endpoints->get_array())
    if (endpoint.is_object()) endpoint.get_object().erase("deprecatedTopology");
}

constexpr std::string_view kZoneLabel = "topology.kubernetes.io/zone";
constexpr std::string_view kHostnameLabel = "kubernetes.io/hostname";

json::Array* endpoints_of(Value& doc) {
  Value* endpoints = json::find(doc, {"endpoints"});
  return endpoints != nullptr ? endpoints->if_array() : nullptr;
}

/// v1beta1 tells zone and node in a map of labels.
void slice_from_v1beta1(Value& doc) {
  json::Array* endpoints = endpoints_of(doc);
  if (endpoints == nullptr) return;
  for (Value& endpoint : *endpoints) {
    if (!endpoint.is_object()) continue;
    Object topology = json::get_object(endpoint, {"topology"});
    endpoint.get_object().erase("topology");
    for (const auto& [label, field] : {std::pair{kZoneLabel, "zone"}, {kHostnameLabel, "nodeName"}}) {
      const Value* value = topology.if_contains(label);
      if (value == nullptr) continue;
      if (!endpoint.get_object().contains(field)) endpoint.get_object()[field] = *value;
      topology.erase(label);
    }
    if (!topology.empty()) endpoint.get_object()["deprecatedTopology"] = std::move(topology);
  }
}

void slice_to_v1beta1(Value& doc) {
  json::Array* endpoints = endpoints_of(doc);
  if (endpoints == nullptr) return;
  for (Value& endpoint : *endpoints) {
    if (!endpoint.is_object()) continue;
    Object topology = json::get_object(endpoint, {"deprecatedTopology"});
    endpoint.get_object().erase("deprecatedTopology");
    if (const Value* zone = json::find(endpoint, {"zone"})) topology[kZoneLabel] = *zone;
    if (const Value* node = json::find(endpoint, {"nodeName"})) topology[kHostnameLabel] = *node;
    endpoint.get_object().erase("zone");
    if (!topology.empty()) endpoint.get_object()["topology"] = std::move(topology);
  }
}

Array endpoint_slice_cells(const Value& o, TimePoint now) {
  std::vector<std::string> ports, addresses;
  for (const Value& port : get_array(o, {"ports"})) ports.push_back(fmt::format("{}", get_int(port, {"port"})));
  for (const Value& endpoint : get_array(o, {"endpoints"}))
    for (const Value& address : get_array(endpoint, {"addresses"}))
      if (addresses.size() < 3) addresses.emplace_back(address.is_string() ? json::as_view(address) : "");
  return {name_of(o), Value(get_string(o, {"addressType"})), ports.empty() ? "<unset>" : join(ports),
          addresses.empty() ? "<unset>" : join(addresses), age_of(o, now)};
}

/// Its labels say whose slice it is: another set of them is a new generation too.
bool is_new_slice(const Value& old, const Value& doc, std::string_view) {
  return !strategy::same_but_metadata_and_status(old, doc) ||
         json::get_object(old, {"metadata", "labels"}) != json::get_object(doc, {"metadata", "labels"});
}

Rules slice_rules() {
  return {.metadata_looks = kLooksAtAllAgain,
          .create = [](const Value& doc, Errors& errors) { validation::endpoint_slice(nullptr, doc, errors); },
          .update = in_turn([](const Value& old, const Value& doc, Errors& errors) { validation::endpoint_slice(&old, doc, errors); }),
          .warnings =
              [](const Value* old, const Value& doc, Sentences& out) {
                if (old == nullptr && get_string(doc, {"addressType"}) == "FQDN")
                  out.emplace_back("spec.addressType: FQDN endpoints are deprecated");
              }};
}

Printer slice_printer() { return {{{"Name"}, {"AddressType"}, {"Ports"}, {"Endpoints"}, {"Age"}}, endpoint_slice_cells}; }

}  // namespace

std::vector<KindInfo> discovery_group() {
  return {Record("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices")
              .generation()
              .does({.form = Form{.defaults = default_slice},
                     .strategy =
                         Strategy{.prepare_create = [](Value& doc) { drop_old_topology(nullptr, doc); },
                                  .prepare_update = [](const Value& old, Value& doc, std::string_view) { drop_old_topology(&old, doc); },
                                  .is_new_generation = is_new_slice},
                     .rules = slice_rules(),
                     .printer = slice_printer(),
                     .selected = kDefault,
                     .scale = kDefault,
                     .life = kDefault,
                     .counted = kDefault}),
          Record("discovery.k8s.io", "v1beta1", "EndpointSlice", "endpointslices")
              .generation()
              .stored_as("discovery.k8s.io", "v1")
              .does({.form = Form{.defaults = default_slice, .to_storage = slice_from_v1beta1, .from_storage = slice_to_v1beta1},
                     .strategy = Strategy{.is_new_generation = is_new_slice},
                     .rules = slice_rules(),
                     .printer = slice_printer(),
                     .selected = kDefault,
                     .scale = kDefault,
                     .life = kDefault,
                     .counted = kDefault})};
}

}  // namespace berth::model::kinds
