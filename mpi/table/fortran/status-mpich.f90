  type, bind(C) :: MPI_Status
    integer, private :: count_lo
    integer, private :: count_hi_and_cancelled
    integer :: MPI_SOURCE
    integer :: MPI_TAG
    integer :: MPI_ERROR
  end type
