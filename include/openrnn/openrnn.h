// Everything: the whole public surface. Embedders of openrnn::core include openrnn/runtime.h alone.
#pragma once

#include "openrnn/base.h"
#include "openrnn/cells.h"
#include "openrnn/cells_layer_norm.h"
#include "openrnn/checkpoint.h"
#include "openrnn/device.h"
#include "openrnn/engine.h"
#include "openrnn/formats.h"
#include "openrnn/graph.h"
#include "openrnn/layers.h"
#include "openrnn/ops.h"
#include "openrnn/params.h"
#include "openrnn/runtime.h"
#include "openrnn/saveables.h"
#include "openrnn/spec.h"
#include "openrnn/train.h"
#include "openrnn/version.h"
