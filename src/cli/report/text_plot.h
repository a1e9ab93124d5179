// Line charts of characters.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace openrnn::cli {

/// A series of a text plot: its values from x = `first` on, drawn by one character.
struct TextCurve {
  char mark = '*';
  std::int64_t first = 0;
  std::vector<double> values = {};
};

/// Columns of the terminal that stdout is; 80 where it is none, or does not say.
int terminal_width();

/// Lines of at most `width` columns, `height` of them for the values: the smallest and the largest
/// value at the left, `divider` (an x) as a column of '|' where there is space.
std::string text_plot(const std::vector<TextCurve>& curves, std::int64_t divider, int width,
                      int height);

}  // namespace openrnn::cli
