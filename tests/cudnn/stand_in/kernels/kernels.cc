// The kernels of the device, compiled for the CPU from their own source.
// clang-format off: what the kernels need of the language comes before them.
#include "cudnn/stand_in/kernels/kernels_on_cpu.h"
// clang-format on

#include "cudnn/kernels/decisions.cu"
#include "cudnn/kernels/elementwise.cu"
#include "cudnn/kernels/optimizers.cu"
#include "cudnn/kernels/rows.cu"
#include "cudnn/kernels/sequence.cu"
#include "cudnn/kernels/softmax.cu"
#include "cudnn/kernels/strided.cu"
#include "cudnn/kernels/sums.cu"

namespace openrnn::stand_in {
namespace {

const Kernel kKernels[] = {{"openrnn_unary", openrnn_unary},
                           {"openrnn_unary_gradient", openrnn_unary_gradient},
                           {"openrnn_binary", openrnn_binary},
                           {"openrnn_compare", openrnn_compare},
                           {"openrnn_select", openrnn_select},
                           {"openrnn_strided", openrnn_strided},
                           {"openrnn_clip", openrnn_clip},
                           {"openrnn_scale", openrnn_scale},
                           {"openrnn_fill", openrnn_fill},
                           {"openrnn_convert", openrnn_convert},
                           {"openrnn_add_row", openrnn_add_row},
                           {"openrnn_column_sum", openrnn_column_sum},
                           {"openrnn_copy", openrnn_copy},
                           {"openrnn_scatter_add", openrnn_scatter_add},
                           {"openrnn_dropout", openrnn_dropout},
                           {"openrnn_softmax", openrnn_softmax},
                           {"openrnn_softmax_loss_gradient", openrnn_softmax_loss_gradient},
                           {"openrnn_softmax_gradient", openrnn_softmax_gradient},
                           {"openrnn_sums", openrnn_sums},
                           {"openrnn_pack", openrnn_pack},
                           {"openrnn_unpack", openrnn_unpack},
                           {"openrnn_pack_states", openrnn_pack_states},
                           {"openrnn_unpack_states", openrnn_unpack_states},
                           {"openrnn_mask", openrnn_mask},
                           {"openrnn_move", openrnn_move},
                           {"openrnn_total", openrnn_total},
                           {"openrnn_decide", openrnn_decide},
                           {"openrnn_copy_if", openrnn_copy_if},
                           {"openrnn_optimizer", openrnn_optimizer}};

}  // namespace
}  // namespace openrnn::stand_in
