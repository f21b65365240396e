// Fuzz target: whole requests to an API server in process: decode, default, admit, validate, store, patch, apply, print as a table.
//
// An input is a list of requests, parted by an empty line; each is a line "METHOD /path?query [TYPE]" and below it the body. TYPE says what
// the body is: json (the default), yaml, protobuf, merge, jsonpatch, strategic, apply. Every input meets a fresh server.
// What must hold:
//   - every request is answered; a refusal is a Status with words, never an internal error, and changes nothing; nor does a dry run;
//   - what was created can be read, prints as a table and as YAML, and is accepted again unchanged: by update, by an empty patch, by apply.
#include <cstdio>
#include <cstdlib>

#include "apiserver/server.h"
#include "model/kinds.h"
#include "model/views/node_view.h"
#include "model/views/pod_view.h"
#include "tests/fuzz/json_mutator.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace {

using namespace berth;
using fuzz::Random;

struct FuzzRequest {
  std::string method, target, type, body;
};

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

[[noreturn]] void broken(std::string_view what, const FuzzRequest& request, std::string_view answer) {
  std::fprintf(stderr, "broken: %.*s\n%s %s %s\n%.*s\n", static_cast<int>(what.size()), what.data(), request.method.c_str(),
               request.target.c_str(), request.body.c_str(), static_cast<int>(answer.size()), answer.data());
  std::abort();
}

class Recorded final : public net::ResponseWriter {
 public:
  void respond(net::HttpResponse response) override {
    status = response.status;
    body = std::move(response.body);
    end();
  }
  void respond_shared(int code, net::Headers, std::vector<Bytes> parts) override {
    status = code;
    for (const auto& part : parts) body += *part;
    end();
  }
  void start_stream(int code, net::Headers) override {
    status = code;
    is_stream = true;
  }
  bool write(Bytes chunk) override {
    if (is_gone) return false;
    body += *chunk;
    return true;
  }
  [[nodiscard]] std::size_t queued_bytes() const override { return 0; }
  void on_drain(std::function<void()>) override {}
  void finish() override { end(); }
  void on_close(std::function<void()> callback) override { closed_ = std::move(callback); }
  std::unique_ptr<net::RawStream> upgrade(net::Headers) override { return nullptr; }
  void end() {
    is_gone = is_finished = true;
    if (auto callback = std::exchange(closed_, nullptr)) callback();
  }

  int status = 0;
  std::string body;
  bool is_stream = false, is_finished = false, is_gone = false;

 private:
  std::function<void()> closed_;
};

std::string_view media_type(std::string_view type) {
  if (type == "yaml") return "application/yaml";
  if (type == "protobuf") return "application/vnd.kubernetes.protobuf";
  if (type == "merge") return "application/merge-patch+json";
  if (type == "jsonpatch") return "application/json-patch+json";
  if (type == "strategic") return "application/strategic-merge-patch+json";
  if (type == "apply") return "application/apply-patch+yaml";
  return "application/json";
}

class World {
 public:
  World() {
    auto cache = apiserver::open_object_cache(store::make_memory_store(), loop_, {}, true);
    apiserver::ServerOptions options;
    options.cache = std::move(*cache);
    options.loop = &loop_;
    auto trusting = std::make_shared<apiserver::TrustingAuth>();
    options.authenticator = trusting;
    options.authorizer = trusting;
    options.seed = 42;
    options.single_threaded = true;
    auto server = apiserver::ApiServer::create(std::move(options));
    if (!server) broken(server.error().message, {}, {});
    server_ = std::move(*server);
  }

