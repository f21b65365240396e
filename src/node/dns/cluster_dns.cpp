#include "node/dns/cluster_dns.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <charconv>
#include <set>
#include <thread>

#include "base/lifeline.h"
#include "base/log.h"
#include "base/mutex.h"
#include "client/informer.h"
#include "node/agent/cgroups.h"
#include "node/agent/pod_network.h"
#include "node/dns/names.h"
#include "node/dns/recursor.h"

namespace berth::node::dns {
namespace {

const model::Gvr kServices{"", "v1", "services"}, kSlices{"discovery.k8s.io", "v1", "endpointslices"}, kNamespaces{"", "v1", "namespaces"};
constexpr std::string_view kSystem = "kube-system", kService = "kube-dns", kServiceOf = "service";
constexpr Duration kPause = std::chrono::milliseconds(50), kLook = std::chrono::seconds(3), kLongestPause = std::chrono::seconds(2);
constexpr std::size_t kAnswerRoom = 512;  // The recursor reads no more of a datagram.
constexpr std::string_view kOwner = "berth";
constexpr std::string_view kManagedBy = "app.kubernetes.io/managed-by";

std::string key_of(std::string_view ns, std::string_view name) { return fmt::format("{}/{}", ns, name); }
std::string slice_service(const client::Object& slice) {
  return key_of(slice.ns(), json::get_string(*slice.parsed(), {"metadata", "labels", "kubernetes.io/service-name"}));
}

json::Object labels() { return {{"k8s-app", kService}, {"kubernetes.io/cluster-service", "true"}, {kManagedBy, kOwner}}; }

/// The tenth address of the Services' range, where kubeadm puts it, by the API server's own, which is the first; empty: unknown.
std::string usual_address(client::Client& blocking) {
  const auto api = blocking.get_and_wait(kServices, "default", "kubernetes");
  in_addr address{};
  if (!api || ::inet_pton(AF_INET, std::string(json::get_string(*api, {"spec", "clusterIP"})).c_str(), &address) != 1) return {};
  address.s_addr = htonl(ntohl(address.s_addr) + 9);
  char text[INET_ADDRSTRLEN];
  return ::inet_ntop(AF_INET, &address, text, sizeof text);
}

json::Value service_document(const std::string& cluster_ip) {
  json::Object all = labels();
  all["kubernetes.io/name"] = "berth-dns";
  json::Object spec{{"type", "ClusterIP"}, {"internalTrafficPolicy", "Local"}, {"ipFamilyPolicy", "SingleStack"}};
  if (!cluster_ip.empty()) spec["clusterIP"] = cluster_ip;
  spec["ports"] = json::Array{json::Object{{"name", "dns"}, {"port", 53}, {"protocol", "UDP"}},
                              json::Object{{"name", "dns-tcp"}, {"port", 53}, {"protocol", "TCP"}}};
  return json::Object{{"apiVersion", "v1"},
                      {"kind", "Service"},
                      {"metadata", json::Object{{"namespace", kSystem}, {"name", kService}, {"labels", std::move(all)}}},
                      {"spec", std::move(spec)}};
}

std::string complaint(const model::ApiStatus& status) { return status.message; }

}  // namespace

struct ClusterDns::Impl : Guarded<Impl> {
  Impl(client::Client& c, ClusterDnsOptions o)
      : client(c), options(std::move(o)), names(options.domain), services(c, kServices), slices(c, kSlices), namespaces(c, kNamespaces) {}

  ~Impl() {
    if (responder.joinable()) {
      const std::uint64_t one = 1;
      (void)!::write(wake, &one, sizeof one);
      responder.join();
    }
    if (socket >= 0) ::close(socket);
    if (wake >= 0) ::close(wake);
    if (has_address) remove_own_address(options.directory);
  }

  // ---- the Service before us

  /// The Service's address; `is_ours` false: it is of somebody else.
  Result<std::string> ensure_service(client::Client& blocking, bool& is_ours) const {
    auto found = blocking.get_and_wait(kServices, std::string(kSystem), std::string(kService));
    if (!found) {
      found = blocking.create_and_wait(kServices, std::string(kSystem), service_document(usual_address(blocking)));
      // The address is somebody else's.
      if (!found && found.error().code == 422) found = blocking.create_and_wait(kServices, std::string(kSystem), service_document(""));
    }
    if (!found) return fail(ErrorCode::kUnavailable, fmt::format("the Service kube-system/kube-dns: {}", complaint(found.error())));
    is_ours = json::get_string(*found, {"metadata", "labels", kManagedBy}) == kOwner;
    return std::string(json::get_string(*found, {"spec", "clusterIP"}));
  }

