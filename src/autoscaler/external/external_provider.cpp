#include "autoscaler/external/external_provider.h"

#include <fmt/format.h>

#include <algorithm>

#include "autoscaler/cluster_cache.h"
#include "autoscaler/expander.h"
#include "autoscaler/external/protocol.h"
#include "autoscaler/external/provider_state.h"
#include "autoscaler/scale_up.h"
#include "base/config_reader.h"
#include "base/lifeline.h"

namespace berth::autoscaler {
namespace {

using external::KnownNode;
using external::KnownPod;

KnownNode known_node(const std::string& name, const json::Value* document, bool is_ready) {
  KnownNode out{.name = name, .is_ready = is_ready};
  if (document == nullptr) return out;
  out.provider_id = json::get_string(*document, {"spec", "providerID"});
  if (const json::Value* labels = json::find(*document, {"metadata", "labels"})) out.labels = *labels;
  if (const json::Value* annotations = json::find(*document, {"metadata", "annotations"})) out.annotations = *annotations;
  return out;
}

/// One of each shape of pods that wait, with what it asks for.
std::vector<KnownPod> known_pods(const PodMap& unplaced) {
  constexpr std::size_t kMostShapes = 50;
  std::map<std::string, json::Value> found;
  for (const auto& [key, pod] : unplaced) {
    if (!pod->facts.is_unschedulable) continue;
    const placement::Resource& wanted = pod->info->wanted();
    std::string shape = shape_of(wanted);
    if (found.contains(shape)) continue;
    if (found.size() >= kMostShapes) return {};
    json::Object requests{{"cpu", fmt::format("{}m", wanted.cpu_milli)}, {"memory", std::to_string(wanted.memory_bytes)}};
    for (const auto& [name, amount] : wanted.scalars) requests[name] = std::to_string(amount);
    json::Object container{{"name", "all"}, {"resources", json::Object{{"requests", std::move(requests)}}}};
    json::Object metadata{{"namespace", pod->view().ns()}, {"name", pod->view().name()}};
    found.emplace(std::move(shape), json::Object{{"apiVersion", "v1"},
                                                 {"kind", "Pod"},
                                                 {"metadata", std::move(metadata)},
                                                 {"spec", json::Object{{"containers", json::Array{std::move(container)}}}}});
  }
  std::vector<KnownPod> out;
  for (auto& [shape, document] : found) out.push_back({shape, std::move(document)});
  return out;
}

class ExternalProvider final : public Provider {
 public:
  ExternalProvider(std::unique_ptr<external::Channel> channel, Duration timeout, EventLoop& loop, const ClusterCache& cache)
      : channel_(std::move(channel)),
        timeout_ms_(static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(timeout).count())),
        loop_(loop),
        cache_(cache),
        worker_("external-provider") {}
  ~ExternalProvider() override {
    lifeline_.end();
    worker_.stop();
    (void)ask("Cleanup", json::Object{}, std::min(timeout_ms_, 1000));
  }
  ExternalProvider(const ExternalProvider&) = delete;
  ExternalProvider& operator=(const ExternalProvider&) = delete;

  void refresh(const Options& options, std::function<void(std::optional<ProviderState>)> done) override {
    std::vector<KnownNode> nodes;
    for (const auto& [name, facts] : cache_.nodes()) nodes.push_back(known_node(name, cache_.find("Node", "", name), facts.is_ready));
    const bool asks_for_prices = std::ranges::find(options.expanders, Expander::kPrice) != options.expanders.end();
    std::vector<KnownPod> pods = asks_for_prices ? known_pods(cache_.unplaced_pods()) : std::vector<KnownPod>();
    worker_.post([this, nodes = std::move(nodes), pods = std::move(pods), options, now = loop_.now(), done = std::move(done)] {
      const external::Ask ask_it = [this](std::string_view method, const json::Value& request) {
        return ask(method, request, timeout_ms_);
      };
      auto state = std::make_shared<ProviderState>(external::read_state(ask_it, nodes, options, now, memory_, pods));
      answer([state, done] { done(std::move(*state)); });
    });
  }