  /// The answer; nullptr when the request would not get past the HTTP parser, or leads out of the process.
  std::shared_ptr<Recorded> send(const FuzzRequest& request, std::string_view accept = {}) {
    for (const std::string_view away : {"webhookconfigurations", "proxy", "exec", "attach", "portforward", "/log"})
      if (request.target.find(away) != std::string::npos) return nullptr;
    const auto question = request.target.find('?');
    auto path = net::decode_path(std::string_view(request.target).substr(0, question));
    if (!path) return nullptr;
    net::HttpRequest http;
    http.method = request.method;
    http.path = std::move(*path);
    if (question != std::string::npos) http.query = request.target.substr(question + 1);
    http.body = request.body;
    if (!http.body.empty()) http.headers.add("Content-Type", std::string(media_type(request.type)));
    if (!accept.empty()) http.headers.add("Accept", std::string(accept));
    auto answer = std::make_shared<Recorded>();
    server_->handle(std::move(http), answer);
    loop_.run_ready();
    if (!answer->is_finished && !answer->is_stream) loop_.run_for(std::chrono::seconds(61));
    if (!answer->is_finished && !answer->is_stream) broken("no answer", request, {});
    if (!answer->is_finished) answer->end();
    return answer;
  }
  [[nodiscard]] std::int64_t revision() { return server_->cache().revision(); }

