// What plugins work out of a node and its pods, kept with the node until either changes.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

namespace berth::placement {

/// Whose note it is: each id is given once in a process, so that nobody is handed the note of a plugin that is gone.
class NoteId {
 public:
  NoteId() : value_(next().fetch_add(1, std::memory_order_relaxed)) {}
  [[nodiscard]] std::uint64_t value() const { return value_; }

 private:
  static std::atomic<std::uint64_t>& next();
  std::uint64_t value_;
};

/// A node's notes. A copy begins without any: whoever copies a node is about to change it. Reading and making them is for any thread, as
/// forks of a cluster share their nodes; `clear` is for the thread that changes the node, when nobody else has it.
class NodeNotes {
 public:
  NodeNotes() = default;
  NodeNotes(const NodeNotes& /*other*/) noexcept {}
  NodeNotes(NodeNotes&& other) noexcept : first_(other.first_.exchange(nullptr)) {}
  NodeNotes& operator=(const NodeNotes& other) noexcept {
    if (this != &other) clear();
    return *this;
  }
  NodeNotes& operator=(NodeNotes&& other) noexcept {
    if (this != &other) {
      clear();
      first_.store(other.first_.exchange(nullptr));
    }
    return *this;
  }
  ~NodeNotes() { clear(); }

  /// The note of that id; `make()` gives it when there is none. One id has one T. Two threads may both make it: the first is kept. The
  /// reference holds until the node changes.
  template <typename T, typename Make>
  const T& get(NoteId id, Make&& make) const {
    const Note* first = first_.load(std::memory_order_acquire);
    if (const Note* found = find(first, nullptr, id)) return static_cast<const Holder<T>*>(found)->value;
    auto made = std::make_unique<Holder<T>>(id.value(), std::forward<Make>(make)());
    made->next = const_cast<Note*>(first);
    Note* expected = made->next;
    while (!first_.compare_exchange_weak(expected, made.get(), std::memory_order_acq_rel, std::memory_order_acquire)) {
      if (const Note* found = find(expected, made->next, id)) return static_cast<const Holder<T>*>(found)->value;
      made->next = expected;
    }
    return made.release()->value;
  }
  void clear() noexcept {
    Note* note = first_.load(std::memory_order_relaxed);
    if (note == nullptr) return;
    first_.store(nullptr, std::memory_order_relaxed);
    while (note != nullptr) delete std::exchange(note, note->next);
  }

 private:
  struct Note {
    explicit Note(std::uint64_t id) : id(id) {}
    virtual ~Note() = default;
    std::uint64_t id;
    Note* next = nullptr;
  };
  template <typename T>
  struct Holder final : Note {
    Holder(std::uint64_t id, T made) : Note(id), value(std::move(made)) {}
    T value;
  };
  static const Note* find(const Note* from, const Note* end, NoteId id) {
    for (; from != end; from = from->next)
      if (from->id == id.value()) return from;
    return nullptr;
  }
  mutable std::atomic<Note*> first_{nullptr};
};

}  // namespace berth::placement
