// Lists: pages as consistent snapshots, and answers of any size with one chunk of memory.
#include "apiserver/reads/continue_token.h"
#include "apiserver/reads/reading.h"
#include "apiserver/reads/reads.h"
#include "apiserver/representation/representation.h"

namespace berth::apiserver {
namespace {

constexpr std::size_t kChunkBytes = 256 * 1024;
constexpr std::size_t kListQueueBytes = 1024 * 1024;  ///< Not yet taken by the socket: produce no more.

/// Writes a long list chunk by chunk, never further ahead than the reader takes it.
class ListStream : public std::enable_shared_from_this<ListStream> {
 public:
  ListStream(std::shared_ptr<net::ResponseWriter> writer, ListFrame frame, std::vector<ObjectPtr> items)
      : writer_(std::move(writer)), frame_(std::move(frame)), items_(std::move(items)) {
    chunk_ = std::move(frame_.head);
  }

  void pump() {
    while (true) {
      while (next_ < items_.size() && chunk_.size() < kChunkBytes) {
        if (next_ > 0) chunk_ += frame_.separator;
        frame_.append(chunk_, items_[next_]);
        items_[next_++].reset();
      }
      const bool is_last = next_ == items_.size();
      if (is_last) chunk_ += frame_.tail;
      if (!writer_->write(make_bytes(std::exchange(chunk_, {})))) return;
      if (is_last) return writer_->finish();
      chunk_.reserve(kChunkBytes + 16 * 1024);
      if (writer_->queued_bytes() > kListQueueBytes) return writer_->on_drain([self = shared_from_this()] { self->pump(); });
    }
  }

 private:
  std::shared_ptr<net::ResponseWriter> writer_;
  ListFrame frame_;
  std::string chunk_;
  std::vector<ObjectPtr> items_;
  std::size_t next_ = 0;
};

}  // namespace

model::ApiResult<std::size_t> read_limit(const Request& request) {
  if (!request.query.has("limit")) return 0;
  const auto limit = request.query.get("limit");
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(limit.data(), limit.data() + limit.size(), number);
  if (error != std::errc() || end != limit.data() + limit.size())
    return std::unexpected(model::bad_request(fmt::format(
        "strconv.ParseInt: parsing \"{}\": {}", limit, error == std::errc::result_out_of_range ? "value out of range" : "invalid syntax")));
  return number > 0 ? static_cast<std::size_t>(number) : 0;
}

Rest rest_after(const ListResult& page, const WatchFilter& filter) {
  if (!page.more || page.items.empty()) return {};
  Rest rest;
  rest.token = ContinueToken{page.revision, std::string(page.items.back()->key.substr(filter.prefix.size()))}.render();
  if (filter.labels.is_everything() && filter.fields.terms.empty() && !filter.name) rest.remaining = page.remaining;
  return rest;
}

namespace {

struct ListPlan : Selection {
  std::size_t limit = 0;
  std::string after_key;
  std::optional<Revision> exact;  ///< A snapshot of the past.
  std::optional<Revision> at_least;
  bool inconsistent = false;  ///< Continues from a token whose snapshot is gone.
};

model::ApiResult<ListPlan> make_plan(const Request& request) {
  if (auto wrong = check_list_options(request, false)) return std::unexpected(std::move(*wrong));
  auto selection = read_selection(request);
  if (!selection) return std::unexpected(selection.error());
  ListPlan plan{std::move(*selection)};
  const auto limit = read_limit(request);
  if (!limit) return std::unexpected(limit.error());
  plan.limit = *limit;
  // "Whatever you have" comes whole, as from Kubernetes' watch cache.
  if (request.query.get("resourceVersion") == "0") plan.limit = 0;
  const auto revision = read_revision(request.query.get("resourceVersion"));
  // Lists alone call that the client's mistake.
  if (!revision) return std::unexpected(model::bad_request("invalid resource version: " + revision.error().message));
  if (const auto token_text = request.query.get("continue"); !token_text.empty()) {
    const auto token = ContinueToken::parse(token_text);
    if (!token)
      return std::unexpected(
          model::bad_request(fmt::format("invalid continue token: continue key is not valid: {}", token.error().message)));
    if (const auto also = request.query.get("resourceVersion"); !also.empty() && also != "0")
      return std::unexpected(model::bad_request("specifying resource version is not allowed when using continue"));
    plan.after_key = plan.filter.prefix + token->after;
    plan.inconsistent = token->revision < 0;
    if (!plan.inconsistent) plan.exact = token->revision;
    return plan;
  }
  if (*revision && **revision > 0) {
    const auto match = request.query.get("resourceVersionMatch");
    // A limit without a match asks for that very revision, as it did before the parameter existed.
    if (match == "Exact" || (match.empty() && plan.limit > 0)) {
      plan.exact = **revision;
    } else {
      plan.at_least = **revision;
    }
  }
  return plan;
}

std::size_t stored_bytes(const std::vector<ObjectPtr>& items) {
  std::size_t bytes = 0;
  for (const auto& item : items) bytes += item->text_bytes();
  return bytes;
}

/// Short lists at once, long ones chunk by chunk.
void send_list(Responder& respond, Request& request, ListFrame frame, std::vector<ObjectPtr> items) {
  respond.account(request, 200);
  const std::size_t bytes = stored_bytes(items);
  auto headers = respond.headers_for(request, frame.content_type);
  if (bytes > kChunkBytes) {
    request.writer->start_stream(200, std::move(headers));
    std::make_shared<ListStream>(request.writer, std::move(frame), std::move(items))->pump();
    return;
  }
  std::string body = std::move(frame.head);
  body.reserve(body.size() + bytes + items.size() + 8);
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0) body += frame.separator;
    frame.append(body, items[i]);
  }
  body += frame.tail;
  net::HttpResponse response;
  response.headers = std::move(headers);
  response.body = std::move(body);
  request.writer->respond(std::move(response));
}

