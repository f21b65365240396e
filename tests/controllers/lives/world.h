// Controllers' lives: objects that a seed makes, edits, deletes and makes again, controllers that are led by hand (no engine: every plan is
// told, and carried out by a server that refuses, loses answers and shows changes late), and judges that need no record.
#pragma once
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "controllers/common.h"
#include "tests/controllers/fake_api.h"
#include "tests/support/long_life.h"

namespace berth::controllers::lives {

using testing::yaml;

/// Values that edits choose from. The path's keys stand with spaces between; "": the field goes. In texts "$t", "$t-30", "$t+5" are times,
/// "$uid(Pod default/a)" is an object's uid, "$owner(Job default/a)" a controlling reference to it.
struct Field {
  Kind kind = nullptr;
  std::string path;
  std::vector<std::string> values;
};

/// Objects that are made, under a few names ("ns/name", or "name") again and again.
struct Sort {
  Kind kind = nullptr;
  std::vector<std::string> names;
  std::string document;  ///< YAML, without its names.
};

struct Act {
  int weight = 1;
  std::function<void()> does;
};

struct Settings {
  std::string file;
  std::uint64_t seed = 1;
  int edits = 300;
  int refused_percent = 4;   ///< Of writes, when writes are refused at all.
  bool has_memory = false;   ///< What a step wants depends on what was seen before, not on the objects alone: no twin is asked.
  bool is_restless = false;  ///< Writes go on when nothing happens.
  std::size_t readable = 20'000;
  std::size_t steps_an_edit = 120;
  Duration longest = std::chrono::seconds(40);  ///< Between two edits.
};

class World {
 public:
  explicit World(Settings settings);

  using Make = std::function<ControllerPtr()>;
  void add(Make make);

  std::vector<Sort> sorts;
  std::vector<Field> fields;
  std::vector<Act> acts;                            ///< Beside making, editing, deleting.
  std::function<void()> judge;                      ///< After every step.
  std::function<void()> judge_rest;                 ///< When nothing has happened for two hours.
  std::function<json::Value(const Write&)> answer;  ///< To reads of what no object tells.
  std::function<bool(const json::Value& pod)> pods_linger = [](const json::Value&) { return true; };

  /// The life: edits with steps between; then rest; then everything goes, and a part of it comes again.
  void live();

  // What acts and judges use.
  berth::testing::LongLife life;
  TimePoint now;
  [[nodiscard]] const Cache& cache() const { return cache_; }
  json::Value* find(Kind kind, const std::string& key);
  [[nodiscard]] std::vector<std::string> keys(Kind kind) const;
  void put(Kind kind, const std::string& key, json::Value document, const std::string& said);
  void remove(Kind kind, const std::string& key, const DeleteOptions& options, const std::string& said);
  void erase(Kind kind, const std::string& key, const std::string& said);
  /// One of the objects; empty: there is none.
  std::string any(Kind kind);
  /// A pod goes one way further: bound, running, ready, not ready, ended, and gone where it is being deleted.
  void play_kubelet(const std::vector<std::string>& nodes);
  [[nodiscard]] std::string filled_in(std::string text);
  void wrong(const std::string& what);

 private:
  struct Led;
  class Sink;
  struct Key {
    TimePoint due{};
    int failures = 0;
    bool is_due = false;
    std::set<Kind> unseen;  ///< What it wrote and the cache does not show yet.
  };
  struct Led {
    Make make;
    ControllerPtr controller;
    std::map<std::string, Key> keys;
  };
  using Name = std::tuple<std::string, std::string, std::string>;  ///< Kind, namespace, name.
  static std::pair<std::string, std::string> names_of(Kind kind, const std::string& key);

  void edit();
  void make_one(const Sort& sort);
  void change_one();
  void change(Kind kind, const std::string& key, json::Value document, const Field& field);
  void remove_one();
  void hold_or_let_go();
  void begin(ControllerPtr& controller, const Make& make, const Cache& from, Cache& cache, KeySink& sink) const;
  void restart();
  void rest();
  void empty_out();

  void store(Kind kind, const json::Value& document);
  void show(Kind kind, const json::Value& document, bool is_delete);
  void let_go();
  void observe(Kind kind, const json::Value& document, bool is_delete);
  void run(Duration time);
  bool step();
  void carry_out(Led& led, const std::string& key, Plan plan);
  ApiResult<json::Value> serve(const Write& write, std::string& said);
  ApiResult<json::Value> serve_create(const Write& write);
  ApiResult<json::Value> serve_change(const Write& write);
  ApiResult<json::Value> serve_delete(const Write& write);
  std::string tell_write(const Write& write);
  std::string tell_plan(const Plan& plan);
  void ask_twin(const Led& led, const std::string& key, const Plan& plan);
  [[nodiscard]] std::string at() const;

  Settings settings_;
  Cache cache_;
  std::vector<Led> led_;
  std::map<Name, std::pair<Kind, json::Value>> objects_;
  std::map<Kind, std::deque<std::pair<json::Value, bool>>> held_;  ///< Kinds whose watch is late, and what it has not shown.
  std::vector<Kind> watched_;
  std::set<std::string> quiet_;  ///< Controllers and keys whose steps wanted nothing, told in one line.
  std::int64_t revision_ = 100;
  int last_uid_ = 0, last_name_ = 0, wrongs_ = 0;
  bool refuses_ = false;
};

/// Merges as a patch does; `strategic`: conditions by their types, claims' states by their names.
void merge(json::Value& target, const json::Value& patch, bool strategic);

/// A document in one line: no quotes, no times but of the day, owners as KIND/NAME UID.
std::string brief(const json::Value& value);

/// The usual states of pods, by the names of their fields.
std::vector<Field> pod_fields();

}  // namespace berth::controllers::lives
