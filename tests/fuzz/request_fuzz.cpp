// Fuzz target: whole requests to an API server in process: decode, default, admit, validate, store, patch, apply, print as a table.
// An input is a list of requests (tests/fuzz/requests.h); every input meets a fresh server.
// What must hold:
//   - every request is answered; a refusal is a Status with words, never an internal error, and changes nothing; nor does a dry run;
//   - what was created can be read, prints as a table and as YAML, and is accepted again unchanged: by update, by an empty patch, by apply.
#include "apiserver/server.h"
#include "model/kinds.h"
#include "model/views/node_view.h"
#include "model/views/pod_view.h"
#include "tests/fuzz/request_mutators.h"
#include "tests/fuzz/requests.h"

namespace {

using namespace berth;
using fuzz::broken;
using fuzz::FuzzRequest;
using fuzz::Recorded;

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
    auto http = fuzz::to_http(request);
    if (!http) return nullptr;
    if (!accept.empty()) http->headers.add("Accept", std::string(accept));
    auto answer = std::make_shared<Recorded>();
    server_->handle(std::move(*http), answer);
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
    // Nor can what stands twice in a list that is a set.
    if (may_write && answer->body.find("duplicate entries for key") != std::string::npos) return std::string();
    if (answer->status >= 300) broken("what was stored is refused: " + answer->body, made, fuzz::print({request}));
    if (!may_write && world.revision() != before)
      broken("what was stored changes by itself: " + answer->body, made, fuzz::print({request}));
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

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto requests = fuzz::parse_requests({reinterpret_cast<const char*>(data), size});
  if (requests.empty()) return 0;
  World world;
  for (const auto& request : requests) run(world, request);
  return 0;
}
