// `berth what-if`: changes in, where every pod ends up out, before anybody acts (SPEC I2).
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <thread>

#include "base/config_reader.h"
#include "base/split.h"
#include "cli/command/keep_to_the_end.h"
#include "cli/command/parse.h"
#include "cli/planning/instance_types.h"
#include "cli/planning/placement_commands.h"
#include "cli/planning/pool_documents.h"
#include "cli/planning/whatif_ask.h"
#include "whatif/verbs.h"

namespace berth::cli {
namespace {

/// "node-1,zone=b" as one NODES.
json::Value nodes_in(std::string_view text) {
  json::Array out;
  for (const std::string_view part : words(text, ',')) out.emplace_back(part);
  return out.size() == 1 ? json::Value(out[0]) : json::Value(std::move(out));
}

/// The two parts of "NODES:WHAT" or "NODES WHAT".
Result<std::pair<json::Value, std::string>> nodes_and(std::string_view text, std::string_view flag, std::string_view what) {
  const std::size_t at = text.find_first_of(": ");
  if (at == std::string_view::npos || at == 0 || at + 1 == text.size())
    return invalid(fmt::format("{} {}: NODES:{} is wanted", flag, text, what));
  return std::pair(nodes_in(text.substr(0, at)), std::string(text.substr(at + 1)));
}

std::vector<std::string> words_in(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const std::size_t end = text.find_first_of(", ");
    if (end != 0) out.emplace_back(text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  }
  return out;
}

/// "a=b c-" as {"a": "b", "c": null}.
Result<json::Object> assignments(std::string_view text, std::string_view flag, bool may_remove) {
  json::Object out;
  for (const std::string& word : words_in(text)) {
    const std::size_t equals = word.find('=');
    if (equals != std::string::npos)
      out[word.substr(0, equals)] = word.substr(equals + 1);
    else if (may_remove && word.ends_with('-'))
      out[word.substr(0, word.size() - 1)] = nullptr;
    else
      return invalid(fmt::format("{}: \"{}\": KEY=VALUE{} is wanted", flag, word, may_remove ? " or KEY-" : ""));
  }
  return out;
}

/// "10×m5.2xlarge", "10xcpu=8,memory=32Gi", "m5.2xlarge"; "@zone" behind it.
Result<json::Object> addition(std::string text) {
  json::Object out;
  std::int64_t count = 1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  const std::string_view rest(end, static_cast<std::size_t>(text.data() + text.size() - end));
  std::size_t skip = 0;
  if (error == std::errc{}) {
    for (const std::string_view sign : {"×", "x", "X", "*"})
      if (rest.starts_with(sign)) skip = static_cast<std::size_t>(end - text.data()) + sign.size();
  }
  out["count"] = skip > 0 ? count : 1;
  text.erase(0, skip);
  if (const std::size_t at = text.rfind('@'); at != std::string::npos) {
    out["zone"] = text.substr(at + 1);
    text.erase(at);
  }
  if (text.empty()) return invalid("--add: 10×SHAPE is wanted: an instance type, a node's name, or cpu=8,memory=32Gi");
  out["add"] = text;
  return out;
}

Result<json::Value> one_document(const std::string& path) {
  const auto text = config::read_whole_file(path);
  if (!text) return std::unexpected(text.error());
  auto document = json::parse_yaml(*text);
  if (!document) return invalid(fmt::format("{}: {}", path, document.error().message));
  return document;
}

/// Changes in the order in which they were given, each with where it is from.
class Changes {
 public:
  Result<void> add_flag(const std::string& flag, const std::string& value);
  /// --file: a whole question; what stands beside `changes` goes to `question`.
  Result<void> add_file(const std::string& path, json::Object& question);
  /// What pools buy from. Where no change names pools, the cluster's own buy in the end.
  void buy_from(const json::Value& instance_types, const std::string& words) {
    if (!buys()) add(json::Object{{"pools", true}}, words);
    for (json::Value& one : changes_)
      if (one.is_object() && one.get_object().contains("pools") && !one.get_object().contains("instanceTypes"))
        one.get_object()["instanceTypes"] = instance_types;
  }
  [[nodiscard]] bool buys() const {
    return std::ranges::any_of(changes_, [](const json::Value& one) { return one.is_object() && one.get_object().contains("pools"); });
  }
  [[nodiscard]] bool lacks_instance_types() const {
    return std::ranges::any_of(changes_, [](const json::Value& one) {
      return one.is_object() && one.get_object().contains("pools") && !one.get_object().contains("instanceTypes");
    });
  }
  [[nodiscard]] json::Array take() { return std::move(changes_); }
  [[nodiscard]] bool empty() const { return changes_.empty(); }
  /// A change by its flag, or by file and line (whatif::NameOfChange).
  [[nodiscard]] std::string name_of(std::size_t number, std::string_view field) const;

