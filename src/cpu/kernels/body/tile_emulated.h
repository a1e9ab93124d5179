// The tile registers of AMX in memory, and its product exactly as the processor computes it:
// multiply-adds that flush, as all threads of a call do here. Included inside the namespace of its
// file.
#pragma once

/// As the processor's: see there which tile is what.
class TileUnit {
 public:
  void configure(int64_t upper, int64_t lower) {
    for (int tile = 0; tile < 8; ++tile) {
      const bool is_lower = tile == 2 || tile == 3 || tile == 5;
      rows_[tile] = tile > 5 ? 16 : is_lower ? lower : upper;
      for (auto& row : tiles_[tile]) F32::broadcast(0).store(row);
    }
  }
  template <int kTile>
  void load(const void* from, int64_t step) {
    const char* at = static_cast<const char*>(from);
    for (int64_t r = 0; r < rows_[kTile]; ++r, at += step) {
      F32::load(reinterpret_cast<const float*>(at)).store(tiles_[kTile][r]);
    }
  }
  template <int kTile>
  void load_once(const void* from, int64_t step) {
    load<kTile>(from, step);
  }
  template <int kTile>
  void store(void* to, int64_t step) {
    char* at = static_cast<char*>(to);
    for (int64_t r = 0; r < rows_[kTile]; ++r, at += step) {
      F32::load(tiles_[kTile][r]).store(reinterpret_cast<float*>(at));
    }
  }
  template <int kSum, int kLeft, int kRight>
  void dot() {
    F32 even_of[16], odd_of[16];
    for (int k = 0; k < 16; ++k) {
      even_of[k] = low_bf16(F32::load(tiles_[kRight][k]));
      odd_of[k] = high_bf16(F32::load(tiles_[kRight][k]));
    }
    // The processor refuses sums of other rows than the left side's.
    const F32 wrong = F32::broadcast(rows_[kSum] == rows_[kLeft] ? 0.0f : __builtin_nanf(""));
    for (int64_t r = 0; r < rows_[kSum]; ++r) {
      F32 even = wrong, odd = wrong;
      for (int k = 0; k < 16; ++k) {
        const F32 pair = F32::broadcast(tiles_[kLeft][r][k]);
        even = fma(low_bf16(pair), even_of[k], even);
        odd = fma(high_bf16(pair), odd_of[k], odd);
      }
      (F32::load(tiles_[kSum][r]) + (even + odd)).store(tiles_[kSum][r]);
    }
  }

 private:
  int64_t rows_[8] = {};
  alignas(64) float tiles_[8][16][16];
};