json::Value expired_token(const model::ApiStatus& status, const std::string& fresh_token) {
  auto document = status.to_json();
  json::ensure_object(document, {"metadata"})["continue"] = fresh_token;
  return document;
}

}  // namespace

void Reads::list(const RequestPtr& request) {
  auto plan = make_plan(*request);
  if (!plan) return respond.status(*request, plan.error());
  const auto at_least = plan->at_least, exact = plan->exact;
  const auto run = [this, request, plan = std::move(*plan)] {
    ListResult result;
    if (plan.exact && *plan.exact != ground.cache->revision()) {
      auto past = ground.cache->list_at(*plan.exact, plan.filter, plan.after_key, plan.limit);
      if (!past) {
        if (plan.after_key.empty())
          return respond.status(*request, model::expired(fmt::format("The resourceVersion for the provided list is too old.")));
        auto status = model::expired(
            "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue "
            "parameter, or use "
            "the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in "
            "an inconsistent list - "
            "objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the "
            "list.");
        const ContinueToken fresh{-1, plan.after_key.substr(plan.filter.prefix.size())};
        return respond.document(*request, 410, expired_token(status, fresh.render()));
      }
      result = std::move(*past);
    } else {
      result = ground.cache->list(plan.filter, plan.after_key, plan.limit);
    }
    auto rest = rest_after(result, plan.filter);
    answer_list(request, std::move(result), std::move(rest), plan.of_converted);
  };
  const auto wanted = at_least ? at_least : exact;
  if (!wanted || *wanted <= ground.cache->revision()) return run();
  ground.cache->wait_for(*wanted, std::chrono::seconds(3), [this, request, run, wanted = *wanted](bool reached) {
    if (reached) return run();
    respond.status(*request, too_large_revision(wanted, ground.cache->revision()));
  });
}

void Reads::answer_list(const RequestPtr& request, ListResult result, Rest rest, const std::function<bool(const StoredObject&)>& selects) {
  const auto revision = result.revision;
  versions.convert_ahead(request, std::move(result.items),
                         [this, request, revision, rest = std::move(rest), selects](model::ApiResult<std::vector<ObjectPtr>> shown) {
                           if (!shown) return respond.status(*request, shown.error());
                           if (selects) std::erase_if(*shown, [&](const ObjectPtr& one) { return !selects(*one); });
                           auto frame = frame_list(ground.loop, request, {revision, rest.token, rest.remaining}, *shown);
                           send_list(respond, *request, std::move(frame), std::move(*shown));
                         });
}

}  // namespace berth::apiserver
