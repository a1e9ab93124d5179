// Training: optimizers and schedules, data, models, and the fit loop.
#pragma once

#include "openrnn/train_data.h"
#include "openrnn/train_fit.h"
#include "openrnn/train_model.h"
#include "openrnn/train_optimizer.h"
