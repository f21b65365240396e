// What a real kube-apiserver 1.36 answered to requests about every built-in kind, asked here again (tests/oracles/README.md).
// One test a story: test_apiserver --gtest_filter='*Oracle*/create_pod'
#include <zlib.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "tests/apiserver/server_fixture.h"
#include "tests/support/source_dir.h"

namespace berth::apiserver::testing {
namespace {

using json::Array;
using json::Object;
using json::Value;

std::string oracle_folder() { return berth::testing::source_dir() + "/tests/oracles/"; }

std::string read_packed(const std::string& path) {
  std::string out, part(1 << 16, '\0');
  gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) return out;
  for (int n = 0; (n = gzread(file, part.data(), static_cast<unsigned>(part.size()))) > 0;)
    out.append(part, 0, static_cast<std::size_t>(n));
  gzclose(file);
  return out;
}

// ---- a document by an earlier one and what is otherwise

Value* step_into(Value& at, const Value& key) {
  if (key.is_string()) return at.is_object() ? at.get_object().if_contains(json::as_view(key)) : nullptr;
  auto* list = at.if_array();
  const auto index = static_cast<std::size_t>(key.get_int64());
  return list != nullptr && index < list->size() ? &(*list)[index] : nullptr;
}

void change(Value& document, const Array& path, const Value* value) {
  if (path.empty()) {
    document = *value;
    return;
  }
  Value* at = &document;
  for (std::size_t i = 0; i + 1 < path.size() && at != nullptr; ++i) at = step_into(*at, path[i]);
  ASSERT_NE(at, nullptr) << json::serialize(Value(path));
  const Value& last = path.back();
  if (last.is_string()) {
    if (value == nullptr)
      at->get_object().erase(json::as_view(last));
    else
      at->get_object()[json::as_view(last)] = *value;
    return;
  }
  auto& list = at->get_array();
  const auto index = static_cast<std::size_t>(last.get_int64());
  if (value == nullptr)
    list.erase(list.begin() + static_cast<std::ptrdiff_t>(index));
  else if (index == list.size())
    list.push_back(*value);
  else
    list[index] = *value;
}

/// What stands at `number`: itself under `key`, or an earlier one with changes.
Value whole(const Array& all, std::size_t number, const char* key) {
  const Value& one = all[number];
  if (json::find(one, "of") == nullptr) {
    const Value* own = json::find(one, key);
    return own == nullptr ? Value() : *own;
  }
  Value out = whole(all, static_cast<std::size_t>(json::get_int(one, {"of"})), key);
  for (const Value& path : json::get_array(one, {"drop"})) change(out, path.get_array(), nullptr);
  for (const Value& pair : json::get_array(one, {"set"})) change(out, pair.get_array()[0].get_array(), &pair.get_array()[1]);
  return out;
}

// ---- what differs from one run to the next

bool digits_at(std::string_view text, std::size_t at, std::string_view pattern) {
  if (at + pattern.size() > text.size()) return false;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char c = text[at + i];
    const bool fits = pattern[i] == '0'   ? c >= '0' && c <= '9'
                      : pattern[i] == 'x' ? (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f')
                                          : c == pattern[i];
    if (!fits) return false;
  }
  return true;
}

/// Uids, times but those of the requests, the names of rules' types.
std::string masked_text(std::string_view text) {
  constexpr std::string_view kUid = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx", kTime = "0000-00-00T00:00:00", kType = "selfType";
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    if (digits_at(text, at, kUid)) {
      out += "UID";
      at += kUid.size();
      continue;
    }
    if (text.substr(at).starts_with("20") && digits_at(text, at, kTime) && !text.substr(at).starts_with("2026-01-01")) {
      std::size_t end = at + kTime.size();
      const bool has_fraction = end + 1 < text.size() && text[end] == '.' && digits_at(text, end + 1, "0");
      if (has_fraction)
        for (++end; end < text.size() && digits_at(text, end, "0");) ++end;
      if (end < text.size() && text[end] == 'Z') {
        out += has_fraction ? "TIME.F" : "TIME";
        at = end + 1;
        continue;
      }
    }
    if (text.substr(at).starts_with(kType)) {
      out += kType;
      for (at += kType.size(); at < text.size() && digits_at(text, at, "0");) ++at;
      continue;
    }
    out += text[at++];
  }
  return out;
}

bool is_age(std::string_view text) {
  if (text == "<invalid>") return true;
  bool has_digits = false, has_unit = false;
  for (const char c : text) {
    const bool is_digit = c >= '0' && c <= '9';
    if (!is_digit && (!has_digits || std::string_view("smhdy").find(c) == std::string_view::npos)) return false;
    has_unit = !is_digit;
    has_digits = is_digit;
  }
  return has_unit;
}