 private:
  struct Origin {
    std::string words;  ///< "--drain node-7"; of a file: its path.
    std::string text;   ///< Of a file.
    std::size_t number = 0;
  };
  void add(json::Value change, std::string words) {
    changes_.push_back(std::move(change));
    origins_.push_back({std::move(words), {}, 0});
  }
  json::Array changes_;
  std::vector<Origin> origins_;
};

namespace {

/// NAMESPACE/POD[/CONTAINER]:AMOUNTS
Result<json::Value> resize(const std::string& value, const std::string& words) {
  const std::size_t colon = value.find(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == value.size())
    return invalid(fmt::format("{}: NAMESPACE/POD[/CONTAINER]:cpu=2,memory=4Gi is wanted", words));
  auto requests = assignments(value.substr(colon + 1), words, false);
  if (!requests) return std::unexpected(requests.error());
  const std::string name = value.substr(0, colon);
  const std::size_t slash = name.rfind('/');
  const bool has_container = slash != std::string::npos && name.find('/') != slash;
  json::Object change{{"resize", has_container ? name.substr(0, slash) : name}, {"requests", std::move(*requests)}};
  if (has_container) change["container"] = name.substr(slash + 1);
  return change;
}

}  // namespace

Result<void> Changes::add_flag(const std::string& flag, const std::string& value) {
  const std::string words = flag + " " + value;
  const std::string verb = flag.substr(2);
  if (const whatif::Verb* known = whatif::find_verb(verb); known != nullptr && known->on_nodes != nullptr && known->fields.empty()) {
    add(json::Object{{verb, nodes_in(value)}}, words);
  } else if (verb == "add") {
    auto change = addition(value);
    if (!change) return std::unexpected(change.error());
    add(std::move(*change), words);
  } else if (verb == "label" || verb == "allocatable") {
    auto parts = nodes_and(value, flag, "KEY=VALUE");
    if (!parts) return std::unexpected(parts.error());
    auto pairs = assignments(parts->second, words, verb == "label");
    if (!pairs) return std::unexpected(pairs.error());
    add(json::Object{{verb, std::move(parts->first)}, {verb == "label" ? "labels" : "resources", std::move(*pairs)}}, words);
  } else if (verb == "taint") {
    auto parts = nodes_and(value, flag, "KEY=VALUE:EFFECT");
    if (!parts) return std::unexpected(parts.error());
    json::Array taints;
    for (const std::string& taint : words_in(parts->second)) taints.emplace_back(taint);
    add(json::Object{{"taint", std::move(parts->first)}, {"taints", std::move(taints)}}, words);
  } else if (verb == "scale") {
    const std::size_t equals = value.rfind('=');
    std::int64_t replicas = -1;
    if (equals != std::string::npos) {
      const char *begin = value.data() + equals + 1, *stop = value.data() + value.size();
      if (const auto [end, error] = std::from_chars(begin, stop, replicas); error != std::errc{} || end != stop) replicas = -1;
    }
    if (replicas < 0) return invalid(fmt::format("{}: NAMESPACE/NAME=REPLICAS is wanted", words));
    add(json::Object{{"scale", value.substr(0, equals)}, {"replicas", replicas}}, words);
  } else if (verb == "resize") {
    auto change = resize(value, words);
    if (!change) return std::unexpected(change.error());
    add(std::move(*change), words);
  } else if (verb == "delete" || verb == "evict") {
    add(json::Object{{verb, value}}, words);
  } else if (verb == "filename") {
    auto objects = read_objects({value});
    if (!objects) return std::unexpected(objects.error());
    if (objects->empty()) return invalid(fmt::format("-f {}: there is no object in it", value));
    for (json::Value& object : *objects) add(json::Object{{"apply", std::move(object)}}, "-f " + value);
  } else if (verb == "config" || verb == "descheduler-policy" || verb == "autoscaler") {
    if (verb == "autoscaler" && value == "cluster") {
      add(json::Object{{"autoscaler", true}}, flag);
      return {};
    }
    auto document = one_document(value);
    if (!document) return std::unexpected(document.error());
    add(json::Object{{verb == "descheduler-policy" ? "descheduler" : verb, std::move(*document)}}, words);
  } else if (verb == "node-pool") {
    auto documents = read_pool_documents({value});
    if (!documents) return std::unexpected(documents.error());
    // Files one after the other are pools side by side.
    if (changes_.empty() || json::get_array(changes_.back(), {"pools"}).empty()) add(json::Object{{"pools", json::Array()}}, words);
    json::Array& pools = changes_.back().get_object()["pools"].get_array();
    for (json::Value& one : *documents) pools.push_back(std::move(one));
  } else if (verb == "config-from") {
    if (changes_.empty() || !changes_.back().get_object().contains("config")) return invalid("--config-from stands behind its --config");
    changes_.back().get_object()["from"] = value;
  }
  return {};
}

namespace {

/// Of a change `pools`: files' names become what is in them.
Result<json::Value> with_pools(json::Value change, const std::filesystem::path& folder) {
  const auto file_in = [&](std::string_view field) {
    const json::Value* named = json::find(change, field);
    return named != nullptr && named->is_string() ? (folder / std::string(json::as_view(*named))).string() : std::string();
  };
  if (json::find(change, "pools") == nullptr) return change;
  if (const std::string file = file_in("pools"); !file.empty()) {
    auto documents = read_pool_documents({file});
    if (!documents) return std::unexpected(documents.error());
    change.get_object()["pools"] = json::Array(documents->begin(), documents->end());
  }
  if (const std::string file = file_in("instanceTypes"); !file.empty()) {
    auto types = read_instance_types(file);
    if (!types) return types;
    change.get_object()["instanceTypes"] = std::move(*types);
  }
  return change;
}

}  // namespace

Result<void> Changes::add_file(const std::string& path, json::Object& question) {
  auto text = config::read_whole_file(path);
  if (!text) return std::unexpected(text.error());
  auto document = json::parse_yaml(*text);
  if (!document) return invalid(fmt::format("{}: {}", path, document.error().message));
  if (!document->is_object()) return invalid(fmt::format("{}: an object with \"changes\" is wanted", path));
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  for (auto& [key, value] : document->get_object())
    if (std::string_view(key) != "changes") question[key] = value;
  const json::Value* changes = json::find(*document, "changes");
  if (changes != nullptr && !changes->is_array()) return invalid(fmt::format("{}: changes: a list is wanted", path));
  std::size_t number = 0;
  for (const json::Value& change : changes == nullptr ? json::Array{} : changes->get_array()) {
    const std::size_t here = number++;
    // Documents may stand in files of their own, beside this one.
    bool is_done = false;
    for (const char* verb : {"apply", "config", "descheduler", "autoscaler"}) {
      const json::Value* what = json::find(change, verb);
      if (what == nullptr || !what->is_string()) continue;
      const std::string file = (folder / std::string(json::as_view(*what))).string();
      auto objects = read_objects({file});
      if (!objects)
        return invalid(
            fmt::format("{}:{}: {}", path, config::line_finder(*text)(fmt::format("changes[{}].{}", here, verb)), objects.error().message));
      for (json::Value& object : *objects) {
        json::Value full = change;
        full.get_object()[verb] = std::move(object);
        changes_.push_back(std::move(full));
        origins_.push_back({path, *text, here});
      }
      is_done = true;
    }
    if (is_done) continue;
    auto full = with_pools(change, folder);
    if (!full)
      return invalid(
          fmt::format("{}:{}: {}", path, config::line_finder(*text)(fmt::format("changes[{}].pools", here)), full.error().message));
    changes_.push_back(std::move(*full));
    origins_.push_back({path, *text, here});
  }
  return {};
}

std::string Changes::name_of(std::size_t number, std::string_view field) const {
  const Origin& origin = origins_[number];
  if (origin.text.empty()) return origin.words;
  const std::string path = fmt::format("changes[{}]{}{}", origin.number, field.empty() ? "" : ".", field);
  return fmt::format("{}:{}: {}", origin.words, config::line_finder(origin.text)(path), path);
}

struct Flags {
  WhatIfFlags common;
  std::string each, by, autoscaler, check, instance_types;
  std::size_t processes = std::max(1U, std::thread::hardware_concurrency());
  std::vector<std::string> fail_on;
  bool preempt = false;
  std::optional<int> orders;
  std::vector<std::unique_ptr<std::vector<std::string>>> values;

