// Lists of requests as fuzz inputs: their text form, how they are changed as what they are, and who takes the answers down.
//
// An input is a list of requests, parted by an empty line; each is a line "METHOD /path?query [TYPE]" and below it the body. TYPE says what
// the body is: json (the default), yaml, protobuf, merge, jsonpatch, strategic, apply.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "net/http.h"
#include "tests/fuzz/json_mutator.h"

namespace berth::fuzz {

struct FuzzRequest {
  std::string method, target, type, body;
};

std::vector<FuzzRequest> parse_requests(std::string_view text);
std::string print(const std::vector<FuzzRequest>& requests);

/// Changes one of the requests, or appends one about what an earlier one made; false: nothing to change was found.
bool mutate_requests(std::vector<FuzzRequest>& requests, Random& random);
/// Joins two lists, or takes values of the one's bodies into the other's.
bool cross_requests(std::vector<FuzzRequest>& one, const std::vector<FuzzRequest>& other, Random& random);

/// The request as a server gets it; nullopt when it would not get past the HTTP parser, or leads out of the process.
std::optional<net::HttpRequest> to_http(const FuzzRequest& request);

class Recorded final : public net::ResponseWriter {
 public:
  void respond(net::HttpResponse response) override {
    status = response.status;
    body = std::move(response.body);
    end();
  }
  void respond_shared(int code, net::Headers, std::vector<Bytes> parts) override {
    status = code;
    for (const auto& part : parts) body += *part;
    end();
  }
  void start_stream(int code, net::Headers) override {
    status = code;
    is_stream = true;
  }
  bool write(Bytes chunk) override {
    if (is_gone) return false;
    body += *chunk;
    return true;
  }
  [[nodiscard]] std::size_t queued_bytes() const override { return 0; }
  void on_drain(std::function<void()>) override {}
  void finish() override { end(); }
  void on_close(std::function<void()> callback) override { closed_ = std::move(callback); }
  std::unique_ptr<net::RawStream> upgrade(net::Headers) override { return nullptr; }
  void end() {
    is_gone = is_finished = true;
    if (auto callback = std::exchange(closed_, nullptr)) callback();
  }

  int status = 0;
  std::string body;
  bool is_stream = false, is_finished = false, is_gone = false;

 private:
  std::function<void()> closed_;
};

/// Says what went wrong with which request, and aborts.
[[noreturn]] void broken(std::string_view what, const FuzzRequest& request, std::string_view answer);

}  // namespace berth::fuzz
