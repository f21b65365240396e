#include "node/metrics_api.h"

#include "base/event_loop.h"
#include "client/client.h"
#include "model/quantity.h"
#include "node/request_path.h"

namespace berth::node {
namespace {

using Writer = std::shared_ptr<net::ResponseWriter>;
constexpr Duration kFresh = std::chrono::seconds(10);
constexpr Duration kSummaryTimeout = std::chrono::seconds(10);

void respond(net::ResponseWriter& writer, int status, const json::Value& body) {
  net::HttpResponse response;
  response.status = status;
  response.headers.add("Content-Type", "application/json");
  response.body = json::serialize(body);
  writer.respond(std::move(response));
}

std::int64_t number(const json::Value& object, json::Path path) {
  const json::Value* value = json::find(object, path);
  if (!value || !value->is_number()) return 0;
  return value->to_number<std::int64_t>();
}

json::Object usage_of(const json::Value& stats) {
  return {{"cpu", fmt::format("{}n", number(stats, {"cpu", "usageNanoCores"}))},
          {"memory", fmt::format("{}Ki", number(stats, {"memory", "workingSetBytes"}) / 1024)}};
}

json::Object meta_of(const json::Value& object) {
  json::Object meta{{"name", json::get_string(object, {"metadata", "name"})}};
  if (const std::string_view ns = json::get_string(object, {"metadata", "namespace"}); !ns.empty()) meta["namespace"] = ns;
  if (const json::Object& labels = json::get_object(object, {"metadata", "labels"}); !labels.empty()) meta["labels"] = labels;
  return meta;
}

}  // namespace

struct MetricsApi::Impl : std::enable_shared_from_this<Impl> {
  ThreadLoop loop{"metrics"};
  std::unique_ptr<client::Client> client;  ///< On the loop.
  struct Cached {
    TimePoint at{};
    json::Value summary;
  };
  std::map<std::string, Cached> summaries;
  std::map<std::string, TimePoint> asked;  ///< Nodes that owe an answer, and since when: too long, and they are not asked again meanwhile.

  bool is_silent(const std::string& node) {
    const auto found = asked.find(node);
    return found != asked.end() && found->second + kSummaryTimeout < loop.now();
  }

  using ManyDone = std::function<void()>;

  /// Brings the summaries of these nodes up to date, at most a few at once; nodes that do not answer have none.
  void refresh(std::set<std::string> nodes, ManyDone done) {
    auto left = std::make_shared<std::vector<std::string>>();
    for (const std::string& node : nodes)
      if (summaries[node].at + kFresh < loop.now() && !is_silent(node)) left->push_back(node);
    if (left->empty()) return done();
    auto under_way = std::make_shared<int>(0);
    auto step = std::make_shared<std::function<void()>>();
    *step = [self = shared_from_this(), left, under_way, done = std::move(done), weak = std::weak_ptr<std::function<void()>>(step)] {
      const auto again = weak.lock();
      while (!left->empty() && *under_way < 32) {
        const std::string node = left->back();
        left->pop_back();
        ++*under_way;
        auto is_counted = std::make_shared<bool>(false);
        const auto count = [under_way, again, is_counted] {
          if (std::exchange(*is_counted, true)) return;
          --*under_way;
          (*again)();
        };
        // A node that takes the question and never answers is waited for once, and not for long.
        const auto too_late = self->loop.schedule_at(self->loop.now() + kSummaryTimeout, count);
        self->asked.emplace(node, self->loop.now());
        client::Call call{.verb = "get", .gvr = {"", "v1", "nodes"}, .name = node, .subresource = "proxy/stats/summary"};
        self->client->call(std::move(call), [self, node, count, too_late](client::ApiResult<json::Value> result) {
          Cached& cached = self->summaries[node];
          cached.at = self->loop.now();
          cached.summary = result ? std::move(*result) : json::Value(nullptr);
          self->asked.erase(node);
          self->loop.cancel(too_late);
          count();
        });
      }
      if (left->empty() && *under_way == 0 && done) done();
    };
    (*step)();
  }

  void answer(const net::HttpRequest& request, const Writer& writer) {
    if (!client)
      return respond(*writer, 503, model::ApiStatus{503, "ServiceUnavailable", "the metrics service is not connected"}.to_json());
    // /apis/metrics.k8s.io/v1beta1/nodes[/NAME], …/pods, …/namespaces/NS/pods[/NAME]
    const std::vector<std::string> path = split_path(request.path);
    std::string selector;
    for (const auto& [key, value] : net::parse_query(request.query))
      if (key == "labelSelector") selector = value;
    if (path.size() >= 4 && path[3] == "nodes") return nodes(path.size() > 4 ? path[4] : "", selector, writer);
    if (path.size() == 4 && path[3] == "pods") return pods("", "", selector, writer);
    if (path.size() >= 6 && path[3] == "namespaces" && path[5] == "pods")
      return pods(path[4], path.size() > 6 ? path[6] : "", selector, writer);
    respond(*writer, 404, model::ApiStatus{404, "NotFound", "the server could not find the requested resource"}.to_json());
  }

