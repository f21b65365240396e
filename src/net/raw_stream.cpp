#include "net/raw_stream.h"

namespace berth::net {
namespace {

class RawStreamHandle final : public RawStream {
 public:
  RawStreamHandle(std::shared_ptr<Reactor> reactor, std::shared_ptr<RawDriver> driver)
      : reactor_(std::move(reactor)), driver_(std::move(driver)) {}
  ~RawStreamHandle() override { close(); }

  void async_read(std::function<void(std::string, bool)> done) override {
    auto shared = std::make_shared<std::function<void(std::string, bool)>>(std::move(done));
    const bool posted = reactor_->post([driver = driver_, shared] { driver->read(std::move(*shared)); });
    if (!posted) (*shared)("", true);
  }
  void write(std::string data) override {
    driver_->expect(data.size());
    reactor_->post([driver = driver_, data = std::move(data)]() mutable { driver->write(std::move(data)); });
  }
  void close() override {
    reactor_->post([driver = driver_] { driver->close(); });
  }
  [[nodiscard]] std::size_t queued_bytes() const override { return driver_->queued_bytes(); }
  void on_drain(std::function<void()> more) override { post(&RawDriver::on_drain, std::move(more)); }
  void on_end(std::function<void()> ended) override { post(&RawDriver::on_end, std::move(ended)); }
  void set_patience(std::chrono::milliseconds idle, std::chrono::milliseconds unread) override {
    reactor_->post([driver = driver_, idle, unread] { driver->set_patience(idle, unread); });
  }

 private:
  /// Hands the callback over; when the reactor has stopped the stream is over, and it is called here.
  void post(void (RawDriver::*take)(std::function<void()>), std::function<void()> callback) {
    auto shared = std::make_shared<std::function<void()>>(std::move(callback));
    const bool posted = reactor_->post([driver = driver_, take, shared] { (*driver.*take)(std::move(*shared)); });
    if (!posted) (*shared)();
  }

  std::shared_ptr<Reactor> reactor_;
  std::shared_ptr<RawDriver> driver_;
};

}  // namespace

std::unique_ptr<RawStream> make_raw_stream(std::shared_ptr<Reactor> reactor, std::shared_ptr<RawDriver> driver) {
  return std::make_unique<RawStreamHandle>(std::move(reactor), std::move(driver));
}

void RawDriver::attach(std::shared_ptr<Connection> connection) {
  connection_ = std::move(connection);
  last_byte_ = connection_->reactor().now();
  if (!early_output_.empty()) connection_->write(std::exchange(early_output_, {}));
  if (close_early_) return connection_->close_after_flush();
  connection_->flush();
}

std::size_t RawDriver::on_input(std::string_view data) {
  if (buffer_.size() >= kMaxBuffered) return 0;
  buffer_.append(data);
  if (connection_) last_byte_ = connection_->reactor().now();
  deliver();
  return data.size();
}

void RawDriver::on_eof() {
  eof_ = true;
  tell_end();
  deliver();
}

void RawDriver::on_output() {
  if (connection_) last_byte_ = std::max(last_byte_, connection_->last_write_progress());
  note_output();
}

void RawDriver::on_tick(MonotonicTime now) {
  if (!connection_) return;
  const auto connection = connection_;
  if (idle_.count() > 0 && now - last_byte_ > idle_) return connection->close("nothing was said for too long");
  if (unread_.count() > 0 && connection->queued_bytes() > 0 && now - connection->last_write_progress() > unread_)
    connection->close("the peer does not read");
}

void RawDriver::on_closed(const std::string&) {
  eof_ = true;
  connection_.reset();
  early_output_ = {};
  note_output();
  tell_end();
  deliver();
  if (on_freed_) std::exchange(on_freed_, nullptr)();
}

void RawDriver::read(ReadDone done) {
  const bool was_full = buffer_.size() >= kMaxBuffered;
  reader_ = std::move(done);
  deliver();
  if (was_full && connection_) connection_->resume_input();
}

void RawDriver::deliver() {
  if (!reader_ || (buffer_.empty() && !eof_)) return;
  const auto reader = std::exchange(reader_, nullptr);
  const bool eof = buffer_.empty();
  reader(std::exchange(buffer_, {}), eof);
}

void RawDriver::write(std::string data) {
  const auto size = data.size();
  if (connection_) {
    connection_->write(std::move(data));
    connection_->flush();
  } else if (!eof_) {
    early_output_.append(data);
  }
  posted_bytes_ -= size;
  note_output();
}

void RawDriver::on_drain(std::function<void()> more) {
  on_drain_ = std::move(more);
  note_output();
}

void RawDriver::note_output() {
  connection_bytes_ = connection_ ? connection_->queued_bytes() : early_output_.size();
  if (on_drain_ && queued_bytes() < kDrainedBelow) std::exchange(on_drain_, nullptr)();
}

void RawDriver::on_end(std::function<void()> ended) {
  if (end_told_) return ended();
  on_end_ = std::move(ended);
}

void RawDriver::tell_end() {
  if (std::exchange(end_told_, true)) return;
  if (on_end_) std::exchange(on_end_, nullptr)();
}

void RawDriver::set_patience(std::chrono::milliseconds idle, std::chrono::milliseconds unread) {
  idle_ = idle;
  unread_ = unread;
}

void RawDriver::close() {
  if (!connection_) {
    close_early_ = true;
    return;
  }
  connection_->close_after_flush();
}

}  // namespace berth::net