  /// This node's endpoint of the Service, as it is now.
  Result<void> publish(client::Client& blocking) const {
    const std::string name = fmt::format("{}-{}", kService, options.node);
    json::Object all = labels();
    all["kubernetes.io/service-name"] = kService;
    all["endpointslice.kubernetes.io/managed-by"] = kOwner;
    const auto port = [this](const char* port_name, const char* protocol) {
      return json::Object{{"name", port_name}, {"protocol", protocol}, {"port", recursor_options.port}};
    };
    const json::Object endpoint{{"addresses", json::Array{json::Value(recursor_options.address)}},
                                {"nodeName", options.node},
                                {"conditions", json::Object{{"ready", true}, {"serving", true}, {"terminating", false}}}};
    client::Call call{
        .verb = "patch", .gvr = kSlices, .ns = std::string(kSystem), .name = name, .query = "fieldManager=berth-dns&force=true"};
    call.content_type = "application/apply-patch+yaml";
    call.body = json::serialize(json::Object{{"apiVersion", "discovery.k8s.io/v1"},
                                             {"kind", "EndpointSlice"},
                                             {"metadata", json::Object{{"namespace", kSystem}, {"name", name}, {"labels", std::move(all)}}},
                                             {"addressType", "IPv4"},
                                             {"endpoints", json::Array{endpoint}},
                                             {"ports", json::Array{port("dns", "UDP"), port("dns-tcp", "TCP")}}});
    const auto done = blocking.call_and_wait(std::move(call));
    if (!done) return fail(ErrorCode::kUnavailable, fmt::format("the EndpointSlice kube-system/{}: {}", name, complaint(done.error())));
    return {};
  }

  // ---- the program

  Result<void> open() {
    if (recursor_program().empty()) return fail(ErrorCode::kUnavailable, "pdns_recursor is missing (package pdns-recursor)");
    if (auto added = add_own_address(options.directory); !added) return added;
    has_address = true;
    socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    wake = ::eventfd(0, EFD_CLOEXEC);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    if (::bind(socket, reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0 ||
        ::getsockname(socket, reinterpret_cast<sockaddr*>(&at), &size) != 0)
      return fail(ErrorCode::kUnavailable, fmt::format("a port for questions: {}", std::strerror(errno)));
    recursor_options.directory = runtime_directory(options.directory);
    recursor_options.address = own_address(options.directory);
    recursor_options.backend_port = ntohs(at.sin_port);
    recursor_options.domain = options.domain;
    recursor_options.upstream = upstream();
    if (!can_bind(recursor_options.address, recursor_options.port)) recursor_options.port = free_port(recursor_options.address);
    if (recursor_options.port == 0) return fail(ErrorCode::kUnavailable, fmt::format("no free port at {}", recursor_options.address));
    responder = std::thread([this] { answer_questions(); });
    return recursor.start(recursor_options);
  }

  [[nodiscard]] std::vector<std::string> upstream() const {
    auto servers = agent::parse_resolv_conf(agent::read_small_file(options.resolv_conf).value_or("")).servers;
    std::erase_if(servers, [](const std::string& one) { return one.find('%') != std::string::npos; });
    return servers;
  }

  /// Starts it again when it has ended, or when the machine asks others than before (a laptop in another network).
  void look_after() {
    auto now = upstream();
    if (!recursor.is_running() || now != recursor_options.upstream) {
      log::info("dns", "{}",
                now != recursor_options.upstream ? "the machine asks other name servers now" : "the name server ended; it starts again");
      recursor_options.upstream = std::move(now);
      if (const auto started = recursor.start(recursor_options); !started) log::error("dns", "{}", started.error().message);
    }
    client.loop()->schedule_after(kLook, guarded(&Impl::look_after));
  }

  void answer_questions() {
    char question[1024];
    pollfd waited[] = {{socket, POLLIN, 0}, {wake, POLLIN, 0}};
    while (::poll(waited, 2, -1) >= 0 || errno == EINTR) {
      if ((waited[1].revents & POLLIN) != 0) return;
      sockaddr_in from{};
      socklen_t size = sizeof from;
      const auto got = ::recvfrom(socket, question, sizeof question, MSG_DONTWAIT, reinterpret_cast<sockaddr*>(&from), &size);
      if (got <= 0) continue;
      const std::string answer = reply_to({question, static_cast<std::size_t>(got)});
      (void)::sendto(socket, answer.data(), answer.size(), 0, reinterpret_cast<const sockaddr*>(&from), size);
    }
  }

  /// "FROM TYPE NAME"
  std::string reply_to(std::string_view question) {
    std::size_t from = 0;
    std::uint16_t type = 0;
    const char* const end = question.data() + question.size();
    const auto first = std::from_chars(question.data(), end, from);
    if (first.ec != std::errc() || first.ptr == end) return "2 0 0\n";
    const auto second = std::from_chars(first.ptr + 1, end, type);
    if (second.ec != std::errc() || second.ptr == end) return "2 0 0\n";
    const MutexLock lock(mutex);
    return pages.answer(names, {second.ptr + 1, end}, type, from, kAnswerRoom);
  }

  // ---- what the names are made of

  void watch() {
    slices.add_index(std::string(kServiceOf), [](const client::Object& slice) { return std::vector{slice_service(slice)}; });
    const auto follow = [this](client::Informer& informer, const auto& key) {
      const auto changed = guarded([key](Impl& self, const client::ObjectRef& object) { self.note(key(*object)); });
      informer.add_handler({.on_add = changed,
                            .on_update = [changed](const client::ObjectRef&, const client::ObjectRef& now) { changed(now); },
                            .on_delete = changed});
      informer.start();
    };
    follow(services, [](const client::Object& service) { return key_of(service.ns(), service.name()); });
    follow(slices, slice_service);
    namespaces.add_handler(
        {.on_add = [this](const client::ObjectRef& ns) { locked([&]() BERTH_REQUIRES(mutex) { names.add_namespace(ns->name()); }); },
         .on_update = [](const client::ObjectRef&, const client::ObjectRef&) {},
         .on_delete = [this](const client::ObjectRef& ns) { locked([&]() BERTH_REQUIRES(mutex) { names.erase_namespace(ns->name()); }); }});
    namespaces.start();
  }

  void locked(const auto& change) BERTH_EXCLUDES(mutex) {
    const MutexLock lock(mutex);
    change();
  }

  void note(std::string key) {
    dirty.insert(std::move(key));
    if (is_due) return;
    is_due = true;
    client.loop()->schedule_after(pause, guarded(&Impl::apply));
  }

  /// A Service is taken anew with all its endpoints: where that costs much, changes are gathered for longer.
  void apply() {
    const auto start = std::chrono::steady_clock::now();
    is_due = false;
    for (const std::string& key : std::exchange(dirty, {})) {
      const auto slash = key.find('/');
      const std::string ns = key.substr(0, slash), name = key.substr(slash + 1);
      const auto service = services.get(ns, name);
      std::vector<std::shared_ptr<const json::Value>> held;
      std::vector<const json::Value*> documents;
      for (const auto& slice : slices.by_index(kServiceOf, key)) {
        held.push_back(slice->parsed());
        documents.push_back(held.back().get());
      }
      const auto document = service ? service->parsed() : nullptr;
      locked([&]() BERTH_REQUIRES(mutex) { document ? names.set_service(*document, documents) : names.erase_service(ns, name); });
    }
    const auto took = std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now() - start);
    pause = std::clamp(20 * took, kPause, kLongestPause);
  }

