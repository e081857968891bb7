# Modules that do not import without a GPU and its driver, or never do, with what they miss.
{
  deep_ep = "a CUDA device";
  flash_mla = "libcuda.so.1, which comes with the driver";
  matplotlib_inline = "matplotlib, which only a notebook has";
  nixl_ep = "libcuda.so.1";
  nixl_ep_cu13 = "libcuda.so.1";
  sgl_kernel = "a CUDA device, after whose architecture it chooses its library";
  torch_memory_saver_hook_mode_preload = "libcuda.so.1, and the process that it is preloaded into";
  torch_memory_saver_hook_mode_preload_cu12 = "libcuda.so.1, and the process that it is preloaded into";
  torch_memory_saver_hook_mode_preload_cu13 = "libcuda.so.1, and the process that it is preloaded into";
  torch_memory_saver_hook_mode_torch = "libcuda.so.1, and the process that it is preloaded into";
  torch_memory_saver_hook_mode_torch_cu12 = "libcuda.so.1, and the process that it is preloaded into";
  torch_memory_saver_hook_mode_torch_cu13 = "libcuda.so.1, and the process that it is preloaded into";
}
