// Training: optimizers and schedules, data, models, the fit loop, and whole runs.
#pragma once

#include "openrnn/train_communicator.h"
#include "openrnn/train_data.h"
#include "openrnn/train_fit.h"
#include "openrnn/train_model.h"
#include "openrnn/train_optimizer.h"
#include "openrnn/train_run.h"
