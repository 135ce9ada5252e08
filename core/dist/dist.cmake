# libtare_mpi.so and libtare_nccl.so: the only objects that know those libraries. Built where the library is, loaded when a configuration wants it.
find_package(MPI COMPONENTS C)
if(MPI_C_FOUND)
    add_library(tare_mpi SHARED core/dist/mpi/mpi.c)
    target_link_libraries(tare_mpi PRIVATE MPI::MPI_C)
    install(TARGETS tare_mpi LIBRARY DESTINATION lib/tare)
else()
    message(STATUS "MPI: not found; several ranks need it (apt install libopenmpi-dev openmpi-bin)")
endif()
