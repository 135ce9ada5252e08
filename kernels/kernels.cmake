add_library(tare_kernels INTERFACE)
