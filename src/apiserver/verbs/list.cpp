// Lists: pages as consistent snapshots, and answers of any size with one chunk of memory.
#include "apiserver/body.h"
#include "apiserver/impl.h"
#include "apiserver/schema_bridge.h"
#include "apiserver/verbs/continue_token.h"
#include "apiserver/verbs/reading.h"
#include "base/json_indented.h"
#include "model/protobuf.h"

namespace berth::apiserver {
namespace {

constexpr std::size_t kChunkBytes = 256 * 1024;
constexpr std::size_t kListQueueBytes = 1024 * 1024;  ///< Not yet taken by the socket: produce no more.

std::string list_head(const model::KindInfo& kind, std::string_view list_kind, std::string_view api_version, Revision revision,
                      std::string_view continue_token, std::optional<std::int64_t> remaining, bool is_custom = false) {
  std::string head =
      fmt::format(R"({{"kind":"{}","apiVersion":"{}","metadata":{{"resourceVersion":"{}")", list_kind.empty() ? kind.list_kind : list_kind,
                  api_version.empty() ? kind.api_version() : api_version, revision);
  // What has no type in Go shows the empty token as well.
  if (!continue_token.empty() || is_custom) head += fmt::format(R"(,"continue":"{}")", continue_token);
  if (remaining) head += fmt::format(R"(,"remainingItemCount":{})", *remaining);
  return head + R"(},"items":[)";
}

/// Writes a long list chunk by chunk, never further ahead than the reader takes it.
class ListStream : public std::enable_shared_from_this<ListStream> {
 public:
  using Render = std::function<void(std::string& out, const ObjectPtr&)>;
  struct Frame {
    std::string head, separator, tail;
  };
  ListStream(std::shared_ptr<net::ResponseWriter> writer, Frame frame, std::vector<ObjectPtr> items, Render render)
      : writer_(std::move(writer)), frame_(std::move(frame)), items_(std::move(items)), render_(std::move(render)) {
    chunk_ = std::move(frame_.head);
  }

