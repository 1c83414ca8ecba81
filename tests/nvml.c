/* A libnvidia-ml.so.1 for machines without GPUs: each call answers from the file `values` beside the library, which
 * tests/nvml.py writes. A value that is missing is "not supported"; `fail.FUNCTION` and `fail.FUNCTION.DEVICE` are numbers
 * of errors; with `hang.FUNCTION` the call makes a file `hangs`, and does not return while the value stands. A handle is the
 * number of its device: of a card 1, 2, …, of an instance of card 1 100, 101, …
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NOT_SUPPORTED 3
#define NOT_FOUND 6
#define TOO_SMALL 7
#define TIMEOUT 10
#define WHOLE 0xFFFFFFFFu
#define UNKNOWN_MEMORY UINT64_MAX

typedef uintptr_t Device;
typedef struct { char legacy[16]; unsigned domain, bus, device, id, subsystem; char bus_id[32]; } Pci;
typedef struct { unsigned long long total, free, used; } Memory;
typedef struct { unsigned version; unsigned long long total, reserved, free, used; } Memory2;
typedef struct { unsigned gpu, memory; } Utilization;
typedef struct { unsigned pid; unsigned long long used; unsigned gi, ci; } Process;
typedef struct { Device device; unsigned long long type, data; unsigned gi, ci; } Event;

static FILE *open_beside(const char *name, const char *mode) {
  Dl_info here;
  char path[4096];
  dladdr((void *)open_beside, &here);
  snprintf(path, sizeof path, "%.*s/%s", (int)(strrchr(here.dli_fname, '/') - here.dli_fname), here.dli_fname, name);
  return fopen(path, mode);
}

/* The value of `key`; 0 where there is none. */
static int value(const char *key, char *text, size_t size) {
  char line[4096];
  FILE *file = open_beside("values", "r");
  size_t length = strlen(key);
  int found = 0;
  while (file && !found && fgets(line, sizeof line, file))
    if (!strncmp(line, key, length) && line[length] == ' ') {
      line[strcspn(line, "\n")] = 0;
      snprintf(text, size, "%s", line + length + 1);
      found = 1;
    }
  if (file) fclose(file);
  return found;
}

static void key_of(Device device, const char *name, char *key, size_t size) {
  if (device >= 100)
    snprintf(key, size, "gpu%d.mig%d%s%s", (int)(device / 100) - 1, (int)(device % 100), *name ? "." : "", name);
  else
    snprintf(key, size, "gpu%d%s%s", (int)device - 1, *name ? "." : "", name);
}

static int text_of(Device device, const char *name, char *text, size_t size) {
  char key[256];
  key_of(device, name, key, sizeof key);
  return value(key, text, size) ? 0 : NOT_SUPPORTED;
}

static int numbers_of(Device device, const char *name, unsigned long long *numbers, int count) {
  char text[4096], *rest = text;
  if (text_of(device, name, text, sizeof text)) return NOT_SUPPORTED;
  for (int i = 0; i < count; i++) numbers[i] = strtoull(rest, &rest, 0);
  return 0;
}

static int number_of(Device device, const char *name, unsigned *number) {
  unsigned long long read;
  int code = numbers_of(device, name, &read, 1);
  if (!code) *number = (unsigned)read;
  return code;
}

/* The error that the call is to have, 0 for none. */
static int entered(const char *function, Device device) {
  char key[256], of[64], text[64];
  snprintf(key, sizeof key, "hang.%s", function);
  while (value(key, text, sizeof text)) {
    FILE *file = open_beside("hangs", "w");
    if (file) fclose(file);
    pause();
  }
  snprintf(key, sizeof key, "fail.%s", function);
  if (value(key, text, sizeof text)) return atoi(text);
  key_of(device, "", of, sizeof of);
  snprintf(key, sizeof key, "fail.%s.%s", function, of);
  return device && value(key, text, sizeof text) ? atoi(text) : 0;
}

#define ENTER(device) do { int code = entered(__func__, device); if (code) return code; } while (0)
/* A call that gives one text or number of a device. */
#define TEXT(function, name) \
  int function(Device device, char *text, unsigned size) { ENTER(device); return text_of(device, name, text, size); }
#define NUMBER(function, name) \
  int function(Device device, unsigned *number) { ENTER(device); return number_of(device, name, number); }

TEXT(nvmlDeviceGetUUID, "uuid")
TEXT(nvmlDeviceGetName, "name")
NUMBER(nvmlDeviceGetGpuInstanceId, "gi")
NUMBER(nvmlDeviceGetComputeInstanceId, "ci")
NUMBER(nvmlDeviceGetMaxMigDeviceCount, "most_instances")

int nvmlInitWithFlags(unsigned flags) { ENTER(0); return 0; }
int nvmlShutdown(void) { ENTER(0); return 0; }
const char *nvmlErrorString(int code) { return code == 999 ? "Unknown Error" : "an error"; }
int nvmlSystemGetDriverVersion(char *text, unsigned size) { ENTER(0); return value("driver", text, size) ? 0 : NOT_SUPPORTED; }

int nvmlSystemGetCudaDriverVersion_v2(int *version) {
  char text[64];
  ENTER(0);
  if (!value("cuda", text, sizeof text)) return NOT_SUPPORTED;
  *version = atoi(text);
  return 0;
}

int nvmlDeviceGetCount_v2(unsigned *count) {
  char text[64] = "0";
  ENTER(0);
  value("count", text, sizeof text);
  *count = atoi(text);
  return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, Device *device) { ENTER(index + 1); *device = index + 1; return 0; }

