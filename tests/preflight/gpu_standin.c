/* A stand-in for libcuda.so.1 in tests: two devices whose memory is this machine's. Compiled against NVIDIA's own
   cuda.h, so that the compiler compares these functions with the API that the probes call by ctypes. It measures
   nothing; what is tested is the calls. */
#define _GNU_SOURCE
#include <cuda.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define DEVICES 2
#define MOST 64

struct allocation { char *at; size_t size; int fd; } made[MOST];
static int count;
struct CUctx_st { int device; } contexts[DEVICES];
struct CUevent_st { double at; };
static CUcontext current;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e3 + t.tv_nsec * 1e-6;
}

CUresult cuInit(unsigned int flags) { return flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS; }
CUresult cuDriverGetVersion(int *version) { *version = 13000; return CUDA_SUCCESS; }
CUresult cuGetErrorName(CUresult code, const char **name) {
  *name = code == CUDA_SUCCESS ? "CUDA_SUCCESS" : code == CUDA_ERROR_INVALID_HANDLE ? "CUDA_ERROR_INVALID_HANDLE"
          : "CUDA_ERROR_INVALID_VALUE";
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetCount(int *n) { *n = DEVICES; return CUDA_SUCCESS; }
CUresult cuDeviceGet(CUdevice *device, int ordinal) {
  if (ordinal < 0 || ordinal >= DEVICES) return CUDA_ERROR_INVALID_VALUE;
  *device = ordinal;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetName(char *name, int length, CUdevice device) {
  snprintf(name, length, "stand-in %d", device);
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
  contexts[device].device = device;
  *context = &contexts[device];
  return CUDA_SUCCESS;
}
CUresult cuCtxSetCurrent(CUcontext context) { current = context; return CUDA_SUCCESS; }
CUresult cuCtxSynchronize(void) { return current ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE; }
CUresult cuMemAlloc(CUdeviceptr *address, size_t size) {
  if (!current || count == MOST) return CUDA_ERROR_INVALID_VALUE;
  struct allocation *a = &made[count++];
  a->fd = memfd_create("device memory", 0);
  if (ftruncate(a->fd, size)) return CUDA_ERROR_INVALID_VALUE;
  a->at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, a->fd, 0);
  a->size = size;
  *address = (CUdeviceptr)a->at;
  return CUDA_SUCCESS;
}
CUresult cuMemsetD8(CUdeviceptr address, unsigned char byte, size_t size) {
  memset((void *)address, byte, size);
  return CUDA_SUCCESS;
}
CUresult cuMemcpyDtoH(void *to, CUdeviceptr from, size_t size) { memcpy(to, (void *)from, size); return CUDA_SUCCESS; }
CUresult cuDeviceCanAccessPeer(int *can, CUdevice one, CUdevice other) { *can = one != other; return CUDA_SUCCESS; }
CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags) {
  return flags || peer == current ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
CUresult cuStreamCreate(CUstream *stream, unsigned int flags) { *stream = malloc(flags + 1); return CUDA_SUCCESS; }
CUresult cuStreamDestroy(CUstream stream) { free(stream); return CUDA_SUCCESS; }
CUresult cuStreamSynchronize(CUstream stream) { return stream ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE; }
CUresult cuEventCreate(CUevent *event, unsigned int flags) {
  *event = calloc(1, sizeof(struct CUevent_st) + flags);
  return CUDA_SUCCESS;
}
CUresult cuEventDestroy(CUevent event) { free(event); return CUDA_SUCCESS; }
CUresult cuEventRecord(CUevent event, CUstream stream) {
  if (!stream) return CUDA_ERROR_INVALID_HANDLE;
  event->at = now();
  return CUDA_SUCCESS;
}
CUresult cuEventSynchronize(CUevent event) { return event ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE; }
CUresult cuEventElapsedTime(float *milliseconds, CUevent begin, CUevent finish) {
  *milliseconds = finish->at - begin->at + 1e-3;
  return CUDA_SUCCESS;
}
/* newer headers call the function above cuEventElapsedTime_v2; drivers have both */
#ifdef cuEventElapsedTime
#undef cuEventElapsedTime
CUresult cuEventElapsedTime(float *milliseconds, CUevent begin, CUevent finish) {
  return cuEventElapsedTime_v2(milliseconds, begin, finish);
}
#endif
CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream) {
  if (!stream) return CUDA_ERROR_INVALID_HANDLE;
  memcpy((void *)to, (void *)from, size);
  return CUDA_SUCCESS;
}
CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext there, CUdeviceptr from, CUcontext here, size_t size,
                           CUstream stream) {
  if (!there || !here || there == here) return CUDA_ERROR_INVALID_VALUE;
  return cuMemcpyDtoDAsync(to, from, size, stream);
}
CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr address) {
  for (int i = 0; i < count; i++)
    if ((CUdeviceptr)made[i].at == address) {
      snprintf(handle->reserved, sizeof handle->reserved, "/proc/%d/fd/%d", getpid(), made[i].fd);
      return CUDA_SUCCESS;
    }
  return CUDA_ERROR_INVALID_VALUE;
}
CUresult cuIpcOpenMemHandle(CUdeviceptr *address, CUipcMemHandle handle, unsigned int flags) {
  int fd = open(handle.reserved, O_RDWR);
  if (fd < 0 || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) return CUDA_ERROR_INVALID_HANDLE;
  *address = (CUdeviceptr)mmap(NULL, lseek(fd, 0, SEEK_END), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  return CUDA_SUCCESS;
}
