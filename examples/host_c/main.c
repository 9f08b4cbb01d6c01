/*===- main.c - Runs an artifact from C -------------------------------------===
 *
 * host_c ARTIFACT ENTRY
 *
 * Prints the entry's arguments and results, fills the arguments with a simple
 * pattern, runs once, and prints the first elements of the results and a
 * checksum of their bytes. Needs weir.h and libweir_runtime, nothing else.
 *===------------------------------------------------------------------------===*/

#include "weir/weir.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(weir_status status) {
  if (status == WEIR_OK)
    return;
  fprintf(stderr, "host_c: %s\n", weir_last_error());
  exit((int)status);
}

static void *allocate(size_t count, size_t size) {
  void *memory = calloc(count ? count : 1, size);
  if (!memory) {
    fprintf(stderr, "host_c: out of memory\n");
    exit(WEIR_FAILED);
  }
  return memory;
}

static void print_tensor(const char *what, const weir_tensor_info *info) {
  printf("%s %s: %s [", what, info->name, info->dtype);
  for (size_t i = 0; i < info->rank; ++i)
    printf("%s%" PRId64, i ? ", " : "", info->shape[i]);
  printf("], %" PRId64 " bytes\n", info->bytes);
}

/* Element i of every argument is (i mod 16) / 16 as a float, i mod 2 as an
 * integer, so that indices of small tables stay in range. */
static void fill(const weir_tensor_info *info, void *data) {
  size_t bytes = (size_t)info->bytes;
  memset(data, 0, bytes);
  if (!strcmp(info->dtype, "F32"))
    for (size_t i = 0; i < bytes / sizeof(float); ++i)
      ((float *)data)[i] = (float)(i % 16) / 16;
  else if (!strcmp(info->dtype, "F64"))
    for (size_t i = 0; i < bytes / sizeof(double); ++i)
      ((double *)data)[i] = (double)(i % 16) / 16;
  else if (!strcmp(info->dtype, "I64"))
    for (size_t i = 0; i < bytes / sizeof(int64_t); ++i)
      ((int64_t *)data)[i] = (int64_t)(i % 2);
  else if (!strcmp(info->dtype, "I32"))
    for (size_t i = 0; i < bytes / sizeof(int32_t); ++i)
      ((int32_t *)data)[i] = (int32_t)(i % 2);
  else if (!strcmp(info->dtype, "BOOL"))
    for (size_t i = 0; i < bytes; ++i)
      ((unsigned char *)data)[i] = (unsigned char)(i % 2);
}

static void print_values(const weir_tensor_info *info, const void *data) {
  size_t bytes = (size_t)info->bytes;
  printf("result %s:", info->name);
  for (size_t i = 0; i < 8; ++i) {
    if (!strcmp(info->dtype, "F32") && i < bytes / sizeof(float))
      printf(" %.9g", (double)((const float *)data)[i]);
    else if (!strcmp(info->dtype, "F64") && i < bytes / sizeof(double))
      printf(" %.17g", ((const double *)data)[i]);
    else if (!strcmp(info->dtype, "I64") && i < bytes / sizeof(int64_t))
      printf(" %" PRId64, ((const int64_t *)data)[i]);
    else if (!strcmp(info->dtype, "I32") && i < bytes / sizeof(int32_t))
      printf(" %" PRId32, ((const int32_t *)data)[i]);
    else if (!strcmp(info->dtype, "BOOL") && i < bytes)
      printf(" %d", (int)((const unsigned char *)data)[i]);
  }
  uint64_t checksum = UINT64_C(14695981039346656037); /* FNV-1a */
  for (size_t i = 0; i < bytes; ++i)
    checksum = (checksum ^ ((const unsigned char *)data)[i]) * UINT64_C(1099511628211);
  printf("\nchecksum %s: %016" PRIx64 "\n", info->name, checksum);
}

int main(int argc, char **argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: host_c ARTIFACT ENTRY\n");
    return 2;
  }
  weir_artifact *artifact = NULL;
  size_t entry = 0;
  check(weir_artifact_open(argv[1], &artifact));
  check(weir_artifact_find_entry(artifact, argv[2], &entry));

  weir_device *device = NULL;
  weir_program *program = NULL;
  check(weir_device_open("vulkan", 0, &device));
  check(weir_program_load(device, artifact, &program));
  printf("device %s\n", weir_device_name(device));

  size_t argument_count = weir_artifact_argument_count(artifact, entry);
  size_t result_count = weir_artifact_result_count(artifact, entry);
  weir_buffer **arguments = allocate(argument_count, sizeof(*arguments));
  weir_buffer **results = allocate(result_count, sizeof(*results));
  for (size_t i = 0; i < argument_count; ++i) {
    weir_tensor_info info;
    check(weir_artifact_argument(artifact, entry, i, &info));
    print_tensor("argument", &info);
    void *data = allocate((size_t)info.bytes, 1);
    fill(&info, data);
    check(weir_buffer_create_in(device, info.memory, info.bytes, &arguments[i]));
    check(weir_buffer_write(arguments[i], 0, data, info.bytes));
    free(data);
  }
  for (size_t i = 0; i < result_count; ++i) {
    weir_tensor_info info;
    check(weir_artifact_result(artifact, entry, i, &info));
    print_tensor("result", &info);
    check(weir_buffer_create_in(device, info.memory, info.bytes, &results[i]));
  }

  double nanoseconds = 0;
  check(weir_program_invoke(program, argv[2], arguments, argument_count, results, result_count,
                            &nanoseconds));
  for (size_t i = 0; i < result_count; ++i) {
    weir_tensor_info info;
    check(weir_artifact_result(artifact, entry, i, &info));
    void *data = allocate((size_t)info.bytes, 1);
    check(weir_buffer_read(results[i], 0, data, info.bytes));
    print_values(&info, data);
    free(data);
  }
  fprintf(stderr, "time on the device: %.3f ms\n", nanoseconds / 1e6);

  for (size_t i = 0; i < argument_count; ++i)
    weir_buffer_destroy(arguments[i]);
  for (size_t i = 0; i < result_count; ++i)
    weir_buffer_destroy(results[i]);
  free(arguments);
  free(results);
  weir_program_unload(program);
  weir_device_close(device);
  weir_artifact_close(artifact);
  return 0;
}
