#include "cli/flags/model_files.h"

#include "cli/flags/options.h"
#include "spec/json.h"

namespace openrnn::cli {
namespace {

RnnSpec network_of_text(const std::string& text) {
  const std::string place = "--opaque-network";
  JsonScanner json(place, 0, text);
  const RnnSpec spec = spec::spec_from_json(json);
  json.end();
  return spec;
}

// Of what a file leaves open.
void add_hints(CLI::App* app, MappingHints& hints) {
  add_text_as(app, "--mode", "{rnn_tanh,rnn_relu}",
              "Of plain networks, where the file does not say it (PyTorch's do not)",
              [&hints](const std::string& text) { hints.mode = parse_rnn_mode(text); });
  add_text_as(app, "--reset-after", "{true,false}",
              "Of a gru, where the file does not say it: whether the reset gate applies after the "
              "product with the state",
              [app, &hints](const std::string& text) {
                if (text != "true" && text != "false") {
                  refuse_value(app, "--reset-after", "'" + excerpt(text) + "'", "true or false");
                }
                hints.reset_after = text == "true";
              });
  add_text_as(app, "--recurrent-activation", "NAME",
              "Of the gates, where the file has weights alone", [&hints](const std::string& text) {
                hints.recurrent_activation = parse_cell_activation(text);
              });
  add_number(app, "--forget-bias", hints.forget_bias, kAny,
             "Of TensorFlow's LSTM cells, whose files do not say it (default: TensorFlow's, 1)");
  add_text_as(app, "--opaque-network", "JSON",
              "Of an opaque_kernel that lies in a TensorFlow checkpoint alone: '{\"rnn_mode\": "
              "\"lstm\", \"num_units\": 200, \"input_size\": 200}'",
              [&hints](const std::string& text) { hints.network = network_of_text(text); });
}

}  // namespace

void add_inspect(CLI::App& tool, InspectFlags& flags) {
  CLI::App* app =
      tool.add_subcommand("inspect", "List the tensors and networks of a checkpoint or model file");
  app->add_option("checkpoint", flags.checkpoint,
                  "A checkpoint prefix, a run's folder, or a model file of another framework")
      ->required();
  app->add_flag("--fast", flags.fast, "Do not read every tensor to verify its checksum");
  app->add_flag("--json", flags.json, "Print the same as one JSON object");
  add_hints(app, flags.hints);
}

void add_convert(CLI::App& tool, ConvertFlags& flags) {
  CLI::App* app = tool.add_subcommand(
      "convert", "Write the recurrent networks of a model file to one of another kind");
  app->add_option("in", flags.in, "The model file to read")->required();
  app->add_option("out", flags.out, "The file to write")->required();
  app->add_option("--to", flags.to, "Kind of the file (default: by the ending of its name)")
      ->type_name("KIND");
  add_hints(app, flags.hints);
}

void add_run(CLI::App& tool, RunFlags& flags) {
  CLI::App* app = tool.add_subcommand("run", "Run a recurrent network of a model file");
  app->add_option("model", flags.model, "The model file")->required();
  app->add_option(
         "--input", flags.input,
         "[T, B, I] or [T, I]: a file of NumPy (.npy), a CSV file of T rows, or sound (.wav) of I "
         "channels")
      ->required();
  app->add_option("--output", flags.output, "The .npy file to write: [T, B, D*O] or [T, D*O]")
      ->required();
  app->add_option("--network", flags.network, "Its name, where the file has several");
  app->add_flag("--batch-major", flags.batch_major, "Input and output are [B, T, .]");
  app->add_option("--lengths", flags.lengths, "[B] integers (.npy): the length of each sequence");
  app->add_option("--state", flags.state,
                  "A file of states (safetensors: h, c): read if it is there, and written after");
  add_number(app, "--stream", flags.stream, kPositive,
             "Time steps of a call, the state carried from one to the next (default: all at once)");
  add_choice(app, "--math", flags.math, {"float32", "bf16", "bf16x3"},
             "Arithmetic of the products (default: the model's)");
  add_number(app, "--threads", flags.threads, {1, 1024},
             "Threads to use; results do not depend on it (default: all of this machine's)");
  add_hints(app, flags.hints);
}

}  // namespace openrnn::cli
