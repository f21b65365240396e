// Bad input of every kind, from a seed: each request gets exactly one answer, failures are Statuses, and nothing is half-applied.
#include <random>

#include "tests/apiserver/server_fixture.h"

namespace berth::apiserver::testing {

class Garbage : public ServerTest {
 protected:
  std::mt19937 random_{20260102};
  std::size_t pick(std::size_t n) { return random_() % n; }

  std::string mutate(std::string text) {
    static const std::vector<std::string> kPieces = {"{",
                                                     "}",
                                                     "[",
                                                     "]",
                                                     "\"",
                                                     ":",
                                                     ",",
                                                     "null",
                                                     "-1",
                                                     "1e999",
                                                     "\\u0000",
                                                     "\xff",
                                                     "\xf0\x9f",
                                                     "true",
                                                     "~1",
                                                     "/",
                                                     "..",
                                                     "$patch",
                                                     "%00",
                                                     "9999999999999999999999",
                                                     R"({"$patch":"delete"})",
                                                     R"([{"name":null}])",
                                                     R"("metadata":null)",
                                                     "{{}}",
                                                     "\t",
                                                     "'"};
    for (std::size_t i = 0, n = 1 + pick(4); i < n; ++i) {
      const auto at = text.empty() ? 0 : pick(text.size());
      switch (pick(4)) {
        case 0:
          text.insert(at, kPieces[pick(kPieces.size())]);
          break;
        case 1:
          text.erase(at, 1 + pick(12));
          break;
        case 2:
          text[at % std::max<std::size_t>(text.size(), 1)] = static_cast<char>(random_() % 256);
          break;
        default:
          text.insert(at, text.substr(pick(text.size() + 1), pick(30)));
          break;
      }
      if (text.empty()) text = "x";
    }
    return text;
  }

  void expect_answer(const Response& response, const std::string& what) {
    ASSERT_NE(response->status, 0) << what;
    if (response->status >= 400) {
      const auto document = response->document();
      EXPECT_EQ(text(document, {"kind"}), "Status") << what << "\n" << response->body;
      EXPECT_EQ(json::get_int(document, {"code"}), response->status) << what;
      // Kubernetes answers 500 to patches that it cannot merge, and gives no reason; an error of our own has one.
      EXPECT_NE(text(document, {"reason"}), "InternalError") << what << "\n" << response->body;
    }
  }
};

TEST_F(Garbage, Bodies) {
  const std::string deployment =
      R"({"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d","labels":{"a":"b"}},"spec":{"replicas":2,"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i","ports":[{"containerPort":80}],"env":[{"name":"X","value":"1"}],"resources":{"limits":{"cpu":"1"}}}],"tolerations":[{"key":"k","operator":"Exists"}]}}}})";
  for (int i = 0; i < 3000; ++i) {
    const auto body = mutate(
        i % 2 == 0
            ? deployment
            : pod("p",
                  R"("affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"k","operator":"In","values":["v"]}]}]}}})"));
    const std::string path = i % 2 == 0 ? "/apis/apps/v1/namespaces/default/deployments" : kPods;
    expect_answer(post(path, body), body);
    if (i % 16 == 0) remove(path);
  }
}

TEST_F(Garbage, PatchesOfAllLanguages) {
  const std::string path = "/apis/apps/v1/namespaces/default/deployments/d";
  create(
      "/apis/apps/v1/namespaces/default/deployments",
      R"({"metadata":{"name":"d"},"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"},{"name":"d","image":"i"}]}}}})");
  const std::vector<std::pair<std::string, std::string>> seeds = {
      {"json",
       R"([{"op":"test","path":"/spec/replicas","value":1},{"op":"add","path":"/spec/template/spec/containers/0/env","value":[]},{"op":"move","from":"/metadata/labels","path":"/metadata/annotations"}])"},
      {"merge",
       R"({"spec":{"template":{"spec":{"containers":[{"name":"c","image":"x"}],"nodeSelector":{"a":null}}}},"metadata":{"labels":{"x":"y"}}})"},
      {"strategic",
       R"({"spec":{"template":{"spec":{"$setElementOrder/containers":[{"name":"d"},{"name":"c"}],"containers":[{"name":"c","$patch":"delete"},{"name":"e","image":"z","env":[{"name":"A","value":"1"}]}]}},"strategy":{"$retainKeys":["type"],"type":"Recreate"}}})"},
      {"apply",
       R"({"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d"},"spec":{"template":{"spec":{"containers":[{"name":"c","image":"q","ports":[{"containerPort":80},{"containerPort":80,"protocol":"UDP"}]}]}}}})"}};
  for (int i = 0; i < 4000; ++i) {
    const auto& [type, seed] = seeds[pick(seeds.size())];
    const auto body = mutate(seed);
    expect_answer(patch(path + (type == "apply" ? "?fieldManager=m&force=true" : ""), body, type), type + " " + body);
    const auto now = get(path);
    ASSERT_EQ(now->status, 200) << body;
    EXPECT_TRUE(json::get_string(now->document(), {"metadata", "name"}) == "d") << body;
  }
}

TEST_F(Garbage, PathsAndQueries) {
  create(kMaps, config_map("a"));
  const std::vector<std::string> seeds = {
      "/api/v1/namespaces/default/configmaps/a?fieldManager=x&dryRun=All",
      "/api/v1/pods?labelSelector=a%20in%20(b,c),!d&fieldSelector=spec.nodeName%3Dx&limit=5&continue=abc",
      "/apis/apps/v1/namespaces/default/deployments?watch=1&timeoutSeconds=1&resourceVersion=1&allowWatchBookmarks=1",
      "/api/v1/watch/namespaces/default/pods",
      "/apis/policy/v1",
      "/api/v1/namespaces/default/pods/p/log?container=c&tailLines=1"};
  const std::vector<std::string> methods = {"GET", "PUT", "POST", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW"};
  for (int i = 0; i < 4000; ++i) {
    auto path = mutate(seeds[pick(seeds.size())]);
    if (!path.starts_with('/')) path = "/" + path;
    const auto method = methods[pick(methods.size())];
    auto response = send(method, path, pick(3) == 0 ? "{}" : "");
    ASSERT_NE(response->status, 0) << method << " " << path;
    if (response->status == 500) {
      EXPECT_NE(response->body.find("strconv.ParseUint"), std::string::npos) << method << " " << path << "\n" << response->body;
    }
    if (!response->finished) response->disconnect();
  }
}

}  // namespace berth::apiserver::testing
