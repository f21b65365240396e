// What if? A cluster as it is, and changes to it, in; where its pods end up, out (SPEC I2). Nothing real is touched, nothing is drawn by
// chance, no clock is read: the same objects and the same question give the same bytes.
//
//   Present present(options);            a cluster: from a dump or a live list, read once
//     .add(object) … .finish()
//     .ask(question)                     as often as wanted: the present stays as it is
//
// The question and the answer are JSON documents; docs/what-if.md has both formats. The command `berth what-if`, the dashboard and the
// tests ask alike.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "placement/profiles.h"
#include "placement/status.h"

namespace berth::whatif {

struct Options {
  placement::Profiles profiles;               ///< Of the cluster's schedulers.
  placement::Era era = placement::Era::k136;  ///< That the profiles are of.
  bool budgets_are_hard = false;              ///< As the scheduler runs: preemption never breaks a budget.
  TimePoint now{};                            ///< The moment that is asked about: ages of pods count from it.
  std::string default_namespace = "default";  ///< Of manifests and names without one.
  json::Value prices;           ///< A price an hour by instance type ({"m5.large": 0.096, "currency": "EUR"}); null: no cost is told.
  std::string configuration;    ///< Whose the profiles are and where they are from, for people; empty: not told.
  std::string asked_at;         ///< Of a live cluster: when it was read (RFC 3339); empty for files, which say themselves.
  bool may_lack_nodes = false;  ///< Some are bought.
};

/// Which of the single losses (`each`) are tried here: one of so many parts of them, in their order. Answers of all parts put together by
/// `join_losses` are the answer of the whole, byte for byte: so that processes can share the work.
struct Part {
  std::size_t index = 0, count = 1;
};

/// What the question's change of this number, or a field of it (else empty), is called where it is wrong; "changes[2].drain" unless
/// somebody knows better.
using NameOfChange = std::function<std::string(std::size_t number, std::string_view field)>;

/// A cluster as it is. Single-threaded.
class Present {
 public:
  explicit Present(Options options);
  ~Present();
  Present(Present&&) noexcept;
  Present& operator=(Present&&) noexcept;

  /// One object, of any kind; lists are the caller's to take apart. `source`: the file, for messages.
  void add(const json::Value& object, std::string_view source = {});
  /// Every object of this kind (its plural name) was added, and be it none: of a live cluster. A dump may lack what the cluster has.
  void know_all_of(std::string_view plural);
  /// What the caller knows of the objects, for every answer's notes.
  void note(std::string sentence);
  /// When all are in. The error: the objects are of several clusters (one name, several uids), or there is no node among them.
  Result<void> finish();
  /// What the answers ignore because the objects lack it, and what of them is no use: a line each.
  [[nodiscard]] const std::vector<std::string>& notes() const;

  /// The answer. The error says which change is wrong and what was meant perhaps; then nothing was answered. Not const: the engine learns.
  /// After `finish`.
  Result<json::Value> ask(const json::Value& question, Part part = {}, const NameOfChange& name_of = {});
  /// Holds an answer of an earlier moment against this present: {"holds", "then", "now" (moments), "changed" (of what it speaks of, a
  /// sentence each), "differences" (of what the same question is answered with now)}. It holds while there are no differences. The error:
  /// `answer` is none, or its question has no answer here any more.
  Result<json::Value> look_again(const json::Value& answer);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Adds the losses of the next part to an answer.
void join_losses(json::Value& answer, const json::Value& next);

/// One question about one set of objects.
Result<json::Value> ask(std::span<const json::Value> objects, const json::Value& question, Options options);

/// An answer for people: what matters first, then tables. `most_rows`: longer tables are cut, and say so.
std::string to_text(const json::Value& answer, std::size_t most_rows = 40);
/// The same as one page that needs nothing else: styles and plots are in it, names are escaped.
std::string to_html(const json::Value& answer);
/// What `look_again` found, for people.
std::string text_of_look(const json::Value& look);

}  // namespace berth::whatif
