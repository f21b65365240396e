// Reading a configuration document field by field: every problem is kept with its place, unknown and repeated fields are found, and what is
// known but was read by nobody is told. The one reader of every file that configures berth.
#pragma once
#include <functional>
#include <initializer_list>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace berth::config {

/// Who refuses what is wrong: Kubernetes as well, or berth alone, where Kubernetes would take it in silence.
enum class Refusal { kOfKubernetes, kOfBerth };

/// Collects problems. `locate` tells a path's line in the source; 0 when unknown.
class Problems {
 public:
  /// `as_kubernetes`: for replays of what Kubernetes took; what berth alone refuses is a note then.
  Problems(std::string file, std::function<int(const std::string& path)> locate, bool as_kubernetes = false)
      : file_(std::move(file)), locate_(std::move(locate)), as_kubernetes_(as_kubernetes) {}
  void add(const std::string& path, std::string_view message, Refusal refusal = Refusal::kOfKubernetes) {
    const bool is_note = as_kubernetes_ && refusal == Refusal::kOfBerth;
    keep(path, message, is_note ? notes_ : lines_);
    if (!is_note && locate_) at_.insert(locate_(path));
  }
  /// What is no mistake and is to be said all the same.
  void note(const std::string& path, std::string_view message) { keep(path, message, notes_); }
  [[nodiscard]] bool empty() const { return lines_.empty(); }
  [[nodiscard]] std::size_t size() const { return lines_.size(); }
  /// In which lines of the source they are.
  [[nodiscard]] const std::set<int>& lines() const { return at_; }
  /// All problems, a line each, in the order found.
  [[nodiscard]] std::string text() const;
  /// "FILE:LINE: PATH".
  [[nodiscard]] std::string place(const std::string& path) const;
  /// The notes, then one for all fields that were declared (Reader::only) and that nobody read.
  [[nodiscard]] std::vector<std::string> notes() const;

 private:
  friend class Reader;
  void keep(const std::string& path, std::string_view message, std::vector<std::string>& into) const;

  std::string file_;
  std::function<int(const std::string&)> locate_;
  bool as_kubernetes_;
  std::vector<std::string> lines_, notes_;
  std::set<int> at_;
  std::vector<std::string> declared_;  ///< Paths of fields that are there, in their order.
  std::set<std::string, std::less<>> read_;
};

