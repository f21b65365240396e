// The byte stream that is left of a connection after a protocol upgrade, on either side.
#pragma once
#include <memory>

#include "net/connection.h"
#include "net/http.h"

namespace berth::net {

/// Drives the connection after the upgrade. Input is buffered up to a limit, then the peer is held back.
class RawDriver final : public Driver, public std::enable_shared_from_this<RawDriver> {
 public:
  using ReadDone = std::function<void(std::string data, bool eof)>;

  std::size_t on_input(std::string_view data) override;
  void on_eof() override;
  void on_output() override;
  void on_closed(const std::string& why) override;

  // On the reactor's thread:
  void attach(std::shared_ptr<Connection> connection);
  void read(ReadDone done);
  void write(std::string data);
  void close();

  std::atomic<std::size_t> queued_bytes{0};

 private:
  void deliver();
  static constexpr std::size_t kMaxBuffered = 256 * 1024;

  std::shared_ptr<Connection> connection_;
  std::string early_output_;
  std::string buffer_;
  bool eof_ = false, close_early_ = false;
  ReadDone reader_;
};

/// The user's handle, for any thread. `driver` need not be attached yet.
std::unique_ptr<RawStream> make_raw_stream(std::shared_ptr<Reactor> reactor, std::shared_ptr<RawDriver> driver);

}  // namespace berth::net
