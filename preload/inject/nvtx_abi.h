// NVTX version 3, as an injection library sees it; declared by hand from the
// headers' documented binary interface (nvToolsExt.h and nvtxTypes.h of CUDA
// 12.9 and before; unchanged since NVTX 3.0).
//
// Every library or program that includes NVTX holds a copy of its own, with
// function tables of its own: at its first call it loads what
// NVTX_INJECTION64_PATH names and calls InitializeInjectionNvtx2(get_table).
#pragma once

#include <cstddef>
#include <cstdint>

namespace shp::inject::nvtx {

using Handle = void*;  // of a domain, a registered string, a resource

struct EventAttributes {
  uint16_t version;
  uint16_t size;
  uint32_t category;
  int32_t color_type;
  uint32_t color;
  int32_t payload_type;
  int32_t reserved0;
  union {
    uint64_t u64;
    int64_t i64;
    double f64;
    uint32_t u32;
    int32_t i32;
    float f32;
  } payload;
  int32_t message_type;
  union {
    const char* ascii;
    const wchar_t* wide;
    Handle registered;
  } message;
};
static_assert(offsetof(EventAttributes, payload) == 24);
static_assert(offsetof(EventAttributes, message) == 40);
static_assert(sizeof(EventAttributes) == 48);

enum ColorType : int32_t { kColorArgb = 1 };
enum PayloadType : int32_t {
  kPayloadU64 = 1,
  kPayloadI64 = 2,
  kPayloadF64 = 3,
  kPayloadU32 = 4,
  kPayloadI32 = 5,
  kPayloadF32 = 6,
};
enum MessageType : int32_t { kAscii = 1, kWide = 2, kRegistered = 3 };

// Tables of callbacks, and the places in them.
enum Module : int { kCore = 1, kCore2 = 5 };
enum Core : uint32_t {
  kMarkEx = 1,
  kMarkA = 2,
  kMarkW = 3,
  kRangeStartEx = 4,
  kRangeStartA = 5,
  kRangeStartW = 6,
  kRangeEnd = 7,
  kRangePushEx = 8,
  kRangePushA = 9,
  kRangePushW = 10,
  kRangePop = 11,
  kNameCategoryA = 12,
  kNameCategoryW = 13,
  kCoreSize = 16,
};
enum Core2 : uint32_t {
  kDomainMarkEx = 1,
  kDomainRangeStartEx = 2,
  kDomainRangeEnd = 3,
  kDomainRangePushEx = 4,
  kDomainRangePop = 5,
  kDomainNameCategoryA = 8,
  kDomainNameCategoryW = 9,
  kDomainRegisterStringA = 10,
  kDomainRegisterStringW = 11,
  kDomainCreateA = 12,
  kDomainCreateW = 13,
  kCore2Size = 16,
};

using AnyFunction = void (*)();
struct CallbacksTable {
  size_t struct_size;
  // An array of pointers to the copy's function pointers.
  int (*get_module)(int module, AnyFunction*** table, unsigned* size);
};
inline constexpr uint32_t kCallbacksId = 1;
using GetExportTable = const void* (*)(uint32_t id);
using Initialize = int (*)(GetExportTable);

// nvtxRangePush without tracking answers this.
inline constexpr int kNoTracking = -2;

}  // namespace shp::inject::nvtx