/// Of the default range, or of the recording's.
bool is_service_address(std::string_view text) {
  if (!text.starts_with("10.") || text.find_first_not_of("0123456789.") != std::string_view::npos) return false;
  const int second = std::atoi(std::string(text.substr(3, text.find('.', 3) - 3)).c_str());
  return second == 0 || (second >= 96 && second <= 111);
}

void mask(Value& value, std::string_view key);

void mask_metadata(Object& metadata) {
  for (const char* field : {"resourceVersion", "selfLink"}) metadata.erase(field);
  if (metadata.contains("continue")) metadata["continue"] = "TOKEN";
  const Value *stem = metadata.if_contains("generateName"), *name = metadata.if_contains("name");
  if (stem == nullptr || !stem->is_string() || name == nullptr || !name->is_string()) return;
  const std::string prefix(json::as_view(*stem));
  if (!prefix.empty() && json::as_view(*name).starts_with(prefix)) metadata["name"] = prefix + "*";
}

void sort_owners(Array& entries) {
  const auto name_of = [](const Value& entry) {
    std::string out;
    for (const char* field : {"manager", "operation", "subresource", "apiVersion"}) {
      const Value* one = json::find(entry, field);
      out += one == nullptr ? "null, " : json::serialize(*one) + ", ";
    }
    return out;
  };
  std::stable_sort(entries.begin(), entries.end(), [&](const Value& a, const Value& b) { return name_of(a) < name_of(b); });
}

/// On purpose: pods above BestEffort tolerate memory pressure here (SPEC D5), as they do there with PodTolerationRestriction.
void drop_memory_pressure(Object& object) {
  Value* tolerations = object.if_contains("tolerations");
  if (tolerations == nullptr || !tolerations->is_array()) return;
  Array& list = tolerations->get_array();
  list.erase(std::remove_if(list.begin(), list.end(),
                            [](const Value& one) { return json::get_string(one, {"key"}) == "node.kubernetes.io/memory-pressure"; }),
             list.end());
}

void mask_object(Object& object) {
  drop_memory_pressure(object);
  for (auto& [key, member] : object) mask(member, key);
  if (Value* metadata = object.if_contains("metadata"); metadata != nullptr && metadata->is_object()) mask_metadata(metadata->get_object());
  if (Value* owners = object.if_contains("managedFields"); owners != nullptr && owners->is_array()) sort_owners(owners->get_array());
  const Value* kind = object.if_contains("kind");
  if (kind == nullptr || *kind != Value("Table")) return;
  Value* rows = object.if_contains("rows");
  if (rows == nullptr || !rows->is_array()) return;
  for (Value& row : rows->get_array()) {
    for (Value& cell : row.get_object()["cells"].get_array()) {
      if (cell.is_string() && is_age(json::as_view(cell)))
        cell = "AGE";
      else if (cell.is_string() && is_service_address(json::as_view(cell)))
        cell = "ADDRESS";
    }
  }
}

void mask(Value& value, std::string_view key) {
  if (value.is_string()) {
    if ((key == "clusterIP" || key == "clusterIPs") && json::as_view(value).starts_with("10."))
      value = "ADDRESS";
    else if (value.get_string().size() >= 20)
      value = masked_text(json::as_view(value));
  } else if (value.is_int64() && (key == "nodePort" || key == "healthCheckNodePort")) {
    if (value.get_int64() >= 30000 && value.get_int64() != 30999) value = "PORT";
  } else if (auto* list = value.if_array()) {
    for (Value& one : *list) mask(one, key);
  } else if (auto* object = value.if_object()) {
    mask_object(*object);
  }
}

/// A Status tells the name that was made of `stem`, of which five letters are chosen by lot.
void mask_generated(Value& value, std::string_view stem) {
  if (value.is_string()) {
    const std::string text(json::as_view(value));
    std::string out;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = at + stem.size() + 5;
      const auto is_chosen = [](char c) { return std::string_view("bcdfghjklmnpqrstvwxz2456789").find(c) != std::string_view::npos; };
      const bool is_generated = text.compare(at, stem.size(), stem) == 0 && end <= text.size() &&
                                std::all_of(text.begin() + static_cast<std::ptrdiff_t>(at + stem.size()),
                                            text.begin() + static_cast<std::ptrdiff_t>(end), is_chosen);
      if (!is_generated) {
        out += text[at++];
        continue;
      }
      out.append(stem).append("*");
      at = end;
    }
    value = out;
  } else if (auto* list = value.if_array()) {
    for (Value& one : *list) mask_generated(one, stem);
  } else if (auto* object = value.if_object()) {
    for (auto& [key, member] : *object) mask_generated(member, stem);
  }
}

