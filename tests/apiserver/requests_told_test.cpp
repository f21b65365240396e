// What becomes of requests, and who is refused, word for word: the files …_told.txt named below, beside this. A case is a server of its
// own and a list of lines:
//
//   plugins A, B          plugins that are off by default         config NAME {…}   what configures one
//   as NAME [GROUP]       who asks from now on; "as admin": who may all
//   may not VERB RESOURCE [NAME]                                   for everybody
//   show PATH…            what of the answers is told; "names": of a list's objects
//   pass TIME
//   METHOD [NAMESPACE:]PLURAL[/NAME[/SUBRESOURCE]] [{…}]          or @GROUP/VERSION/PLURAL… of a custom kind, in the default namespace
//
// Bodies are YAML; a pod without containers gets one; "$uid(NAME)" is the uid of the object that was made with this name, "$continue" the
// last list's token. "|" stands between the parts of what is shown.
#include "base/yaml.h"
#include "model/features.h"
#include "tests/apiserver/server_fixture.h"
#include "tests/support/told.h"

namespace berth::apiserver::testing {
namespace {

std::vector<std::string> words(const std::string& text, char separator = ' ') {
  std::vector<std::string> out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(separator, at), text.size());
    if (end > at) out.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

const json::Value* find_path(const json::Value& value, const std::string& path) {
  const json::Value* at = &value;
  for (const std::string& part : words(path, '|'))
    if (at = at->is_object() ? json::find(*at, {std::string_view(part)}) : nullptr; at == nullptr) return nullptr;
  return at;
}

class RequestsTold : public ServerTest {
 public:
  std::string play(const std::string& text) {
    reset();
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      play_line(text.substr(at, end - at));
      at = end + 1;
    }
    server_.reset();
    return std::exchange(told_, {});
  }

 private:
  struct Refused {
    std::string verb, resource, name;
  };

  void reset() {
    server_.reset();
    options_ = AdmissionConfig();
    refused_.clear();
    shown_.clear();
    uids_.clear();
    peer_.reset();
  }

  void play_line(const std::string& line) {
    if (line.empty() || line.starts_with('#')) return;
    const auto all = words(line);
    const std::string& first = all.front();
    const std::string rest = line.substr(std::min(line.size(), first.size() + 1));
    if (first == "plugins") {
      options_.enable = words(rest, ',');
    } else if (first == "config") {
      options_.plugin_config[all.at(1)] = yaml(rest.substr(all[1].size() + 1));
    } else if (first == "selector") {
      options_.default_node_selector = rest;
    } else if (first == "seconds") {
      options_.default_not_ready_toleration_seconds = std::stoi(all.at(1));
      options_.default_unreachable_toleration_seconds = std::stoi(all.at(2));
    } else if (first == "as") {
      peer_.reset();
      if (rest != "admin") peer_ = net::PeerCertificate{all.at(1), {all.begin() + 2, all.end()}};
    } else if (first == "may") {
      refused_.push_back({all.at(2), all.at(3), all.size() > 4 ? all[4] : ""});
    } else if (first == "show") {
      shown_ = {all.begin() + 1, all.end()};
    } else if (first == "pass") {
      loop_.run_for(*parse_go_duration(all.at(1)));
    } else {
      ask(first, all.at(1), line.substr(std::min(line.size(), first.size() + all[1].size() + 2)));
    }
  }

