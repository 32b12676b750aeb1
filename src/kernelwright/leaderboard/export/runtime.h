// Arithmetic of plans and launches, for exported candidates. A value is an integer below 2**63 in magnitude.
namespace kw {

[[noreturn]] inline void fail(const std::string& what) { throw std::runtime_error(what); }

inline int64_t limited(__int128 value)
{
    if (value > INT64_MAX || value < -INT64_MAX)
        fail("an expression of the plan is not below 2**63");
    return static_cast<int64_t>(value);
}

inline int64_t add(int64_t a, int64_t b) { return limited(static_cast<__int128>(a) + b); }
inline int64_t subtract(int64_t a, int64_t b) { return limited(static_cast<__int128>(a) - b); }
inline int64_t multiply(int64_t a, int64_t b) { return limited(static_cast<__int128>(a) * b); }

// Rounds down, as the plan's language does.
inline int64_t floor_divide(int64_t a, int64_t b)
{
    if (b == 0)
        fail("an expression of the plan divides by zero");
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

inline int64_t modulo(int64_t a, int64_t b) { return a - floor_divide(a, b) * b; }

inline int64_t divide(int64_t a, int64_t b)
{
    const int64_t quotient = floor_divide(a, b);
    if (quotient * b != a)
        fail("a division of the plan leaves a remainder");
    return quotient;
}

inline int64_t cdiv(int64_t a, int64_t b) { return -floor_divide(-a, b); }

inline int64_t power(int64_t base, int64_t exponent)
{
    if (exponent < 0 || exponent > 64)
        fail("an exponent of the plan is not between 0 and 64");
    int64_t result = 1;
    for (; exponent > 0; --exponent)
        result = multiply(result, base);
    return result;
}

inline int64_t ceil_pow2(int64_t value)
{
    if (value < 1)
        fail("ceil_pow2 of the plan needs a positive number");
    __int128 result = 1;
    while (result < value)
        result *= 2;
    return limited(result);
}

inline int64_t between(int64_t least, int64_t value, int64_t most, const char* what)
{
    if (value < least || value > most)
        fail(std::string(what) + " is " + std::to_string(value));
    return value;
}

inline int32_t as_int32(int64_t value, const char* what)
{
    return static_cast<int32_t>(between(INT32_MIN, value, INT32_MAX, what));
}

inline unsigned dim(int64_t value, int64_t most, const char* what)
{
    return static_cast<unsigned>(between(1, value, most, what));
}

inline void check(cudaError_t error, const char* what)
{
    if (error != cudaSuccess)
        fail(std::string(what) + ": " + cudaGetErrorString(error));
}

inline int64_t device(cudaDeviceAttr attribute)
{
    int which = 0, value = 0;
    check(cudaGetDevice(&which), "device");
    check(cudaDeviceGetAttribute(&value, attribute, which), "device");
    return value;
}

struct Shape {
    dim3 grid, block;
    int64_t shared_bytes;
    bool clusters;
    dim3 cluster;
    bool cooperative;
};

inline void launch(const char* name, const void* kernel, const Shape& shape, void** arguments)
{
    if (shape.shared_bytes > 0)
        check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                   static_cast<int>(shape.shared_bytes)),
              name);
    cudaLaunchAttribute attributes[2] = {};
    cudaLaunchConfig_t config = {};
    config.gridDim = shape.grid;
    config.blockDim = shape.block;
    config.dynamicSmemBytes = static_cast<size_t>(shape.shared_bytes);
    config.attrs = attributes;
    if (shape.clusters) {
        const dim3 size = shape.cluster;
        if (size.x * size.y * size.z > 8)
            check(cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1), name);
        attributes[config.numAttrs].id = cudaLaunchAttributeClusterDimension;
        attributes[config.numAttrs].val.clusterDim.x = size.x;
        attributes[config.numAttrs].val.clusterDim.y = size.y;
        attributes[config.numAttrs].val.clusterDim.z = size.z;
        ++config.numAttrs;
    }
    if (shape.cooperative) {
        attributes[config.numAttrs].id = cudaLaunchAttributeCooperative;
        attributes[config.numAttrs].val.cooperative = 1;
        ++config.numAttrs;
    }
    check(cudaLaunchKernelExC(&config, kernel, arguments), name);
}

}  // namespace kw
