/*===- weir.h - The runtime's C ABI -------------------------------------------===
 *
 * Opens artifacts and runs their entries on a device. Links neither LLVM nor
 * libvulkan nor libcuda; the Vulkan loader or NVIDIA's driver is opened at run
 * time, by the first call that needs it.
 *
 * Every function that can fail returns a weir_status; weir_last_error() then
 * gives one sentence, valid until the next call of the same thread. Handles are
 * not thread-safe; different handles may be used from different threads.
 *===-------------------------------------------------------------------------===*/

#ifndef WEIR_H
#define WEIR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum weir_status {
  WEIR_OK = 0,
  WEIR_FAILED = 1,       /* the device or the run failed */
  WEIR_BAD_ARGUMENT = 2, /* bad file, name, shape, size or handle */
} weir_status;

const char *weir_last_error(void);

typedef struct weir_artifact weir_artifact;
typedef struct weir_device weir_device;
typedef struct weir_program weir_program;
typedef struct weir_buffer weir_buffer;

/*--- artifacts --------------------------------------------------------------*/

weir_status weir_artifact_open(const char *path, weir_artifact **artifact);
void weir_artifact_close(weir_artifact *artifact);

typedef struct weir_tensor_info {
  const char *name;
  const char *dtype; /* as safetensors spells it: "F32", "I64", "BOOL"... */
  const int64_t *shape;
  size_t rank;
  int64_t bytes;
  int donated; /* of an argument: whether a run may take its bytes, see below */
} weir_tensor_info;

size_t weir_artifact_entry_count(const weir_artifact *artifact);
const char *weir_artifact_entry_name(const weir_artifact *artifact, size_t entry);
weir_status weir_artifact_find_entry(const weir_artifact *artifact, const char *name,
                                     size_t *entry);
size_t weir_artifact_argument_count(const weir_artifact *artifact, size_t entry);
size_t weir_artifact_result_count(const weir_artifact *artifact, size_t entry);
weir_status weir_artifact_argument(const weir_artifact *artifact, size_t entry, size_t index,
                                   weir_tensor_info *info);
weir_status weir_artifact_result(const weir_artifact *artifact, size_t entry, size_t index,
                                 weir_tensor_info *info);

/* Donation: an entry may compute a result in the bytes of an argument that is
 * donated to it. `result` receives the index of that result, or -1 where the
 * argument holds none. An invocation that passes the same buffer for the two is
 * updated in place: the argument is gone, and nothing is copied. One that passes
 * two buffers leaves the argument as it was: its bytes are first copied to the
 * result's buffer on the device. The buffer of an argument that is donated and
 * holds no result may have any bytes after a run. Which of the donated arguments
 * hold results may differ from target to target: this is Vulkan's plan, see
 * weir_program_donation. */
weir_status weir_artifact_donation(const weir_artifact *artifact, size_t entry, size_t argument,
                                   int64_t *result);

/*--- devices ----------------------------------------------------------------*/

/* With the API "vulkan" or NULL, the default: the devices of this machine with
 * Vulkan 1.3, one per physical device, best first: discrete GPUs, then integrated
 * and virtual ones, then CPU drivers. With "cuda": the GPUs of compute capability
 * 8.0 and later, in the driver's order, each in its primary context. No device at
 * all is an error that says what is missing. `profile_json` receives the target
 * profile that fits the device; free it with weir_string_free. A device stays open until its last
 * buffer and program are gone, whatever is closed first. */
weir_status weir_device_count(const char *api, size_t *count);
weir_status weir_device_open(const char *api, size_t index, weir_device **device);
void weir_device_close(weir_device *device);
const char *weir_device_name(const weir_device *device);
weir_status weir_device_profile(const weir_device *device, char **profile_json);
void weir_string_free(char *string);

/* Uses a device that the caller made; it must outlive the handle and what is made
 * with it. It has Vulkan 1.3 and was created with `synchronization2` and with
 * the features that the kernels need, of those the device has (shaderFloat64,
 * shaderInt64, shaderInt8, storageBuffer8BitAccess, subgroupSizeControl,
 * shaderSubgroupExtendedTypes): Vulkan does not tell which were enabled. The
 * queue is used only inside calls of this library. */
