// What the controllers of a real cluster made of more than two hundred stories, told here again (tests/controllers/stories/README.md).
// One test a story: test_integration --gtest_filter='*ControllerStories*/deploy_rolling'
#include <zlib.h>

#include <algorithm>
#include <fstream>
#include <map>

#include "tests/integration/story_masks.h"
#include "tests/integration/world.h"
#include "tests/support/source_dir.h"

namespace berth::integration {
namespace {

using json::Value;

const std::string& folder() {
  static const std::string path = berth::testing::source_dir() + "/tests/controllers/stories/";
  return path;
}

const std::map<std::string, Value>& stories() {
  static const std::map<std::string, Value> all = [] {
    std::map<std::string, Value> out;
    gzFile file = gzopen((folder() + "answers.jsonl.gz").c_str(), "rb");
    if (file == nullptr) return out;
    std::string text(1 << 16, '\0'), rest;
    for (int n = 0; (n = gzread(file, text.data(), static_cast<unsigned>(text.size()))) > 0;)
      rest.append(text, 0, static_cast<std::size_t>(n));
    gzclose(file);
    for (std::size_t at = 0; at < rest.size();) {
      const std::size_t end = std::min(rest.find('\n', at), rest.size());
      if (auto line = json::parse(std::string_view(rest).substr(at, end - at)))
        out.emplace(std::string(json::get_string(*line, {"name"})), std::move(*line));
      at = end + 1;
    }
    return out;
  }();
  return all;
}

/// Stories in which berth is known to differ, a line each: NAME why.
const std::map<std::string, std::string>& known_differences() {
  static const std::map<std::string, std::string> all = [] {
    std::map<std::string, std::string> out;
    std::ifstream in(folder() + "differences.txt");
    for (std::string name, why; in >> name && std::getline(in, why);) out[name] = why;
    return out;
  }();
  return all;
}

/// Keys sorted, nothing empty: what a list of facts is compared by.
std::string fact(const Value& value) {
  if (const auto* object = value.if_object()) {
    std::map<std::string, std::string> sorted;
    for (const auto& [key, member] : *object)
      if (std::string text = fact(member); text != "{}" && text != "[]" && text != "null") sorted[key] = std::move(text);
    std::string out = "{";
    for (const auto& [key, text] : sorted) out += fmt::format("{}{}: {}", out.size() > 1 ? ", " : "", key, text);
    return out + "}";
  }
  if (const auto* list = value.if_array()) {
    std::vector<std::string> texts;
    for (const Value& one : *list) texts.push_back(fact(one));
    // Conditions come in the order in which they were first true, endpoints in any.
    const auto has = [&](std::string_view key) { return !list->empty() && json::find(list->front(), key) != nullptr; };
    if ((has("type") && has("status")) || has("addresses")) std::ranges::sort(texts);
    return fmt::format("[{}]", fmt::join(texts, ", "));
  }
  return json::serialize(value);
}

std::vector<std::string> facts(const json::Array& items) {
  std::vector<std::string> out;
  for (const Value& item : items) out.push_back(fact(item));
  std::ranges::sort(out);
  return out;
}

class ControllerStories : public ::testing::TestWithParam<std::string> {
 protected:
  struct Answer {
    int status = 0;
    Value body;
  };
  Answer ask(std::string method, const std::string& target, std::string body = {}, std::string type = "application/json") {
    net::HttpRequest request;
    request.method = std::move(method);
    const std::size_t question = target.find('?');
    request.path = target.substr(0, question);
    if (question != std::string::npos) request.query = target.substr(question + 1);
    request.headers.add("Content-Type", std::move(type));
    request.headers.add("Accept", "application/json");
    request.headers.add("User-Agent", "recorder/1");
    request.body = std::move(body);
    auto answer = std::make_shared<Answer>();
    world_.client_link().send(std::move(request), [answer](net::HttpResponse response) {
      answer->status = response.status;
      if (auto document = json::parse(response.body)) answer->body = std::move(*document);
    });
    for (int i = 0; i < 100 && answer->status == 0; ++i) world_.run(std::chrono::milliseconds(1));
    return *answer;
  }

  [[nodiscard]] std::string here(std::string text) const {
    for (std::size_t at = 0; (at = text.find("{ns}", at)) != std::string::npos;) text.replace(at, 4, namespace_);
    return text;
  }

  void do_each(const Value& step) {
    const std::string path = here(std::string(json::get_string(step, {"path"})));
    const Answer found = ask("GET", path);
    std::vector<std::string> names;
    for (const Value& item : json::get_array(found.body, {"items"})) names.emplace_back(json::get_string(item, {"metadata", "name"}));
    std::ranges::sort(names);
    const auto from = static_cast<std::size_t>(json::get_int(step, {"from"}));
    const auto to = std::min(static_cast<std::size_t>(json::get_int(step, {"to"}, 1'000'000)), names.size());
    const Value* body = json::find(step, "body");
    for (std::size_t i = from; i < to; ++i)
      ask(std::string(json::get_string(step, {"each"})),
          fmt::format("{}/{}{}", path.substr(0, path.find('?')), names[i], json::get_string(step, {"sub"})),
          body == nullptr ? std::string() : json::serialize(*body), std::string(json::get_string(step, {"type"})));
  }

  void look(const std::string& resource, const std::string& path, json::Array& seen) {
    const Answer found = ask("GET", path);
    for (const Value& item : json::get_array(found.body, {"items"})) {
      if (resource != "events") {
        seen.push_back(shown(resource, item));
        continue;
      }
      Value event = shown_event(item);
      const std::string_view who = json::as_view(event.get_array()[4]);
      const bool is_known = std::ranges::any_of(seen, [&](const Value& one) { return one == event; });
      if (!is_known && who != "default-scheduler" && who != "kubelet") seen.push_back(std::move(event));
    }
  }

