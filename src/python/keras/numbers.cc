#include "python/keras/numbers.h"

#include <map>

#include "openrnn/spec_fields.h"
#include "python/jax/networks.h"

namespace openrnn::python::keras {
namespace {

struct Numbered {
  std::string text;
  std::weak_ptr<Cell> cell;
};

struct Numbers {
  std::mutex mutex;
  std::int64_t last = 0;
  std::map<std::int64_t, Numbered> all;
};

// Never destroyed: threads of XLA may still run when the process ends.
Numbers& numbers() {
  static auto* const found = new Numbers;
  return *found;
}

}  // namespace

std::int64_t number_of(Cell& cell) {
  Numbers& known = numbers();
  const std::lock_guard lock(known.mutex);
  std::erase_if(known.all, [](const auto& each) { return each.second.cell.expired(); });
  known.all.emplace(++known.last, Numbered{spec_to_json(cell.spec()), cell.weak_from_this()});
  return known.last;
}

std::shared_ptr<Cell> find_cell(std::string_view call, std::int64_t number, std::string_view text) {
  {
    Numbers& known = numbers();
    const std::lock_guard lock(known.mutex);
    const auto found = known.all.find(number);
    if (found != known.all.end() && found->second.text == text) {
      if (auto cell = found->second.cell.lock()) return cell;
    }
  }
  return std::make_shared<Cell>(jax::network_of(call, text)->spec);
}

}  // namespace openrnn::python::keras
