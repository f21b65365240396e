#include "cli/planning/whatif_input.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdio>
#include <set>

#include "autoscaler/cluster_cache.h"
#include "base/config_reader.h"
#include "base/split.h"
#include "cli/planning/dumps.h"
#include "cli/planning/live_objects.h"
#include "cli/planning/pool_view.h"
#include "placement/cluster_kinds.h"

namespace berth::cli {
namespace {

/// {"m5.large": 0.096, "currency": "EUR"}, or lines of TYPE,PRICE.
Result<json::Value> read_prices(const std::string& path) {
  const auto text = config::read_whole_file(path);
  if (!text) return std::unexpected(text.error());
  json::Object out;
  const auto put = [&](std::string_view type, std::string_view price, std::string_view where) -> Result<void> {
    double value = 0;
    const auto [end, error] = std::from_chars(price.data(), price.data() + price.size(), value);
    if (error != std::errc{} || end != price.data() + price.size() || value < 0)
      return invalid(fmt::format("{}: {}: \"{}\" is no price", path, where, price));
    out[type] = value;
    return {};
  };
  if (auto document = json::parse_yaml(*text); document && document->is_object()) {
    const json::Value* inner = json::find(*document, "prices");
    if (const auto currency = json::get_string(*document, {"currency"}); !currency.empty()) out["currency"] = currency;
    for (const auto& [type, price] : (inner != nullptr && inner->is_object() ? *inner : *document).get_object()) {
      if (type == "currency") continue;
      const std::string words = price.is_string() ? std::string(json::as_view(price)) : json::serialize(price);
      if (auto done = put(type, words, type); !done) return std::unexpected(done.error());
    }
    return json::Value(std::move(out));
  }
  int number = 0;
  for (std::string_view line : split(*text, '\n')) {
    ++number;
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.remove_suffix(1);
    if (line.empty() || line.starts_with('#')) continue;
    const std::size_t comma = line.find(',');
    if (comma == std::string_view::npos) return invalid(fmt::format("{}:{}: TYPE,PRICE is wanted", path, number));
    std::string_view price = line.substr(comma + 1);
    while (price.starts_with(' ')) price.remove_prefix(1);
    if (number == 1 && !price.empty() && (price[0] < '0' || price[0] > '9') && price[0] != '.') continue;  // A head.
    if (auto done = put(line.substr(0, comma), price, fmt::format("line {}", number)); !done) return std::unexpected(done.error());
  }
  return json::Value(std::move(out));
}

/// Everything that an answer may depend on.
std::vector<std::pair<std::string, std::string>> wanted_resources() {
  std::set<std::pair<std::string, std::string>> wanted;
  for (const placement::ClusterResource& one : placement::kClusterResources) wanted.emplace(one.group, one.plural);
  for (const autoscaler::WatchedKind& one : autoscaler::watched_kinds()) wanted.emplace(one.gvr.group, one.gvr.resource);
  for (const auto& [group, plural] : {std::pair("apps", "deployments"), std::pair("apps", "daemonsets"), std::pair("batch", "jobs"),
                                      std::pair("autoscaling", "horizontalpodautoscalers"), std::pair("", "resourcequotas")})
    wanted.emplace(group, plural);
  return {wanted.begin(), wanted.end()};
}

/// Object by object: a live cluster is never in memory as documents.
Result<void> add_live(client::Client& client, whatif::Present& present, std::optional<model::ApiStatus>* refused) {
  const auto read = read_live_objects(client, wanted_resources(), [&](const json::Value& object) { present.add(object); });
  if (!read) return std::unexpected(live_error(read.error(), refused));
  for (const std::string& plural : read->listed) present.know_all_of(plural);
  for (const std::string& sentence : read->unread) present.note(sentence);
  std::vector<json::Value> pools;
  if (const auto done = read_live_pools(client, pools); !done)
    present.note("NodePools could not be read, and the answer does without them: " + done.error().message);
  for (const json::Value& object : pools) present.add(object);
  return {};
}

}  // namespace

void WhatIfFlags::add_to(CLI::App& app, const std::string& present_config_flag, const std::vector<std::string>& formats) {
  placement.connection.add_to(app);
  app.add_option(
         "--cluster", placement.cluster_files,
         "Dumps of a cluster instead of a live one: files of `kubectl get nodes,pods,… -A -o yaml` or json, folders such as a must-gather; "
         "\"-\" is standard input")
      ->allow_extra_args(false);
  app.add_option(present_config_flag, placement.config_file,
                 "The configuration by which the cluster's scheduler decides (default: what it has published, else the defaults)");
  placement.compatibility.add_to(app, "The scheduler's plugins and formulas");
  app.add_option("--prices", prices_file, "A price an hour by instance type: a YAML or JSON map, or lines of TYPE,PRICE");
  app.add_option("--at", at, "The moment that is asked about (RFC 3339; default: now): ages of pods count from it");
  app.add_option("-o,--output", output, fmt::format("{}", fmt::join(formats, ", ")))->capture_default_str()->check(CLI::IsMember(formats));
  app.add_option("--rows", most_rows, "Of text: the most rows of a table")->capture_default_str();
}

Result<whatif::Present> read_present(const WhatIfFlags& flags, std::optional<model::ApiStatus>* refused) {
  whatif::Options options;
  options.now = SystemClock().now();
  if (!flags.at.empty()) {
    const auto at = parse_rfc3339(flags.at);
    if (!at) return invalid(fmt::format("--at {}: not a time such as 2026-01-02T03:04:05Z", flags.at));
    options.now = *at;
  }
  if (!flags.prices_file.empty()) {
    auto prices = read_prices(flags.prices_file);
    if (!prices) return std::unexpected(prices.error());
    options.prices = std::move(*prices);
  }
  options.may_lack_nodes = flags.may_lack_nodes;
  if (!flags.placement.connection.ns.empty()) options.default_namespace = flags.placement.connection.ns;
  const bool is_live = flags.placement.cluster_files.empty();
  std::unique_ptr<Session> session;
  Dumps dumps;
  KnownSchedulers known;
  if (is_live) {
    options.asked_at = format_rfc3339(options.now);
    auto opened = Session::open(flags.placement.connection);
    if (!opened) return std::unexpected(opened.error());
    session = std::move(*opened);
    if (!flags.placement.has_configuration()) known = read_known_schedulers(session->client());
    options.default_namespace = session->ns();
  } else {
    auto found = Dumps::find(flags.placement.cluster_files);
    if (!found) return std::unexpected(found.error());
    dumps = std::move(*found);
    // First what says by which configuration the objects are to be counted.
    std::vector<json::Value> config_maps;
    const auto keep = [&](json::Value object, const std::string&) {
      if (json::get_string(object, {"kind"}) == "ConfigMap") config_maps.push_back(std::move(object));
    };
    if (auto read = dumps.for_each(keep, "ConfigMap"); !read) return std::unexpected(read.error());
    known = known_schedulers_of(config_maps);
  }
  auto input = read_placement_config(flags.placement, known);
  if (!input) return std::unexpected(input.error());
  options.configuration = configuration_words(*input, "default-scheduler");
  options.profiles = input->profiles_for_all();
  options.era = input->config.era;
  options.budgets_are_hard = input->budgets_are_hard;
  whatif::Present present(std::move(options));
  const auto read = is_live ? add_live(session->client(), present, refused)
                            : dumps.for_each([&](const json::Value& object, const std::string& file) { present.add(object, file); });
  if (!read) return std::unexpected(read.error());
  for (const std::string& note : input->notes) present.note(note);
  if (!input->config.extenders.empty())
    present.note(fmt::format("the configuration has {} extenders, which are not asked", input->config.extenders.size()));
  if (auto done = present.finish(); !done) return std::unexpected(done.error());
  return present;
}

void print_answer(const json::Value& answer, const WhatIfFlags& flags) {
  const std::string text = flags.output == "json"   ? json::serialize_pretty(answer)
                           : flags.output == "yaml" ? json::to_yaml(answer)
                           : flags.output == "html" ? whatif::to_html(answer)
                                                    : whatif::to_text(answer, flags.most_rows);
  std::fwrite(text.data(), 1, text.size(), stdout);
}

}  // namespace berth::cli