  void grow(const Resize& resize, Done done) override {
    // Not repeated when no answer comes: it may have been done. The next pass reads the size anew.
    send("NodeGroupIncreaseSize", json::Object{{"id", resize.group}, {"delta", resize.to - resize.from}}, std::move(done));
  }
  void give_up(const Resize& resize, Done done) override {
    send("NodeGroupDecreaseTargetSize", json::Object{{"id", resize.group}, {"delta", resize.to - resize.from}}, std::move(done));
  }
  void remove(const std::string& group, const std::string& instance, const std::string& node, Done done) override {
    KnownNode leaving = known_node(node.empty() ? instance : node, cache_.find("Node", "", node), false);
    leaving.provider_id = instance;
    json::Object request{{"id", group}, {"nodes", json::Array{external::to_message(leaving)}}};
    worker_.post([this, instance, request = std::move(request), done = std::move(done)] {
      const auto result = ask("NodeGroupDeleteNodes", request, timeout_ms_);
      if (result) memory_.removed.insert(instance);
      answer([done, error = result ? "" : result.error().message] { done(error); });
    });
  }

 private:
  Result<json::Value> ask(std::string_view method, const json::Value& request, int timeout_ms) {
    return channel_->call(fmt::format("{}/{}", external::kProvider, method), request, timeout_ms);
  }
  void send(std::string method, json::Value request, Done done) {
    worker_.post([this, method = std::move(method), request = std::move(request), done = std::move(done)] {
      const auto result = ask(method, request, timeout_ms_);
      answer([done, error = result ? "" : result.error().message] { done(error); });
    });
  }
  /// On the autoscaler's loop, while this lives.
  void answer(std::function<void()> task) { loop_.post(lifeline_.guard(std::move(task))); }

  std::unique_ptr<external::Channel> channel_;
  const int timeout_ms_;
  EventLoop& loop_;
  const ClusterCache& cache_;
  external::Memory memory_;  ///< The worker's.
  Lifeline lifeline_;
  ThreadLoop worker_;  ///< Last: what it runs uses the others.
};

}  // namespace

Result<ExternalProviderConfig> ExternalProviderConfig::load(const std::string& path) {
  const auto text = config::read_whole_file(path);
  if (!text) return std::unexpected(text.error());
  ExternalProviderConfig out;
  std::string key, certificate, ca;
  const auto read = config::read_text(*text, {.file = path}, [&](const config::Reader& root) {
    if (!root.expect_object()) return;
    root.only({"address", "key", "cert", "cacert", "grpc_timeout"});
    out.address.address = root.string("address");
    const std::size_t colon = out.address.address.rfind(':');
    if (colon == std::string::npos || colon + 1 == out.address.address.size())
      root.problem("address", fmt::format("\"{}\" is not host:port", out.address.address));
    key = root.string("key");
    certificate = root.string("cert");
    ca = root.string("cacert");
    if (certificate.empty() != key.empty()) root.problem(key.empty() ? "key" : "cert", "cert and key go together");
    if (!certificate.empty() && ca.empty()) root.problem("cacert", "required with cert: who signs the provider's certificate");
    const std::int64_t timeout = root.duration_ms("grpc_timeout", 5000);
    if (timeout < 1) root.problem("grpc_timeout", "must be more than nothing");
    out.timeout = std::chrono::milliseconds(timeout);
  });
  if (!read) return std::unexpected(read.error());
  for (const auto& [file, target] : {std::pair(&key, &out.address.key_pem), std::pair(&certificate, &out.address.certificate_pem),
                                     std::pair(&ca, &out.address.ca_pem)}) {
    if (file->empty()) continue;
    auto content = config::read_whole_file(*file);
    if (!content) return std::unexpected(content.error());
    *target = std::move(*content);
  }
  return out;
}

std::shared_ptr<Provider> make_external_provider(std::unique_ptr<external::Channel> channel, Duration timeout, EventLoop& loop,
                                                 const ClusterCache& cache) {
  return std::make_shared<ExternalProvider>(std::move(channel), timeout, loop, cache);
}

Result<std::shared_ptr<Provider>> connect_external_provider(const ExternalProviderConfig& config, EventLoop& loop,
                                                            const ClusterCache& cache) {
  auto channel = external::Channel::open(config.address, external::kProviderProto);
  if (!channel) return std::unexpected(channel.error());
  return make_external_provider(std::move(*channel), config.timeout, loop, cache);
}

}  // namespace berth::autoscaler
