#include "net/splice.h"

#include <atomic>

#include "base/lifeline.h"

namespace berth::net {
namespace {

constexpr std::size_t kMaxQueued = 256 * 1024;

/// Kept alive by the callbacks that wait: one read or drain a direction.
class Splice : public Guarded<Splice> {
 public:
  Splice(std::unique_ptr<RawStream> a, std::unique_ptr<RawStream> b, SplicePatience patience)
      : a_(std::move(a)), b_(std::move(b)), patience_(patience) {}

  void start() {
    for (auto* one : {a_.get(), b_.get()}) one->set_patience(patience_.idle, {});
    // Of a side that is full nothing is read, not even its end: its going is told apart, and then the other must take the rest soon.
    a_->on_end(guarded([](Splice& self) { self.hurry(*self.b_); }));
    b_->on_end(guarded([](Splice& self) { self.hurry(*self.a_); }));
    pump(*a_, *b_);
    pump(*b_, *a_);
  }

 private:
  void hurry(RawStream& side) const { side.set_patience(patience_.idle, patience_.unread); }

  void pump(RawStream& from, RawStream& to) {
    from.async_read([self = shared_from_this(), &from, &to](std::string data, bool eof) {
      if (eof) return self->end();
      to.write(std::move(data));
      if (to.queued_bytes() < kMaxQueued) return self->pump(from, to);
      to.on_drain([self, &from, &to] { self->pump(from, to); });
    });
  }

  void end() {
    if (ended_.exchange(true)) return;
    a_->close();
    b_->close();
  }

  std::unique_ptr<RawStream> a_, b_;
  const SplicePatience patience_;
  std::atomic<bool> ended_{false};
};

}  // namespace

void splice(std::unique_ptr<RawStream> a, std::unique_ptr<RawStream> b, SplicePatience patience) {
  std::make_shared<Splice>(std::move(a), std::move(b), patience)->start();
}

}  // namespace berth::net
