// Work on the items of a list, spread over the processors, whose results are wanted in the list's order.
#pragma once
#include <cstddef>
#include <functional>

namespace berth {

/// What stands between making results and taking them: whoever makes one puts it where the taker will look for it.
struct InOrder {
  std::size_t count = 0;    ///< Items.
  std::size_t portion = 1;  ///< Items at a time; a few portions are made ahead, which is what memory must hold.
  /// Makes the results of the items from `first` to before `last`. Called on any thread, on several at once, never twice for an item.
  std::function<void(std::size_t first, std::size_t last)> make;
  /// Takes the results of the same portions, in order, on the calling thread. False: no more are wanted.
  std::function<bool(std::size_t first, std::size_t last)> take;

  /// Returns when all is taken or no more is wanted; then none of its threads is left. Runs on this thread alone where there is one
  /// processor, or no thread to be had.
  void run(std::size_t threads) const;
};

}  // namespace berth
