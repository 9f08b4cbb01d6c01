/*===- run_kernels.c - Kernels on an emulated processor -----------------------===
 *
 * Runs dispatches of an artifact's code for aarch64 one after the other. It needs no C library, so
 * that it links wherever clang and lld are.
 *
 * Standard input has 64-bit words: the bytes of memory, the number of words that follow, and these;
 * then the memory, with code and buffers. The words are one dispatch after the other: function,
 * grid (3), workgroups, number of operands, operands; functions and operands count bytes of memory.
 * Standard output receives the memory afterwards.
 *
 * On an emulator, which sees that memory becomes code; a processor would have to be told.
 *===-------------------------------------------------------------------------===*/

#include <stdint.h>

enum { READ = 63, WRITE = 64, EXIT = 93, MMAP = 222 };

static int64_t call(int64_t number, int64_t a, int64_t b, int64_t c, int64_t d, int64_t e) {
  register int64_t x8 __asm__("x8") = number;
  register int64_t x0 __asm__("x0") = a;
  register int64_t x1 __asm__("x1") = b;
  register int64_t x2 __asm__("x2") = c;
  register int64_t x3 __asm__("x3") = d;
  register int64_t x4 __asm__("x4") = e;
  register int64_t x5 __asm__("x5") = 0;
  __asm__ volatile("svc 0"
                   : "+r"(x0)
                   : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                   : "memory");
  return x0;
}

/* Reads or writes all of `bytes`, or ends. */
static void move(int64_t number, int64_t file, char *at, int64_t bytes) {
  for (int64_t done; bytes > 0; at += done, bytes -= done)
    if ((done = call(number, file, (int64_t)at, bytes, 0, 0)) <= 0)
      call(EXIT, 1, 0, 0, 0, 0);
}

static char *allocate(int64_t bytes) {
  const int64_t readWriteExecute = 7, privateAnonymous = 0x22;
  return (char *)call(MMAP, 0, bytes, readWriteExecute, privateAnonymous, -1);
}

typedef void (*Function)(void *const *operands, const int64_t *grid, int64_t first, int64_t last);

void _start(void) {
  int64_t sizes[2];
  move(READ, 0, (char *)sizes, sizeof sizes);
  char *memory = allocate(sizes[0]);
  int64_t *words = (int64_t *)allocate(sizes[1] * 8), *end = words + sizes[1];
  move(READ, 0, (char *)words, sizes[1] * 8);
  move(READ, 0, memory, sizes[0]);
  while (words < end) {
    int64_t count = words[5], *operands = words + 6;
    for (int64_t i = 0; i < count; ++i)
      operands[i] += (int64_t)memory;
    Function function = (Function)(memory + words[0]);
    function((void *const *)operands, words + 1, 0, words[4]);
    words = operands + count;
  }
  move(WRITE, 1, memory, sizes[0]);
  call(EXIT, 0, 0, 0, 0, 0);
}
