! The last rank dies; the others revoke, shrink and agree (docs/ranks-die.md).
program survive
  use mpi_f08
  use, intrinsic :: iso_c_binding
  implicit none
  interface
    integer(c_int) function c_raise(signal) bind(c, name="raise")
      import :: c_int
      integer(c_int), value :: signal
    end function
  end interface
  type(MPI_Comm) :: left
  type(MPI_Group) :: failed
  type(MPI_Request) :: request
  integer :: rank, size, code, class, flag, count
  logical :: is_revoked

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, size)
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN)
  call MPI_Barrier(MPI_COMM_WORLD)
  if (rank == size - 1) code = c_raise(9_c_int)
  call MPI_Barrier(MPI_COMM_WORLD, code)
  call MPI_Error_class(code, class)
  if (class /= MPIX_ERR_PROC_FAILED .and. class /= MPIX_ERR_REVOKED) call wrong("barrier")
  call MPIX_Comm_revoke(MPI_COMM_WORLD)
  call MPIX_Comm_is_revoked(MPI_COMM_WORLD, is_revoked)
  if (.not. is_revoked) call wrong("is_revoked")
  call MPIX_Comm_shrink(MPI_COMM_WORLD, left)
  ! Now all know the failed rank.
  call MPIX_Comm_get_failed(MPI_COMM_WORLD, failed)
  call MPI_Group_size(failed, count)
  if (count /= 1) call wrong("get_failed")
  flag = ior(1, ishft(rank, 1))
  call MPIX_Comm_iagree(left, flag, request)
  call MPI_Wait(request, MPI_STATUS_IGNORE)
  if (flag /= 1) call wrong("iagree")
  flag = 3
  if (rank == 0) flag = 2
  call MPIX_Comm_agree(left, flag)
  if (flag /= 2) call wrong("agree")
  call MPI_Comm_size(left, size)
  if (rank == 0) print '(a,i0,a)', "survive: ", size, " ranks are left"
  call MPI_Comm_free(left)
  call MPI_Finalize()
contains
  subroutine wrong(what)
    character(*), intent(in) :: what
    print '(a,i0,2a)', "rank ", rank, ": wrong: ", what
    call MPI_Abort(MPI_COMM_SELF, 1)
  end subroutine
end program
