#include "tests/client/fake_api.h"

namespace berth::client::test {
namespace {

std::string parameter(const net::HttpRequest& request, std::string_view name) {
  for (const auto& [key, value] : net::parse_query(request.query)) {
    if (key == name) return value;
  }
  return {};
}

std::string status_json(int code, const std::string& reason) {
  return fmt::format(
      R"({{"kind":"Status","apiVersion":"v1","metadata":{{}},"status":"Failure","message":"made to fail","reason":"{}","code":{}}})",
      reason, code);
}

void answer(net::ResponseWriter& writer, int status, std::string body) {
  net::HttpResponse response{.status = status, .headers = {}, .body = std::move(body)};
  response.headers.add("Content-Type", "application/json");
  writer.respond(std::move(response));
}

}  // namespace

void FakeApi::put(const std::string& ns, const std::string& name, const std::string& spec, const std::string& labels) {
  const auto key = ns + "/" + name;
  const bool is_new = !objects_.contains(key);
  if (is_new) uids_[key] = "uid-" + std::to_string(++next_uid_);
  ++revision_;
  auto bytes = fmt::format(
      R"({{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"{}","namespace":"{}","uid":"{}","resourceVersion":"{}","labels":{}}},"spec":{}}})",
      name, ns, uids_[key], revision_, labels, spec);
  objects_[key] = bytes;
  publish({is_new ? "ADDED" : "MODIFIED", revision_, std::move(bytes)});
}

void FakeApi::remove(const std::string& ns, const std::string& name) {
  const auto key = ns + "/" + name;
  const auto found = objects_.find(key);
  if (found == objects_.end()) return;
  objects_.erase(found);
  ++revision_;
  publish(
      {"DELETED", revision_,
       fmt::format(R"({{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"{}","namespace":"{}","uid":"{}","resourceVersion":"{}"}}}})",
                   name, ns, uids_[key], revision_)});
}

void FakeApi::bookmark() {
  ++revision_;
  const auto line = line_of(
      {"BOOKMARK", revision_, fmt::format(R"({{"kind":"Pod","apiVersion":"v1","metadata":{{"resourceVersion":"{}"}}}})", revision_)});
  for (const auto& watch : watches_) watch->writer->write(make_bytes(line));
}

void FakeApi::publish(Event event) {
  const auto line = make_bytes(line_of(event));
  history_.push_back(std::move(event));
  for (const auto& watch : watches_) watch->writer->write(line);
}

void FakeApi::end_watches() {
  for (const auto& watch : std::exchange(watches_, {})) watch->writer->finish();
}

void FakeApi::cut_watches(std::string_view half_a_line) {
  for (const auto& watch : watches_) watch->writer->write(make_bytes(std::string(half_a_line)));
  watches_.clear();
}

void FakeApi::expire_running_watches() {
  compact(true);
  for (const auto& watch : std::exchange(watches_, {})) {
    watch->writer->write(make_bytes("{\"type\":\"ERROR\",\"object\":" + status_json(410, "Expired") + "}\n"));
    watch->writer->finish();
  }
}

void FakeApi::fail_next(int count, int status, std::string reason, int retry_after) {
  failing_ = count;
  failing_status_ = status;
  failing_reason_ = std::move(reason);
  failing_retry_after_ = retry_after;
}

std::size_t FakeApi::open_watches() {
  std::erase_if(watches_, [](const auto& watch) { return watch->is_gone.load(); });
  return watches_.size();
}

void FakeApi::handle(net::HttpRequest request, std::shared_ptr<net::ResponseWriter> writer) {
  queries.push_back(request.query);
  if (failing_ > 0) {
    --failing_;
    if (failing_status_ == 0) return;  // dropped
    net::HttpResponse response{.status = failing_status_, .headers = {}, .body = status_json(failing_status_, failing_reason_)};
    if (failing_retry_after_ > 0) response.headers.add("Retry-After", std::to_string(failing_retry_after_));
    return writer->respond(std::move(response));
  }
  if (!missing_resource.empty() && request.path.ends_with(missing_resource)) return answer(*writer, 404, status_json(404, "NotFound"));
  if (parameter(request, "watch") == "true") return watch(request, std::move(writer));
  list(request, *writer);
}

void FakeApi::list(const net::HttpRequest& request, net::ResponseWriter& writer) {
  ++lists;
  const auto token = parameter(request, "continue");
  if (!token.empty() && std::exchange(tokens_expired_, false)) return answer(writer, 410, status_json(410, "Expired"));
  const auto limit_text = parameter(request, "limit");
  const std::size_t limit = limit_text.empty() ? 0 : std::stoul(limit_text);
  std::string items, next;
  std::size_t count = 0;
  for (auto it = token.empty() ? objects_.begin() : objects_.upper_bound(token); it != objects_.end(); ++it) {
    if (limit > 0 && count == limit) {
      next = std::prev(it)->first;
      break;
    }
    // Without kind and apiVersion, as real servers write the items of a list.
    const auto item = "{" + it->second.substr(it->second.find("\"metadata\""));
    items += (count++ > 0 ? "," : "") + item;
  }
  const auto metadata = fmt::format(R"({{"resourceVersion":"{}","continue":"{}"}})", revision_, next);
  answer(writer, 200, fmt::format(R"({{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[{}]}})", metadata, items));
}

FakeApi::Event FakeApi::end_of_what_was() const {
  constexpr const char* kBookmark =
      R"({{"kind":"Pod","apiVersion":"v1","metadata":{{"resourceVersion":"{}","annotations":{{"k8s.io/initial-events-end":"true"}}}}}})";
  return {"BOOKMARK", revision_, fmt::format(fmt::runtime(kBookmark), revision_)};
}

void FakeApi::watch(const net::HttpRequest& request, std::shared_ptr<net::ResponseWriter> writer) {
  ++watches_started;
  if (!refused_resource.empty() && request.path.ends_with(refused_resource))
    return answer(*writer, 503, status_json(503, "ServiceUnavailable"));
  if (is_silent) return silenced_.push_back(std::move(writer));
  const bool begins_with_all = parameter(request, "sendInitialEvents") == "true";
  const auto from = begins_with_all ? revision_ : std::stoll(parameter(request, "resourceVersion"));
  if (from < compacted_ && !expire_as_event_) return answer(*writer, 410, status_json(410, "Expired"));
  writer->start_stream(200, {});
  if (from < compacted_) {
    writer->write(make_bytes("{\"type\":\"ERROR\",\"object\":" + status_json(410, "Expired") + "}\n"));
    return writer->finish();
  }
  if (begins_with_all) {
    for (const auto& [key, bytes] : objects_) {
      writer->write(make_bytes(line_of({"ADDED", revision_, bytes})));
      if (breaking_ == 0) continue;
      --breaking_;
      if (!breaking_line_.empty()) writer->write(make_bytes(breaking_line_ + "\n"));
      return writer->finish();
    }
    writer->write(make_bytes(line_of(end_of_what_was())));
  }
  for (const auto& event : history_) {
    if (event.revision > from) writer->write(make_bytes(line_of(event)));
  }
  if (knows_current && parameter(request, "tellWhenCurrent") == "true") writer->write(make_bytes(line_of(end_of_what_was())));
  auto watch = std::make_shared<Watch>();
  watch->query = request.query;
  writer->on_close([weak = std::weak_ptr(watch)] {
    if (const auto gone = weak.lock()) gone->is_gone = true;
  });
  watch->writer = std::move(writer);
  watches_.push_back(std::move(watch));
}

}  // namespace berth::client::test
