#include "cli/planning/scheduler_configuration.h"

#include <fmt/format.h>

#include "base/log.h"

namespace berth::cli {
namespace {

using scheduler::config::kPublishedLabel;
using scheduler::config::kPublishedNamespace;
using scheduler::config::published_name;

const client::Gvr kConfigMaps{"", "v1", "configmaps"};

void add(const json::Value& config_map, KnownSchedulers& into) {
  auto published = scheduler::config::read_published(config_map);
  if (!published)
    into.problems.push_back(published.error().message);
  else
    into.schedulers.insert_or_assign(published->scheduler_name, std::move(*published));
}

}  // namespace

std::vector<Published> published_of(const scheduler::config::SchedulerConfig& config, bool budgets_are_hard) {
  std::vector<Published> out;
  for (const auto& profile : config.profiles) out.push_back({profile.scheduler_name, config, budgets_are_hard});
  return out;
}

void publish(client::Client& client, const std::vector<Published>& all) {
  for (const Published& one : all) {
    const std::string name = published_name(one.scheduler_name);
    client.patch(
        kConfigMaps, std::string(kPublishedNamespace), name, client::PatchType::kApply, scheduler::config::publish(one),
        [name](const model::ApiResult<json::Value>& done) {
          if (done) return;
          log::warning("scheduler",
                       "its configuration is not published, so that `berth explain` and the descheduler take the defaults for it "
                       "unless told with --config: ConfigMap {}/{}: {} (wanted: create and patch of configmaps in {})",
                       kPublishedNamespace, name, done.error().message, kPublishedNamespace);
        },
        "", client::Answer::kNone);
  }
}

std::string KnownSchedulers::source_of(std::string_view scheduler_name) {
  return fmt::format("ConfigMap {}/{}", kPublishedNamespace, published_name(scheduler_name));
}

KnownSchedulers read_known_schedulers(client::Client& client) {
  KnownSchedulers out;
  client::ListOptions labelled;
  labelled.label_selector = fmt::format("{}=true", kPublishedLabel);
  const std::string ns(kPublishedNamespace);
  if (auto page = client.list_and_wait(kConfigMaps, ns, labelled)) {
    for (const json::Value& one : page->items) add(one, out);
    return out;
  }
  auto one = client.get_and_wait(kConfigMaps, ns, published_name("default-scheduler"));
  if (one)
    add(*one, out);
  else if (!one.error().is("NotFound"))
    out.problems.push_back(one.error().message);
  return out;
}

KnownSchedulers known_schedulers_of(const std::vector<json::Value>& objects) {
  KnownSchedulers out;
  for (const json::Value& object : objects)
    if (json::get_string(object, {"kind"}) == "ConfigMap" && json::find(object, {"metadata", "labels", kPublishedLabel}) != nullptr)
      add(object, out);
  return out;
}

}  // namespace berth::cli
