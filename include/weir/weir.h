/*===- weir.h - The runtime's C ABI -------------------------------------------===
 *
 * Opens artifacts and runs their entries on a device. Links neither LLVM nor
 * libvulkan nor libcuda; the Vulkan loader or NVIDIA's driver is opened at run
 * time, by the first call that needs it.
 *
 * Every function that can fail returns a weir_status; weir_last_error() then
 * gives one sentence. A function that fails leaves its output parameters as they were.
 * Every function that closes, unloads, destroys or frees does nothing with NULL.
 *
 * Handles are not thread-safe; different handles may be used from different
 * threads. They may be closed in any order: a device stays open until its last
 * buffer and program are gone.
 *===-------------------------------------------------------------------------===*/

#ifndef WEIR_H
#define WEIR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*--- errors -----------------------------------------------------------------*/

/* The outcome of a call. */
typedef enum weir_status {
  WEIR_OK = 0,
  WEIR_FAILED = 1,       /* the device or the run failed */
  WEIR_BAD_ARGUMENT = 2, /* bad file, name, shape, size or handle */
} weir_status;

/* Returns one sentence about the last call of this thread that failed, valid until
 * the thread's next call; "" after one that succeeded. */
const char *weir_last_error(void);

/* Returns the version of this library, "0.1.0". */
const char *weir_version(void);

/* Returns what a driver is doing for this process, as in "building kernel 'row' of
 * code/vulkan/row.spv on 'a GPU'", or NULL if none is called; the calling thread's if it has called
 * one. For the handler of a signal: a driver may crash, and nobody else knows in what. */
const char *weir_driver_call(void);

/*--- artifacts --------------------------------------------------------------*/

/* An artifact, a `.weir` file, read into memory. */
typedef struct weir_artifact weir_artifact;

/* Reads the artifact at `path` and checks its format. Close it with
 * weir_artifact_close. */
weir_status weir_artifact_open(const char *path, weir_artifact **artifact);

/* Frees the artifact and all names and shapes that were read from it. */
void weir_artifact_close(weir_artifact *artifact);

/* Where the bytes of a buffer lie. */
typedef enum weir_memory {
  WEIR_MEMORY_DEVICE = 0, /* where the device is fastest */
  WEIR_MEMORY_HOST = 1,   /* in the host's memory, which a GPU reads and writes over the bus */
} weir_memory;

/* An argument or a result of an entry. Its pointers are valid until the artifact is
 * closed. */
typedef struct weir_tensor_info {
  const char *name;
  const char *dtype;    /* as safetensors spells it: "F32", "I64", "BOOL"... */
  const int64_t *shape; /* `rank` sizes, row-major, outermost first */
  size_t rank;
  int64_t bytes; /* of a buffer that holds it */
  int donated;   /* of an argument: whether a run may take its bytes, see
                    weir_artifact_donation */
  /* Where its buffer should lie. A run takes buffers of either kind: state that was meant for the
   * host's memory costs its bytes in the device's, and other tensors are slow in the host's. */
  weir_memory memory;
} weir_tensor_info;

/* Returns the number of entries. They are numbered from 0. */
size_t weir_artifact_entry_count(const weir_artifact *artifact);

/* Returns the name of an entry, valid until the artifact is closed, or NULL where
 * there is no such entry. */
const char *weir_artifact_entry_name(const weir_artifact *artifact, size_t entry);

/* Finds the index of the entry called `name`. The error lists the names there are. */
weir_status weir_artifact_find_entry(const weir_artifact *artifact, const char *name,
                                     size_t *entry);

/* Returns the number of arguments of an entry; 0 where there is no such entry. */
size_t weir_artifact_argument_count(const weir_artifact *artifact, size_t entry);

/* Returns the number of results of an entry; 0 where there is no such entry. */
size_t weir_artifact_result_count(const weir_artifact *artifact, size_t entry);

/* Describes argument `index` of an entry. */
weir_status weir_artifact_argument(const weir_artifact *artifact, size_t entry, size_t index,
                                   weir_tensor_info *info);

/* Describes result `index` of an entry. */
weir_status weir_artifact_result(const weir_artifact *artifact, size_t entry, size_t index,
                                 weir_tensor_info *info);

/* Finds the result that an entry computes in the bytes of a donated argument:
 * `result` receives its index, or -1 where the argument holds none. This is Vulkan's
 * plan, or the first target's without it; others may use other arguments, see
 * weir_program_donation.
 *
 * A run that passes the same buffer for the two is updated in place: the argument is
 * gone, and nothing is copied. One that passes two buffers leaves the argument as it
 * was: its bytes are first copied to the result's buffer on the device. The buffer of
 * an argument that is donated and holds no result may have any bytes after a run. */
