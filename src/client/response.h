// HTTP answers as the API's failures.
#pragma once
#include <memory>

#include "model/api_status.h"
#include "net/http.h"

namespace berth::client {

/// The seconds of a Retry-After header, at most a minute; 0 without one.
int retry_after_seconds(const net::Headers& headers);
class Client;
struct Call;
/// A request under way. One thread waits for it, once.
class PendingAnswer {
 public:
  PendingAnswer(Client& client, Call call);
  ~PendingAnswer();
  PendingAnswer(PendingAnswer&&) noexcept;
  PendingAnswer& operator=(PendingAnswer&&) noexcept;
  /// The answer as it came, blocking; asked again while the server asks for that.
  net::HttpResponse wait();

 private:
  struct State;
  void send();
  std::shared_ptr<State> state_;
};
/// As Client::call_and_wait, whose answers are taken apart.
net::HttpResponse send_and_wait(Client& client, const Call& call);
/// Of a failed answer; an HTTP status of 0 becomes code 0, reason "TransportError".
model::ApiStatus status_of(const net::HttpResponse& response);
model::ApiStatus transport_error(std::string message);
/// The server may have done what was asked although it did not say so: no answer, or one of a gateway.
[[nodiscard]] bool is_uncertain(const model::ApiStatus& status);

}  // namespace berth::client