/// A value with its path. Reads give the fallback when the field is absent or null, and a problem when it has another type.
class Reader {
 public:
  Reader(const json::Value* value, std::string path, Problems& problems) : value_(value), path_(std::move(path)), problems_(&problems) {}

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string place() const { return problems_->place(path_); }
  [[nodiscard]] const json::Value* value() const { return value_; }
  [[nodiscard]] bool is_present() const { return value_ != nullptr && !value_->is_null(); }
  [[nodiscard]] bool is_object() const { return is_present() && value_->is_object(); }
  /// The field; not present when this is no object.
  [[nodiscard]] Reader field(std::string_view name) const;
  [[nodiscard]] bool has(std::string_view name) const { return field(name).is_present(); }
  [[nodiscard]] std::vector<Reader> items() const;
  /// The fields of a map whose keys are the user's own.
  [[nodiscard]] std::vector<std::pair<std::string, Reader>> members() const;
  [[nodiscard]] std::string string(std::string_view name, std::string_view fallback = {}) const;
  /// One of the words; a problem lists them. Empty counts as absent.
  [[nodiscard]] std::string one_of(std::string_view name, std::span<const std::string_view> words, std::string_view fallback = {}) const;
  [[nodiscard]] std::int64_t integer(std::string_view name, std::int64_t fallback) const;
  [[nodiscard]] double number(std::string_view name, double fallback) const;
  [[nodiscard]] bool boolean(std::string_view name, bool fallback) const;
  /// A metav1.Duration ("15s", "1m30s", "1.5h") in milliseconds.
  [[nodiscard]] std::int64_t duration_ms(std::string_view name, std::int64_t fallback) const;
  [[nodiscard]] std::vector<std::string> strings(std::string_view name) const;
  /// As `strings`, with a single string as a list of one.
  [[nodiscard]] std::vector<std::string> string_or_strings(std::string_view name) const;
  /// The items as texts: numbers and booleans as they were written. For flags, whose values are texts.
  [[nodiscard]] std::vector<std::string> texts() const;
  /// Declares the fields: every key must be one of `known`, a problem names the nearest; a known one that is there and that is never read
  /// is told by Problems::notes.
  void only(std::initializer_list<std::string_view> known, Refusal refusal = Refusal::kOfKubernetes) const {
    only(std::span(known.begin(), known.size()), refusal);
  }
  void only(std::span<const std::string_view> known, Refusal refusal = Refusal::kOfKubernetes) const;
  /// As `only`. What belongs below the field `section` (`fields`) and stands here is told to belong there.
  void only(std::span<const std::string_view> known, std::string_view section, std::span<const std::string_view> fields,
            Refusal refusal = Refusal::kOfKubernetes) const;
  /// `kind` and `apiVersion`, when they are there, must be one of these; both count as read.
  void expect_kind(std::span<const std::string_view> kinds, std::span<const std::string_view> versions) const;
  /// Says of fields that are there and well that nothing acts on them here, and why.
  void without_effect(std::initializer_list<std::string_view> names, std::string_view why) const;
  /// All fields count as read: of a part that is switched off.
  void skip() const;
  /// Must be an object when present; false with a problem otherwise.
  bool expect_object() const;
  void problem(std::string_view message) const { problems_->add(path_, message); }
  void problem(std::string_view name, std::string_view message, Refusal refusal = Refusal::kOfKubernetes) const {
    problems_->add(path_of(name), message, refusal);
  }
  void note(std::string_view message) const { problems_->note(path_, message); }
  void note(std::string_view name, std::string_view message) const { problems_->note(path_of(name), message); }
  [[nodiscard]] Problems& problems() const { return *problems_; }

 private:
  [[nodiscard]] std::string path_of(std::string_view name) const {
    return path_.empty() ? std::string(name) : path_ + "." + std::string(name);
  }
  const json::Value* value_;
  std::string path_;
  Problems* problems_;
};

struct ReadOptions {
  std::string file = "config";                ///< Stands before every problem: "FILE:LINE: ".
  bool as_kubernetes = false;                 ///< As Problems.
  std::vector<std::string>* notes = nullptr;  ///< Gets what is no error and is to be said.
};
/// Reads one document, YAML or JSON. `read` reads from its root into what it starts anew. Where there are problems, where somebody gets the
/// notes, and where it is no replay, it is called again with the text as the documents mean it (config_repair.h); what is changed for that
/// is noted. Keys that stand twice are problems. The error lists every problem, a line each, "FILE:LINE: PATH: …".
Result<void> read_text(std::string_view text, const ReadOptions& options, const std::function<void(const Reader& root)>& read);
/// The documents of a stream, each as the whole text with the lines of the others left blank: lines keep their numbers. Empty ones are left
/// out.
std::vector<std::string> split_documents(std::string_view text);
/// A file's whole content; the error names the file and why.
Result<std::string> read_whole_file(const std::string& path);

/// The candidate with the smallest edit distance, when near enough to be meant; empty otherwise.
std::string_view nearest(std::string_view name, std::span<const std::string_view> candidates);
/// `; did you mean "X"?`, or empty.
std::string suggestion(std::string_view name, std::span<const std::string_view> candidates);

/// Finds the line of a path ("profiles[0].plugins.score") in YAML or JSON text; of the nearest part above when it is not there, 0 when
/// there is none. `document`: which of the text's, from 0; empty ones are not counted.
std::function<int(const std::string&)> line_finder(std::string_view text, std::size_t document = 0);
/// Paths of the keys that stand twice in one map.
std::vector<std::string> repeated_keys(std::string_view text);

}  // namespace berth::config
