// What exported code uses of torch's tensors, on plain memory.
#pragma once
#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <vector>

namespace at {
enum ScalarType { kByte, kHalf, kFloat, kDouble, kInt, kLong };
enum DeviceType { kCUDA };
enum class MemoryFormat { Contiguous };
typedef const std::vector<int64_t>& IntArrayRef;
struct TensorOptions {
    ScalarType kind = kFloat;
    TensorOptions device(DeviceType) const { return *this; }
    TensorOptions dtype(ScalarType of) const { TensorOptions made; made.kind = of; return made; }
};
struct Storage {
    std::vector<int64_t> shape;
    ScalarType kind;
    bool contiguous = true, cuda = true;
    int64_t shift = 0, copies = 0;
    alignas(64) char bytes[256] = {};
};
struct Tensor {
    std::shared_ptr<Storage> own = std::make_shared<Storage>();
    bool is_cuda() const { return own->cuda; }
    ScalarType scalar_type() const { return own->kind; }
    bool is_contiguous() const { return own->contiguous; }
    void* data_ptr() const { return own->bytes + own->shift; }
    int64_t size(int64_t axis) const { return own->shape.at(axis); }
    bool is_same(const Tensor& other) const { return own == other.own; }
    Tensor clone(MemoryFormat) const
    {
        Tensor made;
        made.own->shape = own->shape;
        made.own->kind = own->kind;
        std::memcpy(made.data_ptr(), data_ptr(), 64);
        return made;
    }
    void copy_(const Tensor& from) const
    {
        ++own->copies;
        std::memcpy(data_ptr(), from.data_ptr(), 64);
    }
};
inline Tensor empty(IntArrayRef shape, TensorOptions options)
{
    Tensor made;
    made.own->shape = shape;
    made.own->kind = options.kind;
    return made;
}
}  // namespace at
#define TORCH_CHECK(condition, name, what) \
    do { if (!(condition)) throw std::runtime_error(std::string(name) + what); } while (0)
