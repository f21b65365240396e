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
  void on_hangup() override { tell_end(); }
  void on_output() override;
  void on_tick(MonotonicTime now) override;
  void on_closed(const std::string& why) override;

  // On the reactor's thread:
  void attach(std::shared_ptr<Connection> connection);
  /// Called once when the connection is closed.
  void set_on_freed(std::function<void()> freed) { on_freed_ = std::move(freed); }
  void read(ReadDone done);
  void write(std::string data);
  void on_drain(std::function<void()> more);
  void on_end(std::function<void()> ended);
  void set_patience(std::chrono::milliseconds idle, std::chrono::milliseconds unread);
  void close();

  // From any thread:
  void expect(std::size_t bytes) { posted_bytes_ += bytes; }
  [[nodiscard]] std::size_t queued_bytes() const { return posted_bytes_ + connection_bytes_; }

 private:
  void deliver();
  void note_output();
  void tell_end();
  static constexpr std::size_t kMaxBuffered = 256 * 1024;
  static constexpr std::size_t kDrainedBelow = 256 * 1024;

  std::shared_ptr<Connection> connection_;
  std::string early_output_;
  std::string buffer_;
  bool eof_ = false, end_told_ = false, close_early_ = false;
  ReadDone reader_;
  std::function<void()> on_drain_, on_end_, on_freed_;
  std::chrono::milliseconds idle_{0}, unread_{0};
  MonotonicTime last_byte_{};
  std::atomic<std::size_t> posted_bytes_{0};      ///< Written by the user, not yet by write().
  std::atomic<std::size_t> connection_bytes_{0};  ///< In the connection's queue.
};

/// The user's handle, for any thread. `driver` need not be attached yet.
std::unique_ptr<RawStream> make_raw_stream(std::shared_ptr<Reactor> reactor, std::shared_ptr<RawDriver> driver);

}  // namespace berth::net
