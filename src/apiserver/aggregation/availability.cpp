// Whether aggregated servers answer (kube-aggregator/pkg/controllers/status/remote), and what they say they serve.
#include "apiserver/aggregation/aggregator.h"
#include "apiserver/ground/proposals.h"
#include "base/mutex.h"
#include "model/conditions.h"
#include "model/features.h"
#include "model/kinds.h"

namespace berth::apiserver::aggregation {
namespace {

constexpr Duration kLook = std::chrono::seconds(1);  // Services and EndpointSlices are looked at that often, from memory.
constexpr Duration kAskAgain = std::chrono::seconds(10), kAskAgainSoon = std::chrono::seconds(2), kAskOpenApi = std::chrono::seconds(60);

struct Place {
  std::string address;
  std::int64_t port = 0;
};

/// The ready addresses of a service's slices that have the port.
std::vector<Place> places_of(const std::vector<json::Value>& slices, std::string_view port_name) {
  std::vector<Place> out;
  for (const auto& slice : slices)
    for (const auto& port : json::get_array(slice, {"ports"})) {
      if (json::get_string(port, {"name"}) != port_name) continue;
      for (const auto& endpoint : json::get_array(slice, {"endpoints"}))
        if (json::get_bool(endpoint, {"conditions", "ready"}, true))
          for (const auto& address : json::get_array(endpoint, {"addresses"}))
            if (address.is_string()) out.push_back({std::string(json::as_view(address)), json::get_int(port, {"port"})});
    }
  return out;
}

std::vector<json::Value> slices_of(const ObjectCache& cache, const std::string& ns, const std::string& service) {
  std::vector<json::Value> out;
  for (const auto& object : cache.list({.prefix = make_prefix("discovery.k8s.io", "endpointslices", ns)}, "", 0).items) {
    auto document = decode_object(*object);
    if (json::get_string(document, {"metadata", "labels", "kubernetes.io/service-name"}) == service) out.push_back(std::move(document));
  }
  return out;
}

std::string host_in_url(const std::string& address) {
  return address.find(':') == std::string::npos ? address : fmt::format("[{}]", address);
}

Condition unavailable(std::string reason, std::string message) { return {"False", std::move(reason), std::move(message)}; }

}  // namespace

Aggregator::Aggregator(Ground& ground, Responder& respond, Relays& relays)
    : ground_(ground), respond_(respond), relays_(relays), self_(std::make_shared<Self>()) {
  self_->aggregator = this;
}

void Aggregator::start() {
  // What is registered already calls back from within: the loop's look waits until this one is done.
  const GateLock lock(self_->gate);
  registrations_ = std::make_unique<Registrations>(*ground_.cache, [this] { look_later(); });
  look();
}

Aggregator::~Aggregator() { stop(); }

void Aggregator::stop() {
  {
    const GateLock lock(self_->gate);
    self_->aggregator = nullptr;
  }
  ground_.loop.cancel(timer_);
}

void Aggregator::look_later() {
  if (is_looking_.exchange(true)) return;
  ground_.loop.post([self = self_] {
    const GateLock lock(self->gate);
    if (self->aggregator != nullptr) self->aggregator->look();
  });
}

void Aggregator::look() {
  is_looking_ = false;
  const auto table = registrations_->table();
  restore_own();
  forget_gone(*table);
  bool has_remote = false;
  for (const auto& [key, registration] : *table) {
    if (registration.is_remote()) {
      has_remote = true;
      look_at(registration);
    } else if (registration.reason != "Local") {
      set_condition(registration, {"True", "Local", "Local APIServices are always available"});
    }
  }
  ground_.loop.cancel(timer_);
  timer_ = TimerId::kNone;
  if (!has_remote) return;
  timer_ = ground_.loop.schedule_after(kLook, [self = self_] {
    const GateLock lock(self->gate);
    if (self->aggregator != nullptr) self->aggregator->look();
  });
}

void Aggregator::forget_gone(const Table& table) {
  std::set<std::string> remote;
  for (const auto& [key, registration] : table)
    if (registration.is_remote()) remote.insert(registration.name);
  std::erase_if(checks_, [&](const auto& entry) { return !remote.contains(entry.first); });
  const MutexLock lock(mutex_);
  if (std::erase_if(known_, [&](const auto& entry) { return !remote.contains(entry.first); }) > 0) ++generation_;
}

Expected<Aggregator::Located, Condition> Aggregator::locate(const Registration& registration) const {
  const auto& [ns, name, port] = std::tie(registration.service_ns, registration.service_name, registration.service_port);
  const auto object = ground_.cache->get(make_key("", "services", ns, name));
  if (object == nullptr)
    return std::unexpected(unavailable("ServiceNotFound", fmt::format("service/{} in \"{}\" is not present", name, ns)));
  const auto service = decode_object(*object);
  Located out;
  out.far.upstream = Upstream{registration.ca_pem, registration.is_insecure, fmt::format("{}.{}.svc", name, ns)};
  std::vector<Place> places;
  if (json::get_string(service, {"spec", "type"}) == "ExternalName") {
    places.push_back({std::string(json::get_string(service, {"spec", "externalName"})), port});
  } else {
    const auto& ports = json::get_array(service, {"spec", "ports"});
    const auto found = std::ranges::find_if(ports, [&](const auto& one) { return json::get_int(one, {"port"}) == port; });
    if (found == ports.end())
      return std::unexpected(
          unavailable("ServicePortError", fmt::format("service/{} in \"{}\" is not listening on port {}", name, ns, port)));
    const auto slices = slices_of(*ground_.cache, ns, name);
    if (slices.empty())
      return std::unexpected(
          unavailable("EndpointsNotFound", fmt::format("cannot find endpointslices for service/{} in \"{}\"", name, ns)));
    const auto port_name = json::get_string(*found, {"name"});
    places = places_of(slices, port_name);
    if (places.empty())
      return std::unexpected(
          unavailable("MissingEndpoints",
                      fmt::format("endpointslices for service/{} in \"{}\" have no addresses with port name \"{}\"", name, ns, port_name)));
  }
  static std::atomic<std::size_t> turn = 0;
  const auto& chosen = places[turn++ % places.size()];
  out.far.url = fmt::format("https://{}:{}", host_in_url(chosen.address), chosen.port);
  for (const auto& place : places) out.places += fmt::format("{}:{} ", place.address, place.port);
  out.places += fmt::format("{} {}", registration.is_insecure, std::hash<std::string>()(registration.ca_pem));
  return out;
}

void Aggregator::look_at(const Registration& registration) {
  auto& check = checks_[registration.name];
  const auto located = locate(registration);
  if (!located) {
    check.where.clear();
    {
      const MutexLock lock(mutex_);
      auto& known = known_[registration.name];
      if (std::exchange(known.is_current, false)) ++generation_;
    }
    return set_condition(registration, located.error());
  }
  if (check.is_under_way || (ground_.loop.now() < check.next && located->places == check.where)) return;
  check.where = located->places;
  ask(registration, located->far);
}

void Aggregator::send(const FarEnd& far, std::string path, std::function<void(net::HttpResponse)> done) {
  const auto client = relays_.clients.client_for(far);
  if (!client) return done({.status = 0, .headers = {}, .body = client.error().message});
  net::HttpRequest request;
  request.method = "GET";
  request.path = std::move(path);
  request.headers.add("Accept", "application/json");
  set_user_headers(request, {"system:kube-aggregator", "", {"system:masters"}, {}});
  (*client)->send(std::move(request), std::move(done));
}

void Aggregator::ask(const Registration& registration, const FarEnd& far) {
  checks_[registration.name].is_under_way = true;
  const auto path = fmt::format("/apis/{}/{}", registration.group, registration.version);
  send(far, path, [self = self_, &loop = ground_.loop, registration, far](net::HttpResponse response) {
    // Not within send, nor where its answers come.
    loop.post([self, registration, far, response = std::move(response)]() mutable {
      const GateLock lock(self->gate);
      if (self->aggregator != nullptr) self->aggregator->take_answer(registration, far, std::move(response));
    });
  });
}

void Aggregator::take_answer(const Registration& registration, const FarEnd& far, net::HttpResponse response) {
  const auto found = checks_.find(registration.name);
  if (found == checks_.end()) return;  // Gone, or this server's own again.
  auto& check = found->second;
  check.is_under_way = false;
  const auto url = fmt::format("{}/apis/{}/{}", far.url, registration.group, registration.version);
  std::string failure;
  if (response.status == 0)
    failure = fmt::format("Get \"{}\": {}", url, response.body);
  else if (response.status < 200 || response.status > 299)
    failure = fmt::format("bad status from {}: {}", url, response.status);
  const auto now = ground_.loop.now();
  check.next = now + (failure.empty() ? kAskAgain : kAskAgainSoon);
  {
    const MutexLock lock(mutex_);
    auto& known = known_[registration.name];
    bool is_other = known.is_current != failure.empty();
    known.is_current = failure.empty();
    if (auto list = failure.empty() ? json::parse(response.body) : Result<json::Value>(json::Value()); list && list->is_object()) {
      auto resources = json::get_array(*list, {"resources"});
      is_other = is_other || !json::equal(resources, known.resources);
      known.resources = std::move(resources);
    }
    if (is_other) ++generation_;
  }
  if (!failure.empty())
    return set_condition(registration,
                         unavailable("FailedDiscoveryCheck", fmt::format("failing or missing response from {}: {}", url, failure)));
  set_condition(registration, {"True", "Passed", "all checks passed"});
  if (now < check.next_openapi) return;
  check.next_openapi = now + kAskOpenApi;
  ask_openapi(registration.name, far, registration.group, registration.version);
}

void Aggregator::ask_openapi(const std::string& name, const FarEnd& far, const std::string& group, const std::string& version) {
  const auto keep = [self = self_, name](const std::function<bool(Known&)>& change) {
    const GateLock lock(self->gate);
    if (self->aggregator == nullptr) return;
    auto& aggregator = *self->aggregator;
    const MutexLock inner(aggregator.mutex_);
    if (const auto found = aggregator.known_.find(name); found != aggregator.known_.end() && change(found->second))
      ++aggregator.generation_;
  };
  send(far, "/openapi/v2", [keep](net::HttpResponse response) {
    const auto document = response.status == 200 ? json::parse(response.body) : Result<json::Value>(json::Value());
    const bool is_good = document && document->is_object();
    keep([&](Known& known) {
      const bool is_same = is_good ? known.openapi_v2 != nullptr && *known.openapi_v2 == response.body : known.openapi_v2 == nullptr;
      if (!is_same) known.openapi_v2 = is_good ? make_bytes(std::move(response.body)) : nullptr;
      return !is_same;
    });
  });
  send(far, "/openapi/v3", [keep, path = fmt::format("apis/{}/{}", group, version)](const net::HttpResponse& response) {
    const auto index = response.status == 200 ? json::parse(response.body) : Result<json::Value>(json::Value());
    const std::string url(index ? json::get_string(*index, {"paths", path, "serverRelativeURL"}) : std::string_view());
    keep([&](Known& known) {
      if (known.v3_url == url) return false;
      known.v3_url = url;
      return true;
    });
  });
}

void Aggregator::set_condition(const Registration& registration, const Condition& condition) {
  if (condition == Condition{registration.status, registration.reason, registration.message}) return;
  const auto& kind = *model::find_resource("apiregistration.k8s.io", "apiservices");
  const auto object = ground_.cache->get(object_key(kind, "", registration.name));
  if (object == nullptr) return;
  const auto now = read_registration(*object);
  const bool is_other_service = now.service_ns != registration.service_ns || now.service_name != registration.service_name;
  if (is_other_service || condition == Condition{now.status, now.reason, now.message}) return;
  auto document = decode_object(*object);
  model::set_condition(document, {"Available", condition.status, condition.reason, condition.message}, ground_.loop.now());
  put(ground_, kind, std::move(document), object->revision);  // Whoever was faster is looked at next.
}

void Aggregator::restore_own() {
  const auto& kind = *model::find_resource("apiregistration.k8s.io", "apiservices");
  const auto table = registrations_->table();
  // Where others serve the same objects, theirs stand: of groups that only this server knows they would answer 404.
  if (ground_.cache->is_shared() && !table->empty()) return;
  std::set<std::pair<std::string, std::string>> missing, unserved;
  for (const auto& one : model::all_kinds()) {
    if (one.group == kind.group) continue;
    if (!model::has(ground_.options.features, model::feature_of(one)))
      unserved.emplace(one.group, one.version);
    else if (!table->contains({one.group, one.version}))
      missing.emplace(one.group, one.version);
  }
  for (const auto& one : model::all_kinds())
    if (model::has(ground_.options.features, model::feature_of(one))) unserved.erase({one.group, one.version});
  // Of a version whose gate was on at an earlier start. What leads to another server is its administrator's.
  for (const auto& version : unserved) {
    const auto known = table->find(version);
    if (known == table->end() || known->second.is_remote()) continue;
    take_away(ground_, object_key(kind, "", known->second.name), known->second.revision);
  }
  for (const auto& [group, version] : missing)
    put(ground_, kind, newborn(ground_, ground_.names, kind, own_api_service(group, version, ground_.now_text())), 0);
}

std::map<std::string, Known> Aggregator::known() const {
  const MutexLock lock(mutex_);
  return known_;
}

bool Aggregator::is_remote(std::string_view group, std::string_view version) const {
  return registrations_->remote(group, version).has_value();
}

}  // namespace berth::apiserver::aggregation
