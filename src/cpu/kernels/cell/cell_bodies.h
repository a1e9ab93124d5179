// The bodies of cells with options, each after what it uses.
#pragma once

#include "cpu/kernels/cell/activation_body.h"
// What they compute at a unit.
#include "cpu/kernels/cell/cell_body.h"
#include "cpu/kernels/cell/zoneout_body.h"
// Layer normalization of a row.
#include "cpu/kernels/cell/norm_body.h"
#include "cpu/kernels/cell/norm_gradient_body.h"
