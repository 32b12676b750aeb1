// CUDA C++ device code for an ordinary C++17 compiler. Precompiled once per mode and put before every
// candidate. The standard headers come first: the keywords below would break them.
#pragma once
#include <cfloat>
#include <climits>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "abi.h"
#include "keywords.h"
#include "vector_types.h"
#include "builtins.h"
#include "warp.h"
#include "atomics.h"
#include "arithmetic.h"
#include "half.h"
#include "pipeline.h"
#include "cooperative_groups.h"
#include "wmma.h"
#include "entry.h"
