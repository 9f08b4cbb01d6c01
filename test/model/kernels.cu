// Simple kernels whose times are published; the PTX beside this file is what nvcc makes of them:
//   nvcc -arch=sm_80 -ptx -o kernels.ptx kernels.cu
// Sizes are constants, so that each address follows from the ids alone.

constexpr int n = 4096; // rows and columns of all matrices

// One element an invocation.
extern "C" __global__ void __launch_bounds__(1024) copy(const float *__restrict__ a,
                                                        float *__restrict__ b) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  b[i] = a[i];
}

// Four elements an invocation.
extern "C" __global__ void __launch_bounds__(256) copy4(const float4 *__restrict__ a,
                                                        float4 *__restrict__ b) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  b[i] = a[i];
}

// Neighbouring invocations own neighbouring rows: a request reads a column of a, and writes one.
extern "C" __global__ void __launch_bounds__(1024)
    naive(const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ c) {
  int row = blockIdx.x * 32 + threadIdx.x, column = blockIdx.y * 32 + threadIdx.y;
  float sum = 0;
  for (int k = 0; k < n; ++k)
    sum += a[row * n + k] * b[k * n + column];
  c[row * n + column] = sum;
}

// Neighbouring invocations own neighbouring columns.
extern "C" __global__ void __launch_bounds__(1024)
    coalesced(const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ c) {
  int row = blockIdx.x * 32 + threadIdx.x / 32, column = blockIdx.y * 32 + threadIdx.x % 32;
  float sum = 0;
  for (int k = 0; k < n; ++k)
    sum += a[row * n + k] * b[k * n + column];
  c[row * n + column] = sum;
}

// Tiles of 32 x 32 in shared memory, one sum an invocation.
extern "C" __global__ void __launch_bounds__(1024)
    tiled(const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ c) {
  __shared__ float left[32][32], right[32][32];
  int x = threadIdx.x % 32, y = threadIdx.x / 32;
  int row = blockIdx.x * 32 + y, column = blockIdx.y * 32 + x;
  float sum = 0;
  for (int k = 0; k < n; k += 32) {
    left[y][x] = a[row * n + k + x];
    right[y][x] = b[(k + y) * n + column];
    __syncthreads();
    for (int i = 0; i < 32; ++i)
      sum += left[y][i] * right[i][x];
    __syncthreads();
  }
  c[row * n + column] = sum;
}

// Tiles of 64 x 64, slabs of 8, eight sums of a column an invocation.
extern "C" __global__ void __launch_bounds__(512)
    column8(const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ c) {
  __shared__ float left[64][8], right[8][64];
  int t = threadIdx.x, x = t % 64, y = t / 64;
  const float *from = a + blockIdx.y * 64 * n, *other = b + blockIdx.x * 64;
  float sums[8] = {};
  for (int k = 0; k < n; k += 8) {
    left[t / 8][t % 8] = from[(t / 8) * n + k + t % 8];
    right[t / 64][t % 64] = other[(k + t / 64) * n + t % 64];
    __syncthreads();
    for (int i = 0; i < 8; ++i) {
      float factor = right[i][x];
      for (int j = 0; j < 8; ++j)
        sums[j] += left[y * 8 + j][i] * factor;
    }
    __syncthreads();
  }
  for (int j = 0; j < 8; ++j)
    c[(blockIdx.y * 64 + y * 8 + j) * n + blockIdx.x * 64 + x] = sums[j];
}

// Tiles of 128 x 128, slabs of 8, 8 x 8 sums an invocation.
extern "C" __global__ void __launch_bounds__(256)
    square8(const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ c) {
  __shared__ float left[128][8], right[8][128];
  int t = threadIdx.x, x = t % 16, y = t / 16;
  const float *from = a + blockIdx.y * 128 * n, *other = b + blockIdx.x * 128;
  float sums[8][8] = {};
  for (int k = 0; k < n; k += 8) {
    for (int i = 0; i < 128; i += 32)
      left[i + t / 8][t % 8] = from[(i + t / 8) * n + k + t % 8];
    for (int i = 0; i < 8; i += 2)
      right[i + t / 128][t % 128] = other[(k + i + t / 128) * n + t % 128];
    __syncthreads();
    for (int i = 0; i < 8; ++i) {
      float l[8], r[8];
      for (int j = 0; j < 8; ++j) {
        l[j] = left[y * 8 + j][i];
        r[j] = right[i][x * 8 + j];
      }
      for (int j = 0; j < 8; ++j)
        for (int m = 0; m < 8; ++m)
          sums[j][m] += l[j] * r[m];
    }
    __syncthreads();
  }
  for (int j = 0; j < 8; ++j)
    for (int m = 0; m < 8; ++m)
      c[(blockIdx.y * 128 + y * 8 + j) * n + blockIdx.x * 128 + x * 8 + m] = sums[j][m];
}

// The same with loads of 16 bytes, and a transposed in shared memory.
extern "C" __global__ void __launch_bounds__(256)
    vector8(const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ c) {
  __shared__ float left[8][128], right[8][128];
  int t = threadIdx.x, x = t % 16, y = t / 16;
  const float *from = a + blockIdx.y * 128 * n, *other = b + blockIdx.x * 128;
  float sums[8][8] = {};
  for (int k = 0; k < n; k += 8) {
    float4 part = *reinterpret_cast<const float4 *>(&from[(t / 2) * n + k + t % 2 * 4]);
    left[t % 2 * 4 + 0][t / 2] = part.x;
    left[t % 2 * 4 + 1][t / 2] = part.y;
    left[t % 2 * 4 + 2][t / 2] = part.z;
    left[t % 2 * 4 + 3][t / 2] = part.w;
    *reinterpret_cast<float4 *>(&right[t / 32][t % 32 * 4]) =
        *reinterpret_cast<const float4 *>(&other[(k + t / 32) * n + t % 32 * 4]);
    __syncthreads();
    for (int i = 0; i < 8; ++i) {
      float l[8], r[8];
      for (int j = 0; j < 8; j += 4) {
        *reinterpret_cast<float4 *>(&l[j]) = *reinterpret_cast<float4 *>(&left[i][y * 8 + j]);
        *reinterpret_cast<float4 *>(&r[j]) = *reinterpret_cast<float4 *>(&right[i][x * 8 + j]);
      }
      for (int j = 0; j < 8; ++j)
        for (int m = 0; m < 8; ++m)
          sums[j][m] += l[j] * r[m];
    }
    __syncthreads();
  }
  for (int j = 0; j < 8; ++j)
    for (int m = 0; m < 8; m += 4)
      *reinterpret_cast<float4 *>(
          &c[(blockIdx.y * 128 + y * 8 + j) * n + blockIdx.x * 128 + x * 8 + m]) =
          *reinterpret_cast<float4 *>(&sums[j][m]);
}