/// Causes and the parts of a message may come in the order of a Go map.
void loosen(Value& status) {
  if (json::get_string(status, {"kind"}) != "Status") return;
  std::string text(json::get_string(status, {"message"}));
  if (text.ends_with(']')) text.pop_back();
  if (const auto at = text.find(": ["); at != std::string::npos) text.replace(at, 3, ", ");
  std::vector<std::string> parts;
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t end = std::min(text.find(", ", start), text.size());
    parts.push_back(text.substr(start, end - start));
    start = end + 2;
  }
  std::ranges::sort(parts);
  status.get_object()["message"] = Array(parts.begin(), parts.end());
  if (Value* details = json::find(status, "details"))
    if (Value* causes = json::find(*details, "causes"); causes != nullptr && causes->is_array())
      std::sort(causes->get_array().begin(), causes->get_array().end(),
                [](const Value& a, const Value& b) { return json::serialize(a) < json::serialize(b); });
}

/// Revisions that stand in a text (a message, a document in YAML): another server counts otherwise. So do lines of a pod, which a
/// toleration more moves (drop_memory_pressure).
void mask_revisions(Value& value) {
  if (value.is_string()) {
    std::string text(json::as_view(value));
    for (const std::string_view before : {"resourceVersion\\\":\\\"", "resourceVersion: \"", "in record (", "current: "})
      for (std::size_t at = text.find(before); at != std::string::npos; at = text.find(before, at + before.size())) {
        const auto from = at + before.size();
        text.replace(from, text.find_first_not_of("0123456789", from) - from, "REVISION");
      }
    for (std::size_t at = text.find("@@ -"); at != std::string::npos; at = text.find("@@ -", at + 4))
      if (const auto end = text.find(" @@", at); end != std::string::npos) text.replace(at, end - at, "@@ LINES");
    value = text;
  } else if (auto* list = value.if_array()) {
    for (Value& one : *list) mask_revisions(one);
  } else if (auto* object = value.if_object()) {
    for (auto& [key, member] : *object) mask_revisions(member);
  }
}

/// On purpose: what columns of built-in kinds mean is not told in Kubernetes' prose.
void drop_column_texts(Value& table) {
  Value* columns = json::find(table, "columnDefinitions");
  if (columns == nullptr || !columns->is_array()) return;
  for (Value& column : columns->get_array()) json::erase(column, {"description"});
}

std::vector<std::string> warnings_of(const RecordedResponse& answer) {
  std::vector<std::string> out;
  for (const auto& [name, value] : answer.headers.fields()) {
    if (name != "Warning") continue;
    std::string_view text = value;
    if (text.starts_with("299 - \"")) text = text.substr(7, text.size() - 8);
    out.push_back(masked_text(text));
  }
  std::ranges::sort(out);
  return out;
}

/// "STORY STEP" a line: what is answered otherwise here; the README says why.
const std::set<std::string>& known_differences() {
  static const auto all = [] {
    std::set<std::string> out;
    for (const char* name : {"differences.txt", "differences-definitions.txt"}) {
      std::ifstream file(oracle_folder() + name);
      for (std::string line; std::getline(file, line);)
        if (!line.empty() && line[0] != '#') out.insert(line.substr(0, line.find(" |")));
    }
    return out;
  }();
  return all;
}

class Oracle : public ServerTest, public ::testing::WithParamInterface<std::string> {
 protected:
  void SetUp() override {
    keeps_flow_objects_ = GetParam().find("flow_schema") != std::string::npos;
    start({});
  }

  /// What is otherwise; empty: nothing.
  std::string compare(const Value& there, const Value& body_there, const RecordedResponse& answer, std::string_view stem, bool is_custom) {
    if (answer.status != json::get_int(there, {"c"}))
      return fmt::format("{} instead of {}: {}", answer.status, json::get_int(there, {"c"}), answer.body.substr(0, 1000));
    std::vector<std::string> warnings;
    for (const Value& one : json::get_array(there, {"w"})) warnings.emplace_back(json::as_view(one));
    if (const auto ours = warnings_of(answer); ours != warnings)
      return fmt::format("warnings: {}\nthere: {}", fmt::join(ours, " | "), fmt::join(warnings, " | "));
    if (body_there == Value("")) return {};  // Nothing was shown to somebody who asked for nothing (HEAD).
    auto parsed = json::parse(answer.body);
    Value here = parsed ? std::move(*parsed) : Value(masked_text(answer.body)), body = body_there;
    mask(here, "");
    if (json::equal(here, body)) return {};
    if (!stem.empty()) {
      mask_generated(here, stem);
      mask_generated(body, stem);
    }
    for (Value* one : {&here, &body}) {
      loosen(*one);
      mask_revisions(*one);
      if (!is_custom) drop_column_texts(*one);
    }
    return json::equal(here, body) ? "" : fmt::format("here:  {}\nthere: {}", json::serialize(here), json::serialize(body));
  }

