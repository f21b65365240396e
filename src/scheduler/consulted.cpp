#include "scheduler/consulted.h"

#include <fmt/format.h>

#include <map>
#include <memory>
#include <ranges>
#include <set>

#include "base/log.h"
#include "placement/cluster_kinds.h"

namespace berth::scheduler {
namespace {

/// Nodes and pods are watched for themselves; a pod has the priority of its class already.
bool is_consulted(const placement::ClusterResource& one) { return one.kind != "Node" && one.kind != "Pod" && one.kind != "PriorityClass"; }

/// Those that the table names.
auto versions_of(const placement::ClusterResource& kind) {
  return kind.versions | std::views::filter([](std::string_view version) { return !version.empty(); });
}

/// One round over all group versions; whatever fails makes another round.
struct Discovery : std::enable_shared_from_this<Discovery> {
  client::Client& client;  ///< Only while it is wanted: answers come after the component has gone, too.
  EventLoop& loop;
  std::function<bool()> is_wanted;
  std::function<void(std::vector<Consulted>)> done;
  std::map<std::string, std::set<std::string, std::less<>>> served;  ///< "/apis/policy/v1" to its resources.
  std::set<std::string> open;

  Discovery(client::Client& c, std::function<bool()> w, std::function<void(std::vector<Consulted>)> d)
      : client(c), loop(*c.loop()), is_wanted(std::move(w)), done(std::move(d)) {}

  static std::string path(std::string_view group, std::string_view version) {
    return group.empty() ? fmt::format("/api/{}", version) : fmt::format("/apis/{}/{}", group, version);
  }

  void ask() {
    if (!is_wanted()) return;
    open.clear();
    for (const auto& kind : placement::kClusterResources | std::views::filter(is_consulted))
      for (const auto version : versions_of(kind))
        if (!served.contains(path(kind.group, version))) open.insert(path(kind.group, version));
    const auto all = open;
    for (const auto& one : all) ask_one(one);
  }

  void ask_one(const std::string& where) {
    net::HttpRequest request;
    request.method = "GET";
    request.path = where;
    request.headers.add("Accept", "application/json");
    client.transport()->send(std::move(request), [self = shared_from_this(), where](net::HttpResponse response) {
      self->loop.post([self, where, response = std::move(response)] { self->answered(where, response); });
    });
  }

  void answered(const std::string& where, const net::HttpResponse& response) {
    if (!is_wanted()) return;
    if (response.status == 200) {
      const auto list = json::parse(response.body);
      auto& resources = served[where];
      if (list)
        for (const json::Value& one : json::get_array(*list, {"resources"})) resources.emplace(json::get_string(one, {"name"}));
    } else if (response.status == 404) {
      served[where];
    } else if (response.status == 403) {
      // Whoever may not ask may still be allowed to read: the newest version it is.
      auto& resources = served[where];
      for (const auto& kind : placement::kClusterResources | std::views::filter(is_consulted))
        if (path(kind.group, kind.versions.front()) == where) resources.emplace(kind.plural);
    } else {
      log::warning("scheduler", "asking the server for {}: {}", where,
                   response.status == 0 ? response.body : fmt::format("HTTP {}", response.status));
    }
    open.erase(where);
    if (!open.empty()) return;
    for (const auto& kind : placement::kClusterResources | std::views::filter(is_consulted))
      for (const auto version : versions_of(kind))
        if (!served.contains(path(kind.group, version))) {
          loop.schedule_after(std::chrono::seconds(1), [self = shared_from_this()] { self->ask(); });
          return;
        }
    finish();
  }

  void finish() {
    std::vector<Consulted> out;
    for (const auto& kind : placement::kClusterResources | std::views::filter(is_consulted)) {
      auto versions = versions_of(kind);
      auto version = std::ranges::find_if(versions, [&](auto one) { return served[path(kind.group, one)].contains(kind.plural); });
      if (version == versions.end() && kind.is_custom) version = versions.begin();
      if (version != versions.end())
        out.push_back({std::string(kind.kind), {std::string(kind.group), std::string(*version), std::string(kind.plural)}, kind.event});
      else
        log::info("scheduler", "the server has no {}: done without", kind.plural);
    }
    done(std::move(out));
  }
};

}  // namespace

void discover_consulted(client::Client& client, std::function<bool()> is_wanted, std::function<void(std::vector<Consulted>)> done) {
  std::make_shared<Discovery>(client, std::move(is_wanted), std::move(done))->ask();
}

}  // namespace berth::scheduler
