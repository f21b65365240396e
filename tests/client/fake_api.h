// A little API server for informer tests: objects of any resource, list in pages, watch with history; and every way to misbehave.
#pragma once
#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "net/http.h"

namespace berth::client::test {

class FakeApi final : public net::Handler {
 public:
  struct Event {
    std::string type;
    std::int64_t revision;
    std::string bytes;
  };
  struct Watch {
    std::shared_ptr<net::ResponseWriter> writer;
    std::string query;
    std::atomic<bool> is_gone = false;
  };

  // The cluster:
  void put(const std::string& ns, const std::string& name, const std::string& spec = "{}", const std::string& labels = "{}");
  void remove(const std::string& ns, const std::string& name);
  void bookmark();
  [[nodiscard]] std::int64_t revision() const { return revision_; }
  [[nodiscard]] const std::map<std::string, std::string>& objects() const { return objects_; }

  // Misbehaviour:
  /// Ends all watches: in order, or cut off in the middle of a line.
  void end_watches();
  void cut_watches(std::string_view half_a_line);
  /// Forgets the history: watches from before get 410, as HTTP status or as ERROR event.
  void compact(bool as_event) {
    compacted_ = revision_;
    expire_as_event_ = as_event;
  }
  void expire_running_watches();
  void fail_next(int count, int status, std::string reason, int retry_after = 0);
  /// The next watches that begin with all there is get this line after the first object, and end then.
  void break_next_listing(int count, std::string line) {
    breaking_ = count;
    breaking_line_ = std::move(line);
  }
  bool knows_current = true;     ///< model::kTellWhenCurrent.
  std::string missing_resource;  ///< Is not served: 404.
  std::string refused_resource;  ///< Whose watches get 503.
  bool is_silent = false;        ///< Watches are taken, and nothing comes of them.
  void expire_continue_tokens() { tokens_expired_ = true; }

  // What was seen:
  int lists = 0, watches_started = 0;
  std::vector<std::string> queries;
  [[nodiscard]] std::size_t open_watches();

  void handle(net::HttpRequest request, std::shared_ptr<net::ResponseWriter> writer) override;

 private:
  void list(const net::HttpRequest& request, net::ResponseWriter& writer);
  void watch(const net::HttpRequest& request, std::shared_ptr<net::ResponseWriter> writer);
  void publish(Event event);
  [[nodiscard]] Event end_of_what_was() const;
  static std::string line_of(const Event& event) { return "{\"type\":\"" + event.type + "\",\"object\":" + event.bytes + "}\n"; }

  std::int64_t revision_ = 10, compacted_ = 0;
  int next_uid_ = 0;
  bool expire_as_event_ = false, tokens_expired_ = false;
  int failing_ = 0, failing_status_ = 0, failing_retry_after_ = 0;
  std::string failing_reason_;
  int breaking_ = 0;
  std::string breaking_line_;
  std::map<std::string, std::string> objects_;  ///< By "ns/name".
  std::map<std::string, std::string> uids_;
  std::vector<Event> history_;
  std::vector<std::shared_ptr<Watch>> watches_;
  std::vector<std::shared_ptr<net::ResponseWriter>> silenced_;
};

}  // namespace berth::client::test
