#include "controllers/endpoint_model.h"

#include <fmt/format.h>

namespace berth::controllers::endpoints {

using json::Array;
using json::get_array;
using json::get_int;
using json::get_string;
using json::Value;

namespace {

/// An endpoint is the same one as long as it is the same pod at the same address.
std::string identity(const json::Object& endpoint) {
  const Value value(endpoint);
  return json::serialize(get_array(value, {"addresses"})) + std::string(get_string(value, {"targetRef", "uid"}));
}

struct Slice {
  ObjectRef object;  ///< Null: a new one.
  Value before;
  std::string ports;
  Array endpoints;
  bool is_changed = false;
};

Array ports_array(const std::string& text) {
  auto parsed = json::parse(text);
  return parsed && parsed->is_array() ? parsed->get_array() : Array();
}

/// What a slice has of the wanted endpoints stays in it (brought up to date); the rest leaves it.
void keep_wanted(Slice& slice, std::vector<json::Object>& wanted) {
  std::map<std::string, std::size_t> index;
  for (std::size_t i = 0; i < wanted.size(); ++i) index.emplace(identity(wanted[i]), i);
  std::set<std::size_t> placed;
  for (const Value& present : get_array(slice.before, {"endpoints"})) {
    const auto it = present.is_object() ? index.find(identity(present.get_object())) : index.end();
    if (it == index.end() || !placed.insert(it->second).second) {
      slice.is_changed = true;
      continue;
    }
    if (!json::equal(present, Value(wanted[it->second]))) slice.is_changed = true;
    slice.endpoints.push_back(wanted[it->second]);
  }
  std::vector<json::Object> left;
  for (std::size_t i = 0; i < wanted.size(); ++i)
    if (!placed.contains(i)) left.push_back(std::move(wanted[i]));
  wanted = std::move(left);
}

void fill(Slice& slice, std::vector<json::Object>& left, std::size_t most) {
  while (!left.empty() && slice.endpoints.size() < most) {
    slice.endpoints.push_back(std::move(left.back()));
    left.pop_back();
    slice.is_changed = true;
  }
}

/// What the slice's annotations become when it is written.
json::Object annotations_of(const WantedSlices& wanted, const Value& before) {
  if (wanted.annotations) return *wanted.annotations;
  json::Object annotations = json::get_object(before, {"metadata", "annotations"});
  if (wanted.last_change)
    annotations[kLastChange] = format_rfc3339(*wanted.last_change);
  else
    annotations.erase(kLastChange);
  return annotations;
}

void write_slice(Plan& plan, const WantedSlices& wanted, const Slice& slice) {
  const Array ports = ports_array(slice.ports);
  json::Object annotations = annotations_of(wanted, slice.before);
  if (!slice.object) {
    json::Object metadata{
        {"generateName", wanted.name + "-"}, {"namespace", wanted.ns}, {"labels", wanted.labels}, {"ownerReferences", Array{wanted.owner}}};
    if (!annotations.empty()) metadata["annotations"] = std::move(annotations);
    plan.writes.push_back(create_object(kinds().endpoint_slice, wanted.ns,
                                        json::Object{{"apiVersion", "discovery.k8s.io/v1"},
                                                     {"kind", "EndpointSlice"},
                                                     {"metadata", std::move(metadata)},
                                                     {"addressType", wanted.address_type},
                                                     {"endpoints", slice.endpoints},
                                                     {"ports", ports}}));
    return;
  }
  const json::Object before{{"metadata", json::Object{{"labels", json::get_object(slice.before, {"metadata", "labels"})},
                                                      {"annotations", json::get_object(slice.before, {"metadata", "annotations"})}}},
                            {"endpoints", get_array(slice.before, {"endpoints"})},
                            {"ports", get_array(slice.before, {"ports"})}};
  json::Object after{{"metadata", json::Object{{"labels", wanted.labels}, {"annotations", before.at("metadata").at("annotations")}}},
                     {"endpoints", slice.endpoints},
                     {"ports", ports}};
  // The note of the last change alone is no reason to write.
  if (!wanted.annotations && merge_diff(before, after).empty()) return;
  after["metadata"].at("annotations") = std::move(annotations);
  json::Object patch = merge_diff(before, after);
  if (!patch.empty()) plan.writes.push_back(patch_object(kinds().endpoint_slice, *slice.object, std::move(patch)));
}

/// Once what replaces it is there.
void delete_slice(Plan& plan, const client::Object& slice) {
  Write write = delete_object(kinds().endpoint_slice, slice);
  write.stage = 1;
  plan.writes.push_back(std::move(write));
}

/// What would be made becomes of what would go: a Service whose ports change has endpoints throughout.
void recycle(std::vector<Slice>& slices) {
  for (Slice& made : slices) {
    if (made.object) continue;
    const auto spare = std::ranges::find_if(slices, [](const Slice& slice) { return slice.object && slice.endpoints.empty(); });
    if (spare == slices.end()) return;
    made.object = std::exchange(spare->object, nullptr);
    made.before = std::move(spare->before);
  }
}

}  // namespace

std::int64_t target_port(const Value& service_port, const Value& pod) {
  const Value* target = json::find(service_port, "targetPort");
  if (target == nullptr) return get_int(service_port, {"port"});
  if (target->is_number()) return target->to_number<std::int64_t>();
  if (!target->is_string()) return 0;
  const std::string_view name = json::as_view(*target), protocol = get_string(service_port, {"protocol"}, "TCP");
  const auto find_in = [&](const Value& container) -> std::int64_t {
    for (const Value& port : get_array(container, {"ports"}))
      if (get_string(port, {"name"}) == name && get_string(port, {"protocol"}, "TCP") == protocol) return get_int(port, {"containerPort"});
    return 0;
  };
  for (const Value& container : get_array(pod, {"spec", "containers"}))
    if (const std::int64_t number = find_in(container); number != 0) return number;
  // Sidecars serve as well.
  for (const Value& container : get_array(pod, {"spec", "initContainers"}))
    if (get_string(container, {"restartPolicy"}) == "Always")
      if (const std::int64_t number = find_in(container); number != 0) return number;
  return 0;
}

Array ports_on(const Value& service, const Value& pod) {
  Array ports;
  for (const Value& port : get_array(service, {"spec", "ports"})) {
    const std::int64_t number = target_port(port, pod);
    if (number == 0) continue;
    json::Object one;
    if (!get_string(port, {"name"}).empty()) one["name"] = get_string(port, {"name"});
    one["port"] = number;
    one["protocol"] = get_string(port, {"protocol"}, "TCP");
    if (!get_string(port, {"appProtocol"}).empty()) one["appProtocol"] = get_string(port, {"appProtocol"});
    ports.push_back(std::move(one));
  }
  return ports;
}

bool has_service_hostname(const Value& service, const Value& pod) {
  return !get_string(pod, {"spec", "hostname"}).empty() &&
         get_string(pod, {"spec", "subdomain"}) == get_string(service, {"metadata", "name"});
}

bool is_headless(const Value& service) {
  const std::string_view address = get_string(service, {"spec", "clusterIP"});
  return address.empty() || address == "None";
}

bool has_selector(const Value& service) {
  return !json::get_object(service, {"spec", "selector"}).empty() && get_string(service, {"spec", "type"}) != "ExternalName";
}

std::string_view family_of(std::string_view address) { return address.find(':') == std::string_view::npos ? "IPv4" : "IPv6"; }

std::string address_of(const Value& pod, std::string_view family) {
  for (const Value& entry : get_array(pod, {"status", "podIPs"}))
    if (const std::string_view ip = get_string(entry, {"ip"}); !ip.empty() && family_of(ip) == family) return std::string(ip);
  const std::string_view only = get_string(pod, {"status", "podIP"});
  return !only.empty() && family_of(only) == family ? std::string(only) : std::string();
}

void enqueue_services(const Event& event, const Cache& cache, KeySink& sink) {
  for (const ObjectRef& pod : {event.before, event.after}) {
    if (!pod || (pod == event.after && event.before && event.before->labels() == pod->labels())) continue;
    for (const ObjectRef& service : cache.selecting(kinds().service, pod->ns(), pod->labels())) sink.add(service->key());
  }
}

std::optional<TimePoint> TriggerTimes::next(const std::string& service, TimePoint created, std::map<std::string, TimePoint> moved) {
  const auto [known, is_new] = seen_.try_emplace(service);
  std::optional<TimePoint> earliest;
  for (const auto& [pod, time] : moved) {
    const auto before = known->second.find(pod);
    if (time > (before == known->second.end() ? TimePoint{} : before->second)) earliest = std::min(time, earliest.value_or(time));
  }
  known->second = std::move(moved);
  return is_new ? std::optional(created) : earliest;
}

unsigned __int128 place_of(const Value& port, bool in_slice) {
  const std::string_view name = get_string(port, {"name"}), protocol = get_string(port, {"protocol"}, "TCP"),
                         app_protocol = get_string(port, {"appProtocol"}, "<nil>");
  const std::int64_t number = get_int(port, {"port"});
  const std::string text =
      in_slice ? fmt::format("(v1.EndpointPort){{Name:(*string){} Protocol:(*v1.Protocol){} Port:(*int32){} AppProtocol:(*string){}}}",
                             name, protocol, number, app_protocol)
               : fmt::format("(v1.EndpointPort){{Name:(string){} Port:(int32){} Protocol:(v1.Protocol){} AppProtocol:(*string){}}}", name,
                             number, protocol, app_protocol);
  constexpr auto wide = [](std::uint64_t high, std::uint64_t low) { return static_cast<unsigned __int128>(high) << 64 | low; };
  unsigned __int128 hash = wide(0x6c62272e07bb0142U, 0x62b821756295c58dU);
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * wide(0x1000000U, 0x13bU);
  return hash;
}

std::string ports_key(const Array& ports) {
  Array fixed;
  for (const Value& port : ports) {
    json::Object one{
        {"name", get_string(port, {"name"})}, {"port", get_int(port, {"port"})}, {"protocol", get_string(port, {"protocol"}, "TCP")}};
    if (!get_string(port, {"appProtocol"}).empty()) one["appProtocol"] = get_string(port, {"appProtocol"});
    fixed.push_back(std::move(one));
  }
  std::ranges::sort(fixed, {}, [](const Value& port) { return place_of(port, true); });
  return json::serialize(fixed);
}

void pack_slices(Plan& plan, const WantedSlices& wanted, const std::vector<ObjectRef>& present) {
  std::map<std::string, std::vector<json::Object>> left = wanted.by_ports;
  const bool nothing = std::all_of(left.begin(), left.end(), [](const auto& group) { return group.second.empty(); });
  std::vector<Slice> slices;
  for (const ObjectRef& object : present) {
    if (object->controller_uid() != json::as_view(wanted.owner.at("uid"))) {
      delete_slice(plan, *object);
      continue;
    }
    Slice slice{object, object->document(), {}, {}, false};
    slice.ports = ports_key(get_array(slice.before, {"ports"}));
    const auto group = left.find(slice.ports);
    if (group != left.end()) {
      keep_wanted(slice, group->second);
    } else {
      slice.is_changed = true;
    }
    slices.push_back(std::move(slice));
  }
  for (auto& [ports, endpoints] : left) {
    for (const bool changing : {true, false})
      for (Slice& slice : slices)
        if (slice.ports == ports && slice.is_changed == changing) fill(slice, endpoints, wanted.max_per_slice);
    while (!endpoints.empty()) {
      slices.push_back({nullptr, {}, ports, {}, true});
      fill(slices.back(), endpoints, wanted.max_per_slice);
    }
  }
  recycle(slices);
  bool has_placeholder = false;
  for (Slice& slice : slices) {
    if (!slice.object && slice.endpoints.empty()) continue;
    if (!slice.endpoints.empty()) {
      write_slice(plan, wanted, slice);
    } else if (nothing && wanted.placeholder && !has_placeholder) {
      has_placeholder = true;
      slice.ports = "[]";
      write_slice(plan, wanted, slice);
    } else {
      delete_slice(plan, *slice.object);
    }
  }
  if (nothing && wanted.placeholder && !has_placeholder) write_slice(plan, wanted, {nullptr, {}, "[]", {}, true});
}

}  // namespace berth::controllers::endpoints
