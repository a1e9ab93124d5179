// What a user of openrnn::openrnn sees: a checkpoint written and read back.
#include <openrnn/openrnn.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

int main() {
  namespace fs = std::filesystem;
  const fs::path folder = fs::temp_directory_path() / "openrnn-consumer";
  fs::create_directories(folder);
  const std::string prefix = (folder / "model").string();

  const std::vector<float> values = {1.5f, -2.0f, 0.25f, 3.0f, 8.0f, -0.5f};
  openrnn::TensorBundleWriter writer(prefix);
  writer.add("a/kernel", openrnn::Array::of<float>({2, 3}, values));
  writer.finish();
  const openrnn::Array read = openrnn::TensorBundleReader(prefix).read("a/kernel");
  const bool same =
      read.shape() == openrnn::Shape{2, 3} && std::ranges::equal(read.as<float>(), values);
  fs::remove_all(folder);
  if (!same) return 1;
  std::puts("consumer of openrnn: ok");
}