 private:
  VirtualLoop loop_{TimePoint(std::chrono::seconds(1'767'322'800))};
  std::unique_ptr<apiserver::ApiServer> server_;
};

void check_refusal(const FuzzRequest& request, const Recorded& answer) {
  // Kubernetes answers some things that a client did with a bare 500; what it calls an internal error is one.
  if (answer.body.find("\"InternalError\"") != std::string::npos) broken("an internal error", request, answer.body);
  if (answer.body.empty() || answer.body[0] != '{') return;  // Not a resource's path: words alone.
  const auto status = json::parse(answer.body);
  if (!status || json::get_string(*status, {"kind"}) != "Status" || json::get_string(*status, {"status"}) != "Failure" ||
      json::get_int(*status, {"code"}) != answer.status || json::get_string(*status, {"message"}).empty())
    broken("a refusal that is no Status", request, answer.body);
}

/// What is stored is accepted again as it is.
void check_settled(World& world, const FuzzRequest& made, const std::string& target, const json::Value& object) {
  const auto expect = [&](FuzzRequest request, std::string_view accept, bool may_write) {
    const auto before = world.revision();
    auto answer = world.send(request, accept);
    if (answer == nullptr) return std::string();
    // Fields that nobody knows are kept, but cannot be applied.
    if (may_write && answer->body.find("field not declared in schema") != std::string::npos) return std::string();
    if (answer->status >= 300) broken("what was stored is refused: " + answer->body, made, print({request}));
    if (!may_write && world.revision() != before) broken("what was stored changes by itself: " + answer->body, made, print({request}));
    return answer->body;
  };
  const auto text = expect({"GET", target, "", ""}, {}, false);
  if (!json::parse(text)) broken("an object that does not print as JSON", made, text);
  (void)expect({"GET", target, "", ""}, "application/json;as=Table;v=v1;g=meta.k8s.io", false);
  const auto yaml = expect({"GET", target, "", ""}, "application/yaml", false);
  if (const auto again = json::parse_yaml(yaml); !again)
    broken("an object that does not print as YAML: " + again.error().message, made, yaml);
  (void)expect({"PUT", target, "json", text}, {}, false);
  (void)expect({"PATCH", target, "merge", "{}"}, {}, false);
  (void)expect({"PATCH", target, "strategic", "{}"}, {}, false);
  json::Value applied = object;
  for (const char* field : {"managedFields", "resourceVersion", "uid", "creationTimestamp"}) json::erase(applied, {"metadata", field});
  const FuzzRequest apply{"PATCH", target + "?fieldManager=fuzz&force=true", "apply", json::serialize(applied)};
  if (!expect(apply, {}, true).empty()) (void)expect(apply, {}, false);
}

void check_creation(World& world, const FuzzRequest& request, const Recorded& answer) {
  const auto object = json::parse(answer.body);
  if (!object) return;  // Asked for in another form.
  const auto name = json::get_string(*object, {"metadata", "name"});
  const auto kind = json::get_string(*object, {"kind"});
  if (name.empty()) return;
  if (kind == "Pod") (void)model::PodView::parse(*object);
  if (kind == "Node") (void)model::NodeView::parse(*object);
  const auto path = request.target.substr(0, request.target.find('?'));
  const std::string api_version(json::get_string(*object, {"apiVersion"}));
  const auto slash = api_version.find('/');
  const auto* info = slash == std::string::npos
                         ? model::find_kind("", api_version, std::string(kind))
                         : model::find_kind(api_version.substr(0, slash), api_version.substr(slash + 1), std::string(kind));
  if (info == nullptr || info->is_virtual || !path.ends_with("/" + info->plural)) return;
  check_settled(world, request, path + "/" + net::percent_encode(name), *object);
}

void run(World& world, const FuzzRequest& request) {
  const auto before = world.revision();
  const auto answer = world.send(request);
  if (answer == nullptr) return;
  if (answer->status >= 400) check_refusal(request, *answer);
  const bool writes_one = request.method == "POST" || request.method == "PUT" || request.method == "PATCH";
  if (!writes_one) return;
  if (answer->status >= 400 && world.revision() != before) broken("refused, and yet something was written", request, answer->body);
  if (request.target.find("dryRun=All") != std::string::npos && world.revision() != before)
    broken("a dry run that writes", request, answer->body);
  if (request.method == "POST" && answer->status == 201 && world.revision() != before) check_creation(world, request, *answer);
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

std::size_t give_back(const std::string& text, std::uint8_t* data, std::size_t max_size) {
  if (text.size() > max_size) return 0;
  std::copy(text.begin(), text.end(), data);
  return text.size();
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size, unsigned seed) {
  Random random(seed);
  auto requests = parse_requests({reinterpret_cast<const char*>(data), size});
  if (requests.empty() || random() % 12 == 0) return LLVMFuzzerMutate(data, size, max_size);
  const auto choice = random() % 10;
  requests.reserve(requests.size() + 1);
  auto& request = requests[random() % requests.size()];
  if (choice == 0) {
    mutate_target(request, random);
  } else if (choice <= 2) {
    auto next = follow_up(request, random);
    requests.push_back(std::move(next));
  }
  if (auto document = choice == 0 ? Result<json::Value>(json::Value()) : json::parse(request.body); document && !document->is_null()) {
    const auto& other = requests[random() % requests.size()];
    const auto donor = json::parse(other.body);
    fuzz::mutate_json(*document, donor ? *donor : json::Value(*document), random);
    request.body = json::serialize(*document);
  }
  const auto made = give_back(print(requests), data, max_size);
  return made != 0 ? made : LLVMFuzzerMutate(data, size, max_size);
}

extern "C" std::size_t LLVMFuzzerCustomCrossOver(const std::uint8_t* a, std::size_t a_size, const std::uint8_t* b, std::size_t b_size,
                                                 std::uint8_t* out, std::size_t max_size, unsigned seed) {
  Random random(seed);
  auto one = parse_requests({reinterpret_cast<const char*>(a), a_size});
  const auto other = parse_requests({reinterpret_cast<const char*>(b), b_size});
  if (one.empty() || other.empty()) return 0;
  if (random() % 2 == 0) {
    one.push_back(other[random() % other.size()]);
  } else {
    auto& request = one[random() % one.size()];
    auto document = json::parse(request.body);
    const auto donor = json::parse(other[random() % other.size()].body);
    if (!document || !donor) return 0;
    fuzz::mutate_json(*document, *donor, random);
    request.body = json::serialize(*document);
  }
  return give_back(print(one), out, max_size);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto requests = parse_requests({reinterpret_cast<const char*>(data), size});
  if (requests.empty()) return 0;
  World world;
  for (const auto& request : requests) run(world, request);
  return 0;
}