  /// What the last answer with metadata said stands for {continue}, {rv}, {uid} and {name} in what is asked next.
  void remember(const RecordedResponse& answer) {
    const auto document = json::parse(answer.body);
    if (!document) return;
    for (const auto& [word, field] :
         {std::pair{"{continue}", "continue"}, {"{rv}", "resourceVersion"}, {"{uid}", "uid"}, {"{name}", "name"}})
      if (const auto text = json::get_string(*document, {"metadata", field}); !text.empty()) last_[word] = text;
  }
  [[nodiscard]] std::string filled(std::string text) const {
    for (const auto& [word, value] : last_)
      for (std::size_t at = 0; (at = text.find(word, at)) != std::string::npos; at += value.size()) text.replace(at, word.size(), value);
    return text;
  }

  /// What a generated name begins with; empty: none is made.
  static std::string stem_of(const std::string& body) {
    const auto document = json::parse(body);
    return document ? std::string(json::get_string(*document, {"metadata", "generateName"})).substr(0, 58) : std::string();
  }

  static std::string body_of(const Array& steps, std::size_t number) {
    const Value body = whole(steps, number, "b");
    if (body.is_null() && json::find(steps[number], "b") == nullptr && json::find(steps[number], "of") == nullptr) return {};
    return body.is_string() ? std::string(json::as_view(body)) : json::serialize(body);
  }

  std::map<std::string, std::string> last_;
};

TEST_P(Oracle, IsAnsweredAlike) {
  const auto story = json::parse(read_packed(oracle_folder() + "answers/" + GetParam() + ".json.gz"));
  ASSERT_TRUE(story);
  const Array &steps = json::get_array(*story, {"steps"}), &answers = json::get_array(*story, {"answers"});
  ASSERT_EQ(steps.size(), answers.size());
  const char* list = std::getenv("BERTH_ORACLE_DIFFERENCES");  // Where differences are written instead of being failures.
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Value& step = steps[i];
    if (json::find(step, "wait") != nullptr) loop_.run_for(std::chrono::seconds(2));
    const std::string method(json::get_string(step, {"m"})), path = filled(std::string(json::get_string(step, {"p"}))),
                                                             body = filled(body_of(steps, i));
    const std::string type(json::get_string(step, {"t"}, "application/json"));
    std::vector<std::pair<std::string, std::string>> headers = {{"User-Agent", "recorder"},
                                                                {"Accept", std::string(json::get_string(step, {"a"}, "application/json"))}};
    if (body.empty() && json::find(step, "b") != nullptr) headers.emplace_back("Content-Type", type);  // A body, of nothing.
    const auto answer = send(method, path, body, type, headers);
    const std::string name = fmt::format("{} {}", GetParam(), i);
    remember(*answer);
    if (keeps_flow_objects_) loop_.run_for(std::chrono::milliseconds(1));
    if (list == nullptr && known_differences().contains(name)) continue;
    const std::string why =
        compare(answers[i], whole(answers, i, "o"), *answer, stem_of(body), path.find("example.com") != std::string::npos);
    if (why.empty()) continue;
    if (list != nullptr)
      std::ofstream(list, std::ios::app) << fmt::format("{} | {} {}\n{}\n{}\n\n", name, method, path, body.substr(0, 300), why);
    else
      ADD_FAILURE() << name << ": " << method << " " << path << "\n" << body << "\n" << why;
  }
}

std::vector<std::string> oracle_names() {
  std::vector<std::string> out;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(oracle_folder() + "answers", none)) {
    const std::string name = entry.path().filename();
    if (name.ends_with(".json.gz")) out.push_back(name.substr(0, name.size() - 8));
  }
  std::ranges::sort(out);
  return out;
}

INSTANTIATE_TEST_SUITE_P(Recorded, Oracle, ::testing::ValuesIn(oracle_names()), [](const auto& info) { return info.param; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Oracle);

/// No story is lost unnoticed, and no difference grows: answers/COUNT says how many stories and requests there are, and how many differ.
TEST(OraclePack, IsWhole) {
  std::size_t stories = 0, differences = 0;
  for (const char* name : {"answers/COUNT", "answers/COUNT-definitions"}) {
    std::ifstream file(oracle_folder() + name);
    std::size_t more_stories = 0, more_differences = 0;
    file >> more_stories >> more_differences;
    EXPECT_GT(more_stories, 0U) << name;
    stories += more_stories;
    differences += more_differences;
  }
  EXPECT_GT(stories, 0U);
  EXPECT_EQ(oracle_names().size(), stories);
  EXPECT_LE(known_differences().size(), differences);
}

}  // namespace
}  // namespace berth::apiserver::testing