  void add_to(CLI::App& app) {
    const auto change = [&](const char* name, const char* help) {
      values.push_back(std::make_unique<std::vector<std::string>>());
      app.add_option(name, *values.back(), help)->allow_extra_args(false)->group("Changes, applied in the order given");
    };
    change("--drain", "Nodes are drained: NAME, KEY=VALUE of a label (zone=b), or several with commas");
    change("--fail", "Nodes are lost");
    change("--remove", "Nodes are deleted");
    change("--cordon", "Nodes take no new pods");
    change("--uncordon", "Nodes take pods again");
    change("--add", "Nodes come: 10×m5.2xlarge (or 10x…), 3×node-7, 2×cpu=8,memory=32Gi; @ZONE behind it says where");
    change("--label", "NODES:KEY=VALUE; KEY- takes one away");
    change("--taint", "NODES:KEY=VALUE:EFFECT; KEY- takes one away");
    change("--allocatable", "NODES:cpu=4,memory=8Gi");
    change("-f,--filename", "Objects are applied: a file or folder");
    change("--scale", "NAMESPACE/NAME=REPLICAS, KIND/NAMESPACE/NAME=REPLICAS");
    change("--resize", "NAMESPACE/POD:cpu=2,memory=4Gi is what it asks for from now on, where it is; /CONTAINER behind the pod's name");
    change("--delete", "KIND/NAMESPACE/NAME is deleted");
    change("--evict", "NAMESPACE/POD is evicted through the eviction API");
    change("--config", "Another KubeSchedulerConfiguration or Policy decides from here on");
    change("--config-from", "Behind --config: pending (what waits) or empty (every pod placed anew, by both)");
    change("--descheduler-policy", "What this DeschedulerPolicy would evict now goes");
    change("--node-pool", "NodePools of a file buy nodes for what waits, beside those of the cluster (with --instance-types)");
    app.add_option("--instance-types", instance_types,
                   "The file of instance types with their prices that NodePools buy from; without --node-pool: what the cluster's own "
                   "would buy (docs/node-pools.md)");
    change("--file", "A question in a file (docs/what-if.md)");
    app.add_flag("--autoscaler{cluster}", autoscaler, "One pass of the autoscaler: the cluster's own, or --autoscaler=FILE")
        ->group("Changes, applied in the order given");
    app.add_option("--each", each, "Then every single node in turn (node), or zone, or a label's key: which loss leaves something pending");
    app.add_option("--by", by, "How: fail (default), remove or drain")->check(CLI::IsMember({"fail", "remove", "drain"}));
    app.add_flag("--preempt", preempt, "For each pending pod: who would have to go");
    app.add_option("--orders", orders,
                   "In how many further orders of arrival the changes are played, to tell what depends on it (3; 0: in none)")
        ->check(CLI::Range(0, 50));
    app.add_option("--fail-on", fail_on,
                   "Exit with 3 for: pending (pods that were not before; with --each, after a loss), evictions (any pod evicted, preempted "
                   "or lost), "
                   "budget (broken, or one that refuses an eviction)")
        ->delimiter(',')
        ->check(CLI::IsMember({"pending", "evictions", "budget"}));
    app.add_option("--processes", processes, "How many processes share the losses of --each; the answer is the same")
        ->check(CLI::Range(1, 256))
        ->capture_default_str();
    app.add_option("--check", check,
                   "A saved answer (-o json) instead of changes: what has changed since, and whether it still holds; exit with 3 if not");
    common.add_to(app, "--scheduler-config", {"text", "json", "yaml", "html"});
  }
};

/// The changes of the flags, in their order.
Result<void> collect(const CLI::App& app, const Flags& flags, Changes& changes, json::Object& question) {
  std::map<const CLI::Option*, std::size_t> used;
  for (const CLI::Option* option : app.parse_order()) {
    if (option->get_group() != "Changes, applied in the order given") continue;
    const std::string name = "--" + option->get_lnames().front();
    const std::size_t at = used[option]++;
    if (name == "--autoscaler") {
      if (auto done = changes.add_flag(name, flags.autoscaler); !done) return done;
      continue;
    }
    if (at >= option->results().size()) continue;
    const std::string& value = option->results()[at];
    if (auto done = name == "--file" ? changes.add_file(value, question) : changes.add_flag(name, value); !done) return done;
  }
  return {};
}

bool fails(const json::Value& answer, const std::vector<std::string>& on) {
  const auto count = [&](std::string_view key) { return json::get_int(answer, {"summary", key}); };
  const auto listed = [&](std::string_view key) {
    return std::ranges::any_of(json::get_array(answer, {"each"}), [&](const json::Value& one) { return json::get_int(one, {key}) > 0; });
  };
  return std::ranges::any_of(on, [&](const std::string& what) {
    if (what == "pending") return count("pending") > 0 || json::get_int(answer, {"eachPending"}) > 0;
    if (what == "evictions") return count("evicted") + count("preempted") + count("lost") > 0 || listed("lostPodsCount");
    return count("budgetsBroken") + count("blocked") > 0 || listed("blockedCount") ||
           std::ranges::any_of(json::get_array(answer, {"each"}),
                               [](const json::Value& one) { return !json::get_array(one, {"broken"}).empty(); });
  });
}

}  // namespace

int run_what_if(const std::vector<std::string>& args) {
  CLI::App app(
      "Answers before you act: which pods move, which stay pending and why, which evictions a budget refuses, how full nodes become.\n"
      "Nothing is changed. Changes are applied in the order given, each settled before the next.\n"
      "  berth what-if --drain node-7\n"
      "  berth what-if --cluster dump.yaml --fail zone=b --scale shop/web=300 -o json\n"
      "  berth what-if --each node --fail-on pending          # does any single loss leave something pending?\n"
      "  berth what-if --drain node-7 -o json >plan.json; berth what-if --check plan.json      # does it still hold?\n"
      "  berth what-if -f new.yaml --add 10×m5.2xlarge --prices prices.yaml\n"
      "  berth what-if -f new.yaml --node-pool pool.yaml --instance-types types.yaml",
      "berth what-if");
  Flags flags;
  flags.add_to(app);
  if (const auto code = parse_args(app, args)) return *code;
  Changes changes;
  json::Object question;
  if (auto done = collect(app, flags, changes, question); !done) return report(done.error());
  if (!flags.instance_types.empty()) {
    auto types = read_instance_types(flags.instance_types);
    if (!types) return report(types.error());
    changes.buy_from(*types, "--instance-types " + flags.instance_types);
  }
  if (!flags.each.empty()) question["each"] = flags.each;
  if (!flags.by.empty()) question["by"] = flags.by;
  if (flags.preempt) question["preempt"] = true;
  if (flags.orders) question["orders"] = *flags.orders;
  if (!flags.check.empty()) {
    if (changes.empty() && question.empty()) return check_answer(flags.check, flags.common);
    std::fprintf(stderr,
                 "error: --check asks what the saved answer was asked: no other change, --each, --preempt or --orders stands beside it\n");
    return 2;
  }
  if (changes.empty() && question.empty()) {
    std::fprintf(stderr,
                 "error: say what changes: --drain NODE, --fail zone=b, --add 3×TYPE, --scale NS/NAME=N, -f FILE, … or --each node\n");
    return 2;
  }
  if (changes.lacks_instance_types())
    if (auto types = published_instance_types(flags.common.placement)) changes.buy_from(*types, "");
  if (changes.lacks_instance_types()) {
    std::fprintf(stderr, "error: --node-pool needs --instance-types FILE: what can be bought, and at which price (docs/node-pools.md)\n");
    return 2;
  }
  flags.common.may_lack_nodes = changes.buys();
  auto read = read_present(flags.common);
  if (!read) return report(read.error());
  whatif::Present& present = keep_to_the_end(std::move(*read));
  Changes origins = changes;
  question["changes"] = changes.take();
  const auto name_of = [&](std::size_t number, std::string_view field) { return origins.name_of(number, field); };
  auto answer = ask_with_processes(present, json::Value(std::move(question)), flags.processes, name_of);
  if (!answer) return report(answer.error());
  print_answer(*answer, flags.common);
  return fails(*answer, flags.fail_on) ? 3 : 0;
}

}  // namespace berth::cli
