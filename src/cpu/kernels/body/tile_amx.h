// The tile registers of AMX. Included inside the namespace of its file; every function is one
// instruction, in assembly because the intrinsics of GCC 12 do not say that they touch memory.
#pragma once

/// What ldtilecfg reads: palette 1 has 8 tiles of at most 16 rows of 64 bytes.
struct alignas(64) TileConfig {
  uint8_t palette, start_row, reserved[14];
  uint16_t row_bytes[16];
  uint8_t rows[16];
};
static_assert(sizeof(TileConfig) == 64, "the instruction reads 64 bytes");

/// Tiles 0 to 3 are sums and 4 and 5 the left side: `upper` rows in 0, 1 and 4, `lower` in 2, 3 and
/// 5. Tiles 6 and 7 are the right side, of 16 rows. The destructor gives the registers back.
class TileUnit {
 public:
  TileUnit() = default;
  TileUnit(const TileUnit&) = delete;
  TileUnit& operator=(const TileUnit&) = delete;
  ~TileUnit() {
    if (upper_) asm volatile("tilerelease" ::: "memory");
  }
  void configure(int64_t upper, int64_t lower) {
    if (upper == upper_ && lower == lower_) return;
    upper_ = upper;
    lower_ = lower;
    TileConfig config{};
    config.palette = 1;
    for (int tile = 0; tile < 8; ++tile) {
      const bool is_lower = tile == 2 || tile == 3 || tile == 5;
      config.row_bytes[tile] = 64;
      config.rows[tile] = static_cast<uint8_t>(tile > 5 ? 16 : is_lower ? lower : upper);
    }
    asm volatile("ldtilecfg %0" ::"m"(config) : "memory");
  }
  /// Rows of 64 bytes, `step` bytes from one to the next; 0 repeats one row.
  template <int kTile>
  void load(const void* from, int64_t step) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(step), "i"(kTile) : "memory");
  }
  /// The same of what is not read again soon: L1 is left to the others.
  template <int kTile>
  void load_once(const void* from, int64_t step) {
    asm volatile("tileloaddt1 (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(step), "i"(kTile) : "memory");
  }
  template <int kTile>
  void store(void* to, int64_t step) {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(to), "r"(step), "i"(kTile) : "memory");
  }
  template <int kSum, int kLeft, int kRight>
  void dot() {
    // In this order of operands: right, left, sum.
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kSum), "i"(kLeft), "i"(kRight));
  }

 private:
  int64_t upper_ = 0, lower_ = 0;
};
