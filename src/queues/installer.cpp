#include "queues/installer.h"

#include <fmt/format.h>

#include <deque>

#include "base/lifeline.h"
#include "base/log.h"
#include "queues/definitions.h"

namespace berth::queues {
namespace {

using client::ApiResult;
using json::get_string;
using json::Value;
using model::Gvr;

const Gvr kDefinitions{"apiextensions.k8s.io", "v1", "customresourcedefinitions"};
const std::string kOwnLabel = "app.kubernetes.io/part-of";

struct Task {
  Gvr gvr;
  Value document;
  bool is_kind = false;
};

std::string resource_of(std::string_view kind) {
  std::string out;
  for (const char c : kind) out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out.ends_with("y") ? out.substr(0, out.size() - 1) + "ies" : out + "s";
}

class Installation : public Guarded<Installation> {
 public:
  Installation(client::Client& client, std::function<void()> done) : client_(client), done_(std::move(done)) {}

  void start(bool is_wanted) {
    for (const auto& [text, is_kind] : {std::pair(kinds_text(), true), std::pair(policies_text(), false)}) {
      auto documents = json::parse_yaml_stream(text);
      for (Value& document : *documents) {
        json::set(document, {"metadata", "labels", kOwnLabel}, Value("berth"));
        if (is_kind) served_.push_back(std::string(get_string(document, {"spec", "names", "plural"})));
        if (!is_wanted) continue;
        const Gvr gvr = is_kind ? kDefinitions : Gvr{"admissionregistration.k8s.io", "v1", resource_of(get_string(document, {"kind"}))};
        tasks_.push_back({gvr, std::move(document), is_kind});
      }
    }
    next();
  }

 private:
  void again(void (Installation::*what)()) { client_.loop()->schedule_after(std::chrono::seconds(1), guarded(what)); }

  void next() {
    if (tasks_.empty()) return wait_for_kinds();
    const Task& task = tasks_.front();
    if (!task.is_kind) return apply();
    client_.get(task.gvr, "", name(), guarded([](Installation& self, const ApiResult<Value>& there) {
                  const bool is_foreign = there && get_string(*there, {"metadata", "labels", kOwnLabel}) != "berth";
                  if (!is_foreign) return self.apply();
                  self.say(fmt::format("{} is there already, and not by berth: it stays as it is", self.name()));
                  self.tasks_.pop_front();
                  self.next();
                }));
  }
  [[nodiscard]] std::string name() const { return std::string(get_string(tasks_.front().document, {"metadata", "name"})); }

  void apply() {
    const Task& task = tasks_.front();
    client_.patch(task.gvr, "", name(), client::PatchType::kApply, task.document, guarded(&Installation::applied), "",
                  client::Answer::kIdentity);
  }

  void applied(const ApiResult<Value>& result) {
    Task& task = tasks_.front();
    if (!result && result.error().code == 404 && task.gvr.version == "v1" && !task.is_kind) {
      task.gvr.version = "v1beta1";
      json::set(task.document, {"apiVersion"}, Value("admissionregistration.k8s.io/v1beta1"));
      return apply();
    }
    if (!result && result.error().code == 404) {
      say(fmt::format("this server serves no {}: Jobs that name a queue may start before they are suspended, and pods get no gate",
                      task.gvr.resource));
    } else if (!result && (result.error().code >= 500 || result.error().code == 429 || result.error().code == 0)) {
      say(fmt::format("{}: {}", name(), result.error().message));
      return again(&Installation::next);
    } else if (!result) {
      say(fmt::format("{} cannot be installed: {}", name(), result.error().message));
    }
    tasks_.pop_front();
    next();
  }

  void wait_for_kinds() {
    if (served_.empty()) return done_();
    client::Call call{.verb = "list", .gvr = {"kueue.x-k8s.io", "v1beta1", served_.back()}, .query = "limit=1"};
    call.answer = client::Answer::kNone;
    client_.call(std::move(call), guarded([](Installation& self, const ApiResult<Value>& result) {
                   if (result) {
                     self.served_.pop_back();
                     return self.wait_for_kinds();
                   }
                   // A kind is served a moment after it was made.
                   if (result.error().code != 404 || ++self.misses_ % 10 == 0)
                     self.say(fmt::format("waiting for {}.kueue.x-k8s.io: {}", self.served_.back(), result.error().message));
                   const Duration pause = std::chrono::milliseconds(self.misses_ < 10 ? 100 : 1000);
                   self.client_.loop()->schedule_after(pause, self.guarded(&Installation::wait_for_kinds));
                 }));
  }

  void say(const std::string& sentence) {
    if (sentence == last_) return;
    last_ = sentence;
    log::warning("queues", "{}", sentence);
  }

  client::Client& client_;
  std::function<void()> done_;
  std::deque<Task> tasks_;
  std::vector<std::string> served_;
  std::string last_;
  int misses_ = 0;
};

}  // namespace

std::shared_ptr<void> install_definitions(client::Client& client, bool is_wanted, std::function<void()> done) {
  const auto out = std::make_shared<Installation>(client, std::move(done));
  out->start(is_wanted);
  return out;
}

}  // namespace berth::queues
