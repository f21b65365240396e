#include "tests/fuzz/requests.h"

#include <cstdio>
#include <cstdlib>

#include "model/kinds.h"

namespace berth::fuzz {
namespace {

std::string_view media_type(std::string_view type) {
  if (type == "yaml") return "application/yaml";
  if (type == "protobuf") return "application/vnd.kubernetes.protobuf";
  if (type == "merge") return "application/merge-patch+json";
  if (type == "jsonpatch") return "application/json-patch+json";
  if (type == "strategic") return "application/strategic-merge-patch+json";
  if (type == "apply") return "application/apply-patch+yaml";
  return "application/json";
}

template <std::size_t N>
const char* pick(const char* const (&list)[N], Random& random) {
  return list[random() % N];
}

/// "/api/v1/namespaces/default/pods/a" of a request that creates, or the target itself.
std::string object_path(const FuzzRequest& request) {
  const auto path = request.target.substr(0, request.target.find('?'));
  const auto document = json::parse(request.body);
  if (request.method != "POST" || !document) return path;
  const auto name = json::get_string(*document, {"metadata", "name"});
  return name.empty() ? path : path + "/" + net::percent_encode(name);
}

/// A request about an object that an earlier one made.
FuzzRequest follow_up(const FuzzRequest& request, Random& random) {
  static constexpr const char* kTails[] = {
      "", "", "", "", "/status", "/scale", "/resize", "/eviction", "/binding", "/ephemeralcontainers", "/finalize", "/approval"};
  static constexpr const char* kTypes[] = {"merge", "strategic", "apply", "jsonpatch"};
  FuzzRequest next = request;
  next.target = object_path(request) + pick(kTails, random);
  switch (random() % 5) {
    case 0:
      next.method = "DELETE";
      next.body.clear();
      break;
    case 1:
    case 2:
      next.method = "PATCH";
      next.type = pick(kTypes, random);
      if (next.type == "apply") next.target += "?fieldManager=other";
      if (next.type == "jsonpatch")
        next.body =
            R"([{"op":"add","path":"/metadata/labels","value":{"a":"b"}},{"op":"copy","from":"/spec","path":"/spec/x"},{"op":"remove","path":"/spec/x"}])";
      break;
    case 3:
      next.method = "POST";
      break;
    default:
      next.method = "PUT";
  }
  return next;
}

void mutate_target(FuzzRequest& request, Random& random) {
  static constexpr const char* kQueries[] = {"dryRun=All",
                                             "fieldManager=m",
                                             "fieldManager=fuzz&force=true",
                                             "fieldValidation=Strict",
                                             "fieldValidation=Warn",
                                             "limit=1",
                                             "limit=-1",
                                             "continue=abc",
                                             "labelSelector=a%3Db",
                                             "labelSelector=a%20in%20(b)",
                                             "fieldSelector=metadata.name%3Da",
                                             "fieldSelector=spec.nodeName%3Dn",
                                             "resourceVersion=0",
                                             "resourceVersion=99999999999999999999",
                                             "resourceVersion=1",
                                             "watch=true&timeoutSeconds=1",
                                             "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
                                             "resourceVersionMatch=Exact&resourceVersion=2",
                                             "gracePeriodSeconds=0",
                                             "propagationPolicy=Orphan",
                                             "pretty=true",
                                             "includeObject=Object"};
  static constexpr const char* kMethods[] = {"POST", "PUT", "PATCH", "DELETE", "GET", "HEAD", "OPTIONS"};
  switch (random() % 4) {
    case 0:
      request.method = pick(kMethods, random);
      return;
    case 1: {
      static const auto& kinds = model::all_kinds();
      const auto& kind = kinds[random() % kinds.size()];
      request.target = fmt::format("{}/{}{}", kind.group.empty() ? "/api/" + kind.version : "/apis/" + kind.group + "/" + kind.version,
                                   kind.namespaced ? "namespaces/default/" : "", kind.plural);
      return;
    }
    default:
      request.target += (request.target.find('?') == std::string::npos ? "?" : "&") + std::string(pick(kQueries, random));
  }
}

}  // namespace

std::vector<FuzzRequest> parse_requests(std::string_view text) {
  std::vector<FuzzRequest> out;
  while (!text.empty() && out.size() < 12) {
    const auto end = text.find("\n\n");
    auto one = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 2);
    const auto line = one.substr(0, one.find('\n'));
    one.remove_prefix(std::min(one.size(), line.size() + 1));
    const auto space = line.find(' ');
    if (space == std::string_view::npos) continue;
    FuzzRequest request{std::string(line.substr(0, space)), std::string(line.substr(space + 1)), "json", std::string(one)};
    if (const auto type = request.target.rfind(' '); type != std::string::npos) {
      request.type = request.target.substr(type + 1);
      request.target.resize(type);
    }
    out.push_back(std::move(request));
  }
  return out;
}

std::string print(const std::vector<FuzzRequest>& requests) {
  std::string out;
  for (const auto& request : requests)
    out += fmt::format("{} {} {}\n{}\n\n", request.method, request.target, request.type.empty() ? "json" : request.type, request.body);
  return out;
}

void broken(std::string_view what, const FuzzRequest& request, std::string_view answer) {
  std::fprintf(stderr, "broken: %.*s\n%s %s %s\n%.*s\n", static_cast<int>(what.size()), what.data(), request.method.c_str(),
               request.target.c_str(), request.body.c_str(), static_cast<int>(answer.size()), answer.data());
  std::abort();
}

bool mutate_requests(std::vector<FuzzRequest>& requests, Random& random) {
  if (requests.empty()) return false;
  const auto choice = random() % 10;
  requests.reserve(requests.size() + 1);
  auto& request = requests[random() % requests.size()];
  if (choice == 0) {
    mutate_target(request, random);
    return true;
  }
  if (choice <= 2) {
    auto next = follow_up(request, random);
    requests.push_back(std::move(next));
  }
  auto document = json::parse(request.body);
  if (!document || document->is_null()) return choice <= 2;
  const auto donor = json::parse(requests[random() % requests.size()].body);
  mutate_json(*document, donor ? *donor : json::Value(*document), random);
  request.body = json::serialize(*document);
  return true;
}

bool cross_requests(std::vector<FuzzRequest>& one, const std::vector<FuzzRequest>& other, Random& random) {
  if (one.empty() || other.empty()) return false;
  if (random() % 2 == 0) {
    one.push_back(other[random() % other.size()]);
    return true;
  }
  auto& request = one[random() % one.size()];
  auto document = json::parse(request.body);
  const auto donor = json::parse(other[random() % other.size()].body);
  if (!document || !donor) return false;
  mutate_json(*document, *donor, random);
  request.body = json::serialize(*document);
  return true;
}

std::optional<net::HttpRequest> to_http(const FuzzRequest& request) {
  for (const std::string_view away : {"webhookconfigurations", "proxy", "exec", "attach", "portforward", "/log"})
    if (request.target.find(away) != std::string::npos) return std::nullopt;
  const auto question = request.target.find('?');
  auto path = net::decode_path(std::string_view(request.target).substr(0, question));
  if (!path) return std::nullopt;
  net::HttpRequest http;
  http.method = request.method;
  http.path = std::move(*path);
  if (question != std::string::npos) http.query = request.target.substr(question + 1);
  http.body = request.body;
  if (!http.body.empty()) http.headers.add("Content-Type", std::string(media_type(request.type)));
  return http;
}

}  // namespace berth::fuzz
