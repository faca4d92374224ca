#include "preload/inject/nvtx_events.h"

#include <cmath>

#include "preload/args_json.h"
#include "preload/inject/ranges.h"
#include "preload/names.h"

namespace shp::inject::nvtx {
namespace {

constexpr size_t kWideBytes = 1024;

// UTF-32, which wchar_t is here, as UTF-8. What is no character becomes U+FFFD;
// what does not fit is cut between characters.
size_t to_utf8(const wchar_t* from, char* to, size_t bytes) noexcept {
  size_t at = 0;
  for (; *from != L'\0' && at + 4 <= bytes; ++from) {
    auto code = static_cast<uint32_t>(*from);
    if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) {
      code = 0xfffd;
    }
    if (code < 0x80) {
      to[at++] = static_cast<char>(code);
      continue;
    }
    const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    static constexpr uint32_t kLead[] = {0, 0xc0, 0xe0, 0xf0};
    to[at++] = static_cast<char>(kLead[more] | code >> (6 * more));
    for (int shift = 6 * (more - 1); shift >= 0; shift -= 6) {
      to[at++] = static_cast<char>(0x80 | (code >> shift & 0x3f));
    }
  }
  return at;
}

// Categories by domain and number; few, and seldom named.
struct Category {
  std::atomic<uint64_t> key;  // domain << 32 | category + 1
  std::atomic<uint32_t> name;
};
constexpr uint32_t kCategories = 256;
constinit Category g_categories[kCategories]{};

uint64_t key_of(uint32_t domain, uint32_t category) noexcept {
  return uint64_t{domain} << 32 | (category + 1);
}

const char* category_name(uint32_t domain, uint32_t category) noexcept {
  const uint64_t key = key_of(domain, category);
  for (const Category& known : g_categories) {
    const uint64_t at = known.key.load(std::memory_order_acquire);
    if (at == key) {
      return recorder::name_text(known.name.load(std::memory_order_relaxed))
          .data();
    }
    if (at == 0) {
      break;
    }
  }
  return nullptr;
}

shp_arg text_arg(const char* key, const char* text) noexcept {
  shp_arg arg{key, SHP_STR, {}};
  arg.value.str = text;
  return arg;
}
shp_arg int_arg(const char* key, int64_t value) noexcept {
  shp_arg arg{key, SHP_I64, {}};
  arg.value.i64 = value;
  return arg;
}
shp_arg real_arg(const char* key, double value) noexcept {
  shp_arg arg{key, SHP_F64, {}};
  arg.value.f64 = value;
  return std::isfinite(value) ? arg : text_arg(key, "not finite");
}

bool payload_arg(const EventAttributes& event, shp_arg* arg) noexcept {
  static constexpr char kKey[] = "payload";
  switch (event.payload_type) {
    case kPayloadU64:
      *arg = event.payload.u64 <= INT64_MAX
                 ? int_arg(kKey, event.payload.i64)
                 : real_arg(kKey, static_cast<double>(event.payload.u64));
      return true;
    case kPayloadI64:
      *arg = int_arg(kKey, event.payload.i64);
      return true;
    case kPayloadF64:
      *arg = real_arg(kKey, event.payload.f64);
      return true;
    case kPayloadU32:
      *arg = int_arg(kKey, event.payload.u32);
      return true;
    case kPayloadI32:
      *arg = int_arg(kKey, event.payload.i32);
      return true;
    case kPayloadF32:
      *arg = real_arg(kKey, static_cast<double>(event.payload.f32));
      return true;
    default:
      return false;
  }
}

void put_color(uint32_t color, char (&text)[10]) noexcept {
  static constexpr char kDigits[] = "0123456789abcdef";
  text[0] = '#';
  for (int i = 0; i < 8; ++i) {
    text[1 + i] = kDigits[color >> (28 - 4 * i) & 15];
  }
  text[9] = '\0';
}

}  // namespace

uint32_t name_of(Handle handle, Handles handles) noexcept {
  return handles == Handles::kOwn ? name_of_own_handle(handle)
                                  : name_of_handle(handle);
}

uint32_t intern(const char* text) noexcept {
  return recorder::intern_c_name(text);
}

uint32_t intern(const wchar_t* text) noexcept {
  if (text == nullptr) {
    return kNoName;
  }
  char utf8[kWideBytes];
  return recorder::intern_name({utf8, to_utf8(text, utf8, sizeof(utf8))});
}

uint32_t name_of_event(const EventAttributes& event, Handles handles) noexcept {
  switch (event.message_type) {
    case kAscii:
      return recorder::intern_c_name(event.message.ascii);
    case kWide:
      return intern(event.message.wide);
    case kRegistered:
      return name_of(event.message.registered, handles);
    default:
      return kNoName;
  }
}

void name_category(uint32_t domain, uint32_t category, uint32_t name) noexcept {
  const uint64_t key = key_of(domain, category);
  for (Category& known : g_categories) {
    uint64_t expected = 0;
    if (known.key.load(std::memory_order_relaxed) == key) {
      known.name.store(name, std::memory_order_relaxed);
      return;
    }
    if (known.key.load(std::memory_order_relaxed) == 0) {
      // Another thread that takes the place in between keeps it.
      known.name.store(name, std::memory_order_relaxed);
      if (known.key.compare_exchange_strong(expected, key)) {
        return;
      }
    }
  }
}

Args::Args(uint32_t domain, const EventAttributes* event) noexcept {
  shp_arg args[4];
  size_t count = 0;
  char color[10];
  if (domain != kNoName) {
    args[count++] = text_arg("domain", recorder::name_text(domain).data());
  }
  if (event != nullptr && event->category != 0) {
    const char* name = category_name(domain, event->category);
    args[count++] = name != nullptr ? text_arg("category", name)
                                    : int_arg("category", event->category);
  }
  if (event != nullptr && event->color_type == kColorArgb) {
    put_color(event->color, color);
    args[count++] = text_arg("color", color);
  }
  if (event != nullptr && payload_arg(*event, &args[count])) {
    ++count;
  }
  if (count != 0) {
    json_ = recorder::encode_args({args, count}, text_);
  }
}

}  // namespace shp::inject::nvtx
