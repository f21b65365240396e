#include "model/schema_text.h"

namespace berth::model {

std::vector<Fact> read_facts(const std::vector<std::string_view>& texts) {
  std::vector<Fact> out;
  for (const std::string_view text : texts) {
    bool is_behind_colon = false;
    for (std::size_t start = 0; start < text.size();) {
      if ((start == 0 || text[start - 1] == '\n') && text[start] != ' ') {
        out.emplace_back();
        is_behind_colon = false;
      }
      const std::size_t end = std::min(text.find_first_of(" \n", start), text.size());
      std::string_view word = text.substr(start, end - start);
      start = end + 1;
      if (word.empty()) continue;
      if (is_behind_colon) {
        out.back().words.push_back(word);
        continue;
      }
      is_behind_colon = word.ends_with(':');
      if (is_behind_colon) word.remove_suffix(1);
      out.back().of.push_back(word);
    }
  }
  return out;
}

}  // namespace berth::model