  void ask(const std::string& method, const std::string& path, const std::string& body) {
    if (server_ == nullptr) start_here();
    json::Value sent = body.empty() ? json::Value() : yaml(with_uids(body));
    const bool is_new_pod = method == "POST" && (path == "pods" || path.ends_with(":pods"));
    if (is_new_pod && json::find(sent, {"spec", "containers"}) == nullptr)
      json::set(sent, {"spec", "containers"}, json::Array{json::Object{{"name", "c"}, {"image", "i"}}});
    std::string where = url(path);
    if (const auto at = where.find("$continue"); at != std::string::npos) where.replace(at, 9, continue_);
    const auto answer = send(method, where, sent.is_null() ? "" : json::serialize(sent),
                             method == "PATCH" ? "application/merge-patch+json" : "application/json");
    const json::Value said = answer->document();
    told_ += fmt::format("{} {}: {}", method, path, answer->status);
    if (answer->status >= 400) {
      told_ += " " + text(said, {"message"});
      for (const json::Value& cause : json::get_array(said, {"details", "causes"}))
        told_ += fmt::format(" [{} {}]", text(cause, {"reason"}), text(cause, {"field"}));
    } else if (method == "POST") {
      uids_[text(said, {"metadata", "name"})] = text(said, {"metadata", "uid"});
    }
    told_ += "\n";
    for (const auto& [name, value] : answer->headers.fields())
      if (name == "Warning") told_ += "  " + value + "\n";
    if (answer->status >= 400) return;
    if (const auto token = text(said, {"metadata", "continue"}); !token.empty()) continue_ = token;
    if (std::ranges::find(shown_, "names") != shown_.end()) told_ += names_in(said);
    for (const std::string& one : shown_)
      if (const json::Value* there = find_path(said, one)) told_ += fmt::format("  {}: {}\n", one, json::serialize(*there));
  }

  static std::string names_in(const json::Value& list) {
    std::string out;
    for (const json::Value& one : json::get_array(list, {"items"})) out += " " + text(one, {"metadata", "name"});
    return fmt::format("  names:{}{}\n", out, text(list, {"metadata", "continue"}).empty() ? "" : " and more");
  }

  void start_here() {
    ServerOptions options;
    options.admission = options_;
    options.features = model::preferred_features();
    options.authorizer = std::make_shared<PickyAuthorizer>([this](const UserInfo&, const Attributes& asked) {
      const std::string resource =
          asked.subresource.empty() ? std::string(asked.resource) : fmt::format("{}/{}", asked.resource, asked.subresource);
      return std::ranges::none_of(refused_, [&](const Refused& one) {
        return one.verb == asked.verb && one.resource == resource && (one.name.empty() || one.name == asked.name);
      });
    });
    start(std::move(options));
  }

  std::string with_uids(std::string body) const {
    for (std::size_t at = 0; (at = body.find("$uid(", at)) != std::string::npos;) {
      const std::size_t end = body.find(')', at);
      body.replace(at, end + 1 - at, uids_.at(body.substr(at + 5, end - at - 5)));
    }
    return body;
  }

  static json::Value yaml(const std::string& text) {
    auto read = json::parse_yaml("--- " + text);
    EXPECT_TRUE(read.has_value()) << text << ": " << read.error().message;
    return read.value_or(json::Value(json::Object()));
  }

  static std::string url(std::string path) {
    std::string ns = "default";
    if (path.starts_with('@')) {
      const std::size_t kind = path.find('/', path.find('/') + 1);
      return fmt::format("/apis/{}/namespaces/default{}", path.substr(1, kind - 1), path.substr(kind));
    }
    if (const auto colon = path.find(':'); colon != std::string::npos) {
      ns = path.substr(0, colon);
      path.erase(0, colon + 1);
    }
    const std::string plural = path.substr(0, path.find_first_of("/?"));
    for (const model::KindInfo& kind : model::all_kinds()) {
      if (kind.plural != plural) continue;
      const std::string root =
          kind.group.empty() ? fmt::format("/api/{}", kind.version) : fmt::format("/apis/{}/{}", kind.group, kind.version);
      return kind.namespaced ? fmt::format("{}/namespaces/{}/{}", root, ns, path) : fmt::format("{}/{}", root, path);
    }
    ADD_FAILURE() << "no kind is called " << plural;
    return "/";
  }

  AdmissionConfig options_;
  std::vector<Refused> refused_;
  std::vector<std::string> shown_;
  std::map<std::string, std::string> uids_;
  std::string continue_, told_;
};

TEST_F(RequestsTold, AreAnsweredAsIsWrittenDown) {
  for (const char* file : {"admission_told.txt", "writes_told.txt", "custom_told.txt", "policies_told.txt", "reads_told.txt"})
    berth::testing::expect_told(fmt::format("tests/apiserver/{}", file), [this](const std::string& text) { return play(text); });
}

}  // namespace
}  // namespace berth::apiserver::testing
