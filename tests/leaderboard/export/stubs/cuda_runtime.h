// What exported launchers use of CUDA's runtime, without a GPU: launches are told to `on_launch`.
#pragma once
#include <algorithm>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>

typedef int cudaError_t;
enum { cudaSuccess = 0 };
inline const char* cudaGetErrorString(cudaError_t) { return "error of the stub"; }

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};
enum cudaDeviceAttr {
    cudaDevAttrMultiProcessorCount,
    cudaDevAttrMaxSharedMemoryPerBlockOptin,
    cudaDevAttrWarpSize
};
inline int facts[3] = {132, 232448, 32};
inline cudaError_t cudaGetDevice(int* device) { *device = 0; return 0; }
inline cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int)
{
    *value = facts[attribute];
    return 0;
}

enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize, cudaFuncAttributeNonPortableClusterSizeAllowed };
inline int raised[2] = {0, 0};
inline cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute attribute, int value)
{
    raised[attribute] = value;
    return 0;
}
enum cudaLaunchAttributeID { cudaLaunchAttributeIgnore, cudaLaunchAttributeClusterDimension, cudaLaunchAttributeCooperative };
struct cudaLaunchAttribute {
    cudaLaunchAttributeID id;
    union { struct { unsigned x, y, z; } clusterDim; int cooperative; } val;
};
struct cudaLaunchConfig_t {
    dim3 gridDim, blockDim;
    size_t dynamicSmemBytes;
    cudaLaunchAttribute* attrs;
    unsigned numAttrs;
};
inline std::function<void(const cudaLaunchConfig_t&, const void*, void**)> on_launch;
inline cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* kernel, void** arguments)
{
    on_launch(*config, kernel, arguments);
    return 0;
}
