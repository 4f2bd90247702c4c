// The number type of everything that computes. The library is compiled twice from the same sources: with
// THIMBLE_DOUBLE undefined into namespace thimble::f32, with it defined into thimble::f64. The namespaces are
// inline, so code is written against plain thimble::Tensor, and mixing the two by accident does not link.
#pragma once

#ifdef THIMBLE_DOUBLE
#define THIMBLE_PRECISION f64
#else
#define THIMBLE_PRECISION f32
#endif

namespace thimble {
inline namespace THIMBLE_PRECISION {

#ifdef THIMBLE_DOUBLE
using Real = double;
#else
using Real = float;
#endif

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