typedef struct weir_vulkan_handles {
  void *get_instance_proc_addr; /* PFN_vkGetInstanceProcAddr */
  void *instance, *physical_device, *device, *queue;
  uint32_t queue_family;
} weir_vulkan_handles;
weir_status weir_device_adopt_vulkan(const weir_vulkan_handles *handles, weir_device **device);

/*--- buffers ----------------------------------------------------------------*/

/* A buffer may have 0 bytes. Its bytes are undefined until written. Writing and
 * reading wait for the submitted runs that use the buffer, so the next input can be
 * written while a run with another is under way; on CUDA they wait for all runs.
 * Destroying waits for everything that was submitted to the device. */
weir_status weir_buffer_create(weir_device *device, int64_t bytes, weir_buffer **buffer);
void weir_buffer_destroy(weir_buffer *buffer);
weir_status weir_buffer_write(weir_buffer *buffer, int64_t offset, const void *data, int64_t bytes);
weir_status weir_buffer_read(weir_buffer *buffer, int64_t offset, void *data, int64_t bytes);

/* Where device and host share memory, `data` receives the address of the buffer's
 * bytes, valid until the buffer is destroyed, else NULL. Call weir_buffer_wait before
 * each access: it waits for the submitted runs that use the buffer. */
weir_status weir_buffer_map(weir_buffer *buffer, void **data);
weir_status weir_buffer_wait(weir_buffer *buffer);

/*--- programs ---------------------------------------------------------------*/

/* Uploads constants and builds pipelines. Refuses a device that lacks what the
 * artifact requires, saying what. The artifact may be closed afterwards. */
weir_status weir_program_load(weir_device *device, const weir_artifact *artifact,
                              weir_program **program);
void weir_program_unload(weir_program *program);

/* As weir_artifact_donation, for the target that the program runs. */
weir_status weir_program_donation(const weir_program *program, const char *entry, size_t argument,
                                  int64_t *result);

/* Runs an entry and waits. Buffers are in the entry's order and have exactly the
 * tensors' bytes; a zero-size tensor may be NULL. The same buffer twice is refused,
 * except as two arguments that the run only reads, and as an argument and the result
 * that it is donated to (see weir_artifact_donation). Recordings are kept per
 * entry and set of buffers and replayed. Two invocations in a row are ordered.
 * `device_nanoseconds`, when not NULL, receives the time between the first and
 * the last command, or from the submission to its end where the queue has no
 * timestamps. */
weir_status weir_program_invoke(weir_program *program, const char *entry,
                                weir_buffer *const *arguments, size_t argument_count,
                                weir_buffer *const *results, size_t result_count,
                                double *device_nanoseconds);

/* As invoke, but returns once submitted; weir_device_wait waits for everything
 * submitted to the device. */
weir_status weir_program_submit(weir_program *program, const char *entry,
                                weir_buffer *const *arguments, size_t argument_count,
                                weir_buffer *const *results, size_t result_count);
weir_status weir_device_wait(weir_device *device);

/* When a dispatch ran, in nanoseconds since the run's first command. */
typedef struct weir_dispatch_time {
  double begin, end;
} weir_dispatch_time;

/* As invoke, but with the plan's dispatches one after the other on one queue, each
 * alone on the device, so that its time is its own. `times[i]` receives that of the
 * plan's dispatch i; `time_count` must be their number. Refused where the device
 * has no timestamps. */
weir_status weir_program_profile(weir_program *program, const char *entry,
                                 weir_buffer *const *arguments, size_t argument_count,
                                 weir_buffer *const *results, size_t result_count,
                                 weir_dispatch_time *times, size_t time_count);

/* Told the bytes of an operand that a dispatch may have written: `dispatch` is its
 * number in the plan, `operand` that of the operand, `data` is valid during the call. */
typedef void (*weir_observer)(void *context, size_t dispatch, size_t operand, const void *data,
                              int64_t bytes);

/* As invoke, but with the plan's dispatches one after the other, each submitted alone;
 * behind each, `observer` is told of every operand that its kernel may write. */
weir_status weir_program_observe(weir_program *program, const char *entry,
                                 weir_buffer *const *arguments, size_t argument_count,
                                 weir_buffer *const *results, size_t result_count,
                                 weir_observer observer, void *context);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_H */