int nvmlDeviceGetHandleByUUID(const char *uuid, Device *device) {
  char text[256];
  ENTER(0);
  for (Device one = 1; !text_of(one, "uuid", text, sizeof text); one++)
    if (!strcmp(text, uuid)) { *device = one; return 0; }
  return NOT_FOUND;
}

int nvmlDeviceGetPciInfo_v3(Device device, Pci *pci) {
  ENTER(device);
  memset(pci, 0, sizeof *pci);
  return text_of(device, "bus_id", pci->legacy, sizeof pci->legacy);
}

static int memory_of(Device device, unsigned long long *used, unsigned long long *total) {
  unsigned long long megabytes[2];
  int code = numbers_of(device, "memory", megabytes, 2);
  if (!code) *used = megabytes[0] << 20, *total = megabytes[1] << 20;
  return code;
}

int nvmlDeviceGetMemoryInfo_v2(Device device, Memory2 *memory) { ENTER(device); return memory_of(device, &memory->used, &memory->total); }
int nvmlDeviceGetMemoryInfo(Device device, Memory *memory) { ENTER(device); return memory_of(device, &memory->used, &memory->total); }

int nvmlDeviceGetUtilizationRates(Device device, Utilization *rates) {
  unsigned long long percent[2];
  ENTER(device);
  int code = numbers_of(device, "utilisation", percent, 2);
  if (!code) rates->gpu = percent[0], rates->memory = percent[1];
  return code;
}
int nvmlDeviceGetTemperature(Device device, unsigned sensor, unsigned *degrees) { ENTER(device); return number_of(device, "temperature", degrees); }

int nvmlDeviceGetTotalEccErrors(Device device, unsigned kind, unsigned counter, unsigned long long *count) {
  ENTER(device);
  return counter ? NOT_SUPPORTED : numbers_of(device, kind ? "uncorrected" : "corrected", count, 1);
}

int nvmlDeviceGetRemappedRows(Device device, unsigned *corrected, unsigned *uncorrected, unsigned *pending, unsigned *failed) {
  unsigned long long rows[4];
  ENTER(device);
  int code = numbers_of(device, "rows", rows, 4);
  if (!code) *corrected = rows[0], *uncorrected = rows[1], *pending = rows[2], *failed = rows[3];
  return code;
}

/* `PID MEGABYTES PID MEGABYTES …`; a memory of -1 is unknown. */
static int processes(Device device, const char *name, unsigned *count, Process *found) {
  char text[4096], *rest = text, *end;
  unsigned room = *count;
  int code = text_of(device, name, text, sizeof text);
  if (code) return code;
  for (*count = 0;; rest = end, ++*count) {
    unsigned pid = strtoul(rest, &end, 10);
    if (end == rest) break;
    long long megabytes = strtoll(end, &end, 10);
    unsigned long long used = megabytes < 0 ? UNKNOWN_MEMORY : (unsigned long long)megabytes << 20;
    if (*count < room) found[*count] = (Process){pid, used, WHOLE, WHOLE};
  }
  return *count > room ? TOO_SMALL : 0;
}

#define PROCESSES(function, name) \
  int function(Device device, unsigned *count, Process *found) { ENTER(device); return processes(device, name, count, found); }
PROCESSES(nvmlDeviceGetComputeRunningProcesses_v3, "processes")
PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v3, "graphics")
PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v3, "mps")

int nvmlDeviceGetMigMode(Device device, unsigned *now, unsigned *pending) {
  ENTER(device);
  int code = number_of(device, "mig", now);
  *pending = *now;
  return code;
}

int nvmlDeviceGetMigDeviceHandleByIndex(Device device, unsigned index, Device *instance) {
  char text[128];
  ENTER(device);
  *instance = device * 100 + index;
  return text_of(*instance, "uuid", text, sizeof text) ? NOT_FOUND : 0;
}

int nvmlDeviceGetP2PStatus(Device a, Device b, unsigned capability, unsigned *status) {
  char key[64];
  ENTER(a);
  snprintf(key, sizeof key, "nvlink%d", (int)b - 1);
  return number_of(a, key, status);
}

int nvmlDeviceGetTopologyCommonAncestor(Device a, Device b, unsigned *level) {
  char key[64];
  ENTER(a);
  snprintf(key, sizeof key, "level%d", (int)b - 1);
  return number_of(a, key, level);
}

/* XIDs: `xid0 CARD NUMBER [GPU-INSTANCE COMPUTE-INSTANCE]`, `xid1 …`; each is given once, to a set with its card. */
static unsigned taken;
static unsigned long long registered;

int nvmlEventSetCreate(void **set) { ENTER(0); *set = &taken; return 0; }
int nvmlDeviceGetSupportedEventTypes(Device device, unsigned long long *types) { ENTER(device); *types = 0x18; return 0; }

int nvmlDeviceRegisterEvents(Device device, unsigned long long types, void *set) {
  ENTER(device);
  if (types == 8) registered |= 1ull << device;
  return 0;
}

int nvmlEventSetWait_v2(void *set, Event *event, unsigned milliseconds) {
  char key[64], text[256];
  int card = 0, gi = -1, ci = -1;
  unsigned long long number = 0;
  ENTER(0);
  snprintf(key, sizeof key, "xid%u", taken);
  if (!value(key, text, sizeof text)) return TIMEOUT;
  sscanf(text, "%d %llu %d %d", &card, &number, &gi, &ci);
  if (!(registered & 1ull << (card + 1))) return TIMEOUT;
  *event = (Event){card + 1, 8, number, gi, ci};
  taken++;
  return 0;
}
