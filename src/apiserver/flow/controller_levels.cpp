// The controller's levels: taken from their objects, given their seats, shown.
#include <fmt/format.h>

#include <cmath>

#include "apiserver/flow/controller.h"
#include "base/mutex.h"
#include "model/flow_control.h"

namespace berth::apiserver::flow {
namespace {

double seconds_now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

template <typename T, typename Read>
void add_mandatory(std::vector<T>& list, const std::vector<model::flow_control::BootstrapObject>& objects, Read read) {
  for (const auto& object : objects) {
    if (!object.is_mandatory) continue;
    auto one = read(object.document);
    if (std::ranges::none_of(list, [&](const T& present) { return present.name == one.name; })) list.push_back(std::move(one));
  }
}

/// Reads and writes apart, each with its own limit.
constexpr const char *kReading = "read-only", *kMutating = "mutating";

std::string schema_key(const FlowSchema& schema) { return fmt::format("{:08}/{}", schema.precedence, schema.name); }

}  // namespace

std::shared_ptr<Level> Controller::level_for(const PriorityLevel& config) {
  auto found = std::ranges::find_if(levels_, [&](const auto& level) { return level->name == config.name && !level->is_going; });
  if (found == levels_.end()) {
    auto level = std::make_shared<Level>(config.name, config.is_exempt, config.is_vital());
    const metrics::Labels labels{{"priority_level", config.name}};
    const auto gauge = [&](const char* name, const char* help) {
      return &registry_.gauge(std::string("apiserver_flowcontrol_") + name, help, labels);
    };
    level->nominal_gauge = gauge("nominal_limit_seats", "Nominal number of execution seats configured for each priority level");
    level->lower_gauge = gauge("lower_limit_seats", "Configured lower bound on number of execution seats available to each priority level");
    level->upper_gauge = gauge("upper_limit_seats", "Configured upper bound on number of execution seats available to each priority level");
    level->limit_gauge = gauge("current_limit_seats", "current derived number of execution seats available to each priority level");
    level->highest_gauge = gauge("demand_seats_high_watermark", "High watermark, over last adjustment period, of demand_seats");
    level->average_gauge = gauge("demand_seats_average", "Time-weighted average, over last adjustment period, of demand_seats");
    level->deviation_gauge = gauge("demand_seats_stdev", "Time-weighted standard deviation, over last adjustment period, of demand_seats");
    level->smoothed_gauge = gauge("demand_seats_smoothed", "Smoothed seat demands");
    level->target_gauge = gauge("target_seats", "Seat allocation targets");
    found = levels_.insert(levels_.end(), std::move(level));
  }
  Level& level = **found;
  level.shares = config.shares;
  level.lendable_percent = config.lendable_percent;
  level.borrowing_limit_percent = config.borrowing_limit_percent.value_or(-1);
  level.queues = config.queues > 0;
  level.hand_size = config.hand_size;
  // What is let in to a level without queues may still wait for a thread.
  level.queue.configure(std::max(config.queues, 1), std::max(config.hand_size, 1), config.queue_length_limit);
  return *found;
}

void Controller::configure(std::vector<PriorityLevel> levels, std::vector<FlowSchema> schemas) {
  if (!limits_.is_fair) {
    if (present() != nullptr) return;
    for (const char* name : {kReading, kMutating, "exempt"}) {
      const bool is_exempt = std::string_view(name) == "exempt";
      levels.push_back({name, {}, is_exempt, is_exempt ? 0 : 1, 0, {}, 0, 0, 0});
      schemas.push_back({name, {}, name, 0, FlowSchema::Distinguisher::kNone, {}});
    }
  } else {
    add_mandatory(levels, model::flow_control::bootstrap_levels(), read_level);
    add_mandatory(schemas, model::flow_control::bootstrap_schemas(), read_schema);
    std::ranges::sort(schemas, {}, schema_key);
  }
  auto next = std::make_shared<Configuration>();
  const MutexLock lock(mutex_);
  for (auto& level : levels_)
    if (std::ranges::none_of(levels, [&](const auto& one) { return one.name == level->name && one.is_exempt == level->is_exempt; }))
      level->is_going = true;
  for (auto& config : levels) {
    auto level = level_for(config);
    next->places.push_back({std::move(config), std::move(level), 0});
  }
  for (auto& schema : schemas) {
    const auto place = std::ranges::find(next->places, schema.level, [](const auto& one) { return one.config.name; });
    if (place == next->places.end()) continue;
    const auto index = static_cast<std::size_t>(place - next->places.begin());
    auto its_metrics = metrics_of(schema.name, schema.level);
    next->schemas.push_back({std::move(schema), index, its_metrics});
  }
  std::erase_if(levels_, [](const auto& level) { return level->is_going && level->queue.empty() && level->executing == 0; });
  share_out();
  set_weights();
  for (auto& place : next->places) place.nominal = place.level->nominal;
  configuration_.store(std::move(next), std::memory_order_release);
  wake_.notify_all();
}

void Controller::share_out() {
  const int total = std::max(1, limits_.inflight_read + limits_.inflight_mutating);
  if (!limits_.is_fair) {
    for (auto& level : levels_) {
      const int limit = level->name == kReading ? limits_.inflight_read : limits_.inflight_mutating;
      level->nominal = level->lower = level->upper = level->limit = limit > 0 ? limit : INT32_MAX / 2;  // 0: no limit.
    }
    return;
  }
  double shares = 0;
  for (const auto& level : levels_) shares += level->shares;
  nominal_sum_ = 0;
  for (auto& level : levels_) {
    const auto part = [&](int percent) { return static_cast<int>(std::min(1e9, std::round(level->nominal * (percent / 100.0)))); };
    level->nominal = shares > 0 ? static_cast<int>(std::ceil(static_cast<double>(total) * level->shares / shares)) : 0;
    level->lower = level->nominal - part(level->lendable_percent);
    level->upper = level->nominal + (level->borrowing_limit_percent < 0 ? total : part(level->borrowing_limit_percent));
    nominal_sum_ += level->nominal;
    level->nominal_gauge->set(level->nominal);
    level->lower_gauge->set(level->lower);
    level->upper_gauge->set(level->upper);
  }
  std::vector<Demand> demands;
  std::vector<Level*> limited;
  double left = nominal_sum_, lowest = 0, least = 0;
  for (auto& level : levels_) {
    const auto& need = level->demand.last();
    const double wanted = std::max<double>(level->lower, level->is_exempt ? need.highest : std::min<double>(level->nominal, need.highest));
    if (level->is_exempt) {
      level->limit = static_cast<int>(wanted);
      left -= wanted;
      continue;
    }
    demands.push_back({wanted, std::max<double>(level->upper, wanted), std::max(wanted, need.smoothed)});
    limited.push_back(level.get());
    lowest += level->lower;
    least += wanted;
  }
  const auto shared = left > least ? allocate(left, demands) : std::nullopt;
  if (fair_fraction_ != nullptr) fair_fraction_->set(shared ? shared->fair_fraction : 0);
  for (std::size_t i = 0; i < limited.size(); ++i) {
    Level& level = *limited[i];
    double seats = level.lower;
    if (shared)
      seats = shared->seats[i];
    else if (left > lowest && least > lowest)
      seats += (demands[i].lower - level.lower) * (left - lowest) / (least - lowest);
    level.limit = static_cast<int>(std::round(seats));
    level.target_gauge->set(demands[i].target);
  }
  for (auto& level : levels_) level->limit_gauge->set(level->limit);
}

void Controller::rebalance() {
  if (!limits_.is_fair) return;
  const double now = seconds_now();
  const MutexLock lock(mutex_);
  for (auto& level : levels_) {
    const auto& period = level->demand.close(now);
    level->highest_gauge->set(period.highest);
    level->average_gauge->set(period.average);
    level->deviation_gauge->set(period.deviation);
    level->smoothed_gauge->set(period.smoothed);
  }
  std::erase_if(levels_, [](const auto& level) { return level->is_going && level->queue.empty() && level->executing == 0; });
  share_out();
  wake_.notify_all();
}

void Controller::set_weights() {
  double vital = 0, others = 0;
  for (const auto& level : levels_) (level->is_vital ? vital : others) += std::max(1, level->shares);
  // However large the shares that somebody gives to levels of his own: half of the workers' time stays the cluster's.
  const double scale = vital > 0 && others > vital ? vital / others : 1;
  for (auto& level : levels_) level->weight = std::max(1, level->shares) * (level->is_vital ? 1 : scale);
}

namespace {

/// A controller makes an object that stays: not a question (reviews), nor what it tells (events).
bool grows(const UserInfo& user, const Attributes& attributes) {
  if (attributes.verb != "create" || !attributes.is_resource || !attributes.subresource.empty()) return false;
  if (attributes.resource == "events" || attributes.group == "authorization.k8s.io" || attributes.group == "authentication.k8s.io")
    return false;
  // In Kubernetes each controller has an account of its own there.
  return user.name == "system:kube-controller-manager" || user.in_group("system:serviceaccounts:kube-system");
}

}  // namespace

Classified Controller::classify(const UserInfo& user, const Attributes& attributes) const {
  Classified out;
  out.held = present();
  out.grows = grows(user, attributes);
  if (!limits_.is_fair) {
    const bool reads = attributes.verb == "get" || attributes.verb == "list" || attributes.verb == "watch";
    out.schema = &out.held->schemas[user.in_group("system:masters") ? 2 : reads ? 0 : 1];
    return out;
  }
  const auto& schemas = out.held->schemas;
  const auto found = std::ranges::find_if(schemas, [&](const auto& one) { return matches(one.config, user, attributes); });
  out.schema = found == schemas.end() ? &schemas.back() : &*found;
  out.flow = flow_of(out.schema->config, user, attributes);
  return out;
}

int Controller::most_seats(const Classified& where) {
  const auto& [config, level, nominal] = where.place();
  constexpr int kMost = 100;
  if (config.queues == 0) return kMost;
  return std::clamp(std::min(static_cast<int>(std::ceil(nominal * 0.15)), nominal / std::max(1, config.hand_size)), 1, kMost);
}

FlowMetrics Controller::metrics_of(const std::string& schema, const std::string& level) {
  const metrics::Labels labels{{"flow_schema", schema}, {"priority_level", level}};
  const auto with = [&](const char* key, const char* value) {
    auto out = labels;
    out.emplace_back(key, value);
    return out;
  };
  const auto name = [](const char* rest) { return std::string("apiserver_flowcontrol_") + rest; };
  const auto rejected = [&](const char* reason) {
    return &registry_.counter(name("rejected_requests_total"), "Number of requests rejected by API Priority and Fairness subsystem",
                              with("reason", reason));
  };
  static const std::vector<double> kSeconds = {0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30};
  const auto seconds = [&](const char* rest, const char* help, metrics::Labels its) {
    return &registry_.histogram(name(rest), help, kSeconds, std::move(its));
  };
  const auto gauge = [&](const char* rest, const char* help) { return &registry_.gauge(name(rest), help, labels); };
  FlowMetrics out;
  out.dispatched =
      &registry_.counter(name("dispatched_requests_total"), "Number of requests executed by API Priority and Fairness subsystem", labels);
  out.queue_full = rejected("queue-full");
  out.time_out = rejected("time-out");
  out.limit = rejected("concurrency-limit");
  out.memory = rejected("memory");
  out.no_room =
      &registry_.counter(name("request_dispatch_no_accommodation_total"),
                         "Number of times a dispatch attempt resulted in a non accommodation due to lack of available seats", labels);
  out.executing = gauge("current_executing_requests",
                        "Number of requests in initial (for a WATCH) or any (for a non-WATCH) execution stage in the API Priority and "
                        "Fairness subsystem");
  out.executing_seats = gauge("current_executing_seats",
                              "Concurrency (number of seats) occupied by the currently executing (initial stage for a WATCH, any stage "
                              "otherwise) requests in the API Priority and Fairness subsystem");
  out.waiting =
      gauge("current_inqueue_requests", "Number of requests currently pending in queues of the API Priority and Fairness subsystem");
  out.waiting_seats =
      gauge("current_inqueue_seats", "Number of seats currently pending in queues of the API Priority and Fairness subsystem");
  const char* waited = "Length of time a request spent waiting in its queue";
  out.served_wait = seconds("request_wait_duration_seconds", waited, with("execute", "true"));
  out.refused_wait = seconds("request_wait_duration_seconds", waited, with("execute", "false"));
  out.execution = seconds("request_execution_seconds",
                          "Duration of initial stage (for a WATCH) or any (for a non-WATCH) stage of request execution in the API Priority "
                          "and Fairness subsystem",
                          labels);
  out.length =
      &registry_.histogram(name("request_queue_length_after_enqueue"),
                           "Length of queue in the API Priority and Fairness subsystem, as seen by each request after it is enqueued",
                           {1, 5, 10, 25, 50, 100, 250, 500, 1000}, labels);
  out.width =
      &registry_.histogram(name("work_estimated_seats"),
                           "Number of estimated seats (maximum of initial and final seats) associated with requests in API Priority "
                           "and Fairness",
                           {1, 2, 4, 8, 16, 32, 64, 100}, labels);
  return out;
}

}  // namespace berth::apiserver::flow