  void rest(const Value& step) {
    world_.run(std::chrono::seconds(json::get_int(step, {"seconds"}, json::get_int(step, {"quiet"}, 2) + 13)));
    const Value& theirs = *json::find(step, "seen");
    for (const auto& [resource, root] : kSeen) {
      json::Array ours;
      look(resource, fmt::format("{}/namespaces/{}/{}", root, namespace_, resource), ours);
      compare(resource, facts(json::get_array(theirs, {resource})), facts(ours));
    }
    for (const Value& path : json::get_array(step, {"show"})) {
      const std::string at = here(std::string(json::as_view(path)));
      const Answer answer = ask("GET", at);
      const std::string parent = at.substr(0, at.rfind('/'));
      json::Array ours;
      if (answer.status == 200)
        ours.push_back(shown(parent.substr(parent.rfind('/') + 1), answer.body));
      else
        ours.emplace_back(answer.status);
      compare(at, facts(json::get_array(theirs, {json::as_view(path)})), facts(ours));
    }
  }

  void compare(const std::string& what, const std::vector<std::string>& theirs, const std::vector<std::string>& ours) {
    std::vector<std::string> only_there, only_here;
    std::ranges::set_difference(theirs, ours, std::back_inserter(only_there));
    std::ranges::set_difference(ours, theirs, std::back_inserter(only_here));
    // Events are written behind what they tell of: what a busy recorder had not seen yet may stand here.
    if (what == "events") only_here.clear();
    for (const std::string& one : only_there) problems_ += fmt::format("{} only there: {}\n", what, one);
    for (const std::string& one : only_here) problems_ += fmt::format("{} only here:  {}\n", what, one);
  }

  void tell(const Value& story) {
    namespace_ = GetParam();
    std::ranges::replace(namespace_, '_', '-');
    ask("POST", "/api/v1/namespaces", fmt::format(R"({{"metadata": {{"name": "{}"}}}})", namespace_));
    world_.run(std::chrono::seconds(1));
    for (const Value& step : json::get_array(story, {"steps"})) {
      if (json::find(step, "rest") != nullptr) {
        rest(step);
        if (!problems_.empty()) return void(problems_ += fmt::format("at rest \"{}\"\n", json::get_string(step, {"rest"})));
      } else if (json::find(step, "each") != nullptr) {
        do_each(step);
      } else {
        const Value* body = json::find(step, "body");
        const Answer answer = ask(std::string(json::get_string(step, {"method"})), here(std::string(json::get_string(step, {"path"}))),
                                  body == nullptr ? std::string() : here(json::serialize(*body)),
                                  std::string(json::get_string(step, {"type"}, "application/json")));
        if (answer.status != json::get_int(step, {"code"}))
          problems_ += fmt::format("{} answered {}\n", json::serialize(step), answer.status);
      }
    }
  }

  /// Resources that are looked at, with their groups.
  const std::map<std::string, std::string> kSeen = {{"pods", "/api/v1"},
                                                    {"services", "/api/v1"},
                                                    {"endpoints", "/api/v1"},
                                                    {"replicationcontrollers", "/api/v1"},
                                                    {"persistentvolumeclaims", "/api/v1"},
                                                    {"resourcequotas", "/api/v1"},
                                                    {"serviceaccounts", "/api/v1"},
                                                    {"configmaps", "/api/v1"},
                                                    {"secrets", "/api/v1"},
                                                    {"events", "/api/v1"},
                                                    {"podtemplates", "/api/v1"},
                                                    {"deployments", "/apis/apps/v1"},
                                                    {"replicasets", "/apis/apps/v1"},
                                                    {"statefulsets", "/apis/apps/v1"},
                                                    {"daemonsets", "/apis/apps/v1"},
                                                    {"controllerrevisions", "/apis/apps/v1"},
                                                    {"jobs", "/apis/batch/v1"},
                                                    {"cronjobs", "/apis/batch/v1"},
                                                    {"endpointslices", "/apis/discovery.k8s.io/v1"},
                                                    {"poddisruptionbudgets", "/apis/policy/v1"},
                                                    {"horizontalpodautoscalers", "/apis/autoscaling/v2"},
                                                    {"resourceclaims", "/apis/resource.k8s.io/v1"},
                                                    {"roles", "/apis/rbac.authorization.k8s.io/v1"},
                                                    {"leases", "/apis/coordination.k8s.io/v1"}};
  World world_{{.controllers = {.features = {}}}};  // As where they were told: what is off by default was off.
  std::string namespace_, problems_;
};

TEST_P(ControllerStories, EndAlike) {
  tell(stories().at(GetParam()));
  // A known difference is told all the same: nothing of it may crash, and when it is none any more, it leaves the list.
  if (const auto known = known_differences().find(GetParam()); known != known_differences().end())
    EXPECT_NE(problems_, "") << "ends alike by now, so differences.txt need not say:" << known->second;
  else
    EXPECT_EQ(problems_, "");
}

std::vector<std::string> names() {
  std::vector<std::string> out;
  for (const auto& [name, story] : stories()) out.push_back(name);
  return out;
}

INSTANTIATE_TEST_SUITE_P(Recorded, ControllerStories, ::testing::ValuesIn(names()), [](const auto& info) { return info.param; });

TEST(ControllerStoriesPack, IsThere) { EXPECT_GT(stories().size(), 220U); }

}  // namespace
}  // namespace berth::integration