weir_status weir_artifact_donation(const weir_artifact *artifact, size_t entry, size_t argument,
                                   int64_t *result);

/*--- devices ----------------------------------------------------------------*/

/* A device that is open. It stays open until its last buffer and program are gone,
 * whatever is closed first. */
typedef struct weir_device weir_device;

/* Counts this machine's devices of an API. With "cpu": the processor, for code of its own; with
 * "cpu:x86-64-v3", the processor as if it had that instruction set and no better one. With
 * "vulkan" or NULL, the default: those with Vulkan 1.3, one per physical device, best first:
 * discrete GPUs, then integrated and virtual ones, then CPU drivers. With "cuda": the GPUs of
 * compute capability 8.0 and later, in the driver's order. No device at all is an error that says
 * what is missing. */
weir_status weir_device_count(const char *api, size_t *count);

/* Opens device `index` of an API, counted as weir_device_count does. CUDA's is opened
 * in its primary context. */
weir_status weir_device_open(const char *api, size_t index, weir_device **device);

/* Waits for everything that was submitted to the device, and closes the handle. */
void weir_device_close(weir_device *device);

/* Returns the name that the driver gives the device, valid until the device is closed. */
const char *weir_device_name(const weir_device *device);

/* Returns 1 if the device is a GPU or another accelerator, 0 if its kernels run on the
 * processor. */
int weir_device_is_gpu(const weir_device *device);

/* Writes the target profile that fits the device, as JSON for
 * `weir compile --target=vulkan:FILE`. Free it with weir_string_free. */
weir_status weir_device_profile(const weir_device *device, char **profile_json);

/* Frees a string that a function of this library wrote. */
void weir_string_free(char *string);

/* Handles of a Vulkan device that the caller made. */
typedef struct weir_vulkan_handles {
  void *get_instance_proc_addr; /* PFN_vkGetInstanceProcAddr */
  void *instance, *physical_device, *device, *queue;
  uint32_t queue_family;
} weir_vulkan_handles;

/* Uses a device that the caller made; it must outlive the handle and all that is made
 * with it. It has Vulkan 1.3 and was created with `synchronization2` and with
 * the features that the kernels need, of those the device has (shaderFloat64,
 * shaderInt64, shaderInt8, storageBuffer8BitAccess, subgroupSizeControl,
 * shaderSubgroupExtendedTypes): Vulkan does not tell which were enabled. The
 * queue is used only inside calls of this library. */
weir_status weir_device_adopt_vulkan(const weir_vulkan_handles *handles, weir_device **device);

/* Waits for everything that was submitted to the device. */
weir_status weir_device_wait(weir_device *device);

/*--- buffers ----------------------------------------------------------------*/

/* Bytes in a device's memory, undefined until written. */
typedef struct weir_buffer weir_buffer;

/* Allocates a buffer of `bytes` bytes, which may be 0. */
weir_status weir_buffer_create(weir_device *device, int64_t bytes, weir_buffer **buffer);

/* Allocates a buffer of `bytes` bytes in `memory`. Processors, and GPUs that share the host's
 * memory, have one memory: there both kinds are the same. */
weir_status weir_buffer_create_in(weir_device *device, weir_memory memory, int64_t bytes,
                                  weir_buffer **buffer);

/* Makes a buffer of the `bytes` bytes at `data`. They stay the caller's, who keeps them
 * until the buffer is destroyed. Runs read and write them where they are: nothing is
 * copied. Refused where the device has memory of its own, so all but the API "cpu".
 * A run refuses buffers whose bytes overlap if it writes one of them, and addresses that
 * are no multiple of an element's size. */
weir_status weir_buffer_adopt(weir_device *device, void *data, int64_t bytes, weir_buffer **buffer);

/* Waits for everything that was submitted to the device, and frees the buffer. Bytes that it
 * adopted stay. */
void weir_buffer_destroy(weir_buffer *buffer);

/* Copies `bytes` bytes to the buffer, from its byte `offset` on. Waits for the submitted
 * runs that use the buffer, so the next input can be written while a run with another is
 * under way; on CUDA it waits for all runs. */
weir_status weir_buffer_write(weir_buffer *buffer, int64_t offset, const void *data, int64_t bytes);

/* Copies `bytes` bytes of the buffer to the host, from its byte `offset` on. Waits as
 * weir_buffer_write does. */
weir_status weir_buffer_read(weir_buffer *buffer, int64_t offset, void *data, int64_t bytes);