  void list(const std::string& resource, const std::string& ns, const std::string& name, const std::string& selector,
            std::function<void(client::ApiResult<client::ListPage>)> done) {
    client::ListOptions options;
    options.label_selector = selector;
    if (!name.empty()) options.field_selector = "metadata.name=" + name;
    client->list({"", "v1", resource}, ns, options, std::move(done));
  }

  void nodes(const std::string& name, const std::string& selector, const Writer& writer) {
    list("nodes", "", name, selector, [self = shared_from_this(), name, writer](client::ApiResult<client::ListPage> page) {
      if (!page) return respond(*writer, page.error().code ? page.error().code : 503, page.error().to_json());
      auto items = std::make_shared<std::vector<json::Value>>(std::move(page->items));
      std::set<std::string> wanted;
      for (const json::Value& node : *items) wanted.emplace(json::get_string(node, {"metadata", "name"}));
      self->refresh(std::move(wanted), [self, items, name, writer] {
        json::Array out;
        for (const json::Value& node : *items) {
          const json::Value& summary = self->summaries[std::string(json::get_string(node, {"metadata", "name"}))].summary;
          const json::Value* stats = json::find(summary, "node");
          if (!stats) continue;
          json::Object entry = self->header("NodeMetrics", node);
          entry["usage"] = usage_of(*stats);
          out.push_back(std::move(entry));
        }
        self->finish("NodeMetricsList", "nodes", name, std::move(out), writer);
      });
    });
  }

  void pods(const std::string& ns, const std::string& name, const std::string& selector, const Writer& writer) {
    list("pods", ns, name, selector, [self = shared_from_this(), name, writer](client::ApiResult<client::ListPage> page) {
      if (!page) return respond(*writer, page.error().code ? page.error().code : 503, page.error().to_json());
      auto items = std::make_shared<std::vector<json::Value>>(std::move(page->items));
      std::set<std::string> wanted;
      for (const json::Value& pod : *items)
        if (json::get_string(pod, {"status", "phase"}) == "Running") wanted.emplace(json::get_string(pod, {"spec", "nodeName"}));
      self->refresh(std::move(wanted), [self, items, name, writer] {
        std::map<std::string, const json::Value*> by_uid;
        std::set<std::string> indexed;
        json::Array out;
        for (const json::Value& pod : *items) {
          const std::string node(json::get_string(pod, {"spec", "nodeName"}));
          if (json::get_string(pod, {"status", "phase"}) != "Running") continue;
          if (indexed.insert(node).second)
            for (const json::Value& stats : json::get_array(self->summaries[node].summary, {"pods"}))
              by_uid[std::string(json::get_string(stats, {"podRef", "uid"}))] = &stats;
          const auto stats = by_uid.find(std::string(json::get_string(pod, {"metadata", "uid"})));
          if (stats == by_uid.end()) continue;
          json::Object entry = self->header("PodMetrics", pod);
          json::Array containers;
          for (const json::Value& container : json::get_array(*stats->second, {"containers"}))
            containers.push_back(json::Object{{"name", json::get_string(container, {"name"})}, {"usage", usage_of(container)}});
          entry["containers"] = std::move(containers);
          out.push_back(std::move(entry));
        }
        self->finish("PodMetricsList", "pods", name, std::move(out), writer);
      });
    });
  }

  json::Object header(std::string_view kind, const json::Value& object) {
    json::Object entry{{"kind", kind}, {"apiVersion", "metrics.k8s.io/v1beta1"}, {"metadata", meta_of(object)}};
    entry["metadata"].as_object()["creationTimestamp"] = format_rfc3339(loop.now());
    entry["timestamp"] = format_rfc3339(loop.now());
    entry["window"] = "10s";
    return entry;
  }

  void finish(std::string_view kind, const char* resource, const std::string& name, json::Array items, const Writer& writer) {
    if (name.empty())
      return respond(
          *writer, 200,
          json::Object{
              {"kind", kind}, {"apiVersion", "metrics.k8s.io/v1beta1"}, {"metadata", json::Object{}}, {"items", std::move(items)}});
    if (items.empty()) return respond(*writer, 404, model::not_found("metrics.k8s.io", resource, name).to_json());
    respond(*writer, 200, items[0]);
  }
};

MetricsApi::MetricsApi() : impl_(std::make_shared<Impl>()) {}

MetricsApi::~MetricsApi() { stop(); }

void MetricsApi::connect(std::shared_ptr<client::Transport> transport) {
  impl_->loop.post([impl = impl_.get(), transport = std::move(transport)] {
    impl->client = std::make_unique<client::Client>(transport, &impl->loop, "berth-metrics");
  });
}

void MetricsApi::stop() { impl_->loop.stop(); }

void MetricsApi::handle(net::HttpRequest request, Writer writer) {
  impl_->loop.post([impl = impl_.get(), request = std::move(request), writer = std::move(writer)] { impl->answer(request, writer); });
}

}  // namespace berth::node
