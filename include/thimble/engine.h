// The engine: tensors, the tape, ops, layers, models, optimizers and gradient checks. It knows no file, no JSON, no YAML,
// no text layout and no thread. src/engine/README.md says in which order to read it.
#pragma once

#include "thimble/engine/decoding.h"
#include "thimble/engine/error.h"
#include "thimble/engine/gradcheck.h"
#include "thimble/engine/gru.h"
#include "thimble/engine/make_model.h"
#include "thimble/engine/ops.h"
#include "thimble/engine/optimizer.h"
#include "thimble/engine/random.h"
#include "thimble/engine/schedule.h"