/* Gives `data` the address of the buffer's bytes, valid until the buffer is destroyed,
 * where device and host share memory, else NULL. Call weir_buffer_wait before each
 * access. */
weir_status weir_buffer_map(weir_buffer *buffer, void **data);

/* Waits for the submitted runs that use the buffer. */
weir_status weir_buffer_wait(weir_buffer *buffer);

/*--- programs ---------------------------------------------------------------*/

/* An artifact on a device, ready to run. */
typedef struct weir_program weir_program;

/* Uploads constants and builds pipelines. Refuses a device that lacks what the
 * artifact requires, saying what. The artifact may be closed afterwards. */
weir_status weir_program_load(weir_device *device, const weir_artifact *artifact,
                              weir_program **program);

/* Frees everything that the program holds on the device. */
void weir_program_unload(weir_program *program);

/* Returns the name of the artifact's target that the program runs, valid until the program is
 * unloaded: "vulkan", or "cpu.x86-64-v4" where the artifact has several profiles for processors
 * and this is the best that the device runs. */
const char *weir_program_target(const weir_program *program);

/* Does what weir_artifact_donation does, for the target that the program runs. */
weir_status weir_program_donation(const weir_program *program, const char *entry, size_t argument,
                                  int64_t *result);

/* Runs an entry and waits. Buffers are in the entry's order and have exactly the
 * tensors' bytes; a zero-size tensor may be NULL. The same buffer twice is refused,
 * except as two arguments that the run only reads, and as an argument and the result
 * that it is donated to (see weir_artifact_donation). Recordings are kept per
 * entry and set of buffers and replayed. Two runs in a row are ordered.
 * `device_nanoseconds`, when not NULL, receives the time between the first and
 * the last command, or from the submission to its end where the queue has no
 * timestamps. */
weir_status weir_program_invoke(weir_program *program, const char *entry,
                                weir_buffer *const *arguments, size_t argument_count,
                                weir_buffer *const *results, size_t result_count,
                                double *device_nanoseconds);

/* Begins a run as weir_program_invoke does, and returns once it is submitted. Reading a
 * buffer waits for the runs that use it; weir_device_wait waits for all. */
weir_status weir_program_submit(weir_program *program, const char *entry,
                                weir_buffer *const *arguments, size_t argument_count,
                                weir_buffer *const *results, size_t result_count);

/* Is told that all dispatches of a run up to wave `wave` of its plan have ended. It must not
 * call a function of this header. */
typedef void (*weir_watcher)(void *context, int64_t wave);

/* Runs an entry as weir_program_invoke does, and calls `watcher` with each of `waves`, which
 * rise, once all dispatches up to that wave have ended. Meanwhile a GPU runs those behind it.
 * The parts of a result that the plan states to be final by then may be read where
 * weir_buffer_map shows them. */
weir_status weir_program_watch(weir_program *program, const char *entry,
                               weir_buffer *const *arguments, size_t argument_count,
                               weir_buffer *const *results, size_t result_count,
                               const int64_t *waves, size_t wave_count, weir_watcher watcher,
                               void *context);

/* The begin and end of a dispatch, in nanoseconds since the run's first command. In a loop it
 * may run several times, or never: `begin` is that of its first run, and `end` - `begin` the time
 * of all its runs. */
typedef struct weir_dispatch_time {
  double begin, end;
  int64_t runs;
} weir_dispatch_time;

/* Runs an entry as weir_program_invoke does, but with the plan's dispatches one after
 * the other on one queue, each alone on the device, so that its time is its own.
 * `times[i]` receives that of the plan's dispatch i; `time_count` must be their number.
 * Refused where the device has no timestamps. */
weir_status weir_program_profile(weir_program *program, const char *entry,
                                 weir_buffer *const *arguments, size_t argument_count,
                                 weir_buffer *const *results, size_t result_count,
                                 weir_dispatch_time *times, size_t time_count);

/* Receives the bytes of an operand that a dispatch may have written: `dispatch` is its
 * number in the plan, `operand` that of the operand, `data` is valid during the call. */
typedef void (*weir_observer)(void *context, size_t dispatch, size_t operand, const void *data,
                              int64_t bytes);

/* Runs an entry as weir_program_invoke does, but with the plan's dispatches one after the
 * other, each submitted alone; behind each, in each trip of a loop, calls `observer` with every
 * operand that its kernel may write. */
weir_status weir_program_observe(weir_program *program, const char *entry,
                                 weir_buffer *const *arguments, size_t argument_count,
                                 weir_buffer *const *results, size_t result_count,
                                 weir_observer observer, void *context);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_H */
