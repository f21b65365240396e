#include "node/simulated/kubelet_endpoints.h"

#include "base/split.h"
#include "model/api_status.h"
#include "node/simulated/pod_sessions.h"

namespace berth::node::simulated {
namespace {

void respond_text(net::ResponseWriter& writer, int status, std::string body) {
  net::HttpResponse response;
  response.status = status;
  response.headers.add("Content-Type", "text/plain; charset=utf-8");
  response.body = std::move(body);
  writer.respond(std::move(response));
}

/// A Status, because that is what clients show of a refused upgrade.
void respond_simulated(net::ResponseWriter& writer, const std::string& node) {
  model::ApiStatus status;
  status.code = 501;
  status.reason = "NotImplemented";
  status.message = fmt::format(
      "node {} is simulated: no process runs there to talk to. Pods of a real node (berth up --real-node on, or berth node) can be", node);
  net::HttpResponse response;
  response.status = status.code;
  response.headers.add("Content-Type", "application/json");
  response.body = json::serialize(status.to_json());
  writer.respond(std::move(response));
}

/// The last `lines` lines of a text.
std::string_view tail(std::string_view text, std::int64_t lines) {
  if (lines <= 0) return {};
  std::size_t at = text.size();
  while (at > 0 && lines >= 0) {
    if (text[at - 1] == '\n' && at != text.size() && --lines == 0) break;
    --at;
  }
  return text.substr(at);
}

void answer_logs(const Fleet& fleet, const std::vector<std::string_view>& path, const net::HttpRequest& request,
                 net::ResponseWriter& writer) {
  const PodSimulation* pod = fleet.find_pod(path[1], path[2]);
  if (!pod) return respond_text(writer, 404, fmt::format("pod {}/{} does not exist on this node\n", path[1], path[2]));
  bool timestamps = false;
  std::optional<std::int64_t> tail_lines;
  for (const auto& [key, value] : net::parse_query(request.query)) {
    if (key == "timestamps") timestamps = value == "true" || value == "1";
    if (key != "tailLines") continue;
    std::int64_t lines = 0;
    if (std::from_chars(value.data(), value.data() + value.size(), lines).ec == std::errc()) tail_lines = lines;
  }
  const auto& containers = pod->spec().containers;
  for (std::size_t i = 0; i < containers.size(); ++i) {
    if (containers[i].name != path[3]) continue;
    const ContainerRecord& record = pod->state().containers[i];
    if (record.state.kind == ContainerState::Kind::kWaiting && !record.last)
      return respond_text(writer, 400,
                          fmt::format("container \"{}\" in pod \"{}\" is waiting to start: {}\n", path[3], path[2], record.state.reason));
    const std::string text = pod->log(i, timestamps);
    return respond_text(writer, 200, std::string(tail_lines ? tail(text, *tail_lines) : std::string_view(text)));
  }
  respond_text(writer, 404, fmt::format("container {} is not valid for pod {}\n", path[3], path[2]));
}

void answer_session(const Fleet& fleet, const std::vector<std::string_view>& path, const net::HttpRequest& request,
                    net::ResponseWriter& writer, TimePoint now) {
  const PodSimulation* pod = fleet.find_pod(path[1], path[2]);
  if (!pod) return respond_text(writer, 404, fmt::format("pod {}/{} does not exist on this node\n", path[1], path[2]));
  const auto& containers = pod->spec().containers;
  for (std::size_t i = 0; i < containers.size(); ++i) {
    if (containers[i].name != path[3]) continue;
    if (pod->state().containers[i].state.kind != ContainerState::Kind::kRunning)
      return respond_text(writer, 500, fmt::format("container not found (\"{}\")\n", path[3]));
    return answer_exec({pod->spec().uid, std::string(path[2]), std::string(path[1]), std::string(path[3])}, request, writer, now);
  }
  respond_text(writer, 500, fmt::format("container not found (\"{}\")\n", path[3]));
}

}  // namespace

void answer_kubelet_request(const Fleet& fleet, const std::string& node, const net::HttpRequest& request, net::ResponseWriter& writer,
                            TimePoint now) {
  const std::vector<std::string_view> path = words(request.path, '/').list();
  if (path.size() == 4 && path[0] == "containerLogs") return answer_logs(fleet, path, request, writer);
  if (path.size() == 2 && path[0] == "stats" && path[1] == "summary") {
    net::HttpResponse response;
    response.headers.add("Content-Type", "application/json");
    response.body = json::serialize(fleet.summary(node, now));
    return writer.respond(std::move(response));
  }
  if (path.size() == 1 && path[0] == "healthz") return respond_text(writer, 200, "ok");
  if (path.size() == 4 && path[0] == "exec") return answer_session(fleet, path, request, writer, now);
  if (!path.empty() && (path[0] == "exec" || path[0] == "attach" || path[0] == "portForward" || path[0] == "run"))
    return respond_simulated(writer, node);
  respond_text(writer, 404, "404 page not found\n");
}

}  // namespace berth::node::simulated