  client::Client& client;
  const ClusterDnsOptions options;
  Mutex mutex;
  Names names BERTH_GUARDED_BY(mutex);
  Pages pages BERTH_GUARDED_BY(mutex);
  client::Informer services, slices, namespaces;
  std::set<std::string> dirty;
  Duration pause = kPause;
  bool is_due = false, has_address = false;
  int socket = -1, wake = -1;
  std::thread responder;
  RecursorOptions recursor_options;
  Recursor recursor;
};

ClusterDns::ClusterDns(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
ClusterDns::~ClusterDns() = default;

Result<std::unique_ptr<ClusterDns>> ClusterDns::start(client::Client& client, client::Client& blocking, ClusterDnsOptions options,
                                                      std::string& cluster_ip) {
  auto impl = std::make_shared<Impl>(client, std::move(options));
  // What the machine lacks is found out before anything is written.
  bool is_ours = true;
  const bool is_able = !recursor_program().empty();
  if (!is_able) {
    const auto found = blocking.get_and_wait(kServices, std::string(kSystem), std::string(kService));
    if (!found || json::get_string(*found, {"metadata", "labels", kManagedBy}) == kOwner)
      return fail(ErrorCode::kUnavailable, "pdns_recursor is missing (package pdns-recursor)");
  }
  const auto address = impl->ensure_service(blocking, is_ours);
  if (!address) return std::unexpected(address.error());
  if (!is_ours) {
    cluster_ip = *address;
    return nullptr;
  }
  if (auto opened = impl->open(); !opened) return std::unexpected(opened.error());
  if (auto published = impl->publish(blocking); !published) return std::unexpected(published.error());
  cluster_ip = *address;
  impl->watch();
  impl->look_after();
  return std::unique_ptr<ClusterDns>(new ClusterDns(std::move(impl)));
}

}  // namespace berth::node::dns
