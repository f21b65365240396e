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
    driver_->queued_bytes += data.size();
    reactor_->post([driver = driver_, data = std::move(data)]() mutable { driver->write(std::move(data)); });
  }
  void close() override {
    reactor_->post([driver = driver_] { driver->close(); });
  }
  [[nodiscard]] std::size_t queued_bytes() const override { return driver_->queued_bytes; }

 private:
  std::shared_ptr<Reactor> reactor_;
  std::shared_ptr<RawDriver> driver_;
};

}  // namespace

std::unique_ptr<RawStream> make_raw_stream(std::shared_ptr<Reactor> reactor, std::shared_ptr<RawDriver> driver) {
  return std::make_unique<RawStreamHandle>(std::move(reactor), std::move(driver));
}

void RawDriver::attach(std::shared_ptr<Connection> connection) {
  connection_ = std::move(connection);
  if (!early_output_.empty()) connection_->write(std::move(early_output_));
  if (close_early_) return connection_->close_after_flush();
  connection_->flush();
}

std::size_t RawDriver::on_input(std::string_view data) {
  if (buffer_.size() >= kMaxBuffered) return 0;
  buffer_.append(data);
  deliver();
  return data.size();
}

void RawDriver::on_eof() {
  eof_ = true;
  deliver();
}

void RawDriver::on_output() { queued_bytes = connection_ ? connection_->queued_bytes() : 0; }

void RawDriver::on_closed(const std::string&) {
  eof_ = true;
  connection_.reset();
  queued_bytes = 0;
  deliver();
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
  if (!connection_) {
    if (!eof_) early_output_.append(data);
    return;
  }
  connection_->write(std::move(data));
  connection_->flush();
}

void RawDriver::close() {
  if (!connection_) {
    close_early_ = true;
    return;
  }
  connection_->close_after_flush();
}

}  // namespace berth::net
