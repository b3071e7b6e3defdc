# HDF5 on NFS.
job "HDF5" -genv LD_LIBRARY_PATH $MPI/lib:$LIBRARIES hdf5 /shared/file.h5
