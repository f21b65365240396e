// What an API server answers to a scheduler, and what its watches show: objects in memory, as far as a scheduler can tell.
#pragma once
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "client/client.h"
#include "client/object.h"
#include "scheduler/effects.h"

namespace berth::scheduler::lives {

/// A watch of each resource lags behind what is stored: `show` lets it go on by one event.
class Server {
 public:
  /// Whoever looks may not keep it: the next change moves it.
  [[nodiscard]] const json::Value* find(const std::string& resource, const std::string& ns, const std::string& name) const;
  /// Names of the resource's objects, as "ns/name" or "name".
  [[nodiscard]] std::vector<std::string> names(const std::string& resource) const;
  /// Makes it, with a uid of its own where it has none, or replaces it.
  const json::Value& put(const std::string& resource, json::Value document);
  /// As a client asks for it: what is protected or runs is marked at first. False: there is none.
  bool remove(const std::string& resource, const std::string& ns, const std::string& name);
  /// Whatever it was marked with.
  void erase(const std::string& resource, const std::string& ns, const std::string& name);
  Answered carry_out(const client::Call& call);

  // The watch.
  struct Shown {
    client::ObjectRef before, after;
  };
  [[nodiscard]] bool has_news(const std::string& resource) const;
  /// Resources of which there is something to show.
  [[nodiscard]] std::vector<std::string> news() const;
  /// The next event; `skips`: what was another revision's in between may be left out, as after a break.
  Shown show(const std::string& resource, bool skips);
  /// The last revision that was shown.
  [[nodiscard]] client::ObjectRef known(const std::string& resource, const std::string& ns, const std::string& name) const;
  [[nodiscard]] std::vector<client::ObjectRef> all_known(const std::string& resource) const;

 private:
  struct News {
    std::string key;
    client::ObjectRef object;  ///< Null: it is gone.
  };
  Answered bind(const std::string& key, const json::Value& binding);
  Answered update(const client::Call& call, const std::string& key, json::Value body);
  json::Value store(const std::string& resource, const std::string& key, json::Value document);

  std::int64_t revision_ = 0;
  int uids_ = 0;
  std::map<std::string, std::map<std::string, json::Value>> stored_;  ///< By resource, then "ns/name".
  std::map<std::string, std::map<std::string, client::ObjectRef>> shown_;
  std::map<std::string, std::deque<News>> news_;
};

}  // namespace berth::scheduler::lives