  void pump() {
    while (true) {
      while (next_ < items_.size() && chunk_.size() < kChunkBytes) {
        if (next_ > 0) chunk_ += frame_.separator;
        render_(chunk_, items_[next_]);
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
  Frame frame_;
  std::string chunk_;
  std::vector<ObjectPtr> items_;
  Render render_;
  std::size_t next_ = 0;
};

struct ListPlan {
  WatchFilter filter;
  std::size_t limit = 0;
  std::string after_key;
  std::optional<Revision> exact;  ///< A snapshot of the past.
  std::optional<Revision> at_least;
  bool inconsistent = false;  ///< Continues from a token whose snapshot is gone.
};

model::ApiResult<ListPlan> make_plan(const Request& request) {
  if (auto wrong = check_list_options(request, false)) return std::unexpected(std::move(*wrong));
  auto filter = read_filter(request);
  if (!filter) return std::unexpected(filter.error());
  ListPlan plan;
  plan.filter = std::move(*filter);
  if (const auto limit = request.query.get("limit"); request.query.has("limit")) {
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(limit.data(), limit.data() + limit.size(), number);
    if (error != std::errc() || end != limit.data() + limit.size())
      return std::unexpected(
          model::bad_request(fmt::format("strconv.ParseInt: parsing \"{}\": {}", limit,
                                         error == std::errc::result_out_of_range ? "value out of range" : "invalid syntax")));
    plan.limit = number > 0 ? static_cast<std::size_t>(number) : 0;
  }
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
  for (const auto& item : items) bytes += item->value->size();
  return bytes;
}

/// Short lists at once, long ones chunk by chunk.
void send_list(ApiServer::Impl& server, Request& request, std::string_view content_type, ListStream::Frame frame,
               std::vector<ObjectPtr> items, ListStream::Render render) {
  server.account(request, 200);
  const std::size_t bytes = stored_bytes(items);
  auto headers = server.headers_for(request, content_type);
  if (bytes > kChunkBytes) {
    request.writer->start_stream(200, std::move(headers));
    std::make_shared<ListStream>(request.writer, std::move(frame), std::move(items), std::move(render))->pump();
    return;
  }
  std::string body = std::move(frame.head);
  body.reserve(body.size() + bytes + items.size() + 8);
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0) body += frame.separator;
    render(body, items[i]);
  }
  body += frame.tail;
  net::HttpResponse response;
  response.headers = std::move(headers);
  response.body = std::move(body);
  request.writer->respond(std::move(response));
}

/// A list's body says how long it is before its first item, so the items of a long one are measured first and written afterwards: twice the
/// work, but no list is ever held whole.
void send_protobuf_list(ApiServer::Impl& server, const RequestPtr& request, ListResult result, const std::string& token,
                        std::optional<std::int64_t> remaining) {
  const auto& kind = *request->kind;
  const bool is_partial = request->accept.form != ObjectForm::kFull;
  const bool as_stored = &kind.storage() == &kind;
  const auto& type = is_partial ? model::partial_metadata_type() : *model::type_of(kind);
  const ListStream::Render render = [&server, request, &type, as_stored](std::string& out, const ObjectPtr& object) {
    std::string item;
    const bool good = as_stored ? model::encode_message(type, *object->value, item)
                                : model::encode_message(type, json::serialize(server.read_document(*request, *object)), item);
    model::append_field(out, 2, good ? item : std::string_view());
  };
  std::string first;
  model::append_field(first, 1, model::encode_list_meta(std::to_string(result.revision), token, remaining));
  std::size_t size = first.size();
  if (stored_bytes(result.items) > kChunkBytes) {
    std::string item;
    for (const auto& object : result.items) {
      item.clear();
      render(item, object);
      size += item.size();
    }
  } else {
    for (const auto& object : result.items) render(first, object);
    size = first.size();
    result.items.clear();
  }
  const auto api_version = is_partial ? std::string("meta.k8s.io/v1") : kind.api_version();
  const auto list_kind = is_partial ? std::string_view("PartialObjectMetadataList") : std::string_view(kind.list_kind);
  send_list(server, *request, "application/vnd.kubernetes.protobuf",
            {model::protobuf_head(api_version, list_kind, size) + first, "", std::string(model::protobuf_tail())}, std::move(result.items),
            render);
}

/// Row by row.
void send_table(ApiServer::Impl& server, const RequestPtr& request, ListResult result, json::Object metadata) {
  const auto& kind = *request->kind;
  const auto now = server.loop.now();
  const std::string policy(request->query.get("includeObject"));
  auto head = json::serialize(make_table(kind, {}, std::move(metadata), policy, true, now));
  head.resize(head.size() - 2);  // "]}": the rows are its last member.
  send_list(server, *request, "application/json", {std::move(head), ",", "]}\n"}, std::move(result.items),
            [&server, request, &kind, policy, now](std::string& out, const ObjectPtr& object) {
              const auto document = server.read_document(*request, *object);
              json::serialize_to(out, make_table(kind, {&document, 1}, {}, policy, false, now).at("rows").get_array()[0]);
            });
}

/// YAML, or indented JSON: item by item, from what `render` makes of each. `head` is the list's JSON up to its first item.
void send_printed_list(ApiServer::Impl& server, const RequestPtr& request, const std::string& head, std::vector<ObjectPtr> items,
                       ListStream::Render render) {
  const auto frame = json::parse(head + "]}");
  if (!frame || items.empty()) return server.respond_json(*request, 200, frame ? *frame : json::Value());
  const bool is_yaml = request->accept.format == Format::kYaml;
  const auto print = [is_yaml, render = std::move(render)](std::string& out, const ObjectPtr& object) {
    std::string text;
    render(text, object);
    const auto item = json::parse(text);
    if (is_yaml) {
      out += json::to_yaml(json::Array{item ? *item : json::Value()});
      return;
    }
    // Strings have no line ends of their own in JSON.
    out += "\n    ";
    for (const char c : json::serialize_indented(item ? *item : json::Value(), 2)) {
      out += c;
      if (c == '\n') out += "    ";
    }
  };
  if (is_yaml) {
    auto before = json::to_yaml(json::Object{{"apiVersion", frame->at("apiVersion")}}) + "items:\n";
    auto after = json::to_yaml(json::Object{{"kind", frame->at("kind")}, {"metadata", frame->at("metadata")}});
    return send_list(server, *request, "application/yaml", {std::move(before), "", std::move(after)}, std::move(items), print);
  }
  auto before = json::serialize_indented(*frame, 2);
  before.resize(before.rfind(']'));
  send_list(server, *request, "application/json", {std::move(before), ",", "\n  ]\n}"}, std::move(items), print);
}

json::Value expired_token(const model::ApiStatus& status, const std::string& fresh_token) {
  auto document = status.to_json();
  json::ensure_object(document, {"metadata"})["continue"] = fresh_token;
  return document;
}

}  // namespace

void ApiServer::Impl::list(const RequestPtr& request) {
  auto plan = make_plan(*request);
  if (!plan) return respond_status(*request, plan.error());
  // What is selected by fields of the request's version is known once the objects are in it.
  const auto also = asks_converter(*request) ? std::exchange(plan->filter.also, nullptr) : nullptr;
  const auto at_least = plan->at_least, exact = plan->exact;
  const auto run = [this, request, also, plan = std::move(*plan)] {
    ListResult result;
    if (plan.exact && *plan.exact != cache->revision()) {
      auto past = cache->list_at(*plan.exact, plan.filter, plan.after_key, plan.limit);
      if (!past) {
        if (plan.after_key.empty())
          return respond_status(*request, model::expired(fmt::format("The resourceVersion for the provided list is too old.")));
        auto status = model::expired(
            "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue "
            "parameter, or use "
            "the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in "
            "an inconsistent list - "
            "objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the "
            "list.");
        const ContinueToken fresh{-1, plan.after_key.substr(plan.filter.prefix.size())};
        return respond_json(*request, 410, expired_token(status, fresh.render()));
      }
      result = std::move(*past);
    } else {
      result = cache->list(plan.filter, plan.after_key, plan.limit);
    }
    std::string token;
    std::optional<std::int64_t> remaining;
    if (result.more && !result.items.empty()) {
      token = ContinueToken{result.revision, std::string(result.items.back()->key.substr(plan.filter.prefix.size()))}.render();
      if (plan.filter.labels.is_everything() && plan.filter.fields.terms.empty() && !plan.filter.name) remaining = result.remaining;
    }
    if (!asks_converter(*request)) return answer_list(*this, request, std::move(result), token, remaining);
    convert_ahead(request, result.items, [this, request, result, token, remaining, also](model::ApiResult<std::vector<ObjectPtr>> shown) {
      if (!shown) return respond_status(*request, shown.error());
      auto converted = result;
      converted.items = std::move(*shown);
      if (also) std::erase_if(converted.items, [&](const ObjectPtr& one) { return !also(*one); });
      answer_list(*this, request, std::move(converted), token, remaining);
    });
  };
  const auto wanted = at_least ? at_least : exact;
  if (!wanted || *wanted <= cache->revision()) return run();
  cache->wait_for(*wanted, std::chrono::seconds(3), [this, request, run, wanted = *wanted](bool reached) {
    if (reached) return run();
    respond_status(*request, too_large_revision(wanted, cache->revision()));
  });
}

void answer_list(ApiServer::Impl& server, const RequestPtr& request, ListResult result, const std::string& token,
                 std::optional<std::int64_t> remaining) {
  const auto& kind = *request->kind;
  const bool as_stored =
      std::ranges::all_of(result.items, [&](const ObjectPtr& item) { return ApiServer::Impl::is_shown_as_stored(*request, *item); });
  const auto form = request->accept.form;
  if (form == ObjectForm::kTable) {
    json::Object list_metadata{{"resourceVersion", std::to_string(result.revision)}};
    if (!token.empty()) list_metadata["continue"] = token;
    if (remaining) list_metadata["remainingItemCount"] = *remaining;
    if (request->accept.format == Format::kJson && !wants_pretty(*request))
      return send_table(server, request, std::move(result), std::move(list_metadata));
    std::vector<json::Value> documents;
    documents.reserve(result.items.size());
    for (const auto& item : result.items) documents.push_back(server.read_document(*request, *item));
    return server.respond_json(
        *request, 200, make_table(kind, documents, std::move(list_metadata), request->query.get("includeObject"), true, server.loop.now()));
  }
  if (request->accept.format == Format::kProtobuf) return send_protobuf_list(server, request, std::move(result), token, remaining);
  const bool partial = form == ObjectForm::kPartialMetadata || form == ObjectForm::kPartialMetadataList;
  auto head = partial ? list_head(kind, "PartialObjectMetadataList", "meta.k8s.io/v1", result.revision, token, remaining)
                      : list_head(kind, "", "", result.revision, token, remaining, request->custom != nullptr);
  ListStream::Render render;
  if (partial) {
    render = [](std::string& out, const ObjectPtr& object) {
      const auto document = decode_object(*object);
      json::Object row{{"kind", "PartialObjectMetadata"}, {"apiVersion", "meta.k8s.io/v1"}};
      if (const auto* metadata = json::find(document, "metadata")) row["metadata"] = *metadata;
      json::serialize_to(out, row);
    };
  } else if (as_stored) {
    // Items do not say what they are, the list does; stored objects begin with it. Custom ones, without a type in Go, say so.
    const auto head_of_item = fmt::format(R"({{"apiVersion":"{}","kind":"{}",)", kind.api_version(), kind.kind);
    render = [head_of_item, is_custom = request->custom != nullptr](std::string& out, const ObjectPtr& object) {
      const std::string_view text = *object->value;
      if (is_custom || !text.starts_with(head_of_item)) {
        out += text;
        return;
      }
      out += '{';
      out += text.substr(head_of_item.size());
    };
  } else {
    render = [&server, request](std::string& out, const ObjectPtr& object) {
      auto document = server.read_document(*request, *object);
      if (request->custom == nullptr) {
        document.get_object().erase("apiVersion");
        document.get_object().erase("kind");
      }
      json::serialize_to(out, document);
    };
  }
  if (request->accept.format == Format::kYaml || request->query.flag("pretty"))
    return send_printed_list(server, request, head, std::move(result.items), std::move(render));
  send_list(server, *request, "application/json", {std::move(head), ",", "]}"}, std::move(result.items), std::move(render));
}

}  // namespace berth::apiserver
