/* A kernel as the compiler makes them, and with what the runtime refuses. */

#ifdef WRITES
static long counter;
long *get_counter(void) { return &counter; }
#endif
#ifdef CALLS
void elsewhere(void);
#endif
#ifdef RELOCATES
extern const char text[];
const char text[] = "text";
const char *const pointers[] = {text, text + 1};
#endif
#ifdef STARTS
__attribute__((constructor)) static void start(void) { __asm__ volatile("nop"); }
#endif

void fill(void *const *operands, const long *grid, long first, long last) {
  for (long i = first; i < last; ++i)
    ((float *)operands[0])[i] = (float)(i + 100 * grid[0]);
#ifdef CALLS
  elsewhere();
#endif
#ifdef WRITES
  ++counter;
#endif
#ifdef RELOCATES
  ((const char **)operands[0])[0] = pointers[grid[0] & 1];
#endif
}
