// cuda_pipeline_primitives.h: cp.async. A copy is performed only at the wait for it, so that a missing wait
// shows as wrong or uninitialised data here too.
#pragma once

inline void __pipeline_memcpy_async(void* to, const void* from, size_t bytes, size_t zero_fill = 0) {
  kw_copy_async(to, from, bytes, zero_fill);
}
inline void __pipeline_commit() { kw_copy_commit(); }
inline void __pipeline_wait_prior(unsigned keep) { kw_copy_wait(keep); }
